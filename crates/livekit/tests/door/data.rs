//! Data messages: to whom they go, and when.

use std::time::Duration;

use portunus_core::testing::Line;
use portunus_livekit::protocol::{
    DataPacket, LeaveRequest, UserPacket, data_packet, participant_info, signal_request,
    signal_response,
};
use portunus_media::{DataMessage, DataPayload, Event, PeerId};
use prost::Message;
use serde_json::json;

use crate::world::{Client, World, token};

fn packet(sequence: u32, text: &str, to: &[&str]) -> DataPacket {
    DataPacket {
        sequence,
        destination_identities: to.iter().map(|to| (*to).to_owned()).collect(),
        value: Some(data_packet::Value::User(UserPacket {
            payload: text.as_bytes().to_vec(),
            ..UserPacket::default()
        })),
        ..DataPacket::default()
    }
}

async fn send(world: &World, from: PeerId, label: &str, packet: &DataPacket) {
    let message = DataMessage {
        label: label.to_owned(),
        protocol: String::new(),
        payload: DataPayload::Binary(packet.encode_to_vec()),
    };
    world.server.happen(from, Event::Data(message)).await;
}

/// Returns the texts that a peer has been sent, with their senders.
fn got(world: &World, peer: PeerId) -> Vec<String> {
    let sent = world.server.requested().data.into_iter();
    let own = sent.filter(|(to, _)| *to == peer);
    let text = |(_, message): (PeerId, DataMessage)| {
        let DataPayload::Binary(bytes) = message.payload else {
            panic!("a text message")
        };
        let packet = DataPacket::decode(&*bytes).unwrap();
        let Some(data_packet::Value::User(user)) = packet.value else {
            panic!("another packet")
        };
        let text = String::from_utf8(user.payload).unwrap();
        format!("{} {}: {text}", message.label, packet.participant_identity)
    };
    own.map(text).collect()
}

async fn eventually(is_so: impl Fn() -> bool) {
    let waiting = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(5), waiting)
        .await
        .unwrap();
}

/// Waits until a client is active, so that its channels are open.
async fn is_active(client: &mut Client, identity: &str) {
    let active = client.expect("update", |message| match message {
        signal_response::Message::Update(update) => {
            let own = update
                .participants
                .into_iter()
                .find(|it| it.identity == identity);
            own.filter(|it| it.state() == participant_info::State::Active)
        }
        _ => None,
    });
    active.await;
}

/// Returns the peers that were made since `before`.
fn new_peers(world: &World, before: &[PeerId]) -> Vec<PeerId> {
    let peers = world.server.peers().into_iter();
    peers.filter(|peer| !before.contains(peer)).collect()
}

/// Joins al, who has data channels, bo and cy. Returns the clients and their peers, of al that of the
/// publisher.
async fn three(world: &World) -> ([Client; 3], [PeerId; 3]) {
    let mut al = world.join("al", "demo").await;
    let before = world.server.peers();
    al.offer(&[Line::Data]).await;
    let publisher = new_peers(world, &before)[0];
    let before = world.server.peers();
    let mut second = world.join("bo", "demo").await;
    let bo = new_peers(world, &before)[0];
    let before = world.server.peers();
    let mut third = world.join("cy", "demo").await;
    let cy = new_peers(world, &before)[0];
    world.all_up().await;
    is_active(&mut second, "bo").await;
    is_active(&mut third, "cy").await;
    ([al, second, third], [publisher, bo, cy])
}

#[tokio::test]
async fn messages_go_to_the_others_or_to_those_that_are_named() {
    let world = World::new().await;
    let (_clients, [publisher, bo, cy]) = three(&world).await;
    send(&world, publisher, "_reliable", &packet(1, "all", &[])).await;
    send(&world, publisher, "_lossy", &packet(0, "quick", &[])).await;
    send(
        &world,
        publisher,
        "_reliable",
        &packet(2, "cy only", &["cy"]),
    )
    .await;
    // It came before, and is repeated.
    send(&world, publisher, "_reliable", &packet(1, "all", &[])).await;
    send(&world, publisher, "_reliable", &packet(3, "end", &[])).await;
    eventually(|| got(&world, cy).len() == 4).await;
    assert_eq!(
        got(&world, cy),
        [
            "_reliable al: all",
            "_lossy al: quick",
            "_reliable al: cy only",
            "_reliable al: end"
        ]
    );
    assert_eq!(
        got(&world, bo),
        ["_reliable al: all", "_lossy al: quick", "_reliable al: end"]
    );
    assert!(got(&world, publisher).is_empty());
}

#[tokio::test]
async fn sessions_and_identities_name_those_who_get_a_message() {
    let world = World::new().await;
    let (clients, [publisher, bo, cy]) = three(&world).await;
    let bo_sid = clients[1].join.participant.as_ref().unwrap().sid.clone();
    let to = |sequence: u32, text: &str, to: &[&str], sid: &str| {
        let mut packet = packet(sequence, text, to);
        if let Some(data_packet::Value::User(user)) = &mut packet.value {
            user.destination_sids = vec![sid.to_owned()];
        }
        packet
    };
    let packets = [
        to(1, "bo only", &[], &bo_sid),
        to(2, "nobody", &[], "PA_unknown"),
        to(3, "bo and cy", &["cy"], &bo_sid),
        packet(4, "end", &[]),
    ];
    for packet in &packets {
        send(&world, publisher, "_reliable", packet).await;
    }
    eventually(|| got(&world, bo).len() == 3).await;
    eventually(|| got(&world, cy).len() == 2).await;
    assert_eq!(
        got(&world, bo),
        [
            "_reliable al: bo only",
            "_reliable al: bo and cy",
            "_reliable al: end"
        ]
    );
    assert_eq!(
        got(&world, cy),
        ["_reliable al: bo and cy", "_reliable al: end"]
    );
    // Nor does one who connects later get a message of the service for an unknown session.
    let admin = token("", "demo", json!({ "roomAdmin": true }));
    let body = json!({ "room": "demo", "data": "YWhh", "destination_sids": ["PA_unknown"] });
    let before = world.server.peers();
    let _dee = world.join("dee", "demo").await;
    let dee = new_peers(&world, &before)[0];
    let (status, text) = world.call("SendData", &admin, &body).await;
    assert_eq!(status, 200, "{text}");
    send(&world, publisher, "_reliable", &packet(5, "later", &[])).await;
    eventually(|| got(&world, bo).len() == 4).await;
    world.up(dee).await;
    eventually(|| !got(&world, dee).is_empty()).await;
    assert_eq!(got(&world, dee), ["_reliable al: later"]);
}

#[tokio::test]
async fn a_repeated_nonce_is_dropped() {
    let world = World::new().await;
    let mut al = world.join("al", "demo").await;
    let before = world.server.peers();
    al.offer(&[Line::Data]).await;
    let publisher = new_peers(&world, &before)[0];
    let before = world.server.peers();
    let mut second = world.join("bo", "demo").await;
    let bo = new_peers(&world, &before)[0];
    world.all_up().await;
    is_active(&mut second, "bo").await;
    let admin = token("", "demo", json!({ "roomAdmin": true }));
    let nonce = "AQEBAQEBAQEBAQEBAQEBAQ==";
    for text in ["b25l", "dHdv"] {
        let body = json!({ "room": "demo", "data": text, "nonce": nonce });
        let (status, text) = world.call("SendData", &admin, &body).await;
        assert_eq!(status, 200, "{text}");
    }
    let numbered = |sequence: u32, text: &str, byte: u8| {
        let mut packet = packet(sequence, text, &[]);
        if let Some(data_packet::Value::User(user)) = &mut packet.value {
            user.nonce = vec![byte; 16];
        }
        packet
    };
    for packet in [
        numbered(1, "three", 1),
        numbered(2, "four", 2),
        numbered(3, "five", 2),
        packet(4, "end", &[]),
    ] {
        send(&world, publisher, "_reliable", &packet).await;
    }
    eventually(|| got(&world, bo).len() == 3).await;
    assert_eq!(
        got(&world, bo),
        ["_reliable : one", "_reliable al: four", "_reliable al: end"]
    );
}

#[tokio::test]
async fn data_of_services_is_as_long_as_that_of_clients() {
    let world = World::new().await;
    let _al = world.join("al", "demo").await;
    let admin = token("", "demo", json!({ "roomAdmin": true }));
    // Four characters stand for three bytes. The fields of the packet need some.
    for (triples, expected) in [(21_000, 200), (22_000, 400)] {
        let body = json!({ "room": "demo", "data": "YWhh".repeat(triples) });
        let (status, text) = world.call("SendData", &admin, &body).await;
        assert_eq!(status, expected, "{text}");
        let expected = "data packet size exceeds limits 65536";
        assert_eq!(text.contains(expected), status == 400, "{text}");
        assert_eq!(text.contains("invalid_argument"), status == 400, "{text}");
    }
}

#[tokio::test]
async fn a_call_ends_when_its_participant_leaves() {
    let world = World::new().await;
    let mut al = world.join("al", "demo").await;
    world.all_up().await;
    is_active(&mut al, "al").await;
    let admin = token("", "demo", json!({ "roomAdmin": true }));
    let body = json!({ "room": "demo", "destination_identity": "al", "method": "m" });
    let called = world.call("PerformRpc", &admin, &body);
    let leaves = async {
        eventually(|| !world.server.requested().data.is_empty()).await;
        al.send(signal_request::Message::Leave(LeaveRequest::default()))
            .await;
    };
    let ((status, text), ()) = tokio::join!(called, leaves);
    assert_eq!(status, 503, "{text}");
    assert!(
        text.contains("RpcError 1503: Recipient disconnected"),
        "{text}"
    );
}

#[tokio::test]
async fn who_is_connecting_gets_reliable_messages_later() {
    let world = World::new().await;
    let mut al = world.join("al", "demo").await;
    let before = world.server.peers();
    al.offer(&[Line::Data]).await;
    let publisher = new_peers(&world, &before)[0];
    world.up(publisher).await;
    let before = world.server.peers();
    let mut witness = world.join("cy", "demo").await;
    let cy = new_peers(&world, &before)[0];
    world.up(cy).await;
    is_active(&mut witness, "cy").await;
    send(&world, publisher, "_reliable", &packet(1, "before", &[])).await;
    eventually(|| got(&world, cy).len() == 1).await;
    let before = world.server.peers();
    let _bo = world.join("bo", "demo").await;
    let bo = new_peers(&world, &before)[0];
    send(&world, publisher, "_reliable", &packet(2, "meanwhile", &[])).await;
    send(&world, publisher, "_lossy", &packet(0, "lost", &[])).await;
    eventually(|| got(&world, cy).len() == 3).await;
    assert!(got(&world, bo).is_empty());
    world.up(bo).await;
    eventually(|| !got(&world, bo).is_empty()).await;
    assert_eq!(got(&world, bo), ["_reliable al: meanwhile"]);
}

#[tokio::test]
async fn who_may_not_publish_data_is_not_heard() {
    let world = World::new().await;
    let grants = json!({ "canPublishData": false });
    let mut al = world.join_with("al", "demo", grants, "").await;
    let before = world.server.peers();
    al.offer(&[Line::Data]).await;
    let publisher = new_peers(&world, &before)[0];
    let before = world.server.peers();
    let mut second = world.join("bo", "demo").await;
    let bo = new_peers(&world, &before)[0];
    world.all_up().await;
    is_active(&mut second, "bo").await;
    let before = world.server.peers();
    let mut third = world.join("cy", "demo").await;
    third.offer(&[Line::Data]).await;
    let cy = *new_peers(&world, &before).last().unwrap();
    send(&world, publisher, "_reliable", &packet(1, "all", &[])).await;
    // The session takes messages before requests.
    al.send(signal_request::Message::Ping(1)).await;
    let pong = |message| matches!(message, signal_response::Message::Pong(_)).then_some(());
    al.expect("pong", pong).await;
    send(&world, cy, "_reliable", &packet(1, "end", &[])).await;
    eventually(|| !got(&world, bo).is_empty()).await;
    assert_eq!(got(&world, bo), ["_reliable cy: end"]);
}

#[tokio::test]
async fn the_channels_of_the_server_are_open_once_the_subscriber_is_connected() {
    let world = World::new().await;
    let _al = world.join("al", "demo").await;
    world.all_up().await;
    let labels = || {
        let opened = world.server.requested().opened.into_iter();
        opened.map(|(_, label)| label).collect::<Vec<_>>()
    };
    eventually(|| labels() == ["_reliable", "_lossy", "_data_track"]).await;
}
