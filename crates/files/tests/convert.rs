//! Conversion of recordings in Janus's format: those of Janus itself (see
//! tests/data/janus/README.md), and damaged ones.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

use std::fs::File;
use std::io::{self, Cursor};
use std::path::{Path, PathBuf};
use std::time::Duration;

use portunus_files::container::{Container, Edits};
use portunus_files::convert::{
    ConvertError, Recordings, Sink, to_container, to_ogg_opus, to_pcap, to_subtitles,
};
use portunus_files::mjr::{FrameWriter, Info, Medium, UnixMicros};
use portunus_files::summary::{Depth, Summary};
use portunus_files::{Codec, MediaFile, OpenOptions};

/// Files in memory.
#[derive(Default)]
struct Files(Vec<Vec<u8>>);

impl Sink for Files {
    fn begin(&mut self, part: u32, started: UnixMicros) -> io::Result<()> {
        assert_eq!(part as usize, self.0.len() + 1);
        assert!(started > UnixMicros(0));
        self.0.push(Vec::new());
        Ok(())
    }

    fn apply(&mut self, edits: &mut Edits) -> io::Result<()> {
        let file = self.0.last_mut().unwrap();
        file.append(&mut edits.append);
        for (at, bytes) in edits.patches.drain(..) {
            let at = at as usize;
            file[at..at + bytes.len()].copy_from_slice(&bytes);
        }
        Ok(())
    }
}

fn path(name: &str) -> PathBuf {
    Path::new("tests/data/janus").join(name)
}

fn recordings(names: &[&str]) -> Recordings {
    Recordings::open(names.iter().map(|name| File::open(path(name)).unwrap())).unwrap()
}

fn nothing(_: f32) {}

/// Returns the codecs in a file, with the number of packets of each.
fn read(file: Vec<u8>) -> Vec<(Codec, usize)> {
    let once = OpenOptions {
        looping: false,
        ..OpenOptions::default()
    };
    let mut file = MediaFile::from_reader(Cursor::new(file), "", &once).unwrap();
    let codecs: Vec<_> = file.tracks().iter().map(|track| track.codec).collect();
    let mut counts = vec![0; codecs.len()];
    while let Some(packet) = file.next() {
        counts[packet.unwrap().track] += 1;
    }
    codecs.into_iter().zip(counts).collect()
}

#[test]
fn sound_and_pictures_of_janus_become_one_file() {
    for (names, container, codecs) in [
        (
            &["vp8-opus-audio.mjr", "vp8-opus-video.mjr"][..],
            Container::WebM,
            &[Codec::Opus, Codec::Vp8][..],
        ),
        (&["vp9-video.mjr"], Container::WebM, &[Codec::Vp9]),
        (&["h264-video.mjr"], Container::Matroska, &[Codec::H264]),
        (&["h264-video.mjr"], Container::Mp4, &[Codec::H264]),
        (&["pcmu-audio.mjr"], Container::Matroska, &[Codec::Pcmu]),
    ] {
        let mut files = Files::default();
        let mut opened = recordings(names);
        let converted = to_container(&mut opened, container, &mut files, &mut nothing).unwrap();
        assert_eq!(opened.damage().count(), 0);
        assert_eq!(converted.lost, 0, "{names:?}");
        assert!(
            converted.duration > Duration::from_millis(1_500),
            "{names:?}: {converted:?}"
        );
        assert!(converted.frames > 15, "{names:?}: {converted:?}");
        let read = read(files.0.remove(0));
        let found: Vec<_> = read.iter().map(|it| it.0).collect();
        assert_eq!(found, codecs, "{names:?}");
        assert!(read.iter().all(|it| it.1 > 10), "{names:?}: {read:?}");
    }
}

#[test]
fn sound_becomes_ogg_opus() {
    let mut file = Vec::new();
    let converted = to_ogg_opus(
        &mut recordings(&["vp8-opus-audio.mjr"]),
        &mut file,
        &mut nothing,
    );
    assert!(converted.unwrap().duration > Duration::from_millis(1_500));
    assert_eq!(read(file)[0].0, Codec::Opus);
    for (names, word) in [
        (&["vp9-video.mjr"][..], "no audio"),
        (&["pcmu-audio.mjr"], "no Opus"),
        (
            &["vp8-opus-audio.mjr", "vp8-opus-video.mjr"],
            "more than one",
        ),
    ] {
        let done = to_ogg_opus(&mut recordings(names), &mut Vec::new(), &mut nothing);
        let error = done.unwrap_err().to_string();
        assert!(error.contains(word), "{error}");
    }
}

#[test]
fn messages_become_subtitles() {
    let names = ["vp8-opus-audio.mjr", "vp8-opus-data.mjr"];
    let mut file = Vec::new();
    let converted = to_subtitles(&mut recordings(&names), &mut file, &mut nothing).unwrap();
    assert_eq!(converted.frames, 3);
    let text = String::from_utf8(file).unwrap();
    let entries: Vec<_> = text.split("\n\n").filter(|it| !it.is_empty()).collect();
    assert_eq!(entries.len(), 3);
    for (entry, message) in entries.iter().zip(["Hello", "How are you?", "Bye"]) {
        let lines: Vec<_> = entry.lines().collect();
        assert!(
            lines[1].contains(" --> ") && lines[1].starts_with("00:00:0"),
            "{entry}"
        );
        assert_eq!(lines[2], message);
    }
}

#[test]
fn packets_become_a_capture() {
    let names = ["vp8-opus-audio.mjr", "vp8-opus-video.mjr"];
    let mut file = Vec::new();
    let converted = to_pcap(&mut recordings(&names), &mut file, &mut nothing).unwrap();
    let mut rest = &file[24..];
    let mut packets = 0;
    while !rest.is_empty() {
        let len = u32::from_le_bytes(*rest[8..].first_chunk().unwrap()) as usize;
        // IPv4, UDP, and version 2 of RTP.
        assert_eq!((rest[16], rest[16 + 9], rest[16 + 28] >> 6), (0x45, 17, 2));
        rest = &rest[16 + len..];
        packets += 1;
    }
    assert_eq!(packets, converted.frames);
}

#[test]
fn what_janus_wrote_is_summed_up() {
    let summary = Summary::of(&path("vp8-opus-video.mjr"), Depth::All).unwrap();
    let track = &summary.tracks[0];
    assert_eq!(
        (track.kind, track.codec.as_str(), track.lost),
        ("video", "vp8", Some(0))
    );
    assert!(summary.complete && track.frames > 15);
    let ends = Summary::of(&path("vp8-opus-video.mjr"), Depth::Ends).unwrap();
    assert_eq!(ends.duration, summary.duration);
    assert!(ends.complete);
}

#[test]
fn what_is_torn_is_converted_as_far_as_it_goes() {
    let whole = std::fs::read(path("pcmu-audio.mjr")).unwrap();
    for len in (0..whole.len()).step_by(501) {
        let opened = Recordings::open([Cursor::new(whole[..len].to_vec())]);
        let Ok(mut opened) = opened else {
            assert!(len < 400, "{len}");
            continue;
        };
        let mut files = Files::default();
        let done = to_container(&mut opened, Container::Matroska, &mut files, &mut nothing);
        match done {
            Ok(converted) => assert!(converted.frames > 0),
            Err(error) => assert!(matches!(error, ConvertError::Nothing(_)), "{error}"),
        }
    }
}

#[test]
fn what_has_no_place_is_refused() {
    let mut files = Files::default();
    let mut opened = recordings(&["pcmu-audio.mjr"]);
    let error = to_container(&mut opened, Container::WebM, &mut files, &mut nothing).unwrap_err();
    assert!(
        error.to_string().contains(".mkv takes every codec"),
        "{error}"
    );

    let mut info = Info::new(Medium::Audio, "opus", UnixMicros(1_764_000_000_000_000));
    info.encrypted = true;
    let error = converted_info(info.clone()).unwrap_err();
    assert!(matches!(error, ConvertError::Encrypted(0)));
    info.encrypted = false;
    info.codec = "g722".to_owned();
    let error = converted_info(info).unwrap_err().to_string();
    assert!(error.contains("g722"), "{error}");
}

/// Converts a recording with a header and a packet only.
fn converted_info(info: Info) -> Result<(), ConvertError> {
    let mut file = Vec::new();
    let mut writer = FrameWriter::new(info, &mut file);
    let packet = [0x80, 111, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0xfc];
    writer
        .packet(UnixMicros(1_764_000_000_000_000), &packet, &mut file)
        .unwrap();
    let mut opened = Recordings::open([Cursor::new(file)])?;
    to_container(
        &mut opened,
        Container::Matroska,
        &mut Files::default(),
        &mut nothing,
    )
    .map(drop)
}
