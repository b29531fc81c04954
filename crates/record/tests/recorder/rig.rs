//! A media plane without workers, to whose taps the tests hand packets, and a recorder that writes
//! into a folder.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use portunus_files::manifest::Manifest;
use portunus_media::testing::RequestedOutlet;
use portunus_media::{IngestFeed, IngestOptions, MediaPlane, SourceRef, packet_feed};
use portunus_record::{
    Participant, RecordedSession, Recorder, RecorderConfig, SessionSpec, StallingDisk,
};
use portunus_sdp::negotiated::Codec;
use tempfile::TempDir;
use tokio::sync::mpsc;

pub struct Rig {
    pub folder: TempDir,
    pub media: MediaPlane,
    pub recorder: Recorder,
    // The channel must stay open.
    _events: Box<dyn std::any::Any>,
}

impl Rig {
    pub fn new() -> Self {
        Self::with(|_| {})
    }

    pub fn with(change: impl FnOnce(&mut RecorderConfig)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut config = RecorderConfig {
            dir: Some(folder.path().to_owned()),
            keep_free_mb: 0,
            ..RecorderConfig::default()
        };
        change(&mut config);
        let (media, sender, events): (_, mpsc::Sender<_>, mpsc::Receiver<_>) =
            MediaPlane::detached();
        Self {
            folder,
            recorder: Recorder::new(config),
            media,
            _events: Box::new((sender, events)),
        }
    }

    /// A source of a codec.
    pub fn source(&self, codec: Codec) -> SourceRef {
        let clock = if codec.is_video() { 90_000 } else { 48_000 };
        let feed = IngestFeed::Packets(packet_feed(1).1);
        let source = self
            .media
            .add_ingest(IngestOptions::rtp(codec, clock, feed));
        source.id.into()
    }

    /// The last tap.
    pub fn tap(&self) -> RequestedOutlet {
        self.taps().pop().unwrap()
    }

    /// Sends a packet of audio to the last tap, because a file without content is deleted.
    pub fn speak(&self) {
        let packet = rtp(0, 0, b"x");
        self.tap()
            .pretend_packet(&packet, Codec::Opus, Instant::now());
    }

    pub fn taps(&self) -> Vec<RequestedOutlet> {
        self.media.requested().outlets.clone()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    /// A folder that counts as a disk of its own.
    pub fn disk(&self, folder: &str) -> Arc<StallingDisk> {
        std::fs::create_dir(self.path(folder)).unwrap();
        let disk = StallingDisk::new(&self.path(folder));
        self.recorder.pretend_disk(Arc::clone(&disk));
        disk
    }

    pub fn session(&self, name: &str) -> RecordedSession {
        self.recorder.session(SessionSpec {
            plugin: "janus.plugin.videoroom",
            dir: None,
            name: name.to_owned(),
            room: Some("1234".to_owned()),
            description: Some("Demo".to_owned()),
        })
    }

    pub fn manifest(&self, name: &str) -> Manifest {
        let bytes = std::fs::read(self.path(name)).unwrap();
        crate::schema::check(&bytes);
        Manifest::read(&bytes).unwrap()
    }
}

pub fn participant(session: &RecordedSession, id: &str) -> Participant {
    Participant {
        session: session.clone(),
        id: id.to_owned(),
        display: Some("Ann".to_owned()),
    }
}

/// An RTP packet.
pub fn rtp(sequence: u16, timestamp: u32, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x80, 96];
    packet.extend_from_slice(&sequence.to_be_bytes());
    packet.extend_from_slice(&timestamp.to_be_bytes());
    packet.extend_from_slice(&7_u32.to_be_bytes());
    packet.extend_from_slice(payload);
    packet
}

/// Waits until a condition holds.
pub async fn until(what: &str, holds: impl Fn() -> bool) {
    let waited = tokio::time::timeout(Duration::from_secs(20), async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    waited.await.unwrap_or_else(|_| panic!("{what}"));
}
