//! Rooms on a real media plane: participants by plain RTP hear each other, and everything is
//! cleaned up.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::expect_used,
    reason = "a test fails by a panic"
)]

#[path = "rig/mod.rs"]
mod rig;

use std::collections::HashSet;
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use portunus_audio::{
    AudioCodec, AudioConfig, AudioError, AudioEvent, AudioThreads, MixRecording, Mixture, Out,
    ParticipantId, RecordingFormat, RecordingId, RtpLeg, RtpLegError, RtpLegOptions,
};
use portunus_files::{MediaFile, OpenOptions};
use portunus_media::{ForwardOptions, MediaPlane, RouteOptions, TrackRef};
use portunus_record::{Recorder, RecorderConfig};
use portunus_rtp::{Header, Mid, Pt, Ssrc};
use rig::{HEARD, PATIENCE, Person, encoding, expand, options, participant, power, server};

#[test]
fn each_hears_the_other_and_one_stream_while_they_take_turns() {
    let server = server(2, Recorder::default());
    let (room, _events) = server.threads.open(options()).unwrap();
    let (ann, ben) = (Person::new(&server, 500.0), Person::new(&server, 1_200.0));
    ann.join(&room, 1);
    ben.join(&room, 2);
    let mut last = None;
    let mut turns = 0;
    // Ann talks now and then, so she hears the mix of all and her own in turn.
    let deadline = Instant::now() + PATIENCE;
    let mut heard = [false; 2];
    for n in 0..250 {
        assert!(Instant::now() < deadline);
        if n % 50 == 0 {
            ann.talks.store(n % 100 == 0, Ordering::Relaxed);
            ben.talks.store(n % 100 == 50, Ordering::Relaxed);
            turns += 1;
        }
        let mut buffer = [0; 2_048];
        let len = ann.socket.recv(&mut buffer).expect("a packet");
        let header = Header::parse(&buffer[..len]).unwrap();
        let now = (header.sequence, header.timestamp, header.ssrc);
        if let Some((sequence, timestamp, ssrc)) = last {
            let next: (u16, u32, Ssrc) = (
                u16::wrapping_add(sequence, 1),
                u32::wrapping_add(timestamp, 160),
                ssrc,
            );
            assert_eq!(now, next, "packet {n}");
        }
        last = Some(now);
        let mut samples = [0.0; 160];
        for (sample, byte) in samples.iter_mut().zip(header.payload(&buffer[..len])) {
            *sample = expand(*byte);
        }
        heard[0] |= power(&samples, 500.0) > HEARD;
        heard[1] |= power(&samples, 1_200.0) > HEARD;
    }
    assert_eq!(turns, 5);
    assert_eq!(heard, [false, true], "she hears him, and not herself");
    let stats = server.threads.thread_stats();
    assert_eq!(
        stats
            .iter()
            .map(|thread| thread.participants)
            .sum::<usize>(),
        2
    );
    assert!(server.threads.totals().decoded > 0);
}

#[test]
fn who_hears_by_a_source_of_its_own_hears_one_stream_while_they_take_turns() {
    let server = server(2, Recorder::default());
    let (room, _events) = server.threads.open(options()).unwrap();
    let (ann, ben) = (Person::new(&server, 500.0), Person::new(&server, 1_200.0));
    let outlet = Arc::new(room.outlet(AudioCodec::Pcmu));
    let listener = UdpSocket::bind("127.0.0.1:0").unwrap();
    listener.set_read_timeout(Some(PATIENCE)).unwrap();
    let forward = ForwardOptions::new(listener.local_addr().unwrap());
    let (source, all) = (outlet.source(), RouteOptions::default());
    server.media.forward(source, all, forward);
    let id = ParticipantId(1);
    let out = Out::Source(Arc::clone(&outlet));
    let input = ann.leg.source();
    room.join(id, participant(AudioCodec::Pcmu), Some(input), Some(out));
    room.connect(id, true);
    ben.join(&room, 2);
    let mut last: Option<(u16, Ssrc)> = None;
    let mut heard = [false; 2];
    for n in 0..250 {
        if n % 50 == 0 {
            ann.talks.store(n % 100 == 0, Ordering::Relaxed);
            ben.talks.store(n % 100 == 50, Ordering::Relaxed);
        }
        let mut buffer = [0; 2_048];
        let len = listener.recv(&mut buffer).expect("a packet");
        let header = Header::parse(&buffer[..len]).unwrap();
        if let Some((sequence, ssrc)) = last {
            let next = (sequence.wrapping_add(1), ssrc);
            assert_eq!((header.sequence, header.ssrc), next, "packet {n}");
        }
        last = Some((header.sequence, header.ssrc));
        let mut samples = [0.0; 160];
        for (sample, byte) in samples.iter_mut().zip(header.payload(&buffer[..len])) {
            *sample = expand(*byte);
        }
        heard[0] |= power(&samples, 500.0) > HEARD;
        heard[1] |= power(&samples, 1_200.0) > HEARD;
    }
    assert_eq!(heard, [false, true], "she hears him, and not herself");
}

#[test]
fn rooms_that_share_threads_each_hear_their_own() {
    let server = server(2, Recorder::default());
    let tones = [400.0, 700.0, 1_100.0, 1_900.0];
    let rooms = tones.map(|_| server.threads.open(options()).unwrap());
    let stats = server.threads.thread_stats();
    let on: Vec<_> = stats.iter().map(|thread| thread.rooms).collect();
    assert_eq!(on, [2, 2], "rooms on each thread");
    let people = tones.map(|tone| (Person::new(&server, tone), Person::new(&server, 3_000.0)));
    for ((talker, listener), (room, _)) in people.iter().zip(&rooms) {
        talker.talks.store(true, Ordering::Relaxed);
        talker.join(room, 1);
        listener.join(room, 2);
    }
    for (tone, (_, listener)) in tones.iter().zip(&people) {
        let began = Instant::now();
        while listener.hear(*tone).3 < HEARD {
            assert!(began.elapsed() < PATIENCE, "{tone} Hz is heard");
        }
        for other in tones.iter().filter(|other| *other != tone) {
            assert!(listener.hear(*other).3 < HEARD, "{other} Hz at {tone} Hz");
        }
    }
}

#[test]
fn who_goes_on_to_another_room_by_plain_rtp_hears_one_stream() {
    let server = server(1, Recorder::default());
    // Each room has its own thread.
    let rooms = [(); 2].map(|()| server.threads.open(options()).unwrap().0);
    let ann = Person::new(&server, 500.0);
    ann.join(&rooms[0], 1);
    let mut last = ann.hear(500.0);
    for n in 1..20 {
        let (from, to) = (&rooms[(n + 1) % 2], &rooms[n % 2]);
        // Both threads take the lead in turn.
        if n % 3 == 0 {
            ann.join(to, 1);
            from.leave(ParticipantId(1));
        } else {
            from.leave(ParticipantId(1));
            ann.join(to, 1);
        }
        for _ in 0..10 {
            let next = ann.hear(500.0);
            assert_eq!(
                (next.0, next.2),
                (last.0.wrapping_add(1), last.2),
                "room {n}"
            );
            let passed = next.1.wrapping_sub(last.1);
            assert!((1..8_000).contains(&passed), "{passed} in room {n}");
            last = next;
        }
    }
}

#[test]
fn what_has_another_payload_type_is_not_heard() {
    let server = server(1, Recorder::default());
    let (room, _events) = server.threads.open(options()).unwrap();
    let (ann, ben) = (Person::new(&server, 500.0), Person::new(&server, 1_200.0));
    ann.join(&room, 1);
    ben.join(&room, 2);
    // A telephone key (RFC 4733) and comfort noise (RFC 3389).
    ann.pt.store(101, Ordering::Relaxed);
    ben.pt.store(13, Ordering::Relaxed);
    for person in [&ann, &ben] {
        person.talks.store(true, Ordering::Relaxed);
    }
    for _ in 0..50 {
        assert!(ann.hear(1_200.0).3 < HEARD && ben.hear(500.0).3 < HEARD);
    }
    ann.pt.store(0, Ordering::Relaxed);
    let began = Instant::now();
    while ben.hear(500.0).3 < HEARD {
        assert!(began.elapsed() < PATIENCE, "the room goes on");
    }
}

#[test]
fn all_ports_of_a_range_are_taken_before_it_is_said_that_none_is_free() {
    let (media, ..) = MediaPlane::detached();
    let open = || {
        RtpLeg::open(
            &media,
            RtpLegOptions {
                ports: 41_001..=41_008,
                remote: None,
                codec: AudioCodec::Opus,
                pt: Pt(100),
                audio_level: None,
            },
        )
    };
    let legs: Vec<_> = std::iter::from_fn(|| open().ok()).take(4).collect();
    let ports: HashSet<_> = legs.iter().map(RtpLeg::port).collect();
    assert!(
        ports
            .iter()
            .all(|port| port % 2 == 0 && (41_002..=41_006).contains(port))
    );
    // Other processes may hold some of them.
    assert!(ports.len() == legs.len() && legs.len() <= 3);
    assert!(matches!(open(), Err(RtpLegError::Leg(_))));
}

#[test]
fn a_mix_is_a_source_for_forwarders() {
    let server = server(1, Recorder::default());
    let (room, _events) = server.threads.open(options()).unwrap();
    let ann = Person::new(&server, 700.0);
    let listener = UdpSocket::bind("127.0.0.1:0").unwrap();
    listener.set_read_timeout(Some(PATIENCE)).unwrap();
    let mix = room.mix(Mixture::Everyone, encoding(AudioCodec::Pcmu), true);
    let to = listener.local_addr().unwrap();
    let forward = ForwardOptions::new(to);
    server
        .media
        .forward(mix.source(), RouteOptions::default(), forward);
    // The room is empty, and silence is sent all the same.
    let mut buffer = [0; 2_048];
    let mut next = || {
        let len = listener.recv(&mut buffer).expect("a packet");
        let header = Header::parse(&buffer[..len]).unwrap();
        let mut samples = [0.0; 160];
        for (sample, byte) in samples.iter_mut().zip(header.payload(&buffer[..len])) {
            *sample = expand(*byte);
        }
        power(&samples, 700.0)
    };
    for _ in 0..5 {
        assert!(next() < HEARD);
    }
    ann.join(&room, 1);
    ann.talks.store(true, Ordering::Relaxed);
    let deadline = Instant::now() + PATIENCE;
    while next() < HEARD {
        assert!(Instant::now() < deadline, "her tone is heard");
    }
}

#[tokio::test]
async fn a_room_is_recorded_while_somebody_is_in_it() {
    let disk = tempfile::tempdir().unwrap();
    let recorder = Recorder::new(RecorderConfig {
        dir: Some(disk.path().to_owned()),
        temporary: "part".to_owned(),
        keep_free_mb: 0,
        ..RecorderConfig::default()
    });
    let server = server(1, recorder.clone());
    for (form, name) in [
        (RecordingFormat::Wav, "room.wav"),
        (RecordingFormat::OggOpus, "room.opus"),
    ] {
        let (room, mut events) = server.threads.open(options()).unwrap();
        let what = MixRecording {
            dir: None,
            name: "room".to_owned(),
            format: form,
            whose: None,
        };
        let called = |name: &str| MixRecording {
            name: name.to_owned(),
            ..what.clone()
        };
        assert_eq!(
            room.record(RecordingId(1), what.clone()).await.unwrap(),
            name
        );
        let again = room.record(RecordingId(2), called("other")).await;
        assert!(
            matches!(again, Err(AudioError::Recorded)),
            "it is recorded already"
        );
        assert!(disk.path().join(format!("{name}.part")).exists());
        let ann = Person::new(&server, 700.0);
        ann.join(&room, 1);
        ann.talks.store(true, Ordering::Relaxed);
        // She hears two seconds.
        for _ in 0..100 {
            ann.hear(700.0);
        }
        // The next one starts at once, though this one is still being written.
        room.stop_recording();
        assert!(room.record(RecordingId(3), called("next")).await.is_ok());
        let ended = tokio::time::timeout(PATIENCE, events.recv()).await.unwrap();
        let Some(AudioEvent::RecordingEnded {
            recording,
            file,
            error,
        }) = ended
        else {
            panic!("{ended:?}");
        };
        assert_eq!(
            (recording, file.as_str(), error.is_none()),
            (RecordingId(1), name, true)
        );
        let path = disk.path().join(name);
        match form {
            RecordingFormat::Wav => {
                let mut wav = hound::WavReader::open(path).unwrap();
                assert_eq!((wav.spec().sample_rate, wav.spec().channels), (16_000, 1));
                let samples: Vec<f64> = wav
                    .samples::<i16>()
                    .step_by(2)
                    .map(|sample| f64::from(sample.unwrap()) / 32_768.0)
                    .collect();
                assert!(samples.len() > 8_000, "{}", samples.len());
                let frames = samples.chunks_exact(160);
                assert!(frames.clone().any(|frame| power(frame, 700.0) > HEARD));
            }
            RecordingFormat::OggOpus => {
                let bytes = std::fs::read(path).unwrap();
                assert!(bytes.starts_with(b"OggS") && bytes.len() > 1_000);
            }
        }
    }
    tokio::time::timeout(PATIENCE, recorder.finished())
        .await
        .unwrap();
}

#[tokio::test]
async fn nothing_is_recorded_while_nobody_is_in_the_room() {
    for form in [RecordingFormat::Wav, RecordingFormat::OggOpus] {
        let disk = tempfile::tempdir().unwrap();
        let server = server(
            1,
            Recorder::new(RecorderConfig {
                dir: Some(disk.path().to_owned()),
                keep_free_mb: 0,
                ..RecorderConfig::default()
            }),
        );
        let (room, mut events) = server.threads.open(options()).unwrap();
        let what = MixRecording {
            dir: None,
            name: "room".to_owned(),
            format: form,
            whose: None,
        };
        let name = room.record(RecordingId(1), what).await.unwrap();
        // Waits for a second of the room, and returns its frames by then.
        let second = async || {
            let ticks = || server.threads.totals().ticks;
            let (from, deadline) = (ticks(), Instant::now() + PATIENCE);
            while ticks() < from + 50 {
                assert!(Instant::now() < deadline, "the room is mixed");
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            ticks()
        };
        let before = second().await;
        let ann = Person::new(&server, 700.0);
        ann.join(&room, 1);
        ann.talks.store(true, Ordering::Relaxed);
        second().await;
        room.leave(ParticipantId(1));
        let asked = room.participant(ParticipantId(1));
        let there = tokio::time::timeout(PATIENCE, asked).await.unwrap();
        assert!(there.is_none(), "she has left");
        let after = server.threads.totals().ticks;
        second().await;
        room.stop_recording();
        let ended = tokio::time::timeout(PATIENCE, events.recv()).await.unwrap();
        assert!(
            matches!(ended, Some(AudioEvent::RecordingEnded { error: None, .. })),
            "{ended:?}"
        );
        let path = disk.path().join(name);
        let frames = match form {
            RecordingFormat::Wav => {
                u64::from(hound::WavReader::open(path).unwrap().duration()) / 320
            }
            RecordingFormat::OggOpus => {
                let once = OpenOptions {
                    looping: false,
                    ..OpenOptions::default()
                };
                let mut file = MediaFile::open(&path, &once).unwrap();
                let packets = std::iter::from_fn(|| file.next().map(drop));
                packets.count() as u64
            }
        };
        let there = after - before;
        assert!(
            frames <= there + 2 && frames >= 40,
            "{form:?}: {frames} of {there}"
        );
    }
}

#[tokio::test]
async fn what_is_recorded_when_a_room_ends_is_told_when_it_is_complete() {
    let disk = tempfile::tempdir().unwrap();
    let recorder = Recorder::new(RecorderConfig {
        dir: Some(disk.path().to_owned()),
        temporary: "part".to_owned(),
        keep_free_mb: 0,
        ..RecorderConfig::default()
    });
    let (media, ..) = MediaPlane::detached();
    let threads = AudioThreads::new(AudioConfig::default(), media, recorder);
    for stops in [false, true] {
        let (room, mut events) = threads.open(options()).unwrap();
        let what = MixRecording {
            dir: None,
            name: format!("room-{stops}"),
            format: RecordingFormat::Wav,
            whose: None,
        };
        let name = room.record(RecordingId(1), what).await.unwrap();
        // Plugins do this before they end a room.
        if stops {
            room.stop_recording();
        }
        drop(room);
        let ended = tokio::time::timeout(PATIENCE, events.recv()).await.unwrap();
        let Some(AudioEvent::RecordingEnded { file, error, .. }) = ended else {
            panic!("{ended:?}");
        };
        assert_eq!((file, error.is_none()), (name.clone(), true));
        assert!(disk.path().join(name).exists());
        let more = tokio::time::timeout(PATIENCE, events.recv()).await.unwrap();
        assert!(more.is_none(), "{more:?}");
    }
}

#[test]
fn nothing_stays_behind_of_those_who_come_and_go() {
    let (media, ..) = MediaPlane::detached();
    let threads = AudioThreads::new(AudioConfig::default(), media.clone(), Recorder::default());
    let (room, _events) = threads.open(options()).unwrap();
    let peer = media.create_peer(portunus_media::PeerOptions {
        ice: portunus_sdp::negotiated::IceCredentials {
            ufrag: "u".to_owned(),
            pwd: "p".to_owned(),
        },
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
    for n in 0..1_000_u64 {
        let track = TrackRef {
            peer,
            mid: Mid::new(&n.to_string()).unwrap(),
        };
        let id = ParticipantId(n);
        let options = participant(AudioCodec::Opus);
        let out = match n % 4 {
            0 => Out::Source(Arc::new(room.outlet(AudioCodec::Opus))),
            _ => Out::Track(track),
        };
        room.join(id, options, Some(track.into()), Some(out));
        if n % 3 > 0 || n % 100 == 99 {
            room.connect(id, true);
        }
        if n % 100 == 99 {
            until("those who are connected hear", &|| {
                !media.requested().routes.is_empty()
            });
        }
        // Some leave before they are set up.
        room.leave(id);
    }
    until("all have left", &|| {
        let requested = media.requested();
        let is_empty = requested.outlets.is_empty() && requested.routes.is_empty();
        threads.totals().participants == 0 && is_empty
    });
    drop(room);
    until("the room has ended", &|| {
        threads.totals().rooms == 0 && media.requested().ingests.is_empty()
    });
}
