//! Streams of mountpoints into files.

use std::path::Path;
use std::time::Instant;

use portunus_core::media::DataPayload;
use portunus_core::sdp::{Codec, Kind};
use portunus_core::testing::TestClient;
use portunus_files::mjr::{FrameReader, Info};
use serde_json::{Value, json};

use crate::world::{World, camera, create, refused};

/// Returns the description and the frames of a file.
fn read(path: &Path) -> (Info, Vec<Vec<u8>>) {
    let mut reader = FrameReader::new();
    reader.push(&std::fs::read(path).unwrap());
    let mut frames = Vec::new();
    while let Some(frame) = reader.next().unwrap() {
        frames.push(frame.bytes.to_vec());
    }
    reader.finish().unwrap();
    (reader.info().unwrap().clone(), frames)
}

fn start(media: Value) -> Value {
    json!({ "request": "recording", "id": 7, "action": "start", "media": media })
}

fn stop(mid: &str) -> Value {
    json!({ "request": "recording", "id": 7, "action": "stop", "media": [{ "mid": mid }] })
}

async fn done(client: &mut TestClient, body: Value) {
    let reply = client.request(body).await;
    assert_eq!(reply, json!({ "streaming": "ok" }));
}

/// Returns the files in `info`.
async fn recorded(client: &mut TestClient) -> Vec<String> {
    let info = client.request(json!({ "request": "info", "id": 7 })).await;
    let media = info["info"]["media"].as_array().unwrap().iter();
    media
        .filter_map(|stream| Some(stream["recording"].as_str()?.to_owned()))
        .collect()
}

/// Waits until the server has closed all files.
async fn all_written(world: &World) {
    world.recorder.finished().await;
}

#[tokio::test]
async fn streams_are_recorded_until_they_are_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::recording(folder.path()).await;
    let mut client = world.client().await;
    create(&mut client, camera(7)).await;
    let media = json!([
        { "mid": "a", "filename": "show/sound" },
        { "mid": "d", "filename": "show/chat" },
    ]);
    done(&mut client, start(media)).await;
    assert_eq!(recorded(&mut client).await, ["sound.mjr", "chat.mjr"]);
    let outlets = world.server.requested().outlets;
    let sound = [0x80, 111, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, b's'];
    assert!(outlets[0].pretend_packet(&sound, Codec::Opus, Instant::now()));
    let hello = DataPayload::Text("hello".to_owned());
    assert!(outlets[1].pretend_message("JanusDataChannel", hello));
    drop(outlets);

    done(&mut client, stop("a")).await;
    assert_eq!(recorded(&mut client).await, ["chat.mjr"]);
    // Stopped is stopped.
    done(&mut client, stop("a")).await;
    done(&mut client, stop("d")).await;
    all_written(&world).await;
    let (info, frames) = read(&folder.path().join("show/sound.mjr"));
    assert_eq!(info.codec, "opus");
    assert_eq!(info.description.as_deref(), Some("audio"));
    // The SSRC is the mountpoint's id.
    let mut written = sound;
    written[8..12].copy_from_slice(&7u32.to_be_bytes());
    assert_eq!(frames, [written]);
    let (info, frames) = read(&folder.path().join("show/chat.mjr"));
    assert_eq!(info.codec, "text");
    assert_eq!(frames, [b"hello"]);
}

#[tokio::test]
async fn older_clients_name_kinds() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::recording(folder.path()).await;
    let mut client = world.client().await;
    create(&mut client, camera(7)).await;
    let start = json!({
        "request": "recording", "id": 7, "action": "start", "audio": "x-a", "video": "x-v",
    });
    done(&mut client, start).await;
    assert_eq!(recorded(&mut client).await, ["x-a.mjr", "x-v.mjr"]);
    let stop = json!({
        "request": "recording", "id": 7, "action": "stop", "audio": true, "video": false,
    });
    done(&mut client, stop).await;
    assert_eq!(recorded(&mut client).await, ["x-v.mjr"]);
}

#[tokio::test]
async fn what_cannot_be_recorded_is_said() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("file"), "").unwrap();
    let world = World::recording(folder.path()).await;
    let mut client = world.client().await;
    create(&mut client, camera(7)).await;
    let one = |mid: &str, name: &str| start(json!([{ "mid": mid, "filename": name }]));
    for (code, body) in [
        (452, start(json!([]))),
        (454, one("x", "a")),
        (453, start(json!([{ "mid": "a" }]))),
        (459, one("a", "../a")),
        (459, one("a", "/etc/a")),
        (459, one("a", "")),
        // The folder is a file.
        (459, one("a", "file/a")),
        (454, stop("x")),
    ] {
        assert_eq!(refused(&mut client, body.clone()).await, code, "{body}");
    }
    done(&mut client, one("a", "a")).await;
    assert_eq!(refused(&mut client, one("a", "b")).await, 452);
    assert_eq!(refused(&mut client, one("v", "a")).await, 459);
    // Several recordings start together, or none.
    let both = start(json!([
        { "mid": "v", "filename": "v" }, { "mid": "d", "filename": "file/d" },
    ]));
    assert_eq!(refused(&mut client, both).await, 459);
    assert_eq!(recorded(&mut client).await, ["a.mjr"]);
    // An existing recording is not overwritten.
    assert!(world.server.requested().outlets[0].pretend_first(Kind::Audio));
    done(&mut client, stop("a")).await;
    all_written(&world).await;
    assert_eq!(refused(&mut client, one("a", "a")).await, 459);
    // Without a mountpoint's secret, no file is named.
    let edit = json!({ "request": "edit", "id": 7, "new_secret": "s" });
    client.request(edit).await;
    let mut wrong = one("a", "c");
    wrong["secret"] = json!("x");
    assert_eq!(refused(&mut client, wrong).await, 457);
}

#[tokio::test]
async fn a_mountpoint_that_is_disabled_stops_recording_unless_told_otherwise() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::recording(folder.path()).await;
    let mut client = world.client().await;
    create(&mut client, camera(7)).await;
    let enabled = || world.server.requested().ingests.iter().all(|it| it.enabled);
    let a = start(json!([{ "mid": "a", "filename": "a" }]));
    done(&mut client, a).await;
    let keep = json!({ "request": "disable", "id": 7, "stop_recording": false });
    done(&mut client, keep).await;
    assert_eq!(recorded(&mut client).await, ["a.mjr"]);
    assert!(enabled());
    // The packets have no receiver then.
    done(&mut client, stop("a")).await;
    assert!(!enabled());
    done(&mut client, json!({ "request": "enable", "id": 7 })).await;
    assert!(enabled());
    let b = start(json!([{ "mid": "a", "filename": "b" }]));
    done(&mut client, b).await;
    done(&mut client, json!({ "request": "disable", "id": 7 })).await;
    assert!(recorded(&mut client).await.is_empty());
    assert!(!enabled());
}

#[tokio::test]
async fn recordings_end_with_their_mountpoint() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::recording(folder.path()).await;
    let mut client = world.client().await;
    create(&mut client, camera(7)).await;
    let a = start(json!([{ "mid": "a", "filename": "a" }]));
    done(&mut client, a).await;
    assert!(world.server.requested().outlets[0].pretend_first(Kind::Audio));
    client
        .request(json!({ "request": "destroy", "id": 7 }))
        .await;
    all_written(&world).await;
    assert!(folder.path().join("a.mjr").exists());
    assert!(world.server.requested().outlets.is_empty());
}

#[tokio::test]
async fn what_is_recorded_comes_in_while_the_mountpoint_is_disabled() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("file"), "").unwrap();
    let world = World::recording(folder.path()).await;
    let mut client = world.client().await;
    create(&mut client, camera(7)).await;
    let enabled = || world.server.requested().ingests.iter().all(|it| it.enabled);
    let (_viewer, peer) = world.viewer(json!({ "id": 7 })).await;
    done(&mut client, json!({ "request": "disable", "id": 7 })).await;
    let a = start(json!([{ "mid": "a", "filename": "a" }]));
    done(&mut client, a).await;
    assert!(enabled());
    assert!(world.routes(peer).iter().all(|route| !route.2));
    done(&mut client, stop("a")).await;
    assert!(!enabled());
    // Without a recording, the source stays closed.
    let bad = start(json!([{ "mid": "a", "filename": "file/a" }]));
    assert_eq!(refused(&mut client, bad).await, 459);
    assert!(!enabled());
}

#[tokio::test]
async fn streams_share_a_file_that_plays() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::recording(folder.path()).await;
    let mut client = world.client().await;
    create(&mut client, camera(7)).await;
    let start = |format: Value| {
        json!({
            "request": "recording", "id": 7, "action": "start", "record_format": format,
            "media": [{ "mid": "a", "filename": "show" }, { "mid": "v", "filename": "other" }],
        })
    };
    let refused = client.request(start(json!("avi"))).await;
    assert!(refused["error_code"].is_u64(), "{refused}");
    done(&mut client, start(json!("webm"))).await;
    assert_eq!(recorded(&mut client).await, ["show.webm", "show.webm"]);
    let again = client.request(start(json!("webm"))).await;
    assert!(again["error_code"].is_u64(), "{again}");
    done(&mut client, stop("a")).await;
    assert_eq!(recorded(&mut client).await, ["show.webm"]);
    done(&mut client, stop("v")).await;
    assert!(recorded(&mut client).await.is_empty());
    all_written(&world).await;
    assert_eq!(world.recorder.totals().open, 0);
}
