//! Strangers who occupy as much of the server's memory as they can, with small budgets.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use portunus_admin::{AdminOptions, Administration};
use portunus_api::{ApiConfig, Transports};
use portunus_core::testing::{Line, jsep};
use portunus_core::{Budget, CoreConfig, Gateway, Plugin};
use portunus_echotest::EchoTest;
use portunus_sdp::{CodecName, Description, Direction, Kind, MediaOffer, OfferOptions};
use portunus_tests::{Caller, Peer, Server};
use portunus_textroom::{TextRoom, TextRoomConfig};
use serde_json::{Value, json};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

const PATIENCE: Duration = Duration::from_secs(30);
const TEXT_ROOM: &str = "janus.plugin.textroom";
const ECHO_TEST: &str = "janus.plugin.echotest";

/// The budget of the clients at one address, in MiB.
const ADDRESS: usize = 4;

/// The addresses of the attacker and of another client.
const ATTACKER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 21);
const OTHER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 22);

/// A server that treats clients on this machine as strangers at addresses of their own.
struct World {
    server: Server,
    transports: Transports,
}

impl World {
    async fn new(plugin: Arc<dyn Plugin>) -> Self {
        let core = CoreConfig {
            client_memory_mb: 4 * ADDRESS,
            client_memory_per_address_mb: ADDRESS,
            shared_addresses: Vec::new(),
            ..CoreConfig::default()
        };
        let server = Server::configured(core, 1, async |_| plugin).await;
        let mut config = ApiConfig::default();
        config.http.enabled = false;
        config.admin.enabled = false;
        config.websocket.bind = vec![Ipv4Addr::LOCALHOST.into()];
        config.websocket.port = 0;
        let transports = Transports::start(
            config,
            Administration::new(server.gateway.clone(), AdminOptions::default()),
            Vec::new(),
        )
        .await;
        World {
            server,
            transports: transports.unwrap(),
        }
    }

    fn gateway(&self) -> &Gateway {
        &self.server.gateway
    }

    fn memory(&self) -> &Budget {
        self.gateway().memory()
    }

    async fn connect(&self, ip: Ipv4Addr) -> Socket {
        Socket::connect(ip, self.transports.ws()[0], None).await
    }

    /// Waits until at most `before` is occupied.
    async fn until_given_back(&self, before: u64) {
        let given_back = async {
            while self.memory().totals().used > before {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let outcome = timeout(PATIENCE, given_back).await;
        assert!(outcome.is_ok(), "{:?}", self.memory().totals());
    }
}

/// A client by WebSocket.
struct Socket(WebSocketStream<TcpStream>);

impl Socket {
    /// `receives` is the size of the receive buffer of the client's system.
    async fn connect(ip: Ipv4Addr, to: SocketAddr, receives: Option<u32>) -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        if let Some(size) = receives {
            socket.set_recv_buffer_size(size).unwrap();
        }
        socket.bind(SocketAddr::from((ip, 0))).unwrap();
        let stream = socket.connect(to).await.unwrap();
        // With this name, it is no program of the machine.
        let mut request = "ws://server.example/".into_client_request().unwrap();
        let protocol = "janus-protocol".parse().unwrap();
        let headers = request.headers_mut();
        headers.insert("Sec-WebSocket-Protocol", protocol);
        let opened = tokio_tungstenite::client_async(request, stream).await;
        Socket(opened.unwrap().0)
    }

    async fn send(&mut self, request: &Value) -> bool {
        let sent = self.0.send(Message::text(request.to_string()));
        timeout(PATIENCE, sent).await.is_ok_and(|sent| sent.is_ok())
    }

    async fn receive(&mut self) -> Value {
        loop {
            let message = timeout(PATIENCE, self.0.next()).await.expect("a message");
            if let Message::Text(text) = message.unwrap().unwrap() {
                return serde_json::from_str(&text).unwrap();
            }
        }
    }

    /// Returns the reply to a request, and skips events.
    async fn ask(&mut self, request: Value) -> Value {
        assert!(self.send(&request).await);
        loop {
            let message = self.receive().await;
            if message["transaction"] == request["transaction"] || message["janus"] == "error" {
                return message;
            }
        }
    }

    async fn attach(&mut self, plugin: &str) -> (u64, u64) {
        let created = self
            .ask(json!({ "janus": "create", "transaction": "c" }))
            .await;
        let session = created["data"]["id"].as_u64().unwrap();
        let attached = self.ask(attach(session, plugin)).await;
        (session, attached["data"]["id"].as_u64().unwrap())
    }
}

fn attach(session: u64, plugin: &str) -> Value {
    json!({ "janus": "attach", "transaction": "a", "session_id": session, "plugin": plugin })
}

fn message(session: u64, handle: u64, body: Value) -> Value {
    json!({ "janus": "message", "transaction": "m", "session_id": session, "handle_id": handle,
            "body": body })
}

/// Returns a connected audio call.
async fn call(world: &World) -> (Caller, Peer) {
    let mut caller = world.server.attach(ECHO_TEST).await;
    let mut peer = Peer::offering().await;
    let mut media = MediaOffer::new(Kind::Audio, Direction::SendRecv);
    media.add_codec(CodecName::Opus, None, None);
    let offer = peer.offer(Description::offer(OfferOptions {
        media: vec![media],
        ..OfferOptions::default()
    }));
    let body = json!({ "audio": true });
    caller.message(body, Some(("offer", &offer))).await;
    let event = caller.next().await;
    peer.accept(event["jsep"]["sdp"].as_str().unwrap());
    peer.connect().await;
    echo(&mut peer).await;
    (caller, peer)
}

/// Sends until something comes back that was sent since.
async fn echo(peer: &mut Peer) {
    peer.packets.clear();
    let echoed = async {
        for n in 0.. {
            peer.send(0, n * 960, &[7]).await;
            peer.run_for(Duration::from_millis(20)).await;
            if !peer.packets.is_empty() {
                return;
            }
        }
    };
    timeout(PATIENCE, echoed).await.expect("an echo");
}

#[tokio::test]
async fn lists_that_nobody_reads_cost_their_reader_its_connection_and_nobody_else_anything() {
    let text_room = TextRoom::new(TextRoomConfig::default()).unwrap();
    let world = World::new(Arc::new(text_room)).await;
    let mut owner = world.server.attach(TEXT_ROOM).await;
    let long = "d".repeat(4_000);
    for room in 1..=200 {
        let create = json!({ "request": "create", "room": room, "description": long });
        assert_eq!(owner.manage(create).await["textroom"], "created");
    }
    let before = world.memory().totals().used;
    let list = json!({ "request": "list" });
    let mut unread = Vec::new();
    for _ in 0..4 {
        let to = world.transports.ws()[0];
        let mut socket = Socket::connect(ATTACKER, to, Some(4 << 10)).await;
        let ids = socket.attach(TEXT_ROOM).await;
        unread.push((socket, ids));
    }
    for (socket, (session, handle)) in &mut unread {
        for _ in 0..50 {
            if !socket.send(&message(*session, *handle, list.clone())).await {
                break;
            }
        }
        assert!(world.memory().totals().used <= before + (ADDRESS << 20) as u64);
    }
    let slow = async {
        while world.transports.counters().slow_clients.value() == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, slow).await.expect("a client is cut off");
    assert!(world.memory().totals().refused_to_address > 0);
    // A client that reads receives the same list.
    let mut other = world.connect(OTHER).await;
    let (session, handle) = other.attach(TEXT_ROOM).await;
    let reply = other.ask(message(session, handle, list)).await;
    let rooms = reply["plugindata"]["data"]["list"].as_array().unwrap();
    assert_eq!(rooms.len(), 200);
    drop((unread, other));
    world.until_given_back(before).await;
}

#[tokio::test]
async fn handles_without_end_come_to_an_end_while_a_call_goes_on() {
    let world = World::new(Arc::new(EchoTest)).await;
    let (_caller, mut peer) = call(&world).await;
    let mut attacker = world.connect(ATTACKER).await;
    let (session, _) = attacker.attach(ECHO_TEST).await;
    let mut handles = 1;
    let refusal = loop {
        let reply = attacker.ask(attach(session, ECHO_TEST)).await;
        if reply["janus"] == "error" {
            break reply;
        }
        handles += 1;
        assert!(handles < 10_000, "there is no bound");
    };
    assert_eq!(refusal["error"]["code"], 450);
    assert!(handles > 300, "{handles}");
    // Other sessions of its address have no budget left either, but those of others do.
    let mut second = attacker
        .ask(json!({ "janus": "create", "transaction": "c" }))
        .await;
    assert_eq!(second["error"]["code"].take(), 450);
    let mut other = world.connect(OTHER).await;
    other.attach(ECHO_TEST).await;
    echo(&mut peer).await;
    drop((attacker, other));
}

#[tokio::test]
async fn calls_that_nobody_takes_up_come_to_an_end() {
    let world = World::new(Arc::new(EchoTest)).await;
    let mut attacker = world.connect(ATTACKER).await;
    let (session, mut handle) = attacker.attach(ECHO_TEST).await;
    let mut calls = 0;
    let refusal = loop {
        let mut request = message(session, handle, json!({ "audio": true }));
        request["jsep"] = jsep("offer", "ufrag1", &[Line::Audio]);
        let reply = attacker.ask(request).await;
        if reply["janus"] == "error" {
            break reply;
        }
        calls += 1;
        let attached = attacker.ask(attach(session, ECHO_TEST)).await;
        if attached["janus"] == "error" {
            break attached;
        }
        handle = attached["data"]["id"].as_u64().unwrap();
        assert!(calls < 1_000, "there is no bound");
    };
    assert_eq!(refusal["error"]["code"], 450, "{refusal}");
    assert!(calls > 50, "{calls}");
    let mut other = world.connect(OTHER).await;
    let (session, handle) = other.attach(ECHO_TEST).await;
    let mut request = message(session, handle, json!({ "audio": true }));
    request["jsep"] = jsep("offer", "ufrag2", &[Line::Audio]);
    assert_eq!(other.ask(request).await["janus"], "ack");
    drop((attacker, other));
    world.until_given_back(0).await;
}

#[tokio::test]
async fn candidates_that_came_too_early_are_paid_for() {
    let world = World::new(Arc::new(EchoTest)).await;
    let mut attacker = world.connect(ATTACKER).await;
    let (session, handle) = attacker.attach(ECHO_TEST).await;
    let before = world.memory().totals().used;
    let candidate = json!({ "sdpMid": "0", "candidate": format!("candidate:{}", "x".repeat(900)) });
    let trickle = json!({ "janus": "trickle", "transaction": "t", "session_id": session,
        "handle_id": handle, "candidates": vec![candidate; 90] });
    assert_eq!(attacker.ask(trickle).await["janus"], "ack");
    assert!(world.memory().totals().used >= before + 90 * 900);
    drop(attacker);
    world.until_given_back(0).await;
}
