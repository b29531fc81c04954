//! Events of the transports.

use std::net::Ipv4Addr;

use portunus_api::UnixKind;
use portunus_core::CoreConfig;
use portunus_core::events::{EventFilter, EventKind, EventMask, Subscription};
use serde_json::{Value, json};
use tokio::net::{TcpStream, UnixDatagram};
use tokio::time::timeout;
use tokio_seqpacket::UnixSeqpacket;

use crate::server::{PATIENCE, Server, Socket, config, start, start_with};

fn watch(server: &Server, kinds: EventMask) -> Subscription {
    let filter = EventFilter {
        kinds,
        plugins: Vec::new(),
    };
    let events = server.core.gateway.events();
    events.subscribe("test", filter, 1_000)
}

/// The next event: its package, its connection, and what happened to that.
async fn next(events: &Subscription) -> (Value, Value, Value) {
    let event = timeout(PATIENCE, events.recv()).await;
    let event = events.to_json(&event.expect("an event").unwrap());
    assert_eq!(event["type"], 128, "{event}");
    assert_eq!(
        (event.get("session_id"), event.get("subtype")),
        (None, None)
    );
    let body = &event["event"];
    assert_eq!(body.as_object().unwrap().len(), 3, "{event}");
    (
        body["transport"].clone(),
        body["id"].clone(),
        body["data"].clone(),
    )
}

#[tokio::test]
async fn a_websocket_comes_and_goes_and_its_sessions_name_it() {
    let server = start().await;
    let kinds = EventMask::from(EventKind::Transports);
    let events = watch(&server, kinds);
    let sessions = watch(&server, EventKind::Sessions.into());
    let mut socket = server.connect().await;
    socket.session().await;
    let (transport, id, data) = next(&events).await;
    assert_eq!(transport, "janus.transport.websockets");
    let connected = json!({ "event": "connected", "admin_api": false, "ip": "127.0.0.1" });
    assert_eq!(data, connected);
    let created = sessions.recv().await.unwrap();
    let expected = json!({
        "name": "created",
        "transport": { "transport": "janus.transport.websockets", "id": id },
    });
    assert_eq!(created.body(), expected);
    drop(socket);
    let gone = (transport, id, json!({ "event": "disconnected" }));
    assert_eq!(next(&events).await, gone);
    // It ended without a word, as when a network is gone: that is no request that was refused.
    assert_eq!(server.transports.counters().refused.value(), 0);
}

#[tokio::test]
async fn each_http_request_is_told_and_a_session_names_that_which_made_it() {
    let server = start().await;
    let events = watch(&server, EventKind::Transports.into());
    let sessions = watch(&server, EventKind::Sessions.into());
    let session = server.session().await;
    let (transport, first, data) = next(&events).await;
    assert_eq!(transport, "janus.transport.http");
    let port = data["port"].as_u64().unwrap();
    assert!(port > 0 && port < 65_536);
    let request =
        json!({ "event": "request", "admin_api": false, "ip": "127.0.0.1", "port": port });
    assert_eq!(data, request);
    let created = sessions.recv().await.unwrap();
    assert_eq!(created.body()["transport"]["id"], first);
    server.handle(&session).await;
    let (_, second, _) = next(&events).await;
    assert_ne!(first, second);
}

#[tokio::test]
async fn the_admin_api_is_told_as_such() {
    let mut config = config();
    config.admin.ws = true;
    config.admin.ws_port = 0;
    let server = start_with(CoreConfig::default(), config).await;
    let events = watch(&server, EventKind::Transports.into());
    let http = TcpStream::connect(server.transports.admin().http[0])
        .await
        .unwrap();
    let body = json!({ "janus": "ping", "transaction": "p" }).to_string();
    let answer = crate::server::request(http, "POST", "/admin", &[], body.as_bytes()).await;
    assert_eq!(answer.json()["janus"], "pong");
    let (transport, _, data) = next(&events).await;
    assert_eq!(transport, "janus.transport.http");
    assert_eq!(
        (&data["event"], &data["admin_api"]),
        (&json!("request"), &json!(true))
    );
    let stream = TcpStream::connect(server.transports.admin().ws[0])
        .await
        .unwrap();
    let refused = Socket::open(stream, Some("janus-protocol")).await;
    assert_eq!(refused.err(), Some(400));
}

#[tokio::test]
async fn clients_of_the_unix_socket_come_and_go() {
    for kind in [UnixKind::Seqpacket, UnixKind::Datagram] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("api.sock");
        let mut config = config();
        config.unix.path = Some(path.clone());
        config.unix.kind = kind;
        let server = start_with(CoreConfig::default(), config).await;
        let events = watch(&server, EventKind::Transports.into());
        let ping = json!({ "janus": "ping", "transaction": "p" }).to_string();
        let mut seqpacket = None;
        let mut datagram = None;
        match kind {
            UnixKind::Seqpacket => {
                let client = UnixSeqpacket::connect(&path).await.unwrap();
                client.send(ping.as_bytes()).await.unwrap();
                seqpacket = Some(client);
            }
            UnixKind::Datagram => {
                let client = UnixDatagram::bind(folder.path().join("client.sock")).unwrap();
                client.send_to(ping.as_bytes(), &path).await.unwrap();
                datagram = Some(client);
            }
        }
        let (transport, id, data) = next(&events).await;
        assert_eq!(transport, "janus.transport.pfunix");
        let fd = data["fd"].as_i64().unwrap();
        assert!(fd > 2, "{data}");
        let mut connected = json!({ "event": "connected", "admin_api": false, "fd": fd });
        if kind == UnixKind::Datagram {
            connected["type"] = "SOCK_DGRAM".into();
        }
        assert_eq!(data, connected);
        drop((seqpacket, datagram));
        // The end of a client without a connection is seen much later.
        if kind == UnixKind::Seqpacket {
            let gone = (transport, id, json!({ "event": "disconnected" }));
            assert_eq!(next(&events).await, gone);
        }
    }
}

#[tokio::test]
async fn what_is_turned_off_is_not_told() {
    let mut config = config();
    config.http.events = false;
    let server = start_with(CoreConfig::default(), config).await;
    let events = watch(&server, EventKind::Transports.into());
    server.session().await;
    let _socket = server.connect().await;
    assert_eq!(next(&events).await.0, "janus.transport.websockets");
    assert_eq!(server.http().ip(), Ipv4Addr::LOCALHOST);
}

#[tokio::test]
async fn the_bus_is_counted_at_metrics() {
    let server = start().await;
    let _events = watch(&server, EventKind::Sessions.into());
    server.session().await;
    let metrics = server.metrics().await;
    for line in [
        "portunus_event_bus_published_total 1",
        "# TYPE portunus_event_handler_dropped_total counter",
        "# TYPE portunus_event_handler_running gauge",
        "# TYPE portunus_event_handler_waiting gauge",
        "portunus_statistics_interval_seconds 0",
    ] {
        assert!(
            metrics.contains(&format!("\n{line}\n")),
            "{line}: {metrics}"
        );
    }
}
