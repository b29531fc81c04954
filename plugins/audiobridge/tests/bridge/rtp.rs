//! Participants by plain RTP.

use portunus_audiobridge::AudioBridgeConfig;
use portunus_core::Networks;
use portunus_core::media::MediaPlane;
use serde_json::{Value, json};

use crate::world::{ROOM, World, ask, code, offer};

fn join(rtp: Value) -> Value {
    json!({ "request": "join", "room": ROOM, "id": 1, "rtp": rtp })
}

#[tokio::test]
async fn whoever_says_where_it_is_has_media_at_once() {
    let world = World::new(json!({ "allow_rtp_participants": true })).await;
    let mut bob = world.join(2, json!({})).await;
    let mut ann = world.attach().await;
    let joined = ask(&mut ann, join(json!({ "ip": "127.0.0.1", "port": 5_004 }))).await;
    let rtp = &joined["rtp"];
    assert_eq!(rtp["payload_type"], 100);
    assert!(rtp["ip"].is_string());
    assert_eq!(rtp["port"].as_u64().unwrap() % 2, 0);
    let joins = bob.event().await;
    assert_eq!(joins["audiobridge"], "joined");
    assert_eq!(joins["participants"][0]["setup"], false);
    let up = bob.event().await;
    assert_eq!(
        (&up["audiobridge"], &up["participants"][0]["setup"]),
        (&json!("event"), &json!(true))
    );
    let state = world.state(&ann).await;
    assert_eq!(state["plain-rtp"]["remote-port"], 5_004);
    assert_eq!(state["plain-rtp"]["local-port"], rtp["port"]);
    // No packet has come yet.
    assert!(state["plain-rtp"]["local-ssrc"].is_u64());
    assert!(state["plain-rtp"]["remote-ssrc"].is_null());
    // Without audio levels it is unknown whether it talks.
    assert!(world.participants().await[1]["talking"].is_null());
    // Hanging up removes it, too.
    ask(&mut ann, json!({ "request": "hangup" })).await;
    assert_eq!(bob.event().await["leaving"], 1);
}

#[tokio::test]
async fn where_to_send_to_can_be_said_later() {
    let world = World::new(json!({ "allow_rtp_participants": true })).await;
    let mut ann = world.attach().await;
    let mut offered = join(json!({}));
    offered["generate_offer"] = json!(true);
    offered["codec"] = json!("pcmu");
    let joined = ask(&mut ann, offered).await;
    assert_eq!(joined["rtp"]["payload_type"], 0);
    assert_eq!(world.participants().await[0]["setup"], false);
    let answer =
        |port: u64| json!({ "request": "configure", "rtp": { "ip": "127.0.0.1", "port": port } });
    assert_eq!(ask(&mut ann, answer(5_006)).await["result"], "ok");
    assert_eq!(world.participants().await[0]["setup"], true);
    // Only once.
    assert_eq!(ask(&mut ann, answer(5_008)).await["result"], "ok");
    assert_eq!(world.state(&ann).await["plain-rtp"]["remote-port"], 5_006);
}

#[tokio::test]
async fn where_to_send_to_can_be_said_again_if_it_could_not_be() {
    let world = World::new(json!({ "allow_rtp_participants": true })).await;
    let mut ann = world.attach().await;
    let mut offered = join(json!({}));
    offered["generate_offer"] = json!(true);
    ask(&mut ann, offered).await;
    let answer = |ip: &str| {
        let rtp = json!({ "ip": ip, "port": 5_006 });
        json!({ "request": "configure", "display": "Ann", "rtp": rtp })
    };
    // Sockets do not broadcast.
    assert_eq!(code(&ask(&mut ann, answer("255.255.255.255")).await), 499);
    let shown = world.participants().await[0].clone();
    assert_eq!(shown, json!({ "id": 1, "setup": false, "muted": false }));
    assert_eq!(ask(&mut ann, answer("127.0.0.1")).await["result"], "ok");
    let shown = world.participants().await[0].clone();
    assert_eq!(
        (&shown["setup"], &shown["display"]),
        (&json!(true), &json!("Ann"))
    );
}

#[tokio::test]
async fn where_nobody_asked_to_send_to_is_not_looked_at() {
    let world = World::empty(AudioBridgeConfig {
        outgoing: Networks(vec!["10.0.0.0/8".parse().unwrap()]),
        ..AudioBridgeConfig::default()
    });
    world.create(json!({})).await;
    let mut ann = world.join(1, json!({})).await;
    let rtp = json!({ "ip": "127.0.0.1", "port": 5_006 });
    let configure = json!({ "request": "configure", "rtp": rtp });
    assert_eq!(ask(&mut ann, configure).await["result"], "ok");
}

#[tokio::test]
async fn rooms_allow_it_and_offers_come_before_it() {
    let world = World::new(json!({})).await;
    let mut ann = world.attach().await;
    let rtp = json!({ "ip": "127.0.0.1", "port": 5_004 });
    assert_eq!(code(&ask(&mut ann, join(rtp.clone())).await), 489);
    let (joined, answer) = offer(&mut ann, join(rtp)).await;
    assert!(joined["rtp"].is_null() && answer.is_some());
}

#[tokio::test]
async fn it_goes_on_to_rooms_that_allow_it_and_to_no_others() {
    let world = World::new(json!({ "allow_rtp_participants": true })).await;
    world.create(json!({ "room": 7 })).await;
    let open = json!({ "room": 8, "allow_rtp_participants": true });
    world.create(open).await;
    let change = |room: u64| json!({ "request": "changeroom", "room": room });
    for offered in [false, true] {
        let mut ann = world.attach().await;
        let mut request = join(json!({}));
        request["generate_offer"] = json!(offered);
        ask(&mut ann, request).await;
        let refused = ask(&mut ann, change(7)).await;
        assert_eq!(code(&refused), 489, "{refused}");
        let text = refused["error"].as_str().unwrap();
        assert!(text.contains("allow_rtp_participants"), "{text}");
        // It stays in its room.
        assert_eq!(world.participants().await[0]["id"], 1);
        let changed = ask(&mut ann, change(8)).await;
        assert_eq!(changed["audiobridge"], "roomchanged", "{changed}");
        assert!(world.participants().await.is_empty());
    }
    // A client with a PeerConnection, or without media yet, may move there.
    let mut bob = world.join(2, json!({})).await;
    let changed = ask(&mut bob, change(7)).await;
    assert_eq!(changed["audiobridge"], "roomchanged", "{changed}");
}

#[tokio::test]
async fn what_is_wrong_in_it_is_told() {
    let world = World::new(json!({ "allow_rtp_participants": true })).await;
    let mut ann = world.attach().await;
    for (rtp, text) in [
        (
            json!({ "ip": 1 }),
            "Invalid element type (ip should be a string)",
        ),
        (json!({ "ip": "host" }), "Invalid value (ip: an IP address)"),
        (
            json!({ "port": "x" }),
            "Invalid element type (port should be an integer)",
        ),
        (
            json!({ "port": 65_536 }),
            "Invalid value (port: 0 to 65535)",
        ),
        (
            json!({ "payload_type": 128 }),
            "Invalid value (payload_type: 0 to 127)",
        ),
        (
            json!({ "audiolevel_ext": 15 }),
            "Invalid value (audiolevel_ext: 1 to 14)",
        ),
        (
            json!({ "fec": 1 }),
            "Invalid element type (fec should be a boolean)",
        ),
    ] {
        let refused = ask(&mut ann, join(rtp)).await;
        assert_eq!((code(&refused), &refused["error"]), (484, &json!(text)));
    }
}

#[tokio::test]
async fn kicking_takes_it_out() {
    let world = World::new(json!({ "allow_rtp_participants": true })).await;
    let mut ann = world.attach().await;
    ask(&mut ann, join(json!({}))).await;
    let kick = json!({ "request": "kick", "room": ROOM, "id": 1 });
    assert_eq!(ann.request(kick).await["audiobridge"], "success");
    assert!(world.participants().await.is_empty());
}

#[tokio::test]
async fn the_address_that_is_told_may_be_that_of_an_interface() {
    let own = MediaPlane::detached().0.address().to_string();
    for (local_ip, told) in [
        (None, own.as_str()),
        (Some("lo"), "127.0.0.1"),
        // The address of a router, which no interface here has.
        (Some("192.0.2.7"), "192.0.2.7"),
        (Some("none-such0"), own.as_str()),
    ] {
        let world = World::empty(AudioBridgeConfig {
            local_ip: local_ip.map(str::to_owned),
            ..AudioBridgeConfig::default()
        });
        world
            .create(json!({ "allow_rtp_participants": true }))
            .await;
        let joined = ask(&mut world.attach().await, join(json!({}))).await;
        assert_eq!(joined["rtp"]["ip"], told, "{local_ip:?}: {joined}");
    }
}
