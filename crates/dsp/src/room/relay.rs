//! One participant alone is heard: others hear its packets as they are, and nothing is decoded or encoded.

use std::time::Instant;

use super::Room;
use crate::mix::LOOK_AHEAD;
use crate::{Channels, Relayed};

/// Ticks in which nobody else was heard before packets are sent on as they are: half a second.
const ALONE: u32 = 25;

/// Ticks after one that was left out in which it begins without that: there is no time to mix, and the sound has a gap anyway.
const HURRY: u32 = 25;

/// A mix is later than its sounds by what the encoder and the limiter look ahead. libopus, in parts of a second: 2.5 ms and
/// 4 ms.
const ENCODER_AHEAD: [usize; 2] = [400, 250];

/// What is sent on as it is, and who may be.
#[derive(Debug, Default)]
pub(super) struct Relay {
    /// The place of whom it is in this tick.
    pub(super) of: Option<usize>,
    /// A packet came, or is missing.
    came: bool,
    /// That packet.
    pub(super) packet: Vec<u8>,
    /// It has ended before this tick, and the mix goes on from what it has left in the history; and whose it was, if that one is
    /// there yet.
    ended: bool,
    pub(super) was_of: Option<usize>,
    /// The place of whom alone was heard last, for how many ticks, and for how many of them nothing was.
    sole: Option<usize>,
    ticks: u32,
    silent: u32,
    /// It may begin at any packet for so many ticks.
    hurry: u32,
}

impl Relay {
    /// Frames were left out, for which nobody had time.
    pub(super) fn hurry(&mut self) {
        self.hurry = HURRY;
    }

    /// What came for this tick; none: the mix is encoded.
    pub(super) fn relayed(&self) -> Option<Relayed> {
        self.of.map(|_| match self.came {
            true => Relayed::Packet,
            false => Relayed::Gap,
        })
    }

    /// So many are heard in this tick, and one of them in this place.
    fn count(&mut self, heard: usize, place: Option<usize>) {
        match heard {
            0 => {
                self.ticks = self.ticks.saturating_add(1);
                self.silent = self.silent.saturating_add(1);
            }
            1 => {
                if self.sole != place {
                    self.sole = place;
                    self.ticks = self.silent;
                }
                self.ticks = self.ticks.saturating_add(1);
                self.silent = 0;
            }
            _ => {
                self.sole = None;
                self.ticks = 0;
                self.silent = 0;
            }
        }
    }
}

impl Room {
    /// Takes the packet of whom alone is heard, if all others may hear it as it is. Gives its place.
    pub(super) fn relay(&mut self, now: Instant) -> Option<usize> {
        self.relay.hurry = self.relay.hurry.saturating_sub(1);
        let sole = self.sole();
        let relayed = sole.and_then(|place| self.relay_of(place, now));
        match relayed {
            Some(relayed) => {
                self.relay.of = sole;
                self.relay.came = relayed == Relayed::Packet;
                self.stats.relayed += 1;
                sole
            }
            None => {
                self.end_relay();
                None
            }
        }
    }

    /// Who alone is heard, and was for a while.
    fn sole(&mut self) -> Option<usize> {
        let (mut heard, mut sole) = (self.announcements.len() + self.departing.len(), None);
        for place in &self.sending {
            let participant = self.participants.get(*place);
            if let Some(participant) = participant
                && let Some(input) = &participant.input
                && input.sounds(participant.gains(self.muted, self.options.format))
            {
                heard += 1;
                sole = Some(*place);
            }
        }
        self.relay.count(heard, sole);
        let alone = self.relay.ticks > ALONE || self.relay.hurry > 0;
        sole.filter(|_| heard == 1 && alone)
    }

    fn relay_of(&mut self, place: usize, now: Instant) -> Option<Relayed> {
        let format = self.options.format;
        if format.channels != Channels::Mono || !self.listened.is_empty() {
            return None;
        }
        let most = self.mixes.relayable(place)?;
        let hurry = self.relay.hurry > 0;
        let participant = self.participants.get_mut(place)?;
        let wanted = participant.gains(self.muted, format);
        if !participant.is_relayable() || wanted.is_silent() {
            return None;
        }
        let input = participant.input.as_mut()?;
        let relayed = input.relay(now, wanted, (most, hurry), &mut self.relay.packet);
        (relayed != Relayed::Refused).then_some(relayed)
    }

    /// Ends it: the last packets are decoded, and become the history that encoders are made ready with.
    pub(super) fn end_relay(&mut self) {
        let Some(place) = self.relay.of.take() else {
            return;
        };
        self.relay.ended = true;
        self.relay.was_of = Some(place);
        let participant = self.participants.get_mut(place);
        if let Some(input) = participant.and_then(|participant| participant.input.as_mut()) {
            let (history, stats) = (&mut self.history, &mut self.stats);
            input.receiver.resume(|frame| {
                stats.decoded += 1;
                history.push(frame);
            });
        }
    }

    /// Joins what is mixed in this tick to the packets that were heard before it.
    pub(super) fn bridge(&mut self) {
        if std::mem::take(&mut self.relay.ended) {
            let rate = self.options.format.rate.hertz() as usize;
            let ahead =
                rate / LOOK_AHEAD + ENCODER_AHEAD.map(|part| rate / part).iter().sum::<usize>();
            // Nobody else was heard before: a newcomer is not to hear itself.
            let sound = match self.relay.was_of {
                None => Some(&*self.rendered),
                Some(place) => self
                    .participants
                    .get(place)
                    .and_then(|participant| participant.input.as_ref()?.contribution()),
            };
            self.history.bridge(sound.unwrap_or_default(), ahead);
        }
    }
}
