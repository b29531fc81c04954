//! Coming into a room: by `join`, and from another room.

use portunus_core::record::Format;
use portunus_core::{FieldError, Fields, Object, Right, Rights, with};
use portunus_dsp::AudioCodec;
use portunus_resources::{Asker, Id, RoomContent};

use super::participant::Recorded;
use super::{Audience, Link, Participant, RecordWish, RoomState, Who};
use crate::options::RoomOptions;
use crate::refusal::Refusal;
use crate::settings::Settings;

/// Somebody who is to be let in: what the room has checked.
#[derive(Debug)]
pub(crate) struct Join {
    pub(crate) id: Id,
    pub(crate) admin: bool,
    pub(crate) settings: Settings,
    pub(crate) link: Link,
    /// Media flows already: its PeerConnection is up.
    pub(crate) setup: bool,
    pub(crate) record: Option<RecordWish>,
}

impl RoomState {
    /// Checks that a request opens the room, as participants and listeners have to show it; says whether that was by its secret.
    pub(crate) fn admit(
        &self,
        fields: Fields<'_>,
        token: Option<&str>,
        asker: &Asker,
    ) -> Result<bool, Refusal> {
        self.check_there()?;
        self.check_signed_token(&self.options, asker, token)?;
        self.options.access.check_pin(fields)?;
        let allowed = self.allowed.check(token);
        allowed.map_err(|_| Refusal::NotAllowed)?;
        let shows_secret = fields.has("secret");
        if shows_secret {
            self.options.access.check_secret(fields)?;
        }
        Ok(shows_secret)
    }

    /// Checks that `asker` shows a token that is signed for the room, if its `options` ask for one.
    pub(crate) fn check_signed_token(
        &self,
        options: &RoomOptions,
        asker: &Asker,
        token: Option<&str>,
    ) -> Result<(), Refusal> {
        match options.signed_tokens && !asker.shows_signed_token(&self.id, token) {
            true => Err(Refusal::NotSigned),
            false => Ok(()),
        }
    }

    /// Checks that somebody may be in it who comes by plain RTP, if that is so.
    pub(crate) fn check_rtp(&self, by_rtp: bool) -> Result<(), Refusal> {
        match by_rtp && !self.options.allow_rtp {
            true => Err(Refusal::Unauthorized(
                "no plain RTP in this room, see allow_rtp_participants",
            )),
            false => Ok(()),
        }
    }

    /// The id that somebody gets who comes.
    pub(crate) fn free_id(
        &self,
        wanted: Option<Id>,
        ids: portunus_resources::Ids,
    ) -> Result<Id, Refusal> {
        self.roster.free_id(wanted, ids)
    }

    /// Lets somebody in; the others are still to be told, see [`RoomState::tell_joined`].
    pub(crate) fn join(&mut self, who: Who, join: Join) {
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
        // It counts as being there, though nothing is heard of it before its media is up.
        self.sound
            .join(number, person.mixed(&self.options), None, None);
        self.roster.add(person);
        tracing::info!(room = %self.id, %id, "participant joined");
        if join.setup {
            self.connect(&id);
        }
    }

    /// Tells the others that somebody has joined; `setup` as they are to see it.
    pub(crate) fn tell_joined(&self, id: &Id, setup: bool) {
        let Some(person) = self.roster.get(id) else {
            return;
        };
        let shown = person.shown(&self.options, false).with("setup", setup);
        let event = self
            .message("joined")
            .with("participants", vec![serde_json::Value::from(shown)]);
        self.tell(Audience::Others(id), event);
        self.notify_settings(person, "joined");
    }

    /// What somebody is told who has come: `joined` or `roomchanged`.
    pub(crate) fn welcome(&self, id: &Id, what: &str) -> Object {
        self.message(what)
            .with("id", id.to_json())
            .with("participants", self.others(Some(id)))
    }

    /// How somebody is heard.
    pub(crate) fn settings_of(&self, id: &Id) -> Option<Settings> {
        Some(self.roster.get(id)?.settings.clone())
    }

    /// What somebody sends and hears.
    pub(crate) fn codec_of(&self, id: &Id) -> Option<AudioCodec> {
        Some(self.roster.get(id)?.settings.codec)
    }
}

impl RecordWish {
    /// Returns that of the members `record`, `filename` and `record_format`, or `None` if they ask for no recording.
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
            told_why: rights.may(Right::Record),
        };
        Ok((record == Some(true)).then_some(wish))
    }
}

/// The format of recordings with this name.
pub(crate) fn format_named(name: Option<&str>) -> Result<Option<Format>, FieldError> {
    let format = name.map(str::parse).transpose();
    format.map_err(|_| FieldError::wrong_type("record_format", with::FORMATS))
}
