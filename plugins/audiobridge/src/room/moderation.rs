//! Muting, suspending and denoising participants.

use portunus_core::{Fields, Handle, HandleId};
use portunus_resources::Id;

use super::{Audience, RecordWish, RoomState};
use crate::refusal::Refusal;

/// The effects of a suspension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Suspension {
    /// The participant gets fewer events.
    pub(crate) pauses_events: bool,
    /// Its recording ends.
    pub(crate) stops_recording: bool,
}

impl RoomState {
    /// Mutes or unmutes a participant. Returns false if nothing changes.
    pub(crate) fn mute(
        &mut self,
        id: &Id,
        muted: bool,
        client: Option<&Handle>,
    ) -> Result<bool, Refusal> {
        self.named(id)?;
        let Some(person) = self.roster.get_mut(id) else {
            return Ok(false);
        };
        if person.settings.muted == muted {
            return Ok(false);
        }
        person.settings.muted = muted;
        person.who.muted(muted);
        self.update(id);
        if let Some(person) = self.roster.get(id) {
            let event = self.event().with("participants", self.list_of_one(person));
            self.send(Audience::Listening, event);
        }
        self.notify_about(client, if muted { "mute" } else { "unmute" }, id);
        Ok(true)
    }

    /// Mutes or unmutes the room. Returns false if nothing changes.
    pub(crate) fn mute_room(&mut self, muted: bool, client: Option<&Handle>) -> bool {
        if !self.mix.set_muted(muted) {
            return false;
        }
        for person in self.roster.iter_mut() {
            person.gate_recording(muted);
        }
        self.send(Audience::Listening, self.event().with("muted", muted));
        self.notify_room(client, if muted { "mute_room" } else { "unmute_room" });
        true
    }

    /// Turns noise reduction for a participant on or off.
    pub(crate) fn denoise(&mut self, id: &Id, denoise: bool) -> Result<(), Refusal> {
        self.named(id)?;
        if let Some(person) = self.roster.get_mut(id) {
            person.settings.denoise = denoise;
            self.update(id);
        }
        Ok(())
    }

    /// Checks that a request may suspend or resume a participant. The participant itself needs no
    /// secret.
    pub(crate) fn check_suspension(
        &self,
        id: &Id,
        fields: Fields<'_>,
        client: Option<HandleId>,
    ) -> Result<(), Refusal> {
        let person = self.named(id)?;
        match client.is_some_and(|client| person.is(client)) {
            true => Ok(()),
            false => Ok(self.profile.options().access.check_secret(fields)?),
        }
    }

    /// Suspends a participant, unless it is suspended already.
    pub(crate) fn suspend(&mut self, id: &Id, suspension: Suspension, client: Option<&Handle>) {
        let person = self.roster.get_mut(id);
        let Some(person) = person.filter(|person| !person.settings.suspended) else {
            return;
        };
        person.settings.suspended = true;
        person.settings.pause_events = suspension.pauses_events;
        self.update(id);
        if suspension.stops_recording {
            self.stop_recording(id);
        }
        let event = self.event().with("suspended", id.to_json());
        self.send(Audience::ListeningAnd(id), event);
        self.notify_about(client, "suspended", id);
    }

    /// Resumes a suspended participant. With a `wish`, it is recorded from then on.
    pub(crate) fn resume(
        &mut self,
        id: &Id,
        wish: Option<RecordWish>,
        client: Option<&Handle>,
    ) -> Result<(), Refusal> {
        if let Some(wish) = &wish {
            self.people_recorder
                .check(&self.profile, wish.base.as_deref())?;
        }
        let person = self.roster.get_mut(id);
        let Some(person) = person.filter(|person| person.settings.suspended) else {
            return Ok(());
        };
        let was_paused = person.settings.is_paused();
        person.settings.suspended = false;
        person.settings.pause_events = false;
        self.update(id);
        if wish.is_some() {
            self.start_recording(id, wish);
        }
        let event = self.event().with("resumed", id.to_json());
        match was_paused {
            // It has missed the events meanwhile.
            true => {
                let recap = event.clone().with("participants", self.others(Some(id)));
                if let Some(person) = self.roster.get(id) {
                    person.push(recap);
                }
                self.send(Audience::Others(id), event);
            }
            false => self.send(Audience::Listening, event),
        }
        self.notify_about(client, "resumed", id);
        Ok(())
    }
}
