//! A viewer: the server's part for it, and the video that it receives.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use portunus_rtc::bandwidth::{
    Allocator, Bandwidth, DataRate, Decision, Estimate, Lane, LayerMeter, LayerRates, Layering,
    Measure, Pacer, SentLog, Target, Track, TrackKind,
};
use portunus_rtc::streams::{ArrivalLog, ArrivalReport};
use portunus_rtc::testing::{Frame, Publisher};
use portunus_rtp::Ssrc;
use portunus_rtp::rtcp::{Compound, Packet, TwccWriter, WritePacket};

use crate::busy::{Load, Thread};

const PACKET: usize = 1_200;
const PADDING: usize = 255;
const AUDIO_INTERVAL: Duration = Duration::from_millis(20);
const AUDIO_BYTES: usize = 100;
const FEEDBACK_INTERVAL: Duration = Duration::from_millis(100);

/// A datagram on the link.
#[derive(Debug, Clone, Copy)]
pub struct Datagram {
    pub flow: usize,
    pub seq: u16,
    pub bytes: usize,
    /// Its picture, and the number of packets of that.
    pub picture: Option<(u64, usize)>,
}

/// A packet before it is sent: its size and its picture.
pub type Outgoing = (usize, Option<(u64, usize)>);

pub struct Viewer {
    pub publisher: Publisher,
    pub most: Target,
    pub wanted: bool,
    pub audio: bool,
    /// Whether feedback is lost on its way back.
    pub deaf: bool,
    /// The pacer of outgoing packets.
    pub pacer: Option<Pacer<Outgoing>>,
    flow: usize,
    /// The time from a report to its arrival.
    pub return_delay: Duration,
    // The server's part.
    server: Thread<()>,
    sending: Thread<Datagram>,
    log: SentLog,
    pub bandwidth: Bandwidth,
    pub allocator: Allocator,
    meter: LayerMeter,
    seq: u16,
    next_audio: Instant,
    next_update: Instant,
    relayed: Relayed,
    padding: u64,
    // The receiver's part.
    reading: Thread<Datagram>,
    reporting: Thread<()>,
    arrivals: ArrivalLog,
    next_feedback: Instant,
    feedback: VecDeque<(Instant, Vec<u8>)>,
    incomplete: BTreeMap<u64, usize>,
    // The results.
    /// The decisions with their times.
    pub decided: Vec<(Instant, Decision)>,
    /// When which encoding or spatial layer was first relayed.
    pub switched: Vec<(Instant, u8)>,
    pub received: Vec<(Instant, usize)>,
    /// When pictures were complete.
    pub pictures: Vec<Instant>,
}

/// The selector's output: an encoding, or spatial layers up to this one.
#[derive(Debug, Default)]
struct Relayed {
    layer: Option<u8>,
    temporal: u8,
    asked: Option<Instant>,
}

impl Viewer {
    pub fn new(seed: u64, flow: usize, publisher: Publisher, now: Instant) -> Self {
        Self {
            return_delay: Duration::from_millis(25),
            server: Thread::new(seed * 4, now),
            sending: Thread::new(seed * 4 + 1, now),
            reading: Thread::new(seed * 4 + 2, now),
            reporting: Thread::new(seed * 4 + 3, now),
            publisher,
            most: Target::ALL,
            wanted: true,
            audio: true,
            deaf: false,
            pacer: None,
            flow,
            log: SentLog::new(now),
            bandwidth: Bandwidth::new(Measure::Transport),
            allocator: Allocator::default(),
            meter: LayerMeter::default(),
            seq: 0,
            next_audio: now,
            next_update: now,
            relayed: Relayed::default(),
            padding: 0,
            arrivals: ArrivalLog::new(now),
            next_feedback: now + FEEDBACK_INTERVAL,
            feedback: VecDeque::new(),
            incomplete: BTreeMap::new(),
            decided: Vec::new(),
            switched: Vec::new(),
            received: Vec::new(),
            pictures: Vec::new(),
        }
    }

    /// Sets the load of the viewer's machine and of the server's.
    pub fn set_load(&mut self, viewer: Option<Load>, server: Option<Load>) {
        self.reading.set_load(viewer);
        self.reporting.set_load(viewer);
        self.server.set_load(server);
        self.sending.set_load(server);
    }

    pub fn look_again(&mut self, now: Instant) {
        self.next_update = now;
    }

    pub fn estimate(&self) -> Estimate {
        self.bandwidth.estimate()
    }

    /// Returns the bytes of padding sent so far.
    pub fn padding(&self) -> u64 {
        self.padding
    }

    /// Runs the server at `now`. Returns the datagrams that it sends.
    pub fn serve(&mut self, now: Instant) -> Vec<Datagram> {
        if self.server.runs(now) {
            for datagram in self.turn(now) {
                self.sending.give(datagram);
            }
        }
        self.sending.take(now)
    }

    fn turn(&mut self, now: Instant) -> Vec<Datagram> {
        let mut out = Vec::new();
        while self.feedback.front().is_some_and(|(at, _)| *at <= now) {
            let (_, bytes) = self.feedback.pop_front().unwrap();
            for packet in Compound::new(&bytes) {
                if let Packet::Twcc(twcc) = packet.unwrap() {
                    self.bandwidth.feedback(&mut self.log, &twcc, now);
                }
            }
        }
        if self.bandwidth.poll_timeout().is_some_and(|at| at <= now) {
            self.bandwidth.handle_timeout(&self.log, now);
        }
        let news = self.bandwidth.poll_estimate().is_some();
        let due = self.allocator.poll_timeout().is_some_and(|at| at <= now);
        if news || due || self.next_update <= now {
            self.next_update = now + Duration::from_secs(1);
            self.allocate(now);
        }
        for frame in self.publisher.poll(now) {
            if self.publisher.loses() {
                continue;
            }
            self.meter.record(frame.layer, frame.temporal, frame.bytes);
            self.relay(&frame, now, &mut out);
        }
        if self.audio && self.next_audio <= now {
            self.next_audio += AUDIO_INTERVAL;
            self.send(AUDIO_BYTES, None, now, &mut out);
        }
        while let Some(padding) = self.bandwidth.poll_padding(&self.log, now) {
            for _ in 0..padding.bytes.div_ceil(PADDING) {
                self.padding += PADDING as u64;
                self.send(PADDING, None, now, &mut out);
            }
        }
        if let Some(mut pacer) = self.pacer.take() {
            pacer.set_rate(self.estimate().rate.times(Pacer::<Outgoing>::OF_ESTIMATE));
            while let Some((bytes, picture)) = pacer.pop(now) {
                self.depart(bytes, picture, now, &mut out);
            }
            self.pacer = Some(pacer);
        }
        out
    }

    /// Passes an arriving datagram to the receiver.
    pub fn arrive(&mut self, datagram: Datagram, at: Instant) {
        if self.reading.is_busy() {
            self.reading.give(datagram);
        } else {
            self.read(datagram, at);
        }
    }

    fn read(&mut self, datagram: Datagram, at: Instant) {
        self.arrivals.record(datagram.seq, at);
        self.received.push((at, datagram.bytes));
        let Some((number, packets)) = datagram.picture else {
            return;
        };
        let missing = self.incomplete.entry(number).or_insert(packets);
        *missing -= 1;
        if *missing == 0 {
            self.pictures.push(at);
        }
    }

    /// Sends the feedback of the receiver that is due at `now`.
    pub fn report(&mut self, now: Instant) {
        for datagram in self.reading.take(now) {
            self.read(datagram, now);
        }
        if self.next_feedback > now || !self.reporting.runs(now) {
            return;
        }
        self.next_feedback = self.next_feedback.max(now - FEEDBACK_INTERVAL) + FEEDBACK_INTERVAL;
        while !self.arrivals.is_empty() {
            let ArrivalReport {
                count,
                base,
                arrivals,
            } = self.arrivals.take();
            let sources = (Ssrc(1), Ssrc(2));
            let (writer, rest) = TwccWriter::new(sources, count, base, arrivals, 1_100).unwrap();
            let mut bytes = vec![0; 1_100];
            let len = writer.write_into(&mut bytes).unwrap();
            bytes.truncate(len);
            let reported = arrivals.len() - rest.len();
            self.arrivals.put_back(reported);
            if !self.deaf {
                self.feedback.push_back((now + self.return_delay, bytes));
            }
        }
    }

    fn allocate(&mut self, now: Instant) {
        let video = Track {
            media: 1,
            kind: TrackKind::Video,
            priority: 0,
            rates: self.meter.rates(self.publisher.layering, now),
            most: self.most,
            wanted: self.wanted,
            pausable: false,
            asked: false,
        };
        let audio = Track {
            media: 0,
            kind: TrackKind::Audio,
            rates: LayerRates::single(DataRate::kbps(40)),
            wanted: self.audio,
            pausable: false,
            asked: false,
            ..video
        };
        let estimate = self.bandwidth.estimate();
        let decision = self.allocator.update(&estimate, &[audio, video], now)[1];
        self.bandwidth.want(self.allocator.wanted(), now);
        let last = self
            .decided
            .last()
            .map(|(_, last)| (last.target, last.reason));
        if last != Some((decision.target, decision.reason)) {
            self.decided.push((now, decision));
        }
        self.select(&decision, now);
    }

    /// Passes a decision to the selector.
    fn select(&mut self, decision: &Decision, now: Instant) {
        let Some(target) = decision.target else {
            self.relayed.layer = None;
            return;
        };
        let wanted = self.layer(target);
        self.relayed.temporal = target.temporal;
        let current = self.relayed.layer;
        match self.publisher.layering {
            Layering::Encodings if decision.cut && current.is_some_and(|c| c > wanted) => {
                self.relayed.layer = None;
            }
            Layering::Spatial if current.is_some_and(|c| c > wanted) => {
                self.relayed.layer = Some(wanted);
                self.switched.push((now, wanted));
            }
            Layering::Encodings | Layering::Spatial => {}
        }
    }

    fn relay(&mut self, frame: &Frame, now: Instant, out: &mut Vec<Datagram>) {
        let decision = self.allocator.decisions().get(1).copied();
        let Some(target) = decision.and_then(|decision| decision.target) else {
            return;
        };
        let wanted = self.layer(target);
        if self.relayed.layer.is_none_or(|layer| layer != wanted) {
            if frame.keyframe
                && (frame.layer == wanted || self.publisher.layering == Layering::Spatial)
            {
                self.relayed.layer = Some(wanted);
                self.switched.push((now, wanted));
            } else if self
                .relayed
                .asked
                .is_none_or(|at| now >= at + Duration::from_millis(500))
            {
                self.relayed.asked = Some(now);
                self.publisher.request_keyframe(wanted, now);
            }
        }
        let Some(layer) = self.relayed.layer else {
            return;
        };
        let relayed = match self.publisher.layering {
            Layering::Encodings => frame.layer == layer,
            Layering::Spatial => frame.layer <= layer,
        };
        if relayed && frame.temporal <= self.relayed.temporal {
            let packets = frame.bytes.div_ceil(PACKET);
            let number = frame.number * 4 + u64::from(frame.layer);
            for n in 0..packets {
                let bytes = (frame.bytes - n * PACKET).min(PACKET);
                self.send(bytes, Some((number, packets)), now, out);
            }
        }
    }

    fn send(
        &mut self,
        bytes: usize,
        picture: Option<(u64, usize)>,
        now: Instant,
        out: &mut Vec<Datagram>,
    ) {
        let Some(pacer) = &mut self.pacer else {
            return self.depart(bytes, picture, now, out);
        };
        let lane = if picture.is_some() {
            Lane::Video
        } else {
            Lane::Audio
        };
        assert!(pacer.push(lane, bytes, (bytes, picture), now).is_ok());
    }

    fn depart(
        &mut self,
        bytes: usize,
        picture: Option<(u64, usize)>,
        now: Instant,
        out: &mut Vec<Datagram>,
    ) {
        let seq = self.seq;
        self.seq = seq.wrapping_add(1);
        self.log.record(seq, bytes, now);
        let flow = self.flow;
        out.push(Datagram {
            flow,
            seq,
            bytes,
            picture,
        });
    }

    fn layer(&self, target: Target) -> u8 {
        let top = (self.publisher.kbps.len() - 1) as u8;
        match self.publisher.layering {
            Layering::Encodings => target.encoding.min(top),
            Layering::Spatial => target.spatial.min(top),
        }
    }
}
