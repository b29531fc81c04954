//! Rooms, and the requests about them that all plugins share: `create`, `edit`, `destroy`,
//! `exists`, `list` and `allowed`.
//!
//! A plugin implements [`RoomContent`] for the state of its rooms, and has [`Resources`] of
//! [`Room`]s. It does its own part of these requests, and leaves the rest to
//! [`Resources::created`], [`Resources::edit`], [`Resources::destroy`], [`Resources::find`],
//! [`Resources::list`] and [`Resources::managed`].

mod elsewhere;

use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use portunus_core::events::PluginEvents;
use portunus_core::{Fields, Handle, Object};
use serde_json::{Value, json};

use crate::{
    Access, AllowedTokens, Answer, Asker, ConfiguredOptions, ConfiguredRoom, Id, RecordedRoom,
    Refusal, Resource, Resources, Saved,
};

/// A room. All changes happen under its lock, so that all clients see them in the same order.
#[derive(Debug)]
pub struct Room<S> {
    /// Its id.
    pub id: Id,
    state: Mutex<S>,
}

/// The state of a plugin's room.
pub trait RoomContent: Debug + Send + Sized + 'static {
    /// The options in the configuration and in the file of permanent rooms.
    type Options: ConfiguredOptions;

    /// The member of the plugin's answers with their type, such as `videoroom`.
    const PLUGIN: &'static str;

    /// Returns the room's id.
    fn id(&self) -> &Id;

    /// Returns its secret and its pin.
    fn access(&self) -> &Access;

    /// Returns the tokens that permit its use.
    fn allowed(&mut self) -> &mut AllowedTokens;

    /// Returns the options as they are saved.
    fn options(&self) -> Self::Options;

    /// Returns whether this key of the configuration can change during use.
    fn is_editable(key: &str) -> bool;

    /// Takes the editable options from a configuration that was read again.
    fn apply(&mut self, options: Self::Options);

    /// Returns whether it is in use.
    fn is_used(&self) -> bool;

    /// Returns whether it has ended.
    fn has_ended(&self) -> bool;

    /// Ends the room, and tells its members. `client` requested it. `None` means an administrator,
    /// or nobody.
    fn end(&mut self, client: Option<&Handle>);

    /// Returns the events that no client has caused.
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

    /// Returns an answer about the room: `{ PLUGIN: what, "room": … }`.
    fn message(&self, what: &str) -> Object {
        message::<Self>(what, self.id())
    }

    /// Returns the head of an event for the observers of the server.
    fn notice(&self, event: &str) -> Object {
        Object::new()
            .with("event", event)
            .with("room", self.id().to_json())
    }

    /// Tells the observers of the server an event that `client` has caused, or nobody.
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

    /// Returns the room in the form that is saved.
    fn to_configured(&self) -> ConfiguredRoom<Self::Options> {
        ConfiguredRoom {
            id: self.id().clone(),
            options: self.options(),
        }
    }
}

/// Returns an answer about the room `id`.
fn message<S: RoomContent>(what: &str, id: &Id) -> Object {
    Object::new()
        .with(S::PLUGIN, what)
        .with("room", id.to_json())
}

impl<S: RoomContent> Room<S> {
    /// Returns a room with this state.
    pub fn new(state: S) -> Self {
        Room {
            id: state.id().clone(),
            state: Mutex::new(state),
        }
    }

    /// Locks the room.
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
    /// Calls `act` with the room that a request names, under its lock. The request has to show its
    /// secret.
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

    /// Completes the request `create` of `asker`: saves the new `room` in `saved` if it is
    /// permanent, and checks its recordings if `recorded` returns some.
    pub fn created(
        &self,
        room: &Room<S>,
        saved: Option<&Arc<Saved<ConfiguredRoom<S::Options>>>>,
        asker: &Asker,
        recorded: impl FnOnce(&S) -> Option<RecordedRoom>,
    ) -> Answer {
        tracing::info!(room = %room.id, "room created");
        self.note_made(&room.id);
        let state = room.lock();
        state.notify(asker.handle.as_ref(), || state.notice("created").into());
        // If the room was destroyed meanwhile, it is not saved.
        let saved = saved.filter(|_| !state.has_ended());
        let writing = saved.map(|saved| saved.keep_soon(state.to_configured()));
        Answer::new(state.message("created"), writing).recording(recorded(&state))
    }

    /// Answers the request `edit` of `asker`: finds the room, checks its secret, and calls `edit`,
    /// which returns the room if it is recorded elsewhere from now on.
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

    /// Answers the request `destroy` of `asker`: finds the room, checks its secret, and ends it.
    pub fn destroy(&self, fields: Fields<'_>, asker: &Asker) -> Result<Answer, Refusal> {
        self.managed(fields, |room, state| {
            let saved = self.permanent(fields)?;
            // Its id is not free yet.
            let id = || room.id.clone();
            let writing = saved.map(|saved| saved.remove_soon(id(), id()));
            self.remove(room)?;
            if writing.is_some() {
                self.ended().note(&room.id, Instant::now());
            }
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

    /// Answers the request `list` of `asker` with the admin key `admin_key`, if it shows one.
    /// `listed` returns the members of a room besides its id.
    pub fn list(
        &self,
        admin_key: Option<&str>,
        asker: &Asker,
        listed: impl Fn(&S) -> Object,
    ) -> Result<Object, Refusal> {
        self.list_with(admin_key, asker, listed, |_| Vec::new())
    }

    /// The same, with `further` rooms. Their function gets whether private ones are listed.
    pub fn list_with(
        &self,
        admin_key: Option<&str>,
        asker: &Asker,
        listed: impl Fn(&S) -> Object,
        further: impl FnOnce(bool) -> Vec<Value>,
    ) -> Result<Object, Refusal> {
        let is_administrator = asker.is_administrator();
        let rooms = self.listed_with(admin_key, is_administrator)?;
        // The key was checked.
        let is_key_shown = self.has_admin_key() && admin_key.is_some();
        let entry = |room: &Arc<Room<S>>| {
            let id = Object::new().with("room", room.id.to_json());
            Value::from(id.with_all(listed(&room.lock())))
        };
        let mut list: Vec<Value> = rooms.iter().map(entry).collect();
        list.extend(further(is_key_shown || is_administrator));
        Ok(Object::new().with(S::PLUGIN, "success").with("list", list))
    }
}

#[cfg(test)]
mod tests;
