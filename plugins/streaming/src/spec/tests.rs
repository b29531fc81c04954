#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

use serde_json::json;

use super::*;

fn read(description: Value, origin: Origin) -> Result<MountpointSpec, SpecProblem> {
    MountpointSpec::read(description.as_object().unwrap(), Ids::Numbers, origin)
}

fn rtp(description: Value) -> RtpSpec {
    match read(description, Origin::Request).unwrap().source {
        SourceSpec::Rtp(rtp) => rtp,
        other => panic!("{other:?}"),
    }
}

fn code(description: Value) -> u16 {
    read(description, Origin::Request)
        .unwrap_err()
        .refusal
        .code()
}

fn full() -> Value {
    json!({
        "type": "rtp", "name": "cam", "id": 7, "description": "A camera", "metadata": "{}",
        "is_private": true, "secret": "s", "pin": "p", "collision": 100, "bufferkf_ms": 2000,
        "bufferkf_bytes": 1000, "threads": 2, "srtpsuite": 80,
        "srtpcrypto": "WbTBosdVUZqEb6Htqhn+m3z7wUh4RJVR8nE15GbN", "e2ee": true,
        "playoutdelay_ext": true, "abscapturetime_src_ext_id": 3,
        "media": [
            { "type": "audio", "mid": "a", "label": "Sound", "msid": "s t", "port": 5002,
              "mcast": "232.3.4.5", "iface": "lo", "rtcpport": 0, "pt": 111, "codec": "opus",
              "fmtp": "useinbandfec=1", "skew": true },
            { "type": "video", "mid": "v", "port": 5004, "port2": 5006, "port3": 5008,
              "simulcast": true, "pt": 96, "codec": "vp8" },
            { "type": "video", "mid": "h", "port": 0, "pt": 97, "codec": "h264", "h264sps": "Z0I=,aM4=" },
            { "type": "video", "mid": "s", "port": 0, "pt": 98, "codec": "vp9", "svc": true },
            { "type": "data", "mid": "d", "port": 0, "datatype": "binary", "buffermsg": true },
        ],
    })
}

#[test]
fn what_is_written_down_reads_the_same() {
    for origin in [Origin::Request, Origin::Configuration] {
        let spec = read(full(), origin).unwrap();
        let again = read(spec.to_members().into(), origin).unwrap();
        assert_eq!(spec, again);
    }
    for description in [
        json!({ "type": "live", "name": "f", "filename": "a.opus", "audiocodec": "opus" }),
        json!({ "type": "ondemand", "name": "f", "filename": "a.webm", "video": true }),
        json!({ "type": "rtsp", "name": "r", "url": "rtsp://x/y", "video": true, "rtsp_user": "u",
                "rtsp_pwd": "p", "rtsp_timeout": 3, "videopt": 99, "rtsp_failcheck": false,
                "rtsp_transport": "tcp" }),
        json!({ "type": "whip", "name": "w", "token": "t", "bufferkf_ms": 9,
                "media": [{ "type": "video", "mid": "v" }] }),
    ] {
        let spec = read(description, Origin::Configuration).unwrap();
        let again = read(spec.to_members().into(), Origin::Configuration).unwrap();
        assert_eq!(spec, again);
    }
}

#[test]
fn the_flat_form_gives_the_same_streams() {
    let spec = rtp(json!({
        "type": "rtp", "audio": true, "audioport": 5002, "audiopt": 111, "audiortpmap": "opus/48000/2",
        "video": true, "videoport": 5004, "videopt": 100, "videocodec": "vp8", "videortcpport": 0,
        "data": true, "dataport": 0, "databuffermsg": true,
    }));
    assert!(spec.flat);
    let seen: Vec<_> = spec
        .media
        .iter()
        .map(|m| {
            (
                m.mid.as_str(),
                m.codec.map(StreamCodec::name),
                m.pt,
                m.rtcpport,
            )
        })
        .collect();
    assert_eq!(
        seen,
        [
            ("a", Some("opus"), Some(111), None),
            ("v", Some("vp8"), Some(100), Some(0)),
            ("d", None, None, None),
        ]
    );
    assert!(spec.media[2].buffermsg);
}

#[test]
fn mistakes_have_the_codes_that_clients_know() {
    let media = |media: Value| json!({ "type": "rtp", "media": media });
    let with = |member: &str, value: Value| {
        let mut description =
            media(json!([{ "type": "audio", "mid": "a", "port": 0, "codec": "opus" }]));
        description[member] = value;
        description
    };
    for (expected, description) in [
        (453, json!({})),
        (454, json!({ "type": "rtmp" })),
        (454, json!({ "type": "rtp", "id": "seven", "media": [] })),
        (456, media(json!([]))),
        (454, media(json!("none"))),
        (456, media(json!([{ "type": "smell", "mid": "s" }]))),
        (453, media(json!([{ "type": "audio", "port": 0 }]))),
        (
            453,
            media(json!([{ "type": "audio", "mid": "a", "codec": "opus" }])),
        ),
        (
            456,
            media(json!([{ "type": "audio", "mid": "a", "port": 0 }])),
        ),
        (
            456,
            media(json!([{ "type": "audio", "mid": "a", "port": 0, "codec": "vp8" }])),
        ),
        (
            454,
            media(json!([{ "type": "audio", "mid": "a", "port": 70000, "codec": "opus" }])),
        ),
        (
            454,
            media(json!([{ "type": "data", "mid": "d", "port": 0, "datatype": "xml" }])),
        ),
        (
            456,
            media(json!([
                { "type": "data", "mid": "d", "port": 0 }, { "type": "data", "mid": "d", "port": 0 },
            ])),
        ),
        (
            456,
            media(json!([
                { "type": "data", "mid": "d", "port": 0, "mcast": "232.1.1.1" },
            ])),
        ),
        (456, with("bufferkf_ms", json!(65536))),
        (456, with("bufferkf_bytes", json!(1_u64 << 32))),
        (454, with("abscapturetime_src_ext_id", json!(15))),
        (454, with("abscapturetime_src_ext_id", json!(-1))),
        (456, json!({ "type": "rtp", "audio": false })),
        (
            453,
            json!({ "type": "rtp", "video": true, "videoport": 5004, "videocodec": "vp8" }),
        ),
        (456, json!({ "type": "live", "filename": "../a.opus" })),
        (453, json!({ "type": "ondemand" })),
        (
            456,
            json!({ "type": "live", "filename": "a.alaw", "video": true }),
        ),
        (453, json!({ "type": "rtsp", "video": true })),
        (456, json!({ "type": "rtsp", "url": "rtsp://x" })),
        (
            454,
            json!({ "type": "rtsp", "url": "rtsp://x", "video": true, "rtsp_transport": "sctp" }),
        ),
        (456, json!({ "type": "whip", "media": [] })),
        (453, json!({ "type": "whip" })),
    ] {
        assert_eq!(code(description.clone()), expected, "{description}");
    }
    let mut bad_suite = with("srtpsuite", json!(64));
    bad_suite["srtpcrypto"] = json!("WbTBosdVUZqEb6Htqhn+m3z7wUh4RJVR8nE15GbN");
    assert_eq!(code(bad_suite), 456);
    let mut bad_key = with("srtpsuite", json!(80));
    bad_key["srtpcrypto"] = json!("short");
    assert_eq!(code(bad_key), 456);
}

#[test]
fn a_mountpoint_has_no_more_streams_than_an_offer_has_lines() {
    for kind in ["rtp", "whip"] {
        let streams = |count: usize| {
            let stream =
                |n| json!({ "type": "audio", "mid": format!("{n}"), "port": 0, "codec": "opus" });
            let media: Vec<_> = (0..count).map(stream).collect();
            json!({ "type": kind, "media": media })
        };
        assert!(read(streams(511), Origin::Request).is_ok());
        assert_eq!(code(streams(512)), 456);
    }
}

#[test]
fn a_configuration_may_not_have_what_means_nothing() {
    let problem = |description| read(description, Origin::Configuration).unwrap_err();
    let unnamed = problem(json!({ "type": "whip", "media": [{ "type": "video", "mid": "v" }] }));
    assert_eq!(unnamed.key, "name");
    let unknown =
        problem(json!({ "type": "live", "name": "f", "filename": "a.opus", "colour": 1 }));
    assert_eq!((unknown.key.as_str(), unknown.media), ("colour", None));
    let inside = problem(json!({
        "type": "rtp", "name": "c",
        "media": [{ "type": "data", "mid": "d", "port": 0 }, { "type": "data", "mid": "e", "prt": 0 }],
    }));
    assert_eq!((inside.key.as_str(), inside.media), ("prt", Some(1)));
}

/// Returns the payload types of video streams with these codecs, parameters and configured payload
/// types.
fn numbered(streams: &[(&str, Option<&str>, Option<u8>)]) -> Vec<u8> {
    let stream = |(index, (codec, fmtp, pt)): (usize, &(&str, Option<&str>, Option<u8>))| {
        let kind = match *codec {
            "opus" | "red" | "pcma" => "audio",
            _ => "video",
        };
        let mut stream =
            json!({ "type": kind, "mid": index.to_string(), "port": 0, "codec": codec });
        if let Some(fmtp) = fmtp {
            stream["fmtp"] = json!(fmtp);
        }
        if let Some(pt) = pt {
            stream["pt"] = json!(pt);
        }
        stream
    };
    let media: Vec<_> = streams.iter().enumerate().map(stream).collect();
    let spec = rtp(json!({ "type": "rtp", "media": media }));
    spec.media.iter().map(|media| media.pt.unwrap()).collect()
}

#[test]
fn streams_without_payload_types_get_different_ones() {
    let streams = ["vp8", "h264", "vp8", "pcma"].map(|codec| (codec, None, None));
    assert_eq!(numbered(&streams), [96, 97, 96, 8]);
    // Other parameters make it another format.
    let of = |fmtp| ("h264", Some(fmtp), None);
    let streams = [of("profile-level-id=42e01f"), of("profile-level-id=640028")];
    assert_eq!(numbered(&streams), [96, 97]);
    let streams = [of("profile-level-id=42e01f"), of("profile-level-id=42e01f")];
    assert_eq!(numbered(&streams), [96, 96]);
}

#[test]
fn no_payload_type_stands_for_two_codecs() {
    let streams = [
        ("vp8", None, Some(100)),
        ("h264", None, Some(100)),
        ("vp9", None, None),
    ];
    assert_eq!(numbered(&streams), [100, 96, 97]);
    let of = |fmtp| ("h264", Some(fmtp), Some(96));
    assert_eq!(numbered(&[of("a=1"), of("a=2"), of("a=1")]), [96, 97, 96]);
    // Requested payload types take precedence.
    let streams = [("vp8", None, None), ("h264", None, Some(96))];
    assert_eq!(numbered(&streams), [97, 96]);
    // The number of the Opus in redundant audio stands in its packets.
    let streams = [("vp8", None, Some(111)), ("red", Some("111/111"), Some(63))];
    assert_eq!(numbered(&streams), [96, 63]);
    let streams = [("opus", None, None), ("red", Some("112/112"), Some(112))];
    assert_eq!(numbered(&streams), [111, 63]);
    let flat = rtp(json!({
        "type": "rtp", "audio": true, "audioport": 0, "audiopt": 96, "audiocodec": "opus",
        "video": true, "videoport": 0, "videopt": 96, "videocodec": "vp8",
    }));
    let pts: Vec<_> = flat.media.iter().map(|media| media.pt).collect();
    assert_eq!(pts, [Some(96), Some(97)]);
}

#[test]
fn payload_types_that_look_like_rtcp_are_refused() {
    for pt in [64, 72, 95, 128] {
        for kind in ["rtp", "whip"] {
            let stream =
                json!({ "type": "video", "mid": "v", "port": 0, "codec": "vp8", "pt": pt });
            assert_eq!(
                code(json!({ "type": kind, "media": [stream] })),
                454,
                "{pt}"
            );
        }
        assert_eq!(
            code(json!({ "type": "rtsp", "url": "rtsp://x", "video": true, "videopt": pt })),
            454,
            "{pt}"
        );
    }
}

#[test]
fn a_mountpoint_has_no_more_formats_than_there_are_payload_types() {
    let streams = |count: usize| {
        let stream = |n| {
            json!({ "type": "video", "mid": format!("{n}"), "port": 0, "codec": "h264",
                    "fmtp": format!("n={n}") })
        };
        let media: Vec<_> = (0..count).map(stream).collect();
        json!({ "type": "rtp", "media": media })
    };
    assert!(read(streams(61), Origin::Request).is_ok());
    assert_eq!(code(streams(62)), 456);
}
