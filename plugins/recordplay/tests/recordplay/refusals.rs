//! Refusals with their codes, and that they leave nothing behind.

use portunus_core::testing::{Line, TestClient};
use serde_json::{Value, json};

use crate::world::{PACKAGE, World, answer_to, ask, offer, play, record};

/// Returns the code and the text of a refusal in an event.
async fn refused(client: &mut TestClient, body: Value, jsep: Option<Value>) -> (u64, String) {
    client.message(body.clone(), jsep).await;
    let (data, answer) = client.event_with_jsep().await;
    assert_eq!((&data["recordplay"], answer), (&json!("event"), None));
    let text = data["error"]
        .as_str()
        .unwrap_or_else(|| panic!("{body}: {data}"));
    (data["error_code"].as_u64().unwrap(), text.to_owned())
}

#[tokio::test]
async fn every_error_has_its_code_and_text() {
    let world = World::new().await;
    let mut client = world.attach().await;
    // These are answered at once.
    for (body, code, text) in [
        (json!({}), 415, "Missing mandatory element (request)"),
        (
            json!({ "request": 7 }),
            414,
            "Invalid element type (request should be a string)",
        ),
        (json!({ "request": "x" }), 413, "Unknown request 'x'"),
        (
            json!({ "request": "configure", "video-bitrate-max": -1 }),
            414,
            "Invalid element type (video-bitrate-max should be a positive integer)",
        ),
    ] {
        let told = client.request(body.clone()).await;
        let expected = json!({ "recordplay": "event", "error_code": code, "error": text });
        assert_eq!(told, expected, "{body}");
    }
    world.shelve(1, |_| {});
    client.request(json!({ "request": "update" })).await;
    let audio = || Some(offer(&[Line::Audio]));
    let named = |more: Value| {
        let mut body = json!({ "request": "record", "name": "n" });
        body.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        body
    };
    for (body, jsep, code, text) in [
        (
            json!({ "request": "record" }),
            None,
            415,
            "Missing SDP offer",
        ),
        (
            json!({ "request": "record" }),
            audio(),
            415,
            "Missing mandatory element (name)",
        ),
        (
            named(json!({ "name": "" })),
            audio(),
            414,
            "Invalid element (name should be a text that is not empty)",
        ),
        (
            named(json!({ "id": "x" })),
            audio(),
            414,
            "Invalid element type (id should be a positive integer)",
        ),
        (
            named(json!({ "filename": "a/b" })),
            audio(),
            414,
            "Invalid element (filename should be a name without folders)",
        ),
        (
            named(json!({ "filename": "../b" })),
            audio(),
            414,
            "Invalid element (filename should be a name without folders)",
        ),
        (
            named(json!({ "audiocodec": "vp8" })),
            audio(),
            414,
            "Invalid element type (audiocodec should be the name of a codec)",
        ),
        (
            named(json!({ "record_format": "avi" })),
            audio(),
            414,
            "Invalid element (record_format: there is no format \"avi\" of recordings, but mjr, webm, mkv, mp4 and opus)",
        ),
        (
            named(json!({ "id": 1 })),
            audio(),
            420,
            "Recording 1 already exists",
        ),
        (
            named(json!({ "update": true })),
            audio(),
            418,
            "Not a recording session, can't update",
        ),
        (
            named(json!({ "audiocodec": "isac32" })),
            audio(),
            419,
            "Error parsing offer: it sends nothing that can be recorded",
        ),
        (
            json!({ "request": "play" }),
            None,
            415,
            "Missing mandatory element (id)",
        ),
        (
            json!({ "request": "play", "id": 1 }),
            audio(),
            414,
            "A play request can't contain an SDP",
        ),
        (
            json!({ "request": "play", "id": 2 }),
            None,
            416,
            "No such recording",
        ),
        (
            json!({ "request": "play", "restart": true }),
            None,
            415,
            "Missing mandatory element (id)",
        ),
        (
            json!({ "request": "play", "id": 1, "restart": true }),
            None,
            418,
            "Not a playout session, can't restart",
        ),
        (
            json!({ "request": "start" }),
            None,
            415,
            "Missing SDP answer",
        ),
        (
            json!({ "request": "seek" }),
            None,
            415,
            "Missing mandatory element (position)",
        ),
        (
            json!({ "request": "seek", "position": 0 }),
            None,
            418,
            "Nothing is played, so there is nothing to seek in",
        ),
    ] {
        let refusal = refused(&mut client, body.clone(), jsep).await;
        assert_eq!(refusal, (code, text.to_owned()), "{body}");
    }
    assert_eq!(world.files(), ["1.nfo", "rec-1-audio.mjr"]);
    assert!(world.server.peers().is_empty());

    let (_, our) = play(&mut client, 1).await;
    let far = json!({ "request": "seek", "position": 981 });
    assert_eq!(refused(&mut client, far, None).await.0, 414);
    let recording = refused(&mut client, named(json!({})), audio()).await;
    assert_eq!(recording.0, 418);
    let _ = answer_to(&our);
}

#[tokio::test]
async fn nothing_is_paused_and_stopped_where_nothing_is_done() {
    let world = World::new().await;
    let mut client = world.attach().await;
    for request in ["pause", "resume"] {
        client.message(json!({ "request": request }), None).await;
        assert_eq!(client.event().await, json!({ "recordplay": "event" }));
    }
    let stopped = ask(&mut client, json!({ "request": "stop" })).await;
    assert_eq!(stopped, json!({ "status": "stopped" }));
    client.expect_silence().await;
}

#[tokio::test]
async fn a_handle_records_or_plays() {
    let world = World::new().await;
    world.shelve(1, |_| {});
    let mut client = world.attach().await;
    client.request(json!({ "request": "update" })).await;
    record(&mut client, &[Line::Audio], json!({ "id": 2 })).await;
    let taken = refused(
        &mut world.attach().await,
        json!({ "request": "record", "name": "n", "id": 2 }),
        Some(offer(&[Line::Audio])),
    )
    .await;
    assert_eq!(taken, (420, "Recording 2 already exists".to_owned()));
    let playing = refused(&mut client, json!({ "request": "play", "id": 1 }), None).await;
    assert_eq!(playing.0, 418);
    assert_eq!(world.state(&client).await["type"], "recorder");
}

#[tokio::test]
async fn strangers_do_not_record_unless_that_is_wanted() {
    let world = World::new().await;
    world.shelve(1, |_| {});
    let mut stranger = world.server.attach_stranger(PACKAGE).await;
    stranger.request(json!({ "request": "update" })).await;
    let body = || json!({ "request": "record", "name": "n" });
    let audio = || Some(offer(&[Line::Audio]));
    let (code, text) = refused(&mut stranger, body(), audio()).await;
    assert_eq!(code, 440);
    assert!(text.starts_with("Unauthorized (recording needs"), "{text}");
    assert_eq!(world.files(), ["1.nfo", "rec-1-audio.mjr"]);
    // Playing needs no right.
    play(&mut stranger, 1).await;

    let world = World::with(|config| config.public = true, |_| {}).await;
    let mut stranger = world.server.attach_stranger(PACKAGE).await;
    record(&mut stranger, &[Line::Audio], json!({})).await;

    let world = World::with(|config| config.admin_key = "k3y".to_owned(), |_| {}).await;
    let mut stranger = world.server.attach_stranger(PACKAGE).await;
    record(&mut stranger, &[Line::Audio], json!({ "admin_key": "k3y" })).await;
}

#[tokio::test]
async fn a_file_that_cannot_be_made_is_told_and_another_try_is_possible() {
    let world = World::new().await;
    let folder = world.folder.path().join("recordplay");
    std::fs::write(&folder, "a file").unwrap();
    let mut client = world.attach().await;
    let body = json!({ "request": "record", "name": "n", "id": 1 });
    let (code, text) = refused(&mut client, body, Some(offer(&[Line::Audio]))).await;
    assert_eq!(code, 499);
    assert!(
        text.starts_with("The recording cannot be written: "),
        "{text}"
    );
    assert!(!text.contains(folder.to_str().unwrap()), "{text}");
    assert_eq!(client.next().await["janus"], "hangup");
    std::fs::remove_file(&folder).unwrap();
    record(&mut client, &[Line::Audio], json!({ "id": 1 })).await;
}

#[tokio::test]
async fn a_full_disk_is_told_and_why_only_to_whom_it_concerns() {
    let full = async || {
        let public = |config: &mut portunus_recordplay::RecordPlayConfig| config.public = true;
        World::with(public, |recording| recording.keep_free_mb = u64::MAX).await
    };
    let body = || json!({ "request": "record", "name": "n" });
    let audio = || Some(offer(&[Line::Audio]));
    let world = full().await;
    let (code, text) = refused(&mut world.attach().await, body(), audio()).await;
    assert!(
        code == 499 && text.contains("recording.keep_free_mb"),
        "{text}"
    );
    let world = full().await;
    let mut stranger = world.server.attach_stranger(PACKAGE).await;
    let told = refused(&mut stranger, body(), audio()).await;
    let text = "The recording cannot be written: the server has no room for it now";
    assert_eq!(told, (499, text.to_owned()));
    assert!(world.list().await.is_empty());
}

#[tokio::test]
async fn a_recording_that_is_refused_leaves_no_files() {
    let world = World::new().await;
    // Its description cannot be written.
    std::fs::create_dir_all(world.path("1.nfo.recording")).unwrap();
    let mut client = world.attach().await;
    let body = json!({ "request": "record", "name": "n", "id": 1 });
    let lines = [Line::Audio, Line::Video, Line::Data];
    let (code, _) = refused(&mut client, body, Some(offer(&lines))).await;
    assert_eq!(code, 499);
    let begun = std::time::Instant::now();
    while world.files() != ["1.nfo.recording"] {
        assert!(begun.elapsed().as_secs() < 20, "{:?}", world.files());
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn a_file_of_that_name_is_not_written_over() {
    let world = World::new().await;
    world.shelve(1, |_| {});
    let before = std::fs::read(world.path("rec-1-audio.mjr")).unwrap();
    let mut client = world.attach().await;
    let body = json!({ "request": "record", "name": "n", "id": 5, "filename": "rec-1" });
    let (code, text) = refused(&mut client, body, Some(offer(&[Line::Audio]))).await;
    assert!(code == 499 && text.contains("there is a file"), "{text}");
    assert_eq!(
        std::fs::read(world.path("rec-1-audio.mjr")).unwrap(),
        before
    );
    assert_eq!(world.files(), ["1.nfo", "rec-1-audio.mjr"]);
    // A description that is not listed yet is not overwritten either.
    let other = json!({ "request": "record", "name": "n", "id": 1 });
    assert_eq!(client.next().await["janus"], "hangup");
    let (code, _) = refused(&mut client, other, Some(offer(&[Line::Video]))).await;
    assert_eq!(code, 420);
}
