//! Rooms, and the requests about them that all plugins have: what they share of `create`, `edit`, `destroy`, `exists`, `list` and
//! `allowed`.
//!
//! A plugin implements [`RoomContent`] for what is in its rooms, and has [`Resources`] of [`Room`]s. In its answers to these
//! requests it checks and does what is its own, and leaves the rest to [`Resources`]: see [`Resources::created`],
//! [`Resources::edit`], [`Resources::destroy`], [`Resources::find`], [`Resources::list`], [`Resources::managed`].

use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use portunus_core::events::PluginEvents;
use portunus_core::{Fields, Handle, Object};
use serde_json::{Value, json};

use crate::{
    Access, AllowedTokens, Answer, Asker, ConfiguredOptions, ConfiguredRoom, Id, RecordedRoom,
    Refusal, Resource, Resources, Saved,
};

/// A room. What happens in it happens under its lock, so that all see it in the same order.
#[derive(Debug)]
pub struct Room<S> {
    /// Its id.
    pub id: Id,
    state: Mutex<S>,
}

/// What is in a room of a plugin.
pub trait RoomContent: Debug + Send + Sized + 'static {
    /// What the configuration and the file of permanent rooms say of the room.
    type Options: ConfiguredOptions;

    /// The member of the plugin's answers that says what they are, such as `videoroom`.
    const PLUGIN: &'static str;

    /// The room's id.
    fn id(&self) -> &Id;

    /// Who may manage it, and who may use it.
    fn access(&self) -> &Access;

    /// The tokens with which one may use it.
    fn allowed(&mut self) -> &mut AllowedTokens;

    /// The options as they are saved.
    fn options(&self) -> Self::Options;

    /// Whether this key of the configuration can change while somebody is in the room.
    fn is_editable(key: &str) -> bool;

    /// Takes the editable options from a configuration that was read again.
    fn apply(&mut self, options: Self::Options);

    /// Whether somebody is in it.
    fn is_used(&self) -> bool;

    /// Whether it has ended.
    fn has_ended(&self) -> bool;

    /// Ends the room: those who are in it are told. `client` has asked for it; `None`: an administrator, or nobody.
    fn end(&mut self, client: Option<&Handle>);

    /// Where whoever watches the server is told of what no client does.
    fn events(&self) -> &PluginEvents;

    /// Checks that the room has not ended.
    fn check_there(&self) -> Result<(), Refusal> {
        match self.has_ended() {
            true => Err(Refusal::NoSuch(self.id().clone())),
            false => Ok(()),
        }
    }

    /// Checks that the room has not ended, and that a request shows its secret.
    fn check_managed(&self, fields: Fields<'_>) -> Result<(), Refusal> {
        self.check_there()?;
        self.access().check_secret(fields)
    }

    /// An answer about the room: `{ PLUGIN: what, "room": … }`.
    fn message(&self, what: &str) -> Object {
        message::<Self>(what, self.id())
    }

    /// Something that has happened in the room, for whoever watches the server.
    fn notice(&self, event: &str) -> Object {
        Object::new()
            .with("event", event)
            .with("room", self.id().to_json())
    }

    /// Tells whoever watches the server what has happened: as something that `client` did, if it was a client.
    fn notify(&self, client: Option<&Handle>, data: impl FnOnce() -> Value) {
        match client {
            Some(client) => client.notify(data),
            None => self.events().notify(data),
        }
    }

    /// Does what the request `allowed` asks for.
    fn allow(&mut self, fields: Fields<'_>) -> Result<Object, Refusal> {
        let tokens = self.allowed().change(fields)?;
        let tokens = tokens.map(|tokens| json!(tokens));
        Ok(self.message("success").with_some("allowed", tokens))
    }

    /// The room as it is saved.
    fn to_configured(&self) -> ConfiguredRoom<Self::Options> {
        ConfiguredRoom {
            id: self.id().clone(),
            options: self.options(),
        }
    }
}

/// An answer about the room `id`.
fn message<S: RoomContent>(what: &str, id: &Id) -> Object {
    Object::new()
        .with(S::PLUGIN, what)
        .with("room", id.to_json())
}

impl<S: RoomContent> Room<S> {
    /// A room with this in it.
    pub fn new(state: S) -> Self {
        Room {
            id: state.id().clone(),
            state: Mutex::new(state),
        }
    }

    /// What is in it.
    pub fn lock(&self) -> MutexGuard<'_, S> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: RoomContent> Resource for Room<S> {
    type Written = ConfiguredRoom<S::Options>;

    const MEMBER: &'static str = "room";

    fn is_editable(key: &str) -> bool {
        S::is_editable(key)
    }

    fn id(&self) -> &Id {
        &self.id
    }

    fn apply(&self, written: &Self::Written) {
        let mut state = self.lock();
        state.apply(written.options.clone());
        state.notify(None, || state.notice("edited").into());
    }

    fn is_private(&self) -> bool {
        self.lock().access().is_private
    }

    fn is_used(&self) -> bool {
        self.lock().is_used()
    }

    async fn end_unused(self: Arc<Self>) -> bool {
        let mut state = self.lock();
        let is_ours = !state.has_ended() && !state.is_used();
        if is_ours {
            state.end(None);
            state.notify(None, || state.notice("destroyed").into());
        }
        is_ours
    }
}

impl<S: RoomContent> Resources<Room<S>> {
    /// Does something with the room that a request names, if the request shows its secret. It is locked meanwhile.
    pub fn managed<T, E: From<Refusal>>(
        &self,
        fields: Fields<'_>,
        act: impl FnOnce(&Arc<Room<S>>, &mut S) -> Result<T, E>,
    ) -> Result<T, E> {
        let room = self.named(fields)?;
        let mut state = room.lock();
        state.check_managed(fields)?;
        act(&room, &mut state)
    }

    /// Completes the request `create`: `asker` has made `room`, which is to be written to `saved`, if it is for good. If it is to be
    /// recorded, `recorded` says so.
    pub fn created(
        &self,
        room: &Room<S>,
        saved: Option<&Arc<Saved<ConfiguredRoom<S::Options>>>>,
        asker: &Asker,
        recorded: impl FnOnce(&S) -> Option<RecordedRoom>,
    ) -> Answer {
        tracing::info!(room = %room.id, "room created");
        let state = room.lock();
        state.notify(asker.handle.as_ref(), || state.notice("created").into());
        // Whoever has destroyed it since then has the last word.
        let saved = saved.filter(|_| !state.has_ended());
        let writing = saved.map(|saved| saved.keep_soon(state.to_configured()));
        Answer::new(state.message("created"), writing).recording(recorded(&state))
    }

    /// Answers the request `edit` of `asker`: finds the room, checks its secret, and has `edit` change it. If the room is to be
    /// recorded elsewhere from now on, `edit` returns where.
    pub fn edit<E: From<Refusal>>(
        &self,
        fields: Fields<'_>,
        asker: &Asker,
        edit: impl FnOnce(&mut S) -> Result<Option<RecordedRoom>, E>,
    ) -> Result<Answer, E> {
        self.managed(fields, |room, state| {
            let saved = self.permanent(fields)?;
            let recorded = edit(state)?;
            state.notify(asker.handle.as_ref(), || state.notice("edited").into());
            let writing = saved.map(|saved| saved.keep_soon(state.to_configured()));
            if writing.is_some() {
                self.adopt(room);
            }
            Ok(Answer::new(state.message("edited"), writing).recording(recorded))
        })
    }

    /// Answers the request `destroy` of `asker`: finds the room, checks its secret, and ends the room.
    pub fn destroy(&self, fields: Fields<'_>, asker: &Asker) -> Result<Answer, Refusal> {
        self.managed(fields, |room, state| {
            let saved = self.permanent(fields)?;
            // Before somebody may make another of its id.
            let id = || room.id.clone();
            let writing = saved.map(|saved| saved.remove_soon(id(), id()));
            self.remove(room)?;
            let client = asker.handle.as_ref();
            state.end(client);
            state.notify(client, || state.notice("destroyed").into());
            tracing::info!(room = %room.id, "room destroyed");
            Ok(Answer::new(state.message("destroyed"), writing))
        })
    }

    /// Answers the request `exists`.
    pub fn find(&self, fields: Fields<'_>) -> Result<Object, Refusal> {
        let id = self.ids().required(fields, "room")?;
        let exists = self.exists(&id);
        Ok(message::<S>("success", &id).with("exists", exists))
    }

    /// Answers the request `list` of `asker`, who shows `admin_key`, if it is there: with the id of each room, and with what `listed`
    /// says of it.
    pub fn list(
        &self,
        admin_key: Option<&str>,
        asker: &Asker,
        listed: impl Fn(&S) -> Object,
    ) -> Result<Object, Refusal> {
        let rooms = self.listed_with(admin_key, asker.is_administrator())?;
        let entry = |room: &Arc<Room<S>>| {
            let id = Object::new().with("room", room.id.to_json());
            Value::from(id.with_all(listed(&room.lock())))
        };
        let list: Vec<Value> = rooms.iter().map(entry).collect();
        Ok(Object::new().with(S::PLUGIN, "success").with("list", list))
    }
}

#[cfg(test)]
mod tests;
