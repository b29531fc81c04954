//! Recordings of Opus as Ogg files, on a media plane without workers: the tests hand packets to its
//! taps, and find them in the files, in order and at their times.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

use std::path::Path;
use std::time::{Duration, Instant};

use portunus_files::opus::packet_duration;
use portunus_files::{MediaFile, OpenOptions};
use portunus_media::testing::RequestedOutlet;
use portunus_media::{IngestFeed, IngestOptions, MediaPlane, SourceRef, packet_feed};
use portunus_record::{
    End, Format, RecordError, RecordedMedia, Recorder, RecorderConfig, Recording, RecordingSpec,
};
use portunus_rtp::Header;
use portunus_sdp::CodecName;
use portunus_sdp::negotiated::Codec;
use tempfile::TempDir;
use tokio::sync::mpsc;

struct Stage {
    folder: TempDir,
    media: MediaPlane,
    recorder: Recorder,
    source: SourceRef,
    // The channel must stay open.
    _events: Box<dyn std::any::Any>,
}

impl Stage {
    fn new() -> Self {
        Self::with(|_| {})
    }

    fn with(change: impl FnOnce(&mut RecorderConfig)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut config = RecorderConfig {
            dir: Some(folder.path().to_owned()),
            keep_free_mb: 0,
            ..RecorderConfig::default()
        };
        change(&mut config);
        let (media, sender, events): (_, mpsc::Sender<_>, mpsc::Receiver<_>) =
            MediaPlane::detached();
        let feed = IngestFeed::Packets(packet_feed(1).1);
        let source = media.add_ingest(IngestOptions::rtp(Codec::Opus, 48_000, feed));
        Self {
            folder,
            recorder: Recorder::new(config),
            source: source.id.into(),
            media,
            _events: Box::new((sender, events)),
        }
    }

    fn start(&self, name: &str) -> Recording {
        let opus = spec(name, RecordedMedia::codec(CodecName::Opus));
        let recording = self.recorder.start(&self.media, self.source, true, opus);
        recording.unwrap()
    }

    fn tap(&self) -> RequestedOutlet {
        self.media.requested().outlets.last().unwrap().clone()
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }
}

fn spec(name: &str, media: RecordedMedia) -> RecordingSpec {
    RecordingSpec {
        dir: None,
        name: name.to_owned(),
        media,
        format: Format::OggOpus,
        of: None,
    }
}

/// 20 ms of audio that contains its number.
fn sound(sequence: u16) -> Vec<u8> {
    let mut packet = vec![0x80, 111];
    packet.extend_from_slice(&sequence.to_be_bytes());
    packet.extend_from_slice(&(u32::from(sequence) * 960).to_be_bytes());
    packet.extend_from_slice(&[0, 0, 0, 7, 0xf8, 1, 2]);
    packet.extend_from_slice(&sequence.to_be_bytes());
    packet
}

/// Sends packets in this order, each at the time of its number.
fn send(tap: &RequestedOutlet, sequences: impl IntoIterator<Item = u16>) {
    let start = Instant::now();
    for sequence in sequences {
        let at = start + Duration::from_millis(20) * sequence.into();
        assert!(tap.pretend_packet(&sound(sequence), Codec::Opus, at));
    }
}

/// Returns the packets of a file with their start in ms, and the length of the file in ms.
fn read(path: &Path) -> (Vec<(u16, u64)>, u64) {
    let once = OpenOptions {
        looping: false,
        ..OpenOptions::default()
    };
    let mut file = MediaFile::open(path, &once).unwrap();
    let (mut found, mut at) = (Vec::new(), 0);
    while let Some(packet) = file.next() {
        let packet = packet.unwrap();
        let payload = Header::parse(packet.bytes).unwrap().payload(packet.bytes);
        if let [0xf8, 1, 2, high, low] = payload {
            found.push((u16::from_be_bytes([*high, *low]), at / 48));
        }
        at += packet_duration(payload).unwrap().0;
    }
    (found, at / 48)
}

async fn end(recording: Recording) {
    let outcome = recording.outcome();
    drop(recording);
    assert_eq!(outcome.ended().await.unwrap(), End::Stopped);
}

#[tokio::test]
async fn late_packets_are_in_order_and_lost_ones_leave_silence() {
    let stage = Stage::new();
    let recording = stage.start("talk");
    assert_eq!(recording.file_name(), "talk.opus");
    let tap = stage.tap();
    send(&tap, [0, 1, 4, 3, 3, 2, 60, 61, 5, 200]);
    // Other codecs are left out.
    assert!(tap.pretend_packet(&sound(201), Codec::TelephoneEvent, Instant::now()));
    drop(tap);
    end(recording).await;
    let (packets, length) = read(&stage.path("talk.opus"));
    let expected = [0, 1, 2, 3, 4, 5, 60, 61, 200].map(|n| (n, u64::from(n) * 20));
    assert_eq!(packets, expected);
    assert_eq!(length, 201 * 20);
    let totals = stage.recorder.totals();
    let bytes = stage.path("talk.opus").metadata().unwrap().len();
    assert_eq!((totals.frames, totals.bytes), (9, bytes));
}

/// Redundant audio with the packet before it.
fn redundant(sequence: u16) -> Vec<u8> {
    let packet = sound(sequence);
    let (header, primary) = packet.split_at(12);
    let before = sound(sequence - 1).split_off(12);
    // 14 bits of the timestamp offset 960, and 10 bits of the length.
    let first = (960_u32 << 10 | before.len() as u32).to_be_bytes();
    let mut packet = header.to_vec();
    packet.extend_from_slice(&[0x80 | 111, first[1], first[2], first[3], 111]);
    packet.extend_from_slice(&before);
    packet.extend_from_slice(primary);
    packet
}

#[tokio::test]
async fn redundant_audio_is_taken_apart_and_makes_up_for_losses() {
    let stage = Stage::new();
    let media = RecordedMedia::codec(CodecName::Opus).with_red(true);
    let recording = stage
        .recorder
        .start(&stage.media, stage.source, true, spec("red", media))
        .unwrap();
    let tap = stage.tap();
    let start = Instant::now();
    for sequence in [11, 12, 14, 15, 18] {
        let at = start + Duration::from_millis(20) * sequence;
        let packet = redundant(sequence as u16);
        assert!(tap.pretend_packet(&packet, Codec::Red, at));
    }
    // Malformed packets are left out.
    assert!(tap.pretend_packet(&sound(19), Codec::Red, start + Duration::from_millis(380)));
    drop(tap);
    end(recording).await;
    let (packets, length) = read(&stage.path("red.opus"));
    let expected = [10, 11, 12, 13, 14, 15, 17, 18].map(|n| (n, u64::from(n - 10) * 20));
    assert_eq!(packets, expected);
    assert_eq!(length, 9 * 20);
}

#[tokio::test]
async fn the_file_plays_while_it_grows() {
    let stage = Stage::new();
    let recording = stage.start("grows");
    recording.outcome().opened().await.unwrap();
    send(&stage.tap(), 0..150);
    // Three seconds were sent, of which two are written before the file is complete.
    let deadline = Instant::now() + Duration::from_secs(60);
    while stage.recorder.totals().frames < 150 {
        assert!(Instant::now() < deadline, "nothing is written");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let (_, length) = read(&stage.path("grows.opus"));
    assert!((1_980..3_000).contains(&length), "{length}");
    end(recording).await;
    assert_eq!(read(&stage.path("grows.opus")).1, 3_000);
}

#[tokio::test]
async fn it_ends_with_the_first_packet_after_its_time() {
    let stage = Stage::new();
    let recording = stage.start("timed");
    recording.end_at(Instant::now() + Duration::from_secs(2));
    send(&stage.tap(), 0..500);
    assert_eq!(recording.outcome().ended().await.unwrap(), End::Time);
    let (_, length) = read(&stage.path("timed.opus"));
    assert!((1_980..=2_020).contains(&length), "{length}");
    // It goes on without packets.
    let recording = stage.start("silent");
    recording.end_at(Instant::now());
    recording.outcome().opened().await.unwrap();
    assert!(!recording.is_over());
}

#[tokio::test]
async fn a_source_that_ends_is_told_from_a_recording_that_is_stopped() {
    let stage = Stage::new();
    let recording = stage.start("gone");
    let SourceRef::Ingest(ingest) = stage.source else {
        panic!("an ingest was added");
    };
    stage.media.remove_ingest(ingest);
    assert_eq!(recording.outcome().ended().await.unwrap(), End::Source);
}

#[tokio::test]
async fn a_file_can_be_there_before_its_source() {
    let stage = Stage::new();
    let opus = || spec("first", RecordedMedia::codec(CodecName::Opus));
    let prepared = stage.recorder.prepare(opus()).await.unwrap();
    let path = stage.path("first.opus");
    assert!(path.exists());
    let busy = stage.recorder.prepare(opus()).await;
    assert!(matches!(busy, Err(RecordError::Busy(_))), "{busy:?}");
    prepared.discard().await;
    assert!(!path.exists());
    let prepared = stage.recorder.prepare(opus()).await.unwrap();
    let recording = prepared.start(&stage.media, stage.source, true);
    send(&stage.tap(), 0..10);
    end(recording).await;
    assert_eq!(read(&path).1, 200);
    let exists = stage.recorder.prepare(opus()).await;
    assert!(matches!(exists, Err(RecordError::Exists(_))), "{exists:?}");
}

#[tokio::test]
async fn only_what_the_format_is_for_is_recorded() {
    let stage = Stage::new();
    for media in [
        RecordedMedia::codec(CodecName::Vp8),
        RecordedMedia::data(true),
        RecordedMedia::codec(CodecName::Opus).with_encryption(true),
    ] {
        let refused = stage.recorder.prepare(spec("no", media)).await;
        let Err(error) = refused else {
            panic!("it was taken");
        };
        assert_eq!(error.to_string(), "\"no\" cannot be recorded as .opus");
    }
    assert!(!stage.path("no.opus").exists());
    assert_eq!(stage.recorder.totals().failed, 3);
}

#[tokio::test]
async fn a_folder_of_its_own_is_left_by_no_name() {
    let stage = Stage::new();
    let within = stage.recorder.in_folder(Path::new("mail"));
    assert_eq!(within.folder(), stage.path("mail"));
    let opus = |name: &str| spec(name, RecordedMedia::codec(CodecName::Opus));
    let out = stage.path("a");
    for name in ["../a", out.to_str().unwrap()] {
        assert!(within.prepare(opus(name)).await.is_err(), "{name}");
    }
    let prepared = within.prepare(opus("a")).await.unwrap();
    assert!(stage.path("mail/a.opus").exists());
    assert_eq!(stage.recorder.totals().open, 1);
    prepared.discard().await;
    stage.recorder.finished().await;
}

#[tokio::test]
async fn a_file_becomes_no_longer_than_it_may_and_has_whole_pages() {
    const LIMIT: u64 = 2_000;
    let stage = Stage::with(|config| config.max_file_bytes = LIMIT);
    let recording = stage.start("long");
    send(&stage.tap(), 0..1_000);
    let error = recording.outcome().ended().await.unwrap_err();
    assert!(matches!(&*error, RecordError::Full { .. }), "{error}");
    let path = stage.path("long.opus");
    assert!(path.metadata().unwrap().len() <= LIMIT);
    // The content so far is complete.
    assert!(read(&path).1 >= 1_000);
}
