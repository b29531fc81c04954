//! Participants that the services move to another room, mute, unmute and change.

use portunus_core::testing::Line;
use portunus_livekit::LiveKitConfig;
use portunus_livekit::protocol::{
    DisconnectReason, MuteTrackRequest, ParticipantInfo, UpdateParticipantMetadata, leave_request,
    participant_info, signal_request, signal_response,
};
use serde_json::{Value, json};

use crate::tracks::{answer, publish, seen};
use crate::world::{Client, World, token};

/// Returns the next token for reconnects.
async fn refreshed(client: &mut Client) -> String {
    let token = client.expect("refresh_token", |message| match message {
        signal_response::Message::RefreshToken(token) => Some(token),
        _ => None,
    });
    token.await
}

/// Joins with a token. Returns the client after its first token for reconnects.
async fn rejoin(world: &World, token: &str) -> (Client, ParticipantInfo) {
    let query = format!("access_token={token}&protocol=17");
    let mut client = world.connect(&query).await.unwrap();
    let joined = client.expect("join", |message| match message {
        signal_response::Message::Join(join) => join.participant,
        _ => None,
    });
    let joined = joined.await;
    refreshed(&mut client).await;
    (client, joined)
}

/// Changes a participant as an administrator.
async fn change(world: &World, change: Value) {
    let mut body = json!({ "room": "demo", "identity": "al" });
    if let (Some(all), Value::Object(change)) = (body.as_object_mut(), change) {
        all.extend(change);
    }
    let admin = token("admin", "demo", json!({ "roomAdmin": true }));
    let (status, text) = world.call("UpdateParticipant", &admin, &body).await;
    assert_eq!(status, 200, "{text}");
}

#[tokio::test]
async fn who_reconnects_stays_as_the_services_have_changed_it() {
    let world = World::new().await;
    let (mut al, first) = rejoin(&world, &token("al", "demo", json!({}))).await;
    assert!(first.permission.unwrap().can_publish);
    change(
        &world,
        json!({
            "name": "Albert", "metadata": "m", "attributes": { "seat": "7" },
            "permission": { "can_subscribe": true, "can_update_metadata": true },
        }),
    )
    .await;
    let (mut al, again) = rejoin(&world, &refreshed(&mut al).await).await;
    let permission = again.permission.unwrap();
    assert!(permission.can_subscribe && permission.can_update_metadata);
    assert!(!permission.can_publish && !permission.can_publish_data);
    assert_eq!((&*again.name, &*again.metadata), ("Albert", "m"));
    assert_eq!(again.attributes["seat"], "7");

    let update = UpdateParticipantMetadata {
        metadata: "own".to_owned(),
        ..UpdateParticipantMetadata::default()
    };
    al.send(signal_request::Message::UpdateMetadata(update))
        .await;
    let (_, again) = rejoin(&world, &refreshed(&mut al).await).await;
    assert_eq!((&*again.name, &*again.metadata), ("Albert", "own"));
}

#[tokio::test]
async fn who_is_moved_keeps_its_permissions() {
    let world = World::new().await;
    let mut al = world.join("al", "demo").await;
    change(&world, json!({ "permission": { "can_subscribe": true } })).await;
    let grants = json!({ "roomAdmin": true, "destinationRoom": "attic" });
    let body = json!({ "room": "demo", "identity": "al", "destination_room": "attic" });
    let admin = token("admin", "demo", grants);
    let (status, text) = world.call("MoveParticipant", &admin, &body).await;
    assert_eq!(status, 200, "{text}");
    let moved = al.expect("room_moved", |message| match message {
        signal_response::Message::RoomMoved(moved) => Some(moved.token),
        _ => None,
    });
    let (_, again) = rejoin(&world, &moved.await).await;
    let permission = again.permission.unwrap();
    assert!(permission.can_subscribe && !permission.can_publish);
}

#[tokio::test]
async fn who_is_moved_gets_a_token_for_the_other_room() {
    let world = World::new().await;
    let mut al = world.join("al", "demo").await;
    let mut bo = world.join("bo", "demo").await;
    let cy = world.join("cy", "attic").await;
    let grants = json!({ "roomAdmin": true, "destinationRoom": "attic" });
    let body = json!({ "room": "demo", "identity": "al", "destination_room": "attic" });
    let admin = token("admin", "demo", grants);
    let (status, text) = world.call("MoveParticipant", &admin, &body).await;
    assert_eq!((status, &*text), (200, "{}"));
    let moved = al.expect("room_moved", |message| match message {
        signal_response::Message::RoomMoved(moved) => Some(moved),
        _ => None,
    });
    let moved = moved.await;
    assert_eq!(moved.room.unwrap().name, "attic");
    assert_eq!(moved.participant.unwrap().identity, "al");
    let others: Vec<&str> = moved
        .other_participants
        .iter()
        .map(|it| &*it.identity)
        .collect();
    assert_eq!(others, ["cy"]);
    let left = al.expect("leave", |message| match message {
        signal_response::Message::Leave(leave) => Some(leave),
        _ => None,
    });
    assert_eq!(left.await.action(), leave_request::Action::Reconnect);
    assert!(al.frame_until_closed().await);
    let gone = |it: &ParticipantInfo| it.state() == participant_info::State::Disconnected;
    let gone = seen(&mut bo, "al", gone).await;
    assert_eq!(gone.disconnect_reason(), DisconnectReason::Migration);
    let query = format!("access_token={}&protocol=17", moved.token);
    let mut al = world.connect(&query).await.unwrap();
    let joined = al.expect("join", |message| match message {
        signal_response::Message::Join(join) => Some(join),
        _ => None,
    });
    assert_eq!(joined.await.room.unwrap().name, "attic");
    drop(cy);
    let body = json!({ "room": "demo", "identity": "nobody", "destination_room": "attic" });
    let (status, _) = world.call("MoveParticipant", &admin, &body).await;
    assert_eq!(status, 404);
}

#[tokio::test]
async fn a_track_is_unmuted_by_others_only_where_the_operator_permits_it() {
    for enable_remote_unmute in [false, true] {
        let config = LiveKitConfig {
            enable_remote_unmute,
            ..LiveKitConfig::default()
        };
        let world = World::with(config).await;
        let mut al = world.join("al", "demo").await;
        let mut bo = world.join("bo", "demo").await;
        answer(&mut bo, &[Line::Data]).await;
        let [audio, _] = publish(&world, &mut al).await;
        let admin = token("admin", "demo", json!({ "roomAdmin": true }));
        let mute = |muted| json!({ "room": "demo", "identity": "al", "track_sid": audio.sid, "muted": muted });
        let (status, text) = world.call("MutePublishedTrack", &admin, &mute(true)).await;
        assert_eq!(status, 200, "{text}");
        let is = |muted| {
            move |it: &ParticipantInfo| it.tracks.first().is_some_and(|it| it.muted == muted)
        };
        seen(&mut bo, "al", is(true)).await;
        let told = |message| match message {
            signal_response::Message::Mute(mute) => Some(mute.muted),
            _ => None,
        };
        assert!(al.expect("mute", told).await);
        let (status, _) = world.call("MutePublishedTrack", &admin, &mute(false)).await;
        assert_eq!(status, if enable_remote_unmute { 200 } else { 412 });
        if !enable_remote_unmute {
            // The participant itself may.
            let mute = MuteTrackRequest {
                sid: audio.sid.clone(),
                muted: false,
            };
            al.send(signal_request::Message::Mute(mute)).await;
        } else {
            assert!(!al.expect("mute", told).await);
        }
        seen(&mut bo, "al", is(false)).await;
    }
}

#[tokio::test]
async fn clients_get_the_configured_ice_servers() {
    let server = portunus_livekit::ClientIceServer {
        urls: vec!["turn:turn.example.org:3478".to_owned()],
        username: "u".to_owned(),
        credential: "c".to_owned(),
    };
    let config = LiveKitConfig {
        ice_servers: vec![server],
        ..LiveKitConfig::default()
    };
    let world = World::with(config).await;
    let al = world.join("al", "demo").await;
    let [server] = al.join.ice_servers.as_slice() else {
        panic!("one server: {:?}", al.join.ice_servers)
    };
    assert_eq!(server.urls, ["turn:turn.example.org:3478"]);
    assert_eq!((&*server.username, &*server.credential), ("u", "c"));
}
