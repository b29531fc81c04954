//! Audio rooms, who is in them, and what each says.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use portunus_dsp::AudioCodec;
use portunus_sdp::CodecName;
use serde_json::Value;

use crate::listening::{Person, Roster};
use crate::source::spread;
use crate::speech::{Script, Talker};
use crate::viewer::{Hearing, PeerId, Speaking, Weather};

/// Of those who talk in a room so many have a voice of their own; those who follow take turns at as many others.
const VOICES: usize = 16;

/// Of the first room so many of those who do not talk always listen.
const LISTENERS: usize = 4;

/// From one participant to the next, what is said begins so many packets later.
pub(in crate::scenario) const STAGGER: usize = 37;

/// What those send who do not talk.
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

/// What rooms are like.
#[derive(Debug, Clone)]
pub(in crate::scenario) struct Layout {
    /// Participants of each.
    pub(in crate::scenario) size: usize,
    /// How many of them talk: those who come first.
    pub(in crate::scenario) talkers: usize,
    pub(in crate::scenario) silence: Silence,
    pub(in crate::scenario) codec: AudioCodec,
    /// The share of participants who listen to what they get.
    pub(in crate::scenario) listening: f64,
    /// What happens to the packets of those who talk.
    pub(in crate::scenario) weather: Option<Weather>,
}

/// Rooms with places that participants take.
#[derive(Debug)]
pub(in crate::scenario) struct Hall {
    rooms: Vec<Value>,
    pub(in crate::scenario) layout: Layout,
    scripts: HashMap<Talker, Arc<Script>>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Places that were left, and the first that nobody had yet.
    left: BTreeSet<usize>,
    next: usize,
    roster: Roster,
}

/// A participant's place; it is free again when this is dropped.
#[derive(Debug)]
pub(in crate::scenario) struct Place {
    hall: Arc<Hall>,
    number: usize,
    peer: Option<PeerId>,
}

impl Layout {
    /// Who says something in a room, and what those who do not talk send.
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

/// The voice of the `n`-th who talks.
fn voice(n: usize) -> Talker {
    Talker::Voice(if n < VOICES { n } else { VOICES + n % VOICES })
}

impl Hall {
    /// With these rooms; `scripts` has what [`Layout::talkers`] asks for.
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

    /// Its codec: as SDP knows it, and the plugin.
    pub(in crate::scenario) fn codec(&self) -> (CodecName, &'static str) {
        match self.layout.codec {
            AudioCodec::Opus => (CodecName::Opus, "opus"),
            AudioCodec::Pcma => (CodecName::Pcma, "pcma"),
            AudioCodec::Pcmu => (CodecName::Pcmu, "pcmu"),
            AudioCodec::G722 => (CodecName::G722, "g722"),
        }
    }

    /// Who is in which room.
    pub(in crate::scenario) fn roster(&self) -> Roster {
        self.state().roster.clone()
    }

    /// The first place that is free.
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
    /// The room that it is in.
    pub(in crate::scenario) fn room(&self) -> Option<&Value> {
        self.hall.rooms.get(self.room_number())
    }

    /// From now on it is this participant's.
    pub(in crate::scenario) fn seat(&mut self, peer: PeerId) {
        self.peer = Some(peer);
        let person = Person {
            room: self.room_number() as u32,
            talks: self.talks(),
        };
        self.hall.state().roster.insert(peer, person);
    }

    /// How what is heard there is taken. The first who talks and the first ones who do not listen to what they get, and
    /// some others.
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

    /// It is muted.
    pub(in crate::scenario) fn is_muted(&self) -> bool {
        self.talks().is_none() && self.hall.layout.silence == Silence::Muted
    }

    /// It only receives.
    pub(in crate::scenario) fn listens_only(&self) -> bool {
        self.talks().is_none() && self.hall.layout.silent().is_none()
    }

    /// What is said there.
    pub(in crate::scenario) fn speaking(&self) -> Option<Speaking> {
        let layout = &self.hall.layout;
        let talker = self.talks().map(voice).or_else(|| layout.silent())?;
        let script = Arc::clone(self.hall.scripts.get(&talker)?);
        let weather = layout.weather.filter(|_| self.talks().is_some());
        Some(Speaking {
            // What is said once has a beginning.
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
