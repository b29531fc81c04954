//! Matroska and WebM files that are written, read again.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use std::io::Cursor;
use std::path::Path;
use std::time::Duration;

use mkv_element::FrameData;
use mkv_element::io::blocking_impl::ReadFrom;
use mkv_element::prelude::{Ebml, Segment};
use portunus_files::bitstream::{Picture, Setup};
use portunus_files::container::{
    Container, ContainerWriter, Edits, FileInfo, FrameOut, Rotation, TrackSetup, writer,
};
use portunus_files::{MediaFile, OpenOptions};

/// A file that edits are made to.
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

/// The frames of a complete file as the library reads it, which knows nothing of our reader.
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

#[test]
fn frames_are_read_as_they_were_written() {
    let before = frames(&fixture("vp8-opus.webm"));
    let mut writer = new(Container::WebM, 2);
    let (mut disk, mut edits) = (Disk::default(), Edits::default());
    writer.set_track(0, video(Setup::Vp8), &mut edits).unwrap();
    writer
        .set_track(1, audio(Setup::Opus { channels: 1 }), &mut edits)
        .unwrap();
    for frame in &before {
        writer.frame(&frame.out(), &mut edits).unwrap();
        disk.apply(&mut edits);
        assert_eq!(writer.len(), disk.0.len() as u64);
    }
    writer.finish(&mut edits);
    disk.apply(&mut edits);
    assert_eq!(frames(&disk.0), before);

    let read = Cursor::new(disk.0.clone());
    let read = MediaFile::from_reader(read, "", &OpenOptions::default()).unwrap();
    assert_eq!(read.tracks().len(), 2);
    if let Ok(path) = std::env::var("KEEP") {
        std::fs::write(path, &disk.0).unwrap();
    }
}
