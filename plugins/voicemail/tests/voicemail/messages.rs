//! The start and the end of messages, and their files.

use std::time::{Duration, Instant};

use portunus_core::testing::Line;
use portunus_core::{Plugin, PublicFile, PublicFiles};
use serde_json::json;

use crate::world::{World, address, detached, offer, packets, record, say};

#[tokio::test]
async fn a_message_is_recorded_until_it_is_stopped() {
    let world = World::new();
    let mut client = world.attach().await;
    let answer = record(&mut client).await;
    let [file] = world.files().try_into().unwrap();
    world.up().await;
    let started = json!({ "voicemail": "event", "status": "started" });
    assert_eq!(client.event().await, started);
    client.next().await; // webrtcup
    say(&world.tap(), Instant::now(), 0..100);

    let id = world.state(&client).await["id"].as_u64().unwrap();
    assert!(
        answer.contains(&format!("s=VoiceMail {id}\r\n")),
        "{answer}"
    );
    client.message(json!({ "request": "STOP" }), None).await;
    let done = client.event().await;
    let name = format!("janus-voicemail-{id}.opus");
    assert_eq!(address(&done), format!("/recordings//{name}"));
    // The file is complete before the client learns of it.
    assert_eq!(file.file_name().unwrap(), name.as_str());
    assert_eq!(packets(&file), 100);
    detached(&mut client).await;
    assert_eq!(world.counter("messages"), 1);
    assert_eq!(world.counter("completed_messages"), 1);
}

#[tokio::test]
async fn it_ends_with_the_first_packet_after_its_time() {
    let world = World::with(|mail| mail.max_duration = Duration::from_secs(2), |_| {});
    let mut client = world.attach().await;
    record(&mut client).await;
    world.up().await;
    assert_eq!(client.event().await["status"], "started");
    client.next().await;
    // Without packets it would not end.
    client.expect_silence().await;
    say(&world.tap(), Instant::now(), 0..500);
    let done = client.event().await;
    let url = address(&done);
    detached(&mut client).await;
    let [file] = world.files().try_into().unwrap();
    assert!(url.ends_with(file.file_name().unwrap().to_str().unwrap()));
    assert!((98..=102).contains(&packets(&file)), "{}", packets(&file));
}

#[tokio::test]
async fn whoever_asks_for_a_length_is_told_which_holds() {
    for (wanted, told) in [(3, 3), (3_600, 10), (0, 1)] {
        let world = World::new();
        let mut client = world.attach().await;
        let body = json!({ "request": "record", "max_duration": wanted });
        client.message(body, Some(offer(&[Line::Audio]))).await;
        assert_eq!(
            client.event().await,
            json!({ "voicemail": "event", "status": "starting", "max_duration": told })
        );
        world.up().await;
        assert_eq!(
            client.event().await,
            json!({ "voicemail": "event", "status": "started", "max_duration": told })
        );
        client.next().await;
        say(&world.tap(), Instant::now(), 0..800);
        address(&client.event().await);
        let [file] = world.files().try_into().unwrap();
        assert!(packets(&file).abs_diff(told * 50) <= 2);
    }
}

#[tokio::test]
async fn only_the_first_sound_is_taken() {
    let world = World::new();
    let mut client = world.attach().await;
    let lines = [Line::Video, Line::Audio, Line::Audio, Line::Data];
    let body = json!({ "request": "record", "filename": "../../etc/x" });
    client.message(body, Some(offer(&lines))).await;
    let (_, answer) = client.event_with_jsep().await;
    let answer = answer.unwrap()["sdp"].as_str().unwrap().to_owned();
    let lines: Vec<_> = answer.lines().filter(|it| it.starts_with("m=")).collect();
    let [video, heard, other, data] = lines.try_into().unwrap();
    for rejected in [video, other, data] {
        assert_eq!(rejected.split(' ').nth(1), Some("0"), "{rejected}");
    }
    assert!(heard.ends_with(" 111"), "{heard}");
    assert!(answer.contains("a=recvonly") && !answer.contains("red/48000"));
    // Names in requests are ignored.
    assert_eq!(world.files().len(), 1);
    assert_eq!(std::fs::read_dir(world.folder.path()).unwrap().count(), 1);
}

#[tokio::test]
async fn an_update_goes_on_with_the_same_message() {
    let world = World::new();
    let mut client = world.attach().await;
    let first = record(&mut client).await;
    let body = json!({ "request": "update" });
    client.message(body, Some(offer(&[Line::Audio]))).await;
    let (data, answer) = client.event_with_jsep().await;
    let updating = json!({ "voicemail": "event", "status": "updating" });
    assert_eq!(data, updating);
    let answer = answer.unwrap()["sdp"].as_str().unwrap().to_owned();
    let version = |sdp: &str| -> u64 {
        let origin = sdp.lines().find(|line| line.starts_with("o=")).unwrap();
        origin.split(' ').nth(2).unwrap().parse().unwrap()
    };
    assert_eq!(version(&answer), version(&first) + 1);
    assert_eq!(world.files().len(), 1);
    assert_eq!(world.state(&client).await["state"], "recording");
}

#[tokio::test]
async fn a_lost_connection_ends_the_message_and_another_can_follow() {
    let world = World::new();
    let mut client = world.attach().await;
    record(&mut client).await;
    say(&world.tap(), Instant::now(), 0..50);
    world.lose().await;
    assert_eq!(client.next().await["janus"], "hangup");
    world.recorder.finished().await;
    let [first] = world.files().try_into().unwrap();
    assert_eq!(packets(&first), 50);
    client.expect_silence().await;
    assert_eq!(world.state(&client).await["state"], "idle");

    record(&mut client).await;
    assert_eq!(world.files().len(), 2);
    assert_eq!(packets(&first), 50);
}

#[tokio::test]
async fn stop_works_without_a_message() {
    let world = World::new();
    let mut client = world.attach().await;
    client.message(json!({ "request": "stop" }), None).await;
    let done = client.event().await;
    assert!(address(&done).starts_with("/recordings//janus-voicemail-"));
    detached(&mut client).await;
    assert!(world.files().is_empty());
}

#[tokio::test]
async fn a_client_that_goes_leaves_a_whole_file() {
    let world = World::new();
    let mut client = world.attach().await;
    record(&mut client).await;
    say(&world.tap(), Instant::now(), 0..50);
    client.on_handle("detach", json!({})).await;
    world.recorder.finished().await;
    let [file] = world.files().try_into().unwrap();
    assert_eq!(packets(&file), 50);
}

#[tokio::test]
async fn a_message_as_long_as_a_file_may_be_is_done() {
    let world = World::with(|_| {}, |recording| recording.max_file_bytes = 2_000);
    let mut client = world.attach().await;
    record(&mut client).await;
    say(&world.tap(), Instant::now(), 0..1_000);
    address(&client.event().await);
    detached(&mut client).await;
    let [file] = world.files().try_into().unwrap();
    assert!(file.metadata().unwrap().len() <= 2_000);
    assert!(packets(&file) >= 50);
    assert_eq!(world.counter("failed_messages"), 0);
}

#[tokio::test]
async fn messages_and_nothing_else_are_served_at_their_address() {
    let world = World::new();
    let mut client = world.attach().await;
    record(&mut client).await;
    let [file] = world.files().try_into().unwrap();
    let name = file.file_name().unwrap().to_str().unwrap();
    std::fs::write(file.with_file_name("secret.txt"), "x").unwrap();
    let files = world.plugin.files().unwrap();
    for path in [
        format!("/recordings//{name}"),
        format!("/recordings/{name}"),
    ] {
        let found = files.find(&path).and_then(PublicFile::locate);
        assert_eq!(found, Some(file.clone()));
    }
    for path in [
        "/recordings/secret.txt",
        "/recordings/",
        "/recordings/../voicemail/secret.txt",
        "/janus",
    ] {
        assert!(files.find(path).is_none(), "{path}");
    }
    let closed = World::with(|mail| mail.serve = false, |_| {});
    assert!(closed.plugin.files().is_none());
    let _: &dyn PublicFiles = files;
}
