//! What the server answers: lines, directions, codecs, simulcast, header extensions.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic
)]

mod support;

use portunus_rtp::{Pt, Rid};
use portunus_sdp::{
    AnswerOptions, CodecName, Description, Direction, DtlsRole, Kind, LocalTransport, RidOrder,
    SdpType, Session, SimulcastForm,
};
use support::{
    answer, answer_with, direction, head, lines, media_section, offer, one_line, parse, section,
    session, transport,
};

const AUDIO: &str = "audio 9 UDP/TLS/RTP/SAVPF 111 0 8 9";
const OPUS: &str = "rtpmap:111 opus/48000/2";
const VIDEO: &str = "video 9 UDP/TLS/RTP/SAVPF 96 97 98";
const VP8: &str = "rtpmap:96 VP8/90000";
const DATA: &str = "application 9 UDP/DTLS/SCTP webrtc-datachannel";

/// RFC 3551 section 6, tables 4 and 5, as far as the server knows the codecs.
#[test]
fn static_payload_types_need_no_rtpmap() {
    for (pt, codec, map) in [
        (0, CodecName::Pcmu, "PCMU/8000"),
        (8, CodecName::Pcma, "PCMA/8000"),
        (9, CodecName::G722, "G722/8000"),
    ] {
        for numbers in [format!("{pt}"), format!("111 {pt} 13")] {
            let line = format!("audio 9 UDP/TLS/RTP/SAVPF {numbers}");
            let offered = one_line(&line, &[OPUS, "sendrecv"]);
            let (text, negotiated) = answer_with(&mut session(), &offered, |options| {
                options.audio.only(codec);
            });
            assert_eq!(
                lines(&text, 1, "a=rtpmap"),
                [format!("a=rtpmap:{pt} {map}")],
                "{numbers}"
            );
            let payload = &negotiated.media[0].payloads[0];
            assert_eq!((payload.pt, payload.codec), (Pt(pt), codec.codec()));
        }
        // Numbers of others, and of audio on a line of video, mean nothing.
        let offered = one_line(&format!("video 9 UDP/TLS/RTP/SAVPF 26 {pt}"), &["sendrecv"]);
        let (_, negotiated) = answer(&offered);
        assert!(negotiated.media[0].disabled);
    }
}

#[test]
fn channels_that_a_codec_does_not_usually_have_are_told() {
    let told = |map: &str| {
        let map = format!("rtpmap:111 {map}");
        let remote = parse(&one_line("audio 9 UDP/TLS/RTP/SAVPF 111", &[&map])).unwrap();
        remote.description.media[0].codecs[0].unusual_channels()
    };
    for (map, channels) in [
        ("opus/48000/2", None),
        ("opus/48000", None),
        ("multiopus/48000/6", None),
        ("multiopus/48000/8", Some(8)),
        ("L16/48000", None),
        ("L16/48000/1", None),
        ("L16/48000/2", Some(2)),
        ("L16/16000/2", Some(2)),
        ("speex/16000/2", None),
    ] {
        assert_eq!(told(map), channels, "{map}");
    }
}

/// A number of channels that a codec does not have makes another codec of it (RFC 8866 section 6.6).
#[test]
fn channels_count_when_codecs_are_compared() {
    let taken = |maps: &[(u8, &str)], channels: Option<u8>| {
        let numbers: Vec<String> = maps.iter().map(|(pt, _)| pt.to_string()).collect();
        let line = format!("audio 9 UDP/TLS/RTP/SAVPF {}", numbers.join(" "));
        let maps: Vec<String> = maps
            .iter()
            .map(|(pt, map)| format!("rtpmap:{pt} {map}"))
            .collect();
        let maps: Vec<&str> = maps.iter().map(String::as_str).collect();
        let (text, negotiated) = answer_with(&mut session(), &one_line(&line, &maps), |options| {
            options.audio.codecs = vec![CodecName::Opus, CodecName::Pcma, CodecName::L16Wide];
            options.audio.channels = channels;
        });
        let payload = negotiated.media[0]
            .payloads
            .first()
            .map(|payload| payload.pt.0);
        assert_eq!(payload.is_some(), text.contains("a=rtpmap:"), "{text}");
        payload
    };
    for (maps, channels, pt) in [
        (vec![(96, "PCMA/8000/2"), (8, "PCMA/8000")], None, Some(8)),
        (
            vec![(96, "PCMA/8000/2"), (97, "PCMA/8000/1")],
            None,
            Some(97),
        ),
        (vec![(96, "PCMA/8000/2")], None, None),
        (vec![(96, "PCMA/8000/300")], None, None),
        (
            vec![(96, "opus/48000/6"), (97, "opus/48000/2")],
            None,
            Some(97),
        ),
        (vec![(96, "opus/48000")], None, Some(96)),
        (vec![(96, "opus/48000/1")], Some(2), Some(96)),
        (vec![(96, "L16/48000/2"), (97, "L16/48000")], None, Some(96)),
        (
            vec![(96, "L16/48000/2"), (97, "L16/48000")],
            Some(1),
            Some(97),
        ),
        (
            vec![(96, "L16/48000"), (97, "L16/48000/2")],
            Some(2),
            Some(97),
        ),
        (vec![(96, "L16/48000")], Some(2), None),
    ] {
        assert_eq!(taken(&maps, channels), pt, "{maps:?} {channels:?}");
    }
}

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
            // Inactive is not rejected.
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
fn a_line_without_a_known_codec_is_rejected() {
    let text = head()
        + &media_section(
            "audio 9 UDP/TLS/RTP/SAVPF 100",
            "0",
            &["rtpmap:100 speex/16000"],
        )
        + &media_section(VIDEO, "1", &[VP8]);
    let (text, _) = answer(&text);
    assert_eq!(lines(&text, 1, "m="), ["m=audio 0 UDP/TLS/RTP/SAVPF 0"]);
    assert_eq!(lines(&text, 2, "m="), ["m=video 9 UDP/TLS/RTP/SAVPF 96"]);
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
fn the_order_of_audio_codecs_is_the_servers() {
    let all = "audio 1 UDP/TLS/RTP/SAVPF 9 8 0 100 101 102 103 104 111";
    let maps = [
        "rtpmap:100 L16/16000",
        "rtpmap:101 l16/48000",
        "rtpmap:102 multiopus/48000/6",
        "rtpmap:103 ISAC/16000",
        "rtpmap:104 isac/32000",
        "rtpmap:111 OPUS/48000/2",
    ];
    let mut text = one_line(all, &maps);
    // Each codec that was chosen is taken out of the next offer.
    for expected in [111, 0, 8, 9, 104, 103, 102, 101, 100] {
        let (_, negotiated) = answer(&text);
        let chosen = negotiated
            .media
            .first()
            .unwrap()
            .payloads
            .first()
            .unwrap()
            .pt;
        assert_eq!(chosen, Pt(expected));
        let m_line = lines(&text, 1, "m=").first().unwrap().to_string();
        let without: Vec<&str> = m_line
            .split(' ')
            .filter(|field| *field != expected.to_string())
            .collect();
        if without.len() > 3 {
            text = text.replace(&m_line, &without.join(" "));
        }
    }
}

#[test]
fn the_order_of_video_codecs_is_the_servers() {
    let order: Vec<&str> = CodecName::VIDEO.iter().map(|codec| codec.name()).collect();
    assert_eq!(order, ["vp8", "vp9", "h264", "av1", "h265"]);
    let (text, _) = answer(&one_line(
        VIDEO,
        &["rtpmap:97 AV1/90000", "rtpmap:98 vp9/90000"],
    ));
    assert_eq!(lines(&text, 1, "a=rtpmap"), ["a=rtpmap:98 vp9/90000"]);
}

#[test]
fn a_forced_codec_that_is_not_offered_rejects_the_line() {
    let (text, _) = answer_with(&mut session(), &one_line(VIDEO, &[VP8]), |options| {
        options.video.only(CodecName::H264);
    });
    assert_eq!(lines(&text, 1, "m="), ["m=video 0 UDP/TLS/RTP/SAVPF 0"]);
}

#[test]
fn profiles_are_matched() {
    let profile = |codec: CodecName, profile: &str, required: bool| {
        let (text, _) = answer_with(&mut session(), &offer("chromium"), |options| {
            options.video.only(codec);
            options.video.profile = Some(profile.to_owned());
            options.video.profile_required = required;
        });
        (
            lines(&text, 2, "m=").concat(),
            lines(&text, 2, "a=fmtp").concat(),
        )
    };
    let line = |pts: &str| format!("m=video 9 UDP/TLS/RTP/SAVPF {pts}");
    let (m_line, fmtp) = profile(CodecName::Vp9, "2", true);
    assert_eq!(
        (m_line, fmtp.as_str()),
        (line("100 101"), "a=fmtp:100 profile-id=2a=fmtp:101 apt=100")
    );
    let (m_line, _) = profile(CodecName::Vp9, "0", true);
    assert_eq!(m_line, line("98 99"));
    let (m_line, fmtp) = profile(CodecName::H264, "42E01F", true);
    let expected = "a=fmtp:106 profile-level-id=42E01F;packetization-mode=1a=fmtp:107 apt=106";
    assert_eq!((m_line, fmtp.as_str()), (line("106 107"), expected));
    // The same level with packetization mode 0 comes first in the offer, and is passed over.
    let (m_line, _) = profile(CodecName::H264, "42001f", true);
    assert_eq!(m_line, line("102 122"));
    let (m_line, _) = profile(CodecName::H264, "640c1f", true);
    assert_eq!(m_line, "m=video 0 UDP/TLS/RTP/SAVPF 0");
    let (m_line, fmtp) = profile(CodecName::H264, "640c1f", false);
    assert_eq!(m_line, line("102 122"));
    assert!(fmtp.contains("profile-level-id=42001f"));
}

#[test]
fn a_vp9_offer_without_parameters_is_profile_zero() {
    let (text, _) = answer_with(
        &mut session(),
        &one_line(VIDEO, &["rtpmap:98 VP9/90000"]),
        |options| {
            options.video.only(CodecName::Vp9);
            options.video.profile = Some("0".to_owned());
            options.video.profile_required = true;
        },
    );
    assert_eq!(lines(&text, 1, "a=fmtp"), ["a=fmtp:98 profile-id=0"]);
}

#[test]
fn opus_has_the_parameters_of_the_plugin_only() {
    let offered = one_line(
        AUDIO,
        &[
            OPUS,
            "fmtp:111 minptime=10;useinbandfec=1;stereo=1;usedtx=1",
        ],
    );
    let (text, _) = answer(&offered);
    assert_eq!(
        lines(&text, 1, "a=fmtp"),
        ["a=fmtp:111 useinbandfec=1;usedtx=1;stereo=1"]
    );
    let (text, _) = answer_with(&mut session(), &offered, |options| {
        options.audio.fmtp = None
    });
    assert!(lines(&text, 1, "a=fmtp").is_empty());
}

#[test]
fn multiopus_copies_the_channel_mapping() {
    let fmtp = "fmtp:111 channel_mapping=0,4,1,2,3,5;coupled_streams=2;num_streams=4";
    let offered = one_line(AUDIO, &["rtpmap:111 multiopus/48000/6", fmtp]);
    let (text, _) = answer_with(&mut session(), &offered, |options| {
        options.audio.only(CodecName::MultiOpus);
        // What a plugin says of Opus is not for it.
        options.audio.fmtp = Some("useinbandfec=1".to_owned());
    });
    assert_eq!(
        lines(&text, 1, "a=rtpmap"),
        ["a=rtpmap:111 multiopus/48000/6"]
    );
    assert_eq!(lines(&text, 1, "a=fmtp"), [format!("a={fmtp}")]);
}

#[test]
fn red_is_accepted_for_opus_if_the_plugin_wants_it() {
    let (text, negotiated) = answer_with(&mut session(), &offer("chromium"), |options| {
        options.audio.red = true;
    });
    assert_eq!(
        lines(&text, 1, "m="),
        ["m=audio 9 UDP/TLS/RTP/SAVPF 63 111"]
    );
    assert_eq!(lines(&text, 1, "a=rtpmap:63"), ["a=rtpmap:63 red/48000/2"]);
    assert_eq!(lines(&text, 1, "a=fmtp:63"), ["a=fmtp:63 111/111"]);
    let payloads = &negotiated.media.first().unwrap().payloads;
    let codecs: Vec<_> = payloads
        .iter()
        .map(|payload| (payload.pt.0, payload.codec))
        .collect();
    assert_eq!(
        codecs,
        [
            (63, portunus_sdp::Codec::Red),
            (111, portunus_sdp::Codec::Opus)
        ]
    );

    let (text, _) = answer_with(&mut session(), &offer("chromium"), |options| {
        options.audio.red = true;
        options.audio.only(CodecName::Pcmu);
    });
    assert_eq!(lines(&text, 1, "m="), ["m=audio 9 UDP/TLS/RTP/SAVPF 0"]);
}

#[test]
fn telephone_events_of_browsers_are_accepted() {
    for (codec, expected) in [
        (CodecName::Opus, ["111 110", "110 telephone-event/48000"]),
        (CodecName::Pcmu, ["0 126", "126 telephone-event/8000"]),
    ] {
        let (text, _) = answer_with(&mut session(), &offer("chromium"), |options| {
            options.audio.dtmf = true;
            options.audio.only(codec);
        });
        let [formats, map] = expected;
        let line = format!("m=audio 9 UDP/TLS/RTP/SAVPF {formats}");
        assert_eq!(lines(&text, 1, "m="), [line]);
        assert!(text.contains(&format!("a=rtpmap:{map}\r\n")), "{text}");
    }
}

#[test]
fn telephone_events_are_accepted_with_the_clock_of_the_codec() {
    let codecs = [
        "rtpmap:111 opus/48000/2",
        "rtpmap:100 telephone-event/16000",
        "rtpmap:101 telephone-event/8000",
        "rtpmap:102 telephone-event/48000",
    ];
    for (numbers, codec, expected) in [
        ("111 0 100 101 102", CodecName::Opus, "102"),
        ("111 0 100 101 102", CodecName::Pcmu, "101"),
        ("111 0 100 101", CodecName::Opus, "101"),
        ("111 0 100", CodecName::Opus, "100"),
    ] {
        let audio = format!("audio 9 UDP/TLS/RTP/SAVPF {numbers}");
        let (text, _) = answer_with(&mut session(), &one_line(&audio, &codecs), |options| {
            options.audio.dtmf = true;
            options.audio.only(codec);
        });
        let line = lines(&text, 1, "m=").join("");
        assert!(line.ends_with(&format!(" {expected}")), "{numbers}: {line}");
    }
}

#[test]
fn video_feedback_is_answered_whether_offered_or_not() {
    let (text, negotiated) = answer(&one_line(VIDEO, &[VP8]));
    let expected = [
        "a=rtcp-fb:96 ccm fir",
        "a=rtcp-fb:96 nack",
        "a=rtcp-fb:96 nack pli",
        "a=rtcp-fb:96 goog-remb",
    ];
    assert_eq!(lines(&text, 1, "a=rtcp-fb"), expected);
    let feedback = negotiated
        .media
        .first()
        .unwrap()
        .payloads
        .first()
        .unwrap()
        .feedback;
    // A picture can be asked for in any case; packets only if the peer knows NACKs.
    assert!(feedback.pli && !feedback.nack && !feedback.fir);
}

#[test]
fn audio_has_nack_where_it_is_offered_and_transport_cc_with_its_extension_only() {
    let twcc = "extmap:3 http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01";
    let feedback = ["rtcp-fb:111 nack", "rtcp-fb:111 transport-cc"];
    let (text, _) = answer(&one_line(AUDIO, &[OPUS, twcc, feedback[0], feedback[1]]));
    let both = ["a=rtcp-fb:111 transport-cc", "a=rtcp-fb:111 nack"];
    assert_eq!(lines(&text, 1, "a=rtcp-fb"), both);
    let (text, negotiated) = answer(&one_line(AUDIO, &[OPUS, feedback[0], feedback[1]]));
    assert_eq!(lines(&text, 1, "a=rtcp-fb"), ["a=rtcp-fb:111 nack"]);
    assert!(negotiated.media[0].payloads[0].feedback.nack);
    let (text, _) = answer(&one_line(AUDIO, &[OPUS, feedback[1]]));
    assert!(lines(&text, 1, "a=rtcp-fb").is_empty());
}

#[test]
fn feedback_for_all_codecs_counts_for_each() {
    let (_, negotiated) = answer(&one_line(
        VIDEO,
        &[VP8, "rtcp-fb:* nack", "rtcp-fb:* nack pli"],
    ));
    let feedback = negotiated
        .media
        .first()
        .unwrap()
        .payloads
        .first()
        .unwrap()
        .feedback;
    assert!(feedback.nack && feedback.pli);
}

#[test]
fn fec_is_never_answered() {
    let (text, _) = answer(&offer("chromium"));
    assert!(!text.contains("ulpfec") && !text.contains("flexfec") && !text.contains("red/90000"));
}

#[test]
fn retransmissions_need_nack_and_the_offered_number() {
    let rtx = ["rtpmap:97 rtx/90000", "fmtp:97 apt=96"];
    let (text, negotiated) = answer(&one_line(VIDEO, &[VP8, rtx[0], rtx[1]]));
    assert!(!text.contains("rtx"));
    assert_eq!(
        negotiated
            .media
            .first()
            .unwrap()
            .payloads
            .first()
            .unwrap()
            .rtx,
        None
    );

    let (text, _) = answer(&one_line(VIDEO, &[VP8, rtx[0], rtx[1], "rtcp-fb:96 nack"]));
    assert_eq!(lines(&text, 1, "m="), ["m=video 9 UDP/TLS/RTP/SAVPF 96 97"]);
    // The peer repairs on no SSRC of its own, so the server declares none either.
    assert!(!text.contains("FID"));

    let offered = one_line(VIDEO, &[VP8, rtx[0], rtx[1], "rtcp-fb:96 nack", "recvonly"]);
    let (text, negotiated) = answer(&offered);
    assert_eq!(lines(&text, 1, "a=ssrc-group:FID").len(), 1);
    assert_eq!(lines(&text, 1, "a=ssrc:").len(), 2);
    assert!(negotiated.media.first().unwrap().local_rtx_ssrc.is_some());
}

#[test]
fn rids_are_ordered_as_the_client_says() {
    let rids = |order: RidOrder| {
        let mut session = session();
        let mut remote = session
            .parse(&offer("chromium_simulcast"), SdpType::Offer)
            .unwrap();
        remote.rid_order = order;
        let simulcast = remote.simulcast();
        let answer = Description::answer(&remote.description, &support::echo(&remote.description));
        session.set_remote_offer(remote).unwrap();
        let (_, negotiated) = session.local_answer(answer).unwrap();
        let rids = negotiated.media.get(1).unwrap().rids.clone();
        assert_eq!(simulcast.first().unwrap().rids, rids);
        rids.iter().map(Rid::to_string).collect::<Vec<_>>()
    };
    assert_eq!(rids(RidOrder::HighestFirst), ["l", "m", "h"]);
    assert_eq!(rids(RidOrder::LowestFirst), ["h", "m", "l"]);
    assert_eq!(RidOrder::from_name("lmh"), Some(RidOrder::LowestFirst));
}

#[test]
fn paused_layers_and_old_forms_are_echoed() {
    let (text, _) = answer(&offer("firefox_simulcast"));
    assert_eq!(lines(&text, 2, "a=simulcast"), ["a=simulcast:recv hi;~lo"]);
    let (text, _) = answer(&offer("firefox_old_simulcast"));
    assert_eq!(
        lines(&text, 2, "a=simulcast"),
        ["a=simulcast: recv rid=h;l"]
    );
    let remote = parse(&offer("firefox_old_simulcast")).unwrap();
    assert_eq!(
        remote.media.get(1).unwrap().simulcast_form,
        Some(SimulcastForm::Legacy)
    );
}

#[test]
fn without_the_rid_extension_there_are_no_layers() {
    let (text, negotiated) = answer_with(&mut session(), &offer("chromium_simulcast"), |options| {
        options
            .extensions
            .retain(|kind| *kind != portunus_rtp::ExtensionKind::Rid);
    });
    assert!(!text.contains("a=rid") && !text.contains("a=simulcast"));
    assert!(negotiated.media.get(1).unwrap().rids.is_empty());
}

#[test]
fn layers_by_ssrc_are_not_answered() {
    let (text, _) = answer(&offer("chromium_sim_group"));
    assert!(!text.contains("simulcast") && !text.contains("SIM"));
    let remote = parse(&offer("chromium_sim_group")).unwrap();
    let simulcast = remote.simulcast();
    assert_eq!(simulcast.len(), 1);
    assert_eq!(simulcast.first().unwrap().ssrcs.len(), 3);
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
