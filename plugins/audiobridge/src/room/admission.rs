//! Entering a room, by `join` and from another room.

use portunus_core::record::Format;
use portunus_core::{FieldError, Object, Right, Rights, with};
use portunus_dsp::{AudioCodec, ParticipantId};
use portunus_resources::{Id, Ids, RoomContent};

use super::participant::Recorded;
use super::{Audience, Link, Participant, RecordWish, RoomState, Who};
use crate::refusal::Refusal;
use crate::settings::Settings;

/// A participant whose entry was checked.
#[derive(Debug)]
pub(crate) struct Join {
    pub(crate) id: Id,
    pub(crate) admin: bool,
    pub(crate) settings: Settings,
    pub(crate) link: Link,
    /// Whether media flows already.
    pub(crate) setup: bool,
    pub(crate) record: Option<RecordWish>,
}

impl RoomState {
    /// Returns the wanted id, or a free one.
    pub(crate) fn free_id(&self, wanted: Option<Id>, ids: Ids) -> Result<Id, Refusal> {
        self.roster.free_id(wanted, ids)
    }

    /// Adds a participant, and returns its number. The others are told by
    /// [`RoomState::notify_joined`].
    pub(crate) fn join(&mut self, who: Who, join: Join) -> ParticipantId {
        let number = self.roster.next_number();
        let id = join.id.clone();
        let person = Participant {
            id: join.id,
            number,
            who,
            admin: join.admin,
            settings: join.settings,
            link: join.link,
            setup: join.setup,
            talking: false,
            recorded: Recorded {
                wanted: join.record,
                running: None,
            },
        };
        // It counts as a participant, though it is not heard before its media is up.
        self.mix.add(&person, self.profile.options());
        self.roster.add(person);
        tracing::info!(room = %self.id(), %id, "participant joined");
        if join.setup {
            self.connect(&id);
        }
        self.changed();
        number
    }

    /// Tells the others that a participant has joined, with this value of `setup`.
    pub(crate) fn notify_joined(&self, id: &Id, setup: bool) {
        let Some(person) = self.roster.get(id) else {
            return;
        };
        let state = person
            .to_json(self.profile.options(), false)
            .with("setup", setup);
        let event = self
            .message("joined")
            .with("participants", vec![serde_json::Value::from(state)]);
        self.send(Audience::Others(id), event);
        self.notify_settings(person, "joined");
    }

    /// Returns the answer to a new participant: `joined` or `roomchanged`.
    pub(crate) fn welcome(&self, id: &Id, what: &str) -> Object {
        self.message(what)
            .with("id", id.to_json())
            .with("participants", self.others(Some(id)))
    }

    /// Returns the settings of a participant.
    pub(crate) fn settings_of(&self, id: &Id) -> Option<Settings> {
        Some(self.roster.get(id)?.settings.clone())
    }

    /// Returns the codec of a participant.
    pub(crate) fn codec_of(&self, id: &Id) -> Option<AudioCodec> {
        Some(self.roster.get(id)?.settings.codec)
    }
}

impl RecordWish {
    /// Reads the members `record`, `filename` and `record_format`. Returns `None` if no recording
    /// is wanted.
    pub(crate) fn new(
        record: Option<bool>,
        filename: Option<&str>,
        record_format: Option<&str>,
        rights: Rights,
    ) -> Result<Option<Self>, FieldError> {
        let base = filename.filter(|name| !name.is_empty());
        let wish = RecordWish {
            base: base.map(str::to_owned),
            format: format_named(record_format)?,
            may_know_reason: rights.may(Right::Record),
        };
        Ok((record == Some(true)).then_some(wish))
    }
}

/// Returns the recording format with this name.
pub(crate) fn format_named(name: Option<&str>) -> Result<Option<Format>, FieldError> {
    let format = name.map(str::parse).transpose();
    format.map_err(|_| FieldError::wrong_type("record_format", with::FORMATS))
}
