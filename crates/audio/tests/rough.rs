//! Files that cannot be read or written, and sources that end too early: the error is reported, and
//! the room goes on.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::expect_used,
    reason = "a test fails by a panic"
)]

#[path = "rig/mod.rs"]
mod rig;

use std::fs::File;
use std::io::Read;
use std::net::{SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use portunus_audio::{
    Announcement, AnnouncementEnd, AnnouncementId, AudioCodec, AudioConfig, AudioError, AudioEvent,
    AudioThreads, MixRecording, Out, ParticipantId, RecordingFormat, RecordingId, RtpLeg,
    RtpLegOptions,
};
use portunus_media::{IngestFeed, IngestOptions, MediaPlane, SourceRef, TrackRef};
use portunus_record::{RecordError, Recorder, RecorderConfig};
use portunus_rtp::{Fields, Mid, Pt, Ssrc, write_header};
use portunus_sdp::negotiated::{Codec, IceCredentials};
use rig::{HEARD, PATIENCE, Person, options, participant, server};
use rustix::fs::{CWD, Mode, mkfifoat};
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
        format: RecordingFormat::Wav,
        whose: None,
    }
}

fn config(dir: &Path) -> RecorderConfig {
    RecorderConfig {
        dir: Some(dir.to_owned()),
        keep_free_mb: 0,
        ..RecorderConfig::default()
    }
}

#[tokio::test]
async fn a_recording_into_a_folder_that_is_none_is_refused() {
    let disk = tempfile::tempdir().unwrap();
    let no_folder = disk.path().join("file");
    std::fs::write(&no_folder, b"").unwrap();
    let recorder = Recorder::new(config(&no_folder));
    let server = server(1, recorder.clone());
    let (room, _events) = server.threads.open(options()).unwrap();
    let refused = room.record(RecordingId(1), recording()).await;
    assert!(matches!(refused, Err(AudioError::Record(_))), "{refused:?}");
    assert_eq!(recorder.totals().open, 0);
    // The room can still be used.
    let ann = Person::new(&server, 500.0);
    ann.join(&room, 1);
    ann.hear(500.0);
}

/// Records a talking participant until that fails, and returns the error.
async fn record_until_it_fails(recorder: Recorder) -> AudioError {
    let server = server(1, recorder.clone());
    let (room, mut events) = server.threads.open(options()).unwrap();
    let begun = room.record(RecordingId(1), recording()).await;
    assert_eq!(begun.unwrap(), "room.wav");
    let ann = Person::new(&server, 500.0);
    ann.join(&room, 1);
    ann.talks.store(true, Ordering::Relaxed);
    let ended = next(&mut events).await;
    let AudioEvent::RecordingEnded { file, error, .. } = ended else {
        panic!("{ended:?}");
    };
    assert_eq!(file, "room.wav");
    // The room goes on, and can be recorded again.
    ann.hear(500.0);
    let other = MixRecording {
        name: "other".to_owned(),
        ..recording()
    };
    room.record(RecordingId(2), other).await.unwrap();
    drop(room);
    let finished = tokio::time::timeout(PATIENCE, recorder.finished());
    finished.await.unwrap();
    Arc::into_inner(error.unwrap()).unwrap()
}

#[tokio::test]
async fn a_disk_that_takes_no_more_ends_the_recording_and_not_the_room() {
    let disk = tempfile::tempdir().unwrap();
    // A pipe in place of the file. It fails once nobody reads it.
    let pipe = disk.path().join("room.wav");
    mkfifoat(CWD, &pipe, Mode::RUSR | Mode::WUSR).unwrap();
    let reader = std::thread::spawn(move || {
        let mut header = [0; 44];
        File::open(pipe).unwrap().read_exact(&mut header).unwrap();
    });
    let error = record_until_it_fails(Recorder::new(RecorderConfig {
        overwrite: true,
        ..config(disk.path())
    }));
    let error = error.await;
    reader.join().unwrap();
    let is_told = matches!(error, AudioError::Record(RecordError::Write { .. }));
    assert!(is_told, "{error:?}");
}

#[tokio::test]
async fn a_file_that_is_as_long_as_files_may_be_ends_the_recording_and_not_the_room() {
    let disk = tempfile::tempdir().unwrap();
    let limit = 20_000;
    let error = record_until_it_fails(Recorder::new(RecorderConfig {
        max_file_bytes: limit,
        ..config(disk.path())
    }));
    let error = error.await;
    let is_told = matches!(error, AudioError::Record(RecordError::Full { .. }));
    assert!(is_told, "{error:?}");
    // Everything before is there, as whole frames of 20 ms at 16 kHz.
    let mut wav = hound::WavReader::open(disk.path().join("room.wav")).unwrap();
    let samples = wav.samples::<i16>().map(Result::unwrap).count();
    assert_eq!(samples, limit as usize / 640 * 320);
}

/// A packet of PCMU.
fn packet(sequence: u16, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0; 12];
    let fields = Fields {
        marker: false,
        padding: false,
        pt: Pt(0),
        sequence,
        timestamp: u32::from(sequence) * 160,
        ssrc: Ssrc(77),
    };
    write_header(&mut packet, &fields, []).unwrap();
    packet.extend_from_slice(payload);
    packet
}

#[tokio::test]
async fn bursts_and_packets_that_come_twice_late_or_broken_leave_the_delay_as_it_was() {
    let server = server(1, Recorder::default());
    let (room, _events) = server.threads.open(options()).unwrap();
    let ben = Person::new(&server, 500.0);
    ben.join(&room, 2);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let leg = RtpLeg::open(
        &server.media,
        RtpLegOptions {
            ports: 20_000..=50_000,
            remote: Some(socket.local_addr().unwrap()),
            codec: AudioCodec::Pcmu,
            pt: Pt(0),
            audio_level: None,
        },
    );
    let leg = Arc::new(leg.unwrap());
    let ann = ParticipantId(1);
    let (source, out) = (leg.source(), Out::Leg(Arc::clone(&leg)));
    room.join(ann, participant(AudioCodec::Pcmu), Some(source), Some(out));
    room.connect(ann, true);
    let to: SocketAddr = ([127, 0, 0, 1], leg.port()).into();
    let send = |bytes: &[u8]| {
        socket.send_to(bytes, to).unwrap();
    };
    let tone = |sequence: u16| -> Vec<u8> {
        let at = |n: u32| f64::from(u32::from(sequence) * 160 + n) / 8_000.0;
        let sample = |n| (std::f64::consts::TAU * 500.0 * at(n)).sin() / 4.0;
        (0..160).map(|n| rig::compress(sample(n))).collect()
    };
    let mut sequence = 0;
    let mut last = (Duration::MAX, 0);
    let began = Instant::now();
    // Three seconds of trouble, and then as many as it takes.
    for frame in 0.. {
        let rough = frame < 150;
        match frame % 10 {
            // These come half a second late, all at once.
            _ if rough && (50..75).contains(&frame) => {}
            _ if frame == 75 => {
                (0..26).for_each(|n| send(&packet(sequence + n, &tone(sequence + n))))
            }
            3 if rough => {
                send(&packet(sequence + 1, &tone(sequence + 1)));
                send(&packet(sequence, &tone(sequence)));
            }
            4 if rough => {
                send(&packet(sequence, &tone(sequence)));
                send(&packet(sequence, &[]));
                send(&packet(sequence + 500, &[0xff; 7]));
                send(b"no RTP");
                send(&packet(sequence.wrapping_sub(40), &tone(sequence)));
            }
            _ => send(&packet(sequence, &tone(sequence))),
        }
        let stands = rough && (50..75).contains(&frame);
        sequence += match frame {
            _ if stands => 0,
            75 => 26,
            _ => 1,
        };
        ben.hear(500.0);
        if frame > 150 && frame % 25 == 0 {
            let figures = room.participant(ann).await.unwrap();
            last = (figures.delay, figures.received);
            if figures.delay < Duration::from_millis(150) {
                break;
            }
        }
        assert!(began.elapsed() < PATIENCE, "{last:?}");
    }
    // It is heard.
    let mut heard = false;
    for _ in 0..20 {
        send(&packet(sequence, &tone(sequence)));
        sequence += 1;
        heard |= ben.hear(500.0).3 > HEARD;
    }
    assert!(heard, "{last:?}");
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
