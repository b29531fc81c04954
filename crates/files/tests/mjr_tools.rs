//! Recordings as others read them: Janus's `janus-pp-rec` makes files of them, and ffprobe decodes those. Without
//! these programs the test is skipped, and says so.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic
)]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use portunus_files::mjr::{FrameWriter, Info, Medium, UnixMicros};
use portunus_files::{Codec, MediaFile, OpenOptions};

/// 2026-01-01
const START: u64 = 1_767_225_600_000_000;

fn has(program: &str) -> bool {
    let found = Command::new(program).arg("-h").output().is_ok();
    if !found {
        println!("skipped: there is no {program}");
    }
    found
}

/// Records the first track of a file of `tests/data` into `folder`.
fn record(name: &str, codec: Codec, folder: &Path) -> PathBuf {
    let is_video = matches!(codec, Codec::Vp8 | Codec::Vp9 | Codec::H264);
    let options = OpenOptions {
        audio: !is_video,
        video: is_video,
        looping: false,
    };
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
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

/// Converts a recording; the frames of the result that can be decoded, and how long it is.
fn convert(recording: &Path, extension: &str) -> (usize, Duration) {
    let target = recording.with_extension(extension);
    let converted = Command::new("janus-pp-rec")
        .arg(recording)
        .arg(&target)
        .output()
        .unwrap();
    let log = String::from_utf8_lossy(&converted.stdout);
    assert!(converted.status.success(), "{log}");
    let probe = |arguments: &[&str]| {
        let probed = Command::new("ffprobe")
            .args(["-v", "error", "-of", "csv=p=0"])
            .args(arguments)
            .arg(&target)
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&probed.stderr);
        assert!(errors.trim().is_empty(), "{errors}");
        String::from_utf8(probed.stdout).unwrap()
    };
    let frames = probe(&["-count_frames", "-show_entries", "stream=nb_read_frames"]);
    let seconds = probe(&["-show_entries", "format=duration"]);
    let seconds: f64 = seconds.trim().parse().expect(&seconds);
    (
        frames.trim().parse().expect(&frames),
        Duration::from_secs_f64(seconds),
    )
}

#[test]
fn janus_pp_rec_makes_files_that_play() {
    if !has("janus-pp-rec") || !has("ffprobe") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for (name, codec, extension, frames, millis) in [
        ("tone.opus", Codec::Opus, "opus", 50, 1_000),
        ("tone.alaw", Codec::Pcma, "wav", 1, 1_000),
        ("vp8-opus.webm", Codec::Vp8, "webm", 20, 1_000),
        ("vp9-opus.webm", Codec::Vp9, "webm", 20, 1_000),
        ("h264-opus.mp4", Codec::H264, "mp4", 20, 1_000),
    ] {
        let recording = record(name, codec, folder.path());
        let (decoded, duration) = convert(&recording, extension);
        println!("{name}: {decoded} frames, {duration:?}");
        assert!(decoded >= frames, "{name}: {decoded} frames");
        let difference = duration.abs_diff(Duration::from_millis(millis));
        assert!(
            difference < Duration::from_millis(150),
            "{name}: {duration:?}"
        );
    }
}

#[test]
fn janus_pp_rec_makes_subtitles_of_messages() {
    if !has("janus-pp-rec") {
        return;
    }
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
    let target = recording.with_extension("srt");
    let converted = Command::new("janus-pp-rec")
        .arg(&recording)
        .arg(&target)
        .output()
        .unwrap();
    assert!(converted.status.success());
    let subtitles = std::fs::read_to_string(target).unwrap();
    assert!(subtitles.contains("gr\u{fc}\u{df}e"), "{subtitles}");
    assert!(subtitles.contains("00:00:02.500 --> "), "{subtitles}");
}
