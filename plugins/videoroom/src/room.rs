//! A room as clients of the Janus API know it: a conference, and who may come in.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use portunus_core::Fields;
use portunus_resources::{AllowedTokens, Id, Resource};
use portunus_room::{FileNames, PersonId, Setup, State};
use serde_json::Value;

use crate::client::{Client, Watchers};
use crate::config::ConfiguredRoom;
use crate::options::{DoorOptions, RoomOptions};
use crate::read::person;
use crate::refusal::Refusal;
use crate::show::Show;
use crate::{PACKAGE, Shared};

/// A room of the plugin.
#[derive(Debug)]
pub(crate) struct Room {
    pub(crate) id: Id,
    pub(crate) conference: Arc<portunus_room::Room>,
    door: Mutex<Door>,
    watchers: Watchers,
}

/// Who may come into a room.
#[derive(Debug)]
pub(crate) struct Door {
    pub(crate) options: DoorOptions,
    /// The tokens with which one may join.
    pub(crate) allowed: AllowedTokens,
}

/// A room under its locks: first that of the door, then that of the conference.
pub(crate) struct Locked<'a> {
    pub(crate) room: &'a Room,
    pub(crate) door: MutexGuard<'a, Door>,
    state: MutexGuard<'a, State>,
}

impl Room {
    pub(crate) fn new(
        id: Id,
        options: RoomOptions,
        allowed: AllowedTokens,
        shared: &Shared,
    ) -> Self {
        let ids = shared.rooms.ids();
        let watchers = || Watchers {
            events: shared.events.clone(),
            ids,
        };
        let conference = portunus_room::Room::new(Setup {
            name: id.to_string().into(),
            settings: options.settings,
            media: shared.media.clone(),
            recorder: shared.recorder.clone(),
            names: FileNames {
                owner: PACKAGE,
                prefix: "videoroom",
            },
            watcher: Box::new(watchers()),
        });
        conference.lock().add_dummy(person(&ids.random(|_| false)));
        Room {
            id,
            conference: Arc::new(conference),
            door: Mutex::new(Door {
                options: options.door,
                allowed,
            }),
            watchers: watchers(),
        }
    }

    /// What is in it, and who may come in.
    pub(crate) fn lock(&self) -> Locked<'_> {
        Locked {
            room: self,
            door: self.door.lock().unwrap_or_else(PoisonError::into_inner),
            state: self.conference.lock(),
        }
    }
}

impl Resource for Room {
    type Written = ConfiguredRoom;

    const MEMBER: &'static str = "room";

    const EDITABLE: &'static [&'static str] = &[
        "description",
        "is_private",
        "secret",
        "pin",
        "require_pvtid",
        "publishers",
        "bitrate",
        "fir_freq",
        "rec_dir",
        "record_format",
        "lock_record",
    ];

    fn apply(&self, written: &ConfiguredRoom) {
        let mut room = self.lock();
        room.set_options(written.options.clone());
        room.notify(None, |show| show.event_of("edited").into());
    }

    fn id(&self) -> &Id {
        &self.id
    }

    fn is_private(&self) -> bool {
        self.lock().door.options.access.is_private
    }

    fn is_used(&self) -> bool {
        self.conference.lock().is_used()
    }

    async fn end_unused(self: Arc<Self>) -> bool {
        let mut room = self.lock();
        let is_ours = !room.is_destroyed() && !room.is_used();
        if is_ours {
            room.destroy();
            room.notify(None, |show| show.event_of("destroyed").into());
        }
        is_ours
    }
}

impl Deref for Locked<'_> {
    type Target = State;

    fn deref(&self) -> &State {
        &self.state
    }
}

impl DerefMut for Locked<'_> {
    fn deref_mut(&mut self) -> &mut State {
        &mut self.state
    }
}

impl Locked<'_> {
    /// Checks that the room has not ended.
    pub(crate) fn check_there(&self) -> Result<(), Refusal> {
        match self.is_destroyed() {
            true => Err(Refusal::NoSuchRoom(self.room.id.clone())),
            false => Ok(()),
        }
    }

    /// Checks that a request may manage the room.
    pub(crate) fn check_secret(&self, fields: Fields<'_>) -> Result<(), Refusal> {
        Ok(self.door.options.access.check_secret(fields)?)
    }

    /// An id that nobody in the room has.
    pub(crate) fn free_id(&self) -> PersonId {
        let taken = |id: &Id| self.person(&person(id)).is_some();
        person(&self.room.watchers.ids.random(taken))
    }

    /// Its options.
    pub(crate) fn options(&self) -> RoomOptions {
        RoomOptions {
            door: self.door.options.clone(),
            settings: self.settings().clone(),
        }
    }

    /// Changes what can be edited.
    pub(crate) fn set_options(&mut self, mut options: RoomOptions) {
        if options.settings.description.is_empty() {
            options.settings.description = format!("Room {}", self.room.id);
        }
        self.door.options = options.door;
        self.state.edit(options.settings);
    }

    /// Writes what is in it as JSON.
    pub(crate) fn show(&self) -> Show<'_> {
        Show::new(self.room.watchers.ids, &self.state)
    }

    /// Tells whoever watches the server what has happened: as something that `client` did, if one did it.
    pub(crate) fn notify(&self, client: Option<&Client>, data: impl FnOnce(Show<'_>) -> Value) {
        let data = || data(self.show());
        match client {
            Some(client) => client.handle.notify(data),
            None => self.room.watchers.events.notify(data),
        }
    }
}
