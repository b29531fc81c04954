//! Suspended participants.

use serde_json::{Value, json};

use crate::world::{ROOM, World, ask, code, merge};

fn request(name: &str, id: u64, members: Value) -> Value {
    let mut request = json!({ "request": name, "room": ROOM, "id": id });
    merge(&mut request, members);
    request
}

#[tokio::test]
async fn who_is_suspended_is_told_to_all_once() {
    let world = World::new(json!({ "secret": "s" })).await;
    let mut ann = world.join(1, json!({})).await;
    let mut bob = world.join(2, json!({})).await;
    ann.event().await;
    let success = json!({ "audiobridge": "success" });
    // It needs no secret for itself, but one for others.
    assert_eq!(
        code(&ann.request(request("suspend", 2, json!({}))).await),
        483
    );
    assert_eq!(bob.request(request("suspend", 2, json!({}))).await, success);
    let suspended = json!({ "audiobridge": "event", "room": ROOM, "suspended": 2 });
    assert_eq!(bob.event().await, suspended);
    assert_eq!(ann.event().await, suspended);
    assert_eq!(bob.request(request("suspend", 2, json!({}))).await, success);
    bob.expect_silence().await;
    assert_eq!(world.participants().await[1]["suspended"], true);

    let resume = request("resume", 2, json!({ "secret": "s" }));
    assert_eq!(ann.request(resume.clone()).await, success);
    let resumed = json!({ "audiobridge": "event", "room": ROOM, "resumed": 2 });
    assert_eq!(ann.event().await, resumed);
    assert_eq!(bob.event().await, resumed);
    assert_eq!(ann.request(resume).await, success);
    ann.expect_silence().await;
    assert!(world.participants().await[1]["suspended"].is_null());
}

#[tokio::test]
async fn paused_events_are_made_up_for_at_the_end() {
    let world = World::new(json!({ "secret": "s" })).await;
    let mut ann = world.join(1, json!({})).await;
    let mut bob = world.join(2, json!({})).await;
    ann.event().await;
    let pause = request("suspend", 2, json!({ "pause_events": true }));
    bob.request(pause).await;
    assert_eq!(bob.event().await["suspended"], 2);
    assert_eq!(ann.event().await["suspended"], 2);
    let named = json!({ "request": "configure", "display": "Ann" });
    assert_eq!(ask(&mut ann, named).await["result"], "ok");
    let mut eve = world.join(3, json!({})).await;
    ann.event().await;
    ask(&mut eve, json!({ "request": "leave" })).await;
    ann.event().await;
    bob.expect_silence().await;

    bob.request(request("resume", 2, json!({}))).await;
    let shown = json!({ "id": 1, "display": "Ann", "setup": false, "muted": false });
    assert_eq!(
        bob.event().await,
        json!({ "audiobridge": "event", "room": ROOM, "resumed": 2, "participants": [shown] })
    );
    let resumed = json!({ "audiobridge": "event", "room": ROOM, "resumed": 2 });
    assert_eq!(ann.event().await, resumed);
    // From now on it gets all events again.
    ask(&mut ann, json!({ "request": "leave" })).await;
    assert_eq!(bob.event().await["leaving"], 1);
}

#[tokio::test]
async fn whoever_pauses_its_events_hears_of_ends() {
    let world = World::new(json!({ "secret": "s" })).await;
    let paused = json!({ "suspended": true, "pause_events": true });
    let mut ann = world.join(1, paused.clone()).await;
    let bob = world.join(2, json!({})).await;
    ann.expect_silence().await;
    // The loss of a handle is reported.
    drop(bob);
    let mut carl = world.join(3, json!({})).await;
    carl.on_handle("detach", json!({})).await;
    let lost = ann.event().await;
    assert_eq!(lost["leaving"], 3, "{lost}");
    let destroy = json!({ "request": "destroy", "room": ROOM, "secret": "s" });
    world.attach().await.request(destroy).await;
    assert_eq!(ann.event().await["audiobridge"], "destroyed");
}
