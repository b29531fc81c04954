//! Listening without being in the room, as WHEP does.

use portunus_audiobridge::AudioBridgeConfig;
use portunus_core::testing::{Line, jsep};
use portunus_core::{Plugin, Refusal, Stream};
use serde_json::{Value, json};

use crate::world::{ROOM, World, ask, code, offer};

#[tokio::test]
async fn a_listener_is_sent_the_mix_and_nobody_sees_it() {
    let world = World::new(json!({ "pin": "p" })).await;
    let mut ann = world.join(1, json!({ "pin": "p" })).await;
    let mut listener = world.attach().await;
    let listen = json!({ "request": "listen", "room": ROOM });
    let (refused, _) = offer(&mut listener, listen).await;
    assert_eq!(code(&refused), 483);
    let listen = json!({ "request": "listen", "room": ROOM, "pin": "p" });
    let (listening, answer) = offer(&mut listener, listen).await;
    assert_eq!(
        listening,
        json!({ "audiobridge": "listening", "room": ROOM })
    );
    let answer = answer.unwrap()["sdp"].as_str().unwrap().to_owned();
    assert!(answer.lines().any(|line| line == "a=sendonly"), "{answer}");
    ann.expect_silence().await;
    assert_eq!(world.participants().await.len(), 1);
    let peer = *world.server.peers().last().unwrap();
    let routes = world.server.requested().routes;
    assert_eq!(routes.iter().filter(|it| it.to.peer == peer).count(), 1);
    let list = ann.request(json!({ "request": "list" })).await;
    let room = &list["list"][0];
    assert_eq!(
        (&room["num_participants"], &room["num_listeners"]),
        (&json!(1), &json!(1))
    );
    assert_eq!(world.state(&listener).await["state"], "listening");

    let join = json!({ "request": "join", "room": ROOM, "pin": "p" });
    assert_eq!(code(&ask(&mut listener, join).await), 491);
    let left = ask(&mut listener, json!({ "request": "leave" })).await;
    assert_eq!(left, json!({ "audiobridge": "left", "room": ROOM }));
    let list = ann.request(json!({ "request": "list" })).await;
    assert!(list["list"][0]["num_listeners"].is_null());
}

#[tokio::test]
async fn all_listeners_share_one_mix() {
    let world = World::new(json!({})).await;
    let mut listeners = Vec::new();
    for _ in 0..3 {
        let mut listener = world.attach().await;
        let listen = json!({ "request": "listen", "room": ROOM });
        assert!(offer(&mut listener, listen).await.1.is_some());
        listeners.push(listener);
    }
    let routes = world.server.requested().routes;
    assert_eq!(routes.len(), 3);
    assert!(routes.iter().all(|route| route.from == routes[0].from));
}

#[tokio::test]
async fn an_offer_of_ours_can_be_answered() {
    let world = World::new(json!({})).await;
    let mut listener = world.attach().await;
    listener
        .message(json!({ "request": "listen", "room": ROOM }), None)
        .await;
    let (listening, offered) = listener.event_with_jsep().await;
    assert_eq!(listening["audiobridge"], "listening");
    let offered = offered.unwrap();
    assert!(offered["sdp"].as_str().unwrap().contains("a=sendonly"));
    let mut answer = jsep("answer", "ufra1", &[Line::Audio]);
    let text = answer["sdp"]
        .as_str()
        .unwrap()
        .replace("sendrecv", "recvonly");
    answer["sdp"] = json!(text);
    listener
        .message(json!({ "request": "configure" }), Some(answer))
        .await;
    assert_eq!(listener.event().await["result"], "ok");
    assert_eq!(world.server.requested().routes.len(), 1);
}

#[tokio::test]
async fn listeners_hear_of_the_end() {
    let world = World::new(json!({})).await;
    let mut listener = world.attach().await;
    let listen = json!({ "request": "listen", "room": ROOM });
    offer(&mut listener, listen.clone()).await;
    let destroy = json!({ "request": "destroy", "room": ROOM });
    world.attach().await.request(destroy).await;
    assert_eq!(listener.event().await["audiobridge"], "destroyed");
    assert_eq!(listener.next().await["janus"], "hangup");
    let (refused, _) = offer(&mut listener, listen).await;
    assert_eq!(code(&refused), 485);
}

#[tokio::test]
async fn listeners_are_thrown_out_with_all_others() {
    let world = World::new(json!({})).await;
    let mut listener = world.attach().await;
    let listen = json!({ "request": "listen", "room": ROOM });
    offer(&mut listener, listen.clone()).await;
    let kick = json!({ "request": "kick_all", "room": ROOM });
    let mut moderator = world.attach().await;
    moderator.request(kick).await;
    let kicked = json!({ "audiobridge": "event", "room": ROOM, "kicked_all": true });
    assert_eq!(listener.event().await, kicked);
    assert_eq!(listener.next().await["janus"], "hangup");
    let list = moderator.request(json!({ "request": "list" })).await;
    assert!(list["list"][0]["num_listeners"].is_null());
    assert_eq!(world.state(&listener).await["state"], "idle");
}

#[tokio::test]
async fn nothing_that_can_be_sent_is_no_offer_to_a_listener() {
    let world = World::new(json!({})).await;
    let mut listener = world.attach().await;
    let listen = json!({ "request": "listen", "room": ROOM });
    listener
        .message(listen, Some(jsep("offer", "ufra1", &[Line::Video])))
        .await;
    assert_eq!(code(&listener.event().await), 493);
}

#[test]
fn paths_of_whip_and_whep_become_requests() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let _runtime = runtime.enter();
    let plugin = crate::world::plugin(AudioBridgeConfig::default());
    let broadcast = plugin.broadcast().unwrap();
    assert_eq!(broadcast.name(), "audiobridge");
    let query = [("display".to_owned(), "Ann".to_owned())];
    let stream = |part| Stream {
        id: "1234",
        part,
        query: &query,
        token: Some("t"),
    };
    assert_eq!(
        broadcast.publish(&stream(Some("7"))),
        Some(json!({
            "request": "join", "room": 1234, "pin": "t", "token": "t", "id": 7, "display": "Ann",
            "group": "",
        }))
    );
    assert_eq!(
        broadcast.watch(&stream(None)),
        Some(json!({ "request": "listen", "room": 1234, "pin": "t", "token": "t" }))
    );
    assert_eq!(broadcast.watch(&stream(Some("7"))), None::<Value>);
    for (code, meaning) in [
        (485, Refusal::NotFound),
        (484, Refusal::Parameter),
        (483, Refusal::Unauthorized),
        (489, Refusal::Unauthorized),
        (490, Refusal::Conflict),
        (493, Refusal::Unusable),
        (499, Refusal::Internal),
    ] {
        assert_eq!(broadcast.refusal(code), meaning);
    }
}

#[tokio::test]
async fn a_room_with_groups_refuses_whoever_publishes_without_one() {
    let plugin = crate::world::plugin(AudioBridgeConfig::default());
    let broadcast = plugin.broadcast().unwrap();
    let stream = Stream {
        id: "1234",
        part: None,
        query: &[],
        token: None,
    };
    let join = broadcast.publish(&stream).unwrap();
    for (options, expected) in [
        (json!({ "groups": ["a"] }), Refusal::Parameter),
        (
            json!({ "groups": ["a"], "pin": "p" }),
            Refusal::Unauthorized,
        ),
    ] {
        let world = World::new(options).await;
        let refused = ask(&mut world.attach().await, join.clone()).await;
        assert_eq!(broadcast.refusal(code(&refused)), expected, "{refused}");
    }
    let world = World::new(json!({})).await;
    let joined = ask(&mut world.attach().await, join).await;
    assert_eq!(joined["audiobridge"], "joined");
}
