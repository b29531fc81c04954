//! Mountpoints of the configuration, and permanent ones.

use portunus_core::record::Recorder;
use portunus_streaming::{ConfiguredMountpoint, Streaming, StreamingConfig};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::world::{World, camera, create, refused};

fn configured(members: Value) -> ConfiguredMountpoint {
    ConfiguredMountpoint::read(members.as_object().unwrap(), false).unwrap()
}

fn config(folder: &TempDir, mountpoints: Vec<ConfiguredMountpoint>) -> StreamingConfig {
    StreamingConfig {
        save: Some(folder.path().join("mountpoints.toml")),
        mountpoints,
        ..StreamingConfig::default()
    }
}

fn hall() -> ConfiguredMountpoint {
    configured(json!({
        "name": "hall", "type": "rtp", "id": 1,
        "media": [{ "type": "audio", "mid": "a", "port": 0, "codec": "opus" }],
    }))
}

async fn listed(world: &World) -> Vec<(Value, Value)> {
    let mut client = world.client().await;
    let list = client.request(json!({ "request": "list" })).await;
    let list = list["list"].as_array().unwrap().iter();
    list.map(|m| (m["id"].clone(), m["description"].clone()))
        .collect()
}

#[tokio::test]
async fn what_is_permanent_outlives_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::with(config(&folder, vec![hall()])).await;
    let mut client = world.client().await;
    let mut cam = camera(7);
    cam["permanent"] = json!(true);
    cam["secret"] = json!("s3");
    let created = create(&mut client, cam).await;
    assert_eq!(created["permanent"], true);
    create(&mut client, camera(8)).await;
    let edit =
        json!({ "request": "edit", "id": 1, "new_description": "The hall", "permanent": true });
    assert_eq!(client.request(edit).await["permanent"], true);
    // A mountpoint that ends without `permanent` is there after a restart. The test's server would
    // keep its ports.
    for (id, secret) in [(7, "s3"), (1, "")] {
        let destroy = json!({ "request": "destroy", "id": id, "secret": secret });
        client.request(destroy).await;
    }
    drop((client, world));

    let world = World::with(config(&folder, vec![hall()])).await;
    let expected = [(json!(1), json!("The hall")), (json!(7), json!("cam7"))];
    let mut seen = listed(&world).await;
    seen.sort_by_key(|(id, _)| id.as_u64());
    assert_eq!(seen, expected);
    let mut client = world.client().await;
    let info = json!({ "request": "info", "id": 7, "secret": "s3" });
    let info = client.request(info).await["info"].clone();
    let ports = created["stream"]["ports"].as_array().unwrap();
    assert_eq!(info["media"][1]["port"], ports[1]["port"]);
    assert_eq!(info["media"][1]["rtcpport"], ports[1]["rtcp_port"]);

    for (id, secret) in [(7, "s3"), (1, "")] {
        let destroy =
            json!({ "request": "destroy", "id": id, "secret": secret, "permanent": true });
        client.request(destroy).await;
    }
    drop((client, world));
    let world = World::with(config(&folder, vec![hall()])).await;
    assert!(listed(&world).await.is_empty());
}

#[tokio::test]
async fn a_name_is_saved_once() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::with(config(&folder, Vec::new())).await;
    let mut client = world.client().await;
    let mut cam = camera(7);
    cam["permanent"] = json!(true);
    create(&mut client, cam.clone()).await;
    cam["id"] = json!(8);
    assert_eq!(refused(&mut client, cam).await, 456);
    let file = std::fs::read_to_string(folder.path().join("mountpoints.toml")).unwrap();
    assert_eq!(file.matches("name = \"cam7\"").count(), 1, "{file}");
}

#[tokio::test]
async fn one_of_the_same_name_leaves_a_permanent_mountpoint_alone() {
    let folder = tempfile::tempdir().unwrap();
    let yard = || {
        configured(json!({
            "name": "yard", "type": "rtp",
            "media": [{ "type": "audio", "mid": "a", "port": 0, "codec": "opus" }],
        }))
    };
    let mountpoints = || vec![hall(), yard()];
    let world = World::with(config(&folder, mountpoints())).await;
    let mut client = world.client().await;
    let mut cam = camera(7);
    cam["permanent"] = json!(true);
    create(&mut client, cam).await;
    let destroy = |id: &Value| json!({ "request": "destroy", "id": id, "permanent": true });
    // The name is taken by a configured or a saved one.
    for name in ["hall", "yard", "cam7"] {
        let mut twin = camera(8);
        twin["name"] = json!(name);
        twin["permanent"] = json!(true);
        assert_eq!(refused(&mut client, twin.clone()).await, 456, "{name}");
        twin["permanent"] = json!(false);
        create(&mut client, twin).await;
        let edit = json!({ "request": "edit", "id": 8, "permanent": true });
        assert_eq!(refused(&mut client, edit).await, 470, "{name}");
        let destroyed = client.request(destroy(&json!(8))).await;
        assert_eq!(destroyed["destroyed"], 8, "{destroyed}");
    }
    // A test's server would keep the port.
    client
        .request(json!({ "request": "destroy", "id": 7 }))
        .await;
    drop((client, world));
    let world = World::with(config(&folder, mountpoints())).await;
    let mut names: Vec<_> = listed(&world).await.into_iter().map(|m| m.1).collect();
    names.sort_by_key(|name| name.to_string());
    assert_eq!(names, ["cam7", "hall", "yard"]);

    // Each can be removed by any id, and its name is free then.
    let mut client = world.client().await;
    for (id, name) in listed(&world).await {
        if name != "cam7" {
            client.request(destroy(&id)).await;
        }
    }
    for (id, name) in [(8, "hall"), (9, "yard")] {
        let mut twin = camera(id);
        twin["name"] = json!(name);
        twin["permanent"] = json!(true);
        create(&mut client, twin).await;
        client.request(destroy(&json!(id))).await;
    }
    client
        .request(json!({ "request": "destroy", "id": 7 }))
        .await;
    drop((client, world));
    let world = World::with(config(&folder, mountpoints())).await;
    assert_eq!(listed(&world).await, [(json!(7), json!("cam7"))]);
}

#[tokio::test]
async fn one_bad_mountpoint_does_not_keep_the_others_away() {
    let folder = tempfile::tempdir().unwrap();
    let lost = configured(json!({
        "name": "lost", "type": "rtp", "id": 2,
        "media": [{ "type": "audio", "mid": "a", "port": 0, "codec": "opus", "iface": "nosuch0" }],
    }));
    let twin = configured(json!({
        "name": "twin", "type": "rtp", "id": 1,
        "media": [{ "type": "audio", "mid": "a", "port": 0, "codec": "opus" }],
    }));
    let world = World::with(config(&folder, vec![lost, hall(), twin])).await;
    assert_eq!(listed(&world).await, [(json!(1), json!("hall"))]);
}

#[tokio::test]
async fn a_file_that_cannot_be_read_stops_the_start_and_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mountpoints.toml");
    std::fs::write(&path, "[[mountpoint]]\nname = \"x\"\n").unwrap();
    let (media, ..) = portunus_core::media::MediaPlane::detached();
    let error = Streaming::start(config(&folder, Vec::new()), media, Recorder::default()).await;
    let text = error.unwrap_err().to_string();
    assert!(
        text.contains("mountpoints.toml") && text.contains("type"),
        "{text}"
    );
}

#[tokio::test]
async fn a_file_that_cannot_be_written_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = config(&folder, Vec::new());
    config.save = Some(folder.path().join("none").join("mountpoints.toml"));
    let world = World::with(config).await;
    let mut client = world.client().await;
    let mut cam = camera(7);
    cam["permanent"] = json!(true);
    assert_eq!(refused(&mut client, cam).await, 470);
    assert!(listed(&world).await.is_empty());
}

#[tokio::test]
async fn what_cannot_be_removed_for_good_stays() {
    let folder = tempfile::tempdir().unwrap();
    let kept = folder.path().join("kept");
    std::fs::create_dir(&kept).unwrap();
    let mut config = config(&folder, Vec::new());
    config.save = Some(kept.join("mountpoints.toml"));
    let world = World::with(config).await;
    let mut client = world.client().await;
    let mut cam = camera(7);
    cam["permanent"] = json!(true);
    create(&mut client, cam).await;
    let moved = folder.path().join("moved");
    std::fs::rename(&kept, &moved).unwrap();
    let destroy = json!({ "request": "destroy", "id": 7, "permanent": true });
    assert_eq!(refused(&mut client, destroy.clone()).await, 470);
    assert_eq!(listed(&world).await, [(json!(7), json!("cam7"))]);
    assert_eq!(world.server.requested().ingests.len(), 3);
    std::fs::rename(&moved, &kept).unwrap();
    assert_eq!(client.request(destroy.clone()).await["destroyed"], 7);
    assert!(listed(&world).await.is_empty());
    assert_eq!(refused(&mut client, destroy).await, 455);
    let file = std::fs::read_to_string(kept.join("mountpoints.toml")).unwrap();
    assert!(!file.contains("cam7"), "{file}");
}

#[tokio::test]
async fn an_edit_that_cannot_be_written_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let kept = folder.path().join("kept");
    std::fs::create_dir(&kept).unwrap();
    let mut config = config(&folder, Vec::new());
    config.save = Some(kept.join("mountpoints.toml"));
    let world = World::with(config).await;
    let mut client = world.client().await;
    let mut cam = camera(7);
    cam["permanent"] = json!(true);
    cam["secret"] = json!("old");
    create(&mut client, cam).await;
    let (mut viewer, _) = world.viewer(json!({ "id": 7 })).await;
    let info = json!({ "request": "info", "id": 7, "secret": "old" });
    let before = client.request(info.clone()).await["info"].clone();
    let moved = folder.path().join("moved");
    std::fs::rename(&kept, &moved).unwrap();
    let edit = json!({
        "request": "edit", "id": 7, "secret": "old", "permanent": true, "edited_event": true,
        "new_secret": "new", "new_pin": "1234", "new_description": "d", "new_metadata": "m",
        "new_is_private": true,
    });
    assert_eq!(refused(&mut client, edit.clone()).await, 470);
    viewer.expect_silence().await;
    let mut after = client.request(info).await["info"].clone();
    for (after, before) in std::iter::zip(
        after["media"].as_array_mut().unwrap(),
        before["media"].as_array().unwrap(),
    ) {
        after["age_ms"] = before["age_ms"].clone();
    }
    assert_eq!(after, before);

    std::fs::rename(&moved, &kept).unwrap();
    assert_eq!(client.request(edit.clone()).await["permanent"], true);
    assert_eq!(viewer.event().await["metadata"], "m");
    assert_eq!(refused(&mut client, edit).await, 457);
    let file = std::fs::read_to_string(kept.join("mountpoints.toml")).unwrap();
    assert!(file.contains("secret = \"new\""), "{file}");
}
