//! Relaying: if only one participant is heard, its packets are sent unchanged, without decoding and
//! encoding.

use std::time::Instant;

use super::Room;
use crate::mix::LOOK_AHEAD;
use crate::{Channels, Relayed};

/// The ticks in which nobody else was heard before relaying starts: half a second.
const ALONE: u32 = 25;

/// The ticks after a skipped one in which relaying starts without that time: the audio has a gap
/// anyway.
const HURRY: u32 = 25;

/// The look-ahead of libopus in fractions of a second: 2.5 ms and 4 ms. With that of the limiter it
/// is the delay of a mix.
const ENCODER_AHEAD: [usize; 2] = [400, 250];

/// The state of relaying.
#[derive(Debug, Default)]
pub(super) struct Relay {
    /// The index of the participant that is relayed in this tick.
    pub(super) of: Option<usize>,
    /// Whether a packet came.
    came: bool,
    /// The packet.
    pub(super) packet: Vec<u8>,
    /// Whether relaying has ended before this tick, so that the mix continues from the history; and
    /// the index of the participant, if it is still there.
    ended: bool,
    pub(super) was_of: Option<usize>,
    /// The index of the only participant heard last, the number of ticks, and how many of them had
    /// no packet.
    sole: Option<usize>,
    ticks: u32,
    silent: u32,
    /// The ticks for which relaying may start at any packet.
    hurry: u32,
}

impl Relay {
    /// Notes that frames were skipped.
    pub(super) fn hurry(&mut self) {
        self.hurry = HURRY;
    }

    /// The packet to forward unchanged in this tick, or `None` to encode the mix.
    pub(super) fn relayed(&self) -> Option<Relayed> {
        self.of.map(|_| match self.came {
            true => Relayed::Packet,
            false => Relayed::Gap,
        })
    }

    /// Notes the number of participants heard in this tick, and the index of one of them.
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
    /// Takes the packet of the only participant heard, if all others may hear it unchanged. Returns
    /// its index.
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

    /// Returns the only participant heard, if that has been so for a while.
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
        let relayed = input.relay(now, wanted, most, hurry, &mut self.relay.packet);
        (relayed != Relayed::Refused).then_some(relayed)
    }

    /// Ends relaying: decodes the last packets into the history, with which encoders are prepared.
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

    /// Joins the mix of this tick to the relayed packets before it.
    pub(super) fn bridge(&mut self) {
        if std::mem::take(&mut self.relay.ended) {
            let rate = self.options.format.rate.hertz() as usize;
            let ahead =
                rate / LOOK_AHEAD + ENCODER_AHEAD.map(|part| rate / part).iter().sum::<usize>();
            // Nobody else was heard before: a new listener must not hear itself.
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
