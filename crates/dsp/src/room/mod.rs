//! A room: it mixes the packets of its participants.

mod announcement;
mod encodings;
mod error;
mod history;
mod job;
mod mixes;
mod output;
mod participant;
mod relay;
mod sounds;
mod stats;
mod tick;

use std::collections::HashMap;

use slab::Slab;

pub use announcement::{AnnouncementId, AnnouncementSource, NextPacket};
pub use error::RoomError;
pub use job::EncodeJob;
pub use output::{AnnouncementState, MixId, Mixture, Output};
pub use stats::{ParticipantState, RoomStats};

use crate::mix::{Candidate, Limiter};
use crate::{Encoding, IncomingPacket, ParticipantId, ParticipantOptions, RoomOptions};
use announcement::Announcement;
use history::History;
use mixes::Mixes;
use participant::{Input, Participant};
use relay::Relay;
use sounds::Sum;

/// Participants that hear each other.
///
/// The caller pushes packets as they come, and calls [`tick`](Room::tick) every 20 ms. Listeners
/// cost next to nothing: only participants that are heard are decoded, and a mix is encoded once
/// for all its listeners. A participant that is heard has a mix and an encoder of its own, without
/// its own audio. If only one is heard, its packets are relayed unchanged.
///
/// A tick can be split, so that other threads help to encode: [`mix`](Room::mix),
/// [`take_jobs`](Room::take_jobs), [`EncodeJob::run`], [`put_back`](Room::put_back),
/// [`emit`](Room::emit).
#[derive(Debug)]
pub struct Room {
    options: RoomOptions,
    muted: bool,
    tick: u64,
    /// The skipped frames, which only timestamps count.
    left_out: u64,
    participants: Slab<Participant>,
    places: HashMap<ParticipantId, usize>,
    /// The rest of the audio of participants that have left.
    departing: Vec<Departing>,
    announcements: Vec<Announcement>,
    mixes: Mixes,
    everyone: Sum,
    groups: Vec<Sum>,
    history: History,
    /// The indices of participants with an input.
    sending: Vec<usize>,
    candidates: Vec<Candidate>,
    /// The number of senders that would have to be decoded to know their levels.
    unknown: usize,
    /// The audio that the caller wants.
    listened: Vec<Listened>,
    /// The participants that hear another mix from this tick on.
    routed: Vec<(ParticipantId, Option<usize>)>,
    rendered: Vec<f32>,
    relay: Relay,
    stats: RoomStats,
}

/// The audio of a participant that has left, until it has faded out.
#[derive(Debug)]
struct Departing {
    group: Option<usize>,
    denoise: bool,
    input: Box<Input>,
}

/// Audio that the caller wants.
#[derive(Debug)]
struct Listened {
    group: Option<usize>,
    limiter: Limiter,
    sound: Vec<f32>,
}

impl Room {
    /// Returns an empty room.
    pub fn new(options: RoomOptions) -> Self {
        let frame = options.format.frame_len();
        Room {
            muted: false,
            tick: 0,
            left_out: 0,
            participants: Slab::new(),
            places: HashMap::new(),
            departing: Vec::new(),
            announcements: Vec::new(),
            mixes: Mixes::new(options.format),
            everyone: Sum::new(frame),
            groups: vec![Sum::new(frame); options.groups],
            history: History::new(frame),
            sending: Vec::new(),
            candidates: Vec::new(),
            unknown: 0,
            listened: Vec::new(),
            routed: Vec::new(),
            rendered: Vec::with_capacity(frame),
            relay: Relay::default(),
            stats: RoomStats::default(),
            options,
        }
    }

    /// Skips so many frames of 20 ms, for which there was no time. Timestamps continue as if they
    /// had been mixed, so that listeners treat them as lost, and do not delay everything after
    /// them.
    pub fn skip(&mut self, frames: u64) {
        self.left_out = self.left_out.wrapping_add(frames);
        self.relay.hurry();
    }

    /// Adds a participant. It is not heard and does not hear until it is
    /// [connected](Room::connect).
    pub fn join(
        &mut self,
        id: ParticipantId,
        options: ParticipantOptions,
    ) -> Result<(), RoomError> {
        self.check_group(options.group)?;
        if self.places.contains_key(&id) {
            return Err(RoomError::ParticipantExists(id));
        }
        let place = self.participants.insert(Participant::new(id, options));
        self.places.insert(id, place);
        Ok(())
    }

    /// Changes the options of a participant from the next tick on.
    pub fn set(&mut self, id: ParticipantId, options: ParticipantOptions) -> Result<(), RoomError> {
        self.check_group(options.group)?;
        if self.places.get(&id).copied() == self.relay.of {
            self.end_relay();
        }
        let participant = self
            .places
            .get(&id)
            .and_then(|place| self.participants.get_mut(*place))
            .ok_or(RoomError::NoSuchParticipant(id))?;
        if options.codec != participant.options.codec {
            participant.input = None;
        }
        if options.talk != participant.options.talk {
            participant.talk.restart();
        }
        if let Some(own) = participant.own
            && options.encoding != participant.options.encoding
        {
            if options.encoding.codec == participant.options.encoding.codec {
                self.mixes.configure(own, options.encoding);
            } else {
                self.mixes.end(own);
                participant.own = None;
                participant.hears = participant.hears.filter(|hears| *hears != own);
            }
        }
        participant.options = options;
        participant.unsettled = true;
        Ok(())
    }

    /// Sets whether packets of a participant can come and go. Unknown participants are ignored.
    pub fn connect(&mut self, id: ParticipantId, connected: bool) {
        if let Some(participant) = self.participant_mut(id)
            && participant.connected != connected
        {
            participant.connected = connected;
            participant.unsettled = true;
        }
    }

    /// Sets whether a participant's mix has a receiver, which is the default. Without one nothing
    /// is encoded for it. Unknown participants are ignored.
    pub fn set_hearing(&mut self, id: ParticipantId, hearing: bool) {
        if let Some(participant) = self.participant_mut(id) {
            participant.unsettled |=
                std::mem::replace(&mut participant.hearing, hearing) != hearing;
        }
    }

    /// Removes a participant. Its audio fades out, and nothing more is reported of it.
    pub fn leave(&mut self, id: ParticipantId) {
        let Some(place) = self.places.remove(&id) else {
            return;
        };
        if self.relay.of == Some(place) {
            self.end_relay();
            self.relay.was_of = None;
        }
        let Some(participant) = self.participants.try_remove(place) else {
            return;
        };
        self.mixes.listen(participant.hears, None);
        if let Some(own) = participant.own {
            self.mixes.end(own);
        }
        if let Some(input) = participant.input
            && input.fades()
        {
            self.departing.push(Departing {
                group: participant.options.group,
                denoise: participant.options.denoise,
                input,
            });
        }
    }

    /// Mutes or unmutes the room. Immune participants are always heard.
    pub fn set_muted(&mut self, muted: bool) {
        self.muted = muted;
    }

    /// Takes a packet of a participant. Packets of a participant that may not be heard are dropped.
    /// For [`TalkOptions`](crate::TalkOptions) they count as silence.
    pub fn push(&mut self, id: ParticipantId, packet: &IncomingPacket<'_>) {
        let (muted, format, tick) = (self.muted, self.options.format, self.tick);
        if let Some(participant) = self.participant_mut(id) {
            participant.push(packet, muted, format, tick);
        }
    }

    /// Subscribes to a mix, for forwarders and listeners that are no participants. Packets come
    /// every 20 ms, even during silence, while there are participants or announcements; with
    /// `always_on`, all the time.
    ///
    /// Each subscription has to be [ended](Room::unsubscribe). Participants with the same mix have
    /// the same [`MixId`]. Unless [`Output::opened`] has reported the mix already, the next tick
    /// does.
    pub fn subscribe(
        &mut self,
        mixture: Mixture,
        encoding: Encoding,
        always_on: bool,
    ) -> Result<MixId, RoomError> {
        if let Mixture::Group(group) = mixture {
            self.check_group(Some(group))?;
        }
        Ok(self
            .mixes
            .subscribe(mixture, encoding, always_on, self.tick))
    }

    /// Ends a subscription. `always_on` must be as in the subscription.
    pub fn unsubscribe(&mut self, mix: MixId, always_on: bool) {
        self.mixes.unsubscribe(mix, always_on);
    }

    /// Starts or stops the output of audio, of the room (`None`) or of a group. [`Output::sound`]
    /// gets it in each tick with participants.
    pub fn listen(&mut self, group: Option<usize>, listen: bool) -> Result<(), RoomError> {
        self.check_group(group)?;
        self.listened.retain(|listened| listened.group != group);
        if listen {
            self.listened.push(Listened {
                group,
                limiter: Limiter::new(self.options.format),
                sound: Vec::with_capacity(self.options.format.frame_len()),
            });
        }
        Ok(())
    }

    /// Starts an announcement. All participants hear it, but only the mix of its own group contains
    /// it.
    pub fn announce(
        &mut self,
        id: AnnouncementId,
        group: Option<usize>,
        source: Box<dyn AnnouncementSource>,
    ) -> Result<(), RoomError> {
        self.check_group(group)?;
        if self
            .announcements
            .iter()
            .any(|announcement| announcement.id == id)
        {
            return Err(RoomError::AnnouncementExists(id));
        }
        let announcement = Announcement::new(id, group, source, self.options.format)?;
        self.announcements.push(announcement);
        Ok(())
    }

    /// Stops an announcement. The next tick fades it out, and the one after it reports the end.
    /// Unknown ones are ignored.
    pub fn stop_announcement(&mut self, id: AnnouncementId) {
        for announcement in &mut self.announcements {
            if announcement.id == id {
                announcement.stop();
            }
        }
    }

    /// Returns the state of a participant.
    pub fn participant(&self, id: ParticipantId) -> Option<ParticipantState> {
        let participant = self.participants.get(*self.places.get(&id)?)?;
        let input = participant.input.as_ref();
        Some(ParticipantState {
            level: participant.level,
            talking: participant.talk.is_talking(),
            heard: input.is_some_and(|input| input.contribution().is_some() || input.is_relayed()),
            receiver: input.map(|input| input.receiver.stats()),
        })
    }

    /// Returns the options of the room.
    pub fn options(&self) -> &RoomOptions {
        &self.options
    }

    /// Returns the counters of the room.
    pub fn stats(&self) -> RoomStats {
        self.stats
    }

    /// Whether there are participants.
    pub fn has_participants(&self) -> bool {
        !self.participants.is_empty()
    }

    /// Whether there are no participants, no announcements and no subscriptions that need ticks.
    pub fn is_idle(&self) -> bool {
        self.participants.is_empty()
            && self.announcements.is_empty()
            && self.departing.is_empty()
            && !self.mixes.are_always_on()
    }

    fn participant_mut(&mut self, id: ParticipantId) -> Option<&mut Participant> {
        self.participants.get_mut(*self.places.get(&id)?)
    }

    fn check_group(&self, group: Option<usize>) -> Result<(), RoomError> {
        match group {
            Some(group) if group >= self.options.groups => Err(RoomError::NoSuchGroup(group)),
            Some(_) | None => Ok(()),
        }
    }
}
