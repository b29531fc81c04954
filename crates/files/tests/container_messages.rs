//! Messages with a container come at their times, from any position on.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by a panic"
)]

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use portunus_files::bitstream::{Picture, Setup};
use portunus_files::container::{
    Container, Edits, FileInfo, FrameOut, Rotation, TrackSetup, repair, writer,
};
use portunus_files::mjr::{FrameWriter, Info, Medium, UnixMicros};
use portunus_files::{FileError, Play, Playback};
use tempfile::TempDir;

/// The default start of containers.
const BEGUN: u64 = 1_700_000_000_250_000;

const VP8_KEYFRAME: [u8; 10] = [0x10, 0, 0, 0x9d, 0x01, 0x2a, 0x80, 0x02, 0xe0, 0x01];
const VP8_DELTA: [u8; 4] = [0x11, 0, 0, 0];

/// A folder with the files of a recording.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A container that starts so many ms after the first one: audio of 20 ms, or pictures of 40 ms
    /// with a keyframe every second.
    fn container(&self, name: &str, seconds: u64, begins_ms: u64, codec: Setup) -> PathBuf {
        self.written(name, (seconds, true), begins_ms, codec)
    }

    /// A container with or without a regular end.
    fn written(
        &self,
        name: &str,
        (seconds, ends): (u64, bool),
        begins_ms: u64,
        codec: Setup,
    ) -> PathBuf {
        let container = match name.rsplit_once('.').unwrap().1 {
            "webm" => Container::WebM,
            "mp4" => Container::Mp4,
            _ => Container::Matroska,
        };
        let is_video = codec == Setup::Vp8;
        let mut writer = writer(
            container,
            FileInfo {
                title: None,
                started_us: BEGUN + begins_ms * 1_000,
                tracks: 1,
            },
        );
        let mut edits = Edits::default();
        let setup = TrackSetup {
            setup: codec,
            picture: is_video.then_some(Picture {
                width: 640,
                height: 480,
            }),
            rotation: Rotation::R0,
            name: None,
        };
        writer.set_track(0, setup, &mut edits).unwrap();
        let step = if is_video { 40 } else { 20 };
        for at in (0..seconds * 1_000).step_by(step) {
            let keyframe = !is_video || at % 1_000 == 0;
            let data: &[u8] = match (is_video, keyframe) {
                (false, _) => &[0xf8, 1, 2],
                (true, true) => &VP8_KEYFRAME,
                (true, false) => &VP8_DELTA,
            };
            let frame = FrameOut {
                track: 0,
                at: Duration::from_millis(at),
                duration: Duration::from_millis(step as u64),
                keyframe,
                data,
            };
            writer.frame(&frame, &mut edits).unwrap();
        }
        if ends {
            writer.finish(&mut edits);
        }
        let mut bytes = edits.append;
        for (at, patch) in edits.patches {
            let at = usize::try_from(at).unwrap();
            bytes[at..at + patch.len()].copy_from_slice(&patch);
        }
        let path = self.path(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }

    /// Messages that came so many ms after the start of the first container. Each contains its
    /// time.
    fn messages(&self, times: &[i64]) -> PathBuf {
        let at = |ms: &i64| UnixMicros(BEGUN.saturating_add_signed(ms * 1_000));
        let mut bytes = Vec::new();
        let info = Info::new(Medium::Data, "text", at(&times[0]));
        let mut writer = FrameWriter::new(info, &mut bytes);
        for ms in times {
            let message = format!("at {ms}");
            writer
                .message(at(ms), message.as_bytes(), &mut bytes)
                .unwrap();
        }
        let path = self.path("a-data.mjr");
        std::fs::write(&path, bytes).unwrap();
        path
    }
}

fn open(paths: &[PathBuf]) -> Playback {
    let (playback, unreadable) = Playback::open(paths).unwrap();
    assert!(unreadable.is_empty(), "{unreadable:?}");
    playback
}

fn ms(time: Duration) -> u64 {
    time.as_millis() as u64
}

/// Returns the next messages with their times in ms, and the times of the container's first and
/// last packet.
fn play(playback: &mut Playback) -> (Vec<(u64, String)>, (u64, u64)) {
    let of_messages = playback.tracks().iter();
    let track = of_messages.clone().position(|it| it.medium == Medium::Data);
    let (mut messages, mut packets) = (Vec::new(), Vec::new());
    let mut last = Duration::ZERO;
    while let Some(packet) = playback.next() {
        let packet = packet.unwrap();
        assert!(packet.at >= last, "{:?} behind {last:?}", packet.at);
        last = packet.at;
        match Some(packet.track) == track {
            true => messages.push((
                ms(packet.at),
                String::from_utf8_lossy(packet.bytes).into_owned(),
            )),
            false => packets.push(ms(packet.at)),
        }
    }
    let ends = packets.first().zip(packets.last());
    (
        messages,
        ends.map_or((0, 0), |(first, last)| (*first, *last)),
    )
}

fn said(times: &[(u64, i64)]) -> Vec<(u64, String)> {
    times
        .iter()
        .map(|(due, at)| (*due, format!("at {at}")))
        .collect()
}

const OPUS: Setup = Setup::Opus { channels: 2 };

#[test]
fn messages_come_when_they_came_by_the_clocks_of_both_files() {
    for name in ["a.webm", "a.mkv", "a.mp4"] {
        let folder = Folder::new();
        let container = folder.container(name, 4, 0, OPUS);
        let messages = folder.messages(&[700, 1_500, 5_000]);
        // In any order.
        for paths in [[container.clone(), messages.clone()], [messages, container]] {
            let mut playback = open(&paths);
            assert_eq!(playback.tracks().len(), 2);
            assert_eq!(playback.clock_rates(), [Some(48_000), None]);
            assert_eq!(playback.duration(), Some(Duration::from_secs(5)), "{name}");
            let (messages, packets) = play(&mut playback);
            assert_eq!(
                messages,
                said(&[(700, 700), (1_500, 1_500), (5_000, 5_000)]),
                "{name}"
            );
            assert_eq!(packets, (0, 3_980));
        }
    }
}

#[test]
fn a_repaired_file_still_tells_its_time() {
    for name in ["a.webm", "a.mp4"] {
        let folder = Folder::new();
        let torn = folder.written(&format!("torn-{name}"), (4, false), 0, OPUS);
        let container = folder.path(name);
        let mut repaired = File::create(&container).unwrap();
        let found = repair(File::open(&torn).unwrap(), &mut repaired).unwrap();
        assert!(!found.was_whole);
        let mut playback = open(&[container, folder.messages(&[700])]);
        assert_eq!(play(&mut playback).0, said(&[(700, 700)]), "{name}");
    }
}

#[test]
fn what_was_said_before_anything_was_sent_comes_before_it() {
    let folder = Folder::new();
    let container = folder.container("a.webm", 2, 0, OPUS);
    let mut playback = open(&[container, folder.messages(&[-1_500, 500])]);
    assert_eq!(playback.duration(), Some(Duration::from_millis(3_500)));
    let (messages, packets) = play(&mut playback);
    assert_eq!(messages, said(&[(0, -1_500), (2_000, 500)]));
    assert_eq!(packets, (1_500, 3_480));
    // Between them, and after the first packet; each time after everything before.
    let end = 3_500;
    playback.seek(Duration::from_millis(1_000)).unwrap();
    assert_eq!(
        play(&mut playback),
        (said(&[(end + 1_000, 500)]), (end + 500, end + 2_480))
    );
    let end = end + 2_500;
    playback.seek(Duration::from_millis(1_800)).unwrap();
    assert_eq!(
        play(&mut playback),
        (said(&[(end + 200, 500)]), (end, end + 1_680))
    );
    let end = end + 1_700;
    playback.seek(Duration::ZERO).unwrap();
    assert_eq!(
        play(&mut playback).0,
        said(&[(end, -1_500), (end + 2_000, 500)])
    );
}

#[test]
fn messages_follow_a_seek_to_the_keyframe_before_it() {
    for name in ["a.webm", "a.mkv"] {
        let folder = Folder::new();
        let container = folder.container(name, 10, 0, Setup::Vp8);
        let mut playback = open(&[
            container,
            folder.messages(&[100, 4_900, 5_100, 5_500, 9_000]),
        ]);
        let nothing = playback.nothing_sent();
        let mut sent = nothing.clone();
        for _ in 0..30 {
            let packet = playback.next().unwrap().unwrap();
            let sequence = u16::from_be_bytes([packet.bytes[2], packet.bytes[3]]);
            sent.add(packet.track, sequence, packet.at, packet.presented);
        }
        // 29 pictures and a message: the last one at 1,120 ms.
        playback
            .seek_behind(&sent, Duration::from_millis(5_400))
            .unwrap();
        let (messages, packets) = play(&mut playback);
        let base = 1_140;
        let expected = [
            (base + 100, 5_100),
            (base + 500, 5_500),
            (base + 4_000, 9_000),
        ];
        assert_eq!((messages, packets.0), (said(&expected), base), "{name}");
        // Before anything was sent.
        playback
            .seek_behind(&nothing, Duration::from_millis(8_999))
            .unwrap();
        assert_eq!(play(&mut playback).0, said(&[(1_000, 9_000)]));
    }
}

#[test]
fn messages_after_the_end_of_all_else_can_be_sought() {
    let folder = Folder::new();
    let container = folder.container("a.webm", 2, 0, OPUS);
    let mut playback = open(&[container, folder.messages(&[500, 6_000, 8_000])]);
    let nothing = playback.nothing_sent();
    playback
        .seek_behind(&nothing, Duration::from_secs(5))
        .unwrap();
    assert_eq!(
        play(&mut playback),
        (said(&[(1_000, 6_000), (3_000, 8_000)]), (0, 0))
    );
}

#[test]
fn messages_of_several_parts_come_with_theirs() {
    let folder = Folder::new();
    let first = folder.container("a.webm", 2, 0, OPUS);
    // Nothing was sent for 3 s.
    let second = folder.container("a-2.webm", 2, 5_000, OPUS);
    let messages = folder.messages(&[1_000, 3_000, 5_500]);
    let mut playback = open(&[first, messages, second]);
    let expected = said(&[(1_000, 1_000), (2_000, 3_000), (2_500, 5_500)]);
    assert_eq!(play(&mut playback).0, expected);
    let nothing = playback.nothing_sent();
    for (to, from) in [(2_000, 1), (2_400, 2)] {
        playback
            .seek_behind(&nothing, Duration::from_millis(to))
            .unwrap();
        let expected = expected[from..].iter();
        let expected: Vec<_> = expected.map(|(at, text)| (at - to, text.clone())).collect();
        assert_eq!(play(&mut playback).0, expected);
    }
}

#[test]
fn what_is_wrong_with_one_of_both_is_told() {
    let folder = Folder::new();
    let container = folder.container("a.webm", 2, 0, OPUS);
    let messages = folder.messages(&[500, 1_000]);
    // Another kind than messages.
    let mut sound = Vec::new();
    let info = Info::new(Medium::Audio, "opus", UnixMicros(BEGUN));
    let packet = [0x80, 111, 0, 1, 0, 0, 0, 0, 0, 0, 0, 7, 0xf8];
    FrameWriter::new(info, &mut sound)
        .packet(UnixMicros(BEGUN), &packet, &mut sound)
        .unwrap();
    std::fs::write(folder.path("sound.mjr"), sound).unwrap();
    let all = [
        container.clone(),
        folder.path("sound.mjr"),
        messages.clone(),
    ];
    let (playback, unreadable) = Playback::open(&all).unwrap();
    assert_eq!((playback.tracks().len(), unreadable[0].file), (2, 1));

    // A second file of messages.
    std::fs::copy(&messages, folder.path("b-data.mjr")).unwrap();
    let all = [
        container.clone(),
        messages.clone(),
        folder.path("b-data.mjr"),
    ];
    let (mut playback, unreadable) = Playback::open(&all).unwrap();
    assert_eq!(unreadable[0].file, 2);
    assert_eq!(play(&mut playback).0.len(), 2);

    // Corrupt messages end there, and the rest plays.
    let mut bytes = std::fs::read(&messages).unwrap();
    let len = bytes.len();
    bytes[len - 30..].fill(0);
    std::fs::write(&messages, bytes).unwrap();
    let mut playback = open(&[container, messages]);
    let mut come = Vec::new();
    let error = loop {
        match playback.next().unwrap() {
            Ok(packet) => come.push(packet.track),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, FileError::Recording(_)), "{error}");
    assert_eq!(come.iter().filter(|track| **track == 0).count(), 100);
    assert_eq!(come.iter().filter(|track| **track == 1).count(), 1);
    assert!(playback.next().is_none());
}

#[test]
fn messages_alone_beside_files_that_are_gone_are_an_error() {
    let folder = Folder::new();
    let (gone, messages) = (
        Path::new("/nowhere/a.webm").to_owned(),
        folder.messages(&[1]),
    );
    let (playback, unreadable) = Playback::open(&[gone, messages]).unwrap();
    assert_eq!((playback.tracks().len(), unreadable.len()), (1, 1));
}
