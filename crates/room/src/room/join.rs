//! Joining as a participant.

use std::sync::Arc;

use super::State;
use crate::roster::{
    MediaSettings, Participant, Party, Permissions, Profile, RecordSettings, TalkSettings,
};
use crate::{Connection, Notice, PersonId, Refusal};

/// Who joins as a participant.
#[derive(Debug, Clone)]
pub struct Join {
    /// Its id, which nobody else may have.
    pub id: PersonId,
    /// What it shows of itself.
    pub profile: Profile,
    /// What it may do.
    pub permissions: Permissions,
    /// When it counts as talking.
    pub talk: TalkSettings,
}

impl State {
    /// Adds a participant.
    pub fn join(&mut self, connection: Arc<dyn Connection>, join: Join) -> Result<(), Refusal> {
        // Whoever comes now reads of those in the answer.
        self.tell_news();
        let id = join.id;
        self.roster.check_free(&id)?;
        tracing::info!(room = %self.name, %id, connection = %connection.id(), "participant joined");
        let mut person = Participant::new(id.clone(), Party::Client(connection));
        person.profile = join.profile;
        person.permissions = join.permissions;
        person.settings = MediaSettings {
            bitrate: self.settings.bitrate,
            talk: join.talk,
            record: RecordSettings {
                on: self.settings.record,
                ..RecordSettings::default()
            },
        };
        self.roster.add(person);
        if self.settings.notify_joining {
            self.tell_others(&id, Notice::Joining(&id));
        }
        Ok(())
    }

    /// Takes somebody out again whose first [`State::configure`] was refused, as if they had never joined.
    pub fn undo_join(&mut self, id: &PersonId) {
        if self.remove(id).is_none() {
            return;
        }
        tracing::info!(room = %self.name, %id, "participant left");
        if self.settings.notify_joining {
            self.tell_all(Notice::JoinUndone(id));
        }
    }
}
