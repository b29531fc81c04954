//! The conversation of the documentation, word by word.

use serde_json::json;

use crate::world::{World, ask, offer};
use portunus_audiobridge::AudioBridgeConfig;

#[tokio::test]
async fn two_meet_talk_and_one_is_thrown_out() {
    let world = World::empty(AudioBridgeConfig::default());
    let (mut ann, mut bob) = (world.attach().await, world.attach().await);
    let create =
        json!({ "request": "create", "room": 20, "secret": "s", "audiolevel_event": true });
    assert_eq!(
        ann.request(create).await,
        json!({ "audiobridge": "created", "room": 20, "permanent": false })
    );
    let joined = ask(
        &mut ann,
        json!({ "request": "join", "room": 20, "id": 1, "display": "Ann" }),
    )
    .await;
    assert_eq!(
        joined,
        json!({ "audiobridge": "joined", "room": 20, "id": 1, "participants": [] })
    );
    let joined = ask(
        &mut bob,
        json!({ "request": "join", "room": 20, "id": 2, "muted": true }),
    )
    .await;
    assert_eq!(
        ann.event().await,
        json!({ "audiobridge": "joined", "room": 20,
            "participants": [{ "id": 2, "setup": false, "muted": true }] })
    );
    let shown = json!({ "id": 1, "display": "Ann", "setup": false, "muted": false });
    assert_eq!(
        joined,
        json!({ "audiobridge": "joined", "room": 20, "id": 2, "participants": [shown] })
    );
    let (done, answer) = offer(&mut ann, json!({ "request": "configure", "muted": false })).await;
    let told = |shown: serde_json::Value| json!({ "audiobridge": "event", "room": 20, "participants": [shown] });
    assert_eq!(bob.event().await, told(shown));
    assert_eq!(done, json!({ "audiobridge": "event", "result": "ok" }));
    assert_eq!(answer.unwrap()["type"], "answer");
    world.up(*world.server.peers().last().unwrap()).await;
    assert_eq!(ann.next().await["janus"], "webrtcup");
    let up = json!({ "id": 1, "display": "Ann", "setup": true, "muted": false });
    assert_eq!(bob.event().await, told(up));

    let mut moderator = world.attach().await;
    let kick = json!({ "request": "kick", "room": 20, "id": 1, "secret": "s" });
    assert_eq!(
        moderator.request(kick).await,
        json!({ "audiobridge": "success" })
    );
    let kicked = json!({ "audiobridge": "event", "room": 20, "kicked": 1 });
    assert_eq!(ann.event().await, kicked);
    assert_eq!(bob.event().await, kicked);
    let hangup = ann.next().await;
    assert_eq!(
        (&hangup["janus"], &hangup["reason"]),
        (&json!("hangup"), &json!("Close PC"))
    );
    assert_eq!(
        bob.event().await,
        json!({ "audiobridge": "event", "room": 20, "leaving": 1 })
    );
    ann.expect_silence().await;
    bob.expect_silence().await;
}
