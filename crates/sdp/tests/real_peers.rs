//! Offers of real peers, and the complete answers to them in `tests/peers/answers`. `BLESS=1`
//! rewrites the answers.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

mod support;

use portunus_rtp::{ExtensionKind, Pt, Rid, Ssrc};
use portunus_sdp::{Codec, DtlsRole, Kind, Negotiated};
use support::{answer, answer_with, lines, offer, path, session};

fn check(name: &str) -> Negotiated {
    let (text, negotiated) = answer(&offer(name));
    let mut text = text.replace("\r\n", "\n");
    // SSRCs are random.
    for media in &negotiated.media {
        text = text.replace(
            &media.local_ssrc.0.to_string(),
            &format!("SSRC-{}", media.mid),
        );
        if let Some(rtx) = media.local_rtx_ssrc {
            text = text.replace(&rtx.0.to_string(), &format!("RTX-{}", media.mid));
        }
    }
    let path = path("peers/answers", name);
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap();
    assert!(
        text == expected,
        "the answer to {name} has changed:\n{text}"
    );
    negotiated
}

#[test]
fn chromium() {
    let negotiated = check("chromium");
    assert_eq!(negotiated.transport.dtls_role, DtlsRole::Server);
    assert_eq!(negotiated.transport.ice.ufrag, "EsAw");
    assert_eq!(negotiated.transport.candidates.len(), 2);
    let [audio, video, data] = negotiated.media.as_slice() else {
        panic!("three m-lines")
    };
    assert_eq!(
        (audio.kind, video.kind, data.kind),
        (Kind::Audio, Kind::Video, Kind::Data)
    );
    assert!(
        negotiated
            .media
            .iter()
            .all(|media| media.send && media.recv && !media.disabled)
    );

    let [opus] = audio.payloads.as_slice() else {
        panic!("one codec")
    };
    assert_eq!(
        (opus.pt, opus.codec, opus.clock_rate, opus.rtx),
        (Pt(111), Codec::Opus, 48_000, None)
    );
    assert!(opus.feedback.transport_cc && !opus.feedback.nack);
    assert_eq!(
        audio.remote_ssrcs.first().unwrap().ssrc,
        Ssrc(3_570_614_608)
    );
    assert_eq!(audio.extensions.id(ExtensionKind::AudioLevel), Some(1));

    let [vp8] = video.payloads.as_slice() else {
        panic!("one codec")
    };
    assert_eq!(
        (vp8.pt, vp8.codec, vp8.rtx),
        (Pt(96), Codec::Vp8, Some(Pt(97)))
    );
    let feedback = vp8.feedback;
    assert!(
        feedback.nack && feedback.pli && feedback.fir && feedback.remb && feedback.transport_cc
    );
    assert_eq!(
        video.remote_ssrcs.first().unwrap().rtx,
        Some(Ssrc(632_943_048))
    );
    assert!(video.local_rtx_ssrc.is_some());
    assert_eq!(video.extensions.id(ExtensionKind::PlayoutDelay), Some(5));
    assert_eq!(
        video.extensions.id(ExtensionKind::DependencyDescriptor),
        None
    );

    assert_eq!((data.sctp_port, data.max_message_size), (5_000, 262_144));
}

#[test]
fn chromium_with_simulcast_by_rid() {
    let negotiated = check("chromium_simulcast");
    let video = negotiated.media.get(1).unwrap();
    let rids: Vec<&str> = video.rids.iter().map(Rid::as_str).collect();
    assert_eq!(rids, ["l", "m", "h"]);
    assert!(video.remote_ssrcs.is_empty());
    assert_eq!(video.local_rtx_ssrc, None);
    assert_eq!(video.payloads.first().unwrap().rtx, Some(Pt(97)));
    assert_eq!(video.extensions.id(ExtensionKind::RepairedRid), Some(11));
    assert_eq!(
        video.extensions.id(ExtensionKind::VideoLayersAllocation),
        Some(9)
    );
}

#[test]
fn chromium_with_simulcast_by_ssrc() {
    let negotiated = check("chromium_sim_group");
    let streams = &negotiated.media.get(1).unwrap().remote_ssrcs;
    let pairs: Vec<_> = streams
        .iter()
        .map(|s| (s.ssrc.0, s.rtx.unwrap().0))
        .collect();
    assert_eq!(pairs, [(1001, 2001), (1002, 2002), (1003, 2003)]);
}

#[test]
fn chromium_with_data_only() {
    let negotiated = check("chromium_data_only");
    assert_eq!(negotiated.media.len(), 1);
}

#[test]
fn firefox() {
    let negotiated = check("firefox");
    let video = negotiated.media.get(1).unwrap();
    assert_eq!(video.payloads.first().unwrap().rtx, Some(Pt(124)));
    assert_eq!(
        negotiated.media.get(2).unwrap().max_message_size,
        1_073_741_823
    );
}

#[test]
fn firefox_with_simulcast() {
    let negotiated = check("firefox_simulcast");
    let rids: Vec<&str> = negotiated
        .media
        .get(1)
        .unwrap()
        .rids
        .iter()
        .map(Rid::as_str)
        .collect();
    assert_eq!(rids, ["lo", "hi"]);
}

#[test]
fn old_firefox_with_simulcast_and_old_data_channels() {
    let negotiated = check("firefox_old_simulcast");
    assert_eq!(negotiated.media.get(1).unwrap().rids.len(), 2);
    assert_eq!(negotiated.media.get(2).unwrap().sctp_port, 5_000);
}

#[test]
fn aiortc() {
    let negotiated = check("aiortc");
    let vp8 = negotiated.media.get(1).unwrap().payloads.first().unwrap();
    assert!(vp8.feedback.nack && vp8.feedback.pli && vp8.feedback.remb);
    assert!(!vp8.feedback.fir && !vp8.feedback.transport_cc);
    assert_eq!(negotiated.transport.fingerprints.len(), 1);
}

#[test]
fn gstreamer() {
    let negotiated = check("gstreamer");
    let [video, audio] = negotiated.media.as_slice() else {
        panic!("two m-lines")
    };
    assert!(!video.send && video.recv);
    // `bundle-only` with port 0 is not a rejection.
    assert!(!audio.disabled && audio.recv);
    assert_eq!(audio.payloads.first().unwrap().codec, Codec::Opus);
}

#[test]
fn each_video_codec_of_chromium_can_be_had() {
    use portunus_sdp::CodecName::{Av1, H264, H265, Vp8, Vp9};
    let cases = [
        (Vp8, 96, "a=rtcp-fb:96 ccm fir"),
        (Vp9, 98, "a=fmtp:98 profile-id=0"),
        (
            H264,
            102,
            "a=fmtp:102 level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42001f",
        ),
        (Av1, 45, "a=fmtp:45 level-idx=5;profile=0;tier=0"),
        (
            H265,
            116,
            "a=fmtp:116 level-id=180;profile-id=1;tier-flag=0;tx-mode=SRST",
        ),
    ];
    for (codec, pt, expected) in cases {
        let (text, negotiated) = answer_with(&mut session(), &offer("chromium"), |options| {
            options.video.only(codec)
        });
        let payloads = &negotiated.media.get(1).unwrap().payloads;
        assert_eq!(payloads.first().unwrap().pt, Pt(pt));
        assert!(payloads.first().unwrap().rtx.is_some());
        assert_eq!(lines(&text, 2, expected).len(), 1, "{text}");
    }
}
