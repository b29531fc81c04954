//! A server with the plugin, and its clients.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use portunus_core::media::testing::RequestedOutlet;
use portunus_core::media::{CloseReason, Event};
use portunus_core::record::{Recorder, RecorderConfig};
use portunus_core::sdp::Codec;
use portunus_core::testing::{Line, TestClient, TestServer, jsep};
use portunus_core::{CoreConfig, HandleId, Plugin, SessionId};
use portunus_files::mjr::{FrameWriter, Info, Medium, UnixMicros};
use portunus_recordplay::{MediaFiles, Nfo, RecordPlay, RecordPlayConfig};
use serde_json::{Value, json};
use tempfile::TempDir;

pub const PACKAGE: &str = "janus.plugin.recordplay";

pub struct World {
    pub folder: TempDir,
    pub server: TestServer,
    pub plugin: Arc<RecordPlay>,
}

impl World {
    pub async fn new() -> Self {
        Self::with(|_| {}, |_| {}).await
    }

    pub async fn with(
        plugin: impl FnOnce(&mut RecordPlayConfig),
        recording: impl FnOnce(&mut RecorderConfig),
    ) -> Self {
        Self::on(tempfile::tempdir().unwrap(), plugin, recording).await
    }

    /// A server whose folder has content already.
    pub async fn on(
        folder: TempDir,
        plugin: impl FnOnce(&mut RecordPlayConfig),
        recording: impl FnOnce(&mut RecorderConfig),
    ) -> Self {
        let mut config = RecorderConfig {
            dir: Some(folder.path().to_owned()),
            manifest: false,
            keep_free_mb: 0,
            ..RecorderConfig::default()
        };
        recording(&mut config);
        let recorder = Recorder::new(config);
        let mut config = RecordPlayConfig::default();
        plugin(&mut config);
        let mut made = None;
        let with = recorder.clone();
        let server = TestServer::recording_with_media(with, CoreConfig::default(), async |media| {
            let plugin = Arc::new(RecordPlay::open(config, media, &recorder).await);
            made = Some(Arc::clone(&plugin));
            vec![plugin as Arc<dyn Plugin>]
        })
        .await;
        Self {
            folder,
            server,
            plugin: made.unwrap(),
        }
    }

    pub async fn attach(&self) -> TestClient {
        self.server.attach(PACKAGE).await
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join("recordplay").join(name)
    }

    /// Returns the names of the files, sorted.
    pub fn files(&self) -> Vec<String> {
        names(&self.folder)
    }

    pub async fn list(&self) -> Vec<Value> {
        let mut client = self.attach().await;
        list(&mut client, json!({ "request": "list" })).await
    }

    pub fn taps(&self) -> Vec<RequestedOutlet> {
        self.server.requested().outlets
    }

    pub async fn state(&self, client: &TestClient) -> Value {
        let (session, handle) = (SessionId(client.session), HandleId(client.handle));
        self.server.gateway.query(session, handle).await.unwrap()
    }

    /// Reports that the last PeerConnection, which is that of `client`, is up.
    pub async fn up(&self, client: &mut TestClient) {
        let srtp_profile = "SRTP_AEAD_AES_128_GCM";
        self.happen(Event::Connected { srtp_profile }).await;
        expect(client, "webrtcup").await;
    }

    /// Reports that it is gone.
    pub async fn lose(&self) {
        self.happen(Event::Closed(CloseReason::DtlsAlert)).await;
    }

    pub async fn happen(&self, event: Event) {
        let peer = *self.server.peers().last().unwrap();
        self.server.happen(peer, event).await;
    }

    pub fn counter(&self, name: &str) -> u64 {
        let counters = self.plugin.counters();
        counters.iter().find(|it| it.name == name).unwrap().value
    }

    /// Adds a recording of a second of audio to the folder.
    pub fn shelve(&self, id: u64, change: impl FnOnce(&mut Nfo)) {
        shelve(&self.folder, id, change);
    }
}

pub fn names(folder: &TempDir) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder.path().join("recordplay")) else {
        return Vec::new();
    };
    let names = entries.map(|it| it.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.collect();
    names.sort();
    names
}

/// Adds a recording of a second of audio to the plugin's folder.
pub fn shelve(folder: &TempDir, id: u64, change: impl FnOnce(&mut Nfo)) {
    let folder = folder.path().join("recordplay");
    std::fs::create_dir_all(&folder).unwrap();
    let file = format!("rec-{id}-audio.mjr");
    std::fs::write(folder.join(&file), opus(50)).unwrap();
    let mut nfo = Nfo {
        id,
        name: format!("Recording of {id}"),
        date: "2026-01-31 10:00:00".to_owned(),
        files: MediaFiles {
            audio: Some(file),
            ..MediaFiles::default()
        },
        ..Nfo::default()
    };
    change(&mut nfo);
    std::fs::write(folder.join(format!("{id}.nfo")), nfo.to_text()).unwrap();
}

/// A recording of so many Opus packets.
pub fn opus(packets: u16) -> Vec<u8> {
    let mut bytes = Vec::new();
    let info = Info::new(Medium::Audio, "opus", UnixMicros(1_700_000_000_000_000));
    let mut writer = FrameWriter::new(info, &mut bytes);
    for sequence in 0..packets {
        let at = 1_700_000_000_000_000 + u64::from(sequence) * 20_000;
        let packet = packet(sequence);
        writer.packet(UnixMicros(at), &packet, &mut bytes).unwrap();
    }
    bytes
}

fn packet(sequence: u16) -> Vec<u8> {
    let mut packet = vec![0x80, 111];
    packet.extend_from_slice(&sequence.to_be_bytes());
    packet.extend_from_slice(&(u32::from(sequence) * 960).to_be_bytes());
    packet.extend_from_slice(&[0, 0, 0, 7, 0xf8, 1, 2]);
    packet
}

pub fn offer(lines: &[Line]) -> Value {
    jsep("offer", "abcd", lines)
}

/// Returns the answer of a browser that accepts the m-lines of these kinds.
pub fn answer_to(offer: &Value) -> Value {
    let sdp = offer["sdp"].as_str().unwrap();
    let sdp = sdp
        .replace("a=setup:actpass", "a=setup:active")
        .replace("a=sendonly", "a=recvonly");
    json!({ "type": "answer", "sdp": sdp })
}

/// Starts a recording, and returns the result and the answer.
pub async fn record(client: &mut TestClient, lines: &[Line], more: Value) -> (Value, String) {
    let mut body = json!({ "request": "record", "name": "demo" });
    let members = body.as_object_mut().unwrap();
    members.extend(more.as_object().unwrap().clone());
    client.message(body, Some(offer(lines))).await;
    let (data, answer) = client.event_with_jsep().await;
    let answer = answer.unwrap_or_else(|| panic!("no answer: {data}"));
    (
        data["result"].clone(),
        answer["sdp"].as_str().unwrap().to_owned(),
    )
}

/// Sends audio: packets of 20 ms.
pub fn say(tap: &RequestedOutlet, packets: std::ops::Range<u16>) {
    send(tap, packets, Codec::Opus);
}

/// Sends video: packets of VP8 without a keyframe, 20 ms apart.
pub fn show(tap: &RequestedOutlet, packets: std::ops::Range<u16>) {
    send(tap, packets, Codec::Vp8);
}

fn send(tap: &RequestedOutlet, packets: std::ops::Range<u16>, codec: Codec) {
    let start = Instant::now();
    for sequence in packets {
        let at = start + Duration::from_millis(20) * sequence.into();
        tap.pretend_packet(&packet(sequence), codec, at);
    }
}

/// Returns the result in the plugin's next event.
pub async fn result(client: &mut TestClient) -> Value {
    let data = client.event().await;
    assert_eq!(data["recordplay"], "event", "{data}");
    data["result"].clone()
}

/// Sends a request, and returns the result.
pub async fn ask(client: &mut TestClient, body: Value) -> Value {
    client.message(body, None).await;
    result(client).await
}

pub async fn list(client: &mut TestClient, body: Value) -> Vec<Value> {
    let data = client.request(body).await;
    assert_eq!(data["recordplay"], "list", "{data}");
    data["list"].as_array().unwrap().clone()
}

/// Starts to play, and returns the event and the offer.
pub async fn play(client: &mut TestClient, id: u64) -> (Value, Value) {
    client
        .message(json!({ "request": "play", "id": id }), None)
        .await;
    let (data, offer) = client.event_with_jsep().await;
    let offer = offer.unwrap_or_else(|| panic!("no offer: {data}"));
    assert_eq!(data["result"]["status"], "preparing", "{data}");
    (data["result"].clone(), offer)
}

/// Answers the offer.
pub async fn start(client: &mut TestClient, offer: &Value) {
    let answer = Some(answer_to(offer));
    client.message(json!({ "request": "start" }), answer).await;
    assert_eq!(result(client).await, json!({ "status": "playing" }));
}

/// Expects this message next.
pub async fn expect(client: &mut TestClient, janus: &str) -> Value {
    let message = client.next().await;
    assert_eq!(message["janus"], janus, "{message}");
    message
}
