//! A server that records is killed at any moment: each of its files plays to within 2 s of that.
//! Without ffprobe the test is skipped, and says so.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

mod server;

use std::hash::{BuildHasher, RandomState};
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use portunus_files::{Kind, MediaFile, OpenOptions};
use serde_json::{Value, json};

use server::{PATIENCE, ask, attach, has, metric, start};

/// How often the server is killed; each time all these files are written.
const ROUNDS: usize = 10;

/// The sent tracks, and their recorded forms.
const FILES: [(&str, &str); 5] = [
    ("vp8-opus.webm", "webm"),
    ("vp9-opus.webm", "mp4"),
    ("h264-opus.mp4", "mp4"),
    ("h265-opus.mkv", "mkv"),
    ("av1.webm", "webm"),
];

/// The most that a file may lose.
const LOST: Duration = Duration::from_secs(2);

fn source(name: &str) -> MediaFile {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../files/tests/data");
    MediaFile::open(&data.join(name), &OpenOptions::default()).unwrap()
}

/// A mountpoint for each file, with its place as its number.
fn mountpoints() -> String {
    let mut config = String::new();
    for (id, (name, _)) in (1..).zip(FILES) {
        config +=
            &format!("[[streaming.mountpoint]]\nname = \"m{id}\"\ntype = \"rtp\"\nid = {id}\n");
        for track in source(name).tracks() {
            let kind = match track.codec.kind() {
                Kind::Audio => "audio",
                Kind::Video => "video",
            };
            let codec = track.codec.name().to_lowercase();
            config += &format!(
                "[[streaming.mountpoint.media]]\ntype = \"{kind}\"\nmid = \"{kind}\"\nport = 0\ncodec = \"{codec}\"\n"
            );
        }
    }
    config
}

/// Sends a file over and over, each track to its port, until that is told. `sent` is how far it is,
/// in ms.
fn feed(
    name: &'static str,
    ports: Vec<u16>,
    sent: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
) -> JoinHandle<()> {
    std::thread::spawn(move || {
        let mut file = source(name);
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let begun = Instant::now();
        while !stop.load(Ordering::Relaxed) {
            let packet = file.next().unwrap().unwrap();
            let left = (begun + packet.at).saturating_duration_since(Instant::now());
            std::thread::sleep(left);
            // The server may be gone.
            let _ = socket.send_to(packet.bytes, ("127.0.0.1", ports[packet.track]));
            sent.store(packet.at.as_millis() as u64, Ordering::Relaxed);
        }
    })
}

/// The time of each stream's last packet, and how many frames of it can be decoded.
fn played(path: &Path) -> Vec<(f64, u64)> {
    let output = Command::new("ffprobe")
        .args([
            "-v",
            "error",
            "-count_frames",
            "-of",
            "json",
            "-show_entries",
        ])
        .arg("packet=stream_index,pts_time:stream=index,nb_read_frames")
        .arg(path)
        .output()
        .unwrap();
    assert!(output.status.success(), "{path:?}: {output:?}");
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    let streams = told["streams"].as_array().unwrap().iter();
    let last = |index: &Value| {
        let packets = told["packets"].as_array().unwrap().iter();
        let packets = packets.filter(|it| it["stream_index"] == *index);
        let times = packets.filter_map(|it| it["pts_time"].as_str()?.parse::<f64>().ok());
        times.fold(0.0, f64::max)
    };
    let played = streams.map(|stream| {
        let frames = stream["nb_read_frames"].as_str().unwrap_or("0");
        (last(&stream["index"]), frames.parse().unwrap())
    });
    played.collect()
}

/// A moment between these.
fn any(from: Duration, to: Duration) -> Duration {
    let share = RandomState::new().hash_one(()) as f64 / u64::MAX as f64;
    from + (to - from).mul_f64(share)
}

/// Records until the server is killed; gives the files, and how much of each was sent until then.
fn round(folder: &Path) -> Vec<(PathBuf, Duration)> {
    let (mut server, api) = start(folder, &mountpoints());
    let handle = attach(&api);
    let stop = Arc::new(AtomicBool::new(false));
    let mut ports = Vec::new();
    for (id, (_, format)) in (1..).zip(FILES) {
        let info = ask(&handle, json!({ "request": "info", "id": id }));
        let media = info["info"]["media"].as_array().unwrap();
        let port = |media: &Value| u16::try_from(media["port"].as_u64().unwrap()).unwrap();
        ports.push(media.iter().map(port).collect());
        let name = |media: &Value| json!({ "mid": media["mid"], "filename": format!("m{id}") });
        let record = json!({
            "request": "recording", "action": "start", "id": id, "record_format": format,
            "media": media.iter().map(name).collect::<Vec<_>>(),
        });
        assert_eq!(ask(&handle, record), json!({ "streaming": "ok" }));
    }
    let begun = Instant::now();
    let sent: Vec<Arc<AtomicU64>> = FILES.iter().map(|_| Arc::default()).collect();
    let feeds = FILES.iter().zip(ports).zip(&sent);
    let feeds = feeds
        .map(|(((name, _), ports), sent)| feed(name, ports, Arc::clone(sent), Arc::clone(&stop)));
    let feeds: Vec<_> = feeds.collect();
    while metric(&api, "portunus_recorded_packets_total") == 0 {
        assert!(begun.elapsed() < PATIENCE, "nothing is recorded");
        std::thread::sleep(Duration::from_millis(20));
    }
    // From when there is something that must not be lost.
    let until = begun + any(LOST, LOST * 2);
    std::thread::sleep(until.saturating_duration_since(Instant::now()));
    let sent = sent
        .iter()
        .map(|sent| Duration::from_millis(sent.load(Ordering::Relaxed)));
    let sent: Vec<_> = sent.collect();
    // SIGKILL.
    server.0.kill().unwrap();
    server.0.wait().unwrap();
    stop.store(true, Ordering::Relaxed);
    for feed in feeds {
        feed.join().unwrap();
    }
    let paths = (1..).zip(FILES);
    let paths = paths.map(|(id, (_, format))| folder.join(format!("rec/m{id}.{format}")));
    paths.zip(sent).collect()
}

#[test]
fn each_file_plays_to_where_the_server_was_killed() {
    if !has("ffprobe") {
        return;
    }
    let mut lost = Vec::new();
    for number in 0..ROUNDS {
        let folder = tempfile::tempdir().unwrap();
        for (path, length) in round(folder.path()) {
            let name = path.file_name().unwrap().to_owned();
            let streams = played(&path);
            assert!(!streams.is_empty(), "{name:?} in round {number}");
            for (last, frames) in streams {
                let missing = length.as_secs_f64() - last;
                assert!(frames > 0, "{name:?} in round {number}");
                assert!(
                    missing < LOST.as_secs_f64(),
                    "{name:?} in round {number}: {missing:.3} s of {length:?} are missing"
                );
                lost.push(missing);
            }
        }
    }
    let most = lost.iter().copied().fold(0.0, f64::max);
    println!("{} streams, {most:.3} s missing at most", lost.len());
}
