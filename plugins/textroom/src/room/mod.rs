//! A room: who is in it, what they are told, and what is remembered.

mod history;
mod members;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chrono::Local;
use portunus_core::events::PluginEvents;
use portunus_core::{Fields, Handle, HandleId, JsonForm, Object};
use portunus_resources::{AllowedTokens, Id, Resource};
use serde_json::{Map, Value};

use crate::config::ConfiguredRoom;
use crate::options::RoomOptions;
use crate::post::Outlet;
use crate::refusal::Refusal;
use crate::tally::Tally;
use history::History;
use members::{Member, Members};

pub(crate) use members::send;

/// Bytes of the longest message that data channels take, in either direction.
pub(crate) const LONGEST: usize = 256 << 10;

/// A room. Whatever happens in it happens under its lock, so that all see it in the same order.
#[derive(Debug)]
pub(crate) struct Room {
    pub(crate) id: Id,
    state: Mutex<RoomState>,
}

/// What all rooms share.
#[derive(Debug, Clone)]
pub(crate) struct Surroundings {
    pub(crate) json: JsonForm,
    pub(crate) tally: Arc<Tally>,
    /// Where whoever watches the server is told of what no client does.
    pub(crate) events: PluginEvents,
}

/// What is in a room.
#[derive(Debug)]
pub(crate) struct RoomState {
    pub(crate) id: Id,
    pub(crate) options: RoomOptions,
    /// The tokens with which one may join.
    pub(crate) allowed: AllowedTokens,
    /// Where what is said is posted to.
    pub(crate) outlet: Option<Outlet>,
    pub(crate) destroyed: bool,
    members: Members,
    history: History,
    surroundings: Surroundings,
}

/// Who wants to join.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Joining<'a> {
    pub(crate) handle: &'a Handle,
    pub(crate) username: &'a str,
    pub(crate) display: Option<&'a str>,
    /// Whether what was said before is sent first.
    pub(crate) history: bool,
    /// By which way the answer goes.
    pub(crate) way: Way,
}

/// By which way a member makes a request, and gets its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Api,
    Channel,
}

/// Whom a message is for.
#[derive(Debug, Clone)]
pub(crate) enum Addressees<'a> {
    All,
    /// Those of these names.
    Named(Vec<&'a str>),
}

impl Resource for Room {
    type Written = ConfiguredRoom;

    const MEMBER: &'static str = "room";

    const EDITABLE: &'static [&'static str] = &["description", "is_private", "secret", "pin"];

    fn apply(&self, written: &ConfiguredRoom) {
        let mut options = written.options.clone();
        if options.description.is_empty() {
            options.description = format!("Room {}", self.id);
        }
        self.lock().options = options;
    }

    fn id(&self) -> &Id {
        &self.id
    }

    fn is_private(&self) -> bool {
        self.lock().options.access.is_private
    }

    fn is_used(&self) -> bool {
        !self.lock().members.is_empty()
    }

    async fn end_unused(self: Arc<Self>) -> bool {
        let mut state = self.lock();
        let is_ours = !state.destroyed && state.members.is_empty();
        if is_ours {
            state.destroy(None);
        }
        is_ours
    }
}

impl Room {
    pub(crate) fn new(
        id: Id,
        options: RoomOptions,
        allowed: AllowedTokens,
        outlet: Option<Outlet>,
        surroundings: Surroundings,
    ) -> Self {
        let state = RoomState {
            id: id.clone(),
            history: History::new(options.history),
            options,
            allowed,
            outlet,
            destroyed: false,
            members: Members::default(),
            surroundings,
        };
        Room {
            state: Mutex::new(state),
            id,
        }
    }

    /// What is in it.
    pub(crate) fn lock(&self) -> MutexGuard<'_, RoomState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RoomState {
    /// Checks that the room is there still, and that a request may manage it.
    pub(crate) fn check_managed(&self, fields: Fields<'_>) -> Result<(), Refusal> {
        self.check_there()?;
        Ok(self.options.access.check_secret(fields)?)
    }

    fn check_there(&self) -> Result<(), Refusal> {
        match self.destroyed {
            true => Err(Refusal::NoSuchRoom(self.id.clone())),
            false => Ok(()),
        }
    }

    /// What `list` tells of it.
    pub(crate) fn listed(&self) -> Object {
        self.options.listed(&self.id, self.members.len())
    }

    /// What `listparticipants` tells of those who are in it.
    pub(crate) fn participants(&self) -> Vec<Value> {
        self.members.listed()
    }

    /// The name of the member who has this handle.
    pub(crate) fn username(&self, handle: HandleId) -> Option<&str> {
        let member = self.members.of_handle(handle)?;
        Some(&member.username)
    }

    /// Lets somebody in, who gets what was said before, the news of its own coming, and on a data channel what `answer` makes of
    /// those who were there already. Returns these.
    pub(crate) fn join(
        &mut self,
        joining: Joining<'_>,
        fields: Fields<'_>,
        answer: impl FnOnce(&[Value]) -> String,
    ) -> Result<Vec<Value>, Refusal> {
        self.check_there()?;
        self.options.access.check_pin(fields)?;
        let handle = joining.handle;
        if self.members.of_handle(handle.id()).is_some() {
            return Err(Refusal::AlreadyInRoom(self.id.clone()));
        }
        if self.members.named(joining.username).is_some() {
            return Err(Refusal::UsernameTaken);
        }
        self.allowed.check(fields.string("token")?)?;
        let participants = self.members.listed();
        // Whoever comes by the API counts for how many a room has, too.
        let answer = answer(&participants);
        if answer.len() > LONGEST {
            let size = answer.len();
            return Err(Refusal::LongAnswer {
                size,
                most: LONGEST,
            });
        }
        let member = Member {
            handle: handle.clone(),
            username: joining.username.to_owned(),
            display: joining.display.map(str::to_owned),
        };
        let news = member.to_object();
        tracing::info!(room = %self.id, username = member.username, "member joined");
        self.members.add(member);
        if joining.history {
            for message in self.history.iter() {
                send(handle, message);
            }
        }
        self.tell(self.event("join").with_all(news.clone()));
        if joining.way == Way::Channel {
            send(handle, &answer);
        }
        let room = self.id.to_json();
        handle.notify(|| {
            let event = Object::new().with("event", "join").with("room", room);
            event.with_all(news).into()
        });
        Ok(participants)
    }

    /// Lets a member go who wants to; all are told, that one too.
    pub(crate) fn leave(&mut self, handle: HandleId) -> Result<(), Refusal> {
        let username = self.username(handle).map(str::to_owned);
        let Some(username) = username.filter(|_| !self.destroyed) else {
            return Err(Refusal::NotInRoom(self.id.clone()));
        };
        self.tell(self.event("leave").with("username", username));
        self.removed(handle);
        Ok(())
    }

    /// Removes a member who is gone, if it is one; the others are told.
    pub(crate) fn gone(&mut self, handle: HandleId) {
        if let Some(username) = self.removed(handle) {
            self.tell(self.event("leave").with("username", username));
        }
    }

    fn removed(&mut self, handle: HandleId) -> Option<String> {
        let member = self.members.remove(handle)?;
        tracing::info!(room = %self.id, username = member.username, "member left");
        member.handle.notify(|| {
            let event = Object::new().with("event", "leave");
            let event = event.with("room", self.id.to_json());
            event.with("username", member.username.as_str()).into()
        });
        Some(member.username)
    }

    /// Passes on what a member says. If it is not for all, gives whom of the addressees it reached.
    pub(crate) fn say(
        &mut self,
        handle: HandleId,
        text: &str,
        to: &Addressees<'_>,
    ) -> Result<Option<Map<String, Value>>, Refusal> {
        let author = self.members.of_handle(handle);
        let Some(author) = author.filter(|_| !self.destroyed) else {
            return Err(Refusal::NotInRoom(self.id.clone()));
        };
        let event = self
            .event("message")
            .with("from", author.username.as_str())
            .with("date", now())
            .with("text", text);
        match to {
            Addressees::Named(names) => {
                let event = self.text(event.with("whisper", true));
                check_fits(&event)?;
                let mut sent = Map::new();
                for name in names {
                    if sent.contains_key(*name) {
                        continue;
                    }
                    let member = self.members.named(name);
                    sent.insert((*name).to_owned(), member.is_some().into());
                    if let Some(member) = member {
                        send(&member.handle, &event);
                    }
                }
                self.surroundings.tally.whispers.add();
                Ok(Some(sent))
            }
            Addressees::All => {
                let remembered = event.clone().with_some("display", author.display.clone());
                self.publish(event, remembered)?;
                self.surroundings.tally.messages.add();
                Ok(None)
            }
        }
    }

    /// Tells all something that nobody of them says.
    pub(crate) fn announce(&mut self, text: &str) -> Result<(), Refusal> {
        let event = self
            .event("announcement")
            .with("date", now())
            .with("text", text);
        self.publish(event.clone(), event)?;
        self.surroundings.tally.announcements.add();
        Ok(())
    }

    /// Tells all, remembers it in its other form, and posts it.
    fn publish(&mut self, event: Object, remembered: Object) -> Result<(), Refusal> {
        let event = self.text(event);
        check_fits(&event)?;
        self.members.tell(&event);
        if self.history.is_kept() {
            let remembered = self.text(remembered);
            self.history.push(remembered);
        }
        if let Some(outlet) = &self.outlet {
            outlet.push(event);
        }
        Ok(())
    }

    /// Removes somebody; all are told, that one too.
    pub(crate) fn kick(&mut self, username: &str, by: Option<&Handle>) -> Result<(), Refusal> {
        let Some(member) = self.members.named(username) else {
            return Err(Refusal::NoSuchUser {
                username: username.to_owned(),
                room: self.id.clone(),
            });
        };
        let handle = member.handle.id();
        let event = self.event("kicked").with("username", username);
        self.tell(event.clone());
        self.members.remove(handle);
        self.notify(by, || event.into());
        Ok(())
    }

    /// Ends the room: who ends it is told, and all members are.
    pub(crate) fn destroy(&mut self, by: Option<&Handle>) {
        self.destroyed = true;
        let event = self.text(self.event("destroyed"));
        if let Some(by) = by {
            send(by, &event);
        }
        self.members.tell(&event);
        self.members = Members::default();
        if let Some(outlet) = self.outlet.take() {
            outlet.close();
        }
        self.notify(by, || self.notice("destroyed").into());
    }

    /// Something that happened to the room, for whoever watches the server.
    pub(crate) fn notice(&self, event: &str) -> Object {
        Object::new()
            .with("event", event)
            .with("room", self.id.to_json())
    }

    /// Tells whoever watches the server what a client did, or an administrator.
    pub(crate) fn notify(&self, client: Option<&Handle>, data: impl FnOnce() -> Value) {
        match client {
            Some(client) => client.notify(data),
            None => self.surroundings.events.notify(data),
        }
    }

    /// A message of the room, without what it says.
    fn event(&self, kind: &str) -> Object {
        Object::new()
            .with("textroom", kind)
            .with("room", self.id.to_json())
    }

    fn tell(&self, event: Object) {
        self.members.tell(&self.text(event));
    }

    fn text(&self, message: Object) -> String {
        self.surroundings.json.text(&Value::from(message))
    }
}

/// The local time, as messages have it.
fn now() -> String {
    Local::now().format("%Y-%m-%dT%H:%M:%S%z").to_string()
}

/// Checks that a data channel takes a message.
fn check_fits(message: &str) -> Result<(), Refusal> {
    let size = message.len();
    match size > LONGEST {
        true => Err(Refusal::LongMessage {
            size,
            most: LONGEST,
        }),
        false => Ok(()),
    }
}
