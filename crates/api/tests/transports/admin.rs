//! The Admin API: where it is, and who is let in.

use std::time::{Duration, Instant};

use portunus_admin::{AdminConfig, AdminOptions, Administration};
use portunus_api::{ApiConfig, StartError, Transports, UnixKind};
use portunus_core::testing::TestServer;
use portunus_core::{CoreConfig, ServerFacts};
use portunus_echotest::EchoTest;
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::net::{TcpStream, UnixDatagram};
use tokio_seqpacket::UnixSeqpacket;

use crate::server::{self, Answer, Server, Socket, config, error};

const PROTOCOL: Option<&str> = Some("janus-admin-protocol");

async fn start(secret: Option<&str>, core: CoreConfig, config: ApiConfig) -> Server {
    let facts = ServerFacts {
        transports: portunus_api::transport_infos(&config),
        ..ServerFacts::default()
    };
    let core = TestServer::knowing(facts, core, vec![Arc::new(EchoTest)]);
    let options = AdminOptions {
        config: AdminConfig {
            secret: secret.map(Into::into),
            ..AdminConfig::default()
        },
        ..AdminOptions::default()
    };
    let administration = Administration::new(core.gateway.clone(), options);
    let transports = Transports::start(config, administration, Vec::new()).await;
    let transports = transports.unwrap();
    Server { core, transports }
}

async fn open() -> Server {
    start(None, CoreConfig::default(), config()).await
}

async fn locked() -> Server {
    start(Some("s3"), CoreConfig::default(), config()).await
}

/// A request of a program on this machine.
async fn request(server: &Server, method: &str, path: &str, head: &[&str], body: &str) -> Answer {
    let host = format!("Host: {}\r\n", server.transports.admin().http[0]);
    request_to(server, &host, method, path, head, body).await
}

async fn request_to(
    server: &Server,
    host: &str,
    method: &str,
    path: &str,
    head: &[&str],
    body: &str,
) -> Answer {
    let to = server.transports.admin().http[0];
    let stream = TcpStream::connect(to).await.unwrap();
    server::request_to(host, stream, method, path, head, body.as_bytes()).await
}

async fn ask(server: &Server, path: &str, message: Value) -> Value {
    let answer = request(server, "POST", path, &[], &message.to_string()).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    answer.json()
}

fn list(secret: Option<&str>) -> Value {
    let mut message = json!({ "janus": "list_sessions", "transaction": "l" });
    if let Some(secret) = secret {
        message["admin_secret"] = secret.into();
    }
    message
}

#[tokio::test]
async fn without_a_secret_programs_on_this_machine_and_the_dashboard_are_let_in() {
    let server = open().await;
    let admin = server.transports.admin();
    assert!(admin.http.iter().all(|address| address.ip().is_loopback()));
    let port = admin.http[0].port();
    let calls = server.http().port();
    let localhost = format!("Host: localhost:{port}\r\n");
    let forbidden = Some(403);
    for (host, head, code) in [
        (&localhost, None, None),
        (
            &localhost,
            Some(format!("Origin: http://localhost:{port}")),
            None,
        ),
        // The pages for calls are not the dashboard.
        (
            &localhost,
            Some(format!("Origin: http://127.0.0.1:{calls}")),
            forbidden,
        ),
        (
            &localhost,
            Some(format!("Origin: http://127.0.0.1:{port}")),
            None,
        ),
        (
            &localhost,
            Some("Origin: https://example.org".into()),
            forbidden,
        ),
        (
            &localhost,
            Some("Origin: http://localhost:1".into()),
            forbidden,
        ),
        (&localhost, Some("Origin: null".into()), forbidden),
        (
            &localhost,
            Some("X-Forwarded-For: 127.0.0.1".into()),
            forbidden,
        ),
        (&localhost, Some("Via: 1.1 proxy".into()), forbidden),
        (&"Host: rebound.example.org\r\n".to_owned(), None, forbidden),
    ] {
        let head: Vec<&str> = head.as_deref().into_iter().collect();
        let body = list(None).to_string();
        let answer = request_to(&server, host, "POST", "/admin", &head, &body).await;
        let code_of = answer.json()["error"]["code"].as_u64();
        assert_eq!(code_of, code, "{host} {head:?}");
    }
}

#[tokio::test]
async fn where_loopback_is_not_trusted_nobody_is_let_in_without_a_secret() {
    let core = CoreConfig {
        trust_loopback: false,
        ..CoreConfig::default()
    };
    let server = start(None, core, config()).await;
    let refused = ask(&server, "/admin", list(None)).await;
    assert_eq!(error(&refused), 403);
    // No secret would open it.
    let reason = refused["error"]["reason"].as_str().unwrap();
    assert!(reason.contains("without admin.secret"), "{reason}");
}

#[tokio::test]
async fn with_a_secret_whoever_shows_it_is_let_in_and_nobody_else() {
    let server = locked().await;
    assert_eq!(error(&ask(&server, "/admin", list(None)).await), 403);
    assert_eq!(error(&ask(&server, "/admin", list(Some("s4"))).await), 403);
    let told = ask(&server, "/admin", list(Some("s3"))).await;
    assert_eq!(told["sessions"], json!([]));
    // From a page of anywhere, by any name.
    let body = list(Some("s3")).to_string();
    let head = ["Origin: https://example.org"];
    let answer = request_to(&server, "Host: a\r\n", "POST", "/admin", &head, &body).await;
    assert_eq!(answer.json()["janus"], "success");
    assert_eq!(answer.header("access-control-allow-origin"), Some("*"));
}

#[tokio::test]
async fn with_a_secret_other_machines_reach_it_by_tls_and_not_by_plain_http() {
    let folder = tempfile::tempdir().unwrap();
    portunus_api::testing::write_certificate(folder.path());
    for (secret, is_open) in [(None, false), (Some("s3"), true)] {
        let mut config = config();
        config.tls.certificate = Some(folder.path().join("cert.pem"));
        config.tls.key = Some(folder.path().join("key.pem"));
        config.admin.bind = Vec::new();
        (config.admin.https, config.admin.https_port) = (true, 0);
        (config.admin.ws, config.admin.ws_port) = (true, 0);
        let server = start(secret, CoreConfig::default(), config).await;
        let admin = server.transports.admin();
        for address in admin.http.iter().chain(&admin.ws) {
            assert!(address.ip().is_loopback(), "{address}");
        }
        for address in &admin.https {
            assert_eq!(address.ip().is_unspecified(), is_open, "{address}");
        }
    }
    // Plain HTTP is where it is told to be.
    let mut config = config();
    config.admin.bind = vec!["0.0.0.0".parse().unwrap()];
    let server = start(Some("s3"), CoreConfig::default(), config).await;
    let admin = server.transports.admin();
    assert!(admin.http.iter().all(|it| it.ip().is_unspecified()));
}

#[tokio::test]
async fn wrong_secrets_are_answered_late_and_right_ones_meanwhile() {
    let server = locked().await;
    let start = Instant::now();
    let guesses = async {
        for guess in 0..4 {
            let reply = ask(&server, "/admin", list(Some(&guess.to_string()))).await;
            assert_eq!(error(&reply), 403);
        }
        start.elapsed()
    };
    let right = async {
        let reply = ask(&server, "/admin", list(Some("s3"))).await;
        assert_eq!(reply["janus"], "success");
        start.elapsed()
    };
    let (guesses, right) = tokio::join!(guesses, right);
    assert!(guesses >= Duration::from_millis(1_500), "{guesses:?}");
    assert!(right < guesses, "{right:?}");
    let metrics = server.metrics().await;
    for counted in [
        "portunus_admin_requests_total 5\n",
        "portunus_refused_admin_requests_total 4\n",
    ] {
        assert!(metrics.contains(counted), "{metrics}");
    }
}

#[tokio::test]
async fn info_and_ping_need_no_secret_and_other_gets_are_no_requests() {
    let server = locked().await;
    let get = async |path: &str| request(&server, "GET", path, &[], "").await;
    assert_eq!(get("/admin/info").await.json()["janus"], "server_info");
    assert_eq!(get("/admin/ping").await.json()["janus"], "pong");
    for path in ["/admin", "/admin/1", "/admin/1/2"] {
        assert_eq!(get(path).await.error(), 454, "{path}");
    }
    assert_eq!(get("/admin/1/2/3").await.status, 404);
    let post = async |path: &str, body: &str| request(&server, "POST", path, &[], body).await;
    assert_eq!(post("/admin/info", "{}").await.error(), 450);
    assert_eq!(post("/admin/ping", "{}").await.status, 400);
    assert_eq!(post("/admin", "").await.error(), 454);
    assert_eq!(post("/admin", "[]").await.error(), 455);
    assert_eq!(post("/admin", "{").await.error(), 454);
    assert_eq!(
        request(&server, "PUT", "/admin", &[], "{}").await.error(),
        450
    );
    let options = request(&server, "OPTIONS", "/admin", &[], "").await;
    assert_eq!(options.status, 200);
    let ping = json!({ "janus": "PING", "transaction": "p" });
    let pong = ask(&server, "/admin", ping).await;
    assert_eq!(pong, json!({ "janus": "pong", "transaction": "p" }));
}

#[tokio::test]
async fn ids_may_stand_in_the_path() {
    let server = open().await;
    let mut client = server.connect().await;
    let session = client.session().await;
    let handles = json!({ "janus": "list_handles", "transaction": "h" });
    let path = format!("/admin/{session}");
    let told = ask(&server, &path, handles.clone()).await;
    let expected =
        json!({ "janus": "success", "session_id": session, "transaction": "h", "handles": [] });
    assert_eq!(told, expected);
    let mut other = handles.clone();
    other["session_id"] = 1.into();
    assert_eq!(error(&ask(&server, &path, other).await), 457);
    assert_eq!(error(&ask(&server, "/admin/1", handles.clone()).await), 458);
    let wrong = format!("{path}/abc");
    assert_eq!(error(&ask(&server, &wrong, handles.clone()).await), 458);
    let unknown = format!("{path}/1");
    assert_eq!(error(&ask(&server, &unknown, handles).await), 459);
}

#[tokio::test]
async fn websockets_speak_it_by_a_subprotocol_of_its_own() {
    let mut config = config();
    config.admin.ws = true;
    config.admin.ws_port = 0;
    let server = start(Some("s3"), CoreConfig::default(), config).await;
    let admin = server.transports.admin();
    for (to, path) in [(admin.http[0], "/admin"), (admin.ws[0], "/")] {
        let stream = TcpStream::connect(to).await.unwrap();
        let refused = Socket::open_at(stream, path, Some("janus-protocol")).await;
        assert_eq!(refused.err(), Some(400));
        let stream = TcpStream::connect(to).await.unwrap();
        let mut socket = Socket::open_at(stream, path, PROTOCOL).await.unwrap();
        assert_eq!(error(&socket.ask(&list(None)).await), 403);
        assert_eq!(socket.ask(&list(Some("s3"))).await["janus"], "success");
        socket.ping().await;
    }
}

#[tokio::test]
async fn events_are_pushed_to_who_subscribes() {
    let server = open().await;
    let subscribe =
        json!({ "janus": "subscribe_events", "transaction": "s", "events": "external" });
    // Nothing can be pushed over HTTP.
    let refused = ask(&server, "/admin", subscribe.clone()).await;
    assert_eq!(error(&refused), 450);
    let admin = server.transports.admin().http[0];
    let stream = TcpStream::connect(admin).await.unwrap();
    let mut socket = Socket::open_local(stream, admin, "/admin", PROTOCOL).await;
    let reply = socket.ask(&subscribe).await;
    assert_eq!(reply["events"], "external");
    let event = json!({ "janus": "custom_event", "transaction": "c", "schema": "mine",
        "data": { "n": 1 } });
    assert_eq!(
        ask(&server, "/admin", event.clone()).await["janus"],
        "success"
    );
    let told = socket.receive().await;
    assert_eq!(told["janus"], "event");
    assert_eq!(told["event"]["type"], 4);
    assert_eq!(
        told["event"]["event"],
        json!({ "schema": "mine", "data": { "n": 1 } })
    );
    let unsubscribe = json!({ "janus": "unsubscribe_events", "transaction": "u" });
    assert_eq!(socket.ask(&unsubscribe).await["transaction"], "u");
    ask(&server, "/admin", event).await;
    // Nothing comes before the answer to what is asked afterwards.
    socket.ping().await;
}

#[tokio::test]
async fn the_unix_socket_speaks_it_too() {
    for kind in [UnixKind::Seqpacket, UnixKind::Datagram] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("admin.sock");
        let mut config = config();
        config.unix.kind = kind;
        config.admin.unix_path = Some(path.clone());
        let server = start(None, CoreConfig::default(), config).await;
        let message = list(None).to_string();
        let mut buffer = vec![0; 65_536];
        let length = match kind {
            UnixKind::Seqpacket => {
                let socket = UnixSeqpacket::connect(&path).await.unwrap();
                socket.send(message.as_bytes()).await.unwrap();
                socket.recv(&mut buffer).await.unwrap().bytes_read()
            }
            UnixKind::Datagram => {
                let socket = UnixDatagram::bind(folder.path().join("mine")).unwrap();
                socket.connect(&path).unwrap();
                socket.send(message.as_bytes()).await.unwrap();
                socket.recv(&mut buffer).await.unwrap()
            }
        };
        let reply: Value = serde_json::from_slice(&buffer[..length]).unwrap();
        assert_eq!(reply["sessions"], json!([]));
        drop(server);
    }
}

#[tokio::test]
async fn transports_tell_their_connections() {
    let server = open().await;
    let _client = server.connect().await;
    let query = |transport: &str, request: Value| {
        let message = json!({ "janus": "query_transport", "transaction": "q",
            "transport": transport, "request": request });
        ask(&server, "/admin", message)
    };
    let connections = json!({ "request": "connections" });
    let http = query("janus.transport.http", connections.clone()).await;
    let told = &http["response"];
    assert_eq!(told["result"], 200, "{http}");
    assert_eq!(told["connections"]["admin_http"], 1);
    assert_eq!(told["connections"]["http"], 0);
    let websockets = query("janus.transport.websockets", connections.clone()).await;
    assert_eq!(websockets["response"]["connections"], 1, "{websockets}");
    // It is off.
    let unix = query("janus.transport.pfunix", connections).await;
    assert_eq!(error(&unix), 460);
    let unknown = query("janus.transport.http", json!({ "request": "fly" })).await;
    assert_eq!(unknown["response"]["error_code"], 411);
    let missing = query("janus.transport.http", json!({})).await;
    assert_eq!(missing["response"]["error_code"], 412);
    let wrong = query("janus.transport.http", json!({ "request": 1 })).await;
    assert_eq!(wrong["response"]["error_code"], 413);
    let configure = json!({ "request": "configure", "events": false, "json": "indented" });
    let done = query("janus.transport.http", configure).await;
    assert_eq!(done["response"]["result"], 200);
    assert_eq!(done["response"]["notes"].as_array().map(Vec::len), Some(2));
    let wrong = json!({ "request": "configure", "json": "pretty" });
    let wrong = query("janus.transport.http", wrong).await;
    assert_eq!(wrong["response"]["error_code"], 413);
}

#[tokio::test]
async fn transports_of_the_admin_api_alone_are_asked_too() {
    let mut config = config();
    config.http.enabled = false;
    config.websocket.enabled = false;
    let folder = tempfile::tempdir().unwrap();
    config.admin.unix_path = Some(folder.path().join("admin"));
    let server = start(None, CoreConfig::default(), config).await;
    for request in ["connections", "configure"] {
        for transport in ["http", "websockets", "pfunix"] {
            let message = json!({ "janus": "query_transport", "transaction": "q",
                "transport": format!("janus.transport.{transport}"), "request": { "request": request } });
            let reply = ask(&server, "/admin", message).await;
            assert_eq!(reply["response"]["result"], 200, "{transport}: {reply}");
        }
    }
}

#[tokio::test]
async fn a_port_in_use_is_told_with_the_key_that_helps() {
    let first = open().await;
    let mut config = config();
    config.admin.port = first.transports.admin().http[0].port();
    let core = TestServer::new(CoreConfig::default(), Vec::new());
    let failed = Transports::start(
        config,
        Administration::new(core.gateway.clone(), AdminOptions::default()),
        Vec::new(),
    )
    .await;
    let text = failed
        .map(drop)
        .map_err(|error: StartError| error.to_string());
    let text = text.unwrap_err();
    let hint = "another process uses this port: stop it, or set admin.port";
    assert!(text.contains(hint), "{text}");
}

#[tokio::test]
async fn the_dashboard_is_on_its_port_alone_and_in_no_frame() {
    let server = open().await;
    let page = request(&server, "GET", "/", &[], "").await;
    assert_eq!(page.status, 200);
    assert!(
        page.header("content-type")
            .unwrap()
            .starts_with("text/html")
    );
    let calls = server.get("/admin/index.html").await;
    assert_eq!(calls.status, 404);
    let mut config = config();
    config.admin.pages = false;
    let server = start(None, CoreConfig::default(), config).await;
    assert_eq!(request(&server, "GET", "/", &[], "").await.status, 404);
}
