//! A room as clients of the Janus API know it: who may come in, and the conference behind the door.

use std::sync::Arc;

use portunus_core::events::PluginEvents;
use portunus_core::{Fields, Handle};
use portunus_resources::{Access, AllowedTokens, Asker, Id, RoomContent};
use portunus_room::{FileNames, Room as Conference, Setup};
use serde::Deserialize;

use crate::options::{DoorOptions, OPTIONS, RoomOptions};
use crate::read::person;
use crate::refusal::Refusal;
use crate::{PACKAGE, Shared};

/// A room of the plugin. Its lock is taken before that of the conference.
pub(crate) type Room = portunus_resources::Room<Door>;

/// What opens a room beside its secret.
#[derive(Deserialize)]
struct Openers<'a> {
    #[serde(rename = "pin")]
    _pin: Option<&'a str>,
    #[serde(rename = "token")]
    _token: Option<&'a str>,
}

/// Who may come into a room, and what is behind.
#[derive(Debug)]
pub(crate) struct Door {
    id: Id,
    pub(crate) options: DoorOptions,
    /// The tokens with which one may join.
    pub(crate) allowed: AllowedTokens,
    pub(crate) conference: Arc<Conference>,
    events: PluginEvents,
}

impl Door {
    pub(crate) fn new(
        id: Id,
        options: RoomOptions,
        allowed: AllowedTokens,
        shared: &Shared,
    ) -> Self {
        let options = options.described(&id);
        let conference = Conference::new(Setup {
            name: id.to_string().into(),
            settings: options.settings,
            media: shared.media.clone(),
            recorder: shared.recorder.clone(),
            names: FileNames {
                owner: PACKAGE,
                prefix: "videoroom",
            },
            watcher: Box::new(shared.watchers()),
        });
        let dummy = person(&shared.rooms.ids().random(|_| false));
        conference.lock().add_dummy(dummy);
        Door {
            id,
            options: options.door,
            allowed,
            conference: Arc::new(conference),
            events: shared.events.clone(),
        }
    }

    /// Lets `asker` in who joins. Returns whether by the room's secret, instead of by a pin and a token.
    pub(crate) fn admit(&self, asker: &Asker, fields: Fields<'_>) -> Result<bool, Refusal> {
        // Of the wrong type they are refused with the secret and without it.
        let _: Openers<'_> = fields.read()?;
        let access = &self.options.access;
        let by_secret = access.shows_secret(fields);
        if !by_secret {
            self.check_signed_token(&self.options, asker, fields)?;
            access.check_pin(fields)?;
        }
        Ok(by_secret)
    }

    /// Checks that `asker` shows a token that is signed for the room, if `options` ask for these: as `token` in the request's body, or
    /// as a JSON Web Token that the API takes.
    pub(crate) fn check_signed_token(
        &self,
        options: &DoorOptions,
        asker: &Asker,
        fields: Fields<'_>,
    ) -> Result<(), Refusal> {
        match options.signed_tokens && !asker.shows_signed_token(&self.id, fields.member("token")?)
        {
            true => Err(Refusal::NotSigned),
            false => Ok(()),
        }
    }
}

impl RoomContent for Door {
    type Options = RoomOptions;

    const PLUGIN: &'static str = "videoroom";

    fn id(&self) -> &Id {
        &self.id
    }

    fn access(&self) -> &Access {
        &self.options.access
    }

    fn allowed(&mut self) -> &mut AllowedTokens {
        &mut self.allowed
    }

    fn options(&self) -> RoomOptions {
        RoomOptions {
            door: self.options.clone(),
            settings: self.conference.lock().settings().clone(),
        }
    }

    fn is_editable(key: &str) -> bool {
        OPTIONS.is_editable(key)
    }

    fn apply(&mut self, options: RoomOptions) {
        let RoomOptions { door, settings } = options.described(&self.id);
        self.options = door;
        self.conference.lock().edit(settings);
    }

    fn is_used(&self) -> bool {
        self.conference.lock().is_used()
    }

    fn has_ended(&self) -> bool {
        self.conference.lock().is_destroyed()
    }

    fn end(&mut self, _: Option<&Handle>) {
        self.conference.lock().destroy();
    }

    fn events(&self) -> &PluginEvents {
        &self.events
    }
}
