//! Fragmented MP4 files have the written content, at any time, in our reader and in ffprobe
//! (skipped with a message if it is not installed).

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

use std::io::{Cursor, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use portunus_files::bitstream::{Picture, Setup, read_setup};
use portunus_files::container::{
    Container, ContainerError, ContainerWriter, Edits, FileInfo, FrameOut, HEADER_ROOM, Repaired,
    Rotation, TrackSetup, repair, writer,
};
use portunus_files::{Codec, FileError, Kind, MediaFile, OpenOptions};
use portunus_rtp::depacketize::{Depacketizer, Outcome, Payload, PayloadKind};
use portunus_rtp::{Header, SeqNo};
use proptest::prelude::*;

mod repaired;

const ONCE: OpenOptions = OpenOptions {
    audio: true,
    video: true,
    looping: false,
};

/// A frame that owns its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Frame {
    track: usize,
    at: Duration,
    keyframe: bool,
    data: Vec<u8>,
}

/// Returns the codecs of a file, and its frames, assembled from their packets.
fn frames_of(mut file: MediaFile) -> Result<(Vec<Codec>, Vec<Frame>), FileError> {
    let codecs: Vec<_> = file.tracks().iter().map(|track| track.codec).collect();
    let kind = |codec: &Codec| match codec {
        Codec::Vp8 => PayloadKind::Vp8,
        Codec::Vp9 => PayloadKind::Vp9,
        Codec::Av1 => PayloadKind::Av1,
        Codec::H264 => PayloadKind::H264,
        Codec::H265 => PayloadKind::H265,
        Codec::Opus | Codec::Pcmu | Codec::Pcma => PayloadKind::Whole,
    };
    let mut depacketizers: Vec<_> = codecs
        .iter()
        .map(|it| Depacketizer::new(kind(it)))
        .collect();
    let mut frames = Vec::new();
    let mut seq = 0;
    let mut expected = vec![SeqNo(0); codecs.len()];
    while let Some(packet) = file.next() {
        let packet = packet?;
        let header = Header::parse(packet.bytes).unwrap();
        let (track, at) = (packet.track, packet.presented);
        expected[track] = match seq {
            0 => SeqNo(u64::from(header.sequence)),
            _ => expected[track].nearest(header.sequence),
        };
        seq += 1;
        let payload = Payload {
            seq: expected[track],
            timestamp: header.timestamp,
            marker: header.marker,
            bytes: header.payload(packet.bytes),
        };
        depacketizers[track].push(&payload, |outcome| match outcome {
            Outcome::Frame(frame) => frames.push(Frame {
                track,
                at,
                keyframe: frame.keyframe,
                data: frame.data.to_vec(),
            }),
            Outcome::Broken { .. } => panic!("a broken frame"),
        });
    }
    Ok((codecs, frames))
}

fn made_by_ffmpeg(name: &str) -> (Vec<Codec>, Vec<Frame>) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    frames_of(MediaFile::open(&path.join(name), &ONCE).unwrap()).unwrap()
}

fn read(bytes: &[u8]) -> Result<(Vec<Codec>, Vec<Frame>), FileError> {
    frames_of(open(bytes)?)
}

fn open(bytes: &[u8]) -> Result<MediaFile, FileError> {
    MediaFile::from_reader(Cursor::new(bytes.to_vec()), "mp4", &ONCE)
}

/// A file in memory that is being written.
struct File {
    writer: Box<dyn ContainerWriter>,
    edits: Edits,
    bytes: Vec<u8>,
    appends: usize,
}

impl File {
    fn new(tracks: usize) -> Self {
        let info = FileInfo {
            title: Some("A recording".to_owned()),
            started_us: 1_764_000_000_000_000,
            tracks,
        };
        Self {
            writer: writer(Container::Mp4, info),
            edits: Edits::default(),
            bytes: Vec::new(),
            appends: 0,
        }
    }

    /// Applies the edits. Returns whether there were any.
    fn apply(&mut self) -> bool {
        let any = !self.edits.is_empty();
        self.bytes.extend_from_slice(&self.edits.append);
        for (at, patch) in &self.edits.patches {
            let at = usize::try_from(*at).unwrap();
            self.bytes[at..at + patch.len()].copy_from_slice(patch);
        }
        self.edits.clear();
        self.appends += usize::from(any);
        any
    }

    fn set_track(&mut self, track: usize, setup: TrackSetup) -> Result<(), ContainerError> {
        let done = self.writer.set_track(track, setup, &mut self.edits);
        self.apply();
        assert_eq!(self.writer.len(), self.bytes.len() as u64);
        done
    }

    /// Writes a frame. Returns whether bytes were written.
    fn frame(&mut self, frame: &Frame) -> bool {
        let out = FrameOut {
            track: frame.track,
            at: frame.at,
            duration: Duration::ZERO,
            keyframe: frame.keyframe,
            data: &frame.data,
        };
        self.writer.frame(&out, &mut self.edits).unwrap();
        let any = self.apply();
        assert_eq!(self.writer.len(), self.bytes.len() as u64);
        any
    }

    fn flush(&mut self) -> bool {
        self.writer.flush(&mut self.edits);
        self.apply()
    }

    fn finish(mut self) -> Vec<u8> {
        let mut edits = std::mem::take(&mut self.edits);
        let unwritten = writer(Container::Mp4, FileInfo::default());
        std::mem::replace(&mut self.writer, unwritten).finish(&mut edits);
        self.edits = edits;
        self.apply();
        self.bytes
    }
}

fn setup_of(codec: Codec, track: usize, frames: &[Frame]) -> TrackSetup {
    let first = frames.iter().find(|it| it.track == track && it.keyframe);
    let (setup, picture) = read_setup(codec, &first.unwrap().data, None).unwrap();
    TrackSetup {
        setup,
        picture,
        rotation: Rotation::R0,
        name: None,
    }
}

/// A file of these frames, with all tracks from the start.
fn begin(codecs: &[Codec], frames: &[Frame]) -> File {
    let mut file = File::new(codecs.len());
    for (track, codec) in codecs.iter().enumerate() {
        file.set_track(track, setup_of(*codec, track, frames))
            .unwrap();
    }
    file
}

/// The same frames repeated for so many seconds.
fn repeated(frames: &[Frame], seconds: u32) -> Vec<Frame> {
    let later = |frame: &Frame, second: u32| Frame {
        at: frame.at + Duration::from_millis(1_020) * second,
        ..frame.clone()
    };
    let seconds = (0..seconds).map(|second| frames.iter().map(move |it| later(it, second)));
    seconds.flatten().collect()
}

/// Checks that the frames and their times are the same, to the track's clock.
fn assert_same(found: &[Frame], expected: &[Frame], what: &str) {
    for track in 0..2 {
        let own = |frames: &[Frame]| {
            let own = frames.iter().filter(|it| it.track == track);
            own.cloned().collect::<Vec<_>>()
        };
        let (found, expected) = (own(found), own(expected));
        assert_eq!(found.len(), expected.len(), "{what}, track {track}");
        for (found, expected) in found.iter().zip(&expected) {
            assert!(
                found.data == expected.data,
                "{what}, track {track} at {:?}",
                expected.at
            );
            assert_eq!(found.keyframe, expected.keyframe, "{what}");
            let off = found.at.abs_diff(expected.at);
            assert!(off < Duration::from_micros(50), "{what}: {off:?}");
        }
    }
}

const SOURCES: [&str; 4] = [
    "h264-opus.mp4",
    "h265-opus.mp4",
    "vp9-opus.webm",
    "av1.webm",
];

fn ffprobe(bytes: &[u8], arguments: &[&str]) -> Option<String> {
    let folder = tempfile::tempdir().unwrap();
    let path: PathBuf = folder.path().join("file.mp4");
    std::fs::write(&path, bytes).unwrap();
    let mut command = Command::new("ffprobe");
    command.args(["-v", "error"]).args(arguments).arg(&path);
    let Ok(output) = command.output() else {
        eprintln!("no ffprobe: left out");
        return None;
    };
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && complaint.is_empty(),
        "{complaint}"
    );
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn what_is_written_is_read() {
    for name in SOURCES {
        let (codecs, frames) = made_by_ffmpeg(name);
        let frames = repeated(&frames, 4);
        let mut file = begin(&codecs, &frames);
        for frame in &frames {
            file.frame(frame);
        }
        let bytes = file.finish();
        if let Some(folder) = std::env::var_os("KEEP_MP4") {
            std::fs::write(Path::new(&folder).join(name.replace("webm", "mp4")), &bytes).unwrap();
        }
        let (found, written) = read(&bytes).unwrap();
        assert_eq!(found, codecs, "{name}");
        assert_same(&written, &frames, name);
        let duration = open(&bytes).unwrap().duration().unwrap();
        assert!(
            duration.abs_diff(Duration::from_millis(4_060)) < Duration::from_millis(80),
            "{duration:?}"
        );
        if let Some(counts) = ffprobe(
            &bytes,
            &[
                "-count_packets",
                "-show_entries",
                "stream=nb_read_packets",
                "-of",
                "csv=p=0",
            ],
        ) {
            let counts: Vec<usize> = counts
                .lines()
                .map(|it| it.trim_end_matches(',').parse().unwrap())
                .collect();
            let expected: Vec<_> = (0..codecs.len())
                .map(|track| frames.iter().filter(|it| it.track == track).count())
                .collect();
            assert_eq!(counts, expected, "{name}");
        }
    }
}

#[test]
fn it_plays_while_it_is_written() {
    for name in SOURCES {
        let (codecs, frames) = made_by_ffmpeg(name);
        let frames = repeated(&frames, 6);
        let mut file = begin(&codecs, &frames);
        let mut flushed = Duration::ZERO;
        let mut checks = 0;
        for (index, frame) in frames.iter().enumerate() {
            let mut any = file.frame(frame);
            if frame.at >= flushed + Duration::from_millis(250) {
                any |= file.flush();
                flushed = frame.at;
            }
            if !any {
                continue;
            }
            let (_, written) = read(&file.bytes).unwrap();
            let missing = frames[..=index].len() - written.len();
            assert!(
                written
                    .iter()
                    .all(|it| frames.iter().any(|frame| frame.data == it.data))
            );
            let last = written.iter().map(|it| it.at).max().unwrap();
            assert!(
                frame.at - last < Duration::from_millis(100),
                "{name}: {missing} frames, {last:?}"
            );
            checks += 1;
            if checks % 5 == 0 {
                ffprobe(&file.bytes, &["-show_packets"]);
            }
        }
        // Fragments of half a second.
        assert!((10..=16).contains(&checks), "{name}: {checks}");
        // No more frames come, so the second flush writes the waiting ones.
        file.flush();
        file.flush();
        let (_, written) = read(&file.bytes).unwrap();
        assert_same(&written, &frames, name);
    }
}

#[test]
fn a_late_track_is_written_into_the_header() {
    let (codecs, frames) = made_by_ffmpeg("h264-opus.mp4");
    let video = codecs
        .iter()
        .position(|codec| codec.kind() == Kind::Video)
        .unwrap();
    let frames = repeated(&frames, 5);
    let mut file = File::new(2);
    file.set_track(1 - video, setup_of(codecs[1 - video], 1 - video, &frames))
        .unwrap();
    let joined = Duration::from_millis(2_039);
    let mut expected = Vec::new();
    for frame in &frames {
        if frame.track == video && frame.at < joined {
            let refused = file.writer.frame(
                &FrameOut {
                    track: video,
                    at: frame.at,
                    duration: Duration::ZERO,
                    keyframe: true,
                    data: &frame.data,
                },
                &mut file.edits,
            );
            if !file.bytes.is_empty() && expected.iter().all(|it: &Frame| it.track != video) {
                assert!(refused == Err(ContainerError::NoSetup(video)));
            }
            continue;
        }
        if frame.track == video && expected.iter().all(|it: &Frame| it.track != video) {
            let before = file.bytes.len();
            file.set_track(video, setup_of(codecs[video], video, &frames))
                .unwrap();
            assert_eq!(file.bytes.len(), before);
        }
        file.frame(frame);
        expected.push(frame.clone());
    }
    let bytes = file.finish();
    let (_, written) = read(&bytes).unwrap();
    // The reader's time starts with the first frame.
    assert_same(&written, &expected, "late");
    ffprobe(&bytes, &["-show_packets"]);
}

#[test]
fn pictures_are_turned() {
    let (codecs, frames) = made_by_ffmpeg("h264-opus.mp4");
    let video = codecs
        .iter()
        .position(|codec| codec.kind() == Kind::Video)
        .unwrap();
    for (rotation, told) in [
        (Rotation::R0, None),
        (Rotation::R90, Some("-90")),
        (Rotation::R180, Some("-180")),
        (Rotation::R270, Some("90")),
    ] {
        let mut file = File::new(1);
        let setup = TrackSetup {
            rotation,
            ..setup_of(Codec::H264, video, &frames)
        };
        file.set_track(0, setup).unwrap();
        for frame in frames.iter().filter(|it| it.track == video) {
            file.frame(&Frame {
                track: 0,
                ..frame.clone()
            });
        }
        let bytes = file.finish();
        let entries = [
            "-show_entries",
            "stream_side_data=rotation",
            "-of",
            "csv=p=0",
        ];
        if let Some(found) = ffprobe(&bytes, &entries) {
            assert_eq!(
                found.trim().trim_end_matches(','),
                told.unwrap_or(""),
                "{rotation:?}"
            );
        }
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let mut file = File::new(2);
    let setup = |setup| TrackSetup {
        setup,
        picture: None,
        rotation: Rotation::R0,
        name: None,
    };
    let refused = file.set_track(0, setup(Setup::Vp8));
    assert!(matches!(refused, Err(ContainerError::Codec { .. })));
    let refused = file.set_track(2, setup(Setup::Opus { channels: 2 }));
    assert_eq!(refused, Err(ContainerError::NoTrack(2)));
    let vp9 = Setup::Vp9 {
        profile: 0,
        bit_depth: 8,
        subsampling: 1,
        full_range: false,
    };
    assert_eq!(
        file.set_track(0, setup(vp9)),
        Err(ContainerError::NoPicture(0))
    );
    let bad = Setup::H264 {
        sps: vec![vec![0x67]],
        pps: vec![],
    };
    let bad = TrackSetup {
        picture: Some(Picture {
            width: 2,
            height: 2,
        }),
        ..setup(bad)
    };
    assert_eq!(file.set_track(0, bad), Err(ContainerError::Incomplete(0)));
    assert!(file.bytes.is_empty());
    file.set_track(0, setup(Setup::Opus { channels: 2 }))
        .unwrap();
    // The time of day of the start comes after it.
    assert_eq!(file.bytes.len(), HEADER_ROOM + 28);
    assert_eq!(file.bytes[HEADER_ROOM + 4..][..4], *b"prft");
    let name = "n".repeat(HEADER_ROOM);
    let long = TrackSetup {
        name: Some(name),
        ..setup(Setup::Opus { channels: 2 })
    };
    assert!(matches!(
        file.set_track(1, long),
        Err(ContainerError::NoRoom(_))
    ));
    // The file goes on.
    file.frame(&Frame {
        track: 0,
        at: Duration::ZERO,
        keyframe: true,
        data: vec![0xfc, 1],
    });
    let (codecs, frames) = read(&file.finish()).unwrap();
    assert_eq!((codecs, frames.len()), (vec![Codec::Opus], 1));
}

#[test]
fn seeks_go_to_keyframes() {
    let (codecs, frames) = made_by_ffmpeg("h264-opus.mp4");
    let frames = repeated(&frames, 10);
    let mut file = begin(&codecs, &frames);
    for frame in &frames {
        file.frame(frame);
    }
    let video = codecs
        .iter()
        .position(|codec| codec.kind() == Kind::Video)
        .unwrap();
    let mut file = open(&file.finish()).unwrap();
    for to in [
        Duration::from_millis(5_300),
        Duration::from_millis(900),
        Duration::from_millis(20),
    ] {
        file.seek(to).unwrap();
        let mut keyframes = frames
            .iter()
            .filter(|it| it.track == video && it.keyframe && it.at <= to);
        let expected = keyframes.next_back().unwrap();
        let mut whole = None;
        let mut depacketizer = Depacketizer::new(PayloadKind::H264);
        while whole.is_none() {
            let packet = file.next().unwrap().unwrap();
            if packet.track != video {
                continue;
            }
            let header = Header::parse(packet.bytes).unwrap();
            let payload = Payload {
                seq: SeqNo(u64::from(header.sequence)),
                timestamp: header.timestamp,
                marker: header.marker,
                bytes: header.payload(packet.bytes),
            };
            depacketizer.push(&payload, |outcome| {
                if let Outcome::Frame(frame) = outcome {
                    whole = Some(frame.data.to_vec());
                }
            });
        }
        assert!(whole.as_ref() == Some(&expected.data), "{to:?}");
    }
}

/// A file that counts the bytes that are read.
struct Counting(Cursor<Vec<u8>>, Arc<AtomicU64>);

impl Read for Counting {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.0.read(buffer)?;
        self.1.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

impl Seek for Counting {
    fn seek(&mut self, to: SeekFrom) -> std::io::Result<u64> {
        self.0.seek(to)
    }
}

#[test]
fn a_seek_in_a_long_file_goes_by_its_index() {
    // 40 s of a tone whose packets contain their numbers.
    let mut file = File::new(1);
    let setup = TrackSetup {
        setup: Setup::Opus { channels: 2 },
        picture: None,
        rotation: Rotation::R0,
        name: None,
    };
    file.set_track(0, setup).unwrap();
    for number in 0..2_000_u16 {
        let mut data = vec![0xfc; 6_000];
        data[1..3].copy_from_slice(&number.to_be_bytes());
        file.frame(&Frame {
            track: 0,
            at: Duration::from_millis(20) * u32::from(number),
            keyframe: true,
            data,
        });
    }
    let whole = file.finish();
    let mut broken = whole.clone();
    // Its index is invalid.
    let index = whole.windows(4).rposition(|it| it == b"tfra").unwrap();
    broken[index + 40..index + 80].fill(0x55);
    let unfinished = whole[..index - 12].to_vec();
    for (bytes, most) in [(&whole, 8), (&broken, 1), (&unfinished, 1)] {
        let read = Arc::new(AtomicU64::new(0));
        let counting = Counting(Cursor::new(bytes.clone()), Arc::clone(&read));
        let mut file = MediaFile::from_reader(counting, "mp4", &ONCE).unwrap();
        for (to, number) in [(30_000, 1_500_u16), (39_980, 1_999), (10, 0), (12_345, 617)] {
            read.store(0, Ordering::Relaxed);
            file.seek(Duration::from_millis(to)).unwrap();
            let packet = file.next().unwrap().unwrap();
            let payload = Header::parse(packet.bytes).unwrap().payload(packet.bytes);
            // The target is in it, or after its start.
            let found = u16::from_be_bytes([payload[1], payload[2]]);
            assert!((number..=number + 1).contains(&found), "{to}: {found}");
            let read = read.load(Ordering::Relaxed);
            assert!(read * most < bytes.len() as u64 * 2, "{to}: {read}");
        }
    }
}
