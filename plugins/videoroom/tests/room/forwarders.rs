//! RTP forwarders.

use portunus_core::media::{Encodings, ForwardOptions, Framing};
use portunus_core::testing::{Line, jsep};
use portunus_core::{Networks, Pt, Ssrc};
use portunus_videoroom::VideoRoomConfig;
use serde_json::{Value, json};

use crate::world::{AV, ROOM, World, ask, code, merge, sync};

const KEY: &str = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

fn request(name: &str, members: Value) -> Value {
    let mut request = json!({ "request": name, "room": ROOM, "publisher_id": 1 });
    merge(&mut request, members);
    request
}

fn forward(members: Value) -> Value {
    let mut all = json!({ "host": "127.0.0.1" });
    merge(&mut all, members);
    request("rtp_forward", all)
}

impl World {
    /// Returns the forwarders that the media plane was asked for.
    fn forwarded(&self) -> Vec<(String, bool, ForwardOptions)> {
        let outlets = self.requested().outlets;
        let forwarders = outlets.iter().filter_map(|outlet| {
            let mid = outlet.from.track()?.mid.to_string();
            Some((mid, outlet.options.enabled, outlet.forward()?))
        });
        forwarders.collect()
    }

    fn gates(&self) -> Vec<bool> {
        self.forwarded().iter().map(|(_, open, _)| *open).collect()
    }
}

#[tokio::test]
async fn streams_go_where_they_are_asked_to() {
    let world = World::new(json!({})).await;
    let _al = world
        .publisher(1, &[Line::Audio, Line::Video, Line::Data])
        .await;
    let mut admin = world.attach().await;
    let streams = json!([
        { "mid": "0", "port": 5002, "pt": 111, "ssrc": 7, "rtcp_port": 5003 },
        { "mid": "1", "port": 5004, "host": "::1", "simulcast": true },
        { "mid": "2", "port": 5006, "rtcp_port": 5007 },
        { "mid": "9", "port": 5008 },
    ]);
    let members = json!({ "streams": streams, "srtp_suite": 80, "srtp_crypto": KEY });
    let reply = sync(&mut admin, forward(members)).await;
    assert_eq!(reply["videoroom"], "rtp_forward", "{reply}");
    assert_eq!(
        (&reply["room"], &reply["publisher_id"]),
        (&json!(ROOM), &json!(1))
    );
    let event = reply["forwarders"].as_array().unwrap();
    let ids: Vec<u64> = event
        .iter()
        .map(|f| f["stream_id"].as_u64().unwrap())
        .collect();
    let local = event[0]["local_rtcp_port"].as_u64().unwrap();
    let expected = json!([
        { "stream_id": ids[0], "type": "audio", "host": "127.0.0.1", "port": 5002, "pt": 111, "ssrc": 7,
          "local_rtcp_port": local, "remote_rtcp_port": 5003, "srtp": true },
        { "stream_id": ids[1], "type": "video", "host": "::1", "port": 5004, "ssrc": ids[1], "srtp": true },
        { "stream_id": ids[2], "type": "data", "host": "127.0.0.1", "port": 5006 },
    ]);
    assert_eq!(reply["forwarders"], expected);

    let asked = world.forwarded();
    let mids: Vec<&str> = asked.iter().map(|(mid, ..)| mid.as_str()).collect();
    assert_eq!(mids, ["0", "1", "2"]);
    let options: Vec<&ForwardOptions> = asked.iter().map(|(.., options)| options).collect();
    assert_eq!(options[0].to, "127.0.0.1:5002".parse().unwrap());
    assert_eq!(
        (options[0].pt, options[0].ssrc),
        (Some(Pt(111)), Some(Ssrc(7)))
    );
    assert_eq!(options[0].encodings, Encodings::Only(0));
    let rtcp = options[0].rtcp.as_ref().unwrap();
    assert_eq!(rtcp.remote(), "127.0.0.1:5003".parse().unwrap());
    assert_eq!(u64::from(rtcp.local_port()), local);
    assert_eq!(options[1].encodings, Encodings::Best);
    assert_eq!(options[1].ssrc, Some(Ssrc(ids[1] as u32)));
    assert!(options[1].srtp.is_some());
    assert_eq!(options[2].messages, Framing::Bare);
    assert!(options[2].srtp.is_none() && options[2].rtcp.is_none());

    let list = json!({ "request": "listforwarders", "room": ROOM });
    let listed = sync(&mut admin, list).await;
    let publishers = json!([{ "publisher_id": 1, "forwarders": expected }]);
    let expected = json!({ "videoroom": "forwarders", "room": ROOM, "publishers": publishers });
    assert_eq!(listed, expected);

    // The list shows that others receive the room.
    let _vi = world.viewer(json!({ "streams": [{ "feed": 1 }] })).await;
    let rooms = sync(&mut admin, json!({ "request": "list" })).await;
    let others = json!({ "forwarders": 3, "viewers": 1 });
    assert_eq!(rooms["list"][0]["listening_in"], others, "{rooms}");
}

#[tokio::test]
async fn forwarders_end_with_the_use_of_their_m_line() {
    let world = World::new(json!({})).await;
    let mut al = world.publisher(1, &AV).await;
    let mut admin = world.attach().await;
    let streams = json!([{ "mid": "0", "port": 5002 }, { "mid": "1", "port": 5004 }]);
    sync(&mut admin, forward(json!({ "streams": streams }))).await;
    assert_eq!(world.gates(), [true, true]);
    for (from, to, gates) in [
        ("m=video 9", "m=video 0", vec![true, false]),
        ("a=mid:1\r\n", "a=mid:v\r\n", vec![true]),
    ] {
        let mut offer = jsep("offer", "pub1", &AV);
        let sdp = offer["sdp"].as_str().unwrap().replace(from, to);
        offer["sdp"] = sdp.replace("BUNDLE 0 1", "BUNDLE 0").into();
        al.client
            .message(json!({ "request": "configure" }), Some(offer))
            .await;
        let event = al.client.event().await;
        assert_eq!(event["configured"], "ok", "{event}");
        assert_eq!(world.gates(), gates);
    }
}

#[tokio::test]
async fn upper_encodings_have_ports_of_their_own() {
    let world = World::new(json!({})).await;
    let _al = world.publisher(1, &AV).await;
    let mut admin = world.attach().await;
    let stream = json!({ "mid": "1", "port": 5004, "port_2": 5006, "pt_2": 97, "ssrc_2": 8, "port_3": 5008 });
    let reply = sync(&mut admin, forward(json!({ "streams": [stream] }))).await;
    let event = reply["forwarders"].as_array().unwrap();
    let substreams: Vec<_> = event.iter().map(|f| f.get("substream").cloned()).collect();
    assert_eq!(substreams, [None, Some(json!(1)), Some(json!(2))]);
    assert_eq!(
        (&event[1]["pt"], &event[1]["ssrc"]),
        (&json!(97), &json!(8))
    );
    let encodings = world.forwarded().into_iter().map(|(.., o)| o.encodings);
    let expected = [0, 1, 2].map(Encodings::Only);
    assert_eq!(encodings.collect::<Vec<_>>(), expected);
}

#[tokio::test]
async fn the_old_form_takes_the_first_stream_of_each_kind() {
    let world = World::new(json!({})).await;
    let _al = world
        .publisher(1, &[Line::Audio, Line::Video, Line::Data])
        .await;
    let mut admin = world.attach().await;
    let members = json!({ "audio_port": 5002, "video_port": 5004, "video_rtcp_port": 5005, "video_pt": 96,
                          "video_port_2": 5006, "data_port": 5008 });
    let reply = sync(&mut admin, forward(members)).await;
    let event = &reply["rtp_stream"];
    let id = |name: &str| event[name].as_u64().unwrap();
    let expected = json!({
        "warning": "deprecated_api", "host": "127.0.0.1",
        "audio_stream_id": id("audio_stream_id"), "audio": 5002,
        "video_stream_id": id("video_stream_id"), "video": 5004, "video_rtcp": 5005,
        "video_stream_id_2": id("video_stream_id_2"), "video_2": 5006,
        "data_stream_id": id("data_stream_id"), "data": 5008,
    });
    assert_eq!(event, &expected);
    assert_eq!(reply.get("forwarders"), None);
    let ports = world.forwarded().into_iter().map(|(_, _, o)| o.to.port());
    assert_eq!(ports.collect::<Vec<_>>(), [5002, 5004, 5006, 5008]);
}

#[tokio::test]
async fn the_old_form_takes_the_best_encoding_too() {
    let world = World::new(json!({})).await;
    let _al = world.publisher(1, &[Line::Audio, Line::Simulcast]).await;
    let mut admin = world.attach().await;
    let members =
        json!({ "video_port": 5004, "video_ssrc": 7, "video_port_2": 5006, "simulcast": true });
    let reply = sync(&mut admin, forward(members)).await;
    assert_eq!(reply["rtp_stream"]["video"], 5004, "{reply}");
    assert_eq!(reply["rtp_stream"].get("video_2"), None, "{reply}");
    let forwarded = world.forwarded();
    assert_eq!(forwarded.len(), 1);
    assert_eq!(forwarded[0].2.encodings, Encodings::Best);
    assert_eq!(forwarded[0].2.ssrc, Some(Ssrc(7)));
}

#[tokio::test]
async fn of_simulcast_the_best_encoding_is_forwarded_unless_another_one_is_asked_for() {
    let world = World::new(json!({})).await;
    let _al = world.publisher(1, &[Line::Audio, Line::Simulcast]).await;
    let mut admin = world.attach().await;
    let stream = |members: Value| {
        let mut stream = json!({ "mid": "1", "port": 5004 });
        merge(&mut stream, members);
        json!({ "streams": [{ "mid": "0", "port": 5002 }, stream] })
    };
    let only = Encodings::Only;
    for (members, expected) in [
        (stream(json!({})), vec![only(0), Encodings::Best]),
        (
            stream(json!({ "simulcast": false })),
            vec![only(0), only(0)],
        ),
        (
            stream(json!({ "port_3": 5008 })),
            vec![only(0), only(0), only(2)],
        ),
        (
            json!({ "video_port": 5004, "audio_port": 5002 }),
            vec![only(0), Encodings::Best],
        ),
        (
            json!({ "video_port": 5004, "video_port_2": 5006 }),
            vec![only(0), only(1)],
        ),
    ] {
        let before = world.forwarded().len();
        let reply = sync(&mut admin, forward(members.clone())).await;
        assert_eq!(reply["videoroom"], "rtp_forward", "{reply}");
        let started = world.forwarded().into_iter().skip(before);
        let encodings: Vec<_> = started.map(|(.., options)| options.encodings).collect();
        assert_eq!(encodings, expected, "{members}");
    }
}

#[tokio::test]
async fn names_of_hosts_are_looked_up_everywhere() {
    let world = World::new(json!({})).await;
    let _al = world.publisher(1, &AV).await;
    let mut admin = world.attach().await;
    let members = json!({ "host": "localhost", "host_family": "ipv4", "streams": [
        { "mid": "0", "port": 5002 },
        { "mid": "1", "port": 5004, "host": "localhost", "host_family": "ipv4" },
    ]});
    let reply = sync(&mut admin, forward(members)).await;
    for forwarder in reply["forwarders"].as_array().unwrap() {
        assert_eq!(forwarder["host"], "127.0.0.1");
    }
    assert_eq!(world.forwarded().len(), 2);
    let nowhere = json!({ "host": "no-such-host.invalid", "streams": [{ "mid": "0", "port": 1 }] });
    assert_eq!(code(&sync(&mut admin, forward(nowhere)).await), 430);
    assert_eq!(world.forwarded().len(), 2);
}

#[tokio::test]
async fn a_stream_is_multiplied_so_often_and_no_more() {
    let world = World::new(json!({})).await;
    let _al = world.publisher(1, &AV).await;
    let mut admin = world.attach().await;
    let streams = |count| {
        let stream = json!({ "mid": "1", "port": 5004 });
        json!({ "streams": vec![stream; count] })
    };
    assert_eq!(code(&sync(&mut admin, forward(streams(65))).await), 430);
    assert_eq!(world.forwarded().len(), 0, "all or none");
    let reply = sync(&mut admin, forward(streams(64))).await;
    assert_eq!(reply["forwarders"].as_array().unwrap().len(), 64);
    assert_eq!(code(&sync(&mut admin, forward(streams(1))).await), 430);
    let others = json!({ "streams": [{ "mid": "0", "port": 5002 }] });
    sync(&mut admin, forward(others)).await;
    assert_eq!(world.forwarded().len(), 65);
}

#[tokio::test]
async fn nothing_is_forwarded_of_what_is_closed() {
    let world = World::new(json!({})).await;
    let mut al = world.publisher(1, &AV).await;
    let mut admin = world.attach().await;
    let members = json!({ "audio_port": 5002, "video_port": 5004 });
    sync(&mut admin, forward(members.clone())).await;
    assert_eq!(world.gates(), [true, true]);
    let moderate =
        |mute| json!({ "request": "moderate", "room": ROOM, "id": 1, "mid": "1", "mute": mute });
    sync(&mut admin, moderate(true)).await;
    assert_eq!(world.gates(), [true, false]);
    al.client.event().await;
    let silent = json!({ "request": "configure", "streams": [{ "mid": "0", "send": false }] });
    ask(&mut al.client, silent).await;
    assert_eq!(world.gates(), [false, false]);
    // New forwarders are closed too.
    sync(&mut admin, forward(members)).await;
    assert_eq!(world.gates(), [false; 4]);
    sync(&mut admin, moderate(false)).await;
    assert_eq!(world.gates(), [false, true, false, true]);
}

#[tokio::test]
async fn forwarders_end_when_asked_to_or_with_the_publisher() {
    let world = World::new(json!({})).await;
    let mut al = world.publisher(1, &AV).await;
    let mut admin = world.attach().await;
    let members = json!({ "audio_port": 5002, "video_port": 5004 });
    let reply = sync(&mut admin, forward(members)).await;
    let id = &reply["rtp_stream"]["audio_stream_id"];
    let stop = request("stop_rtp_forward", json!({ "stream_id": id }));
    let stopped = sync(&mut admin, stop.clone()).await;
    let expected = json!({ "videoroom": "stop_rtp_forward", "room": ROOM, "publisher_id": 1, "stream_id": id });
    assert_eq!(stopped, expected);
    assert_eq!(world.forwarded().len(), 1);
    assert_eq!(code(&sync(&mut admin, stop).await), 428);
    ask(&mut al.client, json!({ "request": "unpublish" })).await;
    assert!(world.forwarded().is_empty());
    let list = json!({ "request": "listforwarders", "room": ROOM });
    assert_eq!(sync(&mut admin, list).await["publishers"], json!([]));
    let members = json!({ "audio_port": 5002 });
    assert_eq!(code(&sync(&mut admin, forward(members)).await), 428);
}

#[tokio::test]
async fn what_makes_no_sense_is_refused_and_starts_nothing() {
    let world = World::new(json!({ "secret": "s" })).await;
    let _al = world.publisher(1, &AV).await;
    let mut admin = world.attach().await;
    let stream = |members: Value| {
        let mut stream = json!({ "mid": "0", "port": 5002 });
        merge(&mut stream, members);
        json!({ "streams": [stream] })
    };
    for (members, expected) in [
        (json!({ "host": null, "streams": [] }), 430),
        (json!({ "publisher_id": 9, "streams": [] }), 428),
        (json!({ "publisher_id": "al" }), 430),
        (json!({ "secret": "wrong" }), 433),
        (json!({ "host_family": "ipv5", "streams": [] }), 430),
        (
            json!({ "host": "::1", "host_family": "ipv4", "streams": [] }),
            430,
        ),
        (json!({ "srtp_suite": 64, "streams": [] }), 430),
        (
            json!({ "srtp_suite": 32, "srtp_crypto": "short", "streams": [] }),
            430,
        ),
        (json!({ "streams": 1 }), 430),
        (json!({ "streams": [1] }), 430),
        (json!({ "streams": [{ "port": 1 }] }), 429),
        (json!({ "streams": [{ "mid": "0" }] }), 429),
        (stream(json!({ "port": 0 })), 430),
        (stream(json!({ "port": 65_536 })), 430),
        (stream(json!({ "port": -1 })), 430),
        (stream(json!({ "pt": 128 })), 430),
        (stream(json!({ "ssrc": 4_294_967_296u64 })), 430),
        (stream(json!({ "simulcast": 1 })), 430),
        (stream(json!({ "rtcp_port": "x" })), 430),
        (json!({ "audio_port": "x" }), 430),
        (json!({ "video_port_2": 70_000 }), 430),
    ] {
        let mut request = json!({ "secret": "s" });
        merge(&mut request, members.clone());
        let answer = sync(&mut admin, forward(request)).await;
        assert_eq!(code(&answer), expected, "{members}: {answer}");
    }
    let hostless = request("rtp_forward", json!({ "secret": "s", "streams": [] }));
    assert_eq!(code(&sync(&mut admin, hostless).await), 429);
    assert!(world.forwarded().is_empty());
}

#[tokio::test]
async fn forwarding_can_be_locked() {
    let world = World::empty(VideoRoomConfig {
        admin_key: Some("k".into()),
        lock_rtp_forward: true,
        ..VideoRoomConfig::default()
    });
    let mut admin = world.attach().await;
    let create = json!({ "request": "create", "room": ROOM, "admin_key": "k" });
    sync(&mut admin, create).await;
    let _al = world.publisher(1, &AV).await;
    for (key, expected) in [(None, 429), (Some("x"), 433)] {
        for name in ["rtp_forward", "stop_rtp_forward", "publish_remotely"] {
            let mut asked = request(
                name,
                json!({ "host": "127.0.0.1", "port": 5, "remote_id": "r",
                                                  "stream_id": 5, "audio_port": 5 }),
            );
            if let Some(key) = key {
                merge(&mut asked, json!({ "admin_key": key }));
            }
            assert_eq!(code(&sync(&mut admin, asked).await), expected, "{name}");
        }
    }
    let asked = forward(json!({ "admin_key": "k", "audio_port": 5 }));
    assert_eq!(sync(&mut admin, asked).await["videoroom"], "rtp_forward");
}

#[tokio::test]
async fn nothing_is_sent_outside_of_the_networks_that_are_allowed() {
    let networks = ["127.0.0.0/8", "2001:db8::/32"];
    let world = World::empty(VideoRoomConfig {
        outgoing: Networks(networks.map(|text| text.parse().unwrap()).into()),
        ..VideoRoomConfig::default()
    });
    let mut admin = world.attach().await;
    sync(&mut admin, json!({ "request": "create", "room": ROOM })).await;
    let _al = world.publisher(1, &AV).await;
    let to = |host: &str| {
        let streams =
            json!([{ "mid": "0", "port": 5002 }, { "mid": "1", "port": 5004, "host": host }]);
        let forward = forward(json!({ "streams": streams }));
        let remote = json!({ "host": host, "port": 5006, "remote_id": host });
        [forward, request("publish_remotely", remote)]
    };
    for host in ["192.0.2.1", "::ffff:192.0.2.1", "::1", "2001:db9::1"] {
        for asked in to(host) {
            let refused = sync(&mut admin, asked).await;
            assert_eq!(code(&refused), 433, "{host}: {refused}");
            assert!(
                refused["error"]
                    .as_str()
                    .unwrap()
                    .contains("may be sent to")
            );
        }
    }
    assert!(world.forwarded().is_empty());
    for (host, expected) in [("127.0.0.9", 3), ("2001:db8::1", 6)] {
        for asked in to(host) {
            let reply = sync(&mut admin, asked).await;
            assert!(reply.get("error_code").is_none(), "{reply}");
        }
        // Two for the requests, and at least one for the other server.
        assert!(world.forwarded().len() >= expected, "{host}");
    }
    // A name counts by its address.
    let name = json!({ "host": "localhost", "host_family": "ipv4", "streams": [{ "mid": "0", "port": 5 }] });
    let reply = sync(&mut admin, forward(name)).await;
    assert_eq!(reply["videoroom"], "rtp_forward", "{reply}");
}
