//! A media plane with audio threads, and participants by plain RTP.
#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::expect_used,
    missing_docs,
    reason = "no test crate uses all of it, and a test fails by a panic"
)]

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use portunus_audio::{
    AudioCodec, AudioConfig, AudioRoom, AudioThreads, Channels, Encoding, Format, Out,
    ParticipantId, ParticipantOptions, RoomOptions, RtpLeg, RtpLegOptions, SampleRate,
};
use portunus_media::{MediaConfig, MediaPlane, PeerEvent};
use portunus_record::Recorder;
use portunus_rtp::{Fields, Header, Pt, Ssrc, write_header};
use tokio::sync::mpsc;

/// A time limit for a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(20);

pub struct Server {
    pub media: MediaPlane,
    pub threads: AudioThreads,
    // Workers run as long as their events have a receiver.
    _events: mpsc::Receiver<PeerEvent>,
}

pub fn server(workers: usize, recorder: Recorder) -> Server {
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

pub fn options() -> RoomOptions {
    RoomOptions {
        format: Format {
            rate: SampleRate::Hz16000,
            channels: Channels::Mono,
        },
        loudest: 8,
        groups: 0,
    }
}

pub fn encoding(codec: AudioCodec) -> Encoding {
    Encoding {
        codec,
        bitrate: None,
        complexity: 4,
        fec: false,
        expected_loss: 0,
    }
}

pub fn participant(codec: AudioCodec) -> ParticipantOptions {
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

/// A participant that sends a tone by PCMU now and then, and receives.
pub struct Person {
    pub leg: Arc<RtpLeg>,
    pub socket: UdpSocket,
    pub talks: Arc<AtomicBool>,
    /// The payload type of its packets.
    pub pt: Arc<AtomicU8>,
    ends: Arc<AtomicBool>,
    sender: Option<JoinHandle<()>>,
}

impl Person {
    pub fn new(server: &Server, tone: f64) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        let options = RtpLegOptions {
            ports: 20_000..=50_000,
            remote: Some(socket.local_addr().unwrap()),
            codec: AudioCodec::Pcmu,
            pt: Pt(0),
            audio_level: None,
        };
        let leg = Arc::new(RtpLeg::open(&server.media, options).unwrap());
        assert_eq!(leg.port() % 2, 0);
        let (talks, ends) = (Arc::new(AtomicBool::new(false)), Arc::default());
        let pt = Arc::new(AtomicU8::new(0));
        let to: SocketAddr = ([127, 0, 0, 1], leg.port()).into();
        let out = socket.try_clone().unwrap();
        let sender = std::thread::spawn({
            let (talks, ends, pt) = (Arc::clone(&talks), Arc::clone(&ends), Arc::clone(&pt));
            move || send_tone(&out, to, tone, (&talks, &pt, &ends))
        });
        Self {
            leg,
            socket,
            talks,
            pt,
            ends,
            sender: Some(sender),
        }
    }

    pub fn join(&self, room: &AudioRoom, number: u64) {
        let (source, out) = (self.leg.source(), Out::Leg(Arc::clone(&self.leg)));
        let id = ParticipantId(number);
        room.join(id, participant(AudioCodec::Pcmu), Some(source), Some(out));
        room.connect(id, true);
    }

    /// Returns the next packet: its sequence number, timestamp, SSRC, and the power of a tone in
    /// it.
    pub fn hear(&self, tone: f64) -> (u16, u32, Ssrc, f64) {
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

pub fn send_tone(
    out: &UdpSocket,
    to: SocketAddr,
    tone: f64,
    (talks, pt, ends): (&AtomicBool, &AtomicU8, &AtomicBool),
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
            pt: Pt(pt.load(Ordering::Relaxed)),
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
        // The receiver may be gone.
        let _ = out.send_to(&packet, to);
        let due = start + Duration::from_millis(20) * (n + 1);
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
    }
}

/// Encodes µ-law (G.711) by the formula.
pub fn compress(sample: f64) -> u8 {
    let magnitude = (1.0 + 255.0 * sample.abs()).ln() / 256_f64.ln();
    let code = (magnitude * 127.0).round() as u8;
    !(code | if sample < 0.0 { 0x80 } else { 0 })
}

pub fn expand(byte: u8) -> f64 {
    let code = !byte;
    let magnitude = (256_f64.powf(f64::from(code & 0x7f) / 127.0) - 1.0) / 255.0;
    if code & 0x80 == 0 {
        magnitude
    } else {
        -magnitude
    }
}

/// Returns the power of a tone in samples at 8 kHz: a quarter of its squared amplitude.
pub fn power(samples: &[f64], tone: f64) -> f64 {
    let turn = |n: usize| std::f64::consts::TAU * tone * n as f64 / 8_000.0;
    let sum = |f: fn(f64) -> f64| -> f64 {
        let terms = samples.iter().enumerate().map(|(n, s)| s * f(turn(n)));
        terms.sum::<f64>() / samples.len() as f64
    };
    sum(f64::cos).powi(2) + sum(f64::sin).powi(2)
}

/// Well above the power of a tone in silence or another tone, and well below that of a heard tone.
pub const HEARD: f64 = 0.25 * 0.25 / 4.0 / 8.0;
