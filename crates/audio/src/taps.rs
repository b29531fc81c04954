//! The participants whose packets a thread collects.

use portunus_dsp::{Content, ParticipantId};
use portunus_media::RouteId;
use portunus_sdp::negotiated::Codec;
use slab::Slab;

/// A participant whose source is collected.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tap {
    /// The index of its room.
    pub(crate) room: usize,
    pub(crate) participant: ParticipantId,
    /// Its codec. It may send RED, too.
    pub(crate) codec: Codec,
}

/// The taps of a thread, by key. Keys are not reused soon, so packets on the way to a tap that has
/// ended find none.
#[derive(Debug, Default)]
pub(crate) struct Taps {
    slots: Slab<(u32, Tap)>,
    generation: u32,
}

impl Tap {
    /// Returns the content of a packet, or `None` if it is of another codec.
    pub(crate) fn content(&self, of: Codec) -> Option<Content> {
        if of == Codec::Red {
            return Some(Content::Red);
        }
        (of == self.codec).then_some(Content::Codec)
    }
}

impl Taps {
    /// Returns the key for the packets of a participant.
    pub(crate) fn add(&mut self, tap: Tap) -> u64 {
        self.generation = self.generation.wrapping_add(1);
        let slot = self.slots.insert((self.generation, tap));
        u64::from(self.generation) << 32 | slot as u64
    }

    pub(crate) fn get(&self, key: u64) -> Option<Tap> {
        let (generation, tap) = self.slots.get(slot(key))?;
        (u64::from(*generation) == key >> 32).then_some(*tap)
    }

    pub(crate) fn set_codec(&mut self, key: u64, codec: Codec) {
        if self.get(key).is_some()
            && let Some((_, tap)) = self.slots.get_mut(slot(key))
        {
            tap.codec = codec;
        }
    }

    pub(crate) fn remove(&mut self, key: u64) {
        if self.get(key).is_some() {
            self.slots.try_remove(slot(key));
        }
    }
}

const fn slot(key: u64) -> usize {
    (key & 0xffff_ffff) as usize
}

/// A participant's reference to its tap.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tapped {
    pub(crate) route: RouteId,
    pub(crate) key: u64,
}
