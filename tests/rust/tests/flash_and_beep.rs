//! The recording of a source whose pictures arrive later than its sound, over real sockets. In the
//! file, both have the time of their capture by the sender's clock.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::cast_possible_truncation,
    reason = "a test fails by a panic"
)]

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use portunus_core::Plugin;
use portunus_core::record::{Recorder, RecorderConfig};
use portunus_files::{MediaFile, OpenOptions};
use portunus_rtp::Header;
use portunus_streaming::{Streaming, StreamingConfig};
use portunus_tests::Server;
use serde_json::json;
use tokio::net::UdpSocket;
use tokio::time::{Instant, sleep_until};

/// The length of the recording.
const LENGTH: Duration = Duration::from_secs(11);
/// The delay of pictures from their capture.
const LATER: Duration = Duration::from_millis(150);
/// The rate of the sender's clock: 200 ppm too fast.
const RATE: f64 = 1.0 + 200e-6;
/// The largest difference between picture and sound in the file, in ms.
const APART: f64 = 20.0;
/// The difference is checked from then on. Until the first report, pictures were placed by their
/// arrival, and that error decreases by 20 ms per second.
const SETTLED: Duration = Duration::from_secs(8);

const SOUND: Stream = Stream {
    ssrc: 1,
    pt: 111,
    clock: 48_000.0,
};
const PICTURE: Stream = Stream {
    ssrc: 2,
    pt: 96,
    clock: 90_000.0,
};

#[derive(Debug, Clone, Copy)]
struct Stream {
    ssrc: u32,
    pt: u8,
    clock: f64,
}

impl Stream {
    /// Returns the timestamp of this time of capture after the start.
    fn timestamp(self, captured: Duration) -> u32 {
        (captured.as_secs_f64() * RATE * self.clock) as u32
    }

    fn packet(self, sequence: u16, captured: Duration, payload: &[u8]) -> Vec<u8> {
        let marker = 0x80;
        let mut packet = vec![0x80, self.pt | marker];
        packet.extend(sequence.to_be_bytes());
        packet.extend(self.timestamp(captured).to_be_bytes());
        packet.extend(self.ssrc.to_be_bytes());
        packet.extend(payload);
        packet
    }

    /// Returns a sender report (RFC 3550 section 6.4.1).
    fn report(self, now: Duration) -> Vec<u8> {
        const STARTED: u64 = 3_900_000_000;
        let ntp = (STARTED << 32) + (now.as_secs_f64() * RATE * 4_294_967_296.0) as u64;
        let mut report = vec![0x80, 200, 0, 6];
        report.extend(self.ssrc.to_be_bytes());
        report.extend(ntp.to_be_bytes());
        report.extend(self.timestamp(now).to_be_bytes());
        report.extend([0; 8]);
        report
    }
}

#[derive(Debug, Clone, Copy)]
enum Send {
    Sound(u16),
    Picture(u16),
    Reports,
}

/// Returns the packets with their times.
fn schedule() -> Vec<(Duration, Send)> {
    let ms = Duration::from_millis;
    let count = |every: u64| 0..LENGTH.as_millis() as u64 / every;
    let sound = count(20).map(|n| (ms(n * 20), Send::Sound(n as u16)));
    let pictures = count(40).map(|n| (ms(n * 40) + LATER, Send::Picture(n as u16)));
    let reports = count(1_000).map(|n| (ms(n * 1_000 + 200), Send::Reports));
    let mut all: Vec<_> = sound.chain(pictures).chain(reports).collect();
    all.sort_by_key(|it| it.0);
    all
}

/// Returns whether a packet is lost: one in fifty, except keyframes.
fn is_lost(number: u16) -> bool {
    number % 50 == 33
}

/// Reads the numbers in the packets of a file, with their times in ms, of sound and of pictures.
fn read(path: &std::path::Path) -> [HashMap<u16, f64>; 2] {
    let options = OpenOptions {
        looping: false,
        ..OpenOptions::default()
    };
    let mut file = MediaFile::open(path, &options).unwrap();
    let mut found = [HashMap::new(), HashMap::new()];
    while let Some(packet) = file.next() {
        let packet = packet.unwrap();
        let payload = Header::parse(packet.bytes).unwrap().payload(packet.bytes);
        // The replacement of lost sound is shorter.
        if let [.., 7, high, low] = *payload {
            let number = u16::from_be_bytes([high, low]);
            found[packet.track].insert(number, packet.presented.as_secs_f64() * 1_000.0);
        }
    }
    found
}

#[tokio::test]
async fn picture_and_sound_are_together_in_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let recorder = Recorder::new(RecorderConfig {
        dir: Some(folder.path().to_owned()),
        keep_free_mb: 0,
        ..RecorderConfig::default()
    });
    let with = recorder.clone();
    let server = Server::start_with(1, async |media| {
        let plugin = Streaming::start(StreamingConfig::default(), media, with).await;
        Arc::new(plugin.unwrap()) as Arc<dyn Plugin>
    })
    .await;
    let mut caller = server.attach("janus.plugin.streaming").await;
    let media = json!([
        { "type": "audio", "mid": "a", "port": 0, "rtcpport": 0, "codec": "opus" },
        { "type": "video", "mid": "v", "port": 0, "rtcpport": 0, "codec": "vp8" },
    ]);
    let create = json!({ "request": "create", "type": "rtp", "id": 7, "media": media });
    let created = caller.manage(create).await;
    let port = |n: usize, name: &str| {
        let port = created["stream"]["ports"][n][name].as_u64();
        u16::try_from(port.unwrap_or_else(|| panic!("{created}"))).unwrap()
    };
    let record = |action: &str| {
        json!({
            "request": "recording", "action": action, "id": 7, "record_format": "webm",
            "media": [{ "mid": "a", "filename": "both" }, { "mid": "v", "filename": "both" }],
        })
    };
    assert_eq!(caller.manage(record("start")).await["streaming"], "ok");

    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let begun = Instant::now();
    for (at, what) in schedule() {
        sleep_until(begun + at).await;
        let (stream, number, every, place) = match what {
            Send::Sound(number) => (SOUND, number, 20, 0),
            Send::Picture(number) => (PICTURE, number, 40, 1),
            Send::Reports => {
                for (place, stream) in [SOUND, PICTURE].into_iter().enumerate() {
                    let to = ("127.0.0.1", port(place, "rtcp_port"));
                    socket
                        .send_to(&stream.report(begun.elapsed()), to)
                        .await
                        .unwrap();
                }
                continue;
            }
        };
        let is_keyframe = place == 1 && number.is_multiple_of(12);
        if is_lost(number) && !is_keyframe {
            continue;
        }
        let mut payload = match place {
            0 => vec![0xfc, 1],
            _ => vec![
                0x10,
                u8::from(!is_keyframe),
                0,
                0,
                0x9d,
                1,
                0x2a,
                64,
                0,
                48,
                0,
            ],
        };
        let [high, low] = number.to_be_bytes();
        payload.extend([7, high, low]);
        let captured = Duration::from_millis(u64::from(number) * every);
        let packet = stream.packet(number, captured, &payload);
        let to = ("127.0.0.1", port(place, "port"));
        socket.send_to(&packet, to).await.unwrap();
    }
    assert_eq!(caller.manage(record("stop")).await["streaming"], "ok");
    recorder.finished().await;

    let [sound, pictures] = read(&folder.path().join("both.webm"));
    let settled = (SETTLED.as_millis() / 40) as u16;
    let apart: Vec<f64> = pictures
        .iter()
        .filter(|(number, _)| **number >= settled)
        .filter_map(|(number, shown)| Some(shown - sound.get(&(number * 2))?))
        .collect();
    let most = apart
        .iter()
        .copied()
        .fold(0.0, |most: f64, it| most.max(it.abs()));
    println!(
        "{} pictures, {most:.1} ms apart from their sound at most",
        apart.len()
    );
    assert!(apart.len() > 50, "{} pictures", apart.len());
    assert!(most <= APART, "{most} ms");
}
