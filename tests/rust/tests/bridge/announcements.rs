//! Files played to a room.

use std::path::Path;

use portunus_audiobridge::AudioBridgeConfig;
use portunus_core::record::Recorder;
use portunus_sdp::Direction;
use portunus_tests::{Server, ogg_opus, serve};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::world::{
    Member, ROOM, create, manage, merge, opus_encoder, opus_packet, samples, server, talk, talk_for,
};

const A: f32 = 400.0;
const B: f32 = 700.0;
const BELL: f32 = 1_100.0;

/// Writes a file with the tone of a bell.
fn bell(folder: &TempDir, frames: u32) -> String {
    let path = folder.path().join("bell.opus");
    let mut encoder = opus_encoder();
    let packet = |frame| opus_packet(&mut encoder, &samples(BELL, 48_000, frame));
    ogg_opus(&path, (0..frames).map(packet));
    path.display().to_string()
}

async fn with_files(folder: &Path) -> Server {
    let config = AudioBridgeConfig {
        folders: vec![folder.to_owned()],
        ..AudioBridgeConfig::default()
    };
    let server = server(config, Recorder::default()).await;
    create(&server, json!({})).await;
    server
}

/// Sends a request about the bell.
async fn ask(server: &Server, name: &str, members: Value) -> Value {
    let mut request = json!({ "request": name, "room": ROOM, "file_id": "bell" });
    merge(&mut request, members);
    manage(server, request).await
}

async fn is_playing(server: &Server) -> bool {
    let reply = ask(server, "is_playing", json!({})).await;
    reply["playing"].as_bool().unwrap()
}

/// Returns the notifications about files, up to the end of one.
async fn told_of_files(member: &mut Member) -> Vec<Value> {
    let mut told = Vec::new();
    loop {
        let message = member.caller.next().await;
        let data = message["plugindata"]["data"].clone();
        let what = data["audiobridge"].as_str().unwrap_or_default();
        if !what.starts_with("announcement-") {
            continue;
        }
        let is_over = what == "announcement-stopped";
        told.push(data);
        if is_over {
            return told;
        }
    }
}

fn start_and_stop() -> [Value; 2] {
    ["announcement-started", "announcement-stopped"]
        .map(|what| json!({ "audiobridge": what, "room": ROOM, "file_id": "bell" }))
}

fn all_hear_it(it: &[&mut Member]) -> bool {
    it.iter().all(|one| one.hears(BELL))
}

fn none_hears_it(it: &[&mut Member]) -> bool {
    it.iter().all(|one| one.is_deaf_to(BELL))
}

#[tokio::test]
async fn a_file_is_heard_by_all_who_talk_too_and_all_are_told_of_its_start_and_end() {
    let folder = tempfile::tempdir().unwrap();
    let file = bell(&folder, 150);
    let server = with_files(folder.path()).await;
    let mut ann = Member::join(&server, A, json!({ "id": 1 })).await;
    let mut bob = Member::join(&server, B, json!({ "id": 2, "muted": true })).await;
    talk(&mut [&mut ann, &mut bob], "a talk", |it| it[1].hears(A)).await;
    let play = || ask(&server, "play_file", json!({ "filename": file }));
    let played = json!({ "audiobridge": "success", "room": ROOM, "file_id": "bell" });
    assert_eq!(play().await, played);
    let taken = play().await;
    assert_eq!(taken["error_code"], 490, "{taken}");
    talk(&mut [&mut ann, &mut bob], "a bell", all_hear_it).await;
    assert!(is_playing(&server).await);
    assert!(bob.hears(A), "whoever talks is heard meanwhile");
    talk(&mut [&mut ann, &mut bob], "its end", none_hears_it).await;
    for member in [&mut ann, &mut bob] {
        assert_eq!(told_of_files(member).await, start_and_stop());
    }
    assert!(!is_playing(&server).await);
    // The id is free again.
    assert_eq!(play().await, played);
}

#[tokio::test]
async fn a_file_is_played_again_and_again_until_it_is_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let file = bell(&folder, 25);
    let server = with_files(folder.path()).await;
    let mut ann = Member::join(&server, A, json!({})).await;
    ask(
        &server,
        "play_file",
        json!({ "filename": file, "loop": true }),
    )
    .await;
    talk(&mut [&mut ann], "a bell", all_hear_it).await;
    talk_for(&mut [&mut ann], 100).await;
    talk(&mut [&mut ann], "the bell still", all_hear_it).await;
    assert!(is_playing(&server).await);
    let stopped = json!({ "audiobridge": "success", "room": ROOM, "file_id": "bell" });
    assert_eq!(ask(&server, "stop_file", json!({})).await, stopped);
    assert!(!is_playing(&server).await);
    assert_eq!(told_of_files(&mut ann).await, start_and_stop());
    talk(&mut [&mut ann], "its end", none_hears_it).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_listener_by_whep_hears_a_file_in_an_empty_room() {
    let folder = tempfile::tempdir().unwrap();
    let file = bell(&folder, 25);
    let server = with_files(folder.path()).await;
    let (_transports, to) = serve(&server.gateway).await;
    let path = format!("/whep/audiobridge/{ROOM}");
    let (mut eve, _) = Member::by_http(&server, (to, &path), A, Direction::RecvOnly).await;
    eve.is_silent = true;
    ask(
        &server,
        "play_file",
        json!({ "filename": file, "loop": true }),
    )
    .await;
    talk(&mut [&mut eve], "a bell", all_hear_it).await;
    let stopped = ask(&server, "stop_all_files", json!({})).await;
    assert_eq!(stopped["file_id_list"], json!(["bell"]));
}
