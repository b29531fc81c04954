//! The services with the door: WHIP into a room, keys that change, participants of the services.

use std::time::Duration;

use portunus_core::testing::Line;
use portunus_livekit::LiveKitConfig;
use portunus_livekit::protocol::{signal_request, signal_response};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::world::{World, description, signed, token};

/// An answer to a request.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    head: String,
    body: String,
}

impl Reply {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("{self:?}"))
    }

    fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines();
        lines.find_map(|line| {
            let (key, value) = line.split_once(": ")?;
            key.eq_ignore_ascii_case(name).then_some(value)
        })
    }
}

async fn request(world: &World, start: &str, headers: &[(&str, &str)], body: &str) -> Reply {
    let mut stream = TcpStream::connect(world.address).await.unwrap();
    let mut text = format!("{start} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n");
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text.push_str(&format!("Content-Length: {}\r\n\r\n{body}", body.len()));
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_default();
    let status = head.split(' ').nth(1).and_then(|it| it.parse().ok());
    Reply {
        status: status.unwrap_or_default(),
        head: head.to_owned(),
        body: body.to_owned(),
    }
}

/// Calls a method of a service with all grants.
pub async fn call(world: &World, method: &str, room: &str, body: Value) -> Reply {
    let token = token("", room, everything());
    call_with(world, method, &token, body).await
}

fn everything() -> Value {
    json!({
        "roomAdmin": true, "roomCreate": true, "roomList": true, "roomRecord": true,
        "ingressAdmin": true,
    })
}

async fn call_with(world: &World, method: &str, token: &str, body: Value) -> Reply {
    let bearer = format!("Bearer {token}");
    let headers = [
        ("Content-Type", "application/json"),
        ("Authorization", &*bearer),
    ];
    let start = format!("POST /twirp/livekit.{method}");
    request(world, &start, &headers, &body.to_string()).await
}

/// Repeats a call until its answer is as wanted.
async fn until(world: &World, method: &str, body: Value, is_it: impl Fn(&Value) -> bool) -> Value {
    for _ in 0..200 {
        let reply = call(world, method, "demo", body.clone()).await;
        if reply.status == 200 && is_it(&reply.json()) {
            return reply.json();
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    panic!("{method} stays as it is");
}

async fn ingress(world: &World) -> Value {
    let new = json!({
        "input_type": "WHIP_INPUT", "name": "studio", "room_name": "demo",
        "participant_identity": "obs", "participant_name": "Studio",
        "audio": {"source": "SCREEN_SHARE_AUDIO"},
    });
    let made = call(world, "Ingress/CreateIngress", "", new).await;
    assert_eq!(made.status, 200, "{made:?}");
    made.json()
}

const SDP: (&str, &str) = ("Content-Type", "application/sdp");

#[tokio::test]
async fn whip_is_a_participant_of_the_room() {
    let world = World::new().await;
    let made = ingress(&world).await;
    let key = made["stream_key"].as_str().unwrap();
    assert!(made["url"].as_str().unwrap().ends_with("/w"), "{made}");
    let offer = description("offer", &[Line::Audio, Line::Video]).sdp;
    let wrong = request(&world, "POST /w/wrong", &[SDP], &offer).await;
    assert_eq!(wrong.status, 404);
    let keyless = request(&world, "POST /w", &[SDP], &offer).await;
    assert_eq!(keyless.status, 401);
    let text = request(&world, &format!("POST /w/{key}"), &[], &offer).await;
    assert_eq!(text.status, 415);
    let broken = request(&world, &format!("POST /w/{key}"), &[SDP], "v=1").await;
    assert_eq!(broken.status, 406);

    let bearer = format!("Bearer {key}");
    let headers = [SDP, ("Authorization", &*bearer)];
    let begun = request(&world, "POST /w", &headers, &offer).await;
    assert_eq!(begun.status, 201, "{begun:?}");
    assert!(begun.body.contains("a=setup:passive"), "{}", begun.body);
    let location = begun.header("Location").unwrap().to_owned();
    world.all_up().await;
    let list = json!({"room": "demo"});
    let people = until(&world, "RoomService/ListParticipants", list.clone(), |it| {
        it["participants"][0]["tracks"]
            .as_array()
            .is_some_and(|it| it.len() == 2)
    });
    let obs = people.await["participants"][0].clone();
    assert_eq!(obs["identity"], "obs");
    assert_eq!(obs["name"], "Studio");
    assert_eq!(obs["kind"], "INGRESS");
    assert_eq!(obs["tracks"][0]["source"], "SCREEN_SHARE_AUDIO");
    assert_eq!(obs["tracks"][1]["source"], "CAMERA");
    let state =
        |status: &'static str| move |it: &Value| it["items"][0]["state"]["status"] == status;
    let own = json!({"ingress_id": made["ingress_id"]});
    until(
        &world,
        "Ingress/ListIngress",
        own.clone(),
        state("ENDPOINT_PUBLISHING"),
    )
    .await;

    let trickle = [("Content-Type", "application/trickle-ice-sdpfrag")];
    let fragment = "a=mid:0\r\na=candidate:1 1 udp 1 127.0.0.1 9 typ host\r\n";
    let patched = request(&world, &format!("PATCH {location}"), &trickle, fragment).await;
    assert_eq!(patched.status, 204);
    let ended = request(&world, &format!("DELETE {location}"), &[], "").await;
    assert_eq!(ended.status, 200);
    let again = request(&world, &format!("DELETE {location}"), &[], "").await;
    assert_eq!(again.status, 404);
    until(&world, "RoomService/ListParticipants", list, |it| {
        it["participants"] == json!([])
    })
    .await;
    until(
        &world,
        "Ingress/ListIngress",
        own,
        state("ENDPOINT_INACTIVE"),
    )
    .await;
}

#[tokio::test]
async fn an_ingress_that_is_removed_or_disabled_takes_no_media() {
    let world = World::new().await;
    let made = ingress(&world).await;
    let key = made["stream_key"].as_str().unwrap();
    let offer = description("offer", &[Line::Audio]).sdp;
    let off = json!({"ingress_id": made["ingress_id"], "enabled": false});
    assert_eq!(
        call(&world, "Ingress/UpdateIngress", "", off).await.status,
        200
    );
    let begin = format!("POST /w/{key}");
    assert_eq!(request(&world, &begin, &[SDP], &offer).await.status, 403);
    let on = json!({"ingress_id": made["ingress_id"], "enabled": true, "name": "other"});
    let on = call(&world, "Ingress/UpdateIngress", "", on).await.json();
    assert_eq!(
        (&on["name"], &on["participant_identity"]),
        (&json!("other"), &json!("obs"))
    );
    assert_eq!(request(&world, &begin, &[SDP], &offer).await.status, 201);
    world.all_up().await;
    let own = json!({"ingress_id": made["ingress_id"]});
    assert_eq!(
        call(&world, "Ingress/DeleteIngress", "", own.clone())
            .await
            .status,
        200
    );
    assert_eq!(
        call(&world, "Ingress/DeleteIngress", "", own).await.status,
        404
    );
    let list = json!({"room": "demo"});
    until(&world, "RoomService/ListParticipants", list, |it| {
        it["participants"] == json!([])
    })
    .await;
    assert_eq!(request(&world, &begin, &[SDP], &offer).await.status, 404);
}

#[tokio::test]
async fn a_subscription_is_ended_by_the_service() {
    let world = World::new().await;
    let made = ingress(&world).await;
    let mut al = world.join("al", "demo").await;
    let offer = al.expect("offer", |message| match message {
        signal_response::Message::Offer(offer) => Some(offer),
        _ => None,
    });
    let mut answer = description("answer", &[Line::Data]);
    answer.id = offer.await.id;
    al.send(signal_request::Message::Answer(answer)).await;
    let offer = description("offer", &[Line::Audio]).sdp;
    let begin = format!("POST /w/{}", made["stream_key"].as_str().unwrap());
    assert_eq!(request(&world, &begin, &[SDP], &offer).await.status, 201);
    world.all_up().await;
    let offered = al.expect("an offer with the track", |message| match message {
        signal_response::Message::Offer(offer) if offer.mid_to_track_id.len() == 1 => Some(offer),
        _ => None,
    });
    let offered = offered.await;
    let mut answer = description("answer", &[Line::Data, Line::Audio]);
    answer.id = offered.id;
    al.send(signal_request::Message::Answer(answer)).await;
    let tracks: Vec<String> = offered.mid_to_track_id.into_values().collect();
    let change =
        json!({"room": "demo", "identity": "al", "track_sids": tracks, "subscribe": false});
    let changed = call(&world, "RoomService/UpdateSubscriptions", "demo", change).await;
    assert_eq!(changed.status, 200);
    let without = al.expect("an offer without it", |message| match message {
        signal_response::Message::Offer(offer) => Some(offer.mid_to_track_id),
        _ => None,
    });
    assert!(without.await.is_empty());
}

#[tokio::test]
async fn other_keys_hold_from_a_reload_on() {
    let world = World::new().await;
    let before = token("", "demo", everything());
    let list = json!({});
    let listed = call_with(&world, "RoomService/ListRooms", &before, list.clone()).await;
    assert_eq!(listed.status, 200);
    world.door.configure(&LiveKitConfig {
        keys: [("newkey".to_owned(), crate::world::SECRET.into())].into(),
        ..LiveKitConfig::default()
    });
    let listed = call_with(&world, "RoomService/ListRooms", &before, list.clone()).await;
    assert_eq!(
        (listed.status, &*listed.body),
        (401, "invalid API key: devkey")
    );
    let after = signed(&json!({
        "iss": "newkey", "exp": jsonwebtoken::get_current_timestamp() + 600,
        "video": everything(),
    }));
    let listed = call_with(&world, "RoomService/ListRooms", &after, list).await;
    assert_eq!(listed.status, 200);
}

#[tokio::test]
async fn telephones_need_the_plugin() {
    let world = World::new().await;
    let admin = signed(&json!({
        "iss": crate::world::KEY, "exp": jsonwebtoken::get_current_timestamp() + 600,
        "sip": {"admin": true, "call": true},
    }));
    let trunk = json!({"trunk": {"name": "in", "numbers": ["+4930"]}});
    let made = call_with(&world, "SIP/CreateSIPInboundTrunk", &admin, trunk).await;
    assert_eq!(
        (made.status, &made.json()["code"]),
        (503, &json!("unavailable"))
    );
    let listed = call_with(&world, "SIP/ListSIPInboundTrunk", &admin, json!({})).await;
    assert_eq!((listed.status, listed.json()), (200, json!({"items": []})));
    let call = json!({"sip_trunk_id": "ST_no", "sip_call_to": "+49", "room_name": "demo"});
    let called = call_with(&world, "SIP/CreateSIPParticipant", &admin, call).await;
    assert_eq!(called.status, 404);
}
