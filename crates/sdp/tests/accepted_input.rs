//! Accepted and refused input, with the texts of errors.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

mod support;

use portunus_rtp::Pt;
use portunus_sdp::{Direction, MediaSlot, RemoteDescription, SdpError, SdpType, Setup};
use support::{head, media_section, offer, one_line, parse};

const AUDIO: &str = "audio 9 UDP/TLS/RTP/SAVPF 111";
const OPUS: &str = "rtpmap:111 opus/48000/2";

fn refused(text: &str) -> SdpError {
    parse(text).unwrap_err()
}

#[test]
fn the_first_characters_have_to_be_those_of_sdp() {
    assert_eq!(
        refused("garbage").to_string(),
        "Invalid SDP (doesn't start with v=)"
    );
}

#[test]
fn line_feeds_alone_and_blank_lines_are_fine() {
    let text = offer("chromium").replace("\r\n", "\n\n");
    assert_eq!(parse(&text).unwrap(), parse(&offer("chromium")).unwrap());
}

#[test]
fn other_media_types_are_refused() {
    let text = one_line("message 9 TCP/MSRP *", &[]);
    assert_eq!(
        refused(&text).to_string(),
        "Invalid m= line: m=message 9 TCP/MSRP *"
    );
}

/// Returns the mids in the parsed `text`.
fn mids(text: &str) -> Vec<String> {
    let media = parse(text).unwrap().description.media;
    media.iter().map(|media| media.mid.to_string()).collect()
}

#[test]
fn a_line_without_an_identification_gets_one_that_no_other_has() {
    let without = |media: &str| format!("m={media}\r\na={OPUS}\r\n");
    let with = |mid| media_section(AUDIO, mid, &[OPUS]);
    let rejected = "video 0 UDP/TLS/RTP/SAVPF 96";
    for (lines, expected) in [
        (vec![without(AUDIO)], vec!["0"]),
        (vec![with("a"), without(rejected)], vec!["a", "1"]),
        (vec![without(rejected), with("a")], vec!["0", "a"]),
        (vec![without(AUDIO), without(AUDIO)], vec!["0", "1"]),
        (vec![without(AUDIO), with("0")], vec!["2", "0"]),
        (
            vec![without(AUDIO), without(AUDIO), with("1"), with("3")],
            vec!["0", "4", "1", "3"],
        ),
    ] {
        assert_eq!(mids(&(head() + &lines.concat())), expected);
    }
}

#[test]
fn a_line_keeps_the_identification_that_it_was_given() {
    let line = format!("m={AUDIO}\r\na={OPUS}\r\n");
    let mut session = support::session();
    let (answer, negotiated) = support::answer_with(&mut session, &(head() + &line), |_| {});
    assert!(answer.contains("a=group:BUNDLE 0\r\n"), "{answer}");
    assert_eq!(support::lines(&answer, 1, "a=mid"), ["a=mid:0"]);
    let given = negotiated.media[0].mid;
    let text = head() + &line + &media_section(AUDIO, "1", &[OPUS]);
    let (answer, negotiated) = support::answer_with(&mut session, &text, |_| {});
    assert_eq!(negotiated.media[0].mid, given);
    assert!(answer.contains("a=group:BUNDLE 0 1\r\n"), "{answer}");
}

#[test]
fn a_malformed_identification_is_refused() {
    for mid in ["mid", "mid: ", "mid:a b", "mid:ä"] {
        let text = format!("{}m={AUDIO}\r\na={mid}\r\na={OPUS}\r\n", head());
        assert_eq!(refused(&text), SdpError::MalformedMid(0), "{mid}");
        assert_eq!(refused(&text).to_string(), "Error processing SDP");
    }
}

#[test]
fn a_long_identification_is_refused_without_a_word() {
    let text = head() + &media_section(AUDIO, "12345678901234567", &[OPUS]);
    assert_eq!(refused(&text), SdpError::LongMid);
    assert_eq!(refused(&text).to_string(), "");
    let sixteen = head() + &media_section(AUDIO, "1234567890123456", &[OPUS]);
    assert!(parse(&sixteen).is_ok());
    let data = "application 9 UDP/DTLS/SCTP webrtc-datachannel";
    let text = head() + &media_section(data, "12345678901234567", &[]);
    assert_eq!(refused(&text).to_string(), "Error processing SDP");
}

#[test]
fn an_identification_serves_one_line_only() {
    let text = head() + &media_section(AUDIO, "a", &[OPUS]).repeat(2);
    assert!(matches!(refused(&text), SdpError::DuplicateMid(_)));
}

#[test]
fn a_changed_identification_is_ignored_while_the_line_is_in_use() {
    let text = one_line(AUDIO, &[OPUS]);
    let mid = portunus_rtp::Mid::new("old").unwrap();
    let parse = |active| {
        let slots = [MediaSlot { mid, active }];
        let remote = RemoteDescription::parse(&text, SdpType::Offer, &slots).unwrap();
        remote.description.media.first().unwrap().mid.to_string()
    };
    assert_eq!(parse(true), "old");
    assert_eq!(parse(false), "0");
}

#[test]
fn port_zero_disables_a_line_unless_it_is_bundle_only_or_the_first_with_a_transport() {
    let rejected = |text: &str| {
        let remote = parse(text).unwrap();
        remote
            .description
            .media
            .iter()
            .map(|media| media.rejected)
            .collect::<Vec<_>>()
    };
    let zero = "video 0 UDP/TLS/RTP/SAVPF 96";
    let first = head() + &media_section(AUDIO, "0", &[OPUS]);
    assert_eq!(
        rejected(&(first.clone() + &media_section(zero, "1", &[]))),
        [false, true]
    );
    let bundled = first + &media_section(zero, "1", &["bundle-only"]);
    assert_eq!(rejected(&bundled), [false, false]);
    assert_eq!(rejected(&one_line(zero, &["ice-ufrag:abcd"])), [false]);
}

#[test]
fn the_transport_is_that_of_the_first_line_in_use_or_of_the_session() {
    let remote = parse(&offer("firefox")).unwrap();
    assert_eq!(remote.transport.ice.unwrap().ufrag, "b9a40e3e");
    assert_eq!(remote.transport.fingerprints.len(), 1);
    assert_eq!(remote.transport.setup, Some(Setup::ActPass));

    let remote = parse(&one_line(AUDIO, &[OPUS, "ice-ufrag:mine", "setup:active"])).unwrap();
    assert_eq!(remote.transport.ice.unwrap().ufrag, "mine");
    assert_eq!(remote.transport.setup, Some(Setup::Active));
}

#[test]
fn a_transport_is_needed() {
    let without = |what: &str| -> String {
        let text = offer("chromium");
        text.split_inclusive("\r\n")
            .filter(|line| !line.starts_with(what))
            .collect()
    };
    for (what, error) in [
        ("a=ice-ufrag", SdpError::NoIceCredentials),
        ("a=ice-pwd", SdpError::NoIceCredentials),
        ("a=fingerprint", SdpError::NoFingerprint),
    ] {
        assert_eq!(refused(&without(what)), error);
        assert_eq!(error.to_string(), "Error processing SDP");
    }
}

#[test]
fn a_transport_on_a_later_line_only_is_none() {
    let text = head().replace("a=ice-ufrag:peer\r\n", "")
        + &media_section(AUDIO, "0", &[OPUS])
        + &media_section("video 9 UDP/TLS/RTP/SAVPF 96", "1", &["ice-ufrag:late"]);
    assert_eq!(refused(&text), SdpError::NoIceCredentials);
}

#[test]
fn fingerprints_are_sha_256_or_sha_1_of_the_right_length() {
    let with = |fingerprint: &str| {
        let text = one_line(AUDIO, &[OPUS]);
        let start = text.find("a=fingerprint").unwrap();
        let end = text.find("a=setup").unwrap();
        parse(&format!(
            "{}a=fingerprint:{fingerprint}\r\n{}",
            &text[..start],
            &text[end..]
        ))
    };
    let digest = |bytes: usize| vec!["0a"; bytes].join(":");
    assert!(with(&format!("sha-256 {}", digest(32))).is_ok());
    assert!(with(&format!("SHA-1 {}", digest(20))).is_ok());
    for bad in [
        "sha-256 0a",
        "sha-512 0a",
        "sha-256",
        &format!("sha-256 {}x", digest(32)),
    ] {
        assert_eq!(with(bad).unwrap_err(), SdpError::NoFingerprint, "{bad}");
    }
}

#[test]
fn msid_needs_two_tokens() {
    let text = one_line(AUDIO, &[OPUS, "msid:lonely"]);
    assert_eq!(refused(&text), SdpError::InvalidMsid(0));
    assert_eq!(refused(&text).to_string(), "Error processing SDP");
    let remote = parse(&one_line(AUDIO, &[OPUS, "msid:- track"])).unwrap();
    let msid = remote
        .description
        .media
        .first()
        .unwrap()
        .msid
        .clone()
        .unwrap();
    assert_eq!((msid.stream.as_str(), msid.track.as_str()), ("-", "track"));
}

#[test]
fn candidates_are_those_of_component_one_on_the_first_two_lines() {
    let candidate =
        |n: u8, component: u8| format!("candidate:{n} {component} udp 1 192.0.2.{n} 1000 typ host");
    let section =
        |mid: &str, n, component| media_section(AUDIO, mid, &[OPUS, &candidate(n, component)]);
    let text = head() + &section("0", 1, 1) + &section("1", 2, 1) + &section("2", 3, 1);
    assert_eq!(
        parse(&text).unwrap().transport.candidates,
        [candidate(1, 1), candidate(2, 1)]
    );
    let text = head() + &section("0", 1, 2) + &section("1", 1, 1);
    assert_eq!(
        parse(&text).unwrap().transport.candidates,
        [candidate(1, 1)]
    );
}

#[test]
fn without_a_direction_both_send() {
    let direction = |attributes: &[&str]| {
        let remote = parse(&one_line(AUDIO, attributes)).unwrap();
        remote.description.media.first().unwrap().direction
    };
    assert_eq!(direction(&[OPUS]), Direction::SendRecv);
    assert_eq!(direction(&[OPUS, "recvonly"]), Direction::RecvOnly);
}

#[test]
fn a_number_that_means_a_codec_and_its_repair_is_dropped() {
    let video = "video 9 UDP/TLS/RTP/SAVPF 96 97 98 99";
    let maps = [
        "rtpmap:96 VP8/90000",
        "rtpmap:97 rtx/90000",
        "fmtp:97 apt=96",
        "rtpmap:98 VP9/90000",
        "rtpmap:99 rtx/90000",
        "fmtp:99 apt=98",
    ];
    let text = head()
        + &media_section(
            "audio 9 UDP/TLS/RTP/SAVPF 97",
            "0",
            &["rtpmap:97 opus/48000/2"],
        )
        + &media_section(video, "1", &maps);
    let remote = parse(&text).unwrap();
    assert!(remote.description.media.first().unwrap().codecs.is_empty());
    assert_eq!(remote.media.get(1).unwrap().rtx, [(Pt(98), Pt(99))]);
}

#[test]
fn plugins_see_nothing_of_transport_repair_and_layers() {
    for name in [
        "chromium",
        "chromium_simulcast",
        "chromium_sim_group",
        "firefox",
        "gstreamer",
    ] {
        let remote = parse(&offer(name)).unwrap();
        let description = &remote.description;
        let names: Vec<&str> = description
            .media
            .iter()
            .flat_map(|media| &media.attributes)
            .chain(&description.attributes)
            .map(|attribute| attribute.name.as_str())
            .collect();
        assert!(names.iter().all(|name| *name == "framerate"), "{names:?}");
        let codecs = description.media.iter().flat_map(|media| &media.codecs);
        let names: Vec<String> = codecs
            .map(|codec| codec.name.to_ascii_lowercase())
            .collect();
        assert!(
            !names
                .iter()
                .any(|name| name == "rtx" || name.contains("fec")),
            "{names:?}"
        );
        let mut video = description.active(portunus_sdp::Kind::Video);
        assert!(video.all(|media| media.codecs.iter().all(|codec| codec.name != "red")));
    }
}

#[test]
fn encrypted_header_extensions_are_removed() {
    let encrypted =
        "extmap:4 urn:ietf:params:rtp-hdrext:encrypt urn:ietf:params:rtp-hdrext:sdes:mid";
    let remote = parse(&one_line(AUDIO, &[OPUS, encrypted])).unwrap();
    assert!(
        remote
            .description
            .media
            .first()
            .unwrap()
            .extensions
            .is_empty()
    );
}

#[test]
fn feedback_for_all_codecs_is_bounded() {
    let numbers: Vec<u8> = (0..55).collect();
    let formats: Vec<String> = numbers.iter().map(u8::to_string).collect();
    let line = format!("audio 9 RTP/SAVPF {}", formats.join(" "));
    let maps = numbers.iter().map(|pt| format!("rtpmap:{pt} x/8000"));
    // Each of them applies to all codecs.
    let feedback = (0..5_000).map(|n| format!("rtcp-fb:* {n}"));
    let all: Vec<String> = maps.chain(feedback).collect();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    let parsed = parse(&one_line(&line, &all)).unwrap();
    let codecs = &parsed.description.media[0].codecs;
    assert_eq!(codecs.len(), 55);
    let lines: usize = codecs.iter().map(|codec| codec.feedback.len()).sum();
    assert!(lines <= 55 * 32, "{lines} lines of feedback");
}
