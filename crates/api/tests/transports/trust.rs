//! Which clients the server considers local.

use futures_util::SinkExt;
use portunus_core::CoreConfig;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

use crate::server::{Server, Socket, config, start_with};

/// A server on which a text of a stranger may have 20 bytes.
async fn start(core: CoreConfig) -> Server {
    let core = CoreConfig {
        max_text: 20,
        ..core
    };
    start_with(core, config()).await
}

fn ping() -> Value {
    json!({ "janus": "ping", "transaction": "p", "note": "longer than a stranger's may be" })
}

fn is_trusted(reply: &Value) -> bool {
    match reply["janus"].as_str() {
        Some("pong") => true,
        _ => {
            assert_eq!(reply["error"]["code"], 467, "{reply}");
            false
        }
    }
}

/// A request with these lines in its head, and no others.
async fn by_http(server: &Server, head: &[String]) -> bool {
    let stream = TcpStream::connect(server.http()).await.unwrap();
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    let body = ping().to_string();
    let answer = crate::server::request_to("", stream, "POST", "/janus", &head, body.as_bytes());
    is_trusted(&answer.await.json())
}

#[tokio::test]
async fn programs_and_own_pages_are_trusted_by_http() {
    let server = start(CoreConfig::default()).await;
    let port = server.http().port();
    let host = format!("Host: localhost:{port}");
    for (head, trusted) in [
        (vec![host.clone()], true),
        (vec![format!("Host: {}", server.http())], true),
        (
            vec![host.clone(), format!("Origin: http://localhost:{port}")],
            true,
        ),
        (
            vec![host.clone(), format!("Origin: http://127.0.0.1:{port}")],
            true,
        ),
        (
            vec![host.clone(), "Origin: http://localhost:1".into()],
            false,
        ),
        (
            vec![host.clone(), "Origin: https://example.org".into()],
            false,
        ),
        (vec![host.clone(), "Origin: null".into()], false),
        (
            vec![host.clone(), "X-Forwarded-For: 127.0.0.1".into()],
            false,
        ),
        (vec![host, "Via: 1.1 proxy".into()], false),
        (vec![format!("Host: rebound.example.org:{port}")], false),
    ] {
        assert_eq!(by_http(&server, &head).await, trusted, "{head:?}");
    }
}

#[tokio::test]
async fn nobody_is_trusted_by_his_address_if_so_configured() {
    let server = start(CoreConfig {
        trust_loopback: false,
        ..CoreConfig::default()
    })
    .await;
    assert!(!by_http(&server, &["Host: localhost".to_owned()]).await);
}

/// A server behind a proxy at 127.0.0.1, of which a client may make three requests.
async fn behind_a_proxy() -> Server {
    let core = CoreConfig {
        trusted_proxies: vec!["127.0.0.1".parse().unwrap()],
        request_rate: 1,
        request_burst: 3,
        ..CoreConfig::default()
    };
    start_with(core, config()).await
}

/// The code of the error that a ping is answered with; 0 if it is answered.
async fn pinged(server: &Server, head: &[&str]) -> u64 {
    let ping = json!({ "janus": "ping", "transaction": "p" }).to_string();
    let stream = TcpStream::connect(server.http()).await.unwrap();
    let head: Vec<&str> = ["Host: localhost"].iter().chain(head).copied().collect();
    let answer = crate::server::request_to("", stream, "POST", "/janus", &head, ping.as_bytes());
    answer.await.json()["error"]["code"].as_u64().unwrap_or(0)
}

#[tokio::test]
async fn each_client_of_a_trusted_proxy_has_limits_of_its_own() {
    let server = behind_a_proxy().await;
    let (one, other) = (
        "X-Forwarded-For: 127.0.0.1, 198.51.100.7",
        "Forwarded: for=\"[2001:db8::1]:4711\";proto=https",
    );
    for _ in 0..3 {
        assert_eq!(pinged(&server, &[one]).await, 0);
    }
    assert_eq!(pinged(&server, &[one]).await, 450);
    // Requests with forged headers count as before.
    let claimed = "X-Forwarded-For: 203.0.113.9, 198.51.100.7";
    assert_eq!(pinged(&server, &[claimed]).await, 450);
    assert_eq!(pinged(&server, &[other]).await, 0);
    // A program on this machine is none of the proxy's clients, and has no limit.
    for _ in 0..5 {
        assert_eq!(pinged(&server, &[]).await, 0);
    }
}

#[tokio::test]
async fn whoever_names_a_client_without_being_a_trusted_proxy_counts_as_before() {
    let core = CoreConfig {
        trusted_proxies: vec!["192.0.2.0/24".parse().unwrap()],
        request_rate: 1,
        request_burst: 3,
        ..CoreConfig::default()
    };
    let server = start_with(core, config()).await;
    for n in 0..3 {
        let head = format!("X-Forwarded-For: 198.51.100.{n}");
        assert_eq!(pinged(&server, &[&head]).await, 0);
    }
    assert_eq!(
        pinged(&server, &["X-Forwarded-For: 198.51.100.9"]).await,
        450
    );
}

#[tokio::test]
async fn counters_are_for_this_machine_and_for_networks_that_are_named() {
    let of_proxy = "X-Forwarded-For: 198.51.100.7";
    let of_other = "X-Forwarded-For: 203.0.113.9";
    let read = async |server: &Server, head: &str| {
        let stream = TcpStream::connect(server.http()).await.unwrap();
        let head = ["Host: localhost", head];
        let answer = crate::server::request_to("", stream, "GET", "/metrics", &head, b"").await;
        assert_eq!(
            answer.body.contains("portunus_sessions"),
            answer.status == 200
        );
        answer.status
    };
    // Of a proxy that is not known nobody is let in, whoever it names.
    for (networks, proxies, expected) in [
        (&[][..], &["127.0.0.1"][..], [403, 403]),
        (&["198.51.100.0/24"], &["127.0.0.1"], [200, 403]),
        (&["0.0.0.0/0"], &[], [403, 403]),
    ] {
        let network = |text: &&str| text.parse().unwrap();
        let mut config = config();
        config.http.metrics_networks = networks.iter().map(network).collect();
        let core = CoreConfig {
            trusted_proxies: proxies.iter().map(network).collect(),
            ..CoreConfig::default()
        };
        let server = start_with(core, config).await;
        assert_eq!(read(&server, "Accept: */*").await, 200, "this machine");
        let statuses = [read(&server, of_proxy).await, read(&server, of_other).await];
        assert_eq!(statuses, expected, "{networks:?} {proxies:?}");
        assert_eq!(
            read(&server, "Origin: https://example.org").await,
            match networks {
                ["0.0.0.0/0"] => 200,
                _ => 403,
            }
        );
    }
    // Where loopback is not trusted, it has to be named as well.
    for (networks, status) in [(&[][..], 403), (&["127.0.0.0/8"], 200)] {
        let mut config = config();
        config.http.metrics_networks = networks.iter().map(|it| it.parse().unwrap()).collect();
        let core = CoreConfig {
            trust_loopback: false,
            ..CoreConfig::default()
        };
        let server = start_with(core, config).await;
        assert_eq!(read(&server, "Accept: */*").await, status);
    }
}

#[tokio::test]
async fn pages_of_other_origins_are_not_trusted_by_websocket() {
    let server = start(CoreConfig::default()).await;
    let page = format!("http://localhost:{}", server.http().port());
    for (origin, trusted) in [
        (None, true),
        (Some(page.as_str()), true),
        (Some("https://example.org"), false),
    ] {
        // At a port of its own, and at that of HTTP.
        for address in [server.ws(), server.http()] {
            let mut request = format!("ws://{address}/janus")
                .into_client_request()
                .unwrap();
            let headers = request.headers_mut();
            headers.insert("Sec-WebSocket-Protocol", "janus-protocol".parse().unwrap());
            if let Some(origin) = origin {
                headers.insert("Origin", origin.parse().unwrap());
            }
            let stream = TcpStream::connect(address).await.unwrap();
            let opened = tokio_tungstenite::client_async(request, stream).await;
            let mut socket = Socket(opened.unwrap().0);
            socket
                .0
                .send(Message::text(ping().to_string()))
                .await
                .unwrap();
            let reply = socket.receive().await;
            assert_eq!(is_trusted(&reply), trusted, "{origin:?}");
        }
    }
}

#[tokio::test]
async fn a_stranger_who_asks_too_often_is_told_in_the_terms_of_each_api() {
    let core = CoreConfig {
        request_rate: 1,
        request_burst: 3,
        ..CoreConfig::default()
    };
    let server = start_with(core, config()).await;
    let ping = json!({ "janus": "ping", "transaction": "p" });
    // The tests' requests name a host that is not this one.
    for _ in 0..3 {
        assert_eq!(server.post("/janus", &ping).await["janus"], "pong");
    }
    let refused = server.post("/janus", &ping).await;
    assert_eq!(refused["error"]["code"], 450, "{refused}");
    let poll = server.get("/janus/123").await;
    assert_eq!((poll.status, poll.error()), (429, 450));
    let post = server.request(
        "POST",
        "/whip/1",
        &["Content-Type: application/sdp"],
        b"v=0",
    );
    let post = post.await;
    assert_eq!((post.status, post.header("retry-after")), (429, Some("1")));
    let metrics = server.metrics().await;
    let line = "portunus_bad_requests_total{kind=\"rate\"} 3";
    assert!(metrics.lines().any(|it| it == line), "{metrics}");
    // Somebody on this machine is not concerned.
    let local = vec!["Host: localhost".to_owned()];
    assert!(by_http(&server, &local).await);
}
