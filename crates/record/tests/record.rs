//! Recordings on a media plane without workers: the tests hand packets to its taps, and find them
//! in the files. A failure ends its recording and nothing else.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use portunus_files::mjr::{FrameReader, Info, Medium};
use portunus_media::testing::RequestedOutlet;
use portunus_media::{DataPayload, IngestFeed, IngestOptions, MediaPlane, SourceRef, packet_feed};
use portunus_record::{
    Format, RecordError, RecordedMedia, Recorder, RecorderConfig, Recording, RecordingSpec,
};
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

    fn start(&self, name: &str, media: RecordedMedia) -> Result<Recording, RecordError> {
        let spec = RecordingSpec {
            dir: None,
            name: name.to_owned(),
            media,
            format: Format::Mjr,
            of: None,
        };
        self.recorder.start(&self.media, self.source, true, spec)
    }

    fn audio(&self, name: &str) -> Result<Recording, RecordError> {
        self.start(name, RecordedMedia::codec(CodecName::Opus))
    }

    /// The last tap.
    fn tap(&self) -> RequestedOutlet {
        self.media.requested().outlets.last().unwrap().clone()
    }

    fn read(&self, name: &str) -> (Option<Info>, Vec<(Duration, Vec<u8>)>) {
        read(&self.folder.path().join(name))
    }

    fn has(&self, name: &str) -> bool {
        self.folder.path().join(name).exists()
    }
}

fn read(path: &Path) -> (Option<Info>, Vec<(Duration, Vec<u8>)>) {
    let mut reader = FrameReader::new();
    reader.push(&std::fs::read(path).unwrap());
    let mut frames = Vec::new();
    while let Some(frame) = reader.next().unwrap() {
        frames.push((frame.at, frame.bytes.to_vec()));
    }
    reader.finish().unwrap();
    (reader.info().cloned(), frames)
}

fn rtp(pt: u8, sequence: u16, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x80, pt];
    packet.extend_from_slice(&sequence.to_be_bytes());
    packet.extend_from_slice(&(u32::from(sequence) * 960).to_be_bytes());
    packet.extend_from_slice(&7_u32.to_be_bytes());
    packet.extend_from_slice(payload);
    packet
}

/// The packet of a VP8 frame.
fn vp8(sequence: u16, keyframe: bool) -> Vec<u8> {
    // The start of the partition, then the frame's header, whose lowest bit is 0 in a keyframe.
    let payload = [
        0x10,
        u8::from(!keyframe),
        0,
        0,
        0x9d,
        0x01,
        0x2a,
        0,
        0,
        0,
        0,
    ];
    rtp(100, sequence, &payload)
}

/// Waits until the recorder has no open file.
async fn end(stage: &Stage, recording: Recording) {
    let outcome = recording.outcome();
    drop(recording);
    outcome.ended().await.unwrap();
    stage.recorder.finished().await;
}

#[tokio::test]
async fn packets_are_written_with_their_times_and_the_static_payload_type() {
    let stage = Stage::new();
    let recording = stage.audio("talk").unwrap();
    assert_eq!(recording.file_name(), "talk.mjr");
    let tap = stage.tap();
    let start = Instant::now();
    for sequence in 0..5_u16 {
        let at = start + Duration::from_millis(20) * sequence.into();
        assert!(tap.pretend_packet(&rtp(96, sequence, b"sound"), Codec::Opus, at));
    }
    // Other codecs are left out.
    assert!(tap.pretend_packet(&rtp(101, 5, b"tone"), Codec::TelephoneEvent, start));
    recording.outcome().opened().await.unwrap();
    assert!(!recording.is_over());
    drop(tap);
    end(&stage, recording).await;
    assert!(stage.media.requested().outlets.is_empty());

    let (info, frames) = stage.read("talk.mjr");
    let info = info.unwrap();
    assert_eq!((info.medium, info.codec.as_str()), (Medium::Audio, "opus"));
    let at = |frame: &(Duration, Vec<u8>)| frame.0.as_millis();
    assert_eq!(
        frames.iter().map(at).collect::<Vec<_>>(),
        [0, 20, 40, 60, 80]
    );
    assert_eq!(frames[3].1, rtp(111, 3, b"sound"));
    let totals = stage.recorder.totals();
    assert_eq!((totals.open, totals.started, totals.failed), (0, 1, 0));
    let len = std::fs::metadata(stage.folder.path().join("talk.mjr"))
        .unwrap()
        .len();
    assert_eq!((totals.frames, totals.bytes), (5, len));
}

#[tokio::test]
async fn messages_are_written_as_they_are() {
    let stage = Stage::new();
    let recording = stage.start("chat", RecordedMedia::data(true)).unwrap();
    let tap = stage.tap();
    for payload in [
        DataPayload::Text("hello".to_owned()),
        DataPayload::Binary(vec![1, 2]),
        DataPayload::Text("x".repeat(70_000)),
    ] {
        assert!(tap.pretend_message("chat", payload));
    }
    drop(tap);
    end(&stage, recording).await;
    let (info, frames) = stage.read("chat.mjr");
    assert_eq!(info.unwrap().codec, "text");
    let messages: Vec<_> = frames.into_iter().map(|frame| frame.1).collect();
    // There is no room for the third.
    assert_eq!(messages, [b"hello".to_vec(), vec![1, 2]]);
}

#[tokio::test]
async fn video_begins_with_a_keyframe_unless_none_comes() {
    let stage = Stage::new();
    let media = RecordedMedia::codec(CodecName::Vp8);
    let start = Instant::now();
    let at = |millis| start + Duration::from_millis(millis);
    let first = |name: &str| {
        let (_, frames) = stage.read(name);
        frames.first().map(|frame| frame.1[3])
    };

    let recording = stage.start("waits", media.clone()).unwrap();
    let tap = stage.tap();
    for (sequence, keyframe) in [(1, false), (2, false), (3, true), (4, false)] {
        tap.pretend_packet(
            &vp8(sequence, keyframe),
            Codec::Vp8,
            at(40 * u64::from(sequence)),
        );
    }
    drop(tap);
    end(&stage, recording).await;
    assert_eq!(first("waits.mjr"), Some(3));

    let recording = stage.start("begins", media.clone()).unwrap();
    let tap = stage.tap();
    for (sequence, millis) in [(1, 0), (2, 4_999), (3, 5_000)] {
        tap.pretend_packet(&vp8(sequence, false), Codec::Vp8, at(millis));
    }
    drop(tap);
    end(&stage, recording).await;
    assert_eq!(first("begins.mjr"), Some(3));

    let recording = stage.start("sealed", media.with_encryption(true)).unwrap();
    let tap = stage.tap();
    tap.pretend_packet(&vp8(1, false), Codec::Vp8, at(0));
    drop(tap);
    end(&stage, recording).await;
    assert_eq!(first("sealed.mjr"), Some(1));
    assert!(stage.read("sealed.mjr").0.unwrap().encrypted);
}

#[tokio::test]
async fn the_gate_is_that_of_the_tap() {
    let stage = Stage::new();
    let mut recording = stage.audio("gated").unwrap();
    assert!(stage.tap().options.enabled);
    recording.set_open(false);
    assert!(!stage.tap().options.enabled);
    recording.set_open(true);
    assert!(stage.tap().options.enabled);
    end(&stage, recording).await;
}

#[tokio::test]
async fn a_recording_ends_with_its_source() {
    let stage = Stage::new();
    let recording = stage.audio("short").unwrap();
    stage
        .tap()
        .pretend_packet(&rtp(96, 1, b"x"), Codec::Opus, Instant::now());
    let SourceRef::Ingest(ingest) = stage.source else {
        panic!("an ingest was added");
    };
    stage.media.remove_ingest(ingest);
    recording.outcome().ended().await.unwrap();
    assert!(recording.is_over());
    assert_eq!(stage.read("short.mjr").1.len(), 1);
    assert_eq!(stage.recorder.totals().open, 0);
}

#[tokio::test]
async fn a_name_is_taken_while_it_is_written_and_its_file_is_never_lost() {
    let stage = Stage::new();
    let first = stage.audio("same").unwrap();
    assert!(matches!(stage.audio("./same"), Err(RecordError::Busy(_))));
    first.outcome().opened().await.unwrap();
    let tap = stage.tap();
    tap.pretend_packet(&rtp(96, 1, b"x"), Codec::Opus, Instant::now());
    drop(tap);
    end(&stage, first).await;
    let second = stage.audio("same").unwrap();
    let error = second.outcome().opened().await.unwrap_err();
    assert!(
        matches!(&*error, RecordError::Exists(name) if name == "same"),
        "{error}"
    );
    assert!(second.is_over());
    assert_eq!(stage.recorder.totals().failed, 1);

    let stage = Stage::with(|config| config.overwrite = true);
    for payload in [b"one", b"two"] {
        let recording = stage.audio("same").unwrap();
        let tap = stage.tap();
        tap.pretend_packet(&rtp(96, 1, payload), Codec::Opus, Instant::now());
        drop(tap);
        end(&stage, recording).await;
    }
    assert_eq!(stage.read("same.mjr").1[0].1[12..], *b"two");
}

#[tokio::test]
async fn a_file_has_its_name_once_it_is_complete() {
    let stage = Stage::with(|config| config.temporary = "part".to_owned());
    let recording = stage.audio("room/late").unwrap();
    recording.outcome().opened().await.unwrap();
    assert!(stage.has("room/late.mjr.part"));
    assert!(!stage.has("room/late.mjr"));
    let tap = stage.tap();
    tap.pretend_packet(&rtp(96, 1, b"x"), Codec::Opus, Instant::now());
    drop(tap);
    end(&stage, recording).await;
    assert!(!stage.has("room/late.mjr.part"));
    assert!(stage.has("room/late.mjr"));
    let again = stage.audio("room/late").unwrap();
    let error = again.outcome().opened().await.unwrap_err();
    assert!(matches!(&*error, RecordError::Exists(_)), "{error}");
}

#[tokio::test]
async fn a_file_that_nothing_came_into_is_deleted() {
    for temporary in ["", "part"] {
        let stage = Stage::with(|config| config.temporary = temporary.to_owned());
        for media in [
            RecordedMedia::codec(CodecName::Opus),
            RecordedMedia::data(true),
        ] {
            let recording = stage.start("silent", media).unwrap();
            recording.outcome().opened().await.unwrap();
            end(&stage, recording).await;
            let left = std::fs::read_dir(stage.folder.path()).unwrap();
            assert_eq!(left.count(), 0);
        }
        assert_eq!(stage.recorder.totals().failed, 0);
    }
}

#[tokio::test]
async fn a_folder_that_cannot_be_made_is_told() {
    let stage = Stage::new();
    std::fs::write(stage.folder.path().join("file"), "").unwrap();
    let recording = stage.audio("file/talk").unwrap();
    let error = recording.outcome().opened().await.unwrap_err();
    assert!(matches!(&*error, RecordError::Create { .. }), "{error}");
    assert!(
        error
            .to_string()
            .starts_with("\"file/talk\" cannot be made")
    );
    assert!(
        !error
            .to_string()
            .contains(stage.folder.path().to_str().unwrap())
    );
    recording.outcome().ended().await.unwrap_err();
    // The tap has ended, too.
    let tap = stage.tap();
    assert!(!tap.pretend_packet(&rtp(96, 1, b"x"), Codec::Opus, Instant::now()));
}

#[tokio::test]
async fn a_full_disk_ends_the_recording() {
    let stage = Stage::with(|config| config.overwrite = true);
    // Links are not followed. Making a device takes root, which CI has.
    let device = stage.folder.path().join("full.mjr");
    let mut mknod = Command::new("mknod");
    mknod.arg(&device).args(["c", "1", "7"]);
    if !mknod.status().is_ok_and(|status| status.success()) {
        return;
    }
    let recording = stage.audio("full").unwrap();
    let error = recording.outcome().ended().await.unwrap_err();
    assert!(matches!(&*error, RecordError::Write { .. }), "{error}");
    assert!(!stage.has("full.mjr"), "no empty file is left");
    assert_eq!(stage.recorder.totals().failed, 1);
    assert_eq!(stage.recorder.totals().open, 0);
}

#[tokio::test]
async fn a_file_becomes_no_longer_than_it_may_and_has_whole_packets() {
    const LIMIT: u64 = 2_000;
    let stage = Stage::with(|config| config.max_file_bytes = LIMIT);
    let recording = stage.audio("long").unwrap();
    let tap = stage.tap();
    for sequence in 1..=100 {
        tap.pretend_packet(&rtp(96, sequence, &[7; 100]), Codec::Opus, Instant::now());
    }
    let error = recording.outcome().ended().await.unwrap_err();
    assert!(
        matches!(&*error, RecordError::Full { limit: LIMIT, .. }),
        "{error}"
    );
    assert!(recording.is_over());
    let (_, packets) = stage.read("long.mjr");
    assert!((10..20).contains(&packets.len()), "{}", packets.len());
    let file = stage.folder.path().join("long.mjr");
    assert!(file.metadata().unwrap().len() <= LIMIT);
    let totals = stage.recorder.totals();
    assert_eq!((totals.open, totals.failed), (0, 1));
    assert_eq!(totals.frames, packets.len() as u64);
}

#[tokio::test]
async fn what_finds_no_room_is_counted() {
    let stage = Stage::new();
    let recording = stage.audio("burst").unwrap();
    let tap = stage.tap();
    // Nothing is written meanwhile, because the task has the same thread.
    for sequence in 0..3_000 {
        tap.pretend_packet(&rtp(96, sequence, b"x"), Codec::Opus, Instant::now());
    }
    drop(tap);
    end(&stage, recording).await;
    let totals = stage.recorder.totals();
    assert_eq!(totals.frames + totals.dropped, 3_000);
    assert!(totals.dropped > 0);
    assert_eq!(stage.read("burst.mjr").1.len() as u64, totals.frames);
}

#[tokio::test]
async fn nothing_is_recorded_where_that_is_switched_off_or_leads_out() {
    let stage = Stage::with(|config| config.enabled = false);
    assert!(matches!(stage.audio("x"), Err(RecordError::Disabled)));
    let stage = Stage::new();
    assert!(matches!(stage.audio("../x"), Err(RecordError::Name(_))));
    assert!(matches!(
        stage.audio("/etc/x"),
        Err(RecordError::Outside(_))
    ));
    assert!(stage.media.requested().outlets.is_empty());
    assert_eq!(stage.recorder.totals().started, 0);
}

#[tokio::test]
async fn a_disk_that_is_nearly_full_is_left_alone() {
    let stage = Stage::with(|config| config.keep_free_mb = u64::MAX);
    let recording = stage.audio("a").unwrap();
    let error = recording.outcome().opened().await.unwrap_err();
    assert!(matches!(&*error, RecordError::NoRoom { .. }), "{error}");
    assert!(!stage.folder.path().join("a.mjr").exists());
    let stage = Stage::with(|config| config.keep_free_mb = 0);
    let recording = stage.audio("a").unwrap();
    recording.outcome().opened().await.unwrap();
}
