//! Mixes: each participant hears all others.

use portunus_sdp::{CodecName, Direction};
use serde_json::json;

use crate::world::{Member, ROOM, create, manage, talk, talk_for, with_room};

const A: f32 = 400.0;
const B: f32 = 700.0;
const C: f32 = 1_100.0;

#[tokio::test]
async fn each_hears_all_others_and_not_itself() {
    let server = with_room(json!({})).await;
    let mut ann = Member::join(&server, A, json!({})).await;
    let mut bob = Member::join(&server, B, json!({})).await;
    let pcma = (CodecName::Pcma, Direction::SendRecv);
    let mut cleo = Member::with(&server, C, json!({ "codec": "pcma" }), pcma).await;
    talk(
        &mut [&mut ann, &mut bob, &mut cleo],
        "a talk of three",
        |it| {
            it.iter().all(|one| {
                it.iter().all(|other| match one.tone == other.tone {
                    true => one.is_deaf_to(other.tone),
                    false => one.hears(other.tone),
                })
            })
        },
    )
    .await;
}

#[tokio::test]
async fn who_leaves_is_silent_and_hears_again_after_a_join_without_an_offer() {
    let server = with_room(json!({})).await;
    let mut ann = Member::join(&server, A, json!({ "id": 1 })).await;
    let mut bob = Member::join(&server, B, json!({ "id": 2 })).await;
    talk(&mut [&mut ann, &mut bob], "a talk", |it| {
        it[0].hears(B) && it[1].hears(A)
    })
    .await;
    let left = ann.ask(json!({ "request": "leave" })).await;
    assert_eq!(left["audiobridge"], "left");
    talk(&mut [&mut ann, &mut bob], "silence", |it| {
        it[1].is_deaf_to(A)
    })
    .await;
    let joined = ann
        .ask(json!({ "request": "join", "room": ROOM, "id": 3 }))
        .await;
    assert_eq!(joined["audiobridge"], "joined");
    assert!(joined["jsep"].is_null());
    talk(&mut [&mut ann, &mut bob], "a talk again", |it| {
        it[0].hears(B) && it[1].hears(A)
    })
    .await;
}

#[tokio::test]
async fn muting_silences_one_or_all_but_administrators() {
    let server = with_room(json!({ "secret": "s" })).await;
    let mut ann = Member::join(&server, A, json!({ "id": 1, "secret": "s" })).await;
    let mut bob = Member::join(&server, B, json!({ "id": 2, "muted": true })).await;
    talk(&mut [&mut ann, &mut bob], "one who is muted", |it| {
        it[1].hears(A)
    })
    .await;
    talk_for(&mut [&mut ann, &mut bob], 20).await;
    assert!(ann.is_deaf_to(B), "muted: {}", ann.loudness(B));
    let unmute = json!({ "request": "configure", "muted": false });
    assert_eq!(bob.ask(unmute).await["result"], "ok");
    talk(&mut [&mut ann, &mut bob], "both", |it| {
        it[0].hears(B) && it[1].hears(A)
    })
    .await;
    let room = |request: &str| json!({ "request": request, "room": ROOM, "secret": "s" });
    manage(&server, room("mute_room")).await;
    talk(&mut [&mut ann, &mut bob], "a muted room", |it| {
        it[0].is_deaf_to(B)
    })
    .await;
    assert!(bob.hears(A), "an administrator is heard");
    manage(&server, room("unmute_room")).await;
    talk(&mut [&mut ann, &mut bob], "both again", |it| it[0].hears(B)).await;
}

#[tokio::test]
async fn who_is_suspended_is_not_heard_and_hears_nothing() {
    let server = with_room(json!({})).await;
    let mut ann = Member::join(&server, A, json!({ "id": 1 })).await;
    let mut bob = Member::join(&server, B, json!({ "id": 2 })).await;
    talk(&mut [&mut ann, &mut bob], "a talk", |it| {
        it[0].hears(B) && it[1].hears(A)
    })
    .await;
    let one = |request: &str| json!({ "request": request, "room": ROOM, "id": 2 });
    manage(&server, one("suspend")).await;
    talk(&mut [&mut ann, &mut bob], "silence", |it| {
        it[0].is_deaf_to(B)
    })
    .await;
    talk_for(&mut [&mut ann, &mut bob], 10).await;
    let before = bob.heard_samples();
    talk_for(&mut [&mut ann, &mut bob], 10).await;
    assert_eq!(bob.heard_samples(), before, "nothing is sent to it");
    manage(&server, one("resume")).await;
    talk(&mut [&mut ann, &mut bob], "a talk again", |it| {
        it[0].hears(B) && it[1].hears(A)
    })
    .await;
}

#[tokio::test]
async fn a_change_of_rooms_takes_the_voice_along() {
    let server = with_room(json!({})).await;
    create(
        &server,
        json!({ "room": 7, "spatial_audio": true, "sampling_rate": 48_000 }),
    )
    .await;
    let mut ann = Member::join(&server, A, json!({})).await;
    let mut bob = Member::join(&server, B, json!({})).await;
    let mut cleo = Member::join(&server, C, json!({ "room": 7 })).await;
    talk(&mut [&mut ann, &mut bob, &mut cleo], "a talk", |it| {
        it[1].hears(A)
    })
    .await;
    let changed = ann.ask(json!({ "request": "changeroom", "room": 7 })).await;
    assert_eq!(changed["audiobridge"], "roomchanged");
    talk(
        &mut [&mut ann, &mut bob, &mut cleo],
        "the other room",
        |it| it[2].hears(A) && it[0].hears(C) && it[1].is_deaf_to(A) && it[0].is_deaf_to(B),
    )
    .await;
}

#[tokio::test]
async fn talking_is_told_to_all() {
    let options = json!({ "audiolevel_event": true, "audio_active_packets": 10 });
    let server = with_room(options).await;
    let mut ann = Member::join(&server, A, json!({ "id": 1 })).await;
    let mut bob = Member::join(&server, B, json!({ "id": 2 })).await;
    bob.is_silent = true;
    talk_for(&mut [&mut ann, &mut bob], 60).await;
    let expected = json!({ "audiobridge": "talking", "room": ROOM, "id": 1 });
    assert_eq!(ann.told("audiobridge", "talking").await, expected);
    assert_eq!(bob.told("audiobridge", "talking").await, expected);
    let list = json!({ "request": "listparticipants", "room": ROOM });
    assert_eq!(
        manage(&server, list).await["participants"][0]["talking"],
        true
    );
    ann.is_silent = true;
    talk_for(&mut [&mut ann, &mut bob], 60).await;
    let stopped = bob.told("audiobridge", "stopped-talking").await;
    assert_eq!(stopped["id"], 1);
}

#[tokio::test]
async fn a_renegotiation_with_a_new_direction_is_followed() {
    let server = with_room(json!({})).await;
    let mut ann = Member::join(&server, A, json!({})).await;
    let mut bob = Member::join(&server, B, json!({})).await;
    talk(&mut [&mut ann, &mut bob], "a talk", |it| {
        it[1].hears(A) && it[0].hears(B)
    })
    .await;
    let again = ann
        .peer
        .offer(crate::world::offer(CodecName::Opus, Direction::RecvOnly));
    let configure = json!({ "request": "configure" });
    ann.caller.message(configure, Some(("offer", &again))).await;
    let answer = ann.caller.until("/plugindata/data/result", "ok").await;
    ann.peer.accept(answer["jsep"]["sdp"].as_str().unwrap());
    ann.is_silent = true;
    talk(&mut [&mut ann, &mut bob], "a listener", |it| {
        it[1].is_deaf_to(A) && it[0].hears(B)
    })
    .await;
}
