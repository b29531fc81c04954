//! Recordings of publishers.

use std::time::Instant;

use portunus_core::sdp::{Codec, Kind};
use portunus_core::testing::{Line, TestClient};
use serde_json::{Value, json};

use crate::world::{AV, ROOM, World, ask, code, sync};

/// The files that are being recorded of a participant, by m-line.
async fn recorded(world: &World, client: &TestClient) -> Vec<Value> {
    let state = world.state(client).await;
    let streams = state["streams"].as_array().unwrap().iter();
    streams.map(|stream| stream["recording"].clone()).collect()
}

/// The gates of all taps, by m-line.
fn gates(world: &World) -> Vec<(String, bool)> {
    let outlets = world.requested().outlets.into_iter();
    let gate = outlets.map(|outlet| {
        let mid = outlet.from.track().unwrap().mid;
        (mid.as_str().to_owned(), outlet.options.enabled)
    });
    gate.collect()
}

fn gate(mid: &str, open: bool) -> (String, bool) {
    (mid.to_owned(), open)
}

async fn configure(client: &mut TestClient, mut members: Value) -> Value {
    members["request"] = json!("configure");
    ask(client, members).await
}

/// Names of files without the time in them.
fn timeless(name: &Value) -> String {
    let name = name.as_str().unwrap();
    let is_time = |part: &&str| part.len() > 10 && part.bytes().all(|b| b.is_ascii_digit());
    let parts = name.split('-').filter(|part| !is_time(part));
    parts.collect::<Vec<_>>().join("-")
}

#[tokio::test]
async fn nothing_is_recorded_unless_it_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::recording(folder.path(), json!({})).await;
    let mut al = world.publisher(1, &AV).await;
    configure(&mut al.client, json!({ "filename": "al" })).await;
    assert_eq!(
        recorded(&world, &al.client).await,
        [Value::Null, Value::Null]
    );
    assert!(world.requested().outlets.is_empty());
    assert_eq!(world.recorder.totals().started, 0);
    assert!(folder.path().read_dir().unwrap().next().is_none());
}

#[tokio::test]
async fn a_room_that_records_has_a_file_for_each_stream() {
    let folder = tempfile::tempdir().unwrap();
    let options = json!({ "record": true, "rec_dir": "rooms/a" });
    let world = World::recording(folder.path(), options).await;
    let lines = [Line::Audio, Line::Video, Line::Data];
    let mut al = world.publisher(1, &lines).await;
    let files = recorded(&world, &al.client).await;
    let names: Vec<_> = files.iter().map(timeless).collect();
    assert_eq!(
        names,
        [
            "videoroom-1234-user-1-audio-0.mjr",
            "videoroom-1234-user-1-video-1.mjr",
            "videoroom-1234-user-1-data-2.mjr",
        ]
    );
    let tap = world.requested().outlets[0].clone();
    let sound = [0x80, 111, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, b's'];
    assert!(tap.pretend_packet(&sound, Codec::Opus, Instant::now()));
    drop(tap);
    let outlets = world.requested().outlets;
    assert!(outlets[1].pretend_first(Kind::Video) && outlets[2].pretend_first(Kind::Data));
    drop(outlets);
    let list = json!({ "request": "list" });
    let listed = sync(&mut al.client, list).await["list"][0].clone();
    assert_eq!(listed["record"], true);
    assert_eq!(listed["listening_in"], json!({ "recordings": 1 }));
    // A private room is in no list, so the list of its participants has the same.
    let people = json!({ "request": "listparticipants", "room": ROOM });
    let people = sync(&mut al.client, people).await;
    for name in ["record", "listening_in"] {
        assert_eq!(people[name], listed[name]);
    }
    // Leaving ends them.
    ask(&mut al.client, json!({ "request": "leave" })).await;
    world.recorder.finished().await;
    for file in files {
        let path = folder.path().join("rooms/a").join(file.as_str().unwrap());
        assert!(path.exists(), "{path:?}");
    }
    assert_eq!(world.recorder.totals().frames, 3);
}

#[tokio::test]
async fn gates_follow_mute_and_moderation() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::recording(folder.path(), json!({ "record": true })).await;
    let mut al = world.publisher(1, &AV).await;
    assert_eq!(gates(&world), [gate("0", true), gate("1", true)]);
    configure(&mut al.client, json!({ "mid": "1", "send": false })).await;
    assert_eq!(gates(&world), [gate("0", true), gate("1", false)]);
    let moderate = |mute: bool| json!({ "request": "moderate", "room": ROOM, "id": 1, "mid": "0", "mute": mute });
    let mut admin = world.attach().await;
    sync(&mut admin, moderate(true)).await;
    assert_eq!(al.client.event().await["moderation"], "muted");
    assert_eq!(gates(&world), [gate("0", false), gate("1", false)]);
    sync(&mut admin, moderate(false)).await;
    assert_eq!(al.client.event().await["moderation"], "unmuted");
    configure(&mut al.client, json!({ "mid": "1", "send": true })).await;
    assert_eq!(gates(&world), [gate("0", true), gate("1", true)]);
    // The files stay the same.
    assert_eq!(world.recorder.totals().started, 2);
}

/// Starts audio and video. An m-line without packets has no file.
fn begin(world: &World) {
    let outlets = world.requested().outlets;
    for (outlet, kind) in outlets.iter().zip([Kind::Audio, Kind::Video]) {
        assert!(outlet.pretend_first(kind));
    }
}

#[tokio::test]
async fn publishers_record_themselves_under_their_own_names() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::recording(folder.path(), json!({})).await;
    let mut al = world.publisher(1, &AV).await;
    assert_eq!(
        recorded(&world, &al.client).await,
        [Value::Null, Value::Null]
    );
    // A name alone starts no recording.
    configure(&mut al.client, json!({ "filename": "al/1" })).await;
    assert!(world.requested().outlets.is_empty());
    configure(&mut al.client, json!({ "record": true })).await;
    let files = [json!("1-audio-0.mjr"), json!("1-video-1.mjr")];
    assert_eq!(recorded(&world, &al.client).await, files);
    begin(&world);
    // The next name is for the next files.
    configure(
        &mut al.client,
        json!({ "record": true, "filename": "al/2" }),
    )
    .await;
    assert_eq!(recorded(&world, &al.client).await, files);
    configure(&mut al.client, json!({ "record": false })).await;
    assert!(world.requested().outlets.is_empty());
    world.recorder.finished().await;
    configure(&mut al.client, json!({ "record": true })).await;
    let files = [json!("2-audio-0.mjr"), json!("2-video-1.mjr")];
    assert_eq!(recorded(&world, &al.client).await, files);
    begin(&world);
    // The room ends during the recording.
    let destroy = json!({ "request": "destroy", "room": ROOM });
    sync(&mut world.attach().await, destroy).await;
    world.recorder.finished().await;
    for name in [
        "1-audio-0.mjr",
        "1-video-1.mjr",
        "2-audio-0.mjr",
        "2-video-1.mjr",
    ] {
        assert!(folder.path().join("al").join(name).exists(), "{name}");
    }
}

#[tokio::test]
async fn enable_recording_is_for_all_who_are_there_and_come() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::recording(folder.path(), json!({ "secret": "s" })).await;
    let _al = world.publisher(1, &AV).await;
    let mut admin = world.attach().await;
    let record = |on: bool, secret: &str| json!({ "request": "enable_recording", "room": ROOM, "secret": secret, "record": on });
    assert_eq!(code(&sync(&mut admin, record(true, "x")).await), 433);
    let done = |on: bool| json!({ "videoroom": "success", "record": on });
    assert_eq!(sync(&mut admin, record(true, "s")).await, done(true));
    assert_eq!(world.requested().outlets.len(), 2);
    // A repetition changes nothing.
    assert_eq!(sync(&mut admin, record(true, "s")).await, done(true));
    let _bo = world.publisher(2, &AV).await;
    assert_eq!(world.requested().outlets.len(), 4);
    assert_eq!(sync(&mut admin, record(false, "s")).await, done(false));
    assert!(world.requested().outlets.is_empty());
    world.recorder.finished().await;
    assert_eq!(world.recorder.totals().started, 4);
    let _cy = world.publisher(3, &AV).await;
    assert!(world.requested().outlets.is_empty());
}

#[tokio::test]
async fn a_locked_room_needs_its_secret_and_says_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let options = json!({ "secret": "s", "lock_record": true });
    let world = World::recording(folder.path(), options).await;
    let mut al = world.publisher(1, &AV).await;
    for secret in [json!({}), json!({ "secret": "x" })] {
        let mut members = json!({ "record": true, "filename": "../x", "bitrate": 100_000 });
        members
            .as_object_mut()
            .unwrap()
            .extend(secret.as_object().unwrap().clone());
        let configured = configure(&mut al.client, members).await;
        assert_eq!(configured["configured"], "ok");
    }
    assert!(world.requested().outlets.is_empty());
    assert_eq!(world.state(&al.client).await["bitrate"], 100_000);
    let members = json!({ "record": true, "secret": "s" });
    configure(&mut al.client, members).await;
    assert_eq!(world.requested().outlets.len(), 2);
    configure(&mut al.client, json!({ "record": false })).await;
    assert_eq!(world.requested().outlets.len(), 2);
}

#[tokio::test]
async fn what_cannot_be_recorded_is_told_and_publishing_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("file"), "").unwrap();
    let options = json!({ "record": true, "rec_dir": "file" });
    let world = World::recording(folder.path(), options).await;
    let (mut al, _) = world.join(json!({ "id": 1 })).await;
    let offer = portunus_core::testing::jsep("offer", "alal", &AV);
    al.message(json!({ "request": "publish" }), Some(offer))
        .await;
    assert_eq!(al.event_with_jsep().await.0["configured"], "ok");
    for _ in 0..2 {
        let event = al.event().await;
        assert_eq!(event["event"], "recording_failed", "{event}");
        assert_eq!(event["room"], ROOM);
        assert!(event["error"].is_null());
    }
    // It is retried only on request.
    configure(&mut al, json!({ "bitrate": 100_000 })).await;
    assert_eq!(world.recorder.totals().started, 2);
    let edit = json!({ "request": "edit", "room": ROOM, "new_rec_dir": "ok" });
    sync(&mut world.attach().await, edit).await;
    configure(&mut al, json!({ "record": true })).await;
    assert_eq!(world.recorder.totals().open, 2);
    let outside = json!({ "record": true, "filename": "/tmp/x" });
    assert_eq!(code(&configure(&mut al, outside).await), 430);
}

#[tokio::test]
async fn a_room_says_what_files_are_like_and_publishers_may_too() {
    let folder = tempfile::tempdir().unwrap();
    let options = json!({ "record": true, "record_format": "webm" });
    let world = World::recording(folder.path(), options).await;
    let mut al = world.publisher(1, &AV).await;
    let files = recorded(&world, &al.client).await;
    let name = files[0].as_str().unwrap();
    assert!(name.starts_with("videoroom-1234-user-1-"), "{name}");
    assert!(name.ends_with(".webm"), "{name}");
    assert_eq!(files[0], files[1]);
    assert_eq!(gates(&world), [gate("0", true), gate("1", true)]);
    configure(&mut al.client, json!({ "video": false })).await;
    assert_eq!(gates(&world), [gate("0", true), gate("1", false)]);

    let wrong = json!({ "record": true, "record_format": "avi" });
    assert_eq!(code(&configure(&mut al.client, wrong).await), 430);
    configure(&mut al.client, json!({ "record": false })).await;
    assert_eq!(
        recorded(&world, &al.client).await,
        [Value::Null, Value::Null]
    );
    let own = json!({ "record": true, "filename": "al", "record_format": "opus" });
    configure(&mut al.client, own).await;
    assert_eq!(
        recorded(&world, &al.client).await,
        [json!("al.opus"), Value::Null]
    );
    assert!(world.requested().outlets[0].pretend_first(Kind::Audio));
    configure(&mut al.client, json!({ "record": false })).await;
    world.recorder.finished().await;
    let names = folder.path().read_dir().unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let manifests: Vec<String> = names.filter(|name| name.ends_with(".json")).collect();
    assert!(
        manifests
            .iter()
            .all(|name| name.starts_with("videoroom-1234-"))
    );
    assert!(!manifests.is_empty());
}

#[tokio::test]
async fn whoever_makes_a_room_that_cannot_be_recorded_is_told_why() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("file"), "").unwrap();
    let world = World::recording(folder.path(), json!({})).await;
    let mut client = world.attach().await;
    let create = |room: u64, more: Value| {
        let mut create = json!({ "request": "create", "room": room });
        create
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        create
    };
    for (room, more, fails) in [
        (7, json!({ "record": true }), false),
        (8, json!({ "record": true, "rec_dir": "new/folder" }), false),
        (9, json!({ "rec_dir": "file/below" }), false),
        (10, json!({ "record": true, "rec_dir": "file/below" }), true),
        (11, json!({ "record": true, "rec_dir": "/elsewhere" }), true),
    ] {
        let created = sync(&mut client, create(room, more)).await;
        assert_eq!(created["videoroom"], "created", "{created}");
        let reason = created["recording_failed"].as_str();
        assert_eq!(
            reason.is_some_and(|reason| !reason.is_empty()),
            fails,
            "{created}"
        );
    }
    let switch = |room: u64| json!({ "request": "enable_recording", "room": room, "record": true });
    for (room, fails) in [(7, false), (9, true)] {
        let switched = sync(&mut client, switch(room)).await;
        assert_eq!(switched["videoroom"], "success", "{switched}");
        assert_eq!(
            switched.get("recording_failed").is_some(),
            fails,
            "{switched}"
        );
    }
    let moved = json!({ "request": "edit", "room": 7, "new_rec_dir": "file/below" });
    let edited = sync(&mut client, moved).await;
    assert_eq!(edited["videoroom"], "edited", "{edited}");
    assert!(edited["recording_failed"].is_string(), "{edited}");
    // Without any recording, that is the reason.
    let world = World::new(json!({})).await;
    let mut client = world.attach().await;
    let created = sync(&mut client, create(7, json!({ "record": true }))).await;
    assert!(created["recording_failed"].is_string(), "{created}");
}
