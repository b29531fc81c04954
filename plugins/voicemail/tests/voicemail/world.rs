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
use portunus_files::{MediaFile, OpenOptions};
use portunus_voicemail::{VoiceMail, VoiceMailConfig};
use serde_json::{Value, json};
use tempfile::TempDir;

pub const PACKAGE: &str = "janus.plugin.voicemail";

pub struct World {
    pub folder: TempDir,
    pub server: TestServer,
    pub recorder: Recorder,
    pub plugin: Arc<VoiceMail>,
}

impl World {
    pub fn new() -> Self {
        Self::with(|_| {}, |_| {})
    }

    pub fn with(
        mail: impl FnOnce(&mut VoiceMailConfig),
        recording: impl FnOnce(&mut RecorderConfig),
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut config = RecorderConfig {
            dir: Some(folder.path().to_owned()),
            keep_free_mb: 0,
            ..RecorderConfig::default()
        };
        recording(&mut config);
        let recorder = Recorder::new(config);
        let mut config = VoiceMailConfig::default();
        mail(&mut config);
        let mut made = None;
        let with = recorder.clone();
        let server = TestServer::recording_with(with, CoreConfig::default(), |media| {
            let plugin = Arc::new(VoiceMail::new(config, media.clone(), &recorder));
            made = Some(Arc::clone(&plugin));
            vec![plugin as Arc<dyn Plugin>]
        });
        Self {
            folder,
            server,
            recorder,
            plugin: made.unwrap(),
        }
    }

    pub async fn attach(&self) -> TestClient {
        self.server.attach(PACKAGE).await
    }

    /// Returns all files.
    pub fn files(&self) -> Vec<PathBuf> {
        let Ok(entries) = std::fs::read_dir(self.folder.path().join("voicemail")) else {
            return Vec::new();
        };
        entries.map(|entry| entry.unwrap().path()).collect()
    }

    pub fn tap(&self) -> RequestedOutlet {
        self.server.requested().outlets.last().unwrap().clone()
    }

    pub async fn state(&self, client: &TestClient) -> Value {
        let (session, handle) = (SessionId(client.session), HandleId(client.handle));
        self.server.gateway.query(session, handle).await.unwrap()
    }

    /// Reports that the PeerConnection of the only client is up.
    pub async fn up(&self) {
        let peer = self.server.peers()[0];
        let srtp_profile = "SRTP_AEAD_AES_128_GCM";
        let up = Event::Connected { srtp_profile };
        self.server.happen(peer, up).await;
    }

    /// Reports that it is gone.
    pub async fn lose(&self) {
        let peer = self.server.peers()[0];
        let gone = Event::Closed(CloseReason::DtlsAlert);
        self.server.happen(peer, gone).await;
    }

    pub fn counter(&self, name: &str) -> u64 {
        let counters = self.plugin.counters();
        counters.iter().find(|it| it.name == name).unwrap().value
    }
}

pub fn offer(lines: &[Line]) -> Value {
    jsep("offer", "abcd", lines)
}

/// Starts a message, and returns the answer.
pub async fn record(client: &mut TestClient) -> String {
    let body = json!({ "request": "record" });
    client.message(body, Some(offer(&[Line::Audio]))).await;
    let (data, answer) = client.event_with_jsep().await;
    assert_eq!(data, json!({ "voicemail": "event", "status": "starting" }));
    answer.unwrap()["sdp"].as_str().unwrap().to_owned()
}

/// Sends audio: packets of 20 ms, from `start` on.
pub fn say(tap: &RequestedOutlet, start: Instant, packets: std::ops::Range<u16>) {
    for sequence in packets {
        let at = start + Duration::from_millis(20) * sequence.into();
        let mut packet = vec![0x80, 111];
        packet.extend_from_slice(&sequence.to_be_bytes());
        packet.extend_from_slice(&(u32::from(sequence) * 960).to_be_bytes());
        packet.extend_from_slice(&[0, 0, 0, 7, 0xf8, 1, 2]);
        tap.pretend_packet(&packet, Codec::Opus, at);
    }
}

/// Returns the number of packets in a file.
pub fn packets(path: &std::path::Path) -> usize {
    let once = OpenOptions {
        looping: false,
        ..OpenOptions::default()
    };
    let mut file = MediaFile::open(path, &once).unwrap();
    let mut packets = 0;
    while let Some(packet) = file.next() {
        packet.unwrap();
        packets += 1;
    }
    packets
}

/// Returns the address in the event about a complete message.
pub fn address(done: &Value) -> String {
    assert_eq!(done["status"], "done", "{done}");
    done["recording"].as_str().unwrap().to_owned()
}

/// Expects the end of the handle, which may follow a hangup.
pub async fn detached(client: &mut TestClient) {
    loop {
        let message = client.next().await;
        match message["janus"].as_str() {
            Some("detached") => return,
            Some("hangup") => {}
            _ => panic!("{message}"),
        }
    }
}
