//! Tokens for rooms and mountpoints: what they grant, and what they do not.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

use std::sync::Arc;

use portunus_core::media::MediaPlane;
use portunus_core::record::Recorder;
use portunus_core::testing::{Line, TestClient, TestServer, everywhere, jsep, jwt, jwt_verifier};
use portunus_core::{CoreConfig, Plugin, ServerFacts};
use portunus_streaming::{ConfiguredMountpoint, Streaming, StreamingConfig};
use portunus_videoroom::{ConfiguredRoom, VideoRoom, VideoRoomConfig};
use serde_json::{Value, json};

const SECRET: &str = "a secret of more than thirty-two bytes";
const ROOM: &str = "janus.plugin.videoroom";
const STREAMING: &str = "janus.plugin.streaming";

/// Starts a server with the rooms 1 and 2, of which 2 requires signed tokens, and the mountpoints 1
/// and 2.
async fn server(token_auth: bool) -> TestServer {
    let members = |value: Value| value.as_object().unwrap().clone();
    let room = |value| ConfiguredRoom::read(&members(value), false).unwrap();
    let mountpoint = |id: u64| {
        let video = json!({ "type": "video", "mid": "v", "codec": "vp8" });
        let whip = json!({ "id": id, "name": format!("m{id}"), "type": "whip", "media": [video] });
        ConfiguredMountpoint::read(&members(whip), false).unwrap()
    };
    let (media, _, _) = MediaPlane::detached();
    let rooms = VideoRoomConfig {
        rooms: vec![
            room(json!({ "room": 1 })),
            room(json!({ "room": 2, "signed_tokens": true })),
        ],
        outgoing: everywhere(),
        ..VideoRoomConfig::default()
    };
    let mountpoints = StreamingConfig {
        mountpoints: vec![mountpoint(1), mountpoint(2)],
        ..StreamingConfig::default()
    };
    let rooms = VideoRoom::new(rooms, media.clone(), Recorder::default()).unwrap();
    let streaming = Streaming::start(mountpoints, media, Recorder::default());
    let plugins: Vec<Arc<dyn Plugin>> = vec![Arc::new(rooms), Arc::new(streaming.await.unwrap())];
    let facts = ServerFacts {
        jwt: jwt_verifier(SECRET),
        ..ServerFacts::default()
    };
    let config = CoreConfig {
        token_auth,
        ..CoreConfig::default()
    };
    TestServer::knowing(facts, config, plugins)
}

/// Returns a token with these claims.
fn token(mut claims: Value) -> String {
    claims["exp"] = 99_999_999_999_u64.into();
    jwt(&claims.to_string(), SECRET)
}

/// A stranger who shows a token with each request.
struct Holder {
    client: TestClient,
    token: String,
}

impl Holder {
    async fn attach(server: &TestServer, package: &str, token: String) -> Self {
        let mut client = server.connect_stranger();
        let create = json!({ "janus": "create", "transaction": "c", "token": token });
        client.session = client.ask(create).await["data"]["id"].as_u64().unwrap();
        let attach = json!({ "janus": "attach", "transaction": "a", "token": token,
            "session_id": client.session, "plugin": package });
        client.handle = client.ask(attach).await["data"]["id"].as_u64().unwrap();
        Holder { client, token }
    }

    /// Returns the plugin's answer, also if it comes as an event.
    async fn ask(&mut self, body: Value) -> Value {
        self.offer(body, None).await
    }

    async fn offer(&mut self, body: Value, jsep: Option<Value>) -> Value {
        let mut members = json!({ "token": self.token, "body": body });
        if let Some(jsep) = jsep {
            members["jsep"] = jsep;
        }
        let reply = self.client.on_handle("message", members).await;
        match reply["janus"].as_str() {
            Some("ack") => self.client.event().await,
            _ => reply["plugindata"]["data"].clone(),
        }
    }
}

fn join(room: u64) -> Value {
    json!({ "request": "join", "ptype": "publisher", "room": room })
}

#[tokio::test]
async fn a_token_for_a_room_opens_no_other() {
    let server = server(true).await;
    for (id, other) in [(1, 2), (2, 1)] {
        let token = token(json!({ "rooms": [id] }));
        let mut holder = Holder::attach(&server, ROOM, token).await;
        let refused = holder.ask(join(other)).await;
        let text = "Unauthorized (this token is for other rooms and mountpoints)";
        assert_eq!(refused["error"], text, "{refused}");
        assert_eq!(refused["error_code"], 433);
        for body in [
            json!({ "request": "exists", "room": other }),
            json!({ "request": "listparticipants", "room": other }),
            json!({ "request": "edit", "room": other, "new_pin": "p" }),
            json!({ "request": "destroy", "room": other.to_string() }),
            json!({ "request": "watch", "room": other, "feed": 1 }),
            json!({ "request": "create", "room": 77 }),
            json!({ "request": "create" }),
        ] {
            let refused = holder.ask(body.clone()).await;
            assert_eq!(refused["error_code"], 433, "{body}: {refused}");
        }
        let joined = holder.ask(join(id)).await;
        assert_eq!(joined["videoroom"], "joined", "{joined}");
        assert_eq!(
            holder.ask(json!({ "request": "leave" })).await["leaving"],
            "ok"
        );
    }
    let token = token(json!({ "rooms": ["videoroom:77", "streaming:1"] }));
    let mut holder = Holder::attach(&server, ROOM, token).await;
    assert_eq!(holder.ask(join(1)).await["error_code"], 433);
    let created = holder.ask(json!({ "request": "create", "room": 77 })).await;
    assert_eq!(created["videoroom"], "created", "{created}");
}

#[tokio::test]
async fn rights_are_taken_by_requests_that_need_them() {
    let server = server(true).await;
    let forward = json!({
        "request": "rtp_forward", "room": 1, "publisher_id": 9, "host": "127.0.0.1",
        "streams": [{ "mid": "0", "port": 5_000 }],
    });
    for (claims, expected) in [
        (json!({}), 433),
        (json!({ "rights": ["record"] }), 433),
        (json!({ "rights": ["forward"], "rooms": [2] }), 433),
        // There is no such publisher, which only an allowed request reports.
        (json!({ "rights": ["forward"], "rooms": [1] }), 428),
    ] {
        let mut holder = Holder::attach(&server, ROOM, token(claims.clone())).await;
        let answer = holder.ask(forward.clone()).await;
        assert_eq!(answer["error_code"], expected, "{claims}: {answer}");
    }
}

#[tokio::test]
async fn a_room_of_signed_tokens_asks_for_them_where_nobody_else_does() {
    let server = server(false).await;
    let mut stranger = server.attach_stranger(ROOM).await;
    let mut code = async |body: Value| {
        stranger.message(body, None).await;
        stranger.event().await["error_code"].clone()
    };
    let with = |token: String| {
        let mut join = join(2);
        join["token"] = token.into();
        join
    };
    assert_eq!(code(join(2)).await, 433);
    assert_eq!(code(with(token(json!({ "rooms": [1] })))).await, 433);
    assert_eq!(
        code(with(token(json!({ "plugins": ["streaming"] })))).await,
        433
    );
    assert_eq!(
        code(with(token(json!({ "rooms": [2] })))).await,
        Value::Null
    );
    // The token of the request itself suffices, too.
    let mut holder = Holder::attach(&server, ROOM, token(json!({}))).await;
    assert_eq!(holder.ask(join(2)).await["videoroom"], "joined");
}

#[tokio::test]
async fn a_token_for_a_mountpoint_opens_no_other() {
    let server = server(true).await;
    let token = token(json!({ "rooms": ["streaming:1"] }));
    let mut holder = Holder::attach(&server, STREAMING, token).await;
    for body in [
        json!({ "request": "watch", "id": 2 }),
        json!({ "request": "switch", "id": 2 }),
        json!({ "request": "info", "id": 2 }),
        json!({ "request": "destroy", "id": 2 }),
        json!({ "request": "create", "type": "whip", "media": [] }),
    ] {
        let refused = holder.ask(body.clone()).await;
        assert_eq!(refused["error_code"], 457, "{body}: {refused}");
    }
    let known = holder.ask(json!({ "request": "info", "id": 1 })).await;
    assert_eq!(known["streaming"], "info", "{known}");
    let offer = jsep("offer", "ufrag1", &[Line::Video]);
    let publish = |id: u64| json!({ "request": "publish", "id": id });
    let refused = holder.offer(publish(2), Some(offer.clone())).await;
    assert_eq!(refused["error_code"], 457, "{refused}");
    let published = holder.offer(publish(1), Some(offer)).await;
    assert_eq!(published["error_code"], Value::Null, "{published}");
}
