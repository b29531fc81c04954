//! Voice mail, end to end: a peer speaks over a network that loses packets, and the file can be
//! played immediately, also by HTTP.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use portunus_core::Plugin;
use portunus_core::record::{Recorder, RecorderConfig};
use portunus_files::opus::packet_duration;
use portunus_files::{MediaFile, OpenOptions};
use portunus_rtp::Header;
use portunus_sdp::{CodecName, Description, Direction, Kind, MediaOffer, OfferOptions};
use portunus_tests::{Caller, Peer, Server, http, janus_tools, serve};
use portunus_voicemail::{VoiceMail, VoiceMailConfig};
use serde_json::json;
use tempfile::TempDir;
use tokio::time::{Instant, sleep_until};

struct Stage {
    folder: TempDir,
    server: Server,
    caller: Caller,
    peer: Peer,
}

impl Stage {
    /// Returns a caller whose message is being recorded.
    async fn recording(max_duration: Duration) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let recorder = Recorder::new(RecorderConfig {
            dir: Some(folder.path().to_owned()),
            keep_free_mb: 0,
            ..RecorderConfig::default()
        });
        let config = VoiceMailConfig {
            max_duration,
            ..VoiceMailConfig::default()
        };
        let own = recorder.clone();
        let server = Server::recording_with(1, recorder, async move |media| {
            Arc::new(VoiceMail::new(config, media, &own)) as Arc<dyn Plugin>
        })
        .await;
        let mut caller = server.attach("janus.plugin.voicemail").await;
        let mut peer = Peer::offering().await;
        let offer = peer.offer(description());
        let body = json!({ "request": "record" });
        caller.message(body, Some(("offer", &offer))).await;
        let answered = caller.until("/jsep/type", "answer").await;
        assert_eq!(answered["plugindata"]["data"]["status"], "starting");
        peer.accept(answered["jsep"]["sdp"].as_str().unwrap());
        peer.connect().await;
        caller.until("/plugindata/data/status", "started").await;
        Self {
            folder,
            server,
            caller,
            peer,
        }
    }

    /// Sends the tone for this time. Of each 50 packets, those in `lost` are lost.
    async fn say(&mut self, length: Duration, lost: std::ops::Range<u64>) {
        let mut tone = tone();
        let start = Instant::now();
        for number in 0.. {
            let packet = tone.next().unwrap().unwrap();
            if packet.at > length {
                return;
            }
            let header = Header::parse(packet.bytes).unwrap();
            let payload = header.payload(packet.bytes);
            sleep_until(start + packet.at).await;
            match lost.contains(&(number % 50)) {
                true => self.peer.skip(0, 1),
                false => self.peer.send(0, header.timestamp, payload).await,
            }
        }
    }

    fn file(&self) -> PathBuf {
        let mut entries = std::fs::read_dir(self.folder.path().join("voicemail")).unwrap();
        entries.next().unwrap().unwrap().path()
    }
}

fn tone() -> MediaFile {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates/files/tests/data");
    MediaFile::open(&data.join("tone.opus"), &OpenOptions::default()).unwrap()
}

fn description() -> Description {
    let mut audio = MediaOffer::new(Kind::Audio, Direction::SendOnly);
    audio.add_codec(CodecName::Opus, None, None);
    Description::offer(OfferOptions {
        media: vec![audio],
        ..Default::default()
    })
}

/// Returns the duration of a file by our reader, which must read all of it.
fn length(path: &Path) -> Duration {
    let once = OpenOptions {
        looping: false,
        ..OpenOptions::default()
    };
    let mut file = MediaFile::open(path, &once).unwrap();
    let mut length = Duration::ZERO;
    while let Some(packet) = file.next() {
        let packet = packet.unwrap();
        let payload = Header::parse(packet.bytes).unwrap().payload(packet.bytes);
        length += Duration::from(packet_duration(payload).unwrap());
    }
    length
}

#[tokio::test]
async fn lost_packets_keep_their_time() {
    let mut stage = Stage::recording(Duration::from_secs(60)).await;
    stage.say(Duration::from_secs(3), 10..20).await;
    let stop = json!({ "request": "stop" });
    stage.caller.message(stop, None).await;
    let done = stage.caller.until("/plugindata/data/status", "done").await;
    stage.caller.until("/janus", "detached").await;
    let path = stage.file();
    let length = length(&path);
    let wanted = Duration::from_secs(3);
    assert!(
        length.abs_diff(wanted) < Duration::from_millis(100),
        "{length:?}"
    );
    if let Some(decoded) = janus_tools::decode(&path) {
        assert!(
            decoded.duration.abs_diff(wanted) < Duration::from_millis(100),
            "{decoded:?}"
        );
    }

    // Its URL leads to it, whole and in parts, and to nothing else of the folder.
    std::fs::write(path.with_file_name("other.txt"), "secret").unwrap();
    let (_transports, to) = serve(&stage.server.gateway).await;
    let address = done["plugindata"]["data"]["recording"].as_str().unwrap();
    let (status, answer) = http(to, &format!("HEAD {address}"), &[], b"").await;
    assert_eq!(status, 200, "{answer}");
    let bytes = path.metadata().unwrap().len();
    assert!(
        answer
            .to_ascii_lowercase()
            .contains(&format!("content-length: {bytes}")),
        "{answer}"
    );
    assert!(answer.contains("audio/ogg"), "{answer}");
    let part = http(to, &format!("HEAD {address}"), &["Range: bytes=0-3"], b"").await;
    assert_eq!(part.0, 206, "{part:?}");
    for other in [
        "/recordings/other.txt",
        "/recordings//../voicemail/other.txt",
        "/recordings/",
    ] {
        let (status, answer) = http(to, &format!("GET {other}"), &[], b"").await;
        assert_eq!(status, 404, "{other}: {answer}");
    }
}

#[tokio::test]
async fn a_message_ends_by_itself_and_a_lost_caller_leaves_a_whole_file() {
    let mut stage = Stage::recording(Duration::from_secs(2)).await;
    stage.say(Duration::from_secs(3), 0..0).await;
    stage.caller.until("/plugindata/data/status", "done").await;
    stage.caller.until("/janus", "detached").await;
    let found = length(&stage.file());
    let wanted = Duration::from_secs(2);
    assert!(
        found.abs_diff(wanted) < Duration::from_millis(200),
        "{found:?}"
    );

    let mut stage = Stage::recording(Duration::from_secs(60)).await;
    stage.say(Duration::from_secs(1), 0..0).await;
    stage.peer.connection.transport.close();
    stage.peer.run_for(Duration::from_millis(100)).await;
    stage.caller.until("/janus", "hangup").await;
    let state = stage.server.state(&stage.caller).await;
    assert_eq!(state["state"], "idle");
    let deadline = Instant::now() + Duration::from_secs(20);
    while length(&stage.file()) < Duration::from_millis(900) {
        assert!(Instant::now() < deadline, "{:?}", length(&stage.file()));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
