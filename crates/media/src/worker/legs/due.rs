//! What legs have to do by the clock: reports, tones, and telling of silence.

use std::cmp::{Ordering, Reverse};
use std::time::Instant;

use super::{Legs, count};
use crate::leg::{Due, LegId};
use crate::worker::graph::Graph;
use crate::worker::ingests::{Ingests, Intake};

/// A leg that is to be looked at. What a leg was scheduled for before it was for something sooner is nothing any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Scheduled {
    at: Instant,
    leg: LegId,
}

impl Ord for Scheduled {
    /// The greatest is the soonest.
    fn cmp(&self, other: &Self) -> Ordering {
        let by = |it: &Self| Reverse((it.at, it.leg));
        by(self).cmp(&by(other))
    }
}

impl PartialOrd for Scheduled {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Legs {
    /// Has a leg looked at when something of it is due.
    pub(super) fn schedule(&mut self, slot: usize) {
        let Some(leg) = self.slots.get_mut(slot) else {
            return;
        };
        let Some(at) = leg.state.deadline() else {
            return;
        };
        // What is due later than thought is found out when it is looked at.
        if leg.scheduled.is_none_or(|known| at < known) {
            leg.scheduled = Some(at);
            let leg = leg.id;
            self.due.push(Scheduled { at, leg });
        }
    }

    /// When something is due.
    pub(in crate::worker) fn timeout(&self) -> Option<Instant> {
        self.due.peek().map(|scheduled| scheduled.at)
    }

    /// Does what is due.
    pub(in crate::worker) fn run(
        &mut self,
        ingests: &mut Ingests,
        into: &mut Intake<'_>,
        now: Instant,
    ) {
        while let Some(Scheduled { at, leg: id }) =
            self.due.peek().copied().filter(|it| it.at <= now)
        {
            self.due.pop();
            let Some((slot, leg)) = self.get_mut(id) else {
                continue;
            };
            if leg.scheduled != Some(at) {
                continue;
            }
            leg.scheduled = None;
            let all = leg.state.timeout(now);
            for due in all {
                match due {
                    Due::Report => self.report(slot, (false, false), into.graph, now),
                    Due::FarTone => self.send_tone(slot, now),
                    Due::NearTone(tone, pt) => {
                        let Some(leg) = self.slots.get_mut(slot) else {
                            continue;
                        };
                        let begun = leg.state.near_tone_at();
                        let timestamp = begun.filter(|_| !tone.begins);
                        let timestamp = timestamp.map(|begun| begun.wrapping_add(tone.offset));
                        let head = (pt, tone.begins, timestamp);
                        let payload = tone.payload.to_bytes();
                        let sent = ingests.take_own(leg.ingest, head, &payload, into, now);
                        if tone.begins {
                            leg.state.near_tone_begins(sent);
                        }
                    }
                }
            }
            self.schedule(slot);
        }
    }

    /// Asks far ends for the keyframes that receivers of what they send need.
    pub(in crate::worker) fn ask_for_keyframes(
        &mut self,
        ingests: &mut Ingests,
        graph: &Graph,
        now: Instant,
    ) {
        while let Some(ingest) = ingests.next_asked() {
            let id = LegId {
                worker: ingest.worker,
                serial: ingest.serial,
            };
            if let Some((slot, leg)) = self.get_mut(id)
                && leg.state.can_ask()
            {
                self.report(slot, (true, false), graph, now);
            }
        }
    }

    /// Sends RTCP to a far end: with a request for a keyframe, or a goodbye.
    pub(super) fn report(
        &mut self,
        slot: usize,
        (keyframe, bye): (bool, bool),
        graph: &Graph,
        now: Instant,
    ) {
        let Some(leg) = self.slots.get_mut(slot) else {
            return;
        };
        let source = leg.source.and_then(|(_, key)| graph.source(key));
        let of = match source {
            Some(source) => (Some(&source.format), &source.clocks[..]),
            None => (None, &[][..]),
        };
        let room = &mut self.room[..];
        let clock = (&self.clock, now);
        if let Some((len, to)) = leg.state.report((keyframe, bye), of, clock, room)
            && let Some(datagram) = room.get(..len)
        {
            let port = match leg.state.shares_port() {
                true => &leg.rtp,
                false => &leg.rtcp,
            };
            let left = port.send(datagram, to);
            count(&mut self.sent, len, left);
        }
    }

    fn send_tone(&mut self, slot: usize, now: Instant) {
        let Some(leg) = self.slots.get_mut(slot) else {
            return;
        };
        if let Some(len) = leg.state.outgoing.write_tone(now, &mut self.room[..])
            && let Some(datagram) = self.room.get(..len)
        {
            let left = leg.send(datagram);
            count(&mut self.sent, len, left);
        }
    }
}
