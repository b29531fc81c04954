//! A server with the plugin, and who is in its rooms.

use std::path::Path;
use std::sync::Arc;

use portunus_core::media::{Event, MediaPlane, PeerId, SourceRef};
use portunus_core::record::{Recorder, RecorderConfig};
use portunus_core::testing::{Line, Requested, TestClient, TestServer, everywhere, jsep};
use portunus_core::{CoreConfig, HandleId, Plugin, SessionId};
use portunus_videoroom::{VideoRoom, VideoRoomConfig};
use serde_json::{Value, json};

pub const PACKAGE: &str = "janus.plugin.videoroom";
pub const ROOM: u64 = 1234;
pub const AV: [Line; 2] = [Line::Audio, Line::Video];

/// A server with a room.
pub struct World {
    pub server: TestServer,
    /// The recorder.
    pub recorder: Recorder,
}

/// Someone who publishes.
pub struct Publisher {
    pub client: TestClient,
    pub peer: PeerId,
    /// The answer to its offer.
    pub answer: String,
}

/// Someone who receives.
pub struct Viewer {
    pub client: TestClient,
    pub peer: PeerId,
    /// The last event with an offer.
    pub event: Value,
    /// The last offer.
    pub offer: String,
}

impl World {
    /// A server without rooms.
    pub fn empty(config: VideoRoomConfig) -> Self {
        // Hosts of tests are not public ones.
        let outgoing = match config.outgoing.0.is_empty() {
            true => everywhere(),
            false => config.outgoing,
        };
        let config = VideoRoomConfig { outgoing, ..config };
        Self::start(
            config,
            RecorderConfig {
                enabled: false,
                keep_free_mb: 0,
                ..RecorderConfig::default()
            },
        )
    }

    fn start(config: VideoRoomConfig, recording: RecorderConfig) -> Self {
        let recorder = Recorder::new(recording);
        let plugins = |media: &MediaPlane| -> Vec<Arc<dyn Plugin>> {
            let plugin = VideoRoom::new(config, media.clone(), recorder.clone());
            vec![Arc::new(plugin.unwrap())]
        };
        let core = CoreConfig::default();
        World {
            server: TestServer::recording_with(recorder.clone(), core, plugins),
            recorder,
        }
    }

    /// A server with a room that was created with `options`.
    pub async fn new(options: Value) -> Self {
        let world = Self::empty(VideoRoomConfig::default());
        world.create(options).await;
        world
    }

    /// Starts a server that records below `folder`.
    pub async fn recording(folder: &Path, options: Value) -> Self {
        let recording = RecorderConfig {
            dir: Some(folder.to_owned()),
            keep_free_mb: 0,
            ..RecorderConfig::default()
        };
        let world = Self::start(VideoRoomConfig::default(), recording);
        world.create(options).await;
        world
    }

    async fn create(&self, options: Value) {
        let mut create = json!({ "request": "create", "room": ROOM });
        merge(&mut create, options);
        let mut client = self.attach().await;
        let created = sync(&mut client, create).await;
        assert_eq!(created["videoroom"], "created", "{created}");
    }

    pub async fn attach(&self) -> TestClient {
        self.server.attach(PACKAGE).await
    }

    /// Joins as a participant. Returns the answer.
    pub async fn join(&self, members: Value) -> (TestClient, Value) {
        let mut client = self.attach().await;
        let mut join = json!({ "request": "join", "room": ROOM, "ptype": "publisher" });
        merge(&mut join, members);
        let joined = ask(&mut client, join).await;
        (client, joined)
    }

    /// Joins with this id and publishes `lines`. Its media is up.
    pub async fn publisher(&self, id: u64, lines: &[Line]) -> Publisher {
        self.publisher_with(json!({ "id": id }), jsep("offer", "pub1", lines))
            .await
    }

    pub async fn publisher_with(&self, members: Value, offer: Value) -> Publisher {
        let (mut client, joined) = self.join(members).await;
        assert_eq!(joined["videoroom"], "joined", "{joined}");
        client
            .message(json!({ "request": "publish" }), Some(offer))
            .await;
        let (configured, answer) = client.event_with_jsep().await;
        assert_eq!(configured["configured"], "ok", "{configured}");
        let peer = *self.server.peers().last().unwrap();
        self.up(peer).await;
        assert_eq!(client.next().await["janus"], "webrtcup");
        Publisher {
            client,
            peer,
            answer: answer.unwrap()["sdp"].as_str().unwrap().to_owned(),
        }
    }

    /// Joins as a subscriber that has not answered yet.
    pub async fn joining_viewer(&self, members: Value) -> Viewer {
        let mut client = self.attach().await;
        let mut join = json!({ "request": "join", "room": ROOM, "ptype": "subscriber" });
        merge(&mut join, members);
        client.message(join, None).await;
        let (event, offer) = client.event_with_jsep().await;
        assert_eq!(event["videoroom"], "attached", "{event}");
        Viewer {
            client,
            peer: *self.server.peers().last().unwrap(),
            event,
            offer: offer.unwrap()["sdp"].as_str().unwrap().to_owned(),
        }
    }

    /// Joins as a subscriber, and is up.
    pub async fn viewer(&self, members: Value) -> Viewer {
        let mut viewer = self.joining_viewer(members).await;
        viewer.start().await;
        self.up(viewer.peer).await;
        assert_eq!(viewer.client.next().await["janus"], "webrtcup");
        viewer
    }

    pub async fn up(&self, peer: PeerId) {
        let srtp_profile = "SRTP_AEAD_AES_128_GCM";
        self.server
            .happen(peer, Event::Connected { srtp_profile })
            .await;
    }

    pub fn requested(&self) -> Requested {
        self.server.requested()
    }

    pub async fn state(&self, client: &TestClient) -> Value {
        let (session, handle) = (SessionId(client.session), HandleId(client.handle));
        self.server.gateway.query(session, handle).await.unwrap()
    }

    /// Returns the routes to a subscriber: peer and m-line of the publisher, own m-line, and
    /// whether it is open.
    pub fn routes(&self, viewer: &Viewer) -> Vec<(PeerId, String, String, bool)> {
        let routes = self.requested().routes;
        let own = routes.iter().filter(|route| route.to.peer == viewer.peer);
        let mut routes: Vec<_> = own
            .map(|route| {
                let SourceRef::Track(from) = route.from else {
                    panic!("a route from no publisher: {route:?}");
                };
                (
                    from.peer,
                    from.mid.to_string(),
                    route.to.mid.to_string(),
                    route.options.enabled,
                )
            })
            .collect();
        routes.sort_by(|a, b| a.2.cmp(&b.2));
        routes
    }
}

impl Viewer {
    /// Answers the last offer.
    pub async fn start(&mut self) {
        let answer = answer_to(&self.offer);
        let start = json!({ "request": "start", "room": ROOM });
        self.client.message(start, Some(answer)).await;
        let started = self.client.event().await;
        assert_eq!(started["started"], "ok", "{started}");
    }

    /// The next event, which has to come with an offer.
    pub async fn offered(&mut self) -> Value {
        let (event, offer) = self.client.event_with_jsep().await;
        let offer = offer.unwrap_or_else(|| panic!("no offer with {event}"));
        assert_eq!(offer["type"], "offer");
        self.offer = offer["sdp"].as_str().unwrap().to_owned();
        self.event = event.clone();
        event
    }

    /// Sends a request whose answer has an offer.
    pub async fn change(&mut self, request: Value) -> Value {
        self.client.message(request, None).await;
        self.offered().await
    }

    /// The directions of the m-lines of the last offer.
    pub fn directions(&self) -> Vec<&str> {
        directions(&self.offer)
    }
}

pub fn directions(sdp: &str) -> Vec<&str> {
    sdp.lines()
        .filter_map(|line| line.strip_prefix("a="))
        .filter(|line| ["sendonly", "recvonly", "sendrecv", "inactive"].contains(line))
        .collect()
}

/// An answer that takes all that is offered.
pub fn answer_to(offer: &str) -> Value {
    let ours = [
        "a=candidate",
        "a=end-of-candidates",
        "a=ssrc",
        "a=msid",
        "a=ice-ufrag",
        "a=ice-pwd",
        "a=fingerprint",
        "a=setup",
    ];
    let mut sdp = String::new();
    for line in offer.lines() {
        if ours.iter().any(|prefix| line.starts_with(prefix)) {
            continue;
        }
        let line = match line {
            "a=sendonly" => "a=recvonly",
            line => line,
        };
        sdp.push_str(line);
        sdp.push_str("\r\n");
        if line.starts_with("a=mid:") {
            let fingerprint = vec!["CD"; 32].join(":");
            sdp.push_str(&format!(
                "a=ice-ufrag:view\r\na=ice-pwd:0123456789012345678901\r\na=setup:active\r\n\
                 a=fingerprint:sha-256 {fingerprint}\r\n"
            ));
        }
    }
    json!({ "type": "answer", "sdp": sdp })
}

pub fn merge(target: &mut Value, members: Value) {
    let members = members.as_object().unwrap().clone();
    target.as_object_mut().unwrap().extend(members);
}

/// Sends a synchronous request. Returns the answer.
pub async fn sync(client: &mut TestClient, body: Value) -> Value {
    let reply = client.on_handle("message", json!({ "body": body })).await;
    assert_eq!(reply["janus"], "success", "{reply}");
    reply["plugindata"]["data"].clone()
}

/// Sends an asynchronous request. Returns the event that answers it.
pub async fn ask(client: &mut TestClient, body: Value) -> Value {
    client.message(body, None).await;
    client.event().await
}

/// The code of an answer that refuses.
pub fn code(answer: &Value) -> u64 {
    assert_eq!(answer["videoroom"], "event", "{answer}");
    assert!(answer["error"].is_string(), "{answer}");
    answer["error_code"].as_u64().unwrap()
}
