//! Who is let in, and what others see of it.

use std::time::Duration;

use jsonwebtoken::get_current_timestamp;
use portunus_livekit::LiveKitConfig;
use portunus_livekit::protocol::{
    DisconnectReason, LeaveRequest, ParticipantInfo, Ping, SimulateScenario, leave_request,
    participant_info, signal_request, signal_response, simulate_scenario,
};
use portunus_room::Directory;
use serde_json::json;
use tokio_tungstenite::tungstenite::{Error, Message};

use crate::world::{Client, KEY, MAX_ROOMS, World, signed, token};

/// Returns the next update about a participant.
async fn update(client: &mut Client, identity: &str) -> ParticipantInfo {
    let found = client.expect("update", |message| match message {
        signal_response::Message::Update(update) => update
            .participants
            .into_iter()
            .find(|it| it.identity == identity),
        _ => None,
    });
    found.await
}

async fn left(client: &mut Client) -> LeaveRequest {
    let left = client.expect("leave", |message| match message {
        signal_response::Message::Leave(leave) => Some(leave),
        _ => None,
    });
    left.await
}

#[tokio::test]
async fn a_client_learns_of_the_room_and_the_others_of_the_client() {
    let world = World::new().await;
    let mut al = world.join("al", "demo").await;
    let own = al.join.participant.clone().unwrap();
    assert!(own.sid.starts_with("PA_"));
    assert_eq!((&*own.identity, &*own.name), ("al", "AL"));
    assert_eq!(own.state(), participant_info::State::Joined);
    assert!(al.join.other_participants.is_empty());
    let room = al.join.room.clone().unwrap();
    assert!(room.sid.starts_with("RM_"));
    assert_eq!(room.name, "demo");
    assert!(!al.join.server_info.clone().unwrap().version.is_empty());
    assert!(al.join.subscriber_primary);

    let bo = world.join("bo", "demo").await;
    assert_eq!(bo.join.other_participants.len(), 1);
    assert_eq!(bo.join.other_participants[0].identity, "al");
    let seen = update(&mut al, "bo").await;
    assert_eq!(seen.state(), participant_info::State::Joined);
    world.all_up().await;
    let seen = update(&mut al, "bo").await;
    assert_eq!(seen.state(), participant_info::State::Active);
    drop(bo);
}

#[tokio::test]
async fn a_participant_has_the_kind_of_its_token_with_details() {
    let world = World::new().await;
    let token = signed(&json!({
        "iss": KEY, "sub": "bot", "exp": get_current_timestamp() + 600,
        "kind": "agent", "kindDetails": ["forwarded", "unknown"],
        "video": { "roomJoin": true, "room": "demo" },
    }));
    let query = format!("access_token={token}&protocol=17");
    let bot = world.connect(&query).await.unwrap();
    let al = world.join("al", "demo").await;
    let seen = &al.join.other_participants[0];
    assert_eq!(seen.kind(), participant_info::Kind::Agent);
    let forwarded = participant_info::KindDetail::Forwarded;
    assert_eq!(seen.kind_details, [i32::from(forwarded)]);
    drop(bot);
}

#[tokio::test]
async fn a_client_that_leaves_is_gone_for_the_others() {
    let world = World::new().await;
    let mut al = world.join("al", "demo").await;
    let mut bo = world.join("bo", "demo").await;
    bo.send(signal_request::Message::Leave(LeaveRequest::default()))
        .await;
    assert!(bo.frame_until_closed().await);
    loop {
        let seen = update(&mut al, "bo").await;
        if seen.state() == participant_info::State::Disconnected {
            assert_eq!(seen.disconnect_reason(), DisconnectReason::ClientInitiated);
            break;
        }
    }
}

#[tokio::test]
async fn another_session_of_an_identity_replaces_the_first() {
    let world = World::new().await;
    let mut first = world.join("al", "demo").await;
    let second = world.join("al", "demo").await;
    let leave = left(&mut first).await;
    assert_eq!(leave.reason(), DisconnectReason::DuplicateIdentity);
    assert_eq!(leave.action(), leave_request::Action::Disconnect);
    let sids = [&first, &second].map(|it| it.join.participant.clone().unwrap().sid);
    assert_ne!(sids[0], sids[1]);
    let third = world.join("bo", "demo").await;
    let others = &third.join.other_participants;
    assert_eq!(others.len(), 1);
    assert_eq!(others[0].sid, sids[1]);
}

#[tokio::test]
async fn tokens_are_checked_before_the_upgrade() {
    let world = World::new().await;
    let now = get_current_timestamp();
    let good = json!({ "roomJoin": true, "room": "demo" });
    let claims = |exp, video| json!({ "iss": KEY, "sub": "al", "exp": exp, "video": video });
    for (query, status, text) in [
        (String::new(), 401, "no permissions to access the room"),
        (
            "access_token=no".to_owned(),
            401,
            "invalid authorization token",
        ),
        (
            format!("access_token={}", signed(&claims(now - 120, good.clone()))),
            401,
            "invalid token",
        ),
        (
            format!(
                "access_token={}",
                signed(&json!({ "iss": "other", "exp": now + 60 }))
            ),
            401,
            "invalid API key",
        ),
        (
            format!(
                "access_token={}",
                signed(&json!({ "iss": KEY, "sub": "al", "exp": now + 60 }))
            ),
            401,
            "no permissions to access the room",
        ),
        (
            format!(
                "access_token={}",
                signed(&claims(now + 60, json!({ "roomJoin": true })))
            ),
            400,
            "no room name",
        ),
        (
            format!("access_token={}", token("", "demo", json!({}))),
            400,
            "identity",
        ),
        (
            format!(
                "access_token={}",
                token(&"a".repeat(257), "demo", json!({}))
            ),
            400,
            "256",
        ),
    ] {
        let (got, body) = world.get(&format!("/rtc/validate?{query}")).await;
        assert_eq!(
            (got, body.contains(text)),
            (status, true),
            "{query}: {body}"
        );
        match world.connect(&query).await {
            Err(Error::Http(response)) => assert_eq!(response.status().as_u16(), status),
            other => panic!("{other:?}"),
        }
    }
    let query = format!("access_token={}", token("al", "demo", json!({})));
    assert_eq!(
        world.get(&format!("/rtc/validate?{query}")).await,
        (200, "success".to_owned())
    );
    let (status, text) = world.get(&format!("/rtc/v1/validate?{query}")).await;
    assert_eq!((status, &*text), (400, "join_request is required"));
    assert_eq!(world.get("/").await, (200, "OK".to_owned()));
    assert_eq!(world.get("/settings/regions").await.0, 404);
    assert_eq!(world.get("/rtc").await.0, 404);
}

#[tokio::test]
async fn rooms_are_not_made_if_the_operator_makes_them() {
    let config = LiveKitConfig {
        auto_create: false,
        ..LiveKitConfig::default()
    };
    let world = World::with(config).await;
    let query = format!("access_token={}", token("al", "demo", json!({})));
    let refused = (404, "requested room does not exist".to_owned());
    assert_eq!(world.get(&format!("/rtc/validate?{query}")).await, refused);
    assert!(world.connect(&query).await.is_err());
}

#[tokio::test]
async fn a_room_that_cannot_be_made_is_refused_with_the_reason() {
    let world = World::new().await;
    for number in 1..=MAX_ROOMS {
        world.join("al", &number.to_string()).await;
    }
    for (room, status, text) in [
        ("0", 400, r#""0" cannot be the name of a room"#),
        ("9", 503, "there cannot be more rooms: the limit is reached"),
    ] {
        let query = format!("access_token={}", token("al", room, json!({})));
        match world.connect(&query).await {
            Err(Error::Http(response)) => {
                assert_eq!(response.status().as_u16(), status);
                let body = response.into_body().unwrap_or_default();
                assert_eq!(String::from_utf8_lossy(&body), text);
            }
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn pings_are_answered() {
    let world = World::new().await;
    let mut al = world.join("al", "demo").await;
    al.send(signal_request::Message::Ping(1)).await;
    let pong = al.expect("pong", |message| match message {
        signal_response::Message::Pong(pong) => Some(pong),
        _ => None,
    });
    assert!(pong.await > 0);
    let ping = Ping {
        timestamp: 7,
        rtt: 0,
    };
    al.send(signal_request::Message::PingReq(ping)).await;
    let pong = al.expect("pong", |message| match message {
        signal_response::Message::PongResp(pong) => Some(pong),
        _ => None,
    });
    assert_eq!(pong.await.last_ping_timestamp, 7);
}

#[tokio::test]
async fn who_sends_json_gets_json() {
    let world = World::new().await;
    let mut al = world.join("al", "demo").await;
    al.send_raw(Message::text(r#"{"ping":"1"}"#)).await;
    loop {
        match al.frame().await.expect("a frame") {
            Message::Text(text) if text.contains("\"pong\"") => break,
            Message::Text(_) | Message::Binary(_) => {}
            frame => panic!("unexpected {frame:?}"),
        }
    }
}

#[tokio::test]
async fn a_client_with_too_many_broken_frames_is_disconnected() {
    let world = World::new().await;
    let mut al = world.join("al", "demo").await;
    for _ in 0..20 {
        if al
            .try_send_raw(Message::binary(vec![0xFF; 3]))
            .await
            .is_err()
        {
            break;
        }
    }
    assert!(al.frame_until_closed().await);
}

#[tokio::test]
async fn a_session_goes_on_by_another_connection() {
    let world = World::new().await;
    let mut al = world.join("al", "demo").await;
    world.all_up().await;
    let sid = al.join.participant.clone().unwrap().sid;
    update(&mut al, "al").await;
    drop(al);
    let token = token("al", "demo", json!({}));
    let query = format!("access_token={token}&protocol=17&reconnect=1&sid={sid}");
    let mut al = world.connect(&query).await.unwrap();
    assert!(matches!(
        al.next().await,
        Some(signal_response::Message::Reconnect(_))
    ));
    assert_eq!(update(&mut al, "al").await.sid, sid);
    let offer = al.expect("offer", |message| match message {
        signal_response::Message::Offer(offer) => Some(offer),
        _ => None,
    });
    offer.await;
}

#[tokio::test]
async fn an_unknown_session_cannot_go_on() {
    let world = World::new().await;
    let token = token("al", "demo", json!({}));
    let query = format!("access_token={token}&protocol=17&reconnect=1&sid=PA_gone");
    let mut al = world.connect(&query).await.unwrap();
    let leave = left(&mut al).await;
    assert_eq!(leave.action(), leave_request::Action::Reconnect);
    assert_eq!(leave.reason(), DisconnectReason::StateMismatch);
}

#[tokio::test]
async fn a_room_of_the_door_ends_when_all_have_left() {
    let config = LiveKitConfig {
        departure_timeout: std::time::Duration::ZERO,
        ..LiveKitConfig::default()
    };
    let world = World::with(config).await;
    let mut al = world.join("al", "demo").await;
    assert!(world.rooms.find("demo").is_some());
    al.send(signal_request::Message::Leave(LeaveRequest::default()))
        .await;
    assert!(al.frame_until_closed().await);
    let ended = async {
        while world.rooms.find("demo").is_some() {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(5), ended)
        .await
        .unwrap();
}

#[tokio::test]
async fn who_is_kicked_or_whose_room_ends_is_told_so() {
    let world = World::new().await;
    let mut al = world.join("al", "demo").await;
    let mut bo = world.join("bo", "demo").await;
    let room = world.rooms.find("demo").unwrap();
    let id = room.lock().people().find_map(|it| {
        let is_it = it.profile.display.as_deref() == Some("AL");
        is_it.then(|| it.id().clone())
    });
    room.lock().kick(&id.unwrap(), None).unwrap();
    assert_eq!(
        left(&mut al).await.reason(),
        DisconnectReason::ParticipantRemoved
    );
    assert!(al.frame_until_closed().await);
    let seen = loop {
        let seen = update(&mut bo, "al").await;
        if seen.state() == participant_info::State::Disconnected {
            break seen;
        }
    };
    assert_eq!(
        seen.disconnect_reason(),
        DisconnectReason::ParticipantRemoved
    );
    world.rooms.destroy("demo");
    assert_eq!(left(&mut bo).await.reason(), DisconnectReason::RoomDeleted);
    assert!(bo.frame_until_closed().await);
}

#[tokio::test]
async fn a_drained_server_refuses_joins_and_sends_its_clients_elsewhere() {
    let world = World::new().await;
    let mut clients = Vec::new();
    for identity in ["al", "bo", "cy"] {
        clients.push(world.join(identity, "demo").await);
    }
    world.all_up().await;
    let path = format!(
        "/rtc/validate?access_token={}",
        token("di", "demo", json!({}))
    );
    assert_eq!(world.get(&path).await, (200, "success".to_owned()));
    world.server.gateway.drain(Some(Duration::from_secs(2)));
    let refused = (503, "the server is draining".to_owned());
    assert_eq!(world.get(&path).await, refused);
    for client in &mut clients {
        let leave = left(client).await;
        assert_eq!(leave.reason(), DisconnectReason::ServerShutdown);
        assert_eq!(leave.action(), leave_request::Action::Reconnect);
        assert!(client.frame_until_closed().await);
    }
    assert!(world.server.gateway.draining().is_some());
}

#[tokio::test]
async fn a_simulated_failure_of_the_server_says_nothing_and_ends_the_session() {
    let world = World::new().await;
    let mut al = world.join("al", "demo").await;
    world.all_up().await;
    let scenario = simulate_scenario::Scenario::NodeFailure(true);
    let simulate = SimulateScenario {
        scenario: Some(scenario),
    };
    al.send(signal_request::Message::Simulate(simulate)).await;
    while let Some(message) = al.next().await {
        assert!(!matches!(message, signal_response::Message::Leave(_)));
    }
    let sid = al.join.participant.map(|it| it.sid).unwrap_or_default();
    let query = format!(
        "access_token={}&protocol=17&reconnect=1&sid={sid}",
        token("al", "demo", json!({}))
    );
    let mut again = world.connect(&query).await.expect("a connection");
    assert_eq!(
        left(&mut again).await.action(),
        leave_request::Action::Reconnect
    );
}
