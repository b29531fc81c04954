//! Candidates with mDNS names, in a description and by trickle, with a responder in the network.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test fails by a panic"
)]

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use hickory_resolver::proto::op::{Message, MessageType, OpCode, Query};
use hickory_resolver::proto::rr::{Name, RData, Record, RecordType, rdata};
use portunus_admin::{AdminOptions, Administration};
use portunus_core::{Client, Requester};
use portunus_echotest::EchoTest;
use portunus_sdp::{CodecName, Description, Direction, Kind, MediaOffer, OfferOptions};
use portunus_tests::{Caller, Peer, Server};
use serde_json::{Value, json};
use socket2::{Domain, Socket, Type};
use tokio::net::UdpSocket;

const PORT: u16 = 5353;
const GROUP: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 251);

/// Answers for `name` on the loopback interface, with multicast like browsers.
fn respond(name: &str, address: Ipv4Addr) {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, None).unwrap();
    socket.set_reuse_address(true).unwrap();
    socket.set_reuse_port(true).unwrap();
    socket.set_nonblocking(true).unwrap();
    let any = SocketAddr::from((Ipv4Addr::UNSPECIFIED, PORT));
    socket.bind(&any.into()).unwrap();
    let loopback = &Ipv4Addr::LOCALHOST;
    socket.join_multicast_v4(&GROUP, loopback).unwrap();
    socket.set_multicast_if_v4(loopback).unwrap();
    let socket = UdpSocket::from_std(socket.into()).unwrap();
    let name = Name::from_ascii(format!("{name}.")).unwrap();
    tokio::spawn(async move {
        let mut buffer = [0; 9_000];
        loop {
            let (len, _) = socket.recv_from(&mut buffer).await.unwrap();
            let Ok(message) = Message::from_vec(&buffer[..len]) else {
                continue;
            };
            let is_it = |it: &Query| *it.name() == name && it.query_type() == RecordType::A;
            let is_query = message.metadata.message_type == MessageType::Query;
            if is_query && message.queries.iter().any(is_it) {
                let mut answer = Message::new(0, MessageType::Response, OpCode::Query);
                answer.metadata.authoritative = true;
                let data = RData::A(rdata::A(address));
                answer.add_answer(Record::from_rdata(name.clone(), 120, data));
                let answer = answer.to_vec().unwrap();
                socket.send_to(&answer, (GROUP, PORT)).await.unwrap();
            }
        }
    });
}

async fn ice(server: &Server, caller: &Caller) -> Value {
    let client = Client::polled("test").on_behalf_of(Requester::unix());
    let request = json!({ "janus": "handle_info", "transaction": "t", "session_id": caller.session,
        "handle_id": caller.handle });
    let reply = administration(server).request_value(&client, request).await;
    reply["info"]["webrtc"]["ice"].clone()
}

/// Waits until the server knows a candidate of the client with this start.
async fn knows(server: &Server, caller: &Caller, start: &str) {
    let patience = Instant::now() + Duration::from_secs(20);
    loop {
        let told = ice(server, caller).await;
        let mut known = told["remote-candidates"].as_array().into_iter().flatten();
        if known.any(|it| it.as_str().unwrap().starts_with(start)) {
            return;
        }
        assert!(Instant::now() < patience, "{start} in {told:#}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn names_are_resolved_in_descriptions_and_by_trickle_and_others_are_counted() {
    let name = format!("{:032x}.local", rand::random::<u128>());
    respond(&name, Ipv4Addr::new(192, 0, 2, 77));
    let server = Server::start(1, Arc::new(EchoTest));
    let mut caller = server.attach("janus.plugin.echotest").await;
    let mut peer = Peer::offering().await;
    let mut media = MediaOffer::new(Kind::Audio, Direction::SendRecv);
    media.add_codec(CodecName::Opus, None, None);
    let offer = peer.offer(Description::offer(OfferOptions {
        media: vec![media],
        ..Default::default()
    }));
    let hidden = format!("a=candidate:77 1 udp 2113937151 {name} 51000 typ host\r\n");
    let offer = format!("{offer}{hidden}");
    caller
        .message(json!({ "audio": true }), Some(("offer", &offer)))
        .await;
    let event = caller.next().await;
    assert_eq!(event["plugindata"]["data"]["result"], "ok", "{event}");
    knows(
        &server,
        &caller,
        "77 1 udp 2113937151 192.0.2.77 51000 typ host",
    )
    .await;

    for (foundation, name) in [(78, name.as_str()), (79, "nobody-has-this-name.local")] {
        let line = format!("candidate:{foundation} 1 udp 2113937151 {name} 52000 typ host");
        let candidate = json!({ "candidate": line, "sdpMid": "0", "sdpMLineIndex": 0 });
        let reply = caller
            .request("trickle", json!({ "candidate": candidate }))
            .await;
        assert_eq!(reply["janus"], "ack", "{reply}");
    }
    knows(
        &server,
        &caller,
        "78 1 udp 2113937151 192.0.2.77 52000 typ host",
    )
    .await;
    let patience = Instant::now() + Duration::from_secs(20);
    while ice(&server, &caller).await["ignored-candidates"] != 1 {
        assert!(
            Instant::now() < patience,
            "{:#}",
            ice(&server, &caller).await
        );
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

fn administration(server: &Server) -> Administration {
    Administration::new(server.gateway.clone(), AdminOptions::default())
}
