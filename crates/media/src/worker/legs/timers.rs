//! The timers of legs: reports, tones and silence.

use std::cmp::{Ordering, Reverse};
use std::time::Instant;

use super::{Legs, count};
use crate::leg::{Due, LegId, ReportContents, ReportSource};
use crate::worker::graph::Graph;
use crate::worker::ingests::{Ingests, Intake, OwnHead};

/// A deadline of a leg. It is stale if the leg was scheduled for an earlier one since.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Scheduled {
    at: Instant,
    leg: LegId,
}

impl Ord for Scheduled {
    /// Orders the earliest deadline as the greatest.
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
    /// Sets the timer of a leg.
    pub(super) fn schedule(&mut self, slot: usize) {
        let Some(leg) = self.slots.get_mut(slot) else {
            return;
        };
        let Some(at) = leg.state.deadline() else {
            return;
        };
        // A deadline that moved back is detected when the old one is due.
        if leg.scheduled.is_none_or(|known| at < known) {
            leg.scheduled = Some(at);
            let leg = leg.id;
            self.due.push(Scheduled { at, leg });
        }
    }

    /// When the next timer is due.
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
                    Due::Report => self.report(slot, ReportContents::default(), into.graph, now),
                    Due::FarTone => self.send_tone(slot, now),
                    Due::NearTone(tone, pt) => {
                        let Some(leg) = self.slots.get_mut(slot) else {
                            continue;
                        };
                        let begun = leg.state.near_tone_at();
                        let timestamp = begun.filter(|_| !tone.begins);
                        let timestamp = timestamp.map(|begun| begun.wrapping_add(tone.offset));
                        let head = OwnHead {
                            pt,
                            marker: tone.begins,
                            timestamp,
                        };
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

    /// Requests the keyframes that receivers need of far ends.
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
                let contents = ReportContents {
                    keyframe: true,
                    bye: false,
                };
                self.report(slot, contents, graph, now);
            }
        }
    }

    /// Sends RTCP to a far end.
    pub(super) fn report(
        &mut self,
        slot: usize,
        contents: ReportContents,
        graph: &Graph,
        now: Instant,
    ) {
        let Some(leg) = self.slots.get_mut(slot) else {
            return;
        };
        let source = leg.source.and_then(|(_, key)| graph.source(key));
        let of = source.map_or(ReportSource::default(), |source| ReportSource {
            format: Some(&source.format),
            clocks: &source.clocks,
        });
        let room = &mut self.room[..];
        let clock = (&self.clock, now);
        if let Some((len, to)) = leg.state.report(contents, of, clock, room)
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
