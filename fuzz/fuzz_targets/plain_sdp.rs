#![no_main]
//! Descriptions of far ends without ICE and DTLS, as an offer and as an answer.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use portunus_sdp::plain::{
    FarSession, LocalEnd, LocalPorts, PlainSession, Ports, SrtpPolicy, Suite,
};
use portunus_sdp::{CodecName, Description, Direction, Kind, MediaOffer, OfferOptions};

static BROWSER: LazyLock<Description> = LazyLock::new(|| {
    let line = |kind, codecs: &[CodecName]| {
        let mut line = MediaOffer::new(kind, Direction::SendRecv);
        for codec in codecs {
            line.add_codec(*codec, None, None);
        }
        line
    };
    let mut audio = line(
        Kind::Audio,
        &[CodecName::Opus, CodecName::Pcmu, CodecName::Pcma],
    );
    audio.add_dtmf(portunus_rtp::Pt(126), 8_000);
    Description::offer(OfferOptions {
        media: vec![audio, line(Kind::Video, &[CodecName::Vp8])],
        ..OfferOptions::default()
    })
});

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let ports = |rtp: u16| {
        Some(LocalPorts {
            rtp,
            rtcp: rtp.saturating_add(1),
        })
    };
    let local = LocalEnd {
        address: IpAddr::V4(Ipv4Addr::LOCALHOST),
        ports: Ports {
            audio: ports(10_000),
            video: ports(10_002),
        },
        rtcp_mux: true,
    };
    let fill = &mut |bytes: &mut [u8]| bytes.fill(1);
    let mut plain = PlainSession::new(true, true);
    let policy = Some(SrtpPolicy::Optional(Suite::default()));
    let offered = plain
        .offer(&BROWSER, &local, policy, fill)
        .expect("an offer");
    assert!(FarSession::parse(&offered).is_ok());
    let _ = plain.accept_answer(text, None);
    if let Ok(taken) = plain.take_offer(text, None) {
        let mut answer = taken.description;
        for media in &mut answer.media {
            media.direction = media.direction.reversed();
        }
        // The answer can be parsed, and has the offer's m-lines.
        let answered = plain
            .answer(&answer, &local, None, fill)
            .expect("an answer");
        let far = FarSession::parse(text).expect("it was taken");
        let own = FarSession::parse(&answered).expect("what is written can be read");
        assert_eq!(own.media.len(), far.media.len());
        // A sender in the other address family is refused.
        for (own, far) in own.media.iter().zip(&far.media) {
            assert!(own.port == 0 || far.rtp.is_none_or(|rtp| rtp.is_ipv4()));
        }
        let again = plain.offer(&plain.said(), &local, None, fill);
        assert!(again.is_err() || FarSession::parse(&again.unwrap_or_default()).is_ok());
        plain.moved(&answer);
    }
});
