//! The joins of participants.

use std::sync::Arc;

use super::{Client, State};
use crate::roster::{
    MediaSettings, Participant, Party, Permissions, Profile, RecordSettings, TalkSettings,
};
use crate::{Notice, PersonId, Refusal};

/// A new participant.
#[derive(Debug, Clone)]
pub struct Join {
    /// Its id, which has to be free.
    pub id: PersonId,
    /// Its name and metadata.
    pub profile: Profile,
    /// Its permissions.
    pub permissions: Permissions,
    /// When it counts as talking.
    pub talk: TalkSettings,
}

impl State {
    /// Adds a participant.
    pub fn join(&mut self, client: Arc<dyn Client>, join: Join) -> Result<(), Refusal> {
        // The answer to the new participant lists these publishers.
        self.send_news();
        let id = join.id;
        self.roster.check_free(&id)?;
        self.claims.check_free(&id)?;
        tracing::info!(room = %self.name, %id, connection = %client.id(), "participant joined");
        let mut person = Participant::new(id.clone(), Party::Client(client.clone()));
        person.profile = join.profile;
        person.permissions = join.permissions;
        person.settings = MediaSettings {
            bitrate: self.settings.bitrate,
            talk: join.talk,
            record: RecordSettings {
                on: self.settings.recording.on,
                ..RecordSettings::default()
            },
        };
        self.roster.add(person);
        self.clients.add_participant(id.clone(), client);
        self.measure_speech();
        match self.settings.notify_joining {
            true => self.send_to_others(&id, Notice::Joining(&id)),
            false => self.send_join(&id),
        }
        Ok(())
    }

    /// Removes a participant whose first [`State::configure`] was refused, as if it had not joined.
    pub fn undo_join(&mut self, id: &PersonId) {
        if self.remove(id).is_none() {
            return;
        }
        tracing::info!(room = %self.name, %id, "participant left");
        match self.settings.notify_joining {
            true => self.send_to_all(Notice::JoinUndone(id)),
            false => self.send_undone(id),
        }
    }
}
