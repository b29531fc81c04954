//! The memory and connections of clients at one address, and what remains for others.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use futures_util::StreamExt;
use portunus_api::ApiConfig;
use portunus_core::CoreConfig;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use crate::server::{
    ECHOTEST, PATIENCE, Server, Socket, config, error, read_answer, request, start_with,
};

/// MiB of the clients at one address, and of all.
const ADDRESS: usize = 2;
const ALL: usize = 8;

/// Addresses of this machine, as those of clients elsewhere.
const ONE: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 11);
const OTHER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 12);

/// Loopback clients are not trusted, and each loopback address has a share of its own.
fn core() -> CoreConfig {
    CoreConfig {
        client_memory_mb: ALL,
        client_memory_per_address_mb: ADDRESS,
        shared_addresses: Vec::new(),
        trust_loopback: false,
        ..CoreConfig::default()
    }
}

async fn start() -> Server {
    start_with(core(), config()).await
}

/// A connection from an address.
async fn from(ip: Ipv4Addr, to: SocketAddr) -> TcpStream {
    connect(TcpSocket::new_v4().unwrap(), ip, to).await
}

async fn connect(socket: TcpSocket, ip: Ipv4Addr, to: SocketAddr) -> TcpStream {
    socket.bind(SocketAddr::from((ip, 0))).unwrap();
    socket.connect(to).await.unwrap()
}

async fn websocket(ip: Ipv4Addr, server: &Server) -> Socket<TcpStream> {
    let stream = from(ip, server.ws()).await;
    Socket::open(stream, Some("janus-protocol")).await.unwrap()
}

/// A client at another address starts a call.
async fn others_get_in(server: &Server) {
    let mut socket = websocket(OTHER, server).await;
    let session = socket.session().await;
    let reply = socket.ask(&attach(session)).await;
    assert_eq!(reply["janus"], "success", "{reply}");
    let create = json!({ "janus": "create", "transaction": "c" }).to_string();
    let stream = from(OTHER, server.http()).await;
    let answer = request(stream, "POST", "/janus", &[], create.as_bytes()).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    let path = format!("/janus/{}", answer.json()["data"]["id"]);
    let destroy = json!({ "janus": "destroy", "transaction": "d" }).to_string();
    let stream = from(OTHER, server.http()).await;
    let answer = request(stream, "POST", &path, &[], destroy.as_bytes()).await;
    assert_eq!(answer.json()["janus"], "success");
}

fn attach(session: u64) -> Value {
    json!({ "janus": "attach", "transaction": "a", "session_id": session, "plugin": ECHOTEST })
}

/// Waits until clients hold nothing.
async fn all_is_given_back(server: &Server) {
    let memory = server.core.gateway.memory();
    let given_back = async {
        while memory.totals().used > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let outcome = timeout(PATIENCE, given_back).await;
    assert!(outcome.is_ok(), "{:?}", memory.totals());
}

/// The head of a masked text frame with a payload of so many bytes.
fn frame_head(size: u64) -> Vec<u8> {
    let mut head = vec![0x81, 0xff];
    head.extend(size.to_be_bytes());
    head.extend([0; 4]);
    head
}

#[tokio::test]
async fn messages_that_do_not_come_whole_hold_no_more_than_a_share() {
    let server = start().await;
    let mut held = Vec::new();
    let refused = loop {
        let mut socket = websocket(ONE, &server).await;
        let stream = socket.0.get_mut();
        stream.write_all(&frame_head(3_900_000)).await.unwrap();
        stream.write_all(&vec![b' '; 900_000]).await.unwrap();
        let answer = timeout(Duration::from_millis(500), socket.0.next()).await;
        match answer {
            Err(_) => held.push(socket),
            Ok(message) => break (socket, message.unwrap().unwrap()),
        }
        assert!(held.len() < 10, "there is no bound");
    };
    let (mut socket, Message::Text(reply)) = refused else {
        panic!("no reply");
    };
    let reply: Value = serde_json::from_str(&reply).unwrap();
    assert_eq!(error(&reply), 450, "{reply}");
    let end = socket.closed().await.unwrap();
    assert_eq!(end.code, CloseCode::Again);
    assert!(server.core.gateway.memory().totals().used <= (ADDRESS << 20) as u64);
    others_get_in(&server).await;
    drop(held);
    all_is_given_back(&server).await;
}

#[tokio::test]
async fn parts_of_a_message_count_whatever_comes_between_them() {
    let server = start().await;
    let mut socket = websocket(ONE, &server).await;
    let stream = socket.0.get_mut();
    // A part of 8 KiB, and a ping, again and again.
    let mut part = vec![0x00, 0xfe, 0x20, 0x00, 0, 0, 0, 0];
    part.extend([b' '; 8 << 10]);
    part.extend([0x89, 0x80, 0, 0, 0, 0]);
    stream.write_all(&[0x01, 0x80, 0, 0, 0, 0]).await.unwrap();
    let mut sent = 0;
    while sent < 3 << 20 && stream.write_all(&part).await.is_ok() {
        sent += part.len();
    }
    assert!(
        socket
            .closed()
            .await
            .is_none_or(|end| end.code == CloseCode::Again)
    );
    assert_eq!(server.core.gateway.memory().totals().refused_to_address, 1);
    drop(socket);
    // Pings alone hold nothing, however many.
    let mut socket = websocket(ONE, &server).await;
    for _ in 0..20_000 {
        socket
            .0
            .get_mut()
            .write_all(&part[part.len() - 6..])
            .await
            .unwrap();
        while let Ok(pong) = timeout(Duration::ZERO, socket.0.next()).await {
            pong.unwrap().unwrap();
        }
    }
    socket.ping().await;
    drop(socket);
    all_is_given_back(&server).await;
}

#[tokio::test]
async fn bodies_that_do_not_come_whole_hold_no_more_than_a_share() {
    let server = start().await;
    let mut held = Vec::new();
    let refused = loop {
        let mut stream = from(ONE, server.http()).await;
        let head = "POST /janus HTTP/1.1\r\nHost: test\r\nContent-Length: 1000000\r\n\r\n";
        stream.write_all(head.as_bytes()).await.unwrap();
        let _ = stream.write_all(&vec![b' '; 900_000]).await;
        let mut first = [0; 1];
        match timeout(Duration::from_millis(500), stream.peek(&mut first)).await {
            Err(_) => held.push(stream),
            Ok(_) => break read_answer(stream).await,
        }
        assert!(held.len() < 10, "there is no bound");
    };
    assert_eq!(refused.status, 503, "{}", refused.body);
    assert_eq!(refused.header("retry-after"), Some("2"));
    assert_eq!(refused.error(), 450);
    assert!(!held.is_empty());
    others_get_in(&server).await;
    drop(held);
    all_is_given_back(&server).await;
}

#[tokio::test]
async fn idle_connections_of_one_address_leave_places_for_others() {
    let mut config = config();
    config.websocket.max_connections = 6;
    config.websocket.max_connections_per_address = 4;
    config.http.max_connections = 6;
    config.http.max_connections_per_address = 4;
    let server = start_with(core(), config).await;
    let mut held = Vec::new();
    for _ in 0..4 {
        held.push(websocket(ONE, &server).await);
    }
    let mut idle = Vec::new();
    for _ in 0..4 {
        idle.push(from(ONE, server.http()).await);
    }
    for to in [server.ws(), server.http()] {
        let refused = read_answer(from(ONE, to).await).await;
        assert_eq!(refused.status, 503, "{}", refused.body);
    }
    server.until(|it| it.connections_refused.value(), 2).await;
    others_get_in(&server).await;
    drop((held.pop(), idle.pop()));
    // A place is free once the server has seen the end.
    let again = async {
        loop {
            let stream = from(ONE, server.ws()).await;
            if Socket::open(stream, Some("janus-protocol")).await.is_ok() {
                return;
            }
        }
    };
    timeout(PATIENCE, again).await.expect("a free place");
}

#[tokio::test]
async fn addresses_that_many_share_have_no_share_of_their_own() {
    let mut config = config();
    config.websocket.max_connections_per_address = 1;
    let shared = CoreConfig {
        shared_addresses: vec!["127.0.0.11".parse().unwrap()],
        ..core()
    };
    let server = start_with(shared, config).await;
    let mut held = Vec::new();
    for _ in 0..3 {
        held.push(websocket(ONE, &server).await);
    }
    let _other = websocket(OTHER, &server).await;
    let refused = read_answer(from(OTHER, server.ws()).await).await;
    assert_eq!(refused.status, 503);
    // All of it is still bounded.
    let (mut sessions, last) = (0, held.last_mut().unwrap());
    loop {
        let reply = last
            .ask(&json!({ "janus": "create", "transaction": "c" }))
            .await;
        if reply["janus"] == "error" {
            assert_eq!(error(&reply), 450, "{reply}");
            break;
        }
        sessions += 1;
    }
    assert!(sessions > (ADDRESS << 20) / (8 << 10), "{sessions}");
    assert!(sessions < (ALL << 20) / (8 << 10), "{sessions}");
}

#[tokio::test]
async fn sessions_and_handles_of_one_address_have_a_bound_and_are_given_back() {
    let server = start().await;
    let mut socket = websocket(ONE, &server).await;
    let session = socket.session().await;
    let mut handles = 0;
    let refusal = loop {
        let reply = socket.ask(&attach(session)).await;
        if reply["janus"] == "error" {
            break reply;
        }
        handles += 1;
    };
    assert_eq!(error(&refusal), 450, "{refusal}");
    assert_eq!(refusal["transaction"], "a");
    assert!(handles > 100, "{handles}");
    // A session over HTTP, whose client never asks for events, is as dear.
    let create = json!({ "janus": "create", "transaction": "c" }).to_string();
    let stream = from(ONE, server.http()).await;
    let answer = request(stream, "POST", "/janus", &[], create.as_bytes()).await;
    // There is no memory even for the connection.
    assert!([200, 503].contains(&answer.status), "{}", answer.body);
    others_get_in(&server).await;
    let destroy = json!({ "janus": "destroy", "transaction": "d", "session_id": session });
    assert_eq!(socket.ask(&destroy).await["janus"], "success");
    let session = socket.session().await;
    let attached = async { while socket.ask(&attach(session)).await["janus"] == "error" {} };
    timeout(PATIENCE, attached).await.expect("memory again");
}

#[tokio::test]
async fn those_who_run_the_server_get_in_when_strangers_hold_all() {
    let shared = CoreConfig {
        api_secret: Some("s3cret".into()),
        shared_addresses: CoreConfig::default().shared_addresses,
        token_auth: false,
        ..core()
    };
    let core = CoreConfig {
        api_secret: None,
        tokens: vec![portunus_core::StoredToken {
            token: "t0ken".into(),
            plugins: Vec::new(),
            rights: vec![portunus_core::Right::Administer],
        }],
        ..shared
    };
    let server = start_with(core, config()).await;
    let mut stranger = websocket(ONE, &server).await;
    let mut held = websocket(OTHER, &server).await;
    loop {
        let reply = stranger
            .ask(&json!({ "janus": "create", "transaction": "c" }))
            .await;
        if reply["janus"] == "error" {
            assert_eq!(error(&reply), 450);
            break;
        }
    }
    let own = held
        .ask(&json!({ "janus": "create", "transaction": "c", "token": "t0ken" }))
        .await;
    assert_eq!(own["janus"], "success", "{own}");
    let admin = server.transports.admin().http[0];
    let stream = TcpStream::connect(admin).await.unwrap();
    let answer = request(stream, "GET", "/admin/info", &[], b"").await;
    assert_eq!(answer.status, 200);
    // The prepaid amount of a connection is available, so present calls are not disturbed.
    held.ping().await;
}

#[tokio::test]
async fn replies_that_nobody_reads_hold_no_more_than_a_share() {
    let mut config = config();
    config.http.metrics_networks = vec!["127.0.0.0/8".parse().unwrap()];
    let server = start_with(core(), config).await;
    let memory = server.core.gateway.memory();
    let mut held = Vec::new();
    let refused = async {
        while memory.totals().refused_to_address == 0 {
            // It takes little at once, and reads nothing.
            let socket = TcpSocket::new_v4().unwrap();
            socket.set_recv_buffer_size(4 << 10).unwrap();
            let mut stream = connect(socket, ONE, server.http()).await;
            let line = "GET /metrics HTTP/1.1\r\nHost: test\r\n\r\n";
            let _ = stream.write_all(line.repeat(50).as_bytes()).await;
            held.push(stream);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, refused).await.expect("a refusal");
    assert!(held.len() > 10, "{}", held.len());
    assert!(memory.totals().used <= (ADDRESS << 20) as u64);
    others_get_in(&server).await;
    drop(held);
    all_is_given_back(&server).await;
}

#[tokio::test]
async fn a_head_that_is_too_long_is_refused_as_such() {
    let server = start_with(CoreConfig::default(), config()).await;
    let token = format!("Authorization: Bearer {}", "x".repeat(20_000));
    let query = format!("/janus/1?token={}", "x".repeat(20_000));
    for (path, headers) in [("/janus", vec![token.as_str()]), (&query, vec![])] {
        let mut stream = TcpStream::connect(server.http()).await.unwrap();
        let mut head = format!("GET {path} HTTP/1.1\r\nHost: test\r\n");
        for header in headers {
            head.push_str(&format!("{header}\r\n"));
        }
        let _ = stream.write_all(format!("{head}\r\n").as_bytes()).await;
        let mut answer = vec![0; 12];
        timeout(PATIENCE, stream.read_exact(&mut answer))
            .await
            .unwrap()
            .unwrap();
        let status = String::from_utf8(answer).unwrap();
        assert!(
            status.contains(" 431") || status.contains(" 414"),
            "{status}"
        );
    }
}

/// Only the limits in this file are configured.
#[test]
fn limits_of_an_address_are_on_by_default() {
    let api = ApiConfig::default();
    assert!(api.http.max_connections_per_address < api.http.max_connections);
    assert!(api.websocket.max_connections_per_address < api.websocket.max_connections);
    let core = CoreConfig::default();
    assert!(core.max_sessions > 0 && core.max_handles_per_session > 0);
}
