//! The lines of answers, their directions and header extensions.

use portunus_sdp::{
    AnswerOptions, CodecName, Description, Direction, DtlsRole, Kind, LocalTransport, SdpType,
    Session,
};

use crate::support::{
    answer, answer_with, direction, head, lines, media_section, offer, one_line, section, session,
    transport,
};
use crate::{AUDIO, DATA, OPUS, VIDEO, VP8};

#[test]
fn directions_are_those_of_the_table() {
    use Direction::{Inactive, RecvOnly, SendOnly, SendRecv};
    let table = [
        (SendRecv, [SendRecv, SendOnly, RecvOnly, Inactive]),
        (SendOnly, [RecvOnly, Inactive, RecvOnly, Inactive]),
        (RecvOnly, [SendOnly, SendOnly, Inactive, Inactive]),
        (Inactive, [Inactive; 4]),
    ];
    for (offered, row) in table {
        for (wanted, expected) in [SendRecv, SendOnly, RecvOnly, Inactive]
            .into_iter()
            .zip(row)
        {
            let text = one_line(AUDIO, &[OPUS, offered.as_str()]);
            let (text, negotiated) = answer_with(&mut session(), &text, |options| {
                options.audio.direction = wanted;
            });
            assert_eq!(
                direction(&text, 1),
                format!("a={expected}"),
                "{offered} and {wanted}"
            );
            let media = negotiated.media.first().unwrap();
            assert_eq!(Direction::new(media.send, media.recv), expected);
            // An inactive line is not rejected.
            assert!(!media.disabled);
            assert_eq!(lines(&text, 1, "m=audio 9").len(), 1);
            assert_eq!(lines(&text, 0, "a=group"), ["a=group:BUNDLE 0"]);
            assert_eq!(lines(&text, 1, "a=msid").is_empty(), expected == Inactive);
            assert_eq!(lines(&text, 1, "a=ssrc:").len(), 1);
        }
    }
}

#[test]
fn a_rejected_line_has_nothing_but_its_place() {
    let text = head()
        + &media_section(AUDIO, "a", &[OPUS])
        + &media_section(VIDEO, "v", &[VP8])
        + &media_section(DATA, "d", &[]);
    let (text, negotiated) = answer_with(&mut session(), &text, |options| {
        options.video.codecs.clear();
        options.data = false;
    });
    let c = "c=IN IP4 203.0.113.5";
    let video = ["m=video 0 UDP/TLS/RTP/SAVPF 0", c, "a=inactive", "a=mid:v"];
    assert_eq!(section(&text, 2), video);
    let data = [
        "m=application 0 UDP/DTLS/SCTP webrtc-datachannel",
        c,
        "a=inactive",
        "a=mid:d",
    ];
    assert_eq!(section(&text, 3), data);
    assert_eq!(lines(&text, 0, "a=group"), ["a=group:BUNDLE a"]);
    let disabled: Vec<bool> = negotiated
        .media
        .iter()
        .map(|media| media.disabled)
        .collect();
    assert_eq!(disabled, [false, true, true]);
}

#[test]
fn only_the_first_data_line_is_used() {
    let text = head() + &media_section(DATA, "0", &[]) + &media_section(DATA, "1", &[]);
    let (_, negotiated) = answer(&text);
    let disabled: Vec<bool> = negotiated
        .media
        .iter()
        .map(|media| media.disabled)
        .collect();
    assert_eq!(disabled, [false, true]);
}

#[test]
fn the_dtls_role_is_server_unless_the_peer_waits() {
    for (offered, line, role) in [
        ("actpass", "a=setup:passive", DtlsRole::Server),
        ("active", "a=setup:passive", DtlsRole::Server),
        ("passive", "a=setup:active", DtlsRole::Client),
    ] {
        let text = one_line(AUDIO, &[OPUS, &format!("setup:{offered}")]);
        let (text, negotiated) = answer(&text);
        assert_eq!(lines(&text, 1, "a=setup"), [line]);
        assert_eq!(negotiated.transport.dtls_role, role);
    }
}

#[test]
fn session_lines_follow_settings() {
    let local = LocalTransport {
        ice_lite: true,
        full_trickle: true,
        address: "2001:db8::5".parse().unwrap(),
        ..transport()
    };
    let (text, _) = answer_with(&mut Session::new(local, 1), &offer("chromium"), |options| {
        options.name = Some("Echo".to_owned());
    });
    assert!(
        text.starts_with(
            "v=0\r\no=- 4611731400430051336 2 IN IP6 2001:db8::5\r\ns=Echo\r\nt=0 0\r\n"
        )
    );
    assert_eq!(lines(&text, 0, "a=ice-lite").len(), 1);
    assert_eq!(lines(&text, 1, "c="), ["c=IN IP6 2001:db8::5"]);
    assert!(!text.contains("candidate"));
}

#[test]
fn extension_numbers_stay_and_directions_are_mirrored() {
    let extensions = [
        "extmap:4/sendonly urn:ietf:params:rtp-hdrext:sdes:mid",
        "extmap:17/recvonly urn:ietf:params:rtp-hdrext:ssrc-audio-level",
        "extmap:9 urn:unknown",
    ];
    let text = one_line(AUDIO, &[&[OPUS], &extensions[..]].concat());
    let (text, _) = answer(&text);
    let expected = [
        "a=extmap:4/recvonly urn:ietf:params:rtp-hdrext:sdes:mid",
        "a=extmap:17/sendonly urn:ietf:params:rtp-hdrext:ssrc-audio-level",
    ];
    assert_eq!(lines(&text, 1, "a=extmap"), expected);
}

#[test]
fn the_dependency_descriptor_is_for_av1_and_vp9() {
    for (codec, expected) in [
        (CodecName::Vp8, 0),
        (CodecName::Vp9, 1),
        (CodecName::Av1, 1),
    ] {
        let (text, _) = answer_with(&mut session(), &offer("chromium_simulcast"), |options| {
            options.video.only(codec);
        });
        assert_eq!(lines(&text, 2, "a=extmap:12 ").len(), expected, "{codec:?}");
    }
}

#[test]
fn an_answer_can_lack_lines_but_not_change_their_kind() {
    let mut session = session();
    let remote = session.parse(&offer("chromium"), SdpType::Offer).unwrap();
    let mut answer = Description::answer(&remote.description, &AnswerOptions::default());
    session.set_remote_offer(remote).unwrap();
    answer.media.first_mut().unwrap().kind = Kind::Video;
    assert!(session.local_answer(answer.clone()).is_err());
    answer.media.clear();
    let (text, negotiated) = session.local_answer(answer).unwrap();
    assert_eq!(text.matches("m=").count(), 3);
    assert!(negotiated.media.iter().all(|media| media.disabled));
}
