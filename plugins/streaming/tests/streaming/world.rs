//! A server with the plugin, and its clients.

use std::path::Path;
use std::sync::Arc;

use portunus_core::media::{Event, PeerId, SourceRef};
use portunus_core::record::{Recorder, RecorderConfig};
use portunus_core::testing::{TestClient, TestServer, everywhere};
use portunus_core::{CoreConfig, HandleId, SessionId};
use portunus_streaming::{Streaming, StreamingConfig};
use serde_json::{Value, json};

pub const PACKAGE: &str = "janus.plugin.streaming";

/// A server with this plugin only.
pub struct World {
    pub server: TestServer,
    pub plugin: Arc<Streaming>,
    pub recorder: Recorder,
}

impl World {
    pub async fn new() -> Self {
        Self::with(Self::open()).await
    }

    /// Returns a configuration that permits any file and any server.
    pub fn open() -> StreamingConfig {
        StreamingConfig {
            folders: vec!["/".into()],
            outgoing: everywhere(),
            ..StreamingConfig::default()
        }
    }

    pub async fn with(config: StreamingConfig) -> Self {
        Self::start(config, Recorder::default(), CoreConfig::default()).await
    }

    /// Starts a server whose sessions do not expire.
    pub async fn lasting(config: StreamingConfig) -> Self {
        let core = CoreConfig {
            session_timeout: 0,
            ..CoreConfig::default()
        };
        Self::start(config, Recorder::default(), core).await
    }

    /// A server that records below `folder`.
    pub async fn recording(folder: &Path) -> Self {
        let config = RecorderConfig {
            dir: Some(folder.to_owned()),
            keep_free_mb: 0,
            ..RecorderConfig::default()
        };
        let recorder = Recorder::new(config);
        Self::start(StreamingConfig::default(), recorder, CoreConfig::default()).await
    }

    async fn start(config: StreamingConfig, recorder: Recorder, core: CoreConfig) -> Self {
        let mut made = None;
        let server = TestServer::with_media(core, async |media| {
            let plugin = Streaming::start(config, media, recorder.clone()).await;
            let plugin = Arc::new(plugin.expect("a plugin"));
            made = Some(plugin.clone());
            vec![plugin as Arc<dyn portunus_core::Plugin>]
        })
        .await;
        let plugin = made.expect("a plugin");
        World {
            server,
            plugin,
            recorder,
        }
    }

    pub async fn client(&self) -> TestClient {
        self.server.attach(PACKAGE).await
    }

    /// The PeerConnection that was made last.
    pub fn last_peer(&self) -> PeerId {
        *self.server.peers().last().expect("a PeerConnection")
    }

    /// Brings up the transport of `peer`. Its client gets the event.
    pub async fn connect(&self, client: &mut TestClient, peer: PeerId) {
        self.come_up(peer).await;
        assert_eq!(client.event().await, status("started"));
        assert_eq!(client.next().await["janus"], "webrtcup");
    }

    pub async fn come_up(&self, peer: PeerId) {
        let srtp_profile = "SRTP_AEAD_AES_128_GCM";
        self.server
            .happen(peer, Event::Connected { srtp_profile })
            .await;
    }

    /// A client that watches mountpoint `id` with its PeerConnection up.
    pub async fn viewer(&self, watch: Value) -> (TestClient, PeerId) {
        let mut client = self.client().await;
        let peer = self.watch(&mut client, watch).await;
        self.connect(&mut client, peer).await;
        (client, peer)
    }

    /// Watches with our offer up to the answer.
    pub async fn watch(&self, client: &mut TestClient, watch: Value) -> PeerId {
        let is_up = self.state(client).await["started"] == 1;
        let mut body = json!({ "request": "watch" });
        let members = body.as_object_mut().unwrap();
        members.extend(watch.as_object().unwrap().clone());
        client.message(body, None).await;
        let (data, jsep) = client.event_with_jsep().await;
        assert_eq!(data, status("preparing"));
        let jsep = jsep.expect("an offer");
        assert_eq!(jsep["type"], "offer");
        let answer = answer_to(jsep["sdp"].as_str().unwrap());
        client
            .message(json!({ "request": "start" }), Some(answer))
            .await;
        let data = client.event().await;
        let expected = if is_up { "started" } else { "starting" };
        assert_eq!(data, status(expected));
        self.last_peer()
    }

    /// Answers the offer that follows a change of the mountpoint. Returns its text.
    pub async fn updated(&self, client: &mut TestClient) -> String {
        let (data, jsep) = client.event_with_jsep().await;
        assert_eq!(data, status("updating"));
        let offer = jsep.expect("an offer")["sdp"].as_str().unwrap().to_owned();
        let start = json!({ "request": "start" });
        client.message(start, Some(answer_to(&offer))).await;
        assert_eq!(client.event().await, status("started"));
        offer
    }

    /// Returns the routes to `peer`: source, m-line, and whether it is open.
    pub fn routes(&self, peer: PeerId) -> Vec<(SourceRef, String, bool)> {
        let routes = self.server.requested().routes;
        let to_peer = routes.into_iter().filter(|route| route.to.peer == peer);
        to_peer
            .map(|route| {
                let mid = route.to.mid.as_str().to_owned();
                (route.from, mid, route.options.enabled)
            })
            .collect()
    }

    pub async fn state(&self, client: &TestClient) -> Value {
        let (session, handle) = (SessionId(client.session), HandleId(client.handle));
        self.server.gateway.query(session, handle).await.unwrap()
    }
}

/// The event that carries a status.
pub fn status(status: &str) -> Value {
    json!({ "streaming": "event", "result": { "status": status } })
}

pub fn result(result: Value) -> Value {
    json!({ "streaming": "event", "result": result })
}

/// Sends an asynchronous request. Returns the event that answers it.
pub async fn ask(client: &mut TestClient, body: Value) -> Value {
    client.message(body, None).await;
    client.event().await
}

/// Mountpoint 7: Opus, VP8 and data.
pub fn camera(id: u64) -> Value {
    json!({
        "request": "create", "type": "rtp", "id": id, "name": format!("cam{id}"),
        "media": [
            { "type": "audio", "mid": "a", "port": 0, "pt": 111, "codec": "opus" },
            { "type": "video", "mid": "v", "port": 0, "rtcpport": 0, "pt": 100, "codec": "vp8" },
            { "type": "data", "mid": "d", "port": 0 },
        ],
    })
}

pub async fn create(client: &mut TestClient, body: Value) -> Value {
    let created = client.request(body).await;
    assert_eq!(created["streaming"], "created", "{created}");
    created
}

/// The code of the error that `body` is answered with.
pub async fn refused(client: &mut TestClient, body: Value) -> Value {
    let reply = client.on_handle("message", json!({ "body": body })).await;
    let data = match reply["janus"].as_str() {
        Some("ack") => client.event().await,
        _ => reply["plugindata"]["data"].clone(),
    };
    assert_eq!(data["streaming"], "event", "{data}");
    data["error_code"].clone()
}

/// An answer that takes all that an offer offers.
pub fn answer_to(offer: &str) -> Value {
    let fingerprint = vec!["AB"; 32].join(":");
    let mut answer = String::new();
    for line in offer.lines() {
        let line = match line {
            "a=sendonly" => "a=recvonly",
            line if line.starts_with("a=ssrc") || line.starts_with("a=candidate") => continue,
            line if line.starts_with("a=end-of-candidates") => continue,
            line if line.starts_with("a=fingerprint") || line.starts_with("a=setup") => continue,
            line if line.starts_with("a=ice-ufrag") => "a=ice-ufrag:abcd",
            line if line.starts_with("a=ice-pwd") => "a=ice-pwd:0123456789012345678901",
            line => line,
        };
        answer.push_str(line);
        answer.push_str("\r\n");
        if line.starts_with("a=mid") {
            answer.push_str("a=setup:active\r\n");
            answer.push_str(&format!("a=fingerprint:sha-256 {fingerprint}\r\n"));
        }
    }
    json!({ "type": "answer", "sdp": answer })
}

/// The m-lines of a description: the m= line and its attributes.
pub fn sections(sdp: &str) -> Vec<Vec<&str>> {
    let mut sections: Vec<Vec<&str>> = Vec::new();
    for line in sdp.lines() {
        if line.starts_with("m=") {
            sections.push(Vec::new());
        }
        if let Some(section) = sections.last_mut() {
            section.push(line);
        }
    }
    sections
}
