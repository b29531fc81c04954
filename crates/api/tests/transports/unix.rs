//! The Unix socket, of both kinds.

use std::path::Path;

use portunus_api::UnixKind;
use portunus_core::CoreConfig;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::UnixDatagram;
use tokio::time::timeout;
use tokio_seqpacket::UnixSeqpacket;

use crate::server::{ECHOTEST, PATIENCE, Server, config, error, start_with};

enum Client {
    Seqpacket(UnixSeqpacket),
    Datagram(UnixDatagram),
}

impl Client {
    async fn connect(kind: UnixKind, folder: &Path, name: &str) -> Self {
        let server = folder.join("api.sock");
        match kind {
            UnixKind::Seqpacket => Client::Seqpacket(UnixSeqpacket::connect(server).await.unwrap()),
            UnixKind::Datagram => {
                let socket = UnixDatagram::bind(folder.join(name)).unwrap();
                socket.connect(server).unwrap();
                Client::Datagram(socket)
            }
        }
    }

    async fn send(&self, text: &[u8]) {
        match self {
            Client::Seqpacket(socket) => socket.send(text).await.unwrap(),
            Client::Datagram(socket) => socket.send(text).await.unwrap(),
        };
    }

    async fn receive(&self) -> Value {
        let mut buffer = vec![0; 65_536];
        let length = timeout(PATIENCE, async {
            match self {
                Client::Seqpacket(socket) => socket.recv(&mut buffer).await.unwrap().bytes_read(),
                Client::Datagram(socket) => socket.recv(&mut buffer).await.unwrap(),
            }
        });
        let length = length.await.expect("a message");
        serde_json::from_slice(&buffer[..length]).unwrap()
    }

    async fn ask(&self, message: &Value) -> Value {
        self.send(message.to_string().as_bytes()).await;
        self.receive().await
    }
}

async fn start(kind: UnixKind, max_connections: usize) -> (Server, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let mut config = config();
    config.unix.path = Some(folder.path().join("api.sock"));
    config.unix.kind = kind;
    config.unix.max_message = 2_000;
    config.unix.max_connections = max_connections;
    (start_with(CoreConfig::default(), config).await, folder)
}

const KINDS: [UnixKind; 2] = [UnixKind::Seqpacket, UnixKind::Datagram];

#[tokio::test]
async fn requests_are_answered_and_events_pushed() {
    for kind in KINDS {
        let (_server, folder) = start(kind, 10).await;
        let client = Client::connect(kind, folder.path(), "one").await;
        let reply = client
            .ask(&json!({ "janus": "create", "transaction": "c" }))
            .await;
        let session = reply["data"]["id"].clone();
        let attach = json!({ "janus": "attach", "transaction": "a", "session_id": session, "plugin": ECHOTEST });
        let handle = client.ask(&attach).await["data"]["id"].clone();
        let message = json!({ "janus": "message", "transaction": "m", "session_id": session,
            "handle_id": handle, "body": { "audio": true } });
        assert_eq!(client.ask(&message).await["janus"], "ack");
        assert_eq!(client.receive().await["plugindata"]["data"]["result"], "ok");
    }
}

#[tokio::test]
async fn what_is_malformed_or_too_large_is_answered_with_an_error() {
    for kind in KINDS {
        let (server, folder) = start(kind, 10).await;
        let client = Client::connect(kind, folder.path(), "one").await;
        for text in ["nonsense", "5", "\"create\"", "null", "true"] {
            client.send(text.as_bytes()).await;
            assert_eq!(error(&client.receive().await), 454, "{text}");
        }
        client.send(b"[]").await;
        assert_eq!(error(&client.receive().await), 456);
        client.send(&[b' '; 2_001]).await;
        assert_eq!(error(&client.receive().await), 454);
        assert_eq!(server.transports.counters().refused.value(), 1);
        let pong = client
            .ask(&json!({ "janus": "ping", "transaction": "p" }))
            .await;
        assert_eq!(pong["janus"], "pong");
    }
}

#[tokio::test]
async fn clients_beyond_the_limit_are_refused() {
    for kind in KINDS {
        let (server, folder) = start(kind, 1).await;
        let ping = json!({ "janus": "ping", "transaction": "p" });
        let first = Client::connect(kind, folder.path(), "one").await;
        first.ask(&ping).await;
        let second = Client::connect(kind, folder.path(), "two").await;
        if let Client::Datagram(_) = second {
            second.send(ping.to_string().as_bytes()).await;
        }
        assert_eq!(error(&second.receive().await), 472);
        server
            .until(|counters| counters.connections_refused.value(), 1)
            .await;
        assert_eq!(first.ask(&ping).await["janus"], "pong");
    }
}

#[tokio::test]
async fn a_session_ends_with_its_connection() {
    let (_server, folder) = start(UnixKind::Seqpacket, 10).await;
    let client = Client::connect(UnixKind::Seqpacket, folder.path(), "").await;
    let session = client
        .ask(&json!({ "janus": "create", "transaction": "c" }))
        .await["data"]["id"]
        .clone();
    let heir = Client::connect(UnixKind::Seqpacket, folder.path(), "").await;
    let keepalive = json!({ "janus": "keepalive", "transaction": "k", "session_id": session });
    assert_eq!(heir.ask(&keepalive).await["janus"], "ack");
    drop(client);
    let gone = async { while heir.ask(&keepalive).await["janus"] == "ack" {} };
    timeout(PATIENCE, gone).await.unwrap();
}

#[tokio::test]
async fn the_file_goes_with_the_server() {
    for kind in KINDS {
        let (server, folder) = start(kind, 10).await;
        assert!(folder.path().join("api.sock").exists());
        server.transports.shutdown().await;
        assert!(!folder.path().join("api.sock").exists());
    }
}

#[tokio::test]
async fn many_requests_at_once_are_all_answered() {
    for kind in KINDS {
        let (_server, folder) = start(kind, 10).await;
        let client = Client::connect(kind, folder.path(), "one").await;
        const MANY: usize = 300;
        // More than the sockets hold: they are sent while the first are answered.
        let ask = async {
            for n in 0..MANY {
                let request = json!({ "janus": "ping", "transaction": n.to_string() });
                client.send(request.to_string().as_bytes()).await;
            }
        };
        let hear = async {
            for n in 0..MANY {
                assert_eq!(client.receive().await["transaction"], n.to_string());
            }
        };
        tokio::join!(ask, hear);
    }
}
