//! RTP forwarders.

use portunus_audiobridge::AudioBridgeConfig;
use portunus_core::Networks;
use serde_json::{Value, json};

use crate::world::{ROOM, World, code, merge};

fn forward(members: Value) -> Value {
    let mut request = json!({
        "request": "rtp_forward", "room": ROOM, "host": "127.0.0.1", "port": 5_000,
    });
    merge(&mut request, members);
    request
}

#[tokio::test]
async fn the_mix_is_forwarded_and_listed() {
    let world = World::new(json!({ "groups": ["a"] })).await;
    let mut client = world.attach().await;
    let first = client.request(forward(json!({}))).await;
    let id = first["stream_id"].as_u64().unwrap();
    assert_eq!(
        first,
        json!({
            "audiobridge": "success", "room": ROOM, "stream_id": id, "host": "127.0.0.1", "port": 5_000,
        })
    );
    let key = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5";
    let second = forward(json!({
        "codec": "pcma", "ptype": 7, "ssrc": 99, "group": "a", "always_on": true, "srtp_suite": 80,
        "srtp_crypto": key, "host": "localhost", "host_family": "ipv4", "port": 5_002,
    }));
    let second = client.request(second).await;
    assert_eq!(
        (&second["group"], &second["host"]),
        (&json!("a"), &json!("127.0.0.1"))
    );
    let list = json!({ "request": "listforwarders", "room": ROOM });
    let list = client.request(list).await;
    assert_eq!(list["audiobridge"], "forwarders");
    let mut forwarders = list["rtp_forwarders"].as_array().unwrap().clone();
    forwarders.sort_by_key(|forwarder| forwarder["port"].as_u64());
    assert_eq!(
        forwarders,
        [
            json!({
                "stream_id": id, "ip": "127.0.0.1", "port": 5_000, "ssrc": id, "codec": "opus",
                "ptype": 100, "always_on": false,
            }),
            json!({
                "stream_id": second["stream_id"], "group": "a", "ip": "127.0.0.1", "port": 5_002,
                "ssrc": 99, "codec": "pcma", "ptype": 8, "srtp": true, "always_on": true,
            }),
        ]
    );
    let rooms = client.request(json!({ "request": "list" })).await;
    let forwarded = json!({ "forwarders": 2 });
    assert_eq!(rooms["list"][0]["listening_in"], forwarded, "{rooms}");
    let people = json!({ "request": "listparticipants", "room": ROOM });
    assert_eq!(client.request(people).await["listening_in"], forwarded);
    let stop = json!({ "request": "stop_rtp_forward", "room": ROOM, "stream_id": id });
    let stopped = json!({ "audiobridge": "success", "room": ROOM, "stream_id": id });
    assert_eq!(client.request(stop.clone()).await, stopped);
    // Stopping an unknown one is no error.
    assert_eq!(client.request(stop).await, stopped);
    let list = json!({ "request": "listforwarders", "room": ROOM });
    let list = client.request(list).await;
    assert_eq!(list["rtp_forwarders"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn forwarders_that_cannot_be_are_refused_in_order() {
    let world = World::new(json!({ "groups": ["a"], "secret": "s" })).await;
    let mut client = world.attach().await;
    for (members, expected, text) in [
        (
            json!({ "codec": "g729", "port": 0 }),
            484,
            "Unsupported codec (g729)",
        ),
        (
            json!({ "port": 0, "host_family": "x" }),
            484,
            "Invalid value (port: 1 to 65535)",
        ),
        (
            json!({ "host_family": "x" }),
            484,
            "Invalid value (host_family: ipv4 or ipv6)",
        ),
        (
            json!({ "srtp_suite": 33, "srtp_crypto": "x" }),
            484,
            "Invalid value (srtp_suite: 32 or 80)",
        ),
        (
            json!({ "srtp_suite": 80, "srtp_crypto": "c2hvcnQ=" }),
            484,
            "Invalid value (srtp_crypto: 30 bytes in base64)",
        ),
        (json!({ "room": 5 }), 485, "No such room (5)"),
        (
            json!({ "group": "x" }),
            483,
            "Missing mandatory element (secret)",
        ),
        (
            json!({ "group": "x", "secret": "s" }),
            494,
            "No such group (x)",
        ),
        (
            json!({ "secret": "s", "host": "no.such.host.invalid" }),
            484,
            "Could not resolve address (no.such.host.invalid)",
        ),
    ] {
        let refused = client.request(forward(members.clone())).await;
        assert_eq!(code(&refused), expected, "{members}: {refused}");
        assert_eq!(refused["error"], text);
    }
}

#[tokio::test]
async fn nothing_is_sent_where_the_server_may_not_send() {
    let world = World::empty(AudioBridgeConfig {
        outgoing: Networks(vec!["10.0.0.0/8".parse().unwrap()]),
        ..AudioBridgeConfig::default()
    });
    world
        .create(json!({ "allow_rtp_participants": true }))
        .await;
    let mut client = world.attach().await;
    assert_eq!(code(&client.request(forward(json!({}))).await), 489);
    let named = forward(json!({ "host": "localhost" }));
    assert_eq!(code(&client.request(named).await), 489);
    let join = json!({
        "request": "join", "room": ROOM, "rtp": { "ip": "127.0.0.1", "port": 5_000 },
    });
    assert_eq!(code(&crate::world::ask(&mut client, join).await), 489);
}

#[tokio::test]
async fn a_room_has_so_many_forwarders() {
    let world = World::new(json!({})).await;
    let mut client = world.attach().await;
    for _ in 0..64 {
        assert_eq!(
            client.request(forward(json!({}))).await["audiobridge"],
            "success"
        );
    }
    assert_eq!(code(&client.request(forward(json!({}))).await), 499);
}

#[tokio::test]
async fn forwarding_can_be_locked() {
    let world = World::empty(AudioBridgeConfig {
        admin_key: Some("k".to_owned()),
        lock_rtp_forward: true,
        lock_play_file: true,
        ..AudioBridgeConfig::default()
    });
    world.create(json!({ "admin_key": "k" })).await;
    let mut client = world.attach().await;
    let stop = json!({ "request": "stop_rtp_forward", "room": ROOM, "stream_id": 1 });
    let file =
        |name: &str| json!({ "request": name, "room": ROOM, "file_id": "f", "filename": "f" });
    for request in [
        forward(json!({})),
        stop,
        file("play_file"),
        file("is_playing"),
        file("stop_file"),
        file("stop_all_files"),
    ] {
        let refused = client.request(request.clone()).await;
        assert_eq!(
            refused["error"], "Missing mandatory element (admin_key)",
            "{request}"
        );
        let mut wrong = request.clone();
        wrong["admin_key"] = json!("x");
        assert_eq!(
            client.request(wrong).await["error"],
            "Unauthorized (wrong admin_key)"
        );
    }
    let list = json!({ "request": "listannouncements", "room": ROOM });
    assert_eq!(client.request(list).await["audiobridge"], "announcements");
    let allowed = client.request(forward(json!({ "admin_key": "k" }))).await;
    assert_eq!(allowed["audiobridge"], "success");
}
