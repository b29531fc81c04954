//! Muting, denoising and kicking.

use serde_json::{Value, json};

use crate::world::{ROOM, World, ask, merge};

fn request(name: &str, members: Value) -> Value {
    let mut request = json!({ "request": name, "room": ROOM, "secret": "s" });
    merge(&mut request, members);
    request
}

#[tokio::test]
async fn who_is_muted_is_told_to_all_and_can_unmute_itself() {
    let world = World::new(json!({ "secret": "s" })).await;
    let mut ann = world.join(1, json!({})).await;
    let mut moderator = world.attach().await;
    let done = json!({ "audiobridge": "success", "room": ROOM });
    let same = json!({ "audiobridge": "success" });
    let one = json!({ "id": 1 });
    assert_eq!(moderator.request(request("mute", one.clone())).await, done);
    let shown = |muted: bool| {
        let shown = json!({ "id": 1, "setup": false, "muted": muted });
        json!({ "audiobridge": "event", "room": ROOM, "participants": [shown] })
    };
    assert_eq!(ann.event().await, shown(true));
    assert_eq!(moderator.request(request("mute", one.clone())).await, same);
    ann.expect_silence().await;
    let unmute = json!({ "request": "configure", "muted": false });
    assert_eq!(ask(&mut ann, unmute).await["result"], "ok");
    assert_eq!(
        moderator.request(request("unmute", one.clone())).await,
        same
    );
    moderator.request(request("mute", one.clone())).await;
    assert_eq!(ann.event().await, shown(true));
    assert_eq!(moderator.request(request("unmute", one)).await, done);
    assert_eq!(ann.event().await, shown(false));
}

#[tokio::test]
async fn a_muted_room_is_told_of_and_leaves_people_as_they_are() {
    let world = World::new(json!({ "secret": "s" })).await;
    let mut ann = world.join(1, json!({})).await;
    let mut moderator = world.attach().await;
    let done = json!({ "audiobridge": "success", "room": ROOM });
    assert_eq!(
        moderator.request(request("mute_room", json!({}))).await,
        done
    );
    let told = |muted: bool| json!({ "audiobridge": "event", "room": ROOM, "muted": muted });
    assert_eq!(ann.event().await, told(true));
    let same = json!({ "audiobridge": "success" });
    assert_eq!(
        moderator.request(request("mute_room", json!({}))).await,
        same
    );
    assert_eq!(world.participants().await[0]["muted"], false);
    let list = moderator.request(json!({ "request": "list" })).await;
    assert_eq!(list["list"][0]["muted"], true);
    assert_eq!(
        moderator.request(request("unmute_room", json!({}))).await,
        done
    );
    assert_eq!(ann.event().await, told(false));
    ann.expect_silence().await;
}

#[tokio::test]
async fn noise_is_taken_out_as_moderators_say() {
    let world = World::new(json!({ "secret": "s", "denoise": true })).await;
    let mut ann = world.join(1, json!({})).await;
    let bob = world.join(2, json!({ "denoise": false })).await;
    ann.event().await;
    assert_eq!(world.state(&ann).await["denoise"], true);
    assert_eq!(world.state(&bob).await["denoise"], false);
    let mut moderator = world.attach().await;
    let done = json!({ "audiobridge": "success", "room": ROOM });
    let one = json!({ "id": 1 });
    let disable = request("denoise_disable", one.clone());
    assert_eq!(moderator.request(disable).await, done);
    assert_eq!(world.state(&ann).await["denoise"], false);
    assert_eq!(
        moderator.request(request("denoise_enable", one)).await,
        done
    );
    assert_eq!(world.state(&ann).await["denoise"], true);
    ann.expect_silence().await;
}

#[tokio::test]
async fn whoever_is_kicked_is_gone_without_a_connection_too_and_may_come_back() {
    let world = World::new(json!({ "secret": "s" })).await;
    let mut ann = world.join(1, json!({})).await;
    let mut bob = world
        .join(2, json!({ "suspended": true, "pause_events": true }))
        .await;
    ann.event().await;
    let mut moderator = world.attach().await;
    let kicked = moderator.request(request("kick", json!({ "id": 1 }))).await;
    assert_eq!(kicked, json!({ "audiobridge": "success" }));
    let told = json!({ "audiobridge": "event", "room": ROOM, "kicked": 1 });
    assert_eq!(ann.event().await, told);
    ann.expect_silence().await;
    // Participants with paused events are told, too.
    assert_eq!(bob.event().await, told);
    let leaving = json!({ "audiobridge": "event", "room": ROOM, "leaving": 1 });
    assert_eq!(bob.event().await, leaving);
    assert_eq!(world.participants().await.len(), 1);
    let again = ask(
        &mut ann,
        json!({ "request": "join", "room": ROOM, "id": 1 }),
    )
    .await;
    assert_eq!(again["audiobridge"], "joined");
}

#[tokio::test]
async fn all_are_kicked_and_each_is_told_of_itself_only() {
    let world = World::new(json!({ "secret": "s" })).await;
    let (mut ann, _) = world.talker(1, json!({})).await;
    let mut bob = world.join(2, json!({})).await;
    ann.event().await;
    let kicked = world
        .attach()
        .await
        .request(request("kick_all", json!({})))
        .await;
    assert_eq!(kicked, json!({ "audiobridge": "success" }));
    let told = |id: u64| json!({ "audiobridge": "event", "room": ROOM, "kicked_all": id });
    assert_eq!(ann.event().await, told(1));
    assert_eq!(ann.next().await["janus"], "hangup");
    assert_eq!(bob.event().await, told(2));
    ann.expect_silence().await;
    bob.expect_silence().await;
    assert!(world.participants().await.is_empty());
}
