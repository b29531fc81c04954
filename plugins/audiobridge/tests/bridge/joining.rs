//! Joining, leaving, and the events about them.

use portunus_core::CoreConfig;
use portunus_core::media::{CloseReason, PeerStats};
use portunus_core::testing::signed_token;
use serde_json::{Value, json};

use crate::world::{PACKAGE, ROOM, World, ask, code, offer};
use portunus_audiobridge::AudioBridgeConfig;
use portunus_core::record::RecorderConfig;

#[tokio::test]
async fn whoever_comes_is_told_of_the_others_and_they_of_it() {
    let world = World::new(json!({ "spatial_audio": true })).await;
    let (mut ann, _) = world
        .talker(1, json!({ "display": "Ann", "spatial_position": 101 }))
        .await;
    let mut bob = world.attach().await;
    let join = json!({ "request": "join", "room": ROOM, "muted": true, "suspended": true });
    let joined = ask(&mut bob, join).await;
    let id = joined["id"].as_u64().unwrap();
    let shown = json!({
        "id": 1, "display": "Ann", "setup": true, "muted": false, "talking": false,
        "spatial_position": 100,
    });
    let expected =
        json!({ "audiobridge": "joined", "room": ROOM, "id": id, "participants": [shown] });
    assert_eq!(joined, expected);
    let shown = json!({
        "id": id, "setup": false, "muted": true, "spatial_position": 50, "suspended": true,
    });
    assert_eq!(
        ann.event().await,
        json!({ "audiobridge": "joined", "room": ROOM, "participants": [shown] })
    );
}

#[tokio::test]
async fn talking_is_shown_in_whole_lists_of_those_whose_packets_tell_levels() {
    let world = World::new(json!({})).await;
    let (mut ann, _) = world.talker(1, json!({})).await;
    let bob = world.join(2, json!({})).await;
    assert!(ann.event().await["participants"][0]["talking"].is_null());
    let people = world.participants().await;
    assert_eq!(
        (&people[0]["talking"], &people[1]["talking"]),
        (&json!(false), &Value::Null)
    );
    drop(bob);

    let world = World::new(json!({ "audiolevel_ext": false })).await;
    world.talker(1, json!({})).await;
    assert!(world.participants().await[0]["talking"].is_null());
}

#[tokio::test]
async fn others_see_what_is_configured() {
    let world = World::new(json!({ "spatial_audio": true })).await;
    let mut ann = world.join(1, json!({})).await;
    let mut bob = world.join(2, json!({})).await;
    ann.event().await;
    let ok = json!({ "audiobridge": "event", "result": "ok" });
    for (members, shown) in [
        (
            json!({ "display": "Bo" }),
            json!({ "id": 2, "display": "Bo", "setup": false, "muted": false, "spatial_position": 50 }),
        ),
        (
            json!({ "muted": false }),
            json!({ "id": 2, "display": "Bo", "setup": false, "muted": false, "spatial_position": 50 }),
        ),
        (
            json!({ "spatial_position": 1000 }),
            json!({ "id": 2, "display": "Bo", "setup": false, "muted": false, "spatial_position": 100 }),
        ),
        (
            json!({ "denoise": true }),
            json!({ "id": 2, "display": "Bo", "setup": false, "muted": false, "spatial_position": 100 }),
        ),
    ] {
        let mut request = json!({ "request": "configure" });
        crate::world::merge(&mut request, members);
        assert_eq!(ask(&mut bob, request).await, ok);
        assert_eq!(
            ann.event().await,
            json!({ "audiobridge": "event", "room": ROOM, "participants": [shown] })
        );
    }
    // Other members are not visible to others.
    let hidden = json!({
        "request": "configure", "volume": 200, "bitrate": 1, "quality": 10, "expected_loss": 20,
    });
    assert_eq!(ask(&mut bob, hidden).await, ok);
    ann.expect_silence().await;
    let state = world.state(&bob).await;
    assert_eq!(
        (&state["opus-bitrate"], &state["expected-loss"]),
        (&json!(0), &json!(20))
    );
    assert_eq!(state["denoise"], true);
}

#[tokio::test]
async fn leaving_keeps_the_connection_and_joining_again_uses_it() {
    let world = World::new(json!({})).await;
    let (mut ann, _) = world.talker(1, json!({})).await;
    let mut bob = world.join(2, json!({})).await;
    ann.event().await;
    let left = ask(&mut ann, json!({ "request": "leave" })).await;
    assert_eq!(
        left,
        json!({ "audiobridge": "left", "room": ROOM, "id": 1 })
    );
    let leaving = json!({ "audiobridge": "event", "room": ROOM, "leaving": 1 });
    assert_eq!(bob.event().await, leaving);
    ann.expect_silence().await;

    let joined = ask(
        &mut ann,
        json!({ "request": "join", "room": ROOM, "id": 3 }),
    )
    .await;
    assert_eq!(joined["participants"][0]["id"], 2);
    // Others see it without media at first, and no event follows.
    let shown = json!({ "id": 3, "setup": false, "muted": false });
    assert_eq!(
        bob.event().await,
        json!({ "audiobridge": "joined", "room": ROOM, "participants": [shown] })
    );
    bob.expect_silence().await;
    assert_eq!(world.participants().await[1]["setup"], true);
    assert_eq!(world.server.peers().len(), 1);
}

#[tokio::test]
async fn hanging_up_leaves_with_the_connection() {
    let world = World::new(json!({})).await;
    let (mut ann, _) = world.talker(1, json!({})).await;
    let mut bob = world.join(2, json!({})).await;
    ann.event().await;
    let hung_up = ask(&mut ann, json!({ "request": "hangup" })).await;
    assert_eq!(hung_up, json!({ "audiobridge": "hangingup" }));
    let hangup = ann.next().await;
    assert_eq!(
        (&hangup["janus"], &hangup["reason"]),
        (&json!("hangup"), &json!("Close PC"))
    );
    let leaving = json!({ "audiobridge": "event", "room": ROOM, "leaving": 1 });
    assert_eq!(bob.event().await, leaving);
    assert_eq!(world.state(&ann).await["state"], "idle");
    // Without a PeerConnection there is nothing to hang up, and nobody leaves.
    assert_eq!(
        ask(&mut bob, json!({ "request": "hangup" })).await,
        json!({ "audiobridge": "hangingup" })
    );
    bob.expect_silence().await;
    assert_eq!(world.participants().await.len(), 1);
}

#[tokio::test]
async fn whoever_loses_its_connection_or_handle_leaves() {
    let world = World::new(json!({})).await;
    let mut ann = world.join(1, json!({})).await;
    let (mut bob, peer) = world
        .talker(2, json!({ "display": "Bob", "muted": true }))
        .await;
    ann.event().await;
    ann.event().await;
    let closed = CloseReason::DtlsAlert;
    world.server.end(peer, closed, PeerStats::default()).await;
    let leaving = |id: u64| json!({ "audiobridge": "event", "room": ROOM, "leaving": id });
    assert_eq!(ann.event().await, leaving(2));
    assert_eq!(bob.next().await["janus"], "hangup");
    assert_eq!(
        code(&ask(&mut bob, json!({ "request": "configure" })).await),
        487
    );
    // A new join has new settings.
    let joined = ask(
        &mut bob,
        json!({ "request": "join", "room": ROOM, "id": 2 }),
    )
    .await;
    assert_eq!(joined["audiobridge"], "joined");
    let shown = json!({ "id": 2, "setup": false, "muted": false });
    assert_eq!(ann.event().await["participants"], json!([shown]));
    bob.on_handle("detach", json!({})).await;
    assert_eq!(ann.event().await, leaving(2));
}

#[tokio::test]
async fn an_offer_can_come_with_the_join() {
    let world = World::new(json!({})).await;
    let mut ann = world.join(1, json!({})).await;
    let mut bob = world.attach().await;
    let join = json!({ "request": "join", "room": ROOM, "id": 2 });
    let (joined, answer) = offer(&mut bob, join).await;
    assert_eq!(joined["audiobridge"], "joined");
    assert_eq!(answer.unwrap()["type"], "answer");
    ann.event().await;
    world.up(*world.server.peers().last().unwrap()).await;
    let shown = json!({ "id": 2, "setup": true, "muted": false });
    assert_eq!(ann.event().await["participants"], json!([shown]));
}

#[tokio::test]
async fn a_room_can_ask_for_signed_tokens() {
    let core = CoreConfig {
        token_auth_secret: Some("core".to_owned().into()),
        ..CoreConfig::default()
    };
    let recording = RecorderConfig {
        enabled: false,
        keep_free_mb: 0,
        ..RecorderConfig::default()
    };
    let world = World::start(AudioBridgeConfig::default(), core, recording);
    world
        .create(json!({ "signed_tokens": true, "pin": "p" }))
        .await;
    let mut client = world.server.attach(PACKAGE).await;
    let token = |room: u64| signed_token(&format!("9999999999,{PACKAGE},room={room}"), "core");
    let join = |token: Option<String>| {
        let mut join = json!({ "request": "join", "room": ROOM, "pin": "p" });
        if let Some(token) = token {
            join["token"] = json!(token);
        }
        join
    };
    for wrong in [None, Some("x".to_owned()), Some(token(5))] {
        let mut request = join(wrong);
        // It is checked before the pin.
        request["pin"] = json!("x");
        let refused = ask(&mut client, request).await;
        assert_eq!(
            (code(&refused), &refused["error"]),
            (489, &json!("Unauthorized (wrong token)"))
        );
    }
    let joined = ask(&mut client, join(Some(token(ROOM)))).await;
    assert_eq!(joined["audiobridge"], "joined");
}

#[tokio::test]
async fn the_state_of_a_handle_is_for_administrators() {
    let world = World::new(json!({ "groups": ["a"], "secret": "s" })).await;
    let client = world.attach().await;
    assert_eq!(world.state(&client).await["state"], "idle");
    let members = json!({ "group": "a", "display": "Ann", "secret": "s" });
    let (ann, _) = world.talker(1, members).await;
    let state = world.state(&ann).await;
    for (member, value) in [
        ("state", json!("inroom")),
        ("room", json!(ROOM)),
        ("id", json!(1)),
        ("group", json!("a")),
        ("display", json!("Ann")),
        ("admin", json!(true)),
        ("muted", json!(false)),
        ("active", json!(true)),
        ("denoise", json!(false)),
        ("fec", json!(true)),
        ("expected-loss", json!(0)),
        ("talking", json!(false)),
        ("suspended", json!(false)),
        ("plugin-offer", json!(false)),
        ("started", json!(true)),
    ] {
        assert_eq!(state[member], value, "{member}: {state}");
    }
}

#[tokio::test]
async fn who_has_no_media_yet_counts_as_being_there() {
    let world = World::new(json!({})).await;
    let mut ann = world.join(1, json!({})).await;
    let until = async |count: u64| {
        let reached = async {
            while world.audio.totals().participants != count {
                tokio::time::sleep(std::time::Duration::from_millis(1)).await;
            }
        };
        let patience = std::time::Duration::from_secs(20);
        tokio::time::timeout(patience, reached).await.unwrap();
    };
    until(1).await;
    ask(&mut ann, json!({ "request": "leave" })).await;
    until(0).await;
}
