//! `portunus recordings` as people use it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by a panic"
)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use portunus_files::manifest::{self, Manifest};
use portunus_files::mjr::UnixMicros;
use portunus_files::opus::{OggOpusWriter, OpusHead, OpusTags, OpusTime};
use serde_json::Value;
use tempfile::TempDir;

/// When the recordings of these tests began, in µs.
const STARTED: u64 = 1_764_000_000_000_000;

fn portunus(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_portunus"));
    command
        .current_dir(folder)
        .arg("recordings")
        .args(arguments);
    command.output().unwrap()
}

fn said(output: &Output) -> String {
    let text = [&output.stdout[..], &output.stderr].concat();
    String::from_utf8(text).unwrap()
}

/// Runs it, and returns what it says; it has to succeed.
fn done(folder: &Path, arguments: &[&str]) -> String {
    let output = portunus(folder, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", said(&output));
    said(&output)
}

/// Runs it; it has to fail with this status and these words.
fn refused(folder: &Path, arguments: &[&str], status: i32, words: &[&str]) {
    let output = portunus(folder, arguments);
    let said = said(&output);
    assert_eq!(output.status.code(), Some(status), "{arguments:?}: {said}");
    for word in words {
        assert!(said.contains(word), "{arguments:?}: {said}");
    }
}

/// A file of the tests of `crates/files`, in a folder of its own.
fn data(name: &str) -> PathBuf {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../files/tests/data");
    data.join(name)
}

/// A folder with recordings that Janus made.
fn of_janus() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(data("janus")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|it| it == "mjr") {
            std::fs::copy(&path, folder.path().join(path.file_name().unwrap())).unwrap();
        }
    }
    folder
}

/// Makes a file old enough for a repair.
fn ffmpeg(arguments: &[&str]) -> bool {
    let Ok(output) = Command::new("ffmpeg")
        .args(["-v", "error", "-y"])
        .args(arguments)
        .output()
    else {
        eprintln!("skipped: ffmpeg is not installed");
        return false;
    };
    assert!(output.status.success(), "{}", said(&output));
    true
}

#[test]
fn files_are_listed_with_what_is_in_them() {
    let folder = of_janus();
    let folder = folder.path();
    std::fs::copy(data("vp8-opus.webm"), folder.join("other.webm")).unwrap();
    std::fs::write(folder.join("broken.mjr"), b"MJR00002").unwrap();
    std::fs::write(folder.join("notes.txt"), b"nothing").unwrap();
    let text = done(folder, &["list"]);
    let line = |name: &str| text.lines().find(|line| line.starts_with(name)).unwrap();
    assert!(line("pcmu-audio.mjr").contains("pcmu") && line("pcmu-audio.mjr").contains("complete"));
    assert!(line("other.webm").contains("vp8+opus") || line("other.webm").contains("opus+vp8"));
    assert!(line("broken.mjr").contains("unreadable"), "{text}");
    assert!(!text.contains("notes.txt"));
    let json: Value = serde_json::from_str(&done(folder, &["list", ".", "--json"])).unwrap();
    let files = json["files"].as_array().unwrap();
    let pcmu = files
        .iter()
        .find(|it| it["file"] == "pcmu-audio.mjr")
        .unwrap();
    assert_eq!(
        (&pcmu["format"], &pcmu["codecs"][0]),
        (&"mjr".into(), &"pcmu".into())
    );
    refused(
        folder,
        &["list", "nowhere"],
        1,
        &["nowhere", "No such file"],
    );
}

#[test]
fn a_file_is_examined() {
    let folder = of_janus();
    let folder = folder.path();
    let text = done(folder, &["info", "vp8-opus-video.mjr"]);
    assert!(text.contains(r#"header: {"t":"v","c":"vp8""#), "{text}");
    assert!(
        text.contains("video vp8") && text.contains("0 missing"),
        "{text}"
    );
    let webm = data("vp8-opus.webm");
    let text = done(
        folder,
        &["info", "--json", "h264-video.mjr", webm.to_str().unwrap()],
    );
    let json: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json[0]["header"]["c"], "h264");
    assert_eq!(json[1]["tracks"][0]["width"], 160);
    std::fs::write(folder.join("broken.mjr"), b"MJR0000").unwrap();
    refused(
        folder,
        &["info", "broken.mjr", "pcmu-audio.mjr"],
        1,
        &["broken.mjr", "audio pcmu"],
    );
}

#[test]
fn recordings_of_janus_become_files_that_play() {
    let folder = of_janus();
    let folder = folder.path();
    for (inputs, out) in [
        (
            &["vp8-opus-audio.mjr", "vp8-opus-video.mjr"][..],
            "both.webm",
        ),
        (
            &[
                "vp8-opus-audio.mjr",
                "vp8-opus-video.mjr",
                "vp8-opus-data.mjr",
            ],
            "both.mkv",
        ),
        (&["h264-video.mjr"], "picture.mp4"),
        (&["vp9-video.mjr"], "picture.webm"),
        (&["vp8-opus-audio.mjr"], "sound.opus"),
        (&["vp8-opus-audio.mjr"], "sound.wav"),
        (&["pcmu-audio.mjr"], "telephone.wav"),
        (&["vp8-opus-data.mjr"], "chat.srt"),
        (
            &["vp8-opus-audio.mjr", "vp8-opus-video.mjr"],
            "packets.pcap",
        ),
    ] {
        let text = done(folder, &[&["convert"], inputs, &[out]].concat());
        assert!(text.starts_with(out), "{text}");
        assert!(folder.join(out).metadata().unwrap().len() > 60);
        if !out.ends_with("srt") && !out.ends_with("pcap") {
            let out = folder.join(out);
            ffmpeg(&["-i", out.to_str().unwrap(), "-f", "null", "-"]);
        }
    }
    let wav = hound::WavReader::open(folder.join("sound.wav")).unwrap();
    assert_eq!((wav.spec().sample_rate, wav.spec().channels), (48_000, 2));
    assert!(wav.duration() > 48_000);
    let chat = std::fs::read_to_string(folder.join("chat.srt")).unwrap();
    assert!(chat.contains("How are you?"));
}

#[test]
fn an_empty_recording_keeps_the_others_from_nothing() {
    let folder = of_janus();
    let folder = folder.path();
    // Files of a publisher who was silent.
    std::fs::write(folder.join("vp8-opus-chat.mjr"), b"MJR00002").unwrap();
    let inputs = ["convert", "vp8-opus-audio.mjr", "vp8-opus-chat.mjr"];
    let text = done(folder, &[&inputs[..], &["both.webm"]].concat());
    assert!(
        text.contains("vp8-opus-chat.mjr: there is nothing in it"),
        "{text}"
    );
    refused(
        folder,
        &["convert", "vp8-opus-chat.mjr", "none.webm"],
        1,
        &["nothing to convert"],
    );
}

#[test]
fn what_cannot_be_converted_is_told() {
    let folder = of_janus();
    let folder = folder.path();
    std::fs::write(folder.join("taken.webm"), b"mine").unwrap();
    std::fs::write(folder.join("empty.mjr"), b"").unwrap();
    std::fs::copy(data("vp8-opus.webm"), folder.join("plays.webm")).unwrap();
    let whole = std::fs::read(folder.join("pcmu-audio.mjr")).unwrap();
    std::fs::write(folder.join("torn.mjr"), &whole[..whole.len() / 2]).unwrap();
    for (arguments, words) in [
        (
            &["vp9-video.mjr", "taken.webm"][..],
            &["taken.webm", "--force"][..],
        ),
        (&["vp9-video.mjr", "x.avi"], &["x.avi", ".webm"]),
        (&["pcmu-audio.mjr", "x.webm"], &["PCMU", ".mkv"]),
        (&["vp9-video.mjr", "x.wav"], &["no audio"]),
        (&["empty.mjr", "x.webm"], &["empty.mjr"]),
        (&["nowhere.mjr", "x.webm"], &["nowhere.mjr", "No such file"]),
        (&["plays.webm", "x.mp4"], &["plays.webm", "plays as it is"]),
        (&["vp9-video.mjr", "nowhere/x.webm"], &["nowhere/x.webm"]),
    ] {
        refused(folder, &[&["convert"], arguments].concat(), 1, words);
    }
    refused(folder, &["convert", "vp9-video.mjr"], 2, &["Usage"]);
    assert_eq!(std::fs::read(folder.join("taken.webm")).unwrap(), b"mine");
    let text = done(folder, &["convert", "torn.mjr", "torn.wav"]);
    assert!(text.contains("torn.mjr: read up to its damage"), "{text}");
    done(
        folder,
        &["convert", "--force", "vp9-video.mjr", "taken.webm"],
    );
    assert!(!folder.join("x.webm").exists());
}

#[test]
fn torn_files_are_repaired_in_their_place() {
    let folder = of_janus();
    let folder = folder.path();
    let webm = std::fs::read(data("vp8-opus.webm")).unwrap();
    let mjr = std::fs::read(folder.join("vp9-video.mjr")).unwrap();
    for (name, bytes) in [("torn.webm", &webm), ("torn.mjr", &mjr)] {
        std::fs::write(folder.join(name), &bytes[..bytes.len() - 100]).unwrap();
        let held = std::fs::File::open(folder.join(name)).unwrap();
        held.try_lock().unwrap();
        refused(folder, &["repair", name], 1, &[name, "is writing it"]);
        drop(held);
        assert!(done(folder, &["repair", name]).contains("repaired"));
        assert!(done(folder, &["repair", "--force", name]).contains("nothing to repair"));
        let text = done(folder, &["info", name]);
        assert!(!text.contains("incomplete"), "{text}");
    }
    std::fs::write(folder.join("none.webm"), b"\x1a\x45\xdf\xa3").unwrap();
    refused(
        folder,
        &["repair", "--force", "none.webm"],
        1,
        &["none.webm"],
    );
    assert_eq!(std::fs::read(folder.join("none.webm")).unwrap().len(), 4);
}

/// A manifest with a file for each participant.
fn write_manifest(folder: &Path, files: &[(&str, &str, u64, &str)]) -> Manifest {
    let mut manifest = Manifest::new("portunus", "janus.plugin.videoroom", UnixMicros(STARTED));
    manifest.room = Some("1234".to_owned());
    for (id, name, offset_ms, kind) in files {
        let track = manifest::Track {
            track: 1,
            kind: (*kind).to_owned(),
            ..manifest::Track::default()
        };
        let started = STARTED + offset_ms * 1_000;
        let file = manifest::File {
            file: (*name).to_owned(),
            format: name.rsplit('.').next().unwrap().to_owned(),
            part: 1,
            started_us: Some(started),
            offset_ms: Some(*offset_ms as f64),
            duration_ms: 3_000.0,
            tracks: vec![track],
            ..manifest::File::default()
        };
        manifest.participant(id, None).unwrap().files.push(file);
    }
    std::fs::write(folder.join("room.json"), manifest.to_json()).unwrap();
    manifest
}

#[test]
fn a_manifest_leads_to_its_files_and_not_out_of_its_folder() {
    let folder = of_janus();
    let folder = folder.path();
    write_manifest(
        folder,
        &[
            ("ann", "vp8-opus-audio.mjr", 0, "audio"),
            ("ann", "vp8-opus-video.mjr", 0, "video"),
            ("bob", "pcmu-audio.mjr", 0, "audio"),
        ],
    );
    let text = done(folder, &["list"]);
    assert!(text.starts_with("room.json  videoroom 1234"), "{text}");
    refused(
        folder,
        &["convert", "room.json", "x.webm"],
        1,
        &["--participant ann, bob"],
    );
    done(
        folder,
        &["convert", "--participant", "ann", "room.json", "ann.webm"],
    );
    done(folder, &["info", "room.json"]);
    std::os::unix::fs::symlink(data("janus/pcmu-audio.mjr"), folder.join("link.mjr")).unwrap();
    for name in [
        "../secret.mjr",
        "/etc/passwd.mjr",
        "link.mjr",
        "a/../../b.mjr",
    ] {
        write_manifest(folder, &[("eve", name, 0, "audio")]);
        let output = portunus(folder, &["convert", "room.json", "x.wav"]);
        assert_eq!(output.status.code(), Some(1), "{name}");
        assert!(
            said(&output).contains("not in its folder"),
            "{}",
            said(&output)
        );
    }
    std::fs::write(folder.join("room.json"), b"{\"version\": 7}").unwrap();
    refused(
        folder,
        &["info", "room.json"],
        1,
        &["room.json", "no manifest"],
    );
}

#[test]
fn incomplete_files_of_a_manifest_are_repaired_and_it_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let webm = std::fs::read(data("vp8-opus.webm")).unwrap();
    std::fs::write(folder.join("torn.webm"), &webm[..webm.len() - 400]).unwrap();
    let mut opus =
        OggOpusWriter::new(Vec::new(), 1, &OpusHead::default(), &OpusTags::default()).unwrap();
    for number in 0..250 {
        let at = OpusTime(number * 960);
        opus.packet(at, &[0xfc, 1, 2]).unwrap();
    }
    let opus = opus.finish(OpusTime(0)).unwrap();
    std::fs::write(folder.join("torn.opus"), &opus[..opus.len() - 10]).unwrap();
    let torn = [
        ("ann", "torn.webm", 0, "video"),
        ("bob", "torn.opus", 0, "audio"),
    ];
    write_manifest(folder, &torn);
    done(folder, &["repair", "room.json"]);
    let after = Manifest::read(&std::fs::read(folder.join("room.json")).unwrap()).unwrap();
    // As long as it is: what has no length is in no film.
    let sound = &after.participants[1].files[0];
    assert!(sound.complete && sound.duration_ms > 3_500.0, "{sound:?}");
    let file = &after.participants[0].files[0];
    assert!(file.complete && after.ended.is_some());
    assert_eq!(file.end, Some(manifest::FileEnd::Crashed));
    assert!(file.duration_ms > 500.0 && file.duration_ms < 1_100.0);
    assert!(done(folder, &["list"]).contains("crashed"));
}

#[test]
fn files_that_have_not_got_their_names_are_found_and_repaired() {
    let folder = of_janus();
    let folder = folder.path();
    let webm = std::fs::read(data("vp8-opus.webm")).unwrap();
    std::fs::write(folder.join("a.webm.tmp"), &webm[..webm.len() - 400]).unwrap();
    let mjr = std::fs::read(folder.join("vp9-video.mjr")).unwrap();
    std::fs::write(folder.join("b.mjr.tmp"), &mjr[..mjr.len() - 100]).unwrap();
    write_manifest(folder, &[("ann", "a.webm", 0, "video")]);
    let text = done(folder, &["list"]);
    assert!(!text.contains("missing"), "{text}");
    assert_eq!(text.matches("a.webm").count(), 1, "{text}");
    assert!(text.contains("b.mjr.tmp  "), "{text}");
    done(folder, &["repair", "room.json", "b.mjr.tmp"]);
    let text = done(folder, &["list"]);
    assert!(
        text.contains("crashed") && text.contains("b.mjr  "),
        "{text}"
    );
    for name in ["a.webm", "b.mjr"] {
        assert!(!folder.join(format!("{name}.tmp")).exists());
        let text = done(folder, &["info", name]);
        assert!(!text.contains("incomplete"), "{text}");
    }
    // Another file of that name stays as it is.
    std::fs::write(folder.join("b.mjr.tmp"), &mjr).unwrap();
    refused(
        folder,
        &["repair", "b.mjr.tmp"],
        1,
        &["b.mjr", "is there already"],
    );
}

/// How strong a tone is in samples of 8 kHz, by Goertzel's filter.
fn strength(samples: &[f64], frequency: f64) -> f64 {
    let coefficient = 2.0 * (std::f64::consts::TAU * frequency / 8_000.0).cos();
    let (mut last, mut before) = (0.0, 0.0);
    for sample in samples {
        (last, before) = (sample + coefficient * last - before, last);
    }
    let power = last * last + before * before - coefficient * last * before;
    power.max(0.0).sqrt() / samples.len() as f64
}

#[test]
fn a_room_of_three_becomes_one_film() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let tones = [
        ("ann", 440, 0),
        ("bob", 1_000, 2_000),
        ("eve", 1_800, 4_000),
    ];
    for (name, frequency, _) in tones {
        let out = folder.join(format!("{name}.webm"));
        let picture = "testsrc2=size=160x120:rate=10";
        let sound = format!("sine=frequency={frequency}:sample_rate=48000");
        let inputs = [
            "-f", "lavfi", "-i", picture, "-f", "lavfi", "-i", &sound, "-t", "3",
        ];
        let made = [
            "-c:v",
            "libvpx",
            "-b:v",
            "60k",
            "-c:a",
            "libopus",
            out.to_str().unwrap(),
        ];
        if !ffmpeg(&[&inputs[..], &made].concat()) {
            return;
        }
    }
    let files = tones.map(|(name, _, offset)| (name, format!("{name}.webm"), offset));
    let files: Vec<_> = files
        .iter()
        .map(|(id, name, offset)| (*id, name.as_str(), *offset, "video"))
        .collect();
    write_manifest(folder, &files);
    for (out, more) in [
        ("film.mp4", &[][..]),
        (
            "film.webm",
            &["--layout", "speaker", "--size", "320x240", "--fps", "10"],
        ),
        ("film.wav", &[]),
    ] {
        let text = done(folder, &[&["compose", "room.json", out], more].concat());
        assert!(text.contains("0:07.0 of 3 files"), "{text}");
        let out = folder.join(out);
        let raw = folder.join("raw");
        let sound = [
            "-i",
            out.to_str().unwrap(),
            "-vn",
            "-ac",
            "1",
            "-ar",
            "8000",
            "-f",
            "s16le",
        ];
        ffmpeg(&[&sound[..], &[raw.to_str().unwrap()]].concat());
        let raw = std::fs::read(&raw).unwrap();
        let samples = raw
            .chunks_exact(2)
            .map(|it| f64::from(i16::from_le_bytes([it[0], it[1]])));
        let samples: Vec<f64> = samples.collect();
        assert!(
            samples.len().abs_diff(7 * 8_000) < 1_600,
            "{}",
            samples.len()
        );
        for (_, frequency, offset) in tones {
            for tenth in 0..69 {
                let from = tenth * 800;
                let heard = strength(&samples[from..from + 800], f64::from(frequency)) > 100.0;
                let (at, offset) = (tenth as u64 * 100, offset);
                // Encoders blur the ends.
                let plays = at >= offset + 100 && at + 200 <= offset + 3_000;
                let silent = at + 200 <= offset || at >= offset + 3_200;
                assert!(heard || !plays, "{frequency} Hz is missing at {at} ms");
                assert!(!heard || !silent, "{frequency} Hz is heard at {at} ms");
            }
        }
    }
    let probe = Command::new("ffprobe")
        .args([
            "-v",
            "error",
            "-show_entries",
            "stream=codec_name,width,height",
            "-of",
            "csv=p=0",
        ])
        .arg(folder.join("film.mp4"))
        .output()
        .unwrap();
    assert_eq!(said(&probe), "h264,1280,720\naac\n");
}

#[test]
fn meetings_of_two_days_become_one_film() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let out = folder.join("ann.webm");
    let sound = ["-f", "lavfi", "-i", "sine=sample_rate=48000", "-t", "3"];
    let made = ["-c:a", "libopus", out.to_str().unwrap()];
    if !ffmpeg(&[&sound[..], &made].concat()) {
        return;
    }
    let mut manifest = write_manifest(folder, &[("ann", "ann.webm", 0, "audio")]);
    let day = 86_400_000_000;
    manifest.started_us += day;
    for file in &mut manifest.participants[0].files {
        file.started_us = file.started_us.map(|started| started + day);
    }
    std::fs::write(folder.join("tomorrow.json"), manifest.to_json()).unwrap();
    // The order in which they are named means nothing.
    let manifests = ["compose", "tomorrow.json", "room.json", "film.opus"];
    let text = done(folder, &manifests);
    assert!(text.contains("0:06.0 of 2 files"), "{text}");
    refused(folder, &["compose", "room.json"], 2, &["Usage"]);
}

#[test]
fn without_ffmpeg_composing_says_what_to_install() {
    let folder = of_janus();
    let folder = folder.path();
    write_manifest(folder, &[("ann", "vp9-video.mjr", 0, "video")]);
    let mut command = Command::new(env!("CARGO_BIN_EXE_portunus"));
    command.current_dir(folder).env("PATH", folder);
    let output = command
        .args(["recordings", "compose", "room.json", "x.mp4"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert!(
        said(&output).contains("apt install ffmpeg"),
        "{}",
        said(&output)
    );
    refused(
        folder,
        &["compose", "room.json", "x.avi"],
        1,
        &["x.avi", ".mp4"],
    );
    refused(
        folder,
        &["compose", "room.json", "x.mp4", "--size", "5x5"],
        2,
        &["even"],
    );
}
