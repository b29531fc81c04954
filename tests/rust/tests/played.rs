//! Mountpoints that play files, end to end.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

use std::sync::Arc;

use portunus_core::Plugin;
use portunus_core::record::Recorder;
use portunus_core::testing::everywhere;
use portunus_rtp::codec::{VideoCodec, is_keyframe};
use portunus_streaming::{Streaming, StreamingConfig};
use portunus_tests::{Caller, Packet, Peer, Server};
use serde_json::{Value, json};

const PACKAGE: &str = "janus.plugin.streaming";

async fn server() -> Server {
    Server::start_with(2, async |media| {
        let config = StreamingConfig {
            folders: vec!["/".into()],
            outgoing: everywhere(),
            ..StreamingConfig::default()
        };
        let plugin = Streaming::start(config, media, Recorder::default()).await;
        Arc::new(plugin.unwrap()) as Arc<dyn Plugin>
    })
    .await
}

fn file(name: &str) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../crates/files/tests/data");
    // No name may leave the folder.
    let folder = std::fs::canonicalize(folder).unwrap();
    format!("{}/{name}", folder.display())
}

async fn create(admin: &mut Caller, kind: &str, filename: &str, more: Value) -> Value {
    let mut body = json!({ "request": "create", "type": kind, "filename": filename });
    let members = body.as_object_mut().unwrap();
    members.extend(more.as_object().unwrap().clone());
    admin.manage(body).await
}

async fn watch(server: &Server, id: u64) -> (Caller, Peer) {
    let mut caller = server.attach(PACKAGE).await;
    let watch = json!({ "request": "watch", "id": id });
    caller.message(watch, None).await;
    let status = "/plugindata/data/result/status";
    let preparing = caller.until(status, "preparing").await;
    let mut peer = Peer::answering().await;
    let answer = peer.answer(preparing["jsep"]["sdp"].as_str().unwrap());
    let start = json!({ "request": "start" });
    caller.message(start, Some(("answer", &answer))).await;
    peer.connect().await;
    (caller, peer)
}

fn of_line(peer: &Peer, media: usize) -> Vec<Packet> {
    let packets = peer.packets.iter().filter(|packet| packet.media == media);
    packets.cloned().collect()
}

#[tokio::test]
async fn each_viewer_gets_sound_and_a_picture_from_a_keyframe_on() {
    let server = server().await;
    let mut admin = server.attach(PACKAGE).await;
    for (id, kind) in [(1, "live"), (2, "ondemand")] {
        let filename = file("vp8-opus.webm");
        let created = create(&mut admin, kind, &filename, json!({ "id": id })).await;
        assert_eq!(created["streaming"], "created", "{created}");
        // The second viewer comes late, and on the other worker.
        for _ in 0..2 {
            let (_caller, mut peer) = watch(&server, id).await;
            peer.run_until(|peer| of_line(peer, 0).len() > 20 && of_line(peer, 1).len() > 20)
                .await;
            let (sound, picture) = (of_line(&peer, 0), of_line(&peer, 1));
            for pair in sound.windows(2) {
                assert_eq!(pair[1].timestamp.wrapping_sub(pair[0].timestamp), 960);
            }
            assert!(is_keyframe(VideoCodec::Vp8, &picture[0].payload), "{kind}");
        }
    }
}

#[tokio::test]
async fn a_file_for_all_that_was_disabled_goes_on_with_a_keyframe() {
    let server = server().await;
    let mut admin = server.attach(PACKAGE).await;
    let filename = file("vp8-opus.webm");
    let created = create(&mut admin, "live", &filename, json!({ "id": 1 })).await;
    assert_eq!(created["streaming"], "created", "{created}");
    let (_caller, mut peer) = watch(&server, 1).await;
    // The file lasts a second.
    let picture = |packet: &Packet| packet.payload[packet.payload.len() - 16..].to_vec();
    let pictures = |peer: &Peer| -> Vec<Vec<u8>> { of_line(peer, 1).iter().map(picture).collect() };
    peer.run_until(|peer| of_line(peer, 1).len() > 60).await;
    let once = pictures(&peer);
    let after = |one: &[u8], other: &[u8]| {
        once.windows(2)
            .any(|pair| pair[0] == one && pair[1] == other)
    };
    for _ in 0..3 {
        for request in ["disable", "enable"] {
            let done = admin.manage(json!({ "request": request, "id": 1 })).await;
            assert_eq!(done["streaming"], "ok");
            peer.run_for(std::time::Duration::from_millis(330)).await;
        }
        let before = of_line(&peer, 1).len();
        peer.run_until(|peer| of_line(peer, 1).len() > before + 10)
            .await;
    }
    let (packets, pictures) = (of_line(&peer, 1), pictures(&peer));
    for (n, pair) in pictures.windows(2).enumerate() {
        let keyframe = is_keyframe(VideoCodec::Vp8, &packets[n + 1].payload);
        assert!(keyframe || after(&pair[0], &pair[1]), "picture {}", n + 1);
        assert_eq!(packets[n + 1].seq, packets[n].seq + 1);
    }
}

/// Writes a minute of A-law, each second with its own byte: 0, 1, 2, …
fn minute(folder: &std::path::Path) -> String {
    let samples: Vec<u8> = (0..60).flat_map(|second| [second; 8_000]).collect();
    let path = folder.canonicalize().unwrap().join("minute.alaw");
    std::fs::write(&path, samples).unwrap();
    path.display().to_string()
}

#[tokio::test]
async fn a_viewer_on_demand_seeks_and_hears_no_gap() {
    let folder = tempfile::tempdir().unwrap();
    let server = server().await;
    let mut admin = server.attach(PACKAGE).await;
    let filename = minute(folder.path());
    let created = create(&mut admin, "ondemand", &filename, json!({ "id": 3 })).await;
    assert_eq!(created["streaming"], "created");
    let (mut one, mut first) = watch(&server, 3).await;
    let (_other, mut second) = watch(&server, 3).await;
    let position = |packet: &Packet| packet.payload[0];
    let heard = |peer: &Peer, second| peer.packets.iter().any(|it| position(it) == second);
    first.run_until(|peer| heard(peer, 0)).await;
    for to in [50.5, 20.0, 58.9] {
        let seek = json!({ "request": "seek", "position": to });
        one.message(seek, None).await;
        let status = "/plugindata/data/result/status";
        let seeking = one.until(status, "seeking").await;
        assert_eq!(seeking["plugindata"]["data"]["result"]["position"], to);
        first.run_until(|peer| heard(peer, to as u8)).await;
    }
    // To the end, and from the start again.
    let loops = |peer: &Peer| peer.packets.last().is_some_and(|it| position(it) == 0);
    first.run_until(|peer| heard(peer, 59) && loops(peer)).await;

    let packets = &first.packets;
    for pair in packets.windows(2) {
        assert_eq!(pair[1].seq, pair[0].seq + 1, "no number is missing");
        let step = pair[1].timestamp.wrapping_sub(pair[0].timestamp);
        assert_eq!(step, 160, "as long as a packet lasts");
    }
    let mut order: Vec<u8> = packets.iter().map(position).collect();
    order.dedup();
    assert_eq!(order[0], 0);
    // Packets that were read ahead are not heard, only those at the positions, in the requested
    // order.
    let wanted = [50, 20, 58, 59, 0];
    let jumps: Vec<u8> = order
        .iter()
        .copied()
        .filter(|second| wanted.contains(second))
        .collect();
    assert_eq!(jumps, [0, 50, 20, 58, 59, 0], "{order:?}");
    // The other viewer's file continued from its start.
    second.run_until(|peer| heard(peer, 1)).await;
    assert!(second.packets.iter().all(|it| position(it) < 20));
}

#[tokio::test]
async fn after_a_seek_the_picture_begins_with_a_keyframe() {
    let server = server().await;
    let mut admin = server.attach(PACKAGE).await;
    let filename = file("vp8-opus.webm");
    let created = create(&mut admin, "ondemand", &filename, json!({ "id": 2 })).await;
    assert_eq!(created["streaming"], "created");
    let (mut caller, mut peer) = watch(&server, 2).await;
    peer.run_until(|peer| of_line(peer, 1).len() > 5).await;
    caller
        .message(json!({ "request": "seek", "position": 0.9 }), None)
        .await;
    caller
        .until("/plugindata/data/result/status", "seeking")
        .await;
    let before = of_line(&peer, 1).len();
    let keyframe = |packet: &Packet| is_keyframe(VideoCodec::Vp8, &packet.payload);
    peer.run_until(|peer| of_line(peer, 1).iter().skip(before).any(keyframe))
        .await;
    peer.run_until(|peer| of_line(peer, 1).len() > before + 20)
        .await;
    for line in 0..2 {
        for pair in of_line(&peer, line).windows(2) {
            assert_eq!(pair[1].seq, pair[0].seq + 1, "m-line {line}");
        }
    }
}

#[tokio::test]
async fn what_cannot_be_played_is_refused() {
    let server = server().await;
    let mut admin = server.attach(PACKAGE).await;
    for (filename, more, said) in [
        (file("h264-aac.mp4"), json!({}), "AAC"),
        (file("none.webm"), json!({}), "none.webm"),
        (file("../a.opus"), json!({}), "../"),
        (file("tone.opus"), json!({ "audiocodec": "pcma" }), "opus"),
        (
            file("av1.webm"),
            json!({ "audio": true, "videocodec": "vp8" }),
            "av1",
        ),
    ] {
        for kind in ["live", "ondemand"] {
            let refused = create(&mut admin, kind, &filename, more.clone()).await;
            assert_eq!(refused["error_code"], 456, "{refused}");
            assert!(
                refused["error"].as_str().unwrap().contains(said),
                "{refused}"
            );
        }
    }
    let more = json!({ "audio": false, "video": true });
    let created = create(&mut admin, "live", &file("h264-aac.mp4"), more).await;
    assert_eq!(created["streaming"], "created", "{created}");
}
