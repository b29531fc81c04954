//! The mix of a room: who is in it, and whether the room is muted.

use std::sync::Arc;

use portunus_audio::{AnnouncementId, AudioRoom, MixSource, Mixture, ParticipantStats};
use portunus_dsp::{Encoding, ParticipantId};

use super::participant::Participant;
use crate::options::RoomOptions;

/// The mix of a room.
#[derive(Debug)]
pub(crate) struct Mix {
    room: Arc<AudioRoom>,
    /// Only administrators are heard.
    muted: bool,
}

impl Mix {
    pub(super) fn new(room: AudioRoom) -> Self {
        Mix {
            room: Arc::new(room),
            muted: false,
        }
    }

    /// The mixer's room, for requests that wait for it without the lock.
    pub(crate) fn room(&self) -> Arc<AudioRoom> {
        Arc::clone(&self.room)
    }

    /// Whether only administrators are heard.
    pub(crate) const fn is_muted(&self) -> bool {
        self.muted
    }

    /// Mutes the room or unmutes it. Returns false if nothing changes.
    pub(super) fn set_muted(&mut self, muted: bool) -> bool {
        if self.muted == muted {
            return false;
        }
        self.muted = muted;
        self.room.set_muted(muted);
        true
    }

    /// Adds a participant that is not heard and hears nothing yet.
    pub(super) fn add(&self, person: &Participant, options: &RoomOptions) {
        let mixed = person.mixed(options);
        self.room.join(person.number, mixed, None, None);
    }

    /// Connects a participant whose media is up. It replaces what was connected before.
    pub(super) fn connect(&self, person: &Participant, options: &RoomOptions) {
        let (source, out) = person.ends();
        self.room
            .join(person.number, person.mixed(options), source, out);
        self.room.connect(person.number, true);
    }

    /// Applies the settings of a participant.
    pub(super) fn update(&self, person: &Participant, options: &RoomOptions) {
        self.room.set(person.number, person.mixed(options));
    }

    pub(super) fn remove(&self, number: ParticipantId) {
        self.room.leave(number);
    }

    /// Requests the mixer's statistics of a participant.
    pub(super) fn stats(
        &self,
        number: ParticipantId,
    ) -> impl Future<Output = Option<ParticipantStats>> + Send + use<> {
        self.room.participant(number)
    }

    /// Returns a mix for forwarders and listeners.
    pub(super) fn source(
        &self,
        mixture: Mixture,
        encoding: Encoding,
        always_on: bool,
    ) -> MixSource {
        self.room.mix(mixture, encoding, always_on)
    }

    pub(super) fn stop_announcement(&self, number: AnnouncementId) {
        self.room.stop_announcement(number);
    }

    pub(super) fn stop_recording(&self) {
        self.room.stop_recording();
    }
}
