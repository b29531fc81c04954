//! Announcements before any is heard.

use portunus_audiobridge::AudioBridgeConfig;
use serde_json::{Value, json};

use crate::world::{ROOM, World, code, merge};

fn request(name: &str, members: Value) -> Value {
    let mut request = json!({ "request": name, "room": ROOM });
    merge(&mut request, members);
    request
}

#[tokio::test]
async fn files_that_cannot_be_played_are_refused_and_not_listed() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("noise.opus"), b"no Ogg").unwrap();
    let world = World::empty(AudioBridgeConfig {
        folders: vec![folder.path().to_owned()],
        ..AudioBridgeConfig::default()
    });
    world.create(json!({ "groups": ["a"] })).await;
    let mut client = world.attach().await;
    let inside = folder.path().join("none.opus");
    for name in [
        "/etc/hostname",
        "none.opus",
        inside.to_str().unwrap(),
        "../x",
    ] {
        let play = request("play_file", json!({ "filename": name, "group": "a" }));
        let refused = client.request(play).await;
        assert_eq!(
            (code(&refused), &refused["error"]),
            (499, &json!("Error opening file")),
            "{name}"
        );
    }
    for (members, expected) in [(json!({}), 483), (json!({ "group": "x" }), 494)] {
        let mut play = request("play_file", json!({ "filename": "f" }));
        merge(&mut play, members);
        assert_eq!(code(&client.request(play).await), expected);
    }
    let list = client
        .request(request("listannouncements", json!({})))
        .await;
    let none = json!({ "audiobridge": "announcements", "room": ROOM, "announcements": [] });
    assert_eq!(list, none);
}

#[tokio::test]
async fn files_that_are_not_played_can_be_asked_for_and_stopped() {
    let world = World::new(json!({})).await;
    let mut client = world.attach().await;
    let named = json!({ "file_id": "f" });
    assert_eq!(
        client.request(request("is_playing", named.clone())).await,
        json!({ "audiobridge": "success", "room": ROOM, "file_id": "f", "playing": false })
    );
    assert_eq!(
        client.request(request("stop_file", named)).await,
        json!({ "audiobridge": "success", "room": ROOM, "file_id": "f" })
    );
    assert_eq!(
        client.request(request("stop_all_files", json!({}))).await,
        json!({ "audiobridge": "success", "room": ROOM, "file_id_list": [] })
    );
}
