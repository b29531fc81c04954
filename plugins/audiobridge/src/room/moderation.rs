//! Muting, suspending and denoising participants, as a request names them.

use portunus_core::{Fields, Handle, HandleId};
use portunus_resources::Id;

use super::{Audience, RecordWish, RoomState};
use crate::refusal::Refusal;

impl RoomState {
    /// Mutes somebody or lets it be heard again; false if it is so already.
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
        self.remix(id);
        if let Some(person) = self.roster.get(id) {
            let event = self.event().with("participants", self.alone(person));
            self.tell(Audience::Listening, event);
        }
        self.notify_about(client, if muted { "mute" } else { "unmute" }, id);
        Ok(true)
    }

    /// Mutes the room or lets it be heard again; false if it is so already.
    pub(crate) fn mute_room(&mut self, muted: bool, client: Option<&Handle>) -> bool {
        if self.muted == muted {
            return false;
        }
        self.muted = muted;
        self.sound.set_muted(muted);
        let ids: Vec<Id> = self.roster.iter().map(|person| person.id.clone()).collect();
        for id in &ids {
            self.gate_recording(id);
        }
        self.tell(Audience::Listening, self.event().with("muted", muted));
        self.notify_room(client, if muted { "mute_room" } else { "unmute_room" });
        true
    }

    /// Takes noise out of what somebody sends, or no more.
    pub(crate) fn denoise(&mut self, id: &Id, denoise: bool) -> Result<(), Refusal> {
        self.named(id)?;
        if let Some(person) = self.roster.get_mut(id) {
            person.settings.denoise = denoise;
            self.remix(id);
        }
        Ok(())
    }

    /// Checks that a request may suspend or resume somebody: whoever it is itself needs no secret.
    pub(crate) fn check_suspension(
        &self,
        id: &Id,
        fields: Fields<'_>,
        client: Option<HandleId>,
    ) -> Result<(), Refusal> {
        let person = self.named(id)?;
        match client.is_some_and(|client| person.is(client)) {
            true => Ok(()),
            false => Ok(self.options.access.check_secret(fields)?),
        }
    }

    /// Suspends somebody, unless it is already: `paused`: it is told less, `stops`: it is recorded no longer.
    pub(crate) fn suspend(
        &mut self,
        id: &Id,
        (paused, stops): (bool, bool),
        client: Option<&Handle>,
    ) {
        let person = self.roster.get_mut(id);
        let Some(person) = person.filter(|person| !person.settings.suspended) else {
            return;
        };
        person.settings.suspended = true;
        person.settings.pause_events = paused;
        self.remix(id);
        if stops {
            self.stop_recording(id);
        }
        let event = self.event().with("suspended", id.to_json());
        self.tell(Audience::ListeningAnd(id), event);
        self.notify_about(client, "suspended", id);
    }

    /// Lets somebody take part again, if it was suspended; it is recorded from then on if there is a `wish`.
    pub(crate) fn resume(
        &mut self,
        id: &Id,
        wish: Option<RecordWish>,
        client: Option<&Handle>,
    ) -> Result<(), Refusal> {
        if let Some(wish) = &wish {
            self.check_recording(wish.base.as_deref())?;
        }
        let person = self.roster.get_mut(id);
        let Some(person) = person.filter(|person| person.settings.suspended) else {
            return Ok(());
        };
        let was_paused = person.settings.is_paused();
        person.settings.suspended = false;
        person.settings.pause_events = false;
        self.remix(id);
        if wish.is_some() {
            self.start_recording(id, wish);
        }
        let event = self.event().with("resumed", id.to_json());
        match was_paused {
            // It has missed what happened meanwhile.
            true => {
                let recap = event.clone().with("participants", self.others(Some(id)));
                if let Some(person) = self.roster.get(id) {
                    person.push(recap);
                }
                self.tell(Audience::Others(id), event);
            }
            false => self.tell(Audience::Listening, event),
        }
        self.notify_about(client, "resumed", id);
        Ok(())
    }
}
