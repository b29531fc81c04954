//! Talking and listening by WHIP and WHEP.

use std::net::SocketAddr;
use std::time::Duration;

use portunus_sdp::Direction;
use portunus_tests::{Server, http, serve};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::world::{Member, ROOM, manage, talk, talk_for, with_room};

const A: f32 = 400.0;
const B: f32 = 700.0;
const C: f32 = 1_100.0;

/// Returns the participants of the room.
async fn participants(server: &Server) -> Vec<Value> {
    let list = json!({ "request": "listparticipants", "room": ROOM });
    let list = manage(server, list).await;
    list["participants"].as_array().unwrap().clone()
}

/// Returns the number of listeners, or null without any.
async fn listeners(server: &Server) -> Value {
    let list = manage(server, json!({ "request": "list" })).await;
    list["list"][0]["num_listeners"].clone()
}

async fn delete(to: SocketAddr, location: &str) {
    let (status, answer) = http(to, &format!("DELETE {location}"), &[], b"").await;
    assert_eq!(status, 200, "{answer}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_listener_by_whep_hears_the_room_and_is_gone_once_it_deletes() {
    let server = with_room(json!({ "pin": "1 2" })).await;
    let (_transports, to) = serve(&server.gateway).await;
    let mut ann = Member::join(&server, A, json!({ "pin": "1 2" })).await;
    let mut bob = Member::join(&server, B, json!({ "pin": "1 2" })).await;
    let path = format!("/whep/audiobridge/{ROOM}?pin=1%202");
    let (mut eve, location) = Member::by_http(&server, (to, &path), C, Direction::RecvOnly).await;
    eve.is_silent = true;
    talk(&mut [&mut ann, &mut bob, &mut eve], "a listener", |it| {
        it[2].hears(A) && it[2].hears(B) && it[0].is_deaf_to(A)
    })
    .await;
    assert_eq!(participants(&server).await.len(), 2);
    assert_eq!(listeners(&server).await, 1);

    delete(to, &location).await;
    for _ in 0..500 {
        if listeners(&server).await.is_null() {
            break;
        }
        sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(listeners(&server).await, Value::Null);
    talk(&mut [&mut ann, &mut bob], "a talk", |it| {
        it[0].hears(B) && it[1].hears(A)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_talker_by_whip_is_heard_and_seen_and_is_gone_once_it_deletes() {
    let server = with_room(json!({})).await;
    let (_transports, to) = serve(&server.gateway).await;
    let mut ann = Member::join(&server, A, json!({ "id": 1 })).await;
    let path = format!("/whip/audiobridge/{ROOM}/9?display=Mic");
    let (mut mic, location) = Member::by_http(&server, (to, &path), C, Direction::SendOnly).await;
    let joined = ann.told("audiobridge", "joined").await;
    let is_mic =
        |setup: bool| json!([{ "id": 9, "display": "Mic", "setup": setup, "muted": false }]);
    assert_eq!(joined["participants"], is_mic(false));
    let up = ann.told("audiobridge", "event").await;
    assert_eq!(up["participants"], is_mic(true));
    talk(&mut [&mut ann, &mut mic], "a talker", |it| it[0].hears(C)).await;
    let people = participants(&server).await;
    assert_eq!((people.len(), &people[1]["id"]), (2, &json!(9)));
    // The id is taken now.
    let again = format!("POST {path}");
    let mut other = portunus_tests::Peer::offering().await;
    let offer = other.offer(crate::world::offer(
        portunus_sdp::CodecName::Opus,
        Direction::SendOnly,
    ));
    let (status, _) = http(to, &again, &[crate::world::SDP], offer.as_bytes()).await;
    assert_eq!(status, 409);

    delete(to, &location).await;
    assert_eq!(ann.told("leaving", 9).await["audiobridge"], "event");
    let people = participants(&server).await;
    assert_eq!((people.len(), &people[0]["id"]), (1, &json!(1)));
    talk(&mut [&mut ann], "silence", |it| it[0].is_deaf_to(C)).await;
    talk_for(&mut [&mut ann], 5).await;
}
