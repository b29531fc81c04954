//! Refusals with their codes, and that they leave nothing behind.

use std::os::unix::fs::symlink;
use std::path::PathBuf;

use portunus_core::testing::{Line, TestClient, jsep};
use serde_json::{Value, json};

use crate::world::{PACKAGE, World, offer, record};

/// Returns the code and the text of a refusal.
async fn refused(client: &mut TestClient, body: Value, jsep: Option<Value>) -> (u64, String) {
    client.message(body, jsep).await;
    let (data, answer) = client.event_with_jsep().await;
    assert_eq!((&data["voicemail"], answer), (&json!("event"), None));
    let text = data["error"].as_str().expect("an error").to_owned();
    (data["error_code"].as_u64().unwrap(), text)
}

#[tokio::test]
async fn every_error_has_its_code_and_text() {
    let world = World::new();
    let mut client = world.attach().await;
    let audio = || Some(offer(&[Line::Audio]));
    let encrypted = || {
        let mut offer = offer(&[Line::Audio]);
        offer["e2ee"] = json!(true);
        Some(offer)
    };
    let request = |name: &str| json!({ "request": name });
    for (body, jsep, code, text) in [
        (json!({}), None, 463, "Missing mandatory element (request)"),
        (
            json!({ "request": 7 }),
            None,
            464,
            "Invalid element type (request should be a string)",
        ),
        (request("Play"), None, 462, "Unknown request 'Play'"),
        (
            request("record"),
            None,
            463,
            "Missing mandatory element (jsep)",
        ),
        (
            json!({ "request": "record", "max_duration": "10" }),
            audio(),
            464,
            "Invalid element type (max_duration should be a positive integer)",
        ),
        (
            request("record"),
            Some(offer(&[Line::Video, Line::Data])),
            464,
            "Invalid element (the offer has to send Opus)",
        ),
        (
            request("record"),
            encrypted(),
            464,
            "Invalid element (what is encrypted end to end cannot be recorded)",
        ),
        (request("update"), audio(), 468, "Not recording"),
        (
            request("update"),
            None,
            463,
            "Missing mandatory element (jsep)",
        ),
    ] {
        let refusal = refused(&mut client, body.clone(), jsep).await;
        assert_eq!(refusal, (code, text.to_owned()), "{body}");
    }
    assert_eq!(world.counter("refused_requests"), 9);
    assert!(world.files().is_empty());
    assert!(world.server.peers().is_empty());

    record(&mut client).await;
    let again = refused(&mut client, request("record"), audio()).await;
    assert_eq!(again, (465, "Already recording".to_owned()));
    let encrypted = refused(&mut client, request("update"), encrypted()).await;
    assert_eq!(encrypted.0, 464);
    let other = offer(&[Line::Video]);
    assert_eq!(
        refused(&mut client, request("update"), Some(other)).await.0,
        464
    );
    assert_eq!(world.state(&client).await["state"], "recording");
    assert_eq!(world.files().len(), 1);
}

#[tokio::test]
async fn pcm_alone_is_no_opus() {
    let world = World::new();
    let mut client = world.attach().await;
    let mut offer = jsep("offer", "abcd", &[Line::Audio]);
    let sdp = offer["sdp"].as_str().unwrap();
    let sdp = sdp.replace("opus/48000/2", "L16/48000/2");
    offer["sdp"] = json!(sdp);
    let body = json!({ "request": "record" });
    assert_eq!(refused(&mut client, body, Some(offer)).await.0, 464);
}

#[tokio::test]
async fn strangers_leave_no_message_unless_that_is_wanted() {
    let world = World::new();
    let mut stranger = world.server.attach_stranger(PACKAGE).await;
    let body = json!({ "request": "record" });
    let audio = offer(&[Line::Audio]);
    let (code, text) = refused(&mut stranger, body.clone(), Some(audio.clone())).await;
    assert_eq!(code, 499);
    assert!(text.starts_with("Unauthorized (recording needs"), "{text}");
    assert!(world.files().is_empty());
    // Stopping needs no right.
    stranger.message(json!({ "request": "stop" }), None).await;
    assert_eq!(stranger.event().await["status"], "done");

    let world = World::with(|mail| mail.public = true, |_| {});
    let mut stranger = world.server.attach_stranger(PACKAGE).await;
    record(&mut stranger).await;
    assert_eq!(world.files().len(), 1);
}

#[tokio::test]
async fn a_file_that_cannot_be_made_is_told_and_another_try_is_possible() {
    let world = World::new();
    let folder = world.folder.path().join("voicemail");
    std::fs::write(&folder, "a file").unwrap();
    let mut client = world.attach().await;
    let body = || json!({ "request": "record" });
    let audio = || Some(offer(&[Line::Audio]));
    let (code, text) = refused(&mut client, body(), audio()).await;
    assert_eq!(code, 466);
    assert!(text.starts_with("Cannot open the file: "), "{text}");
    assert!(!text.contains(folder.to_str().unwrap()), "{text}");
    std::fs::remove_file(&folder).unwrap();
    record(&mut client).await;
}

#[tokio::test]
async fn a_full_disk_is_told_and_why_only_to_whom_it_concerns() {
    let full = || World::with(|mail| mail.public = true, |it| it.keep_free_mb = u64::MAX);
    let body = || json!({ "request": "record" });
    let audio = || Some(offer(&[Line::Audio]));
    let world = full();
    let mut client = world.attach().await;
    let (code, text) = refused(&mut client, body(), audio()).await;
    assert!(
        code == 466 && text.contains("recording.keep_free_mb"),
        "{text}"
    );
    let world = full();
    let mut stranger = world.server.attach_stranger(PACKAGE).await;
    let told = refused(&mut stranger, body(), audio()).await;
    let text = "Cannot open the file: the server has no room for it now";
    assert_eq!(told, (466, text.to_owned()));
    assert!(world.files().is_empty());
}

#[tokio::test]
async fn recording_that_is_switched_off_is_so_here_too() {
    let world = World::with(|_| {}, |recording| recording.enabled = false);
    let mut client = world.attach().await;
    let body = json!({ "request": "record" });
    let (code, text) = refused(&mut client, body, Some(offer(&[Line::Audio]))).await;
    assert!(code == 466 && text.contains("recording.enabled"), "{text}");
}

#[tokio::test]
async fn the_folder_may_be_a_link_of_whoever_runs_the_server() {
    let elsewhere = tempfile::tempdir().unwrap();
    let world = World::with(|mail| mail.path = PathBuf::from("mail/box"), |_| {});
    std::fs::create_dir(world.folder.path().join("mail")).unwrap();
    let link = world.folder.path().join("mail/box");
    symlink(elsewhere.path(), link).unwrap();
    let mut client = world.attach().await;
    let body = json!({ "request": "record" });
    client.message(body, Some(offer(&[Line::Audio]))).await;
    assert_eq!(client.event().await["status"], "starting");
    assert_eq!(std::fs::read_dir(elsewhere.path()).unwrap().count(), 1);
}
