//! Recordings in other programs: Janus's `janus-pp-rec` converts them, and ffprobe decodes the
//! result. Without these programs, the test is skipped with a message.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

use std::path::{Path, PathBuf};
use std::time::Duration;

use portunus_files::mjr::{FrameWriter, Info, Medium, UnixMicros};
use portunus_files::{Codec, MediaFile, OpenOptions};
use portunus_tests::janus_tools;

/// 2026-01-01
const START: u64 = 1_767_225_600_000_000;

/// Records the first track of a file of `tests/data` into `folder`.
fn record(name: &str, codec: Codec, folder: &Path) -> PathBuf {
    let is_video = matches!(codec, Codec::Vp8 | Codec::Vp9 | Codec::H264);
    let options = OpenOptions {
        audio: !is_video,
        video: is_video,
        looping: false,
    };
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates/files/tests/data");
    let mut file = MediaFile::open(&path.join(name), &options).unwrap();
    let medium = if is_video {
        Medium::Video
    } else {
        Medium::Audio
    };
    let codec = match codec {
        Codec::Opus => "opus",
        Codec::Pcma => "pcma",
        Codec::Vp8 => "vp8",
        Codec::Vp9 => "vp9",
        Codec::H264 => "h264",
        other => panic!("{other:?}"),
    };
    let mut info = Info::new(medium, codec, UnixMicros(START));
    info.description = Some("A test".to_owned());
    let mut out = Vec::new();
    let mut writer = FrameWriter::new(info, &mut out);
    while let Some(packet) = file.next() {
        let packet = packet.unwrap();
        let at = UnixMicros(START + packet.at.as_micros() as u64);
        writer.packet(at, packet.bytes, &mut out).unwrap();
    }
    let path = folder.join(format!("{codec}.mjr"));
    std::fs::write(&path, out).unwrap();
    path
}

#[test]
fn janus_pp_rec_makes_files_that_play() {
    let folder = tempfile::tempdir().unwrap();
    for (name, codec, extension, frames, millis) in [
        ("tone.opus", Codec::Opus, "opus", 50, 1_000),
        ("tone.alaw", Codec::Pcma, "wav", 1, 1_000),
        ("vp8-opus.webm", Codec::Vp8, "webm", 20, 1_000),
        ("vp9-opus.webm", Codec::Vp9, "webm", 20, 1_000),
        ("h264-opus.mp4", Codec::H264, "mp4", 20, 1_000),
    ] {
        let recording = record(name, codec, folder.path());
        let Some(made) = janus_tools::convert(&recording, extension) else {
            return;
        };
        let Some(decoded) = janus_tools::decode(&made) else {
            return;
        };
        println!("{name}: {decoded:?}");
        assert!(decoded.frames >= frames, "{name}: {decoded:?}");
        let difference = decoded.duration.abs_diff(Duration::from_millis(millis));
        assert!(
            difference < Duration::from_millis(150),
            "{name}: {decoded:?}"
        );
    }
}

#[test]
fn janus_pp_rec_makes_subtitles_of_messages() {
    let folder = tempfile::tempdir().unwrap();
    let mut out = Vec::new();
    let info = Info::new(Medium::Data, "text", UnixMicros(START));
    let mut writer = FrameWriter::new(info, &mut out);
    for (millis, text) in [(500, "hello"), (2_500, "gr\u{fc}\u{df}e"), (4_000, "bye")] {
        let at = UnixMicros(START + millis * 1_000);
        writer.message(at, text.as_bytes(), &mut out).unwrap();
    }
    let recording = folder.path().join("chat.mjr");
    std::fs::write(&recording, out).unwrap();
    let Some(target) = janus_tools::convert(&recording, "srt") else {
        return;
    };
    let subtitles = std::fs::read_to_string(target).unwrap();
    assert!(subtitles.contains("gr\u{fc}\u{df}e"), "{subtitles}");
    assert!(subtitles.contains("00:00:02.500 --> "), "{subtitles}");
}
