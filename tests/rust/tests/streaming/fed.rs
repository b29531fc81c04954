//! RTP to ports of the server.

use std::net::{Ipv4Addr, UdpSocket};
use std::time::{Duration, Instant};

use portunus_tests::Packet;
use serde_json::json;

use crate::world::{FRAME, KEYFRAME, PACKAGE, Source, Viewer, mountpoint, server, video};

#[tokio::test]
async fn audio_video_and_data_reach_viewers_on_all_workers() {
    let server = server(2).await;
    let mut admin = server.attach(PACKAGE).await;
    let media = json!([
        { "type": "audio", "mid": "a", "port": 0, "codec": "opus" }, video("v"),
        { "type": "data", "mid": "d", "port": 0 },
    ]);
    let ports = mountpoint(&mut admin, 7, media, json!({})).await;
    let mut audio = Source::new(&ports[0]["port"]);
    let mut picture = Source::new(&ports[1]["port"]);
    let data = Source::new(&ports[2]["port"]);
    let mut one = Viewer::watch(&server, json!({ "id": 7 })).await;
    let mut two = Viewer::watch(&server, json!({ "id": 7, "media": ["v", "d"] })).await;
    one.receive(0, || audio.send(b"sound"), |p| p.payload == b"sound")
        .await;
    one.receive(1, || picture.send(&KEYFRAME), |_| true).await;
    two.receive(0, || picture.send(&KEYFRAME), |_| true).await;
    for viewer in [&mut one, &mut two] {
        for _ in 0..200 {
            data.send_raw(b"hello");
            viewer.few_turns().await;
            if viewer.peer.texts("JanusDataChannel").contains(&"hello") {
                break;
            }
        }
        assert!(viewer.peer.texts("JanusDataChannel").contains(&"hello"));
    }
}

#[tokio::test]
async fn a_viewer_that_takes_no_redundant_audio_hears_the_opus_in_it() {
    let server = server(1).await;
    let mut admin = server.attach(PACKAGE).await;
    let media = json!([
        { "type": "audio", "mid": "a", "port": 0, "codec": "red", "fmtp": "102/102" },
    ]);
    let ports = mountpoint(&mut admin, 7, media, json!({})).await;
    let mut audio = Source::new(&ports[0]["port"]);
    // A block of two bytes, 960 before, and the packet's own of three.
    let payload = [0x80 | 102, 0x0f, 0x00, 2, 102, 1, 2, 3, 4, 5];
    let mut viewer = Viewer::watch(&server, json!({ "id": 7 })).await;
    viewer
        .receive(0, || audio.send(&payload), |p| p.payload == [3, 4, 5])
        .await;
}

#[tokio::test]
async fn the_stream_that_is_watched_is_asked_for_a_keyframe() {
    let server = server(2).await;
    let mut admin = server.attach(PACKAGE).await;
    let media = json!([video("left"), video("right")]);
    let ports = mountpoint(&mut admin, 7, media, json!({})).await;
    // An empty receiver report shows the server the address for requests.
    let report = [0x80, 201, 0, 1, 0, 0, 0, 7];
    let rtcp: Vec<Source> = (0..2)
        .map(|n| Source::new(&ports[n]["rtcp_port"]))
        .collect();
    let mut rtp: Vec<Source> = (0..2).map(|n| Source::new(&ports[n]["port"])).collect();
    for (rtp, rtcp) in rtp.iter_mut().zip(&rtcp) {
        rtcp.send_raw(&report);
        rtp.send(&FRAME);
    }
    // One request to a new sender is allowed, whichever stream is watched. The watched sender
    // receives one for the viewer, too.
    let mut viewer = Viewer::watch(&server, json!({ "id": 7, "media": ["right"] })).await;
    let mut counts = [0, 0];
    let deadline = Instant::now() + Duration::from_secs(20);
    while counts[1] <= counts[0] {
        assert!(Instant::now() < deadline, "asked {counts:?} times");
        for (count, source) in counts.iter_mut().zip(&rtcp) {
            *count += source.asked();
        }
        for (rtp, rtcp) in rtp.iter_mut().zip(&rtcp) {
            rtcp.send_raw(&report);
            rtp.send(&FRAME);
        }
        viewer.few_turns().await;
    }
    assert!(counts[0] <= 1, "asked {counts:?} times");
}

#[tokio::test]
async fn rtp_at_the_rtcp_port_shows_whom_to_ask() {
    let server = server(1).await;
    let mut admin = server.attach(PACKAGE).await;
    let ports = mountpoint(&mut admin, 7, json!([video("v")]), json!({})).await;
    let mut picture = Source::new(&ports[0]["port"]);
    let mut at_rtcp = Source::new(&ports[0]["rtcp_port"]);
    let mut viewer = Viewer::watch(&server, json!({ "id": 7 })).await;
    let deadline = Instant::now() + Duration::from_secs(20);
    while at_rtcp.asked() == 0 {
        assert!(Instant::now() < deadline, "nobody was asked");
        at_rtcp.send(&KEYFRAME);
        picture.send(&FRAME);
        viewer.few_turns().await;
    }
    // It is no picture nevertheless.
    let mut packets = viewer.peer.packets.iter();
    assert!(packets.all(|packet| packet.payload.len() == FRAME.len()));
}

#[tokio::test]
async fn what_is_sent_to_a_multicast_group_reaches_viewers() {
    let group = Ipv4Addr::new(239, 255, 77, 7);
    let port = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = port.local_addr().unwrap().port();
    let server = server(2).await;
    let mut admin = server.attach(PACKAGE).await;
    let mut stream = video("v");
    stream["mcast"] = json!(group);
    stream["iface"] = json!("127.0.0.1");
    stream["port"] = json!(port);
    let ports = mountpoint(&mut admin, 7, json!([stream]), json!({})).await;
    assert_eq!(ports[0]["host"], json!(group));
    let mut viewers = [
        Viewer::watch(&server, json!({ "id": 7 })).await,
        Viewer::watch(&server, json!({ "id": 7 })).await,
    ];
    // The bound address selects the interface for sending to a group.
    let mut source = Source::new(&json!(port));
    source.host = group;
    for viewer in &mut viewers {
        viewer.receive(0, || source.send(&KEYFRAME), |_| true).await;
    }
}

#[tokio::test]
async fn a_kept_keyframe_comes_first() {
    let server = server(1).await;
    let mut admin = server.attach(PACKAGE).await;
    let options = json!({ "bufferkf_ms": 60_000 });
    let ports = mountpoint(&mut admin, 7, json!([video("v")]), options).await;
    let mut source = Source::new(&ports[0]["port"]);
    source.send(&KEYFRAME);
    source.send(&FRAME);
    let deadline = Instant::now() + Duration::from_secs(20);
    let info = json!({ "request": "info", "id": 7 });
    while admin.manage(info.clone()).await["info"]["media"][0]["age_ms"].as_u64() > Some(1_000) {
        assert!(Instant::now() < deadline);
    }
    let mut viewer = Viewer::watch(&server, json!({ "id": 7 })).await;
    viewer.peer.run_until(|peer| peer.packets.len() >= 2).await;
    // Only the picture's number is the viewer's own.
    assert_eq!(viewer.peer.packets[0].payload[4..], KEYFRAME[4..]);
    assert_eq!(viewer.peer.packets[1].seq, viewer.peer.packets[0].seq + 1);
}

#[tokio::test]
async fn pauses_switches_and_restarts_leave_no_gap() {
    let server = server(2).await;
    let mut admin = server.attach(PACKAGE).await;
    let one = mountpoint(&mut admin, 7, json!([video("v")]), json!({})).await;
    let two = mountpoint(&mut admin, 8, json!([video("v")]), json!({})).await;
    let (mut one, mut two) = (Source::new(&one[0]["port"]), Source::new(&two[0]["port"]));
    let mut viewer = Viewer::watch(&server, json!({ "id": 7 })).await;
    let mark = |n: u8| {
        let mut keyframe = KEYFRAME.to_vec();
        keyframe.push(n);
        keyframe
    };
    let is = |n: u8| move |p: &Packet| p.payload.last() == Some(&n);
    viewer.receive(0, || one.send(&mark(1)), is(1)).await;

    assert_eq!(
        viewer.ask(json!({ "request": "pause" }), "status").await,
        "pausing"
    );
    for _ in 0..20 {
        one.send(&mark(2));
    }
    viewer.few_turns().await;
    assert_eq!(
        viewer.ask(json!({ "request": "start" }), "status").await,
        "started"
    );
    viewer.receive(0, || one.send(&mark(3)), is(3)).await;

    for send in [false, true] {
        let configure = json!({ "request": "configure", "mid": "v", "send": send });
        assert_eq!(viewer.ask(configure, "event").await, "configured");
        for _ in 0..20 {
            one.send(&mark(if send { 100 } else { 99 }));
        }
    }
    viewer.receive(0, || one.send(&mark(100)), is(100)).await;

    for n in 0..50 {
        let id = 8 - n % 2;
        let switch = json!({ "request": "switch", "id": id });
        assert_eq!(viewer.ask(switch, "switched").await, "ok");
        let source = if id == 7 { &mut one } else { &mut two };
        viewer
            .receive(0, || source.send(&mark(4 + n as u8)), is(4 + n as u8))
            .await;
    }
    // The sender restarts with another SSRC and other numbers.
    one.ssrc = 1_234;
    one.sequence = 40;
    one.timestamp = 77;
    viewer.receive(0, || one.send(&mark(200)), is(200)).await;

    let mut seen: Vec<u64> = viewer.peer.packets.iter().map(|p| p.seq).collect();
    seen.sort_unstable();
    seen.dedup();
    let gaps = seen
        .windows(2)
        .filter(|pair| pair[1] != pair[0] + 1)
        .count();
    assert_eq!(gaps, 0, "{seen:?}");
}

#[tokio::test]
async fn a_second_sender_waits_until_the_first_is_silent() {
    let server = server(1).await;
    let mut admin = server.attach(PACKAGE).await;
    let media = json!([{ "type": "audio", "mid": "a", "port": 0, "codec": "opus" }]);
    let ports = mountpoint(&mut admin, 7, media, json!({ "collision": 600_000 })).await;
    let mut first = Source::new(&ports[0]["port"]);
    let mut second = Source::new(&ports[0]["port"]);
    second.ssrc = 8;
    let mut viewer = Viewer::watch(&server, json!({ "id": 7 })).await;
    viewer.receive(0, || first.send(b"first"), |_| true).await;
    viewer
        .receive(
            0,
            || {
                second.send(b"second");
                first.send(b"last");
            },
            |p| p.payload == b"last",
        )
        .await;
    assert!(
        viewer
            .peer
            .packets
            .iter()
            .all(|packet| packet.payload != b"second")
    );
}

#[tokio::test]
async fn a_viewer_chooses_among_three_ports_and_is_told() {
    let server = server(2).await;
    let mut admin = server.attach(PACKAGE).await;
    let mut media = video("v");
    media["simulcast"] = json!(true);
    media["port2"] = json!(0);
    media["port3"] = json!(0);
    let ports = mountpoint(&mut admin, 7, json!([media]), json!({})).await;
    let names = ["port", "port_2", "port_3"];
    let mut sources: Vec<Source> = names.map(|name| Source::new(&ports[0][name])).into();
    for (n, source) in sources.iter_mut().enumerate() {
        source.ssrc = 100 + n as u32;
    }
    let mut send = move || {
        for (n, source) in sources.iter_mut().enumerate() {
            let mut keyframe = KEYFRAME.to_vec();
            keyframe.push(n as u8);
            source.send(&keyframe);
        }
    };
    let mut viewer = Viewer::watch(&server, json!({ "id": 7 })).await;
    viewer
        .receive(0, &mut send, |p| p.payload.last() == Some(&2))
        .await;
    let configure = json!({ "request": "configure", "mid": "v", "substream": 0 });
    assert_eq!(viewer.ask(configure, "event").await, "configured");
    viewer
        .receive(0, &mut send, |p| p.payload.last() == Some(&0))
        .await;
    let told = viewer
        .caller
        .until("/plugindata/data/result/substream", 0)
        .await;
    assert_eq!(told["plugindata"]["data"]["result"]["mid"], "v");
}

#[tokio::test]
async fn capture_times_pass_through_to_viewers_on_all_workers() {
    let server = server(2).await;
    let mut admin = server.attach(PACKAGE).await;
    let media = json!([{ "type": "audio", "mid": "a", "port": 0, "codec": "opus" }, video("v")]);
    // The source has the id 3, viewers are offered 7.
    let options = json!({ "abscapturetime_src_ext_id": 3 });
    let ports = mountpoint(&mut admin, 7, media, options).await;
    let times: [&[u8]; 2] = [&[1, 2, 3, 4, 5, 6, 7, 8], &[9; 16]];
    for _worker in 0..2 {
        let mut viewer = Viewer::watch(&server, json!({ "id": 7 })).await;
        for (media, time) in times.into_iter().enumerate() {
            let mut source = Source::new(&ports[media]["port"]);
            // Another extension of the source means nothing to viewers.
            let extensions = [(3, time), (4, b"x".as_slice())];
            let payload: &[u8] = if media == 0 { b"sound" } else { &KEYFRAME };
            let send = || source.send_with(&extensions, payload);
            let told = |p: &Packet| {
                p.extensions
                    .iter()
                    .any(|(id, value)| *id == 7 && value == time)
            };
            let packet = viewer.receive(media, send, told).await;
            assert!(packet.extensions.iter().all(|(_, value)| value != b"x"));
        }
    }
}

#[tokio::test]
async fn nonsense_on_every_port_breaks_nothing() {
    let server = server(2).await;
    let mut admin = server.attach(PACKAGE).await;
    let media = json!([
        { "type": "audio", "mid": "a", "port": 0, "rtcpport": 0, "codec": "opus", "skew": true },
        video("v"), { "type": "data", "mid": "d", "port": 0, "buffermsg": true },
    ]);
    let options = json!({ "bufferkf_ms": 1_000 });
    let ports = mountpoint(&mut admin, 7, media, options).await;
    let mut viewer = Viewer::watch(&server, json!({ "id": 7 })).await;
    let all: Vec<Source> = ports
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|port| [&port["port"], &port["rtcp_port"]])
        .filter(|port| port.is_u64())
        .map(Source::new)
        .collect();
    let mut state = 1_u64;
    let mut random = move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) as u8
    };
    for round in 0..200_usize {
        for source in &all {
            let mut datagram: Vec<u8> = (0..round * 7).map(|_| random()).collect();
            // Half of it looks like RTP or RTCP at first sight.
            if let Some(first) = datagram.first_mut().filter(|_| round % 2 == 0) {
                *first = 0x80 | (*first & 0x3f);
            }
            source.send_raw(&datagram);
        }
    }
    let mut audio = Source::new(&ports[0]["port"]);
    audio.ssrc = 4_242;
    viewer
        .receive(0, || audio.send(b"sound"), |p| p.payload == b"sound")
        .await;
    let totals = server.gateway.media_totals();
    let refused: u64 = totals.ingest_refused.iter().map(|(_, count)| count).sum();
    assert!(totals.ingested_packets > 0 && refused > 200, "{totals:?}");
    assert!(
        totals.ingested_bytes > totals.ingested_packets,
        "{totals:?}"
    );
    let destroyed = admin.manage(json!({ "request": "destroy", "id": 7 })).await;
    assert_eq!(destroyed["destroyed"], 7);
    viewer
        .caller
        .until("/plugindata/data/result/status", "stopped")
        .await;
    viewer.caller.until("/janus", "hangup").await;
}

#[tokio::test]
async fn a_destroyed_mountpoint_has_left_its_ports() {
    let server = server(2).await;
    let mut admin = server.attach(PACKAGE).await;
    let mut media = json!([video("v"), { "type": "data", "mid": "d", "port": 0 }]);
    let ports = mountpoint(&mut admin, 7, media.clone(), json!({})).await;
    media[0]["port"] = ports[0]["port"].clone();
    media[0]["rtcpport"] = ports[0]["rtcp_port"].clone();
    media[1]["port"] = ports[1]["port"].clone();
    for _ in 0..10 {
        let viewer = Viewer::watch(&server, json!({ "id": 7 })).await;
        let destroy = json!({ "request": "destroy", "id": 7 });
        assert_eq!(admin.manage(destroy).await["destroyed"], 7);
        // The same ports again. A busy one would be refused.
        mountpoint(&mut admin, 7, media.clone(), json!({})).await;
        drop(viewer);
    }
}
