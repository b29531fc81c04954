//! Audio rooms, their participants, and what each says.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use portunus_dsp::AudioCodec;
use portunus_sdp::CodecName;
use serde_json::Value;

use crate::sound_check::{Person, Roster};
use crate::source::spread;
use crate::speech::{Script, Talker};
use crate::viewer::{Hearing, PeerId, Speaking, Weather};

/// The talkers of a room with a voice of their own. Further talkers take turns with as many other
/// voices.
const VOICES: usize = 16;

/// The participants of the first room who do not talk and always listen.
const LISTENERS: usize = 4;

/// The packets by which each participant's speech starts later than the previous one's.
pub(in crate::scenario) const STAGGER: usize = 37;

/// What participants send who do not talk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Silence {
    /// What an open microphone in a silent room gives
    #[default]
    Open,
    /// The same with DTX: now and then a packet
    Dtx,
    /// Digital silence: they are muted, with the server too
    Muted,
    /// Nothing: they offer to receive only
    Listening,
}

/// The layout of rooms.
#[derive(Debug, Clone)]
pub(in crate::scenario) struct Layout {
    /// Participants of each room.
    pub(in crate::scenario) size: usize,
    /// How many of them talk: the first to come.
    pub(in crate::scenario) talkers: usize,
    pub(in crate::scenario) silence: Silence,
    pub(in crate::scenario) codec: AudioCodec,
    /// The share of participants who decode what they receive.
    pub(in crate::scenario) listening: f64,
    /// The loss and delay of the talkers' packets.
    pub(in crate::scenario) weather: Option<Weather>,
}

/// Rooms with places for participants.
#[derive(Debug)]
pub(in crate::scenario) struct Hall {
    rooms: Vec<Value>,
    pub(in crate::scenario) layout: Layout,
    scripts: HashMap<Talker, Arc<Script>>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Places that were left, and the first one never taken.
    left: BTreeSet<usize>,
    next: usize,
    roster: Roster,
}

/// A participant's place. It is free again when this is dropped.
#[derive(Debug)]
pub(in crate::scenario) struct Place {
    hall: Arc<Hall>,
    number: usize,
    peer: Option<PeerId>,
}

impl Layout {
    /// Returns the talkers of a room, and what the silent participants send.
    pub(in crate::scenario) fn talkers(&self) -> HashSet<Talker> {
        let talking = (0..self.talkers.min(self.size)).map(voice);
        let silent = (self.talkers < self.size).then(|| self.silent()).flatten();
        talking.chain(silent).collect()
    }

    fn silent(&self) -> Option<Talker> {
        match self.silence {
            Silence::Open | Silence::Dtx => Some(Talker::Open),
            Silence::Muted => Some(Talker::Off),
            Silence::Listening => None,
        }
    }
}

/// Returns the voice of the `n`-th talker.
fn voice(n: usize) -> Talker {
    Talker::Voice(if n < VOICES { n } else { VOICES + n % VOICES })
}

impl Hall {
    /// Creates a hall with these rooms. `scripts` contains those of [`Layout::talkers`].
    pub(in crate::scenario) fn new(
        rooms: Vec<Value>,
        layout: Layout,
        scripts: HashMap<Talker, Arc<Script>>,
    ) -> Self {
        Self {
            rooms,
            layout,
            scripts,
            state: Mutex::default(),
        }
    }

    /// Returns the codec's names in SDP and in the plugin.
    pub(in crate::scenario) fn codec(&self) -> (CodecName, &'static str) {
        match self.layout.codec {
            AudioCodec::Opus => (CodecName::Opus, "opus"),
            AudioCodec::Pcma => (CodecName::Pcma, "pcma"),
            AudioCodec::Pcmu => (CodecName::Pcmu, "pcmu"),
            AudioCodec::G722 => (CodecName::G722, "g722"),
        }
    }

    /// Returns the room of each participant.
    pub(in crate::scenario) fn roster(&self) -> Roster {
        self.state().roster.clone()
    }

    /// Takes the first free place.
    pub(in crate::scenario) fn take_place(self: &Arc<Self>) -> Place {
        let mut state = self.state();
        let number = state.left.pop_first().unwrap_or_else(|| {
            state.next += 1;
            state.next - 1
        });
        Place {
            hall: Arc::clone(self),
            number,
            peer: None,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// Returns the place's room.
    pub(in crate::scenario) fn room(&self) -> Option<&Value> {
        self.hall.rooms.get(self.room_number())
    }

    /// Assigns the place to this participant.
    pub(in crate::scenario) fn seat(&mut self, peer: PeerId) {
        self.peer = Some(peer);
        let person = Person {
            room: self.room_number() as u32,
            talks: self.talks(),
        };
        self.hall.state().roster.insert(peer, person);
    }

    /// Returns how received packets are processed. The first talker and the first silent
    /// participants decode them, and some others.
    pub(in crate::scenario) fn hearing(&self) -> Hearing {
        let Layout {
            size,
            talkers,
            listening,
            codec,
            ..
        } = self.hall.layout;
        let first_silent = talkers.min(size.saturating_sub(1));
        let silent = first_silent..(first_silent + LISTENERS).min(size);
        let keeps = self.number == 0
            || silent.contains(&self.number)
            || spread(self.number as u64) < listening;
        Hearing {
            clock_rate: codec.clock_rate(),
            keeps: keeps && listening > 0.0,
        }
    }

    /// Returns whether the place is muted.
    pub(in crate::scenario) fn is_muted(&self) -> bool {
        self.talks().is_none() && self.hall.layout.silence == Silence::Muted
    }

    /// Returns whether the place only receives.
    pub(in crate::scenario) fn listens_only(&self) -> bool {
        self.talks().is_none() && self.hall.layout.silent().is_none()
    }

    /// Returns the speech of the place.
    pub(in crate::scenario) fn speaking(&self) -> Option<Speaking> {
        let layout = &self.hall.layout;
        let talker = self.talks().map(voice).or_else(|| layout.silent())?;
        let script = Arc::clone(self.hall.scripts.get(&talker)?);
        let weather = layout.weather.filter(|_| self.talks().is_some());
        Some(Speaking {
            // Speech that is said once has a start.
            from: if weather.is_some() {
                0
            } else {
                self.number * STAGGER
            },
            script,
            weather: weather.map(|weather| Weather {
                seed: weather.seed.wrapping_add(self.room_number() as u64),
                ..weather
            }),
            phase: spread(self.number as u64),
        })
    }

    fn room_number(&self) -> usize {
        self.number / self.hall.layout.size.max(1)
    }

    fn talks(&self) -> Option<usize> {
        let n = self.number % self.hall.layout.size.max(1);
        (n < self.hall.layout.talkers).then_some(n)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut state = self.hall.state();
        state.left.insert(self.number);
        if let Some(peer) = self.peer {
            state.roster.remove(&peer);
        }
    }
}
