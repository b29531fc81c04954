//! HTTP: requests, errors, cross-origin rules, pages.

use portunus_admin::{AdminOptions, Administration};
use portunus_core::CoreConfig;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::server::{self, config, request, start, start_with};

#[tokio::test]
async fn sessions_and_handles_live_at_paths() {
    let server = start().await;
    let session = server.session().await;
    let handle = server.handle(&session).await;
    let message = json!({ "janus": "message", "transaction": "m", "body": { "audio": true } });
    let reply = server.post(&handle, &message).await;
    assert_eq!(reply["janus"], "ack");
    assert_eq!(reply["transaction"], "m");
    for (path, verb) in [(&handle, "detach"), (&session, "destroy")] {
        let reply = server
            .post(path, &json!({ "janus": verb, "transaction": "d" }))
            .await;
        assert_eq!(reply["janus"], "success", "{reply}");
    }
    let keepalive = json!({ "janus": "keepalive", "transaction": "k" });
    assert_eq!(server::error(&server.post(&session, &keepalive).await), 458);
}

#[tokio::test]
async fn ids_may_stand_in_the_message_instead_of_the_path() {
    let server = start().await;
    let session = server.session().await;
    let id: u64 = session.rsplit('/').next().unwrap().parse().unwrap();
    let keepalive = json!({ "janus": "keepalive", "transaction": "k", "session_id": id });
    assert_eq!(server.post("/janus", &keepalive).await["janus"], "ack");
    assert_eq!(server.post(&session, &keepalive).await["janus"], "ack");
    let reply = server.post("/janus/1", &keepalive).await;
    assert_eq!(server::error(&reply), 457);
}

#[tokio::test]
async fn info_and_ping_are_answered_to_get_only() {
    let server = start().await;
    let info = server.get("/janus/info").await.json();
    assert_eq!(info["janus"], "server_info");
    assert!(info["transaction"].is_string());
    assert!(info["plugins"][server::ECHOTEST].is_object());
    assert_eq!(server.get("/janus/ping").await.json()["janus"], "pong");
    for path in ["/janus/info", "/janus/ping"] {
        assert_eq!(server.request("POST", path, &[], b"{}").await.status, 400);
    }
}

#[tokio::test]
async fn what_is_no_request_is_refused_with_an_error() {
    let server = start().await;
    for (body, code) in [
        ("", 454),
        ("{\"janus\":", 454),
        ("\u{0}\u{1}", 454),
        ("[]", 455),
        ("[{}]", 455),
        ("5", 454),
        ("-1.5", 454),
        ("\"create\"", 454),
        ("null", 454),
        ("true", 454),
        ("{} x", 454),
        ("{}", 456),
        ("{\"janus\":\"create\"}", 456),
        ("{\"janus\":1,\"transaction\":\"t\"}", 467),
        ("{\"janus\":\"dance\",\"transaction\":\"t\"}", 457),
    ] {
        let answer = server.request("POST", "/janus", &[], body.as_bytes()).await;
        assert_eq!((answer.status, answer.error()), (200, code), "{body}");
    }
    let nested = "[".repeat(100_000);
    let answer = server
        .request("POST", "/janus", &[], nested.as_bytes())
        .await;
    assert_eq!(answer.error(), 454);
    // No other client is affected.
    server.session().await;
}

#[tokio::test]
async fn wrong_methods_and_paths_are_refused_as_by_janus() {
    let server = start().await;
    let answer = server.request("DELETE", "/janus", &[], b"").await;
    assert_eq!((answer.status, answer.error()), (200, 450));
    for path in ["/janus", "/janus/", "/janus/x", "/janus/0", "/janus/1/2/3"] {
        assert_eq!(server.get(path).await.status, 404, "{path}");
    }
    let answer = server.get("/janus/1/2").await;
    assert_eq!(answer.status, 302);
    assert_eq!(answer.header("location"), Some("/janus/1"));
}

#[tokio::test]
async fn a_body_that_is_too_large_is_refused() {
    let mut config = config();
    config.http.max_body = 2_000;
    let server = start_with(CoreConfig::default(), config).await;
    let body = vec![b' '; 2_001];
    let answer = server.request("POST", "/janus", &[], &body).await;
    assert_eq!((answer.status, answer.error()), (413, 454));
    assert_eq!(server.transports.counters().refused.value(), 1);
    server.session().await;
}

#[tokio::test]
async fn a_body_that_does_not_come_ends_the_request() {
    let mut config = config();
    config.http.request_timeout = std::time::Duration::from_millis(50);
    let server = start_with(CoreConfig::default(), config).await;
    let mut stream = TcpStream::connect(server.http()).await.unwrap();
    let head =
        "POST /janus HTTP/1.1\r\nHost: test\r\nContent-Length: 9\r\nConnection: close\r\n\r\n{";
    stream.write_all(head.as_bytes()).await.unwrap();
    assert_eq!(server::read_answer(stream).await.status, 408);
}

#[tokio::test]
async fn nonsense_instead_of_http_ends_the_connection() {
    let server = start().await;
    let mut stream = TcpStream::connect(server.http()).await.unwrap();
    stream
        .write_all(b"\x16\x03\x01nonsense\r\n\r\n")
        .await
        .unwrap();
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest).await;
    server.session().await;
}

#[tokio::test]
async fn any_origin_may_use_the_api() {
    let server = start().await;
    let asked = [
        "Origin: https://app.example",
        "Access-Control-Request-Method: POST",
        "Access-Control-Request-Headers: content-type",
    ];
    let answer = server.request("OPTIONS", "/janus/1/2", &asked, b"").await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("access-control-allow-origin"), Some("*"));
    assert_eq!(answer.header("access-control-allow-methods"), Some("POST"));
    assert_eq!(
        answer.header("access-control-allow-headers"),
        Some("content-type")
    );
    assert_eq!(answer.header("access-control-max-age"), Some("86400"));
    assert_eq!(
        server
            .get("/janus/info")
            .await
            .header("access-control-allow-origin"),
        Some("*")
    );
    assert_eq!(
        server
            .get("/janus/1")
            .await
            .header("access-control-allow-origin"),
        Some("*")
    );
}

#[tokio::test]
async fn one_origin_can_be_enforced() {
    let mut config = config();
    config.http.allow_origin = "https://app.example".into();
    config.http.enforce_origin = true;
    let server = start_with(CoreConfig::default(), config).await;
    for (header, status) in [
        ("Origin: https://app.example", 200),
        ("Referer: https://app.example/page", 200),
        ("Origin: https://app.example.evil", 403),
        ("Referer: https://app.example.evil/", 403),
        ("X-Nothing: of that", 403),
    ] {
        let answer = server.request("GET", "/janus/info", &[header], b"").await;
        assert_eq!(answer.status, status, "{header}");
        assert_eq!(
            answer.header("access-control-allow-origin"),
            Some("https://app.example")
        );
        assert_eq!(
            answer.header("access-control-allow-credentials"),
            Some("true")
        );
    }
}

#[tokio::test]
async fn the_base_path_can_be_moved() {
    let mut config = config();
    config.http.base_path = "/rtc/api".into();
    let server = start_with(CoreConfig::default(), config).await;
    assert_eq!(server.get("/rtc/api/ping").await.json()["janus"], "pong");
    assert_eq!(server.get("/janus/ping").await.status, 404);
}

#[tokio::test]
async fn a_server_that_is_drained_says_when_to_try_again() {
    let server = start().await;
    let create = json!({ "janus": "create", "transaction": "c" }).to_string();
    let create = async || {
        server
            .request("POST", "/janus", &[], create.as_bytes())
            .await
    };
    server.core.gateway.drain(None);
    let refused = create().await;
    assert_eq!((refused.status, refused.error()), (200, 472));
    assert_eq!(refused.header("retry-after"), Some("5"));
    server.core.gateway.undrain().unwrap();
    let created = create().await;
    assert_eq!(created.json()["janus"], "success");
    assert_eq!(created.header("retry-after"), None);
}

#[tokio::test]
async fn a_server_that_takes_nobody_new_is_alive_but_not_ready() {
    let core = CoreConfig {
        max_sessions: 1,
        ..CoreConfig::default()
    };
    let server = start_with(core, config()).await;
    let gateway = &server.core.gateway;
    gateway.drain(None);
    gateway.accept_new_sessions(false);
    let ready = server.get("/readyz").await;
    assert_eq!(ready.status, 503);
    let lines: Vec<_> = ready.body.lines().collect();
    assert!(lines[0].starts_with("draining: "), "{lines:?}");
    assert!(lines[1].starts_with("closed: "), "{lines:?}");
    for path in ["/livez", "/healthz"] {
        assert_eq!(server.get(path).await.status, 200, "{path}");
    }
    gateway.undrain().unwrap();
    gateway.accept_new_sessions(true);
    assert_eq!(server.get("/readyz").await.status, 200);
    server.session().await;
    let full = server.get("/readyz").await;
    assert_eq!(full.status, 503);
    assert!(full.body.contains("server.max_sessions"), "{}", full.body);
}

#[tokio::test]
async fn pages_health_and_counters_are_there() {
    let server = start().await;
    for path in ["/healthz", "/livez", "/readyz"] {
        assert_eq!(server.get(path).await.body, "ok\n", "{path}");
    }
    let page = server.get("/").await;
    assert_eq!(page.status, 200);
    assert!(
        page.header("content-type")
            .unwrap()
            .starts_with("text/html")
    );
    assert_eq!(server.get("/no/such/page").await.status, 404);
    assert_eq!(server.get("/../Cargo.toml").await.status, 404);
    assert_eq!(server.request("POST", "/", &[], b"x").await.status, 405);
    server.session().await;
    let metrics = server.metrics().await;
    assert!(metrics.contains("\nportunus_sessions 1\n"), "{metrics}");
    assert!(
        metrics.contains("\nportunus_http_requests_total 1\n"),
        "{metrics}"
    );
    assert!(
        metrics.contains("\nportunus_media_sent_datagrams_total 0\n"),
        "{metrics}"
    );
    assert!(
        metrics.contains("\nportunus_media_ingested_packets_total 0\n"),
        "{metrics}"
    );
    for line in [
        "portunus_media_tcp_connections 0",
        "portunus_media_tcp_refused_total{kind=\"silent\"} 0",
        "portunus_media_tcp_closed_total{kind=\"silent\"} 0",
    ] {
        assert!(metrics.contains(&format!("\n{line}\n")), "{metrics}");
    }
    // A duplicate metric makes the whole page unreadable for Prometheus.
    let names = || {
        metrics
            .lines()
            .filter_map(|line| Some(line.rsplit_once(' ')?.0))
    };
    let mut seen = std::collections::HashSet::new();
    let twice: Vec<_> = names().filter(|name| !seen.insert(*name)).collect();
    assert!(twice.is_empty(), "{twice:?}");
}

#[tokio::test]
async fn pages_and_counters_can_be_turned_off() {
    let mut config = config();
    config.http.pages = false;
    config.http.metrics = false;
    let server = start_with(CoreConfig::default(), config).await;
    assert_eq!(server.get("/").await.status, 404);
    assert_eq!(server.get("/metrics").await.status, 404);
}

#[tokio::test]
async fn counters_can_have_an_address_of_their_own() {
    let mut config = config();
    config.http.metrics_bind = Some("127.0.0.1:0".parse().unwrap());
    let server = start_with(CoreConfig::default(), config).await;
    assert_eq!(server.get("/metrics").await.status, 404);
    let [own] = server.transports.metrics() else {
        panic!("one address was asked for");
    };
    for (path, status) in [
        ("/metrics", 200),
        ("/healthz", 200),
        ("/livez", 200),
        ("/readyz", 200),
        ("/janus/info", 404),
        ("/", 404),
    ] {
        let stream = TcpStream::connect(own).await.unwrap();
        let answer = request(stream, "GET", path, &[], b"").await;
        assert_eq!(answer.status, status, "{path}");
        assert_eq!(
            answer.body.contains("portunus_sessions 0"),
            path == "/metrics"
        );
    }
}

#[tokio::test]
async fn a_page_is_not_sent_again_while_it_is_the_same() {
    let server = start().await;
    let page = server.get("/").await;
    // Without pages in the program there is only a note, which has no tag.
    let Some(tag) = page.header("etag") else {
        return;
    };
    let known = format!("If-None-Match: W/\"other\", {tag}");
    let again = server.request("GET", "/", &[&known], b"").await;
    assert_eq!((again.status, again.body.as_str()), (304, ""));
}

#[tokio::test]
async fn connections_beyond_the_limit_are_refused() {
    let mut config = config();
    config.http.max_connections = 1;
    let server = start_with(CoreConfig::default(), config).await;
    let mut first = TcpStream::connect(server.http()).await.unwrap();
    first
        .write_all(b"GET /healthz HTTP/1.1\r\nHost: test\r\n\r\n")
        .await
        .unwrap();
    let mut byte = [0];
    first.read_exact(&mut byte).await.unwrap();
    let mut second = TcpStream::connect(server.http()).await.unwrap();
    let mut refusal = Vec::new();
    let _ = second.read_to_end(&mut refusal).await;
    assert!(refusal.starts_with(b"HTTP/1.1 503 "), "{refusal:?}");
    assert_eq!(server.transports.counters().connections_refused.value(), 1);
}

#[tokio::test]
async fn a_taken_port_is_an_error_that_names_the_key() {
    let server = start().await;
    let mut config = config();
    config.http.port = server.http().port();
    let error = portunus_api::Transports::start(
        config,
        Administration::new(server.core.gateway.clone(), AdminOptions::default()),
        Vec::new(),
    )
    .await
    .unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("another process uses this port: stop it, or set http.port"),
        "{text}"
    );
}

/// https://prometheus.io/docs/practices/naming/
#[tokio::test]
async fn metrics_have_the_names_that_prometheus_wants() {
    let mut config = config();
    config.http.metrics_networks = vec!["127.0.0.0/8".parse().unwrap()];
    let server = start_with(CoreConfig::default(), config).await;
    let text = server.get("/metrics").await.body;
    let mut known = std::collections::HashSet::new();
    for line in text.lines() {
        let Some(typed) = line.strip_prefix("# TYPE ") else {
            continue;
        };
        let (name, kind) = typed.split_once(' ').unwrap();
        assert!(known.insert(name), "{name} is there twice");
        assert_eq!(kind == "counter", name.ends_with("_total"), "{typed}");
        let units = ["milli", "micro", "_ms", "_us", "kib", "kilo", "percent"];
        assert!(
            units.iter().all(|unit| !name.contains(unit)),
            "{name}: seconds, bytes, ratios"
        );
    }
    assert!(known.len() > 50, "{text}");
}
