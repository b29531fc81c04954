//! The codecs and formats of answers.

use portunus_rtp::Pt;
use portunus_sdp::CodecName;

use crate::support::{
    answer, answer_with, head, lines, media_section, offer, one_line, parse, session,
};
use crate::{AUDIO, OPUS, VIDEO, VP8};

/// RFC 3551 section 6, tables 4 and 5, for the known codecs.
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
        // Unknown numbers, and those of audio on a video line, are ignored.
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

/// Another number of channels makes another codec (RFC 8866 section 6.6).
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
    // Each chosen codec is removed from the next offer.
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
    // The same level with packetization mode 0 comes first in the offer, and is skipped.
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
        // The plugin's parameters for Opus do not apply to it.
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
