//! Rooms over a real media plane: participants by plain RTP hear each other, and nothing stays behind.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::expect_used
)]

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use portunus_audio::{
    AudioCodec, AudioConfig, AudioEvent, AudioRoom, AudioThreads, Channels, Encoding, Format,
    MixRecording, Mixture, Out, ParticipantId, ParticipantOptions, RecordingFormat, RoomOptions,
    RtpLeg, RtpLegOptions, SampleRate,
};
use portunus_media::{ForwardOptions, MediaConfig, MediaPlane, PeerEvent, RouteOptions, TrackRef};
use portunus_record::{Recorder, RecorderConfig};
use portunus_rtp::{Fields, Header, Mid, Pt, Ssrc, write_header};
use tokio::sync::mpsc;

/// How long something may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

struct Server {
    media: MediaPlane,
    threads: AudioThreads,
    // Workers run as long as somebody takes their events.
    _events: mpsc::Receiver<PeerEvent>,
}

fn server(workers: usize, recorder: Recorder) -> Server {
    let config = MediaConfig {
        workers,
        pin: false,
        port: 0,
        bind: vec!["127.0.0.1".parse().unwrap()],
        ..MediaConfig::default()
    };
    let (media, events) = MediaPlane::start(config).unwrap();
    let config = AudioConfig {
        threads: 2,
        pin: false,
    };
    Server {
        threads: AudioThreads::new(config, media.clone(), recorder),
        media,
        _events: events,
    }
}

fn options() -> RoomOptions {
    RoomOptions {
        format: Format {
            rate: SampleRate::Hz16000,
            channels: Channels::Mono,
        },
        loudest: 8,
        groups: 0,
    }
}

fn encoding(codec: AudioCodec) -> Encoding {
    Encoding {
        codec,
        bitrate: None,
        complexity: 4,
        fec: false,
        expected_loss: 0,
    }
}

fn participant(codec: AudioCodec) -> ParticipantOptions {
    ParticipantOptions {
        codec,
        muted: false,
        suspended: false,
        immune: false,
        gain: 1.0,
        position: 0.5,
        group: None,
        denoise: false,
        levels: false,
        talk: None,
        encoding: encoding(codec),
    }
}

/// Somebody who sends a tone by PCMU, now and then, and takes what is sent to it.
struct Person {
    leg: Arc<RtpLeg>,
    socket: UdpSocket,
    talks: Arc<AtomicBool>,
    ends: Arc<AtomicBool>,
    sender: Option<JoinHandle<()>>,
}

impl Person {
    fn new(server: &Server, tone: f64) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        let options = RtpLegOptions {
            bind: Some("127.0.0.1".parse().unwrap()),
            ports: 20_000..=50_000,
            remote: Some(socket.local_addr().unwrap()),
            codec: AudioCodec::Pcmu,
            pt: Pt(0),
            audio_level: None,
        };
        let leg = Arc::new(RtpLeg::open(&server.media, options).unwrap());
        assert_eq!(leg.port() % 2, 0);
        let (talks, ends) = (Arc::new(AtomicBool::new(false)), Arc::default());
        let to: SocketAddr = ([127, 0, 0, 1], leg.port()).into();
        let out = socket.try_clone().unwrap();
        let sender = std::thread::spawn({
            let (talks, ends) = (Arc::clone(&talks), Arc::clone(&ends));
            move || send_tone(&out, to, tone, (&talks, &ends))
        });
        Self {
            leg,
            socket,
            talks,
            ends,
            sender: Some(sender),
        }
    }

    fn join(&self, room: &AudioRoom, number: u64) {
        let (source, out) = (self.leg.source(), Out::Leg(Arc::clone(&self.leg)));
        let id = ParticipantId(number);
        room.join(id, participant(AudioCodec::Pcmu), Some(source), Some(out));
        room.connect(id, true);
    }

    /// The next packet: its sequence number, timestamp, SSRC, and how much there is of a tone in it.
    fn hear(&self, tone: f64) -> (u16, u32, Ssrc, f64) {
        let mut buffer = [0; 2_048];
        let len = self.socket.recv(&mut buffer).expect("a packet");
        let header = Header::parse(&buffer[..len]).unwrap();
        assert_eq!(header.pt, Pt(0));
        let payload = header.payload(&buffer[..len]);
        assert_eq!(payload.len(), 160);
        let mut samples = [0.0; 160];
        for (sample, byte) in samples.iter_mut().zip(payload) {
            *sample = expand(*byte);
        }
        (
            header.sequence,
            header.timestamp,
            header.ssrc,
            power(&samples, tone),
        )
    }
}

impl Drop for Person {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        let ended = self.sender.take().map(JoinHandle::join);
        assert!(ended.is_none_or(|ended| ended.is_ok()));
    }
}

fn send_tone(
    out: &UdpSocket,
    to: SocketAddr,
    tone: f64,
    (talks, ends): (&AtomicBool, &AtomicBool),
) {
    let start = Instant::now();
    for n in 0..u32::MAX {
        if ends.load(Ordering::Relaxed) {
            return;
        }
        let mut packet = [0; 172];
        let fields = Fields {
            marker: false,
            padding: false,
            pt: Pt(0),
            sequence: n as u16,
            timestamp: n.wrapping_mul(160),
            ssrc: Ssrc(77),
        };
        write_header(&mut packet, &fields, []).unwrap();
        let loud = if talks.load(Ordering::Relaxed) {
            0.25
        } else {
            0.0
        };
        for (i, byte) in packet[12..].iter_mut().enumerate() {
            let at = f64::from(n) * 0.02 + i as f64 / 8_000.0;
            *byte = compress(loud * (std::f64::consts::TAU * tone * at).sin());
        }
        // Nobody may hear it any more.
        let _ = out.send_to(&packet, to);
        let due = start + Duration::from_millis(20) * (n + 1);
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
    }
}

/// µ-law (G.711), by the formula.
fn compress(sample: f64) -> u8 {
    let magnitude = (1.0 + 255.0 * sample.abs()).ln() / 256_f64.ln();
    let code = (magnitude * 127.0).round() as u8;
    !(code | if sample < 0.0 { 0x80 } else { 0 })
}

fn expand(byte: u8) -> f64 {
    let code = !byte;
    let magnitude = (256_f64.powf(f64::from(code & 0x7f) / 127.0) - 1.0) / 255.0;
    if code & 0x80 == 0 {
        magnitude
    } else {
        -magnitude
    }
}

/// What of a tone is in some samples at 8 kHz: a quarter of the square of its amplitude.
fn power(samples: &[f64], tone: f64) -> f64 {
    let turn = |n: usize| std::f64::consts::TAU * tone * n as f64 / 8_000.0;
    let sum = |f: fn(f64) -> f64| -> f64 {
        let terms = samples.iter().enumerate().map(|(n, s)| s * f(turn(n)));
        terms.sum::<f64>() / samples.len() as f64
    };
    sum(f64::cos).powi(2) + sum(f64::sin).powi(2)
}

/// Well above what there is of a tone in silence or another tone, and well below a tone that is heard.
const HEARD: f64 = 0.25 * 0.25 / 4.0 / 8.0;

#[test]
fn each_hears_the_other_and_one_stream_while_they_take_turns() {
    let server = server(2, Recorder::default());
    let (room, _events) = server.threads.open(options()).unwrap();
    let (ann, ben) = (Person::new(&server, 500.0), Person::new(&server, 1_200.0));
    ann.join(&room, 1);
    ben.join(&room, 2);
    let mut last = None;
    let mut turns = 0;
    // Ann talks now and then: what she hears changes from the mix of all to her own and back.
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
    // Nobody is there, and there is silence all the same.
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
            temporary: Some("part".to_owned()),
            format: form,
            group: None,
        };
        assert_eq!(room.record(what.clone()).await.unwrap(), name);
        let again = room
            .record(MixRecording {
                name: "other".to_owned(),
                ..what
            })
            .await;
        assert!(again.is_err(), "it is recorded already");
        assert!(disk.path().join(format!("{name}.part")).exists());
        let ann = Person::new(&server, 700.0);
        ann.join(&room, 1);
        ann.talks.store(true, Ordering::Relaxed);
        // Two seconds pass as she hears them.
        for _ in 0..100 {
            ann.hear(700.0);
        }
        room.stop_recording();
        let ended = tokio::time::timeout(PATIENCE, events.recv()).await.unwrap();
        let Some(AudioEvent::RecordingEnded { file, error }) = ended else {
            panic!("{ended:?}");
        };
        assert_eq!((file.as_str(), error.is_none()), (name, true));
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
    assert_eq!(recorder.totals().open, 0);
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
        room.join(id, options, Some(track.into()), Some(Out::Track(track)));
        if n % 3 > 0 || n % 100 == 99 {
            room.connect(id, true);
        }
        if n % 100 == 99 {
            until("those who are connected hear", &|| {
                !media.requested().routes.is_empty()
            });
        }
        // Some leave before anything came of them.
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
