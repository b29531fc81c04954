//! A sender with a camera and a microphone, on a network with delays and losses, and the file that
//! is made of its packets.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use portunus_files::Codec;
use portunus_files::assembly::{
    Arrived, Assembler, Coded, Plan, PlannedTrack, Report, Step, StreamKey,
};
use portunus_rtp::SeqNo;
use portunus_rtp::packetize::{Packetizer, PayloadFormat};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::measurement::{Made, Seen};
use crate::world::{Happens, PICTURE, SOUND, World};

const SAMPLES: f64 = 48_000.0;
const TICKS: f64 = 90_000.0;
const FRAMES_A_SECOND: u64 = 30;

/// The packets and reports on their way, by arrival.
#[derive(Debug, Clone)]
enum Sent {
    Packet {
        track: usize,
        stream: u32,
        encoding: u8,
        seq: u64,
        timestamp: u32,
        marker: bool,
        capture: Option<u64>,
        payload: Vec<u8>,
    },
    Report {
        track: usize,
        stream: u32,
        ntp: u64,
        timestamp: u32,
    },
    Keyframe,
}

struct Source {
    stream: u32,
    encoding: u8,
    first_timestamp: u32,
    seq: u64,
    next_report: f64,
    error: f64,
    slips: u32,
    slip: f64,
    is_paused: bool,
    is_muted: bool,
}

struct Sim {
    world: World,
    random: StdRng,
    /// In µs.
    air: BinaryHeap<Reverse<(u64, u64)>>,
    sent: Vec<Option<Sent>>,
    sources: [Source; 2],
    slower: f64,
    clock_set: f64,
    packetizer: Packetizer,
    wants_keyframe: Option<f64>,
    silence: bool,
    width: u16,
    last_arrival: [f64; 2],
    /// Of each simulcast encoding.
    first_timestamps: [u32; 3],
}

const RATES: [f64; 2] = [SAMPLES, TICKS];

impl Sim {
    fn new(world: World) -> Self {
        let mut random = StdRng::seed_from_u64(world.seed);
        let sources = [0, 1].map(|track| Source {
            stream: 0,
            encoding: 0,
            first_timestamp: random.random(),
            seq: 10,
            next_report: world.begins[track] + world.first_report[track],
            error: world.report_error[track],
            slips: 0,
            slip: 0.0,
            is_paused: false,
            is_muted: false,
        });
        let first_timestamps = [
            sources[PICTURE].first_timestamp,
            random.random(),
            random.random(),
        ];
        Self {
            random,
            air: BinaryHeap::new(),
            sent: Vec::new(),
            sources,
            slower: 0.0,
            clock_set: 0.0,
            packetizer: Packetizer::new(PayloadFormat::Vp8),
            wants_keyframe: Some(0.0),
            silence: false,
            width: 640,
            last_arrival: [0.0; 2],
            first_timestamps,
            world,
        }
    }

    fn send(&mut self, arrives: f64, sent: Sent) {
        let number = self.sent.len() as u64;
        self.sent.push(Some(sent));
        self.air.push(Reverse(((arrives * 1e6) as u64, number)));
    }

    /// Returns the NTP time of the sender's clock.
    fn ntp(&self, at: f64) -> u64 {
        let seconds = at * (1.0 + self.world.host_drift * 1e-6) + self.clock_set + 3_900_000_000.0;
        (seconds.trunc() as u64) << 32 | (seconds.fract() * 4_294_967_296.0) as u64
    }

    fn timestamp(&self, track: usize, at: f64) -> u32 {
        let ticks = at * RATES[track] * (1.0 + self.world.drift[track] * 1e-6);
        (self.sources[track].first_timestamp).wrapping_add(ticks.round() as u64 as u32)
    }

    fn travel(&mut self, track: usize, at: f64) -> f64 {
        // Mostly fast, sometimes slow. Later packets come later, as in queues.
        let jitter = self.random.random::<f64>().powi(3) * self.world.jitter;
        let arrives = at + self.world.delay[track] + self.slower + jitter;
        let arrives = arrives.max(self.last_arrival[track] + 1e-5);
        self.last_arrival[track] = arrives;
        arrives
    }

    fn packet(&mut self, track: usize, at: f64, timestamp: u32, marker: bool, payload: Vec<u8>) {
        let seq = self.sources[track].seq;
        self.sources[track].seq += 1;
        let arrives = self.travel(track, at);
        let fate = self.random.random::<f64>();
        if fate < self.world.lost {
            return;
        }
        let again = match fate < self.world.lost + self.world.nacked {
            true => 0.04 + 0.3 * self.random.random::<f64>(),
            false => 0.0,
        };
        let (stream, encoding) = (self.sources[track].stream, self.sources[track].encoding);
        let capture = self.world.captures.then(|| self.ntp(at));
        let sent = Sent::Packet {
            track,
            stream,
            encoding,
            seq,
            timestamp,
            marker,
            capture,
            payload,
        };
        self.send(arrives + again, sent);
    }

    fn sound(&mut self, at: f64, number: u64) {
        let source = &self.sources[SOUND];
        if source.is_paused || source.is_muted {
            return;
        }
        let timestamp = self.timestamp(SOUND, at);
        if self.silence {
            if number.is_multiple_of(20) {
                self.packet(SOUND, at, timestamp, false, vec![0xfc]);
            }
            return;
        }
        let mut payload = vec![0xfc; 40];
        payload[4..12].copy_from_slice(&at.to_be_bytes());
        self.packet(SOUND, at, timestamp, false, payload);
    }

    fn picture(&mut self, at: f64) {
        let source = &self.sources[PICTURE];
        if source.is_paused || source.is_muted {
            return;
        }
        let timestamp = self.timestamp(PICTURE, at);
        let is_key = self.wants_keyframe.is_some_and(|from| at >= from);
        if is_key {
            self.wants_keyframe = None;
        }
        let len = match is_key {
            true => 4_000,
            false => self.random.random_range(300..2_400),
        };
        let mut frame = vec![7; len];
        let head = [u8::from(!is_key), 0, 0, 0x9d, 0x01, 0x2a];
        frame[..6].copy_from_slice(&head);
        frame[6..8].copy_from_slice(&self.width.to_le_bytes());
        frame[8..10].copy_from_slice(&480_u16.to_le_bytes());
        frame[10..18].copy_from_slice(&at.to_be_bytes());
        let mut payloads = Vec::new();
        let cut = self
            .packetizer
            .packetize(&frame, is_key, |payload, marker| {
                payloads.push((payload.to_vec(), marker));
            });
        cut.unwrap();
        for (payload, marker) in payloads {
            self.packet(PICTURE, at, timestamp, marker, payload);
        }
    }

    fn report(&mut self, track: usize, at: f64) {
        let (shortest, longest) = self.world.report_every;
        let pause = self.random.random_range(shortest..=longest);
        self.sources[track].next_report = at + pause;
        if !self.world.reports[track] || at < self.world.begins[track] {
            return;
        }
        let noise = self.random.random_range(-1.0..=1.0) * self.world.report_noise;
        let source = &mut self.sources[track];
        let slip = match source.slips {
            0 => 0.0,
            _ => {
                source.slips -= 1;
                source.slip
            }
        };
        let error = source.error + slip + noise;
        let stream = source.stream;
        let sent = Sent::Report {
            track,
            stream,
            ntp: self.ntp(at + error),
            timestamp: self.timestamp(track, at),
        };
        let arrives = at + self.world.delay[track] + self.slower;
        self.send(arrives, sent);
    }

    fn happen(&mut self, at: f64, what: Happens, assembler: &mut Assembler) {
        let now = Duration::from_secs_f64(at);
        match what {
            Happens::Mute(track) => {
                self.sources[track].is_muted = true;
                assembler.gate(track, false, now);
            }
            Happens::Unmute(track) => {
                self.sources[track].is_muted = false;
                self.sources[track].stream += 1 << 16;
                assembler.gate(track, true, now);
            }
            Happens::Pause(track) => self.sources[track].is_paused = true,
            Happens::GoOn(track) => self.sources[track].is_paused = false,
            Happens::Silence(is) => self.silence = is,
            Happens::NewStream(track, is_known) => {
                self.sources[track].first_timestamp = self.random.random();
                self.sources[track].stream += 1 << 8;
                if track == PICTURE {
                    self.wants_keyframe = Some(at);
                }
                match is_known {
                    true => self.report(track, at),
                    false => self.sources[track].next_report = at + 1.5,
                }
            }
            Happens::Layer(encoding) => {
                let first = self.first_timestamps[usize::from(encoding)];
                self.sources[PICTURE].first_timestamp = first;
                self.sources[PICTURE].stream = u32::from(encoding);
                self.sources[PICTURE].encoding = encoding;
                self.width = 640 << encoding;
                self.wants_keyframe = Some(at);
                self.report(PICTURE, at);
            }
            Happens::SetClock(by) => self.clock_set += by,
            Happens::Mistake(track, by) => self.sources[track].error = by,
            Happens::Slip(track, by, count) => {
                self.sources[track].slip = by;
                self.sources[track].slips = count;
            }
            Happens::Slower(by) => self.slower = by,
            Happens::Size(width) => {
                self.width = width;
                self.wants_keyframe = Some(at);
            }
        }
    }
}

/// Returns the true time in a frame's payload.
fn true_time(data: &[u8], from: usize) -> Option<f64> {
    let bytes = data.get(from..from + 8)?;
    Some(f64::from_be_bytes(bytes.try_into().ok()?))
}

/// Runs the simulation, and makes the file.
pub fn run(world: &World) -> Made {
    let planned = |codec| PlannedTrack {
        codec,
        fmtp: None,
        open: true,
    };
    let mut assembler = Assembler::new(Plan {
        tracks: vec![planned(Codec::Opus), planned(Codec::Vp8)],
        ..Plan::default()
    });
    let mut sim = Sim::new(world.clone());
    let mut made = Made::default();
    let mut happens = world.happens.clone().into_iter().peekable();
    let (mut packets, mut pictures) = (0_u64, 0_u64);
    for ms in 0..world.seconds * 1_000 {
        let now = ms as f64 / 1e3;
        while let Some((at, what)) = happens.next_if(|(at, _)| *at <= now) {
            sim.happen(at, what, &mut assembler);
        }
        // The length of an audio packet depends on its clock.
        loop {
            let at = packets as f64 * 0.020 / (1.0 + world.drift[SOUND] * 1e-6);
            if at >= now + 0.001 {
                break;
            }
            if at >= world.begins[SOUND] {
                sim.sound(at, packets);
            }
            packets += 1;
        }
        loop {
            let at = pictures as f64 / FRAMES_A_SECOND as f64;
            if at >= now + 0.001 {
                break;
            }
            if at >= world.begins[PICTURE] {
                sim.picture(at);
            }
            pictures += 1;
        }
        for track in [SOUND, PICTURE] {
            if now >= sim.sources[track].next_report {
                sim.report(track, now);
            }
        }
        while let Some(Reverse((at, number))) = sim.air.peek().copied() {
            if at as f64 / 1e6 > now {
                break;
            }
            sim.air.pop();
            let at = Duration::from_micros(at);
            match sim.sent[number as usize].take() {
                Some(Sent::Packet {
                    track,
                    stream,
                    encoding,
                    seq,
                    timestamp,
                    marker,
                    capture,
                    payload,
                }) => {
                    if sim.sources[track].is_muted {
                        continue;
                    }
                    let codec = [Codec::Opus, Codec::Vp8][track];
                    let arrived = Arrived {
                        at,
                        stream: StreamKey(stream),
                        seq: SeqNo(seq),
                        timestamp,
                        marker,
                        encoding,
                        codec: Coded::Codec(codec),
                        payload: &payload,
                        level: None,
                        rotation: None,
                        capture,
                    };
                    assembler.push(track, &arrived);
                }
                Some(Sent::Report {
                    track,
                    stream,
                    ntp,
                    timestamp,
                }) => {
                    let report = Report {
                        at,
                        stream: StreamKey(stream),
                        ntp,
                        timestamp,
                        rtt: Some(Duration::from_secs_f64(2.0 * world.delay[SOUND])),
                    };
                    assembler.report(track, &report);
                }
                Some(Sent::Keyframe) => {
                    sim.wants_keyframe = Some(now);
                }
                None => {}
            }
            take(&mut assembler, &mut sim, now, &mut made);
        }
        if ms.is_multiple_of(250) {
            assembler.tick(Duration::from_millis(ms));
            take(&mut assembler, &mut sim, now, &mut made);
        }
    }
    assembler.end();
    take(&mut assembler, &mut sim, world.seconds as f64, &mut made);
    made.stats = [assembler.stats(0), assembler.stats(1)];
    made
}

fn take(assembler: &mut Assembler, sim: &mut Sim, now: f64, made: &mut Made) {
    while let Some(step) = assembler.step() {
        match step {
            Step::Setup { .. } => {}
            Step::NewPart { why } => made.parts.push(why),
            Step::WantKeyframe { track } => {
                assert_eq!(track, PICTURE);
                made.keyframes_asked += 1;
                sim.send(now + sim.world.delay[SOUND], Sent::Keyframe);
            }
            Step::Note { track, note } => made.notes.push((track, note)),
            Step::Frame(frame) => {
                let track = frame.track;
                let (data, at) = (frame.data.to_vec(), frame.at);
                let duration = frame.duration.as_secs_f64();
                let started = assembler.started().unwrap();
                let at = (started + at).as_secs_f64();
                if track == SOUND {
                    let first = made.sound.first().map_or(at, |(first, _)| *first);
                    let counted = first + made.counted;
                    made.counted += duration;
                    made.sound.push((at, at + duration));
                    if let Some(true_at) = true_time(&data, 4) {
                        made.seen[SOUND].push(Seen {
                            true_at,
                            at,
                            counted,
                        });
                    }
                } else if let Some(true_at) = true_time(&data, 10) {
                    let counted = at;
                    made.seen[PICTURE].push(Seen {
                        true_at,
                        at,
                        counted,
                    });
                }
            }
        }
    }
}
