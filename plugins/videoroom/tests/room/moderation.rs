//! Moderating, throwing out, private ids, and the end of rooms.

use portunus_core::testing::jsep;
use serde_json::json;

use crate::world::{AV, ROOM, World, ask, code, sync};

#[tokio::test]
async fn a_moderated_stream_is_closed_for_all() {
    let world = World::new(json!({ "secret": "s" })).await;
    let mut al = world.publisher(1, &AV).await;
    let (mut bo, _) = world.join(json!({ "id": 2 })).await;
    let viewer = world.viewer(json!({ "streams": [{ "feed": 1 }] })).await;
    let mut admin = world.attach().await;
    let moderate = |mute: bool| {
        json!({ "request": "moderate", "room": ROOM, "secret": "s", "id": 1, "mid": "0",
                "mute": mute })
    };
    let success = json!({ "videoroom": "success" });
    assert_eq!(sync(&mut admin, moderate(true)).await, success);
    assert_eq!(
        (world.routes(&viewer)[0].3, world.routes(&viewer)[1].3),
        (false, true)
    );
    let muted = json!({ "videoroom": "event", "room": ROOM, "id": 1, "mid": "0",
                        "moderation": "muted" });
    assert_eq!(al.client.event().await, muted);
    assert_eq!(bo.event().await, muted);
    let (_, joined) = world.join(json!({ "id": 3 })).await;
    assert_eq!(joined["publishers"][0]["streams"][0]["moderated"], true);
    // The publisher cannot undo it.
    let configure = json!({ "request": "configure", "audio": true });
    let configured = ask(&mut al.client, configure).await;
    assert_eq!(configured["configured"], "ok");
    assert!(!world.routes(&viewer)[0].3);
    // A repetition is announced again.
    assert_eq!(sync(&mut admin, moderate(true)).await, success);
    for client in [&mut al.client, &mut bo] {
        assert_eq!(client.event().await, muted);
    }
    sync(&mut admin, moderate(false)).await;
    assert_eq!(al.client.event().await["moderation"], "unmuted");
    assert_eq!(bo.event().await["moderation"], "unmuted");
    assert!(world.routes(&viewer)[0].3);
    ask(
        &mut al.client,
        json!({ "request": "configure", "mid": "0", "send": false }),
    )
    .await;
    assert!(!world.routes(&viewer)[0].3);
}

#[tokio::test]
async fn whoever_is_kicked_is_gone() {
    let world = World::new(json!({})).await;
    let named = json!({ "id": 1, "display": "Al", "metadata": { "x": 7 } });
    let mut al = world
        .publisher_with(named, jsep("offer", "alal", &AV))
        .await;
    let (mut bo, _) = world.join(json!({ "id": 2 })).await;
    let mut viewer = world.viewer(json!({ "streams": [{ "feed": 1 }] })).await;
    let kick = json!({ "request": "kick", "room": ROOM, "id": 1 });
    let mut admin = world.attach().await;
    for _ in 0..2 {
        let kicked = sync(&mut admin, kick.clone()).await;
        assert_eq!(kicked, json!({ "videoroom": "success" }));
    }
    let event = al.client.event().await;
    let leaving =
        json!({ "videoroom": "event", "room": ROOM, "leaving": "ok", "reason": "kicked" });
    assert_eq!(event, leaving);
    assert_eq!(al.client.next().await["janus"], "hangup");
    assert_eq!(
        bo.event().await,
        json!({ "videoroom": "event", "room": ROOM, "kicked": 1, "metadata": { "x": 7 } }),
        "with a display it would be taken for a change of name"
    );
    bo.expect_silence().await;
    viewer.offered().await;
    assert_eq!(viewer.directions(), ["inactive", "inactive"]);
    let configure = json!({ "request": "configure", "audio": true });
    assert_eq!(code(&ask(&mut al.client, configure).await), 426);
    al.client.on_handle("detach", json!({})).await;
    bo.expect_silence().await;
    let refused = sync(&mut bo, kick).await;
    assert_eq!(code(&refused), 428);
    assert_eq!(refused["error"], format!("No such user 1 in room {ROOM}"));
}

#[tokio::test]
async fn moderators_are_told_whom_there_is_not() {
    let world = World::new(json!({})).await;
    let _al = world.publisher(1, &AV).await;
    let mut admin = world.attach().await;
    for (id, mid, text) in [
        (9, "0", format!("No such user 9 in room {ROOM}")),
        (1, "9", "No such stream 9".to_owned()),
    ] {
        let moderate =
            json!({ "request": "moderate", "room": ROOM, "id": id, "mid": mid, "mute": true });
        let refused = sync(&mut admin, moderate).await;
        assert_eq!(code(&refused), 428);
        assert_eq!(refused["error"], text);
    }
}

#[tokio::test]
async fn private_ids_tie_subscriptions_to_participants() {
    let world = World::new(json!({ "require_pvtid": true })).await;
    let _al = world.publisher(1, &AV).await;
    let (mut bo, joined) = world.join(json!({ "id": 2 })).await;
    let mut client = world.attach().await;
    for private_id in [None, Some(7)] {
        let mut join = json!({ "request": "join", "room": ROOM, "ptype": "subscriber", "feed": 1 });
        if let Some(private_id) = private_id {
            join["private_id"] = private_id.into();
        }
        assert_eq!(code(&ask(&mut client, join).await), 433);
    }
    let own = json!({ "streams": [{ "feed": 1 }], "private_id": joined["private_id"] });
    let mut viewer = world.viewer(own).await;
    assert!(world.routes(&viewer).iter().all(|route| route.3));
    sync(&mut bo, json!({ "request": "kick", "room": ROOM, "id": 2 })).await;
    assert!(world.routes(&viewer).iter().all(|route| !route.3));
    let configure = json!({ "request": "configure", "audio": true });
    assert_eq!(code(&ask(&mut viewer.client, configure).await), 433);
}

#[tokio::test]
async fn a_room_that_is_destroyed_ends_all_that_was_in_it() {
    let world = World::new(json!({ "secret": "s" })).await;
    let mut people = Vec::new();
    for id in 1..=3 {
        people.push(world.publisher(id, &AV).await);
    }
    let mut viewers = Vec::new();
    for feed in 1..=3 {
        let want = json!({ "streams": [{ "feed": feed }] });
        viewers.push(world.viewer(want).await);
    }
    let mut admin = world.attach().await;
    let destroy = json!({ "request": "destroy", "room": ROOM, "secret": "s" });
    let destroyed = json!({ "videoroom": "destroyed", "room": ROOM, "permanent": false });
    assert_eq!(sync(&mut admin, destroy.clone()).await, destroyed);
    for person in &mut people {
        let event = loop {
            let event = person.client.event().await;
            if event.get("publishers").is_none() {
                break event;
            }
        };
        assert_eq!(event, json!({ "videoroom": "destroyed", "room": ROOM }));
        assert_eq!(person.client.next().await["reason"], "Close PC");
        person.client.expect_silence().await;
    }
    for viewer in &mut viewers {
        assert_eq!(viewer.client.next().await["janus"], "hangup");
        viewer.client.expect_silence().await;
    }
    assert!(world.server.peers().is_empty());
    assert!(world.requested().routes.is_empty());
    let configure = json!({ "request": "configure" });
    assert_eq!(
        code(&ask(&mut people[0].client, configure.clone()).await),
        426
    );
    assert_eq!(code(&ask(&mut viewers[0].client, configure).await), 426);
    assert_eq!(code(&sync(&mut admin, destroy).await), 426);
}
