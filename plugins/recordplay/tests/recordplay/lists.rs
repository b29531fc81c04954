//! Lists and updates, with files of Janus and invalid ones.

use std::path::Path;

use portunus_core::{Plugin, PublicFile, PublicFiles, Reply};
use portunus_recordplay::MediaFiles;
use serde_json::{Value, json};

use crate::world::{World, list, names, opus, play, shelve};

#[tokio::test]
async fn an_update_finds_what_has_come_and_gone() {
    let world = World::new().await;
    let mut client = world.attach().await;
    assert!(world.list().await.is_empty());
    world.shelve(1, |_| {});
    world.shelve(2, |nfo| nfo.files.video = Some("missing.mjr".to_owned()));
    assert!(world.list().await.is_empty());
    let ok = json!({ "recordplay": "ok" });
    assert_eq!(client.request(json!({ "request": "UPDATE" })).await, ok);
    let found = world.list().await;
    let urls = found[0]["urls"].clone();
    assert_eq!(
        found[0],
        json!({
            "id": 1, "is_private": false, "name": "Recording of 1", "date": "2026-01-31 10:00:00",
            "audio": true, "audio_codec": "opus", "video": false, "data": false,
            "duration": 980, "bytes": opus(50).len(), "urls": urls,
        })
    );
    assert_eq!(
        (&found[1]["id"], &found[1]["video"]),
        (&json!(2), &json!(false))
    );
    std::fs::remove_file(world.path("1.nfo")).unwrap();
    client.request(json!({ "request": "update" })).await;
    let left = world.list().await;
    assert_eq!((left.len(), &left[0]["id"]), (1, &json!(2)));
}

#[tokio::test]
async fn private_recordings_are_for_those_who_show_the_key() {
    let world = World::with(|config| config.admin_key = "k3y".to_owned(), |_| {}).await;
    world.shelve(1, |_| {});
    world.shelve(2, |nfo| nfo.is_private = true);
    let mut client = world.attach().await;
    for (body, code) in [
        (json!({ "request": "update" }), 415),
        (json!({ "request": "update", "admin_key": "other" }), 440),
        (json!({ "request": "update", "admin_key": 7 }), 414),
        (json!({ "request": "list", "admin_key": "other" }), 440),
    ] {
        let refused = client.request(body.clone()).await;
        assert_eq!(refused["error_code"], code, "{body}");
    }
    client
        .request(json!({ "request": "update", "admin_key": "k3y" }))
        .await;
    for (body, ids) in [
        (json!({ "request": "list" }), vec![1]),
        (json!({ "request": "list", "admin_key": "" }), vec![1]),
        (json!({ "request": "list", "admin_key": "k3y" }), vec![1, 2]),
    ] {
        let listed = list(&mut client, body).await;
        let listed: Vec<_> = listed.iter().map(|it| it["id"].as_u64().unwrap()).collect();
        assert_eq!(listed, ids);
    }

    let open = World::new().await;
    open.shelve(2, |nfo| nfo.is_private = true);
    let mut client = open.attach().await;
    client.request(json!({ "request": "update" })).await;
    let body = json!({ "request": "list", "admin_key": "anything" });
    assert!(list(&mut client, body).await.is_empty());
}

#[tokio::test]
async fn administrators_list_private_recordings_without_a_key() {
    let world = World::with(|config| config.admin_key = "k3y".to_owned(), |_| {}).await;
    world.shelve(1, |_| {});
    world.shelve(2, |nfo| nfo.is_private = true);
    let ask = async |request: &str| match world.plugin.admin(json!({ "request": request })) {
        Some(Reply::Later(later)) => later.result().await,
        other => panic!("{other:?}"),
    };
    assert_eq!(ask("update").await, json!({ "recordplay": "ok" }));
    let answer = ask("list").await;
    let listed = answer["list"].as_array().unwrap();
    let listed: Vec<_> = listed.iter().map(|it| it["id"].clone()).collect();
    assert_eq!(listed, [1, 2]);
}

#[tokio::test]
async fn what_is_no_recording_is_left_out() {
    let folder = tempfile::tempdir().unwrap();
    shelve(&folder, 1, |_| {});
    let put = |name: &str, text: &str| {
        let folder = folder.path().join("recordplay");
        std::fs::write(folder.join(name), text).unwrap();
    };
    put("no-section.nfo", "name = n\ndate = d\naudio = a.mjr\n");
    put(
        "climbs.nfo",
        "[3]\nname = n\ndate = d\naudio = ../../secret.mjr\n",
    );
    put("data.nfo", "[4]\nname = n\ndate = d\ndata = d.mjr\n");
    put("long.nfo", &format!("[5]\nname = {}\n", "n".repeat(70_000)));
    put("other.txt", "[6]\nname = n\ndate = d\naudio = a.mjr\n");
    std::fs::create_dir(folder.path().join("recordplay/folder.nfo")).unwrap();
    let world = World::on(folder, |_| {}, |_| {}).await;
    let found = world.list().await;
    assert_eq!((found.len(), &found[0]["id"]), (1, &json!(1)));
}

#[tokio::test]
async fn a_link_does_not_lead_out_of_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    shelve(&folder, 1, |_| {});
    let secret = folder.path().join("secret.mjr");
    std::fs::write(&secret, opus(50)).unwrap();
    let link = folder.path().join("recordplay/rec-1-audio.mjr");
    std::fs::remove_file(&link).unwrap();
    std::os::unix::fs::symlink(&secret, &link).unwrap();
    let world = World::on(folder, |_| {}, |_| {}).await;
    assert_eq!(world.list().await[0]["audio"], false);
    let mut client = world.attach().await;
    client
        .message(json!({ "request": "play", "id": 1 }), None)
        .await;
    assert_eq!(client.event().await["error_code"], 417);
}

#[tokio::test]
async fn files_are_served_to_those_who_know_the_key() {
    let world = World::new().await;
    world.shelve(1, |_| {});
    world.shelve(2, |nfo| {
        nfo.files = MediaFiles {
            audio: Some("a b#.mjr".to_owned()),
            ..MediaFiles::default()
        };
        nfo.key = Some("0123456789abcdef0123456789abcdef".to_owned());
    });
    std::fs::write(world.path("a b#.mjr"), opus(9)).unwrap();
    let mut client = world.attach().await;
    client.request(json!({ "request": "update" })).await;
    let urls: Vec<_> = world.list().await;
    let urls: Vec<_> = urls
        .iter()
        .map(|it| it["urls"]["audio"].as_str().unwrap())
        .collect();
    assert_eq!(
        urls[1],
        "/recordplay/0123456789abcdef0123456789abcdef/a%20b%23.mjr"
    );
    let files = world.plugin.files().unwrap();
    let found = |path: &str| files.find(path).and_then(PublicFile::locate);
    assert_eq!(
        found(urls[0]),
        Some(world.path("rec-1-audio.mjr").canonicalize().unwrap())
    );
    assert_eq!(
        found(urls[1]),
        Some(world.path("a b#.mjr").canonicalize().unwrap())
    );
    let key = urls[0].rsplit_once('/').unwrap().0;
    for path in [
        format!("{key}/rec-2-audio.mjr"),
        format!("{key}/1.nfo"),
        format!("{key}/../1.nfo"),
        format!("{key}/%2e%2e%2frec-1-audio.mjr"),
        format!("{key}/"),
        "/recordplay/rec-1-audio.mjr".to_owned(),
        "/recordplay//rec-1-audio.mjr".to_owned(),
        "/janus".to_owned(),
    ] {
        assert_eq!(found(&path), None, "{path}");
    }
    // The key stays the same while nothing changes.
    client.request(json!({ "request": "update" })).await;
    assert!(files.find(urls[0]).is_some());

    let closed = World::with(|config| config.serve = false, |_| {}).await;
    assert!(closed.plugin.files().is_none());
    closed.shelve(1, |_| {});
    closed
        .attach()
        .await
        .request(json!({ "request": "update" }))
        .await;
    assert_eq!(closed.list().await[0]["urls"], Value::Null);
    let _: &dyn PublicFiles = files;
}

#[tokio::test]
async fn administrators_may_update_without_a_key() {
    let world = World::with(|config| config.admin_key = "k3y".to_owned(), |_| {}).await;
    world.shelve(1, |_| {});
    let ask = async |body: Value| match world.plugin.admin(body) {
        Some(Reply::Success(answer)) => answer,
        Some(Reply::Later(later)) => later.result().await,
        other => panic!("{other:?}"),
    };
    assert_eq!(
        ask(json!({ "request": "update" })).await,
        json!({ "recordplay": "ok" })
    );
    assert_eq!(world.list().await.len(), 1);
    for (body, code) in [
        (json!(7), 412),
        (json!({}), 415),
        (json!({ "request": 7 }), 414),
        (json!({ "request": "play" }), 413),
    ] {
        assert_eq!(ask(body).await["error_code"], code);
    }
}

#[tokio::test]
async fn a_folder_of_janus_is_listed() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("recordplay");
    std::fs::create_dir(&to).unwrap();
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/janus");
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        std::fs::copy(&path, to.join(path.file_name().unwrap())).unwrap();
    }
    let before = names(&folder);
    let world = World::on(folder, |config| config.admin_key = "k3y".to_owned(), |_| {}).await;
    // It does not say whether it is private, which counts as private.
    assert!(world.list().await.is_empty());
    let mut client = world.attach().await;
    let body = json!({ "request": "list", "admin_key": "k3y" });
    let found = list(&mut client, body).await;
    let [entry] = &found[..] else {
        panic!("{found:?}")
    };
    assert_eq!(entry["name"], "Made by Janus; #1");
    assert_eq!(
        (&entry["audio_codec"], &entry["video_codec"]),
        (&json!("opus"), &json!("vp8"))
    );
    let lasts = entry["duration"].as_u64().unwrap();
    assert!((1_000..10_000).contains(&lasts), "{entry}");
    assert_eq!(world.files(), before, "nothing of it is changed");
    let (told, offer) = play(&mut client, 1234).await;
    assert_eq!(told["warning"], Value::Null);
    assert_eq!(
        offer["sdp"].as_str().unwrap().matches("a=sendonly").count(),
        2
    );
}
