//! A call in virtual time: packets over a network with delays and losses, and a room that plays
//! them.

use std::time::{Duration, Instant};

use opusic_c::{Application, Bitrate, Channels, Encoder, InbandFec, SampleRate, Signal};
use portunus_dsp::{
    AudioCodec, Content, Format, IncomingPacket, Played, Receiver, ReceiverOptions, ReceiverStats,
    g711,
};

use crate::speech::RATE;

/// A packet, and its arrival in µs since the start of the call.
#[derive(Debug, Clone)]
pub struct Sent {
    pub seq: u64,
    pub timestamp: u32,
    pub payload: Vec<u8>,
    pub content: Content,
    pub arrival: u64,
}

/// The encoding of speech.
#[derive(Debug, Clone, Copy)]
pub struct Opus {
    pub fec: bool,
    pub dtx: bool,
    /// The length of a packet in units of 2.5 ms.
    pub units: usize,
}

pub const PLAIN: Opus = Opus {
    fec: false,
    dtx: false,
    units: 8,
};

/// Returns packets of `speech`, each of which arrives at the time of its first sample.
pub fn opus(speech: &[f32], how: Opus) -> Vec<Sent> {
    let mut encoder = Encoder::new(Channels::Mono, SampleRate::Hz16000, Application::Voip).unwrap();
    encoder.set_bitrate(Bitrate::Value(28_000)).unwrap();
    encoder.set_signal(Signal::Voice).unwrap();
    encoder.set_dtx(how.dtx).unwrap();
    if how.fec {
        encoder.set_inband_fec(InbandFec::Mode1).unwrap();
        encoder.set_packet_loss(15).unwrap();
    }
    let mut seq = 0;
    let mut asleep = 0;
    speech
        .chunks_exact(how.units * RATE / 400)
        .enumerate()
        .filter_map(|(index, samples)| {
            let mut bytes = [0; 1_500];
            let len = encoder.encode_float_to_slice(samples, &mut bytes).unwrap();
            // Like browsers: the first packet without audio is sent, then one of 20.
            asleep = if len <= 2 { asleep + 1 } else { 0 };
            if asleep % 20 > 1 || asleep > 1 && asleep % 20 == 0 {
                return None;
            }
            seq += 1;
            Some(Sent {
                seq,
                timestamp: (index * how.units * 120) as u32,
                payload: bytes[..len].to_vec(),
                content: Content::Codec,
                arrival: (index * how.units) as u64 * 2_500,
            })
        })
        .collect()
}

/// Returns packets of µ-law with `ms` milliseconds, from samples at 8 kHz.
pub fn pcmu(samples: &[f32], ms: usize) -> Vec<Sent> {
    samples
        .chunks_exact(8 * ms)
        .enumerate()
        .map(|(index, samples)| {
            let mut payload = Vec::new();
            g711::encode(g711::Law::Mu, samples, &mut payload);
            let arrival = (index * ms) as u64 * 1_000;
            Sent {
                seq: index as u64,
                timestamp: (index * ms * 8) as u32,
                payload,
                content: Content::Codec,
                arrival,
            }
        })
        .collect()
}

/// A reproducible sequence of pseudo-random numbers.
pub struct Dice(pub u64);

impl Dice {
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// The audio of a call.
pub struct Heard {
    pub samples: Vec<f32>,
    pub played: Vec<Played>,
    /// The delay of the buffer at each tick, in ms.
    pub delays: Vec<u32>,
    pub targets: Vec<u32>,
    pub stats: ReceiverStats,
}

impl Heard {
    pub fn concealed(&self) -> usize {
        self.played
            .iter()
            .filter(|played| matches!(played, Played::Sound { concealed: true }))
            .count()
    }

    pub fn silent(&self) -> usize {
        self.played
            .iter()
            .filter(|played| **played == Played::Silence)
            .count()
    }

    pub fn median_delay(&self) -> u32 {
        let mut delays = self.delays.clone();
        delays.sort_unstable();
        delays.get(delays.len() / 2).copied().unwrap_or(0)
    }
}

/// The receiving side of a call.
pub struct Call {
    pub receiver: Receiver,
    pub format: Format,
    pub start: Instant,
    /// The time of the first tick in µs since the start.
    pub phase: u64,
}

impl Call {
    pub fn new(codec: AudioCodec, format: Format) -> Self {
        Self {
            receiver: Receiver::new(ReceiverOptions { codec, format }),
            format,
            start: Instant::now(),
            phase: 7_000,
        }
    }

    pub fn at(&self, micros: u64) -> Instant {
        self.start + Duration::from_micros(micros)
    }

    pub fn push(&mut self, sent: &Sent) {
        self.receiver.push(&IncomingPacket {
            seq: sent.seq,
            timestamp: sent.timestamp,
            payload: &sent.payload,
            content: sent.content,
            level: None,
            arrival: self.at(sent.arrival),
        });
    }

    /// Plays all packets, and two more seconds.
    pub fn play(&mut self, mut sent: Vec<Sent>) -> Heard {
        sent.sort_by_key(|sent| sent.arrival);
        let end = sent.last().map_or(0, |sent| sent.arrival) + 2_000_000;
        let mut coming = sent.into_iter().peekable();
        let mut heard = Heard {
            samples: Vec::new(),
            played: Vec::new(),
            delays: Vec::new(),
            targets: Vec::new(),
            stats: ReceiverStats::default(),
        };
        let mut frame = vec![0.0; self.format.frame_len()];
        let mut now = self.phase;
        while now < end {
            while let Some(sent) = coming.next_if(|sent| sent.arrival <= now) {
                self.push(&sent);
            }
            heard
                .played
                .push(self.receiver.play(self.at(now), &mut frame));
            heard.samples.extend_from_slice(&frame);
            let stats = self.receiver.stats();
            heard.delays.push(stats.delay_ms);
            heard.targets.push(stats.target_ms);
            now += 20_000;
        }
        heard.stats = self.receiver.stats();
        heard
    }
}
