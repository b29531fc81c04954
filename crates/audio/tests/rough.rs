//! Files that cannot be read or written, and sources that end too early: whoever asks is told, and the room goes on.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::expect_used
)]

#[path = "rig/mod.rs"]
mod rig;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use portunus_audio::{
    Announcement, AnnouncementEnd, AnnouncementId, AudioCodec, AudioConfig, AudioError, AudioEvent,
    AudioThreads, MixRecording, Out, ParticipantId, RecordingFormat,
};
use portunus_media::{IngestFeed, IngestOptions, MediaPlane, SourceRef, TrackRef};
use portunus_record::{Recorder, RecorderConfig};
use portunus_rtp::Mid;
use portunus_sdp::negotiated::{Codec, IceCredentials};
use rig::{HEARD, PATIENCE, Person, options, participant, server};
use tokio::sync::mpsc;

fn file(name: &str) -> PathBuf {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../files/tests/data");
    data.join(name)
}

fn announcement(file: PathBuf) -> Announcement {
    Announcement {
        file,
        group: None,
        looping: false,
    }
}

async fn next(events: &mut mpsc::Receiver<AudioEvent>) -> AudioEvent {
    let event = tokio::time::timeout(PATIENCE, events.recv()).await;
    event.unwrap().unwrap()
}

#[tokio::test]
async fn an_announcement_is_heard_and_an_unreadable_one_is_refused() {
    let disk = tempfile::tempdir().unwrap();
    let server = server(1, Recorder::default());
    let (room, mut events) = server.threads.open(options()).unwrap();
    let ann = Person::new(&server, 500.0);
    ann.join(&room, 1);
    let broken = disk.path().join("broken.opus");
    std::fs::write(&broken, b"OggS, but not really").unwrap();
    let missing = disk.path().join("missing.opus");
    for wrong in [missing, broken, file("vorbis.ogg"), file("tone.mulaw")] {
        let refused = room
            .announce(AnnouncementId(1), announcement(wrong.clone()))
            .await;
        assert!(
            matches!(refused, Err(AudioError::File(_) | AudioError::NotOpus)),
            "{wrong:?}: {refused:?}"
        );
    }
    let tone = announcement(file("tone.opus"));
    room.announce(AnnouncementId(2), tone).await.unwrap();
    assert!(matches!(
        next(&mut events).await,
        AudioEvent::AnnouncementStarted(AnnouncementId(2))
    ));
    let began = Instant::now();
    while ann.hear(440.0).3 < HEARD / 16.0 {
        assert!(began.elapsed() < PATIENCE, "the tone is heard");
    }
    let ended = next(&mut events).await;
    let AudioEvent::AnnouncementEnded { announcement, why } = ended else {
        panic!("{ended:?}");
    };
    assert_eq!(announcement, AnnouncementId(2));
    assert!(matches!(why, AnnouncementEnd::Played), "{why:?}");
}

fn recording() -> MixRecording {
    MixRecording {
        dir: None,
        name: "room".to_owned(),
        temporary: None,
        format: RecordingFormat::Wav,
        group: None,
    }
}

fn recorder(dir: &Path) -> Recorder {
    Recorder::new(RecorderConfig {
        dir: Some(dir.to_owned()),
        keep_free_mb: 0,
        ..RecorderConfig::default()
    })
}

#[tokio::test]
async fn a_recording_into_a_folder_that_is_none_is_refused() {
    let disk = tempfile::tempdir().unwrap();
    let no_folder = disk.path().join("file");
    std::fs::write(&no_folder, b"").unwrap();
    let recorder = recorder(&no_folder);
    let server = server(1, recorder.clone());
    let (room, _events) = server.threads.open(options()).unwrap();
    let refused = room.record(recording()).await;
    assert!(matches!(refused, Err(AudioError::Record(_))), "{refused:?}");
    assert_eq!(recorder.totals().open, 0);
    // Nothing keeps the room from being used.
    let ann = Person::new(&server, 500.0);
    ann.join(&room, 1);
    ann.hear(500.0);
}

/// A disk of 64 KiB, where one may be made.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn new() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=64k", "tmpfs"]);
        let mounted = mount.arg(folder.path()).output();
        mounted
            .is_ok_and(|it| it.status.success())
            .then(|| Self(folder))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // A folder that stays is no reason to fail.
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}

#[tokio::test]
async fn a_disk_that_is_full_ends_the_recording_and_not_the_room() {
    let Some(disk) = SmallDisk::new() else {
        eprintln!("left out: no small disk can be mounted here");
        return;
    };
    let recorder = recorder(disk.0.path());
    let server = server(1, recorder.clone());
    let (room, mut events) = server.threads.open(options()).unwrap();
    assert_eq!(room.record(recording()).await.unwrap(), "room.wav");
    let ann = Person::new(&server, 500.0);
    ann.join(&room, 1);
    ann.talks.store(true, Ordering::Relaxed);
    let ended = next(&mut events).await;
    let AudioEvent::RecordingEnded { file, error } = ended else {
        panic!("{ended:?}");
    };
    assert_eq!((file.as_str(), error.is_some()), ("room.wav", true));
    ann.hear(500.0);
    assert_eq!(recorder.totals().open, 0);
}

#[test]
fn a_source_that_ends_while_its_participant_joins_leaves_nothing_behind() {
    let (media, ..) = MediaPlane::detached();
    let threads = AudioThreads::new(AudioConfig::default(), media.clone(), Recorder::default());
    let (room, _events) = threads.open(options()).unwrap();
    let ice = IceCredentials {
        ufrag: "u".to_owned(),
        pwd: "p".to_owned(),
    };
    let peer = media.create_peer(portunus_media::PeerOptions {
        ice,
        controlling: false,
        worker: None,
    });
    let until = |what: &str, is: &dyn Fn() -> bool| {
        let deadline = Instant::now() + PATIENCE;
        while !is() {
            assert!(Instant::now() < deadline, "{what}");
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    for n in 0..200_u64 {
        let options = IngestOptions::rtp(Codec::Pcmu, 8_000, IngestFeed::Thread);
        let source = media.add_ingest(options).id;
        let end = || drop(media.remove_ingest(source));
        let track = TrackRef {
            peer,
            mid: Mid::new(&n.to_string()).unwrap(),
        };
        if n % 3 == 0 {
            end();
        }
        let (input, output) = (SourceRef::Ingest(source), Out::Track(track));
        let id = ParticipantId(n);
        room.join(id, participant(AudioCodec::Pcmu), Some(input), Some(output));
        if n % 3 == 1 {
            end();
        }
        room.connect(id, true);
        if n % 3 == 2 {
            until("it is in the room", &|| threads.totals().participants > 0);
            end();
        }
        room.leave(id);
    }
    until("all have left", &|| threads.totals().participants == 0);
    let requested = media.requested();
    assert!(requested.outlets.is_empty() && requested.routes.is_empty());
    drop(room);
    until("the room has ended", &|| {
        threads.totals().rooms == 0 && media.requested().ingests.is_empty()
    });
}
