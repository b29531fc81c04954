//! Offers of the server and answers to them, and descriptions passed from peer to peer.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

mod support;

use portunus_rtp::{ExtensionKind, Pt};
use portunus_sdp::{
    Codec, CodecName, Description, Direction, DtlsRole, Kind, MediaOffer, OfferOptions, SdpError,
    SdpType, Session, Signaling,
};
use support::{answer_with, credentials, direction, echo, lines, offer, session, transport};

/// Returns the offer of a streaming plugin: audio, video with two codecs, data.
fn stream() -> OfferOptions {
    let extensions = vec![(ExtensionKind::Mid, 1), (ExtensionKind::TransportCc, 3)];
    let mut audio = MediaOffer::new(Kind::Audio, Direction::SendOnly);
    audio.add_codec(CodecName::Opus, None, Some("useinbandfec=1".to_owned()));
    audio.add_red(Pt(120), Pt(111));
    audio.add_dtmf(Pt(126), 8_000);
    audio.extensions = extensions.clone();
    let mut video = MediaOffer::new(Kind::Video, Direction::SendOnly);
    video.add_codec(
        CodecName::H264,
        None,
        Some("packetization-mode=1".to_owned()),
    );
    video.add_codec(CodecName::Vp8, Some(Pt(97)), None);
    video.extensions = extensions;
    let data = MediaOffer::new(Kind::Data, Direction::SendRecv);
    OfferOptions {
        name: "Stream 1".to_owned(),
        media: vec![audio, video, data],
        ..Default::default()
    }
}

/// Returns a session in place of a browser.
fn peer() -> Session {
    let mut local = transport();
    local.ice = credentials("peer");
    Session::new(local, 99)
}

#[test]
fn an_offer_is_complete() {
    let mut session = session();
    let text = session.local_offer(Description::offer(stream())).unwrap();
    assert_eq!(session.signaling(), Signaling::HaveLocalOffer);
    assert!(text.starts_with(
        "v=0\r\no=- 1700000000000000 1 IN IP4 203.0.113.5\r\ns=Stream 1\r\nt=0 0\r\n\
         a=group:BUNDLE 0 1 2\r\n"
    ));
    assert_eq!(text.matches("a=setup:actpass").count(), 3);
    assert_eq!(
        lines(&text, 1, "m="),
        ["m=audio 9 UDP/TLS/RTP/SAVPF 120 111 126"]
    );
    assert_eq!(
        lines(&text, 1, "a=rtcp-fb:111"),
        ["a=rtcp-fb:111 transport-cc"]
    );
    // Each repair follows its codec if that number is free.
    assert_eq!(
        lines(&text, 2, "m="),
        ["m=video 9 UDP/TLS/RTP/SAVPF 96 97 99 98"]
    );
    let repairs = [lines(&text, 2, "a=fmtp:98"), lines(&text, 2, "a=fmtp:99")].concat();
    assert_eq!(repairs, ["a=fmtp:98 apt=97", "a=fmtp:99 apt=96"]);
    assert_eq!(lines(&text, 2, "a=rtcp-fb:97").len(), 5);
    assert_eq!(lines(&text, 2, "a=ssrc-group:FID").len(), 1);
    assert_eq!(lines(&text, 2, "a=ssrc:").len(), 2);
    assert_eq!(lines(&text, 2, "a=msid"), ["a=msid:janus janus1"]);
    assert_eq!(
        lines(&text, 3, "m="),
        ["m=application 9 UDP/DTLS/SCTP webrtc-datachannel"]
    );
    assert!(!text.contains("a=rid") && !text.contains("simulcast"));
}

#[test]
fn an_answer_settles_the_offer() {
    let mut session = session();
    let offer = session.local_offer(Description::offer(stream())).unwrap();
    let (answer, _) = answer_with(&mut peer(), &offer, |options| options.audio.red = true);
    let answer = session.parse(&answer, SdpType::Answer).unwrap();
    let negotiated = session.accept_answer(answer).unwrap();
    assert_eq!(session.signaling(), Signaling::Stable);
    assert_eq!(negotiated.transport.ice.ufrag, "peer");
    // The peer has answered `passive`.
    assert_eq!(negotiated.transport.dtls_role, DtlsRole::Client);
    let [audio, video, data] = negotiated.media.as_slice() else {
        panic!("three m-lines")
    };
    assert!(audio.send && !audio.recv && video.send && !video.recv && data.send && data.recv);
    let codecs: Vec<_> = audio.payloads.iter().map(|payload| payload.codec).collect();
    assert_eq!(codecs, [Codec::Red, Codec::Opus]);
    let [vp8] = video.payloads.as_slice() else {
        panic!("one codec")
    };
    assert_eq!(
        (vp8.codec, vp8.pt, vp8.rtx),
        (Codec::Vp8, Pt(97), Some(Pt(98)))
    );
    assert!(vp8.feedback.nack && vp8.feedback.transport_cc);
    assert_eq!(video.extensions.id(ExtensionKind::TransportCc), Some(3));
    assert_eq!(
        lines(&offer, 2, "a=ssrc:")[0],
        format!("a=ssrc:{} cname:janus", video.local_ssrc.0)
    );
    assert!(video.local_rtx_ssrc.is_some());
}

#[test]
fn a_peer_can_refuse_lines_and_codecs() {
    let mut session = session();
    let offer = session.local_offer(Description::offer(stream())).unwrap();
    let (answer, _) = answer_with(&mut peer(), &offer, |options| {
        options.audio.codecs.clear();
        options.video.direction = Direction::Inactive;
    });
    let answer = session.parse(&answer, SdpType::Answer).unwrap();
    let negotiated = session.accept_answer(answer).unwrap();
    let [audio, video, data] = negotiated.media.as_slice() else {
        panic!("three m-lines")
    };
    assert!(audio.disabled && !video.disabled && !data.disabled);
    assert!(!video.send && !video.recv);
    let active: Vec<bool> = session
        .slots(SdpType::Offer)
        .iter()
        .map(|slot| slot.active)
        .collect();
    assert_eq!(active, [false, true, true]);
}

#[test]
fn later_offers_count_on_and_keep_what_there_is() {
    let mut session = session();
    let mut peer = peer();
    let mut exchange = |session: &mut Session, options: OfferOptions| {
        let offer = session.local_offer(Description::offer(options)).unwrap();
        let (answer, _) = answer_with(&mut peer, &offer, |_| {});
        let answer = session.parse(&answer, SdpType::Answer).unwrap();
        (offer, session.accept_answer(answer).unwrap())
    };
    let (_, first) = exchange(&mut session, stream());
    let mut more = stream();
    let mut second_video = more.media[1].clone();
    second_video.mid = None;
    more.media.push(second_video);
    let (text, second) = exchange(&mut session, more);
    assert!(text.contains("o=- 1700000000000000 2 IN IP4"));
    assert_eq!(second.media.len(), 4);
    for (before, after) in first.media.iter().zip(&second.media) {
        assert_eq!(
            (before.mid, before.local_ssrc),
            (after.mid, after.local_ssrc)
        );
        assert_eq!(before.payloads, after.payloads);
    }
    assert_eq!(second.transport.dtls_role, first.transport.dtls_role);

    // m-lines that an offer lacks are withdrawn, and their places can be reused.
    let mut less = stream();
    less.media.truncate(1);
    let (text, third) = exchange(&mut session, less);
    assert_eq!(lines(&text, 4, "m="), ["m=video 0 UDP/TLS/RTP/SAVPF 0"]);
    assert_eq!(lines(&text, 0, "a=group"), ["a=group:BUNDLE 0"]);
    assert_eq!(third.media.iter().filter(|media| media.disabled).count(), 3);
    let mut recycled = stream();
    recycled.media[1].mid = portunus_rtp::Mid::new("again");
    recycled.media[1].kind = Kind::Video;
    let (_, fourth) = exchange(&mut session, recycled);
    assert_eq!(fourth.media[1].mid.as_str(), "again");
    assert_ne!(fourth.media[1].local_ssrc, second.media[1].local_ssrc);
    assert_eq!(fourth.media.len(), 4);
}

#[test]
fn lines_in_use_cannot_change_their_identity() {
    let mut session = session();
    answer_with(&mut session, &offer("chromium"), |_| {});
    let error = session.local_offer(Description::offer(OfferOptions {
        media: vec![MediaOffer::new(Kind::Video, Direction::SendOnly)],
        ..Default::default()
    }));
    assert_eq!(error, Err(SdpError::LocalMismatch(0)));
    assert_eq!(session.signaling(), Signaling::Stable);
}

#[test]
fn an_answer_needs_an_offer_with_the_same_lines() {
    let mut session = session();
    let stray = session.parse(&offer("chromium"), SdpType::Answer).unwrap();
    assert_eq!(
        session.accept_answer(stray.clone()),
        Err(SdpError::UnexpectedAnswer)
    );
    assert_eq!(
        SdpError::UnexpectedAnswer.to_string(),
        "Unexpected ANSWER (did we offer?)"
    );
    let mut options = stream();
    options.media.truncate(1);
    session.local_offer(Description::offer(options)).unwrap();
    assert_eq!(session.accept_answer(stray), Err(SdpError::MediaMismatch));
    assert_eq!(session.signaling(), Signaling::HaveLocalOffer);
}

#[test]
fn a_call_is_passed_from_peer_to_peer() {
    // The caller's offer goes to the callee with the server's transport.
    let (mut caller, mut callee, mut browser) = (session(), Session::new(transport(), 8), peer());
    let remote = caller
        .parse(&offer("chromium_simulcast"), SdpType::Offer)
        .unwrap();
    let description = remote.description.clone();
    caller.set_remote_offer(remote).unwrap();
    let text = callee.local_offer(description).unwrap();
    assert_eq!(
        lines(&text, 2, "m="),
        [
            "m=video 9 UDP/TLS/RTP/SAVPF 96 103 102 106 39 45 98 100 116 97 104 105 107 40 46 99 101 117"
        ]
    );
    assert_eq!(lines(&text, 2, "a=extmap").len(), 13);
    assert_eq!(
        lines(&text, 1, "a=msid:"),
        ["a=msid:6a7f1c4e-0e3c-4d1b-9c3f-5b7a52f1e0aa 3e1f2a6b-9f15-4a39-9f6c-9f2f3a1d4b77"]
    );
    assert!(!text.contains("a=rid") && !text.contains("a=simulcast") && !text.contains("P2uYro0"));

    // The callee's answer goes to the caller. Both sides have the same numbers.
    let remote = browser.parse(&text, SdpType::Offer).unwrap();
    let mut options = echo(&remote.description);
    options.video.only(CodecName::Vp9);
    let answer = Description::answer(&remote.description, &options);
    browser.set_remote_offer(remote).unwrap();
    let (text, _) = browser.local_answer(answer).unwrap();
    let remote = callee.parse(&text, SdpType::Answer).unwrap();
    let description = remote.description.clone();
    let to_callee = callee.accept_answer(remote).unwrap();
    let (text, to_caller) = caller.local_answer(description).unwrap();
    assert_eq!(lines(&text, 2, "a=simulcast"), ["a=simulcast:recv h;m;l"]);
    let payload = |media: &portunus_sdp::NegotiatedMedia| {
        let payload = &media.payloads[0];
        (payload.pt, payload.codec, payload.rtx)
    };
    assert_eq!(
        payload(&to_callee.media[1]),
        (Pt(98), Codec::Vp9, Some(Pt(99)))
    );
    assert_eq!(
        payload(&to_caller.media[1]),
        (Pt(98), Codec::Vp9, Some(Pt(99)))
    );
    assert_eq!(to_callee.media[1].extensions, to_caller.media[1].extensions);
    assert_eq!(
        (to_caller.media[1].rids.len(), to_callee.media[1].rids.len()),
        (3, 0)
    );
    assert_eq!(direction(&text, 2), "a=sendrecv");
}
