//! A server with all plugins, and its clients.

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::Arc;

use portunus_audio::{AudioConfig, AudioThreads};
use portunus_audiobridge::{AudioBridge, AudioBridgeConfig, ConfiguredRoom as ConfiguredAudioRoom};
use portunus_core::events::EventBus;
use portunus_core::record::{Recorder, RecorderConfig};
use portunus_core::testing::{Line, TestClient, TestServer, everywhere, jsep};
use portunus_core::{
    CoreConfig, Networks, Plugin, PluginContext, Requester, Right, Services, StoredToken,
};
use portunus_echotest::EchoTest;
use portunus_nosip::{NoSip, NoSipConfig};
use portunus_recordplay::{RecordPlay, RecordPlayConfig};
use portunus_sip_plugin::{Sip, SipConfig};
use portunus_streaming::{ConfiguredMountpoint, Streaming, StreamingConfig};
use portunus_telephony::Telephony;
use portunus_textroom::{ConfiguredRoom as ConfiguredTextRoom, TextRoom, TextRoomConfig};
use portunus_videocall::VideoCall;
use portunus_videoroom::{ConfiguredRoom, VideoRoom, VideoRoomConfig};
use portunus_voicemail::{VoiceMail, VoiceMailConfig};
use serde_json::{Value, json};
use tempfile::TempDir;

pub const ADMIN_KEY: &str = "k3y";
pub const API_SECRET: &str = "s3cret";
/// A file that can be played.
pub const FILE: &str = "tone.opus";

pub struct World {
    pub server: TestServer,
    pub disk: TempDir,
}

/// The special settings of a server.
#[derive(Default)]
pub struct Setup {
    pub admin_key: Option<&'static str>,
    pub api_secret: Option<&'static str>,
    /// The allowed destinations. `None` allows all.
    pub outgoing: Option<Networks>,
}

impl World {
    pub async fn new() -> Self {
        Self::with(Setup::default()).await
    }

    pub async fn with(setup: Setup) -> Self {
        let disk = tempfile::tempdir().unwrap();
        std::fs::create_dir(disk.path().join("media")).unwrap();
        let data = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../crates/files/tests/data/"
        );
        for place in ["media", ""] {
            let to = disk.path().join(place).join(FILE);
            std::fs::copy(format!("{data}{FILE}"), to).unwrap();
        }
        let below = |name: &str| disk.path().join(name);
        let recorder = Recorder::new(RecorderConfig {
            dir: Some(below("recordings")),
            keep_free_mb: 0,
            ..RecorderConfig::default()
        });
        let outgoing = setup.outgoing.unwrap_or_else(everywhere);
        let admin_key = setup.admin_key.map(str::to_owned);
        let streaming = StreamingConfig {
            admin_key: admin_key.clone(),
            folders: vec![below("media")],
            outgoing: outgoing.clone(),
            save: Some(below("mountpoints.toml")),
            mountpoints: vec![mountpoint()],
            ..StreamingConfig::default()
        };
        let videoroom = VideoRoomConfig {
            admin_key,
            outgoing: outgoing.clone(),
            save: Some(below("rooms.toml")),
            rooms: vec![room()],
            ..VideoRoomConfig::default()
        };
        let textroom = TextRoomConfig {
            admin_key: setup.admin_key.map(str::to_owned),
            outgoing: outgoing.clone(),
            save: Some(below("textrooms.toml")),
            rooms: vec![text_room()],
            ..TextRoomConfig::default()
        };
        let audiobridge = AudioBridgeConfig {
            admin_key: setup.admin_key.map(str::to_owned),
            folders: vec![below("media")],
            outgoing: outgoing.clone(),
            save: Some(below("audiorooms.toml")),
            rooms: vec![audio_room()],
            ..AudioBridgeConfig::default()
        };
        let recordplay = RecordPlayConfig {
            admin_key: setup.admin_key.unwrap_or_default().to_owned(),
            ..RecordPlayConfig::default()
        };
        let core = CoreConfig {
            api_secret: setup.api_secret.map(Into::into),
            tokens: tokens(),
            ..CoreConfig::default()
        };
        let with = recorder.clone();
        let server = TestServer::recording_with_media(recorder, core, async |media| {
            let streaming = Streaming::start(streaming, media.clone(), with.clone()).await;
            let voicemail = VoiceMail::new(VoiceMailConfig::default(), media.clone(), &with);
            let recordplay = RecordPlay::open(recordplay, media.clone(), &with).await;
            let nosip = NoSip::new(
                &NoSipConfig::default(),
                media.clone(),
                Networks::default(),
                None,
            );
            let videoroom = VideoRoom::new(videoroom, media.clone(), with.clone());
            let audio = AudioThreads::new(AudioConfig::default(), media.clone(), with.clone());
            let services = Services::default()
                .with(audio.clone())
                .with(Telephony::default());
            let context = PluginContext {
                media: media.clone(),
                recorder: with.clone(),
                outgoing: Networks::default(),
                events: EventBus::default(),
                services,
            };
            let sip = Sip::start(SipConfig::default(), context);
            let audiobridge = AudioBridge::new(audiobridge, media, with, audio);
            let textroom = TextRoom::new(textroom);
            let plugins: Vec<Arc<dyn Plugin>> = vec![
                Arc::new(EchoTest),
                Arc::new(VideoCall::default()),
                Arc::new(streaming.unwrap()),
                Arc::new(videoroom.unwrap()),
                Arc::new(audiobridge.unwrap()),
                Arc::new(textroom.unwrap()),
                Arc::new(voicemail),
                Arc::new(recordplay),
                Arc::new(nosip),
                Arc::new(sip.unwrap()),
            ];
            plugins
        })
        .await;
        World { server, disk }
    }

    /// Returns the name of a file in the folder of playable files.
    pub fn file(&self, name: &str) -> String {
        let path: PathBuf = self.disk.path().join("media").join(name);
        path.display().to_string()
    }
}

fn mountpoint() -> ConfiguredMountpoint {
    let members = json!({ "name": "own", "type": "rtp", "id": 7, "media": [
        { "type": "audio", "mid": "a", "port": 0, "codec": "opus" } ] });
    ConfiguredMountpoint::read(members.as_object().unwrap(), false).unwrap()
}

fn room() -> ConfiguredRoom {
    ConfiguredRoom::read(json!({ "room": 7 }).as_object().unwrap(), false).unwrap()
}

fn audio_room() -> ConfiguredAudioRoom {
    let members = json!({ "room": 7, "sampling_rate": 16_000, "allow_rtp_participants": true });
    ConfiguredAudioRoom::read(members.as_object().unwrap(), false).unwrap()
}

fn text_room() -> ConfiguredTextRoom {
    ConfiguredTextRoom::read(json!({ "room": 7 }).as_object().unwrap(), false).unwrap()
}

/// Returns a token for each right, `only-RIGHT`, and one for all but that, `but-RIGHT`.
fn tokens() -> Vec<StoredToken> {
    let token = |token: String, rights: Vec<Right>| StoredToken {
        token,
        plugins: Vec::new(),
        rights,
    };
    let both = Right::ALL.into_iter().flat_map(|right| {
        let others = Right::ALL.into_iter().filter(|other| *other != right);
        [
            token(format!("only-{right}"), vec![right]),
            token(format!("but-{right}"), others.collect()),
        ]
    });
    both.collect()
}

/// A client, and what it shows.
#[derive(Clone, Debug)]
pub struct Who {
    pub name: &'static str,
    pub from: Requester,
    /// Members of the request.
    pub shown: Value,
    /// Members of its body.
    pub in_body: Value,
}

impl Who {
    pub fn new(name: &'static str, from: Requester) -> Self {
        Who {
            name,
            from,
            shown: json!({}),
            in_body: json!({}),
        }
    }

    pub fn stranger(name: &'static str) -> Self {
        Who::new(name, portunus_core::testing::stranger())
    }

    /// Returns a client on the server's machine. Unless `local`, it is a browser on the page of
    /// another origin.
    pub fn loopback(name: &'static str, local: bool) -> Self {
        Who::new(name, Requester::at(Ipv4Addr::LOCALHOST.into(), local))
    }

    pub fn showing(self, shown: Value) -> Self {
        Who { shown, ..self }
    }
}

/// A client attached to a plugin.
pub struct Asker {
    client: TestClient,
    who: Who,
}

impl Asker {
    pub async fn attach(world: &World, who: &Who, plugin: &str) -> Self {
        let client = world.server.connect_from(who.from);
        let mut asker = Asker {
            client,
            who: who.clone(),
        };
        let created = asker.envelope("create", json!({})).await;
        asker.client.session = created["data"]["id"].as_u64().expect("a session");
        let attach = json!({ "session_id": asker.client.session,
                             "plugin": format!("janus.plugin.{plugin}") });
        let attached = asker.envelope("attach", attach).await;
        asker.client.handle = attached["data"]["id"].as_u64().expect("a handle");
        asker
    }

    /// Publishes sound in room 7 as participant 1.
    pub async fn publish(&mut self) {
        let body =
            json!({ "room": 7, "ptype": "publisher", "id": 1, "request": "joinandconfigure" });
        let offer = jsep("offer", "abcd", &[Line::Audio]);
        let message = json!({ "session_id": self.client.session, "handle_id": self.client.handle,
                              "body": body, "jsep": offer });
        self.envelope("message", message).await;
        let joined = self.client.event().await;
        assert_eq!(joined["videoroom"], "joined", "{joined}");
    }

    /// Returns the plugin's answer to a request, also if it comes as an event.
    pub async fn ask(&mut self, request: &str, body: &Value) -> Value {
        let mut body = body.clone();
        if request != "any" {
            body["request"] = json!(request);
        }
        extend(&mut body, &self.who.in_body);
        let message = json!({ "session_id": self.client.session, "handle_id": self.client.handle,
                              "body": body });
        let reply = self.envelope("message", message).await;
        match reply["janus"].as_str() {
            Some("success") => reply["plugindata"]["data"].clone(),
            Some("ack") => self.client.event().await,
            _ => panic!("{reply}"),
        }
    }

    async fn envelope(&mut self, verb: &str, members: Value) -> Value {
        let mut request = json!({ "janus": verb, "transaction": "t" });
        extend(&mut request, &members);
        extend(&mut request, &self.who.shown);
        self.client.ask(request).await
    }
}

fn extend(object: &mut Value, members: &Value) {
    let members = members.as_object().unwrap().clone();
    object.as_object_mut().unwrap().extend(members);
}
