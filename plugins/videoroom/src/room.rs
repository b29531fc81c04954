//! A room as clients of the Janus API know it: the access to it, and its conference.

use std::sync::Arc;

use portunus_core::events::PluginEvents;
use portunus_core::{Fields, Handle};
use portunus_resources::{Access, AllowedTokens, Asker, Id, RoomContent};
use portunus_room::Room as Conference;
use serde::Deserialize;

use crate::entry::Entry;
use crate::options::{DoorOptions, OPTIONS, RoomOptions};
use crate::refusal::Refusal;

/// A room of the plugin. Its lock is taken before that of the conference.
pub(crate) type Room = portunus_resources::Room<Door>;

/// The members that open a room besides its secret.
#[derive(Deserialize)]
struct Openers<'a> {
    #[serde(rename = "pin")]
    _pin: Option<&'a str>,
    #[serde(rename = "token")]
    _token: Option<&'a str>,
}

/// The access to a room, and its conference.
#[derive(Debug)]
pub(crate) struct Door {
    pub(crate) id: Id,
    pub(crate) options: DoorOptions,
    /// The tokens that permit a join.
    pub(crate) allowed: AllowedTokens,
    pub(crate) conference: Arc<Conference>,
    pub(crate) events: PluginEvents,
    /// Counts the changes of its definition, on all nodes of a cluster.
    pub(crate) edited: u64,
    /// Its definition for other nodes, as of this number of changes.
    pub(crate) definition: Option<(u64, Arc<str>)>,
}

impl Door {
    /// Checks that `asker` may join. Returns whether it showed the room's secret instead of a pin
    /// and a token.
    pub(crate) fn admit(&self, asker: &Asker, fields: Fields<'_>) -> Result<bool, Refusal> {
        // A member of the wrong type is refused, with or without the secret.
        let _: Openers<'_> = fields.read()?;
        let access = &self.options.access;
        let by_secret = access.shows_secret(fields);
        if !by_secret {
            self.check_signed_token(&self.options, asker, fields)?;
            access.check_pin(fields)?;
        }
        Ok(by_secret)
    }

    /// Lets `asker` in as the home of the room has decided. Returns whether it showed the room's
    /// secret.
    pub(crate) fn take_entry(
        &self,
        entry: &Entry,
        asker: &Asker,
        fields: Fields<'_>,
    ) -> Result<bool, Refusal> {
        if !entry.by_secret {
            self.check_signed_token(&self.options, asker, fields)?;
        }
        Ok(entry.by_secret)
    }

    /// Checks that `asker` shows a signed token for the room, if `options` require one. It is the
    /// member `token`, or a JSON Web Token of the API.
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

impl Door {
    /// The definition has changed by something else than its options.
    pub(crate) fn is_changed(&mut self) {
        self.edited = self.edited.saturating_add(1);
        self.conference.lock().door_changed();
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
        self.edited = self.edited.saturating_add(1);
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
