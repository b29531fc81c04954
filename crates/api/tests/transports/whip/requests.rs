//! Responses of endpoints.

use portunus_api::{IceServer, WhipAuthorization};
use portunus_core::testing::{Line, signed_token};
use portunus_core::{CoreConfig, StoredToken};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::stage::TOKEN;
use super::{SDP, offer, start, start_with, viewer_offer};
use crate::server::{self, config};

#[tokio::test]
async fn an_offer_is_answered_with_a_resource() {
    let mut config = config();
    config.whip.ice_servers = vec![
        IceServer {
            url: "stun:stun.example.net".into(),
            username: None,
            credential: None,
        },
        IceServer {
            url: "turn:turn.example.net?transport=udp".into(),
            username: Some("user".into()),
            credential: Some("secret".into()),
        },
    ];
    let server = start_with(CoreConfig::default(), config).await;
    let answer = server.published().await;
    assert_eq!(answer.header("content-type"), Some("application/sdp"));
    assert_eq!(
        answer.header("accept-patch"),
        Some("application/trickle-ice-sdpfrag")
    );
    let id = answer.location().strip_prefix("/whip/resource/").unwrap();
    assert_eq!(id.len(), 32, "128 bits");
    assert!(answer.etag().starts_with('"'));
    let links: Vec<_> = answer.headers("link").collect();
    assert_eq!(links[0], "<stun:stun.example.net>; rel=\"ice-server\"");
    assert!(links[1].contains("username=\"user\"; credential=\"secret\""));
    assert!(answer.body.starts_with("v=0"));
    assert!(answer.body.contains("a=sendrecv") || answer.body.contains("a=recvonly"));
    assert_eq!(server.transports.counters().whip_sessions.value(), 1);
}

#[tokio::test]
async fn our_candidates_are_in_the_answer_even_with_full_trickle() {
    let core = CoreConfig {
        full_trickle: true,
        ..CoreConfig::default()
    };
    let server = start_with(core, config()).await;
    let answer = server.published().await;
    assert!(answer.body.contains("a=end-of-candidates"));
}

#[tokio::test]
async fn a_viewer_is_answered_too() {
    let server = start().await;
    let answer = server
        .offer("/whep/stage/7", &viewer_offer("viewer"), &[])
        .await;
    assert_eq!(answer.status, 201, "{}", answer.body);
    assert!(answer.location().starts_with("/whep/resource/"));
    assert!(answer.body.contains("a=sendonly"));
    assert_eq!(server.transports.counters().whep_sessions.value(), 1);
}

#[tokio::test]
async fn what_does_not_exist_is_404() {
    let server = start().await;
    let offer = offer("ufrag1", &[Line::Video]);
    let stream = server.offer("/whip/stage/8", &offer, &[]).await;
    assert!(stream.problem(404).contains("The stage says no"));
    let plugin = server.offer("/whip/nothing/7", &offer, &[]).await;
    assert!(plugin.problem(404).contains("\"nothing\""));
    // The default plugin is not there.
    server.offer("/whip/7", &offer, &[]).await.problem(404);
    for path in ["/whip", "/whip/a/b/c", "/whep/"] {
        server.offer(path, &offer, &[]).await.problem(404);
    }
    server.until_idle().await;
    assert_eq!(server.transports.counters().whip_refused.value(), 6);
}

#[tokio::test]
async fn what_is_no_id_is_400() {
    let server = start().await;
    let offer = offer("ufrag1", &[Line::Video]);
    for path in ["/whip/stage/misspelt", "/whep/stage/misspelt"] {
        let answer = server.offer(path, &offer, &[]).await;
        assert!(answer.problem(400).contains("ids in the path"));
    }
    server.until_idle().await;
}

#[tokio::test]
async fn other_methods_are_405() {
    let server = start().await;
    for method in ["GET", "HEAD", "PUT", "DELETE", "PATCH"] {
        let answer = server.request(method, "/whip/stage/7", &[], b"").await;
        assert_eq!(answer.status, 405, "{method}");
        assert_eq!(answer.header("allow"), Some("POST, OPTIONS"));
    }
    let answer = server.request("GET", "/whep/resource/x", &[], b"").await;
    assert_eq!(answer.header("allow"), Some("PATCH, DELETE, OPTIONS"));
    assert!(answer.problem(405).contains("GET"));
}

#[tokio::test]
async fn bodies_of_other_types_are_415() {
    let server = start().await;
    for headers in [&["Content-Type: application/json"][..], &[]] {
        let answer = server
            .request("POST", "/whip/stage/7", headers, b"v=0")
            .await;
        assert!(answer.problem(415).contains("application/sdp"));
    }
    let headers = ["Content-Type: Application/SDP; charset=utf-8"];
    let offer = offer("ufrag1", &[Line::Video]);
    let answer = server
        .request("POST", "/whip/stage/7", &headers, offer.as_bytes())
        .await;
    assert_eq!(answer.status, 201);
}

#[tokio::test]
async fn clients_that_take_no_sdp_are_406() {
    let server = start().await;
    let accept = ["Accept: application/json"];
    let answer = server
        .offer("/whip/stage/7", &offer("u", &[Line::Video]), &accept)
        .await;
    answer.problem(406);
}

#[tokio::test]
async fn what_is_no_offer_is_400() {
    let server = start().await;
    for body in [
        "",
        "hello",
        "{}",
        "v=0",
        "v=0\r\nx",
        "v=0\r\no=- 1 1 IN IP4 x\r\ns=-\r\n",
    ] {
        let answer = server.offer("/whip/stage/7", body, &[]).await;
        assert!(!answer.problem(400).is_empty(), "{body:?}");
    }
    let bytes = b"\xff\xfe";
    let answer = server.request("POST", "/whip/stage/7", &[SDP], bytes).await;
    answer.problem(400);
    server.until_idle().await;
}

#[tokio::test]
async fn offers_that_cannot_be_used_are_422() {
    let server = start().await;
    let good = offer("ufrag1", &[Line::Video]);
    let without = |what: &str| -> String {
        let lines = good.split_inclusive("\r\n");
        lines.filter(|line| !line.starts_with(what)).collect()
    };
    for (offer, said) in [
        (without("a=ice-pwd"), "a=ice-ufrag"),
        (without("a=fingerprint"), "a=fingerprint"),
        (good.replace("a=mid:0", "a=mid:0 1"), "a=mid"),
        (good.replace("VP8", "VP7"), "nothing in the offer"),
        (
            good.replace("a=sendrecv", "a=recvonly"),
            "nothing in the offer",
        ),
    ] {
        let answer = server.offer("/whip/stage/7", &offer, &[]).await;
        let detail = answer.problem(422);
        assert!(detail.contains(said), "{detail}");
    }
    server.until_idle().await;
}

#[tokio::test]
async fn offers_without_bundle_are_422() {
    let server = start().await;
    let bundled = offer("ufrag1", &[Line::Audio, Line::Video]);
    let one_transport = bundled.replace("a=group:BUNDLE 0 1\r\n", "");
    let video = one_transport.find("m=video").unwrap();
    let (audio, video) = one_transport.split_at(video);
    let two_transports = format!("{audio}{}", video.replace("ufrag1", "ufrag2"));
    for endpoint in ["/whip/stage/7", "/whep/stage/7"] {
        for offer in [&one_transport, &two_transports] {
            let answer = server.offer(endpoint, offer, &[]).await;
            let detail = answer.problem(422);
            assert!(
                detail.contains("m-line 1 of the offer is not bundled"),
                "{detail}"
            );
        }
    }
    let alone = offer("ufrag1", &[Line::Video]).replace("a=group:BUNDLE 0\r\n", "");
    let answer = server.offer("/whip/stage/7", &alone, &[]).await;
    assert_eq!(answer.status, 201, "{}", answer.body);
}

#[tokio::test]
async fn offers_need_no_mid_where_nothing_is_bundled() {
    let good = offer("ufrag1", &[Line::Video]);
    let bare = good
        .replace("a=mid:0\r\n", "")
        .replace("a=group:BUNDLE 0\r\n", "");
    let beside_rejected = format!("{bare}m=audio 0 UDP/TLS/RTP/SAVPF 0\r\n");
    let half_named = good.clone() + "m=audio 0 UDP/TLS/RTP/SAVPF 0\r\n";
    for offer in [bare, beside_rejected, half_named] {
        let server = start().await;
        let answer = server.offer("/whip/stage/7", &offer, &[]).await;
        assert_eq!(answer.status, 201, "{}", answer.body);
        assert!(answer.body.contains("a=mid:0\r\n"), "{}", answer.body);
    }
}

#[tokio::test]
async fn a_second_publisher_is_409_until_the_first_has_gone() {
    let server = start().await;
    let first = server.published().await;
    let offer = offer("ufrag2", &[Line::Video]);
    let second = server.offer("/whip/stage/7", &offer, &[]).await;
    assert_eq!(second.header("retry-after"), Some("2"));
    second.problem(409);
    let gone = server.request("DELETE", first.location(), &[], b"").await;
    assert_eq!(gone.status, 200);
    server.published().await;
}

#[tokio::test]
async fn a_plugin_that_cannot_is_503_or_500() {
    let server = start().await;
    let offer = offer("ufrag1", &[Line::Video]);
    let busy = server.offer("/whip/stage/busy", &offer, &[]).await;
    assert_eq!(busy.header("retry-after"), Some("2"));
    busy.problem(503);
    let broken = server.offer("/whip/stage/broken", &offer, &[]).await;
    broken.problem(500);
    server.core.gateway.accept_new_sessions(false);
    let drained = server.offer("/whip/stage/7", &offer, &[]).await;
    assert!(drained.problem(503).contains("not accepting new sessions"));
    server.core.gateway.accept_new_sessions(true);
    let there = server.published().await;
    server.core.gateway.drain(None);
    for path in ["/whip/stage/7", "/whep/stage/7"] {
        let drained = server.offer(path, &offer, &[]).await;
        assert_eq!(drained.header("retry-after"), Some("5"));
        assert!(drained.problem(503).contains("drained"), "{path}");
    }
    // Those who are there go on.
    let gone = server.request("DELETE", there.location(), &[], b"").await;
    assert_eq!(gone.status, 200);
    server.until_idle().await;
}

#[tokio::test]
async fn too_many_sessions_are_503() {
    let mut config = config();
    config.whip.max_sessions = 1;
    let server = start_with(CoreConfig::default(), config).await;
    let first = server.published().await;
    let viewer = viewer_offer("viewer");
    let second = server.offer("/whep/stage/7", &viewer, &[]).await;
    assert!(second.problem(503).contains("too many"));
    server.request("DELETE", first.location(), &[], b"").await;
    server.until_idle().await;
    let third = server.offer("/whep/stage/7", &viewer, &[]).await;
    assert_eq!(third.status, 201);
}

#[tokio::test]
async fn bodies_are_bounded_in_size_and_time() {
    let mut config = config();
    config.whip.max_body = 2_000;
    config.http.request_timeout = Duration::from_millis(50);
    let server = start_with(CoreConfig::default(), config).await;
    let large = format!("v=0\r\n{}", "x".repeat(2_000));
    server
        .offer("/whip/stage/7", &large, &[])
        .await
        .problem(413);
    let mut stream = TcpStream::connect(server.http()).await.unwrap();
    let head = format!(
        "POST /whip/stage/7 HTTP/1.1\r\nHost: test\r\n{SDP}\r\nContent-Length: 9\r\nConnection: close\r\n\r\nv"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    server::read_answer(stream).await.problem(408);
}

#[tokio::test]
async fn bodies_that_there_is_no_memory_for_are_503() {
    let core = CoreConfig {
        client_memory_mb: 1,
        ..CoreConfig::default()
    };
    let server = start_with(core, config()).await;
    let large = format!("v=0\r\n{}", "x".repeat(1_000_000));
    let answer = server.offer("/whip/stage/7", &large, &[]).await;
    assert_eq!(answer.header("retry-after"), Some("2"));
    assert!(answer.problem(503).contains("memory"));
    server.published().await;
}

#[tokio::test]
async fn texts_that_are_too_long_are_400() {
    let server = start().await;
    let offer = offer("ufrag1", &[Line::Video]);
    let long = "x".repeat(5_000);
    let header = format!("Authorization: Bearer {long}");
    let answer = server.offer("/whip/stage/9", &offer, &[&header]).await;
    let detail = answer.problem(400);
    assert!(
        detail.contains("token") && detail.contains("4096"),
        "{detail}"
    );
    let answer = server
        .offer(&format!("/whip/stage/{long}"), &offer, &[])
        .await;
    answer.problem(404);
    server.until_idle().await;
}

#[tokio::test]
async fn a_streams_token_is_asked_for() {
    let server = start().await;
    let offer = offer("ufrag1", &[Line::Video]);
    let none = server.offer("/whip/stage/9", &offer, &[]).await;
    assert_eq!(
        none.header("www-authenticate"),
        Some("Bearer realm=\"portunus\"")
    );
    none.problem(401);
    for wrong in ["Authorization: Bearer wrong", "Authorization: Basic eDp5"] {
        let answer = server.offer("/whip/stage/9", &offer, &[wrong]).await;
        let challenge = answer.header("www-authenticate").unwrap();
        assert!(challenge.contains("error=\"invalid_token\""));
        answer.problem(401);
    }
    let right = format!("Authorization: Bearer {TOKEN}");
    let answer = server.offer("/whip/stage/9", &offer, &[&right]).await;
    assert_eq!(answer.status, 201);
}

#[tokio::test]
async fn a_closed_api_is_closed_here_too() {
    let token = |token: &str, plugin: &str| StoredToken {
        token: token.into(),
        plugins: vec![plugin.into()],
        rights: Vec::new(),
    };
    let core = CoreConfig {
        api_secret: Some("secret".into()),
        token_auth: true,
        tokens: vec![
            token("stage", "test.plugin.stage"),
            token("other", "janus.plugin.echotest"),
        ],
        ..CoreConfig::default()
    };
    let server = start_with(core.clone(), config()).await;
    let offer = offer("ufrag1", &[Line::Video]);
    let ask = async |token: &str| {
        let header = format!("Authorization: Bearer {token}");
        server.offer("/whip/stage/7", &offer, &[&header]).await
    };
    server
        .offer("/whip/stage/7", &offer, &[])
        .await
        .problem(401);
    ask("wrong").await.problem(401);
    assert!(ask("other").await.problem(403).contains("plugin"));
    for right in ["stage", "secret"] {
        let answer = ask(right).await;
        assert_eq!(answer.status, 201);
        let header = format!("Authorization: Bearer {right}");
        let headers = [header.as_str()];
        server
            .request("DELETE", answer.location(), &headers, b"")
            .await;
    }

    let mut open = config();
    open.whip.authorization = WhipAuthorization::Plugin;
    let server = start_with(core, open).await;
    server.published().await;
}

#[tokio::test]
async fn signed_tokens_end() {
    let core = CoreConfig {
        token_auth: true,
        token_auth_secret: Some("signs".into()),
        ..CoreConfig::default()
    };
    let server = start_with(core, config()).await;
    let offer = offer("ufrag1", &[Line::Video]);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let ask = async |end: u64, secret: &str| {
        let token = signed_token(&format!("{end},janus,test.plugin.stage"), secret);
        let header = format!("Authorization: Bearer {token}");
        server.offer("/whip/stage/7", &offer, &[&header]).await
    };
    ask(now.as_secs() - 1, "signs").await.problem(401);
    ask(now.as_secs() + 600, "other").await.problem(401);
    assert_eq!(ask(now.as_secs() + 600, "signs").await.status, 201);
}

#[tokio::test]
async fn browsers_of_any_origin_may_use_it() {
    let server = start().await;
    let preflight = [
        "Origin: https://app.example",
        "Access-Control-Request-Method: POST",
        "Access-Control-Request-Headers: content-type",
    ];
    let answer = server
        .request("OPTIONS", "/whip/stage/7", &preflight, b"")
        .await;
    assert_eq!(answer.status, 204);
    assert_eq!(answer.header("access-control-allow-origin"), Some("*"));
    for (name, parts) in [
        (
            "access-control-allow-methods",
            &["POST", "PATCH", "DELETE"][..],
        ),
        (
            "access-control-allow-headers",
            &["Authorization", "Content-Type", "If-Match"],
        ),
        (
            "access-control-expose-headers",
            &["Location", "ETag", "Link"],
        ),
        ("accept-post", &["application/sdp"]),
        ("allow", &["POST"]),
    ] {
        let value = answer.header(name).unwrap();
        assert!(parts.iter().all(|part| value.contains(part)), "{value}");
    }
    let answer = server
        .request("OPTIONS", "/whip/resource/x", &[], b"")
        .await;
    assert_eq!(
        answer.header("accept-patch"),
        Some("application/trickle-ice-sdpfrag")
    );
    // Eyevinn's client looks whether there is PATCH by OPTIONS that are no preflight.
    for origin in [&["Origin: https://app.example"][..], &[]] {
        let answer = server
            .request("OPTIONS", "/whip/stage/7", origin, b"")
            .await;
        let methods = answer.header("access-control-allow-methods").unwrap();
        assert!(
            methods.split(", ").any(|method| method == "PATCH"),
            "{methods}"
        );
        let exposed = answer.header("access-control-expose-headers").unwrap();
        assert!(
            exposed.contains("Access-Control-Allow-Methods"),
            "{exposed}"
        );
    }
    // A refusal can be read by the page too.
    let answer = server
        .request("GET", "/whip/stage/7", &preflight, b"")
        .await;
    assert_eq!(answer.header("access-control-allow-origin"), Some("*"));
}

#[tokio::test]
async fn origins_can_be_named() {
    let mut config = config();
    config.whip.allow_origins = vec!["https://a.example".into(), "https://b.example".into()];
    let server = start_with(CoreConfig::default(), config).await;
    let offer = viewer_offer("viewer");
    let from = async |origin: &str| {
        let origin = format!("Origin: {origin}");
        server.offer("/whep/stage/7", &offer, &[&origin]).await
    };
    let allowed = from("https://b.example").await;
    assert_eq!(allowed.status, 201);
    assert_eq!(
        allowed.header("access-control-allow-origin"),
        Some("https://b.example")
    );
    assert_eq!(allowed.header("vary"), Some("Origin"));
    let foreign = from("https://c.example").await;
    assert_eq!(foreign.header("access-control-allow-origin"), None);
    assert!(foreign.problem(403).contains("whip.allow_origins"));
    // Our own pages, and clients that are no browsers.
    assert_eq!(from("http://test").await.status, 201);
    let answer = server.offer("/whep/stage/7", &offer, &[]).await;
    assert_eq!(answer.status, 201);
}

#[tokio::test]
async fn it_can_be_turned_off() {
    let mut config = config();
    config.whip.enabled = false;
    let server = start_with(CoreConfig::default(), config).await;
    let answer = server
        .offer("/whip/stage/7", &offer("u", &[Line::Video]), &[])
        .await;
    assert_eq!(answer.status, 405, "the pages know no POST");
}
