//! Recorded files: their length and their end.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]
use std::path::Path;

use portunus_dsp::{Channels, RoomOptions, SampleRate};
use portunus_record::RecorderConfig;

use super::*;

const FORMAT: Format = Format {
    rate: SampleRate::Hz16000,
    channels: Channels::Mono,
};
/// A time limit for a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);
/// 20 ms of SILK, wideband.
const PACKET: [u8; 4] = [9 << 3, 1, 2, 3];

fn begin(disk: &Path, format: RecordingFormat) -> (Recording, Room) {
    begin_within(disk, format, u64::MAX)
}

/// A recording whose file has room for so many bytes of frames.
fn begin_within(disk: &Path, format: RecordingFormat, longest: u64) -> (Recording, Room) {
    let recorder = Recorder::new(RecorderConfig {
        dir: Some(disk.to_owned()),
        keep_free_mb: 0,
        ..RecorderConfig::default()
    });
    let mut room = Room::new(RoomOptions {
        format: FORMAT,
        loudest: 8,
        groups: 0,
    });
    let what = MixRecording {
        dir: None,
        name: "mix".to_owned(),
        format,
        whose: None,
    };
    let file = MixFile::within(&recorder, &what, FORMAT, longest).unwrap();
    let recording = Recording::begin(RecordingId(1), file, &mut room).unwrap();
    (recording, room)
}

/// Ends a tick in which the recording has a frame.
fn frame(recording: &mut Recording) {
    match recording.mix {
        Some(mix) => recording.packet(mix, &PACKET),
        None => recording.sound(None, &[0.5; 320]),
    }
    recording.end_frame();
}

fn until(is: impl Fn() -> bool) {
    let began = Instant::now();
    while !is() {
        assert!(began.elapsed() < PATIENCE);
        thread::sleep(Duration::from_millis(2));
    }
}

/// Returns the length of the complete file in frames.
fn frames(mut recording: Recording, room: &mut Room, disk: &Path) -> u64 {
    recording.stop(room);
    until(|| recording.has_ended());
    assert!(recording.file.shared.ended.get().unwrap().is_none());
    let bytes = std::fs::read(disk.join(recording.file.name())).unwrap();
    match recording.mix {
        None => u64::from(hound::WavReader::new(&bytes[..]).unwrap().duration()) / 320,
        Some(_) => {
            let page = bytes.windows(4).rposition(|it| it == b"OggS").unwrap();
            let position = bytes[page + 6..page + 14].try_into().unwrap();
            u64::from_le_bytes(position) / 960
        }
    }
}

#[test]
fn frames_that_do_not_come_take_their_time_in_the_file() {
    for format in [RecordingFormat::Wav, RecordingFormat::OggOpus] {
        let disk = tempfile::tempdir().unwrap();
        let (mut recording, mut room) = begin(disk.path(), format);
        for n in 0..100 {
            match n % 10 {
                9 => recording.end_frame(),
                _ => frame(&mut recording),
            }
        }
        // These frames were skipped.
        recording.miss(20);
        frame(&mut recording);
        let length = frames(recording, &mut room, disk.path());
        assert_eq!(length, 100 + 20 + 1, "{format:?}");
    }
}

#[test]
fn what_a_slow_disk_loses_takes_its_time_in_the_file() {
    for format in [RecordingFormat::Wav, RecordingFormat::OggOpus] {
        let disk = tempfile::tempdir().unwrap();
        let (mut recording, mut room) = begin(disk.path(), format);
        let shared = Arc::clone(&recording.file.shared);
        let mut count = 0;
        // Some more than the queue takes.
        while shared.dropped.load(Ordering::Relaxed) < 10 {
            frame(&mut recording);
            count += 1;
            assert!(count < 1_000_000);
        }
        until(|| shared.frames.is_empty());
        frame(&mut recording);
        let length = frames(recording, &mut room, disk.path());
        assert_eq!(length, count + 1, "{format:?}");
    }
}

#[test]
fn a_file_that_is_as_long_as_it_can_be_ends_in_order() {
    let disk = tempfile::tempdir().unwrap();
    let longest = 100 * 640;
    let (mut recording, _room) = begin_within(disk.path(), RecordingFormat::Wav, longest);
    for _ in 0..110 {
        frame(&mut recording);
    }
    until(|| recording.has_ended());
    let AudioEvent::RecordingEnded { file, error, .. } = recording.end_event() else {
        panic!("it has ended");
    };
    assert!(matches!(error.as_deref(), Some(AudioError::Longest)));
    let wav = hound::WavReader::open(disk.path().join(file)).unwrap();
    assert_eq!(wav.duration(), 100 * 320);
}

#[test]
fn the_end_is_told_to_the_heir_however_late() {
    for has_ended in [false, true] {
        let disk = tempfile::tempdir().unwrap();
        let (mut recording, mut room) = begin(disk.path(), RecordingFormat::Wav);
        let (to, mut told) = mpsc::channel(1);
        if has_ended {
            recording.stop(&mut room);
            until(|| recording.has_ended());
        }
        recording.bequeath(to);
        drop(recording);
        let told = told.blocking_recv();
        let Some(AudioEvent::RecordingEnded { file, error, .. }) = told else {
            panic!("{told:?}");
        };
        assert_eq!((file.as_str(), error.is_none()), ("mix.wav", true));
    }
}
