//! A server with the plugin, and its clients.

use std::path::Path;
use std::sync::Arc;

use portunus_audio::{AudioConfig, AudioThreads};
use portunus_audiobridge::{AudioBridge, AudioBridgeConfig};
use portunus_core::media::{Event, MediaPlane, PeerId};
use portunus_core::record::{Recorder, RecorderConfig};
use portunus_core::testing::{Line, TestClient, TestServer, everywhere, jsep};
use portunus_core::{CoreConfig, HandleId, Plugin, SessionId};
use serde_json::{Value, json};

pub const PACKAGE: &str = "janus.plugin.audiobridge";
pub const ROOM: u64 = 1234;

/// The plugin on a media plane without workers.
pub fn plugin(config: AudioBridgeConfig) -> AudioBridge {
    let (media, recorder) = (MediaPlane::detached().0, Recorder::default());
    let audio = AudioThreads::new(AudioConfig::default(), media.clone(), recorder.clone());
    AudioBridge::new(config, media, recorder, audio).unwrap()
}

/// A server with a room.
pub struct World {
    pub server: TestServer,
    /// The threads of its rooms.
    pub audio: AudioThreads,
    /// Its recorder.
    pub recorder: Recorder,
}

impl World {
    /// A server without rooms.
    pub fn empty(config: AudioBridgeConfig) -> Self {
        let recording = RecorderConfig {
            enabled: false,
            keep_free_mb: 0,
            ..RecorderConfig::default()
        };
        Self::start(config, CoreConfig::default(), recording)
    }

    pub fn start(config: AudioBridgeConfig, core: CoreConfig, recording: RecorderConfig) -> Self {
        // The hosts in tests are not public ones.
        let outgoing = match config.outgoing.0.is_empty() {
            true => everywhere(),
            false => config.outgoing,
        };
        let config = AudioBridgeConfig { outgoing, ..config };
        let recorder = Recorder::new(recording);
        let mut threads = None;
        let plugins = |media: &MediaPlane| -> Vec<Arc<dyn Plugin>> {
            let audio = AudioThreads::new(AudioConfig::default(), media.clone(), recorder.clone());
            threads = Some(audio.clone());
            let plugin = AudioBridge::new(config, media.clone(), recorder.clone(), audio);
            vec![Arc::new(plugin.unwrap())]
        };
        let server = TestServer::recording_with(recorder.clone(), core, plugins);
        World {
            server,
            audio: threads.unwrap(),
            recorder,
        }
    }

    /// A server with a room that was created with `options`.
    pub async fn new(options: Value) -> Self {
        let world = Self::empty(AudioBridgeConfig::default());
        world.create(options).await;
        world
    }

    /// A server that records below `folder`, with a room.
    pub async fn recording(folder: &Path, options: Value) -> Self {
        let recording = RecorderConfig {
            dir: Some(folder.to_owned()),
            keep_free_mb: 0,
            ..RecorderConfig::default()
        };
        let world = Self::start(
            AudioBridgeConfig::default(),
            CoreConfig::default(),
            recording,
        );
        world.create(options).await;
        world
    }

    /// Creates the room.
    pub async fn create(&self, options: Value) {
        let mut create = json!({ "request": "create", "room": ROOM });
        merge(&mut create, options);
        let created = self.attach().await.request(create).await;
        assert_eq!(created["audiobridge"], "created", "{created}");
    }

    pub async fn attach(&self) -> TestClient {
        self.server.attach(PACKAGE).await
    }

    /// Joins as `id`.
    pub async fn join(&self, id: u64, members: Value) -> TestClient {
        let mut client = self.attach().await;
        let mut join = json!({ "request": "join", "room": ROOM, "id": id });
        merge(&mut join, members);
        let joined = ask(&mut client, join).await;
        assert_eq!(joined["audiobridge"], "joined", "{joined}");
        client
    }

    /// Joins as `id`, with a PeerConnection that is up.
    pub async fn talker(&self, id: u64, members: Value) -> (TestClient, PeerId) {
        let mut client = self.join(id, members).await;
        let peer = self.connect(&mut client).await;
        (client, peer)
    }

    /// Negotiates, and reports that the PeerConnection is up.
    pub async fn connect(&self, client: &mut TestClient) -> PeerId {
        let (event, answer) = offer(client, json!({ "request": "configure" })).await;
        assert_eq!(event["result"], "ok", "{event}");
        assert!(answer.is_some());
        let peer = *self.server.peers().last().unwrap();
        self.up(peer).await;
        assert_eq!(client.next().await["janus"], "webrtcup");
        peer
    }

    pub async fn up(&self, peer: PeerId) {
        let srtp_profile = "SRTP_AEAD_AES_128_GCM";
        self.server
            .happen(peer, Event::Connected { srtp_profile })
            .await;
    }

    pub async fn state(&self, client: &TestClient) -> Value {
        let (session, handle) = (SessionId(client.session), HandleId(client.handle));
        self.server.gateway.query(session, handle).await.unwrap()
    }

    /// Returns the participants as clients see them.
    pub async fn participants(&self) -> Vec<Value> {
        let list = json!({ "request": "listparticipants", "room": ROOM });
        let list = self.attach().await.request(list).await;
        list["participants"].as_array().unwrap().clone()
    }
}

/// Sends a request, and returns the event that answers it.
pub async fn ask(client: &mut TestClient, body: Value) -> Value {
    client.message(body, None).await;
    client.event().await
}

/// Sends a request with an offer of audio, and returns the event and the answer.
pub async fn offer(client: &mut TestClient, body: Value) -> (Value, Option<Value>) {
    let offer = jsep("offer", "ufra1", &[Line::Audio]);
    client.message(body, Some(offer)).await;
    client.event_with_jsep().await
}

/// Adds members to an object.
pub fn merge(object: &mut Value, members: Value) {
    let (Some(object), Value::Object(members)) = (object.as_object_mut(), members) else {
        panic!("no objects");
    };
    object.extend(members);
}

/// Returns the code of a refusal.
pub fn code(event: &Value) -> u64 {
    assert_eq!(event["audiobridge"], "event", "{event}");
    event["error_code"]
        .as_u64()
        .unwrap_or_else(|| panic!("{event}"))
}
