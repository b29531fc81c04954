//! Users and established calls.
#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "each test uses a part of this file"
)]

use std::sync::Arc;

use portunus_core::media::PeerId;
use portunus_core::testing::{Line, TestClient, TestServer, jsep};
use portunus_core::{CoreConfig, HandleId, SessionId};
use portunus_videocall::VideoCall;
use serde_json::{Value, json};

pub const PACKAGE: &str = "janus.plugin.videocall";
pub const LINES: [Line; 3] = [Line::Audio, Line::Video, Line::Data];

pub fn server() -> TestServer {
    TestServer::new(CoreConfig::default(), vec![Arc::new(VideoCall::default())])
}

pub fn result(result: Value) -> Value {
    json!({ "videocall": "event", "result": result })
}

pub fn error(code: u16, text: &str) -> Value {
    json!({ "videocall": "event", "error_code": code, "error": text })
}

pub async fn ask(client: &mut TestClient, body: Value, jsep: Option<Value>) -> Value {
    client.message(body, jsep).await;
    client.event().await
}

pub async fn user(server: &TestServer, name: &str) -> TestClient {
    let mut client = server.attach(PACKAGE).await;
    let reply = ask(
        &mut client,
        json!({ "request": "register", "username": name }),
        None,
    )
    .await;
    assert_eq!(
        reply,
        result(json!({ "event": "registered", "username": name }))
    );
    client
}

pub async fn state(server: &TestServer, client: &TestClient) -> Value {
    let (session, handle) = (SessionId(client.session), HandleId(client.handle));
    server.gateway.query(session, handle).await.unwrap()
}

pub struct Call {
    pub server: TestServer,
    pub al: TestClient,
    pub bo: TestClient,
    /// The offer that bo got and the answer that al got.
    pub offer: String,
    pub answer: String,
}

impl Call {
    pub async fn new(lines: &[Line]) -> Self {
        let server = server();
        let (mut al, mut bo) = (user(&server, "al").await, user(&server, "bo").await);
        let call = json!({ "request": "call", "username": "bo" });
        let calling = ask(&mut al, call, Some(jsep("offer", "alal", lines))).await;
        assert_eq!(calling, result(json!({ "event": "calling" })));
        let (incoming, offer) = bo.event_with_jsep().await;
        assert_eq!(
            incoming,
            result(json!({ "event": "incomingcall", "username": "al" }))
        );
        let plain: Vec<Line> = lines
            .iter()
            .map(|line| {
                if *line == Line::Simulcast {
                    Line::Video
                } else {
                    *line
                }
            })
            .collect();
        let answer = jsep("answer", "bobo", &plain);
        let accepted = ask(&mut bo, json!({ "request": "accept" }), Some(answer)).await;
        assert_eq!(accepted, result(json!({ "event": "accepted" })));
        let (accepted, answer) = al.event_with_jsep().await;
        assert_eq!(
            accepted,
            result(json!({ "event": "accepted", "username": "bo" }))
        );
        let text = |jsep: Option<Value>, kind: &str| {
            let jsep = jsep.unwrap();
            assert_eq!(jsep["type"], kind);
            jsep["sdp"].as_str().unwrap().to_owned()
        };
        let (offer, answer) = (text(offer, "offer"), text(answer, "answer"));
        Call {
            server,
            al,
            bo,
            offer,
            answer,
        }
    }

    /// The PeerConnections of al and bo.
    pub fn peers(&self) -> (PeerId, PeerId) {
        let peers = self.server.peers();
        (peers[0], peers[1])
    }

    pub async fn expect_idle(&mut self) {
        self.al.expect_silence().await;
        self.bo.expect_silence().await;
        for client in [&self.al, &self.bo] {
            let state = state(&self.server, client).await;
            assert_eq!(
                (&state["state"], &state["incall"]),
                (&json!("idle"), &json!(0))
            );
        }
        assert!(self.server.peers().is_empty());
        assert!(self.server.requested().routes.is_empty());
    }
}
