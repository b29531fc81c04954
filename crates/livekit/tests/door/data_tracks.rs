//! Data tracks: published, subscribed to, and their packets.

use std::time::Duration;

use portunus_core::testing::Line;
use portunus_livekit::protocol::data_track_subscriber_handles::PublishedDataTrack;
use portunus_livekit::protocol::update_data_subscription::Update;
use portunus_livekit::protocol::{
    DataTrackInfo, DataTrackSubscriberHandles, ParticipantInfo, PublishDataTrackRequest,
    RequestResponse, StoreDataBlobRequest, UnpublishDataTrackRequest, UpdateDataSubscription,
    participant_info, request_response, signal_request, signal_response,
};
use portunus_media::{DataMessage, DataPayload, Event, PeerId};
use serde_json::json;

use crate::tracks::seen;
use crate::world::{Client, World};

async fn publish(client: &mut Client, handle: u32, name: &str) -> DataTrackInfo {
    request(client, handle, name).await;
    let published = client.expect("publish_data_track_response", |message| match message {
        signal_response::Message::PublishDataTrackResponse(response) => response.info,
        _ => None,
    });
    published.await
}

async fn request(client: &mut Client, handle: u32, name: &str) {
    let request = PublishDataTrackRequest {
        pub_handle: handle,
        name: name.to_owned(),
        ..PublishDataTrackRequest::default()
    };
    let message = signal_request::Message::PublishDataTrackRequest(request);
    client.send(message).await;
}

async fn subscribe(client: &mut Client, sid: &str, subscribe: bool) {
    let update = Update {
        track_sid: sid.to_owned(),
        subscribe,
        options: None,
    };
    let update = UpdateDataSubscription {
        updates: vec![update],
    };
    let message = signal_request::Message::UpdateDataSubscription(update);
    client.send(message).await;
}

/// Returns the next numbers of a client's data tracks, with the names of those who publish them.
async fn handles(client: &mut Client) -> Vec<(u32, String)> {
    let handles = client.expect("data_track_subscriber_handles", |message| match message {
        signal_response::Message::DataTrackSubscriberHandles(handles) => Some(handles),
        _ => None,
    });
    let DataTrackSubscriberHandles { sub_handles } = handles.await;
    let name = |(handle, it): (u32, PublishedDataTrack)| {
        (
            handle,
            format!("{} {}", it.publisher_identity, it.track_sid),
        )
    };
    sub_handles.into_iter().map(name).collect()
}

async fn refused(client: &mut Client) -> RequestResponse {
    let refused = client.expect("request_response", |message| match message {
        signal_response::Message::RequestResponse(response) => Some(response),
        _ => None,
    });
    refused.await
}

/// Returns the packets of data tracks that a peer has been sent.
fn got(world: &World, peer: PeerId) -> Vec<Vec<u8>> {
    let sent = world.server.requested().data.into_iter();
    let own = sent.filter(|(to, message)| *to == peer && message.label == "_data_track");
    let bytes = |(_, message): (PeerId, DataMessage)| match message.payload {
        DataPayload::Binary(bytes) => bytes,
        DataPayload::Text(_) => panic!("a text message"),
    };
    own.map(bytes).collect()
}

async fn send(world: &World, from: PeerId, packet: Vec<u8>) {
    let message = DataMessage {
        label: "_data_track".to_owned(),
        protocol: String::new(),
        payload: DataPayload::Binary(packet),
    };
    world.server.happen(from, Event::Data(message)).await;
}

fn packet(handle: u8, content: u8) -> Vec<u8> {
    vec![0x18, 0, 0, handle, 0, 1, 0, 1, 0, 0, 0, 9, content]
}

fn new_peers(world: &World, before: &[PeerId]) -> Vec<PeerId> {
    let peers = world.server.peers().into_iter();
    peers.filter(|peer| !before.contains(peer)).collect()
}

#[tokio::test]
async fn frames_go_to_those_who_subscribe_with_their_numbers() {
    let world = World::new().await;
    let mut al = world.join("al", "demo").await;
    let before = world.server.peers();
    al.offer(&[Line::Data]).await;
    let publisher = new_peers(&world, &before)[0];
    let before = world.server.peers();
    let mut bo = world.join("bo", "demo").await;
    let bo_peer = new_peers(&world, &before)[0];
    let before = world.server.peers();
    let auto = "auto_subscribe_data_track=1";
    let mut cy = world.join_with("cy", "demo", json!({}), auto).await;
    let cy_peer = new_peers(&world, &before)[0];
    world.all_up().await;
    let active = |it: &ParticipantInfo| it.state() == participant_info::State::Active;
    seen(&mut bo, "bo", active).await;
    seen(&mut cy, "cy", active).await;
    let track = publish(&mut al, 7, "place").await;
    assert!(track.sid.starts_with("DTR_") && track.pub_handle == 7);
    let info = seen(&mut bo, "al", |it| !it.data_tracks.is_empty()).await;
    assert_eq!(info.data_tracks, std::slice::from_ref(&track));
    let of = |handle| [(handle, format!("al {}", track.sid))];
    assert_eq!(handles(&mut cy).await, of(1));
    subscribe(&mut bo, &track.sid, true).await;
    assert_eq!(handles(&mut bo).await, of(1));
    send(&world, publisher, packet(7, 1)).await;
    // Nobody publishes this one, and this is no packet.
    send(&world, publisher, packet(8, 2)).await;
    send(&world, publisher, vec![0, 0, 0, 7]).await;
    subscribe(&mut bo, &track.sid, false).await;
    assert!(handles(&mut bo).await.is_empty());
    send(&world, publisher, packet(7, 3)).await;
    let waiting = async {
        while got(&world, cy_peer).len() < 2 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(5), waiting)
        .await
        .unwrap();
    assert_eq!(got(&world, cy_peer), [packet(1, 1), packet(1, 3)]);
    assert_eq!(got(&world, bo_peer), [packet(1, 1)]);
    let ended = UnpublishDataTrackRequest { pub_handle: 7 };
    let message = signal_request::Message::UnpublishDataTrackRequest(ended);
    al.send(message).await;
    let ended = al.expect("unpublish_data_track_response", |message| match message {
        signal_response::Message::UnpublishDataTrackResponse(response) => response.info,
        _ => None,
    });
    assert_eq!(ended.await, track);
    assert!(handles(&mut cy).await.is_empty());
}

#[tokio::test]
async fn wrong_requests_are_refused_with_their_reason() {
    use request_response::Reason;
    let world = World::new().await;
    let mut al = world.join("al", "demo").await;
    publish(&mut al, 1, "place").await;
    let long = "n".repeat(257);
    for (handle, name, reason) in [
        (0, "a", Reason::InvalidHandle),
        (65_536, "a", Reason::InvalidHandle),
        (2, "", Reason::InvalidName),
        (2, &long, Reason::InvalidName),
        (1, "a", Reason::DuplicateHandle),
        (2, "place", Reason::DuplicateName),
    ] {
        request(&mut al, handle, name).await;
        let refused = refused(&mut al).await;
        assert_eq!(refused.reason(), reason, "{handle} {name}");
        assert!(matches!(
            refused.request,
            Some(request_response::Request::PublishDataTrack(_))
        ));
    }
    for handle in 2..=64 {
        publish(&mut al, handle, &handle.to_string()).await;
    }
    request(&mut al, 65, "one more").await;
    assert_eq!(refused(&mut al).await.reason(), Reason::LimitExceeded);
    let unknown = UnpublishDataTrackRequest { pub_handle: 99 };
    al.send(signal_request::Message::UnpublishDataTrackRequest(unknown))
        .await;
    assert_eq!(refused(&mut al).await.reason(), Reason::InvalidHandle);
    let store = StoreDataBlobRequest {
        request_id: 5,
        blob: None,
    };
    al.send(signal_request::Message::StoreDataBlobRequest(store))
        .await;
    let answer = refused(&mut al).await;
    assert_eq!(
        (answer.request_id, answer.reason()),
        (5, Reason::NotAllowed)
    );
    let grants = json!({ "canPublishData": false });
    let mut bo = world.join_with("bo", "demo", grants, "").await;
    request(&mut bo, 1, "place").await;
    assert_eq!(refused(&mut bo).await.reason(), Reason::NotAllowed);
}
