//! The sound of a participant of an audio room.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use portunus_rtc::Transport;
use portunus_rtp::header::{Fields, write_header};
use portunus_rtp::{Pt, SeqNo, Ssrc};
use portunus_udp::{Destination, SendBatch};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::sender::{MAX_TAG, common_start};
use super::way::Way;
use crate::machine::wall_clock;
use crate::source::{Due, Lateness};
use crate::speech::Script;
use crate::traffic::AUDIO_PERIOD;

/// Room for a header with extensions.
const MAX_HEADER: usize = 64;

/// The loss and delay of packets on their way to the server.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Weather {
    /// The share of lost packets, 0 to 1.
    pub(crate) loss: f64,
    /// The mean delay of the others, which is between 0 and twice this.
    pub(crate) jitter: Duration,
    /// The seed of the losses.
    pub(crate) seed: u64,
}

/// A participant's speech, and its start.
#[derive(Debug, Clone)]
pub(crate) struct Speaking {
    pub(crate) script: Arc<Script>,
    /// The packet to start with.
    pub(crate) from: usize,
    pub(crate) weather: Option<Weather>,
    /// The share of a packet's time after the common start of all, 0 to 1.
    pub(crate) phase: f64,
}

/// Sends the speech, paced.
#[derive(Debug)]
pub(super) struct Voice {
    speaking: Speaking,
    pt: Pt,
    ssrc: Ssrc,
    /// The header extension of a packet's level.
    level_by: Option<u8>,
    /// Packets of the script so far, including those that are not sent.
    said: usize,
    /// Packets sent, or lost on their way.
    number: u64,
    timestamp: u32,
    due: Option<Due>,
    random: StdRng,
    /// Delayed packets with their times of arrival.
    held_up: BinaryHeap<Reverse<(Instant, u64)>>,
    waiting: Vec<(u64, Vec<u8>)>,
}

impl Voice {
    pub(super) fn new(speaking: Speaking, (pt, ssrc): (Pt, Ssrc), level_by: Option<u8>) -> Self {
        let seed = speaking.weather.map_or(0, |weather| weather.seed);
        Self {
            speaking,
            pt,
            ssrc,
            level_by,
            said: 0,
            number: 0,
            timestamp: rand::random(),
            due: None,
            random: StdRng::seed_from_u64(seed),
            held_up: BinaryHeap::new(),
            waiting: Vec::new(),
        }
    }

    /// Starts to speak at `now`.
    pub(super) fn start(&mut self, now: Instant) {
        let phase = self.speaking.phase;
        self.due = Some(Due::in_phase(common_start(), phase, AUDIO_PERIOD, now));
    }

    /// Returns the next deadline of [`Voice::send`].
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let held_up = self.held_up.peek().map(|Reverse((at, _))| *at);
        [self.due.as_ref().map(Due::at), held_up]
            .into_iter()
            .flatten()
            .min()
    }

    /// Sends what is due. Returns the time of its mark, if any.
    pub(super) fn send(
        &mut self,
        now: Instant,
        transport: &Transport,
        way: &Way,
        out: &mut SendBatch,
        lateness: &Lateness,
    ) -> Option<Duration> {
        let to = transport.selected_pair().map(|pair| pair.remote)?;
        let to = way.destination(out, to);
        let mut mark = None;
        if let Some(late) = self.due.as_mut().and_then(|due| due.take(now)) {
            lateness.note(late);
            mark = self.say(now, transport, way, out, &to);
        }
        while let Some(Reverse((at, number))) = self.held_up.peek().copied()
            && at <= now
        {
            self.held_up.pop();
            if let Some(place) = self.waiting.iter().position(|(n, _)| *n == number) {
                let (_, packet) = self.waiting.swap_remove(place);
                let sealed = out.room(way).get_mut(..packet.len());
                if let Some(room) = sealed {
                    room.copy_from_slice(&packet);
                    out.commit(packet.len(), &to);
                }
            }
        }
        way.leave(out);
        mark
    }

    /// Handles the next packet: it leaves, is delayed, or is lost.
    fn say(
        &mut self,
        now: Instant,
        transport: &Transport,
        way: &Way,
        out: &mut SendBatch,
        to: &Destination,
    ) -> Option<Duration> {
        let script = Arc::clone(&self.speaking.script);
        let place = (self.speaking.from + self.said).checked_rem(script.packets.len())?;
        let packet = script.packets.get(place)?;
        let timestamp = self.timestamp;
        self.said += 1;
        self.timestamp = timestamp.wrapping_add(script.codec.clock_rate() / 50);
        let mark = packet
            .mark
            .map(|mark| wall_clock() + Duration::from_secs_f64(mark));
        if packet.payload.is_empty() {
            return mark;
        }
        let room = MAX_HEADER + packet.payload.len() + MAX_TAG;
        let buffer = out.room(way).get_mut(..room)?;
        let fields = Fields {
            marker: false,
            padding: false,
            pt: self.pt,
            sequence: self.number as u16,
            timestamp,
            ssrc: self.ssrc,
        };
        let level = [u8::from(packet.voice) << 7 | packet.level];
        let level = self.level_by.map(|id| (id, level.as_slice()));
        let header = write_header(buffer, &fields, level).ok()?;
        let length = header + packet.payload.len();
        buffer
            .get_mut(header..length)?
            .copy_from_slice(&packet.payload);
        let sealed = transport
            .seal_rtp(SeqNo(self.number), header, length, buffer)
            .ok()?;
        let number = self.number;
        self.number += 1;
        match self.speaking.weather {
            None => out.commit(sealed, to),
            Some(weather) => {
                // Both are drawn for each packet, so that one does not change the other.
                let (lost, held_up) = (self.random.random::<f64>(), self.random.random::<f64>());
                if lost >= weather.loss {
                    self.waiting.push((number, buffer.get(..sealed)?.to_vec()));
                    let at = now + weather.jitter.mul_f64(2.0 * held_up);
                    self.held_up.push(Reverse((at, number)));
                }
            }
        }
        mark
    }
}
