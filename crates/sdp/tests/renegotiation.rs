//! Later exchanges: adding, removing and recycling m-lines, restarts, crossing offers.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

mod support;

use portunus_sdp::{
    Description, Direction, DtlsRole, Kind, MediaOffer, OfferOptions, SdpError, SdpType, Session,
    Signaling,
};
use support::{answer_with, credentials, direction, head, lines, media_section, session};

const OPUS: &str = "rtpmap:111 opus/48000/2";
const VP8: &str = "rtpmap:96 VP8/90000";

fn audio(mid: &str, attributes: &[&str]) -> String {
    media_section(
        "audio 9 UDP/TLS/RTP/SAVPF 111",
        mid,
        &[&[OPUS], attributes].concat(),
    )
}

fn video(mid: &str, attributes: &[&str]) -> String {
    media_section(
        "video 9 UDP/TLS/RTP/SAVPF 96",
        mid,
        &[&[VP8], attributes].concat(),
    )
}

fn stopped(mid: &str) -> String {
    media_section("video 0 UDP/TLS/RTP/SAVPF 96", mid, &[VP8, "inactive"])
}

fn exchange(session: &mut Session, media: &str) -> (String, portunus_sdp::Negotiated) {
    answer_with(session, &(head() + media), |_| {})
}

#[test]
fn a_line_is_added() {
    let mut session = session();
    let (_, first) = exchange(&mut session, &audio("0", &[]));
    let (text, second) = exchange(&mut session, &(audio("0", &[]) + &video("1", &[])));
    assert_eq!(second.media.len(), 2);
    assert_eq!(second.media[0], first.media[0]);
    assert_ne!(second.media[1].local_ssrc, second.media[0].local_ssrc);
    assert_eq!(lines(&text, 0, "a=group"), ["a=group:BUNDLE 0 1"]);
    assert_eq!(lines(&text, 1, "a=candidate").len(), 1);
}

#[test]
fn a_line_is_removed_and_its_place_is_used_again() {
    let mut session = session();
    let (_, first) = exchange(&mut session, &(audio("0", &[]) + &video("1", &[])));
    let (text, second) = exchange(&mut session, &(audio("0", &[]) + &stopped("1")));
    assert!(second.media[1].disabled);
    assert_eq!(lines(&text, 2, "m="), ["m=video 0 UDP/TLS/RTP/SAVPF 0"]);
    assert_eq!(lines(&text, 2, "a=mid"), ["a=mid:1"]);
    let (text, third) = exchange(&mut session, &(audio("0", &[]) + &video("2", &[])));
    assert!(!third.media[1].disabled);
    assert_eq!(lines(&text, 2, "a=mid"), ["a=mid:2"]);
    assert_ne!(third.media[1].local_ssrc, first.media[1].local_ssrc);
}

#[test]
fn a_removed_first_line_takes_no_transport_with_it() {
    let mut session = session();
    exchange(&mut session, &(video("0", &[]) + &audio("1", &[])));
    let (text, negotiated) = exchange(&mut session, &(stopped("0") + &audio("1", &[])));
    assert!(negotiated.media[0].disabled && !negotiated.media[1].disabled);
    assert_eq!(lines(&text, 0, "a=group"), ["a=group:BUNDLE 1"]);
}

#[test]
fn all_lines_can_be_removed() {
    let mut session = session();
    let (_, first) = exchange(&mut session, &video("0", &[]));
    let text = "v=0\r\no=- 52 3 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\n".to_owned() + &stopped("0");
    let (text, second) = answer_with(&mut session, &text, |_| {});
    assert!(second.media[0].disabled);
    assert_eq!(second.transport.ice, first.transport.ice);
    assert!(!text.contains("BUNDLE"));
}

#[test]
fn a_line_stays_in_its_place_when_it_becomes_inactive() {
    let mut session = session();
    exchange(
        &mut session,
        &(audio("0", &[]) + &video("1", &["sendrecv"])),
    );
    let (text, negotiated) = exchange(
        &mut session,
        &(audio("0", &[]) + &video("1", &["inactive"])),
    );
    assert_eq!(direction(&text, 2), "a=inactive");
    assert!(!negotiated.media[1].disabled && !negotiated.media[1].recv);
}

#[test]
fn an_offer_cannot_drop_lines() {
    let mut session = session();
    exchange(&mut session, &(audio("0", &[]) + &video("1", &[])));
    let offer = session
        .parse(&(head() + &audio("0", &[])), SdpType::Offer)
        .unwrap();
    assert_eq!(
        session.set_remote_offer(offer),
        Err(SdpError::MediaMismatch)
    );
}

#[test]
fn new_ssrcs_are_read() {
    let mut session = session();
    let (_, first) = exchange(&mut session, &audio("0", &["ssrc:1 cname:a"]));
    let (_, second) = exchange(&mut session, &audio("0", &["ssrc:2 cname:a"]));
    assert_eq!(first.media[0].remote_ssrcs[0].ssrc.0, 1);
    assert_eq!(second.media[0].remote_ssrcs[0].ssrc.0, 2);
    assert_eq!(first.media[0].local_ssrc, second.media[0].local_ssrc);
}

#[test]
fn the_dtls_role_stays() {
    let mut session = session();
    let (text, first) = exchange(&mut session, &audio("0", &["setup:passive"]));
    assert_eq!(lines(&text, 1, "a=setup"), ["a=setup:active"]);
    let (text, second) = exchange(&mut session, &audio("0", &["setup:actpass"]));
    assert_eq!(lines(&text, 1, "a=setup"), ["a=setup:active"]);
    assert_eq!(first.transport.dtls_role, DtlsRole::Client);
    assert_eq!(second.transport.dtls_role, DtlsRole::Client);
}

#[test]
fn a_change_of_credentials_restarts_ice() {
    let mut session = session();
    let (_, first) = exchange(&mut session, &audio("0", &[]));
    let same = session
        .parse(&(head() + &audio("0", &[])), SdpType::Offer)
        .unwrap();
    assert_eq!(session.set_remote_offer(same), Ok(false));

    let text = (head() + &audio("0", &[])).replace("ice-ufrag:peer", "ice-ufrag:anew");
    let offer = session.parse(&text, SdpType::Offer).unwrap();
    let answer = Description::answer(&offer.description, &support::echo(&offer.description));
    assert_eq!(session.set_remote_offer(offer), Ok(true));
    session.set_local_ice(credentials("next"), Vec::new());
    let (text, second) = session.local_answer(answer).unwrap();
    assert_eq!(lines(&text, 1, "a=ice-ufrag"), ["a=ice-ufrag:next"]);
    assert!(lines(&text, 1, "a=candidate").is_empty());
    assert_eq!(second.transport.ice.ufrag, "anew");
    assert_eq!(second.transport.dtls_role, first.transport.dtls_role);
}

#[test]
fn the_server_offers_after_the_client_did() {
    let mut session = session();
    exchange(&mut session, &audio("a", &[]));
    let offered = session.slots(SdpType::Offer);
    let mut video = MediaOffer::new(Kind::Video, Direction::SendOnly);
    video.add_codec(portunus_sdp::CodecName::Vp8, None, None);
    let mut audio_line = MediaOffer::new(Kind::Audio, Direction::SendRecv);
    audio_line.add_codec(portunus_sdp::CodecName::Opus, None, None);
    audio_line.mid = Some(offered[0].mid);
    let options = OfferOptions {
        media: vec![audio_line, video],
        ..Default::default()
    };
    let text = session.local_offer(Description::offer(options)).unwrap();
    assert_eq!(lines(&text, 0, "a=group"), ["a=group:BUNDLE a 1"]);
    assert_eq!(lines(&text, 1, "a=setup"), ["a=setup:actpass"]);
    let answer = head().replace("actpass", "active")
        + &audio("a", &[])
        + &media_section("video 9 UDP/TLS/RTP/SAVPF 96", "1", &[VP8, "recvonly"]);
    let answer = session.parse(&answer, SdpType::Answer).unwrap();
    let negotiated = session.accept_answer(answer).unwrap();
    assert_eq!(negotiated.transport.dtls_role, DtlsRole::Server);
    assert!(negotiated.media[1].send && !negotiated.media[1].recv);
}

/// Returns an offer of `count` audio m-lines.
fn audio_lines(count: usize) -> Description {
    let mut line = MediaOffer::new(Kind::Audio, Direction::SendRecv);
    line.add_codec(portunus_sdp::CodecName::Opus, None, None);
    Description::offer(OfferOptions {
        media: vec![line; count],
        ..Default::default()
    })
}

#[test]
fn lines_that_have_a_place_cost_no_new_ssrcs() {
    let mut at_once = session();
    let expected = at_once.local_offer(audio_lines(2)).unwrap();
    let mut one_by_one = session();
    one_by_one.local_offer(audio_lines(1)).unwrap();
    let answer = head().replace("actpass", "active") + &audio("0", &[]);
    let answer = one_by_one.parse(&answer, SdpType::Answer).unwrap();
    one_by_one.accept_answer(answer).unwrap();
    let text = one_by_one.local_offer(audio_lines(2)).unwrap();
    for index in [1, 2] {
        let ssrc = lines(&text, index, "a=ssrc:");
        assert!(!ssrc.is_empty(), "{text}");
        assert_eq!(ssrc, lines(&expected, index, "a=ssrc:"));
    }
}

#[test]
fn lines_in_use_have_identifications_of_their_own() {
    let mut media = audio_lines(3);
    media.media[2].mid = media.media[0].mid;
    let refused = session().local_offer(media.clone());
    assert_eq!(refused, Err(SdpError::LocalMismatch(2)));
    media.media[0] = media.media[0].refused();
    assert!(session().local_offer(media).is_ok());
}

#[test]
fn an_answer_without_identifications_or_setup_is_understood() {
    let mut session = session();
    let mut audio_line = MediaOffer::new(Kind::Audio, Direction::SendRecv);
    audio_line.add_codec(portunus_sdp::CodecName::Opus, None, None);
    let options = OfferOptions {
        media: vec![audio_line],
        ..Default::default()
    };
    session.local_offer(Description::offer(options)).unwrap();
    let answer = (head() + &audio("0", &[]))
        .replace("a=mid:0\r\n", "")
        .replace("a=setup:actpass\r\n", "");
    let answer = session.parse(&answer, SdpType::Answer).unwrap();
    let negotiated = session.accept_answer(answer).unwrap();
    assert_eq!(negotiated.media[0].mid.as_str(), "0");
    assert_eq!(negotiated.transport.dtls_role, DtlsRole::Server);
}

#[test]
fn crossing_offers_are_settled_for_the_client() {
    let mut session = session();
    exchange(&mut session, &audio("0", &[]));
    let mut lines = vec![MediaOffer::new(Kind::Audio, Direction::SendRecv)];
    lines[0].add_codec(portunus_sdp::CodecName::Opus, None, None);
    lines.push(MediaOffer::new(Kind::Data, Direction::SendRecv));
    let options = OfferOptions {
        media: lines,
        ..Default::default()
    };
    session
        .local_offer(Description::offer(options.clone()))
        .unwrap();
    let (_, negotiated) = exchange(&mut session, &(audio("0", &[]) + &video("v", &[])));
    assert_eq!(negotiated.media[1].mid.as_str(), "v");
    assert_eq!(session.signaling(), Signaling::Stable);

    // In the other order, the client's offer has to be answered first.
    let offer = session.parse(
        &(head() + &audio("0", &[]) + &video("v", &[])),
        SdpType::Offer,
    );
    session.set_remote_offer(offer.unwrap()).unwrap();
    let error = session
        .local_offer(Description::offer(options))
        .unwrap_err();
    assert_eq!(error, SdpError::OfferPending);
    assert_eq!(session.signaling(), Signaling::HaveRemoteOffer);
}

#[test]
fn there_has_to_be_an_offer_to_answer() {
    assert_eq!(
        session().local_answer(Description::default()),
        Err(SdpError::NothingToAnswer)
    );
}
