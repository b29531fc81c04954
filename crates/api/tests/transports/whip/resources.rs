//! Responses of resources, and their ends.

use std::sync::Arc;
use std::time::Duration;

use portunus_core::testing::{Line, jsep};
use portunus_core::{CoreConfig, HandleId, SessionId};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::stage::{Stage, TOKEN};
use super::{FRAGMENT, SDP, offer, start, start_on, start_with, viewer_offer};
use crate::server::{Answer, PATIENCE, Server, config, read_answer, send};

/// A fragment with one candidate.
fn fragment(ufrag: &str) -> String {
    format!(
        "a=group:BUNDLE 0\r\nm=video 9 UDP/TLS/RTP/SAVPF 96\r\na=mid:0\r\na=ice-ufrag:{ufrag}\r\n\
         a=ice-pwd:0123456789012345678901\r\n\
         a=candidate:1 1 udp 2122260223 192.0.2.1 61764 typ host generation 0\r\n"
    )
}

impl Server {
    async fn patch(&self, resource: &Answer, if_match: Option<&str>, body: &str) -> Answer {
        let if_match = if_match.map(|tag| format!("If-Match: {tag}"));
        let headers: Vec<&str> = [FRAGMENT].into_iter().chain(if_match.as_deref()).collect();
        self.request("PATCH", resource.location(), &headers, body.as_bytes())
            .await
    }
}

#[tokio::test]
async fn candidates_reach_the_peer() {
    let server = start().await;
    let resource = server.published().await;
    let tag = resource.etag();
    let answer = server
        .patch(&resource, Some(&tag), &fragment("ufrag1"))
        .await;
    assert_eq!((answer.status, answer.body.as_str()), (204, ""));
    let candidates = server.core.requested().candidates;
    assert_eq!(candidates.len(), 1);
    assert!(candidates[0].1.contains("192.0.2.1 61764"));
    // No new ones, only that there are no more.
    let end = "m=video 9 X 0\r\na=mid:0\r\na=end-of-candidates\r\n";
    assert_eq!(server.patch(&resource, Some(&tag), end).await.status, 204);
    assert_eq!(server.core.requested().candidates.len(), 1);
}

#[tokio::test]
async fn the_entity_tag_has_to_fit() {
    let server = start().await;
    let resource = server.published().await;
    let fragment = fragment("ufrag1");
    let none = server.patch(&resource, None, &fragment).await;
    assert!(none.problem(428).contains("If-Match"));
    let other = server.patch(&resource, Some("\"other\""), &fragment).await;
    other.problem(412);
    let any = server.patch(&resource, Some("*"), &fragment).await;
    assert_eq!(any.status, 204);
}

#[tokio::test]
async fn new_credentials_restart_ice() {
    let server = start().await;
    let resource = server.published().await;
    server.connect_peer().await;
    let restarted = server
        .patch(&resource, Some("*"), &fragment("ufrag2"))
        .await;
    assert_eq!(restarted.status, 200, "{}", restarted.body);
    assert_eq!(
        restarted.header("content-type"),
        Some("application/trickle-ice-sdpfrag")
    );
    assert_ne!(restarted.etag(), resource.etag());
    let ufrag = |sdp: &str| {
        let mut lines = sdp.lines();
        lines
            .find(|line| line.starts_with("a=ice-ufrag:"))
            .unwrap()
            .to_owned()
    };
    assert_ne!(ufrag(&restarted.body), ufrag(&resource.body));
    assert!(
        restarted
            .body
            .contains("m=video 9 UDP/TLS/RTP/SAVPF 96\r\na=mid:0\r\n")
    );
    // Its candidates came along; later ones belong to the new session, and the old tag is none any
    // more.
    assert_eq!(server.core.requested().candidates.len(), 1);
    let tag = restarted.etag();
    let late = server
        .patch(&resource, Some(&resource.etag()), &fragment("ufrag1"))
        .await;
    late.problem(412);
    let next = server
        .patch(&resource, Some(&tag), &fragment("ufrag2"))
        .await;
    assert_eq!(next.status, 204);
    assert_eq!(server.core.requested().candidates.len(), 2);
}

#[tokio::test]
async fn fragments_that_are_none_are_400_and_other_types_415() {
    let server = start().await;
    let resource = server.published().await;
    for body in ["", "hello", "a=ice-ufrag:abcd\r\n", "v=0\r\n"] {
        let answer = server.patch(&resource, Some("*"), body).await;
        assert!(answer.problem(400).contains("cannot be read"), "{body}");
    }
    let binary = server
        .request(
            "PATCH",
            resource.location(),
            &[FRAGMENT, "If-Match: *"],
            b"\xff",
        )
        .await;
    binary.problem(400);
    for kind in ["Content-Type: text/plain", SDP] {
        let answer = server
            .request("PATCH", resource.location(), &[kind, "If-Match: *"], b"v=0")
            .await;
        assert_eq!(
            answer.header("accept-patch"),
            Some("application/trickle-ice-sdpfrag")
        );
        answer.problem(415);
    }
    // None of that has hurt.
    let good = server
        .patch(&resource, Some("*"), &fragment("ufrag1"))
        .await;
    assert_eq!(good.status, 204);
}

#[tokio::test]
async fn a_delete_ends_all_of_it() {
    let server = start().await;
    let resource = server.published().await;
    server.connect_peer().await;
    let gone = server
        .request("DELETE", resource.location(), &[], b"")
        .await;
    assert_eq!(gone.status, 200);
    server.until_idle().await;
    let patch = server.patch(&resource, Some("*"), "a=mid:0").await;
    assert!(patch.problem(404).contains("has ended"));
}

/// Browsers close the connection first, and some clients ask twice.
#[tokio::test]
async fn a_delete_after_the_end_is_no_error() {
    let server = start().await;
    let delete = async |path: &str| server.request("DELETE", path, &[], b"").await;
    let left = server.published().await;
    server.connect_peer().await;
    server.lose_peer().await;
    server.until_idle().await;
    for _ in 0..2 {
        assert_eq!(delete(left.location()).await.status, 200);
    }
    // A publisher's resource is no viewer's, and what never was has not ended.
    delete(&left.location().replace("whip", "whep"))
        .await
        .problem(404);
    delete("/whip/resource/0123456789abcdef0123456789abcdef")
        .await
        .problem(404);
}

#[tokio::test]
async fn the_end_of_the_connection_ends_the_resource() {
    let server = start().await;
    let resource = server.published().await;
    server.connect_peer().await;
    server.lose_peer().await;
    server.until_idle().await;
    let answer = server
        .patch(&resource, Some("*"), &fragment("ufrag1"))
        .await;
    answer.problem(404);
    server.published().await;
}

#[tokio::test]
async fn a_client_that_does_not_connect_is_dropped() {
    let mut config = config();
    config.whip.connect_timeout = Duration::from_millis(50);
    let server = start_with(CoreConfig::default(), config).await;
    let resource = server.published().await;
    server.until_idle().await;
    let answer = server
        .patch(&resource, Some("*"), &fragment("ufrag1"))
        .await;
    answer.problem(404);
}

#[tokio::test]
async fn a_shutdown_ends_resources() {
    let server = start().await;
    let resource = server.published().await;
    server.core.gateway.shutdown().await;
    let answer = server
        .patch(&resource, Some("*"), &fragment("ufrag1"))
        .await;
    answer.problem(404);
}

#[tokio::test]
async fn a_resource_is_for_whom_it_was_made() {
    let server = start().await;
    let right = format!("Authorization: Bearer {TOKEN}");
    let offer = offer("ufrag1", &[Line::Video]);
    let resource = server.offer("/whip/stage/9", &offer, &[&right]).await;
    let delete = async |headers: &[&str]| {
        server
            .request("DELETE", resource.location(), headers, b"")
            .await
    };
    delete(&[]).await.problem(401);
    delete(&["Authorization: Bearer wrong"]).await.problem(401);
    // A publisher's resource is no viewer's.
    let path = resource.location().replace("whip", "whep");
    let answer = server.request("DELETE", &path, &[&right], b"").await;
    answer.problem(404);
    assert_eq!(delete(&[&right]).await.status, 200);
}

#[tokio::test]
async fn a_viewer_may_ask_for_an_offer() {
    let server = start().await;
    let resource = server.request("POST", "/whep/stage/7", &[], b"").await;
    assert_eq!(resource.status, 201, "{}", resource.body);
    assert!(resource.body.contains("a=setup:actpass"));
    assert!(resource.body.contains("a=sendonly"));
    let both = Some("application/trickle-ice-sdpfrag, application/sdp");
    assert_eq!(resource.header("accept-patch"), both);
    let options = server.request("OPTIONS", resource.location(), &[], b"");
    assert_eq!(options.await.header("accept-patch"), both);
    let text = ["Content-Type: text/plain"];
    let refused = server.request("PATCH", resource.location(), &text, b"v=0");
    let refused = refused.await;
    assert_eq!(refused.header("accept-patch"), both);
    assert!(refused.problem(415).contains("application/sdp"));
    let answer = jsep("answer", "viewer", &[Line::Video]);
    let answer = answer["sdp"].as_str().unwrap();
    let answer = answer.replace("a=sendrecv", "a=recvonly");
    let patch = async |body: &str| {
        server
            .request("PATCH", resource.location(), &[SDP], body.as_bytes())
            .await
    };
    assert!(patch("v=0").await.problem(422).contains("does not fit"));
    assert_eq!(patch(&answer).await.status, 204);
    // The response may have been lost.
    assert_eq!(patch(&answer).await.status, 204);
    let other = answer.replace("viewer", "other");
    assert!(patch(&other).await.problem(409).contains("no offer"));
    server.connect_peer().await;
    let restarted = server
        .patch(&resource, Some("*"), &fragment("viewer2"))
        .await;
    assert_eq!(restarted.status, 200, "{}", restarted.body);
}

#[tokio::test]
async fn a_viewer_whose_offer_fits_nothing_gets_one_that_does() {
    let server = start().await;
    let offer = viewer_offer("viewer").replace("VP8", "VP7");
    let resource = server.offer("/whep/stage/7", &offer, &[]).await;
    assert_eq!(resource.status, 406, "{}", resource.body);
    assert!(resource.body.contains("VP8/90000"));
    let answer = jsep("answer", "viewer", &[Line::Video]);
    let answer = answer["sdp"].as_str().unwrap();
    let answer = server
        .request("PATCH", resource.location(), &[SDP], answer.as_bytes())
        .await;
    assert_eq!(answer.status, 204, "{}", answer.body);
}

/// A session that is ended over the Janus API.
async fn ended_by(request: impl Fn(SessionId, HandleId) -> Value) {
    let stage = Arc::<Stage>::default();
    let mut config = config();
    config.whip.max_sessions = 1;
    let server = start_on(stage.clone(), CoreConfig::default(), config).await;
    for connected in [false, true, false] {
        // The place of the one before is free again.
        let freed = async {
            loop {
                let offer = offer("ufrag1", &[Line::Video]);
                let next = server.offer("/whip/stage/7", &offer, &[]).await;
                match next.status {
                    201 => break next,
                    status => assert_eq!(status, 503, "{}", next.body),
                }
            }
        };
        let resource = tokio::time::timeout(PATIENCE, freed).await.unwrap();
        if connected {
            server.connect_peer().await;
        }
        let (session, handle) = *stage.guests.lock().unwrap().last().unwrap();
        let ended = server.post("/janus", &request(session, handle)).await;
        assert_eq!(ended["janus"], "success", "{ended}");
        let patch = server
            .patch(&resource, Some("*"), &fragment("ufrag1"))
            .await;
        assert!(patch.problem(404).contains("has ended"));
        let delete = server
            .request("DELETE", resource.location(), &[], b"")
            .await;
        assert_eq!(delete.status, 200);
        server.until_idle().await;
    }
}

#[tokio::test]
async fn a_session_that_somebody_else_destroys_ends_its_resource() {
    ended_by(
        |session, _| json!({ "janus": "destroy", "transaction": "d", "session_id": session.0 }),
    )
    .await;
}

#[tokio::test]
async fn a_handle_that_somebody_else_detaches_ends_its_resource() {
    ended_by(|session, handle| {
        json!({
            "janus": "detach", "transaction": "d", "session_id": session.0, "handle_id": handle.0,
        })
    })
    .await;
}

/// Makes a resource of an offer of ours; gives it with an answer.
async fn offered(server: &Server, path: &str) -> (Answer, String) {
    let resource = server.request("POST", path, &[], b"").await;
    assert_eq!(resource.status, 201, "{}", resource.body);
    let answer = jsep("answer", "viewer", &[Line::Video]);
    let answer = answer["sdp"].as_str().unwrap();
    (resource, answer.replace("a=sendrecv", "a=recvonly"))
}

#[tokio::test]
async fn an_answer_whose_request_is_cut_off_is_taken() {
    let stage = Arc::<Stage>::default();
    let mut config = config();
    // A new client comes after the former one has gone and everything of it is cleaned up.
    config.http.max_connections = 1;
    let server = start_on(stage.clone(), CoreConfig::default(), config).await;
    let (resource, sdp) = offered(&server, "/whep/stage/slow").await;
    let location = resource.location();
    // Before it has come as a whole, nothing has happened.
    let half = format!(
        "PATCH {location} HTTP/1.1\r\nHost: test\r\n{SDP}\r\nContent-Length: {}\r\n\r\n{}",
        sdp.len(),
        &sdp[..sdp.len() / 2],
    );
    let mut stream = TcpStream::connect(server.http()).await.unwrap();
    stream.write_all(half.as_bytes()).await.unwrap();
    drop(stream);

    let taken = async {
        loop {
            let mut byte = [0];
            let mut stream = TcpStream::connect(server.http()).await.unwrap();
            send(&mut stream, "PATCH", location, &[SDP], sdp.as_bytes()).await;
            tokio::select! {
                () = stage.answers.notified() => break stream,
                // There is no place yet.
                _ = stream.peek(&mut byte) => {}
            }
        }
    };
    let stream = tokio::time::timeout(PATIENCE, taken).await.unwrap();
    drop(stream);
    let gone = insist(&server, "GET", "/healthz", &[], b"").await;
    assert_eq!(gone.status, 200);
    stage.release.notify_one();
    let again = insist(&server, "PATCH", location, &[SDP], sdp.as_bytes()).await;
    assert_eq!(again.status, 204, "{}", again.body);
    server.connect_peer().await;
    let fragment = fragment("viewer2");
    let headers = [FRAGMENT, "If-Match: *"];
    let restarted = insist(&server, "PATCH", location, &headers, fragment.as_bytes()).await;
    assert_eq!(restarted.status, 200, "{}", restarted.body);
}

/// Asks until there is a place for a connection.
async fn insist(
    server: &Server,
    method: &str,
    path: &str,
    headers: &[&str],
    body: &[u8],
) -> Answer {
    let asked = async {
        loop {
            let mut stream = TcpStream::connect(server.http()).await.unwrap();
            send(&mut stream, method, path, headers, body).await;
            if let Ok(1) = stream.peek(&mut [0]).await {
                return read_answer(stream).await;
            }
        }
    };
    let answer = tokio::time::timeout(PATIENCE, asked).await;
    answer.expect("a place for a connection")
}

#[tokio::test]
async fn more_requests_than_can_wait_are_told_when_to_come_again_but_an_end_is_taken() {
    let server = start().await;
    let (resource, sdp) = offered(&server, "/whep/stage/slow").await;
    // The plugin keeps the first waiting, and that one the others.
    let mut requests = tokio::task::JoinSet::new();
    for _ in 0..40 {
        let (address, location, sdp) = (server.http(), resource.location().to_owned(), sdp.clone());
        requests.spawn(async move {
            let mut stream = TcpStream::connect(address).await.unwrap();
            send(&mut stream, "PATCH", &location, &[SDP], sdp.as_bytes()).await;
            read_answer(stream).await
        });
    }
    let mut refused = async || {
        let answer = tokio::time::timeout(PATIENCE, requests.join_next()).await;
        answer.expect("an answer in time").unwrap().unwrap()
    };
    for _ in 0..8 {
        let answer = refused().await;
        let detail = answer.problem(429);
        assert!(detail.contains("32 wait") && detail.contains("try again"));
        assert_eq!(answer.header("retry-after"), Some("1"));
    }
    let delete = server
        .request("DELETE", resource.location(), &[], b"")
        .await;
    assert_eq!(delete.status, 200);
    for _ in 0..32 {
        refused().await.problem(404);
    }
    server.until_idle().await;
}

#[tokio::test]
async fn an_answer_that_the_plugin_refuses_ends_the_resource() {
    let server = start().await;
    let (resource, answer) = offered(&server, "/whep/stage/fickle").await;
    let patch = async || {
        let location = resource.location();
        server
            .request("PATCH", location, &[SDP], answer.as_bytes())
            .await
    };
    assert!(patch().await.problem(422).contains("POST to the endpoint"));
    patch().await.problem(404);
    server.until_idle().await;
}
