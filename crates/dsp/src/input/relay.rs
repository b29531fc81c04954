//! Relaying of packets unchanged, at their times and without decoding.

use std::time::Instant;

use super::buffer::Waiting;
use super::opus_packet::OpusPacket;
use super::receiver::{FORGET_LOSS, FRAME, LEAST_GAP, Receiver, State, TOLERANCE};
use super::timeline::MS;
use crate::{AudioCodec, Channels};

/// The relayed packets that are kept: two to prepare a decoder, and 100 ms of history.
const KEPT: usize = 7;
/// The level in -dBov from which on neither a dropped packet nor a switch is audible.
pub(crate) const QUIET: u8 = 50;
/// The deviation of the delay beyond the tolerance at which relaying still waits for a quiet packet
/// to drop or delay. Listeners have jitter buffers, and a short stall should not end relaying.
const PATIENCE: i64 = 2 * FRAME;
/// The limit of consecutive missing packets. Listeners conceal them.
const MOST_GAPS: u32 = 3;
/// The weight of a packet in the average size.
const SHARE: f32 = 0.02;
/// The longest frame: 20 ms of 48 kHz with two channels.
const LONGEST_FRAME: usize = 1_920;

/// The result of relaying a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relayed {
    /// A packet of 20 ms.
    Packet,
    /// No packet: it is missing, or is delayed by a frame.
    Gap,
    /// The packets cannot be relayed now: the frame is to be played.
    Refused,
}

/// A receiver's state for relaying.
#[derive(Debug, Default)]
pub(super) struct Relay {
    pub(super) size: Size,
    /// The number of gaps in a row.
    gaps: u32,
}

/// The average size of packets.
#[derive(Debug, Default)]
pub(super) struct Size(f32);

impl Size {
    pub(super) fn add(&mut self, bytes: usize) {
        let share = if self.0 == 0.0 { 1.0 } else { SHARE };
        self.0 += (bytes as f32 - self.0) * share;
    }
}

/// The action for the first packet.
enum Turn {
    HandOn,
    /// It is dropped, and the next one follows.
    Drop,
    Gap,
    Refused,
}

impl Receiver {
    /// Whether a packet can be relayed in a mono room of this rate. It must have a SILK layer, like
    /// speech in mixes: between SILK and CELT libopus resets its state, and the switch would be
    /// audible.
    pub(super) fn is_relayable(&self, packet: OpusPacket) -> bool {
        let format = self.options.format;
        self.options.codec == AudioCodec::Opus
            && i64::from(packet.len) == FRAME
            && packet.silk
            && !packet.dtx
            && !packet.stereo
            && format.channels == Channels::Mono
            && packet.rate <= format.rate.hertz()
    }

    /// Takes the due packet unchanged into `into`. `most` is the greatest average size of packets,
    /// in bytes.
    ///
    /// It takes a frame, like [`play`](Self::play) and [`skip`](Self::skip). After
    /// [`Relayed::Refused`] the frame is still to be taken, and is played without a gap. The delay
    /// is changed by dropping or delaying quiet packets. If none comes in time, other packets are
    /// dropped, and it refuses if a packet would have to wait. It starts after a quiet packet, so
    /// that the change is inaudible, or at any packet with `hurry`.
    pub fn relay(&mut self, now: Instant, most: usize, hurry: bool, into: &mut Vec<u8>) -> Relayed {
        let now = self.timeline.time(now);
        let begins = self.state != State::Relaying;
        // A running relay tolerates somewhat larger packets.
        let most = if begins {
            most
        } else {
            most.saturating_add(most / 2)
        };
        if self.relay.size.0 > most as f32 || (begins && !self.begin_relay(now, hurry)) {
            return Relayed::Refused;
        }
        loop {
            match self.turn(now) {
                Turn::Refused => return Relayed::Refused,
                Turn::Drop => {
                    self.past();
                    self.stats.overflow += 1;
                }
                Turn::Gap => {
                    self.relay.gaps += 1;
                    self.give_back(now);
                    return Relayed::Gap;
                }
                Turn::HandOn => {
                    if let Some(front) = self.buffer.front() {
                        into.clear();
                        into.extend_from_slice(&front.payload);
                        self.stats.recovered += u64::from(front.redundant);
                    }
                    let delay = now - self.delay.least_transit() - self.next;
                    self.stats.delay_ms = u32::try_from(delay / MS).unwrap_or(0);
                    self.past();
                    self.stats.played += 1;
                    self.relay.gaps = 0;
                    self.give_back(now);
                    return Relayed::Packet;
                }
            }
        }
    }

    /// Continues with decoding after relaying. The last 100 ms of relayed audio go to `heard`, a
    /// frame at a time.
    pub(crate) fn resume(&mut self, mut heard: impl FnMut(&[f32])) {
        if self.state != State::Relaying {
            return;
        }
        self.state = State::Silent;
        if self.make_playout()
            && let Some(playout) = &mut self.playout
        {
            let mut frame = [0.0; LONGEST_FRAME];
            let frame = frame.get_mut(..self.options.format.frame_len());
            let frame = frame.unwrap_or_default();
            playout.reset();
            playout.begin();
            for packet in self.buffer.past() {
                if playout.decode(packet, packet.media).is_err() {
                    playout.make_up(FRAME);
                }
                playout.take(frame);
                heard(frame);
            }
            self.state = State::Playing;
            self.shortening = false;
        }
        self.buffer.forget(0);
    }

    /// Whether packets are relayed.
    pub(crate) fn is_relaying(&self) -> bool {
        self.state == State::Relaying
    }

    /// Starts with the due packet, if it can be relayed.
    fn begin_relay(&mut self, now: i64, hurry: bool) -> bool {
        let due = self.due_at(now);
        let from = match self.state {
            State::Skipped => due,
            _ if hurry => due,
            State::Silent | State::Playing | State::Relaying => self.next,
        };
        let Some(first) = self.buffer.waiting().find(|packet| packet.end() > from) else {
            return false;
        };
        let late = due - first.media;
        let in_time = (-TOLERANCE..=FRAME + TOLERANCE).contains(&late);
        let follows = hurry
            || self.state != State::Playing
            || (first.seq == self.last_seq + 1
                && first.media - self.next < LEAST_GAP
                && !first.anew
                && !self.shortening);
        if !first.relayable || !in_time || !follows {
            return false;
        }
        let (seq, media) = (first.seq, first.media);
        while self.buffer.front().is_some_and(|front| front.seq < seq) {
            self.buffer.pass(0);
        }
        if let Some(playout) = &mut self.playout {
            playout.silence();
        }
        self.buffer.forget(0);
        self.state = State::Relaying;
        self.next = media;
        self.last_seq = seq - 1;
        self.debt = 0;
        self.relay.gaps = 0;
        true
    }

    /// Returns the action for the first packet.
    fn turn(&mut self, now: i64) -> Turn {
        let (slack, wait) = (now - self.delay.least_transit() - self.next, self.wait());
        let Some(front) = self.buffer.front() else {
            if self.relay.gaps >= MOST_GAPS {
                return Turn::Refused;
            }
            self.debt += FRAME;
            return Turn::Gap;
        };
        let gap = front.media - self.next;
        if gap >= LEAST_GAP {
            return self.missing(now, gap, front.seq);
        }
        // A restarted stream is played, because the listener's decoder has the old state.
        let begins = self.buffer.past().next().is_none();
        if !front.relayable || (front.anew && !begins) {
            return Turn::Refused;
        }
        let early = wait - TOLERANCE - slack;
        let late = slack - (wait + FRAME + TOLERANCE);
        let quiet = is_quiet(front);
        if early > 0 && quiet && self.relay.gaps == 0 {
            Turn::Gap
        } else if late > 0 && (quiet || late > PATIENCE) && self.buffer.waiting().nth(1).is_some() {
            Turn::Drop
        } else if !quiet && early.max(late) > PATIENCE {
            Turn::Refused
        } else {
            Turn::HandOn
        }
    }

    /// Handles a gap before the first packet.
    fn missing(&mut self, now: i64, gap: i64, seq: i64) -> Turn {
        if seq == self.last_seq + 1 {
            // The sender pauses, or its clock has jumped.
            return Turn::Refused;
        }
        // It may be a gap that was passed before it was known.
        if self.debt > 0 {
            self.next += gap.min(self.debt);
            self.debt = 0;
            return self.turn(now);
        }
        if self.relay.gaps >= MOST_GAPS || gap < FRAME - LEAST_GAP {
            return Turn::Refused;
        }
        self.next += gap.min(FRAME);
        self.lost += 1.0 - FORGET_LOSS;
        Turn::Gap
    }

    /// Moves the first packet to the past.
    fn past(&mut self) {
        if let Some(front) = self.buffer.front() {
            self.next = front.end();
            self.last_seq = front.seq;
            self.last_len = front.len;
            self.last_level = front.level.or(self.last_level.filter(|_| front.redundant));
            self.debt = 0;
            self.lost *= FORGET_LOSS;
        }
        self.buffer.pass(KEPT);
    }
}

fn is_quiet(packet: &Waiting) -> bool {
    packet.level.is_some_and(|level| level >= QUIET)
}
