//! Matroska and WebM files are written and read again.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

use std::io::{Cursor, Write};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use mkv_element::FrameData;
use mkv_element::io::blocking_impl::ReadFrom;
use mkv_element::prelude::{Ebml, Header as ElementHeader, Segment, TrackEntry};
use mp4_atom::{Atom, Avcc, Hvcc};
use portunus_files::bitstream::{Picture, Setup};
use portunus_files::container::{
    Container, ContainerError, ContainerWriter, Edits, FileInfo, FrameOut, HEADER_ROOM, Repaired,
    Rotation, TrackSetup, repair, writer,
};
use portunus_files::{Codec, FileError, Kind, MediaFile, OpenOptions};
use portunus_rtp::Header;
use proptest::prelude::*;
use tempfile::NamedTempFile;

mod repaired;
mod written;

/// A file to which edits are applied.
#[derive(Default)]
struct Disk(Vec<u8>);

impl Disk {
    fn apply(&mut self, edits: &mut Edits) {
        self.0.append(&mut edits.append);
        for (at, bytes) in edits.patches.drain(..) {
            let at = at as usize;
            self.0[at..at + bytes.len()].copy_from_slice(&bytes);
        }
    }
}

/// A frame of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Frame {
    track: usize,
    millis: u64,
    keyframe: bool,
    data: Vec<u8>,
}

impl Frame {
    fn out(&self) -> FrameOut<'_> {
        FrameOut {
            track: self.track,
            at: Duration::from_millis(self.millis),
            duration: Duration::ZERO,
            keyframe: self.keyframe,
            data: &self.data,
        }
    }
}

/// Returns the frames of a complete file, read by the library and not by our reader.
fn frames(file: &[u8]) -> Vec<Frame> {
    let mut rest = Cursor::new(file);
    Ebml::read_from(&mut rest).unwrap();
    let segment = Segment::read_from(&mut rest).unwrap();
    let mut frames = Vec::new();
    for cluster in &segment.cluster {
        for frame in cluster.frames() {
            let frame = frame.unwrap();
            let FrameData::Single(data) = frame.data else {
                panic!("a laced block");
            };
            frames.push(Frame {
                track: frame.track_number as usize - 1,
                millis: frame.timestamp as u64,
                keyframe: frame.is_keyframe,
                data: data.to_vec(),
            });
        }
    }
    frames
}

fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(Path::new("tests/data").join(name)).unwrap()
}

/// Returns the tracks of a file, read by the library.
fn setups(file: &[u8]) -> Vec<TrackSetup> {
    let mut rest = Cursor::new(file);
    Ebml::read_from(&mut rest).unwrap();
    let segment = Segment::read_from(&mut rest).unwrap();
    let entries = segment.tracks.unwrap().track_entry;
    entries.iter().map(setup).collect()
}

fn setup(entry: &TrackEntry) -> TrackSetup {
    let private = entry.codec_private.as_deref().unwrap_or_default();
    let setup = match &entry.codec_id[..] {
        "V_VP8" => Setup::Vp8,
        "V_VP9" => Setup::Vp9 {
            profile: 0,
            bit_depth: 8,
            subsampling: 1,
            full_range: false,
        },
        "V_AV1" => Setup::Av1 {
            config: *private.first_chunk().unwrap(),
            sequence_header: private[4..].to_vec(),
        },
        "V_MPEG4/ISO/AVC" => {
            let config = Avcc::decode_body(&mut &private[..]).unwrap();
            Setup::H264 {
                sps: config.sequence_parameter_sets,
                pps: config.picture_parameter_sets,
            }
        }
        "V_MPEGH/ISO/HEVC" => {
            let config = Hvcc::decode_body(&mut &private[..]).unwrap();
            let sets = |kind| {
                let arrays = config.arrays.iter();
                let of_kind = arrays.filter(|array| array.nal_unit_type == kind);
                of_kind.flat_map(|array| array.nalus.clone()).collect()
            };
            Setup::H265 {
                vps: sets(32),
                sps: sets(33),
                pps: sets(34),
            }
        }
        "A_OPUS" => Setup::Opus {
            channels: *entry.audio.as_ref().unwrap().channels as u8,
        },
        "A_MS/ACM" if private[0] == 7 => Setup::Pcmu,
        "A_MS/ACM" if private[0] == 6 => Setup::Pcma,
        other => panic!("{other}"),
    };
    TrackSetup {
        setup,
        picture: entry.video.as_ref().map(|video| Picture {
            width: *video.pixel_width as u32,
            height: *video.pixel_height as u32,
        }),
        rotation: Rotation::R0,
        name: entry.name.as_ref().map(|name| name.to_string()),
    }
}

/// Files of all codecs, with their tracks and frames.
fn all_codecs() -> Vec<(Container, Vec<TrackSetup>, Vec<Frame>)> {
    let mut all = Vec::new();
    for (name, container) in [
        ("vp8-opus.webm", Container::WebM),
        ("vp9-opus.webm", Container::WebM),
        ("av1.webm", Container::WebM),
        ("h264-opus.mkv", Container::Matroska),
        ("h265-opus.mkv", Container::Matroska),
    ] {
        let file = fixture(name);
        all.push((container, setups(&file), frames(&file)));
    }
    for (name, setup) in [("tone.mulaw", Setup::Pcmu), ("tone.alaw", Setup::Pcma)] {
        let samples = fixture(name);
        let pieces = samples.chunks(160).zip(0..);
        let frames = pieces.map(|(piece, number)| Frame {
            track: 0,
            millis: number * 20,
            keyframe: true,
            data: piece.to_vec(),
        });
        all.push((Container::Matroska, vec![audio(setup)], frames.collect()));
    }
    all
}

fn video(setup: Setup) -> TrackSetup {
    TrackSetup {
        setup,
        picture: Some(Picture {
            width: 64,
            height: 48,
        }),
        rotation: Rotation::R0,
        name: None,
    }
}

fn audio(setup: Setup) -> TrackSetup {
    TrackSetup {
        setup,
        picture: None,
        rotation: Rotation::R0,
        name: None,
    }
}

fn new(container: Container, tracks: usize) -> Box<dyn ContainerWriter> {
    let info = FileInfo {
        title: Some("Test".to_owned()),
        started_us: 1_764_000_000_000_000,
        tracks,
    };
    writer(container, info)
}

/// Writes a file, and calls `each` with the bytes so far after each frame.
fn write(
    container: Container,
    setups: &[TrackSetup],
    frames: &[Frame],
    mut each: impl FnMut(usize, &[u8]),
) -> Disk {
    let mut writer = new(container, setups.len());
    let (mut disk, mut edits) = (Disk::default(), Edits::default());
    for (track, setup) in setups.iter().enumerate() {
        writer.set_track(track, setup.clone(), &mut edits).unwrap();
    }
    for (number, frame) in frames.iter().enumerate() {
        writer.frame(&frame.out(), &mut edits).unwrap();
        disk.apply(&mut edits);
        assert_eq!(writer.len(), disk.0.len() as u64);
        each(number, &disk.0);
    }
    writer.finish(&mut edits);
    disk.apply(&mut edits);
    disk
}

/// VP8 and audio: a picture every 40 ms, with a keyframe every `keyframes`, and a packet of Opus
/// every 20 ms.
fn long(seconds: u64, keyframes: u64) -> (Vec<TrackSetup>, Vec<Frame>) {
    let pictures = (0..seconds * 25).map(|number| Frame {
        track: 0,
        millis: number * 40,
        keyframe: number % keyframes == 0,
        data: match number % keyframes {
            0 => vec![0x10, 0, 0, 0x9d, 0x01, 0x2a, 64, 0, 48, 0, number as u8],
            _ => vec![0x11, 0, 0, number as u8],
        },
    });
    let sound = (0..seconds * 50).map(|number| Frame {
        track: 1,
        millis: number * 20,
        keyframe: true,
        data: vec![0xfc, number as u8, (number >> 8) as u8],
    });
    let mut frames: Vec<_> = pictures.chain(sound).collect();
    frames.sort_by_key(|frame| frame.millis);
    let setups = vec![video(Setup::Vp8), audio(Setup::Opus { channels: 2 })];
    (setups, frames)
}

const ONCE: OpenOptions = OpenOptions {
    audio: true,
    video: true,
    looping: false,
};

fn open(file: &[u8]) -> Result<MediaFile, FileError> {
    MediaFile::from_reader(Cursor::new(file.to_vec()), "", &ONCE)
}

/// Returns track and payload of each packet by our reader, and the final error.
fn packets(file: &[u8]) -> (Vec<(usize, Vec<u8>)>, Option<FileError>) {
    let mut file = open(file).unwrap();
    let mut packets = Vec::new();
    while let Some(packet) = file.next() {
        match packet {
            Ok(packet) => {
                let payload = Header::parse(packet.bytes).unwrap().payload(packet.bytes);
                packets.push((packet.track, payload.to_vec()));
            }
            Err(error) => return (packets, Some(error)),
        }
    }
    (packets, None)
}

/// Returns the counts and complaints of ffprobe, or `None` if it is not installed.
fn ffprobe(file: &[u8], options: &[&str]) -> Option<String> {
    let mut named = NamedTempFile::new().unwrap();
    named.write_all(file).unwrap();
    let mut command = Command::new("ffprobe");
    command
        .args(["-v", "error"])
        .args(options)
        .arg(named.path());
    let Ok(output) = command.output() else {
        eprintln!("skipped: ffprobe is not installed");
        return None;
    };
    assert!(output.status.success(), "{output:?}");
    let complaints = String::from_utf8(output.stderr).unwrap();
    Some(format!(
        "{}{complaints}",
        String::from_utf8(output.stdout).unwrap()
    ))
}

const COUNT_PACKETS: &[&str] = &[
    "-count_packets",
    "-show_entries",
    "stream=nb_read_packets",
    "-of",
    "csv=p=0",
];
