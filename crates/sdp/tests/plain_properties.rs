//! Properties of arbitrary and of damaged descriptions of far ends.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

mod support;

use std::net::{IpAddr, Ipv4Addr};

use portunus_sdp::plain::{
    FarSession, LocalEnd, LocalPorts, PlainSession, Ports, SrtpPolicy, Suite,
};
use portunus_sdp::{Description, Direction, Kind};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use support::{offer, parse, path};

const FAR_ENDS: [&str; 7] = [
    "asterisk",
    "baresip",
    "cisco",
    "freeswitch",
    "linphone",
    "polycom_held",
    "t38",
];

fn local() -> LocalEnd {
    let ports = |rtp| Some(LocalPorts { rtp, rtcp: rtp + 1 });
    LocalEnd {
        address: IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)),
        ports: Ports {
            audio: ports(10_000),
            video: ports(10_002),
        },
        rtcp_mux: true,
    }
}

fn fill(bytes: &mut [u8]) {
    bytes.fill(9);
}

fn answered(offer: &Description) -> Description {
    let mut answer = offer.clone();
    for media in &mut answer.media {
        media.direction = media.direction.reversed();
    }
    answer
}

fn direction() -> impl Strategy<Value = Direction> {
    (any::<bool>(), any::<bool>()).prop_map(|(send, recv)| Direction::new(send, recv))
}

fn policy() -> impl Strategy<Value = SrtpPolicy> {
    let suite = prop::sample::select(Suite::ALL.to_vec());
    (0..3, suite).prop_map(|(kind, suite)| match kind {
        0 => SrtpPolicy::None,
        1 => SrtpPolicy::Optional(suite),
        _ => SrtpPolicy::Mandatory(suite),
    })
}

fn far_line() -> impl Strategy<Value = String> {
    let kind = prop::sample::select(vec!["audio", "video", "image", "text"]);
    let proto = prop::sample::select(vec!["RTP/AVP", "RTP/AVPF", "udptl", "UDP/TLS/RTP/SAVPF"]);
    let port = prop::sample::select(vec![0_u16, 4000, 65_535]);
    let formats = vec(
        prop::sample::select(vec!["0", "8", "9", "96", "101", "200", "x"]),
        1..5,
    );
    let attributes = vec(
        prop::sample::select(vec![
            "a=rtpmap:96 VP8/90000",
            "a=rtpmap:96 opus/48000/2",
            "a=rtpmap:101 telephone-event/8000",
            "a=fmtp:96 useinbandfec=1",
            "a=rtcp:5",
            "a=rtcp-mux",
            "a=sendonly",
            "a=inactive",
            "a=ptime:20",
            "a=rtcp-fb:* nack pli",
            "a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwd",
            "b=AS:64",
            "c=IN IP4 0.0.0.0",
            "c=IN IP6 2001:db8::1",
        ]),
        0..6,
    );
    (kind, port, proto, formats, attributes).prop_map(|(kind, port, proto, formats, attributes)| {
        format!(
            "m={kind} {port} {proto} {}\r\n{}\r\n",
            formats.join(" "),
            attributes.join("\r\n")
        )
    })
}

proptest! {
    /// This side can read its own description of any browser's offer.
    #[test]
    fn offers_to_far_ends_can_be_read(policy in policy(), ways in vec(direction(), 2), held in option::of(direction())) {
        let mut browser = parse(&offer("chromium")).unwrap().description;
        browser.media.retain(|media| media.kind != Kind::Data);
        for (media, direction) in browser.media.iter_mut().zip(&ways) {
            media.direction = *direction;
        }
        let mut plain = PlainSession::new(false, true);
        plain.set_held(held);
        let text = plain.offer(&browser, &local(), Some(policy), &mut fill).unwrap();
        let far = FarSession::parse(&text).unwrap();
        prop_assert_eq!(far.media.len(), 2);
        for (media, direction) in far.media.iter().zip(ways) {
            let expected = match (held, direction) {
                (None, _) => direction,
                (Some(held), Direction::SendRecv) => held,
                _ => Direction::Inactive,
            };
            prop_assert_eq!(media.direction, expected);
            prop_assert_eq!(media.has_crypto(), policy.suite().is_some());
            prop_assert_eq!(media.is_secure(), policy.is_mandatory());
        }
        // The other side is a far end of the same implementation.
        let mut other = PlainSession::new(false, false);
        let taken = other.take_offer(&text, None).unwrap();
        let answer = other.answer(&answered(&taken.description), &local(), None, &mut fill).unwrap();
        plain.accept_answer(&answer, None).unwrap();
        for kind in [Kind::Audio, Kind::Video] {
            let (one, two) = (plain.agreed_on(kind).unwrap(), other.agreed_on(kind).unwrap());
            prop_assert_eq!(one.sends(), two.receives());
            prop_assert_eq!(one.receives(), two.sends());
            prop_assert_eq!(&one.local_key, &two.remote_key);
            prop_assert_eq!(&one.remote_key, &two.local_key);
            prop_assert_eq!(one.local_key.as_ref().map(|key| key.suite()), policy.suite());
            prop_assert_eq!(one.codecs.len(), two.codecs.len());
        }
    }

    /// An answer has the m-lines of its offer, in order.
    #[test]
    fn answers_have_the_lines_of_their_offers(lines in vec(far_line(), 1..6)) {
        let text = format!("v=0\r\no=- 1 1 IN IP4 192.0.2.9\r\ns=-\r\nc=IN IP4 192.0.2.9\r\nt=0 0\r\n{}", lines.concat());
        let mut plain = PlainSession::new(true, true);
        if let Ok(taken) = plain.take_offer(&text, None) {
            let answer = plain.answer(&answered(&taken.description), &local(), None, &mut fill).unwrap();
            let (offer, answer) = (FarSession::parse(&text).unwrap(), FarSession::parse(&answer).unwrap());
            prop_assert_eq!(offer.media.len(), answer.media.len());
            for (offered, answered) in offer.media.iter().zip(&answer.media) {
                prop_assert_eq!(&offered.name, &answered.name);
                prop_assert_eq!(&offered.proto, &answered.proto);
                prop_assert!(answered.port == 0 || offered.is_usable());
            }
            prop_assert!(plain.agreed().len() <= 2);
        }
    }

    /// Damage leads to errors, and keeps earlier agreements.
    #[test]
    fn damage_is_survived(
        name in prop::sample::select(FAR_ENDS.to_vec()),
        damage in vec((any::<prop::sample::Index>(), any::<char>()), 1..8),
    ) {
        let text = std::fs::read_to_string(path("far_ends", name)).unwrap();
        let mut plain = PlainSession::new(false, false);
        let taken = plain.take_offer(&text, None).unwrap();
        plain.answer(&answered(&taken.description), &local(), None, &mut fill).unwrap();
        let before = plain.agreed().to_vec();
        let mut chars: Vec<char> = text.chars().collect();
        for (at, char) in damage {
            let at = at.index(chars.len());
            chars[at] = char;
        }
        let damaged: String = chars.into_iter().collect();
        let _ = plain.take_offer(&damaged, None);
        prop_assert_eq!(plain.agreed(), before.as_slice());
    }
}
