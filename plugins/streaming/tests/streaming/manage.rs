//! The life of mountpoints: creation, listing, changes and removal.

use portunus_core::media::ingest::Refused;
use portunus_core::{Plugin, Reply};
use portunus_streaming::StreamingConfig;
use serde_json::{Value, json};

use crate::world::{World, camera, create, refused};

#[tokio::test]
async fn a_mountpoint_is_created_with_the_ports_that_it_got() {
    let world = World::new().await;
    let mut client = world.client().await;
    let created = create(&mut client, camera(7)).await;
    assert_eq!(created["created"], "cam7");
    assert_eq!(created["permanent"], false);
    assert_eq!(created.get("warning"), None);
    let stream = &created["stream"];
    assert_eq!(stream["id"], 7);
    assert_eq!(stream["type"], "live");
    assert_eq!(stream["description"], "cam7");
    assert_eq!(stream["is_private"], false);
    let ports = stream["ports"].as_array().unwrap();
    let mids: Vec<_> = ports.iter().map(|p| (&p["type"], &p["mid"])).collect();
    assert_eq!(
        json!(mids),
        json!([["audio", "a"], ["video", "v"], ["data", "d"]])
    );
    for port in ports {
        let number = port["port"].as_u64().unwrap();
        assert!((10_000..=60_000).contains(&number), "{port}");
        assert_eq!(port.get("rtcp_port").is_some(), port["type"] == "video");
    }
    let ingests = world.server.requested().ingests;
    assert_eq!(ingests.len(), 3);
}

#[tokio::test]
async fn the_older_form_names_its_ports_by_kind() {
    let world = World::new().await;
    let mut client = world.client().await;
    let created = create(
        &mut client,
        json!({
            "request": "create", "type": "rtp", "id": 8, "audio": true, "audioport": 0,
            "audiopt": 111, "audiocodec": "opus", "audioiface": "127.0.0.1", "video": true,
            "videoport": 0, "videopt": 100, "videocodec": "vp8", "videortcpport": 0,
            "videosimulcast": true, "videoport2": 0, "videoport3": 0, "data": true, "dataport": 0,
        }),
    )
    .await;
    assert_eq!(created["created"], "mp-8");
    assert_eq!(created["warning"], "deprecated_api");
    let stream = created["stream"].as_object().unwrap();
    assert_eq!(stream["audio_host"], "127.0.0.1");
    for name in [
        "audio_port",
        "video_port",
        "video_rtcp_port",
        "video_port_2",
        "video_port_3",
        "data_port",
    ] {
        assert!(stream[name].as_u64().unwrap() > 0, "{name}");
    }
    assert!(!stream.contains_key("ports"));
}

#[tokio::test]
async fn lists_and_details_show_what_each_may_see() {
    let world = World::with(StreamingConfig {
        admin_key: Some("key".into()),
        ..StreamingConfig::default()
    })
    .await;
    let mut client = world.client().await;
    let mut body = camera(7);
    body["admin_key"] = json!("key");
    body["secret"] = json!("s3");
    body["pin"] = json!("1234");
    body["is_private"] = json!(true);
    body["metadata"] = json!("{\"a\":1}");
    body["bufferkf_ms"] = json!(2000);
    create(&mut client, body).await;

    let list = |key: Value| json!({ "request": "list", "admin_key": key });
    let public = client.request(json!({ "request": "list" })).await;
    assert_eq!(public, json!({ "streaming": "list", "list": [] }));
    assert_eq!(refused(&mut client, list(json!("wrong"))).await, 457);
    let all = client.request(list(json!("key"))).await;
    let entry = &all["list"][0];
    assert_eq!(entry["id"], 7);
    assert_eq!(entry["type"], "live");
    assert_eq!(entry["metadata"], "{\"a\":1}");
    assert_eq!(entry["enabled"], true);
    assert_eq!(entry["media"][1]["mid"], "v");
    assert_eq!(entry["media"][1]["label"], "video");
    assert!(entry["media"][1]["age_ms"].is_u64());
    assert_eq!(entry["media"][1]["waiting"], true, "nothing has come");

    let info = json!({ "request": "info", "id": 7 });
    let public = client.request(info.clone()).await["info"].clone();
    for secret in ["name", "secret", "pin", "viewers", "is_private"] {
        assert_eq!(public.get(secret), None, "{secret}");
    }
    assert_eq!(public["secret_required"], true);
    assert_eq!(public["bufferkf_ms"], 2000);
    let audio = &public["media"][0];
    assert_eq!(audio["mindex"], 0);
    assert_eq!(audio["pt"], 111);
    assert_eq!(audio["rtpmap"], "opus/48000/2");
    assert_eq!(audio.get("port"), None);
    let mut wrong = info.clone();
    wrong["secret"] = json!("no");
    assert_eq!(client.request(wrong).await["info"].get("secret"), None);
    let mut right = info;
    right["secret"] = json!("s3");
    let admin = client.request(right).await["info"].clone();
    assert_eq!(admin["name"], "cam7");
    assert_eq!(admin["secret"], "s3");
    assert_eq!(admin["pin"], "1234");
    assert_eq!(admin["viewers"], 0);
    assert_eq!(admin["is_private"], true);
    assert!(admin["media"][1]["rtcpport"].is_u64());
    assert_eq!(admin["media"][2]["datatype"], "text");
}

#[tokio::test]
async fn a_secret_or_key_of_what_has_none_is_not_looked_at() {
    let world = World::new().await;
    let mut client = world.client().await;
    create(&mut client, camera(7)).await;
    let mut locked = camera(8);
    locked["secret"] = json!("s3");
    create(&mut client, locked).await;
    let list = json!({ "request": "list", "admin_key": 1 });
    assert_eq!(client.request(list.clone()).await["streaming"], "list");
    let info = |id: u64| json!({ "request": "info", "id": id, "secret": 1 });
    assert_eq!(client.request(info(7)).await["info"]["viewers"], 0);
    assert_eq!(refused(&mut client, info(8)).await, 454);
    let world = World::with(StreamingConfig {
        admin_key: Some("key".into()),
        ..StreamingConfig::default()
    })
    .await;
    let mut client = world.client().await;
    assert_eq!(refused(&mut client, list).await, 454);
}

#[tokio::test]
async fn age_counts_from_the_last_packet() {
    let world = World::new().await;
    let mut client = world.client().await;
    create(&mut client, camera(7)).await;
    let ingests = world.server.requested().ingests;
    for ingest in &ingests {
        ingest.status.pretend_packet(100);
    }
    let list = client.request(json!({ "request": "list" })).await;
    let age = list["list"][0]["media"][0]["age_ms"].as_u64().unwrap();
    assert!(age < 5_000, "{age}");
}

#[tokio::test]
async fn what_is_refused_is_told_with_its_reason() {
    let world = World::new().await;
    let mut client = world.client().await;
    create(&mut client, camera(7)).await;
    let video = world.server.requested().ingests[1].status.clone();
    let list = json!({ "request": "list" });
    let info = json!({ "request": "info", "id": 7 });
    video.pretend_refusal(Refused::Late);
    let listed = client.request(list.clone()).await["list"][0]["media"].clone();
    assert_eq!(
        listed[1].get("refused"),
        None,
        "what networks do is no fault"
    );
    video.pretend_refusal(Refused::Malformed);
    video.pretend_refusal(Refused::Unauthentic);
    let listed = client.request(list).await["list"][0]["media"].clone();
    assert_eq!(listed[0].get("refused"), None);
    let shown = client.request(info).await["info"]["media"][1]["refused"].clone();
    for refused in [&listed[1]["refused"], &shown] {
        assert_eq!(refused["reason"], "unauthentic");
        assert_eq!(refused["packets"], 2);
        assert!(refused["age_ms"].as_u64().unwrap() < 5_000);
    }
}

#[tokio::test]
async fn where_packets_go_is_told_to_who_may_manage() {
    let world = World::new().await;
    let mut client = world.client().await;
    let mut body = camera(7);
    body["secret"] = json!("s3");
    body["srtpsuite"] = json!(32);
    body["srtpcrypto"] = json!("MTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0NTY3ODkw");
    body["media"][1]["iface"] = json!("127.0.0.1");
    create(&mut client, body).await;
    let info = json!({ "request": "info", "id": 7 });
    let public = client.request(info.clone()).await["info"].clone();
    assert_eq!(public["srtp"], true);
    assert_eq!(public["srtpsuite"], 32);
    assert_eq!(public["media"][1].get("host"), None);
    let mut right = info;
    right["secret"] = json!("s3");
    let admin = client.request(right).await["info"].clone();
    assert_eq!(admin["media"][0].get("host"), None);
    assert_eq!(admin["media"][1]["host"], "127.0.0.1");
    assert!(!admin.to_string().contains("MTIzNDU2"), "{admin}");
}

#[tokio::test]
async fn a_token_is_shown_with_the_secret_only() {
    let world = World::new().await;
    let mut client = world.client().await;
    let stage = |id: u64| {
        json!({
            "request": "create", "type": "whip", "id": id, "token": "t0k",
            "media": [{ "type": "audio", "mid": "a" }, { "type": "video", "mid": "v", "codec": "vp8" }],
        })
    };
    create(&mut client, stage(7)).await;
    let mut locked = stage(8);
    locked["secret"] = json!("s3");
    create(&mut client, locked).await;
    let mut open = stage(9);
    open.as_object_mut().unwrap().remove("token");
    create(&mut client, open).await;
    for (id, secret, token, required) in [
        (7, None, None, Some(true)),
        (7, Some("s3"), None, Some(true)),
        (8, None, None, Some(true)),
        (8, Some("no"), None, Some(true)),
        (8, Some("s3"), Some("t0k"), Some(true)),
        (9, None, None, None),
    ] {
        let info = json!({ "request": "info", "id": id, "secret": secret.unwrap_or_default() });
        let info = client.request(info).await["info"].clone();
        let text = info.get("token").and_then(Value::as_str);
        assert_eq!(text, token, "{id} {secret:?}");
        let asked = info.get("token_required").and_then(Value::as_bool);
        assert_eq!(asked, required, "{id}");
        assert_eq!(info["media"][0].get("codec_required"), None);
        assert_eq!(info["media"][1]["codec_required"], true);
    }
}

#[tokio::test]
async fn a_first_secret_is_set_by_who_knows_the_token() {
    let world = World::new().await;
    let mut client = world.client().await;
    let stage = json!({
        "request": "create", "type": "whip", "id": 7, "token": "t0k",
        "media": [{ "type": "audio", "mid": "a" }],
    });
    create(&mut client, stage).await;
    let edit = |members: Value| {
        let mut body = json!({ "request": "edit", "id": 7 });
        let object = body.as_object_mut().unwrap();
        object.extend(members.as_object().unwrap().clone());
        body
    };
    let info = client.request(json!({ "request": "info", "id": 7 })).await;
    assert_eq!(info["info"].get("token"), None);
    assert_eq!(info["info"].get("secret_required"), None);
    let unshown = edit(json!({ "new_secret": "s3" }));
    assert_eq!(refused(&mut client, unshown).await, 453);
    let wrong = edit(json!({ "new_secret": "s3", "token": "no" }));
    assert_eq!(refused(&mut client, wrong).await, 457);
    for allowed in [
        // The other options are open to all.
        json!({ "new_description": "Hall", "new_secret": "" }),
        json!({ "new_secret": "s3", "token": "t0k" }),
        // From then on the secret is enough.
        json!({ "new_secret": "s4", "secret": "s3" }),
    ] {
        assert_eq!(client.request(edit(allowed)).await["streaming"], "edited");
    }
    let info = json!({ "request": "info", "id": 7, "secret": "s4" });
    let info = client.request(info).await["info"].clone();
    assert_eq!(
        (&info["token"], &info["description"]),
        (&json!("t0k"), &json!("Hall"))
    );
}

#[tokio::test]
async fn edits_change_what_they_name() {
    let world = World::new().await;
    let mut client = world.client().await;
    create(&mut client, camera(7)).await;
    let edit = |members: Value| {
        let mut body = json!({ "request": "edit", "id": 7 });
        let object = body.as_object_mut().unwrap();
        object.extend(members.as_object().unwrap().clone());
        body
    };
    let edited = client
        .request(edit(json!({
            "new_description": "Hall", "new_metadata": "m", "new_secret": "s", "new_pin": "p",
            "new_is_private": true,
        })))
        .await;
    assert_eq!(
        edited,
        json!({ "streaming": "edited", "id": 7, "permanent": false })
    );
    assert_eq!(refused(&mut client, edit(json!({}))).await, 453);
    assert_eq!(
        refused(&mut client, edit(json!({ "secret": "x" }))).await,
        457
    );
    assert_eq!(
        refused(&mut client, edit(json!({ "secret": 1 }))).await,
        454
    );
    client
        .request(edit(
            json!({ "secret": "s", "new_secret": "", "new_pin": "", "new_is_private": false }),
        ))
        .await;
    let info = json!({ "request": "info", "id": 7, "secret": "s" });
    let info = client.request(info).await["info"].clone();
    assert_eq!(info["description"], "Hall");
    assert_eq!(info["metadata"], "m");
    assert_eq!(info["secret"], "s");
    assert_eq!(info.get("pin"), None);
    assert_eq!(info.get("is_private"), None);
}

#[tokio::test]
async fn a_destroyed_mountpoint_is_gone_with_its_ports() {
    let world = World::new().await;
    let mut client = world.client().await;
    let created = create(&mut client, camera(7)).await;
    let port = created["stream"]["ports"][0]["port"].clone();
    let destroy = json!({ "request": "destroy", "id": 7 });
    let destroyed = client.request(destroy.clone()).await;
    assert_eq!(
        destroyed,
        json!({ "streaming": "destroyed", "destroyed": 7 })
    );
    assert_eq!(refused(&mut client, destroy).await, 455);
    assert!(world.server.requested().ingests.is_empty());
    let mut again = camera(7);
    again["media"][0]["port"] = port.clone();
    let again = create(&mut client, again).await;
    assert_eq!(again["stream"]["ports"][0]["port"], port);
}

#[tokio::test]
async fn a_disabled_mountpoint_takes_nothing_in() {
    let world = World::new().await;
    let mut client = world.client().await;
    create(&mut client, camera(7)).await;
    for (request, enabled) in [("disable", false), ("enable", true), ("disable", false)] {
        let ok = client.request(json!({ "request": request, "id": 7 })).await;
        assert_eq!(ok, json!({ "streaming": "ok" }));
        let list = client.request(json!({ "request": "list" })).await;
        assert_eq!(list["list"][0]["enabled"], enabled);
        let ingests = world.server.requested().ingests;
        assert!(ingests.iter().all(|ingest| ingest.enabled == enabled));
    }
}

#[tokio::test]
async fn administrators_manage_without_a_handle() {
    let world = World::new().await;
    let ask = async |request: Value| match world.plugin.admin(request) {
        Some(Reply::Later(later)) => later.result().await,
        Some(Reply::Success(data)) => data,
        other => panic!("{other:?}"),
    };
    assert_eq!(ask(camera(7)).await["streaming"], "created");
    let list = ask(json!({ "request": "list" })).await;
    assert_eq!(list["list"][0]["id"], 7);
    assert_eq!(
        ask(json!({ "request": "watch", "id": 7 })).await["error_code"],
        452
    );
    assert_eq!(ask(json!("list")).await["error_code"], 451);
    assert_eq!(ask(json!({})).await["error_code"], 453);
    let destroyed = ask(json!({ "request": "DESTROY", "id": 7 })).await;
    assert_eq!(destroyed["destroyed"], 7);
}

#[tokio::test]
async fn ids_are_text_if_the_plugin_is_told_so() {
    let world = World::with(StreamingConfig {
        string_ids: true,
        ..StreamingConfig::default()
    })
    .await;
    let mut client = world.client().await;
    let mut body = camera(7);
    assert_eq!(refused(&mut client, body.clone()).await, 454);
    body["id"] = json!("lobby");
    assert_eq!(
        create(&mut client, body.clone()).await["stream"]["id"],
        "lobby"
    );
    body.as_object_mut().unwrap().remove("id");
    let random = create(&mut client, body).await;
    assert_eq!(random["stream"]["id"].as_str().unwrap().len(), 36);
    let info = json!({ "request": "info", "id": "lobby" });
    assert_eq!(client.request(info).await["info"]["id"], "lobby");
    let number = json!({ "request": "info", "id": 7 });
    assert_eq!(refused(&mut client, number).await, 454);
}
