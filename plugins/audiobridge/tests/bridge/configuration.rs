//! The plugin's section of the configuration, and permanent rooms.

use std::path::Path;

use portunus_audiobridge::{AudioBridgeConfig, rewrite_saved};
use portunus_core::configuration::{self, Configuration, Mistake, Printed, keys_of};
use serde_json::json;

use crate::world::{World, code};

fn read(text: &str) -> Result<AudioBridgeConfig, Vec<Mistake>> {
    configuration::read(text, |file| {
        file.section("audiobridge", AudioBridgeConfig::read)
    })
}

fn mistakes(text: &str) -> Vec<String> {
    let mistakes = read(text).unwrap_err();
    mistakes.iter().map(Mistake::to_string).collect()
}

const ROOMS: &str = r#"
[audiobridge]
admin_key = "k"
rtp_port_range = "20000-30000"
[[audiobridge.room]]
room = 1234
sampling_rate = 16000
description = "Demo"
groups = ["a", "b"]
[[audiobridge.room]]
room = 5678
sampling_rate = 48000
spatial_audio = true
loudest = 0
rtp_forward_host = "127.0.0.1"
rtp_forward_port = 5002
rtp_forward_codec = "pcma"
rtp_forward_always_on = true
"#;

#[test]
fn rooms_are_read_and_printed() {
    let config = read(ROOMS).unwrap();
    let ids: Vec<_> = config.rooms.iter().map(|r| r.id.to_string()).collect();
    assert_eq!(ids, ["1234", "5678"]);
    let mut printed = Printed::default();
    printed.section("audiobridge", keys_of(&config).unwrap());
    assert_eq!(read(&printed.into_text().unwrap()).unwrap(), config);
}

#[test]
fn mistakes_in_rooms_have_their_lines() {
    for (mistake, replaced, expected) in [
        (
            "room = 1234",
            "room = 5678",
            "line 11: audiobridge.room.room: another room has this id",
        ),
        (
            "sampling_rate = 44100",
            "sampling_rate = 48000",
            "line 12: audiobridge.room.sampling_rate: expected 8000, 12000, 16000, 24000 or 48000",
        ),
        (
            "",
            "sampling_rate = 48000",
            "line 10: audiobridge.room.sampling_rate: sampling_rate is missing",
        ),
        (
            "permanent = true",
            "loudest = 0",
            "line 14: audiobridge.room.permanent: unknown key; see docs/audiobridge.md for those of a room",
        ),
        (
            "rtp_forward_port = 0",
            "rtp_forward_port = 5002",
            "line 16: audiobridge.room.rtp_forward_port: 1 to 65535",
        ),
    ] {
        let found = mistakes(&ROOMS.replace(replaced, mistake));
        assert_eq!(found, [expected]);
    }
}

#[tokio::test]
async fn configured_rooms_are_there_with_their_forwarders() {
    let world = World::empty(AudioBridgeConfig {
        admin_key: None,
        ..read(ROOMS).unwrap()
    });
    let mut client = world.attach().await;
    let list = client.request(json!({ "request": "list" })).await;
    assert_eq!(list["list"].as_array().unwrap().len(), 2);
    let list = json!({ "request": "listforwarders", "room": 5678 });
    let forwarders = loop {
        let listed = client.request(list.clone()).await;
        if listed["rtp_forwarders"].as_array().unwrap().len() == 1 {
            break listed["rtp_forwarders"].clone();
        }
        tokio::task::yield_now().await;
    };
    assert_eq!(
        (&forwarders[0]["codec"], &forwarders[0]["port"]),
        (&json!("pcma"), &json!(5_002))
    );
}

fn saving(path: &Path) -> AudioBridgeConfig {
    AudioBridgeConfig {
        save: Some(path.to_owned()),
        ..read(&ROOMS.replace("admin_key", "# admin_key")).unwrap()
    }
}

#[tokio::test]
async fn permanent_rooms_outlive_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rooms.toml");
    let world = World::empty(saving(&path));
    let mut client = world.attach().await;
    let create = json!({
        "request": "create", "room": 7, "permanent": true, "description": "hall", "secret": "s",
        "sampling_rate": 24_000, "audiolevel_event": true, "audio_active_packets": 50,
    });
    let created = client.request(create).await;
    assert_eq!(
        created,
        json!({ "audiobridge": "created", "room": 7, "permanent": true })
    );
    let edit = json!({
        "request": "edit", "room": 5678, "permanent": true, "new_description": "stage",
    });
    assert_eq!(client.request(edit).await["permanent"], true);
    let destroy = json!({ "request": "destroy", "room": 1234, "permanent": true });
    assert_eq!(client.request(destroy).await["permanent"], true);

    let world = World::empty(saving(&path));
    let list = world
        .attach()
        .await
        .request(json!({ "request": "list" }))
        .await;
    let mut rooms: Vec<_> = list["list"].as_array().unwrap().clone();
    rooms.sort_by_key(|room| room["room"].as_u64());
    let of = |n: usize, member: &str| rooms[n][member].clone();
    assert_eq!(rooms.len(), 2, "{rooms:?}");
    assert_eq!(
        (of(0, "room"), of(0, "sampling_rate")),
        (json!(7), json!(24_000))
    );
    assert_eq!(
        (of(1, "room"), of(1, "description")),
        (json!(5678), json!("stage"))
    );
    let mut client = world.attach().await;
    let edit = json!({ "request": "edit", "room": 7 });
    assert_eq!(code(&client.request(edit).await), 483);

    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(rewrite_saved(&text, false).unwrap(), text);
}
