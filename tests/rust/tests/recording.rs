//! Recordings, end to end: media of real encoders arrives over UDP or a PeerConnection, is
//! recorded, converted by Janus's `janus-pp-rec`, and decoded by ffprobe. Without these two
//! programs, only the recordings themselves are checked, with a message.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use portunus_core::Plugin;
use portunus_core::record::{Recorder, RecorderConfig};
use portunus_echotest::EchoTest;
use portunus_files::manifest::Manifest;
use portunus_files::mjr::{FrameReader, Info};
use portunus_files::{MediaFile, OpenOptions};
use portunus_rtp::Header;
use portunus_sdp::{CodecName, Description, Direction, Kind, MediaOffer, OfferOptions};
use portunus_streaming::{Streaming, StreamingConfig};
use portunus_tests::{Caller, Peer, Server, janus_tools};
use portunus_videoroom::{VideoRoom, VideoRoomConfig};
use serde_json::json;
use tempfile::TempDir;
use tokio::net::UdpSocket;
use tokio::time::{Instant, sleep_until};

/// The mark of the upper encoding of simulcast.
const MARK: u8 = 0x40;

/// The length of the recording. The file is played repeatedly.
const LENGTH: Duration = Duration::from_millis(2_500);

fn recorder() -> (TempDir, Recorder) {
    let folder = tempfile::tempdir().unwrap();
    let recorder = Recorder::new(RecorderConfig {
        dir: Some(folder.path().to_owned()),
        temporary: "part".to_owned(),
        keep_free_mb: 0,
        ..RecorderConfig::default()
    });
    (folder, recorder)
}

/// Returns a file with VP8 and Opus, which loops.
fn source() -> MediaFile {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates/files/tests/data");
    let options = OpenOptions {
        looping: true,
        ..OpenOptions::default()
    };
    MediaFile::open(&data.join("vp8-opus.webm"), &options).unwrap()
}

/// Passes on packets of the source when they are due, with the kind of their track, for [`LENGTH`].
async fn play(mut send: impl AsyncFnMut(Kind, &[u8])) {
    let mut file = source();
    let kinds: Vec<_> = file
        .tracks()
        .iter()
        .map(|track| track.codec.kind())
        .collect();
    let start = Instant::now();
    loop {
        let packet = file.next().unwrap().unwrap();
        if packet.at > LENGTH {
            return;
        }
        sleep_until(start + packet.at).await;
        let kind = match kinds[packet.track] {
            portunus_files::Kind::Audio => Kind::Audio,
            portunus_files::Kind::Video => Kind::Video,
        };
        send(kind, packet.bytes).await;
    }
}

/// Reads a recorded file: its header and its packets.
fn read(path: &Path) -> (Info, Vec<Vec<u8>>) {
    let mut reader = FrameReader::new();
    reader.push(&std::fs::read(path).unwrap());
    let mut frames = Vec::new();
    while let Some(frame) = reader.next().unwrap() {
        frames.push(frame.bytes.to_vec());
    }
    reader.finish().unwrap();
    (reader.info().unwrap().clone(), frames)
}

/// Returns all files below `folder`, by name.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// Converts a recording, and checks its length and the number of decoded frames.
fn check_playable(recording: &Path, extension: &str, frames: usize) {
    let Some(file) = janus_tools::convert(recording, extension) else {
        return;
    };
    let Some(decoded) = janus_tools::decode(&file) else {
        return;
    };
    assert!(decoded.frames >= frames, "{decoded:?} of {frames}");
    let difference = decoded.duration.abs_diff(LENGTH);
    assert!(difference < Duration::from_millis(400), "{decoded:?}");
}

/// Checks that a recording is one stream without missing packets.
fn check_stream(recording: &Path, codec: &str) {
    let (info, packets) = read(recording);
    assert_eq!(info.codec, codec);
    let headers: Vec<Header> = packets
        .iter()
        .map(|packet| Header::parse(packet).unwrap())
        .collect();
    for pair in headers.windows(2) {
        assert_eq!(pair[1].ssrc, pair[0].ssrc);
        assert_eq!(pair[1].sequence, pair[0].sequence.wrapping_add(1));
    }
}

/// Checks the recordings of [`play`]: sound and picture.
fn check_recordings(sound: &Path, picture: &Path) {
    check_stream(sound, "opus");
    check_stream(picture, "vp8");
    check_playable(sound, "opus", 120);
    check_playable(picture, "webm", 60);
}

#[tokio::test]
async fn a_mountpoint_is_recorded() {
    let (folder, recorder) = recorder();
    let with = recorder.clone();
    let server = Server::start_with(2, async |media| {
        let plugin = Streaming::start(StreamingConfig::default(), media, with).await;
        Arc::new(plugin.unwrap()) as Arc<dyn Plugin>
    })
    .await;
    let mut caller = server.attach("janus.plugin.streaming").await;
    let created = caller
        .manage(json!({
            "request": "create", "type": "rtp", "id": 7, "media": [
                { "type": "audio", "mid": "a", "port": 0, "codec": "opus" },
                { "type": "video", "mid": "v", "port": 0, "codec": "vp8" },
            ],
        }))
        .await;
    let port = |n: usize| {
        let port = created["stream"]["ports"][n]["port"].as_u64();
        u16::try_from(port.unwrap()).unwrap()
    };
    let (audio, video) = (port(0), port(1));
    let start = json!({
        "request": "recording", "action": "start", "id": 7, "media": [
            { "mid": "a", "filename": "sound" }, { "mid": "v", "filename": "picture" },
        ],
    });
    assert_eq!(caller.manage(start).await["streaming"], "ok");
    assert!(folder.path().join("sound.mjr.part").exists());

    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    play(async |kind, packet| {
        let port = if kind == Kind::Audio { audio } else { video };
        socket.send_to(packet, ("127.0.0.1", port)).await.unwrap();
    })
    .await;
    let stop = json!({
        "request": "recording", "action": "stop", "id": 7, "media": [
            { "mid": "a" }, { "mid": "v" },
        ],
    });
    assert_eq!(caller.manage(stop).await["streaming"], "ok");
    recorder.finished().await;
    let file = |name| folder.path().join(name);
    check_recordings(&file("sound.mjr"), &file("picture.mjr"));
    assert_eq!(recorder.totals().dropped, 0);
}

#[tokio::test]
async fn simulcast_is_one_stream_of_the_best_that_there_is() {
    let (folder, recorder) = recorder();
    let with = recorder.clone();
    let server = Server::start_with(1, async |media| {
        let plugin = Streaming::start(StreamingConfig::default(), media, with).await;
        Arc::new(plugin.unwrap()) as Arc<dyn Plugin>
    })
    .await;
    let mut caller = server.attach("janus.plugin.streaming").await;
    let created = caller
        .manage(json!({
            "request": "create", "type": "rtp", "id": 7, "media": [
                { "type": "video", "mid": "v", "port": 0, "port2": 0, "codec": "vp8",
                  "simulcast": true },
            ],
        }))
        .await;
    let ports = &created["stream"]["ports"][0];
    let port = |name: &str| u16::try_from(ports[name].as_u64().unwrap()).unwrap();
    let (low, high) = (port("port"), port("port_2"));
    let record = |action: &str| {
        json!({ "request": "recording", "action": action, "id": 7,
                "media": [{ "mid": "v", "filename": "layers" }] })
    };
    assert_eq!(caller.manage(record("start")).await["streaming"], "ok");
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let start = Instant::now();
    play(async |kind, packet| {
        if kind != Kind::Video {
            return;
        }
        socket.send_to(packet, ("127.0.0.1", low)).await.unwrap();
        if start.elapsed() > LENGTH / 2 {
            let mut packet = packet.to_vec();
            packet[11] ^= 0xff;
            // A bit of the VP8 descriptor without a meaning (RFC 7741 section 4.2).
            packet[12] |= MARK;
            socket.send_to(&packet, ("127.0.0.1", high)).await.unwrap();
        }
    })
    .await;
    assert_eq!(caller.manage(record("stop")).await["streaming"], "ok");
    recorder.finished().await;
    let path = folder.path().join("layers.mjr");
    check_stream(&path, "vp8");
    let (_, packets) = read(&path);
    let marks: Vec<bool> = packets.iter().map(|it| it[12] & MARK != 0).collect();
    assert_eq!((marks.first(), marks.last()), (Some(&false), Some(&true)));
    // The first frames show which encodings flow, and recording starts with the next keyframe.
    let file = janus_tools::convert(&path, "webm");
    if let Some(decoded) = file.and_then(|file| janus_tools::decode(&file)) {
        assert!(decoded.frames >= 40, "{decoded:?}");
    }
}

fn description() -> Description {
    let mut audio = MediaOffer::new(Kind::Audio, Direction::SendOnly);
    audio.add_codec(CodecName::Opus, None, None);
    let mut video = MediaOffer::new(Kind::Video, Direction::SendOnly);
    video.add_codec(CodecName::Vp8, None, None);
    Description::offer(OfferOptions {
        media: vec![audio, video],
        ..Default::default()
    })
}

/// Publishes with `body`, and connects.
async fn publish(server: &Server, package: &str, body: serde_json::Value) -> (Caller, Peer) {
    let mut caller = server.attach(package).await;
    let mut peer = Peer::offering().await;
    let offer = peer.offer(description());
    caller.message(body, Some(("offer", &offer))).await;
    let answered = caller.until("/jsep/type", "answer").await;
    peer.accept(answered["jsep"]["sdp"].as_str().unwrap());
    peer.connect().await;
    caller.until("/janus", "webrtcup").await;
    (caller, peer)
}

/// Sends the source's packets by a PeerConnection.
async fn play_to(peer: &mut Peer) {
    play(async |kind, packet| {
        let header = Header::parse(packet).unwrap();
        let line = usize::from(kind == Kind::Video);
        peer.marker = header.marker;
        peer.send(line, header.timestamp, header.payload(packet))
            .await;
    })
    .await;
}

#[tokio::test]
async fn a_publisher_is_recorded_until_it_leaves() {
    let (folder, recorder) = recorder();
    let own = recorder.clone();
    let plugin = async move |media| {
        let room = VideoRoom::new(VideoRoomConfig::default(), media, own);
        Arc::new(room.unwrap()) as Arc<dyn Plugin>
    };
    let server = Server::recording_with(2, recorder.clone(), plugin).await;
    let package = "janus.plugin.videoroom";
    let create = json!({ "request": "create", "room": 7, "record": true, "rec_dir": "room" });
    server.attach(package).await.manage(create).await;
    let join = json!({
        "request": "joinandconfigure", "room": 7, "ptype": "publisher", "id": 1, "filename": "al",
    });
    let (mut caller, mut peer) = publish(&server, package, join).await;
    play_to(&mut peer).await;
    let leave = json!({ "request": "leave" });
    caller.message(leave, None).await;
    caller.until("/plugindata/data/leaving", "ok").await;
    recorder.finished().await;
    let mut files = files(&folder.path().join("room"));
    files.retain(|file| file.extension().is_some_and(|it| it == "mjr"));
    let [sound, picture] = files.as_slice() else {
        panic!("{files:?}");
    };
    assert!(sound.ends_with("al-audio-0.mjr") && picture.ends_with("al-video-1.mjr"));
    check_recordings(sound, picture);
}

#[tokio::test]
async fn an_echo_is_recorded_until_its_client_is_gone() {
    let (folder, recorder) = recorder();
    let server = Server::recording(1, recorder.clone(), Arc::new(EchoTest));
    let body = json!({ "record": true, "filename": "echo" });
    let (mut caller, mut peer) = publish(&server, "janus.plugin.echotest", body).await;
    play_to(&mut peer).await;
    caller.request("detach", json!({})).await;
    recorder.finished().await;
    let file = |name| folder.path().join(name);
    check_recordings(&file("echo-audio.mjr"), &file("echo-video.mjr"));
}

#[tokio::test]
async fn an_echo_is_one_file_that_plays() {
    for (format, codecs) in [
        ("webm", &["opus", "vp8"][..]),
        ("mkv", &["opus", "vp8"]),
        ("opus", &["opus"]),
    ] {
        let (folder, recorder) = recorder();
        let server = Server::recording(1, recorder.clone(), Arc::new(EchoTest));
        let body = json!({ "record": true, "filename": "echo", "record_format": format });
        let (mut caller, mut peer) = publish(&server, "janus.plugin.echotest", body).await;
        play_to(&mut peer).await;
        let stop = json!({ "record": false });
        caller.message(stop, None).await;
        let data = "/plugindata/data";
        let event = caller
            .until(&format!("{data}/event"), "recording_done")
            .await;
        let name = format!("echo.{format}");
        assert_eq!(event.pointer(&format!("{data}/file")), Some(&json!(name)));
        recorder.finished().await;
        let file = folder.path().join(&name);
        let manifest = std::fs::read(folder.path().join("echo.json")).unwrap();
        let manifest = Manifest::read(&manifest).unwrap();
        assert_eq!(manifest.participants[0].files[0].file, name);
        let Some((streams, duration)) = janus_tools::decode_all(&file) else {
            continue;
        };
        let found: Vec<_> = streams.iter().map(|(codec, _)| codec.as_str()).collect();
        assert_eq!(found, codecs);
        for (codec, frames) in &streams {
            let least = if codec == "opus" { 120 } else { 60 };
            assert!(*frames >= least, "{format}: {streams:?}");
        }
        let difference = duration.abs_diff(LENGTH);
        assert!(difference < Duration::from_millis(400), "{duration:?}");
    }
}

/// Returns the payloads of an Opus file's packets, in order: the numbers of [`numbered`], without
/// replacements.
fn numbers(path: &Path) -> Vec<u32> {
    let options = OpenOptions {
        looping: false,
        ..OpenOptions::default()
    };
    let mut file = MediaFile::open(path, &options).unwrap();
    let mut numbers = Vec::new();
    while let Some(packet) = file.next() {
        let packet = packet.unwrap();
        let header = Header::parse(packet.bytes).unwrap();
        let number = header.payload(packet.bytes).get(1..5);
        numbers.extend(number.map(|it| u32::from_be_bytes(it.try_into().unwrap())));
    }
    numbers
}

/// Returns 20 ms of Opus with a number in them.
fn numbered(number: u32) -> Vec<u8> {
    let mut payload = vec![0xfc];
    payload.extend(number.to_be_bytes());
    payload.extend([0; 40]);
    payload
}

#[tokio::test]
async fn lost_sound_is_asked_for_again_and_is_in_the_file_in_its_place() {
    const PACKETS: u32 = 75;
    for format in ["webm", "opus"] {
        let (folder, recorder) = recorder();
        let server = Server::recording(1, recorder.clone(), Arc::new(EchoTest));
        let mut caller = server.attach("janus.plugin.echotest").await;
        let mut peer = Peer::offering().await;
        let mut sound = MediaOffer::new(Kind::Audio, Direction::SendOnly);
        sound.add_codec(CodecName::Opus, None, None);
        let mut description = Description::offer(OfferOptions {
            media: vec![sound],
            ..Default::default()
        });
        // Like browsers on request of applications.
        let codec = &mut description.media[0].codecs[0];
        codec.feedback.push("nack".to_owned());
        let offer = peer.offer(description);
        let body = json!({ "record": true, "filename": "lossy", "record_format": format });
        caller.message(body, Some(("offer", &offer))).await;
        let answered = caller.until("/jsep/type", "answer").await;
        peer.accept(answered["jsep"]["sdp"].as_str().unwrap());
        peer.connect().await;
        caller.until("/janus", "webrtcup").await;

        // Each fifth packet is lost, and sometimes two in a row.
        let is_lost = |number: u32| number % 5 == 3 || number % 25 == 4;
        let first = peer.next_number(0);
        let begun = Instant::now();
        let due = |number: u32| begun + Duration::from_millis(20) * number;
        let mut expected: BTreeSet<u32> = (0..PACKETS).filter(|it| !is_lost(*it)).collect();
        // At the end, retransmission of the missing packets is requested.
        for number in 0..PACKETS + 10 {
            match is_lost(number) {
                _ if number >= PACKETS => {}
                true => peer.skip(0, 1),
                false => peer.send(0, number * 960, &numbered(number)).await,
            }
            let left = due(number + 1).saturating_duration_since(Instant::now());
            peer.run_for(left).await;
            for (_, seq) in std::mem::take(&mut peer.asked) {
                let number = u32::try_from(seq - first).unwrap();
                assert!(is_lost(number), "{number} was there");
                peer.send_late(0, seq, number * 960, &numbered(number))
                    .await;
                // The recorder waits for a second.
                if Instant::now() < due(number) + Duration::from_millis(500) {
                    expected.insert(number);
                }
            }
        }
        assert!(expected.iter().any(|number| is_lost(*number)));
        caller.message(json!({ "record": false }), None).await;
        recorder.finished().await;
        let found = numbers(&folder.path().join(format!("lossy.{format}")));
        assert!(found.is_sorted(), "{format}: {found:?}");
        let found = BTreeSet::from_iter(found);
        assert!(expected.is_subset(&found), "{format}: {found:?}");
    }
}
