//! A room: its members, their messages, and its history.

mod history;
mod members;
mod moves;

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use chrono::Local;
use portunus_core::events::PluginEvents;
use portunus_core::{Fields, Handle, JsonForm, Object};
use portunus_resources::{Access, AllowedTokens, Id, RoomContent};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::contact::{Contact, ContactId, Name, News, send};
use crate::options::{OPTIONS, RoomOptions};
use crate::post::Outlet;
use crate::refusal::Refusal;
use crate::tally::Tally;
use members::{Member, Members};

pub(crate) use history::History;

/// Bytes of the longest message that data channels take, in either direction.
pub(crate) const LONGEST: usize = 256 << 10;

/// A room.
pub(crate) type Room = portunus_resources::Room<RoomState>;

/// The parts that all rooms share.
#[derive(Debug, Clone)]
pub(crate) struct Surroundings {
    pub(crate) json: JsonForm,
    pub(crate) tally: Arc<Tally>,
    /// The events that no client has caused.
    pub(crate) events: PluginEvents,
}

/// Where a room comes from. Of rooms of one id at several nodes the oldest one counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Origin {
    /// When it was made, in ms since 1970.
    pub(crate) since: u64,
    /// Other nodes may have the same room, by their configurations.
    pub(crate) is_shared: bool,
    /// It was made because another node was lost.
    pub(crate) is_adopted: bool,
}

/// The state of a room.
#[derive(Debug)]
pub(crate) struct RoomState {
    pub(crate) id: Id,
    pub(crate) origin: Origin,
    pub(crate) options: RoomOptions,
    /// The tokens that permit a join.
    pub(crate) allowed: AllowedTokens,
    /// The queue to the back-end.
    pub(crate) outlet: Option<Outlet>,
    pub(crate) destroyed: bool,
    members: Members,
    history: History,
    surroundings: Surroundings,
    /// How often [`RoomState::idle`] has found no members.
    idle: u32,
}

/// The members of a request to join.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(crate) struct Join<'a> {
    pub(crate) username: &'a str,
    pub(crate) display: Option<&'a str>,
    #[serde(rename = "pin")]
    _pin: Option<&'a str>,
    token: Option<&'a str>,
    /// Whether what was said before is sent first.
    history: Option<bool>,
}

/// A client that joins.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Joining<'a> {
    pub(crate) contact: &'a Contact,
    pub(crate) join: Join<'a>,
    /// The way of the answer.
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
    /// The members with these names.
    Named(Vec<&'a str>),
}

impl RoomContent for RoomState {
    type Options = RoomOptions;

    const PLUGIN: &'static str = "textroom";

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
        self.options.clone()
    }

    /// Returns whether this option can change during use. A back-end cannot.
    fn is_editable(key: &str) -> bool {
        key != "post" && OPTIONS.is_editable(key)
    }

    fn apply(&mut self, options: RoomOptions) {
        self.options = options.described(&self.id);
    }

    fn is_used(&self) -> bool {
        !self.members.is_empty()
    }

    fn has_ended(&self) -> bool {
        self.destroyed
    }

    fn events(&self) -> &PluginEvents {
        &self.surroundings.events
    }

    /// Tells the client that ends the room, and all members.
    fn end(&mut self, by: Option<&Handle>) {
        self.destroyed = true;
        let event = self.message("destroyed");
        if let Some(by) = by {
            send(by, &self.text(event.clone()));
        }
        self.send(event, &News::default());
        let room = self.id.to_string();
        for member in std::mem::take(&mut self.members).into_members() {
            member.contact.left(&room);
        }
        if let Some(outlet) = self.outlet.take() {
            outlet.close();
        }
    }
}

impl RoomState {
    pub(crate) fn new(
        id: Id,
        options: RoomOptions,
        allowed: AllowedTokens,
        outlet: Option<Outlet>,
        surroundings: Surroundings,
        origin: Origin,
    ) -> Self {
        RoomState {
            history: History::new(options.history),
            options: options.described(&id),
            id,
            origin,
            allowed,
            outlet,
            destroyed: false,
            members: Members::default(),
            surroundings,
            idle: 0,
        }
    }

    /// Returns its entry in `list`.
    pub(crate) fn listed(&self) -> Object {
        let pin = self.options.access.pin.is_some();
        OPTIONS
            .listed(&self.options)
            .with("pin_required", pin)
            .with("num_participants", self.members.len())
    }

    /// Returns its members for `listparticipants`.
    pub(crate) fn participants(&self) -> Vec<Value> {
        self.members.listed()
    }

    /// Returns the number of its members.
    pub(crate) fn members(&self) -> usize {
        self.members.len()
    }

    /// Returns the name of a member.
    pub(crate) fn username(&self, contact: &ContactId) -> Option<&str> {
        let member = self.members.of_contact(contact)?;
        Some(&member.name.username)
    }

    /// Adds a member. It gets the history, the notice of its own join, and on a data channel the
    /// `answer` for the former members, which this returns.
    pub(crate) fn join(
        &mut self,
        Joining { contact, join, way }: Joining<'_>,
        fields: Fields<'_>,
        answer: impl FnOnce(&[Value]) -> String,
    ) -> Result<Vec<Value>, Refusal> {
        self.check_there()?;
        self.options.access.check_pin(fields)?;
        if self.members.of_contact(&contact.id()).is_some() {
            return Err(Refusal::AlreadyInRoom(self.id.clone()));
        }
        if self.members.named(join.username).is_some() {
            return Err(Refusal::UsernameTaken);
        }
        self.allowed.check(join.token)?;
        let participants = self.members.listed();
        // The limit of members is the same for clients of the API.
        let answer = answer(&participants);
        if answer.len() > LONGEST {
            let size = answer.len();
            return Err(Refusal::LongAnswer {
                size,
                most: LONGEST,
            });
        }
        let member = Member {
            contact: contact.clone(),
            name: Name {
                username: join.username.to_owned(),
                display: join.display.map(str::to_owned),
            },
        };
        let (seen, name) = (member.to_object(), member.name.clone());
        tracing::info!(room = %self.id, username = name.username, "member joined");
        let is_first_of_node = self.members.add(member);
        let room = self.id.to_string();
        contact.entered(&room, &name);
        if is_first_of_node {
            contact.tell_names(&room, self.members.names());
            self.tell_history(contact);
        }
        if join.history.unwrap_or(true) {
            contact.send_all(self.history.iter());
        }
        let news = News {
            joined: Some(name),
            ..News::default()
        };
        self.send(self.message("join").with_all(seen.clone()), &news);
        if way == Way::Channel {
            contact.send(&answer);
        }
        let room = self.id.to_json();
        self.notify(contact.handle(), || {
            let event = Object::new().with("event", "join").with("room", room);
            event.with_all(seen).into()
        });
        Ok(participants)
    }

    /// Removes a member that leaves, and tells all, itself included.
    pub(crate) fn leave(&mut self, contact: &ContactId) -> Result<(), Refusal> {
        let username = self.username(contact).map(str::to_owned);
        let Some(username) = username.filter(|_| !self.destroyed) else {
            return Err(Refusal::NotInRoom(self.id.clone()));
        };
        self.send_leave(&username);
        self.removed(contact);
        Ok(())
    }

    /// Removes a member that is gone, if it is one, and tells the others.
    pub(crate) fn gone(&mut self, contact: &ContactId) {
        if let Some(username) = self.removed(contact) {
            self.send_leave(&username);
        }
    }

    fn send_leave(&self, username: &str) {
        let news = News {
            gone: Some(username.to_owned()),
            ..News::default()
        };
        self.send(self.message("leave").with("username", username), &news);
    }

    fn removed(&mut self, contact: &ContactId) -> Option<String> {
        let member = self.members.remove(contact)?;
        let username = member.name.username;
        tracing::info!(room = %self.id, username, "member left");
        member.contact.left(&self.id.to_string());
        self.notify(member.contact.handle(), || {
            let event = Object::new().with("event", "leave");
            let event = event.with("room", self.id.to_json());
            event.with("username", username.as_str()).into()
        });
        Some(username)
    }

    /// Sends a message of a member. If it has addressees, returns which of them it reached.
    pub(crate) fn say(
        &mut self,
        contact: &ContactId,
        text: &str,
        to: &Addressees<'_>,
    ) -> Result<Option<Map<String, Value>>, Refusal> {
        let author = self.members.of_contact(contact);
        let Some(author) = author.filter(|_| !self.destroyed) else {
            return Err(Refusal::NotInRoom(self.id.clone()));
        };
        let event = self
            .message("message")
            .with("from", author.name.username.as_str())
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
                        member.contact.send(&event);
                    }
                }
                self.surroundings.tally.whispers.add();
                Ok(Some(sent))
            }
            Addressees::All => {
                let remembered = event
                    .clone()
                    .with_some("display", author.name.display.clone());
                self.publish(event, remembered)?;
                self.surroundings.tally.messages.add();
                Ok(None)
            }
        }
    }

    /// Sends an announcement to all.
    pub(crate) fn announce(&mut self, text: &str) -> Result<(), Refusal> {
        let event = self
            .message("announcement")
            .with("date", now())
            .with("text", text);
        self.publish(event.clone(), event)?;
        self.surroundings.tally.announcements.add();
        Ok(())
    }

    /// Sends a message to all, adds it to the history in its other form, and posts it.
    fn publish(&mut self, event: Object, remembered: Object) -> Result<(), Refusal> {
        let event = self.text(event);
        check_fits(&event)?;
        let remembered = self.history.is_kept().then(|| self.text(remembered));
        let is_same = |kept: &String| *kept == event;
        let kept = remembered.clone();
        let news = News {
            kept: kept.map(|kept| if is_same(&kept) { String::new() } else { kept }),
            ..News::default()
        };
        self.send_text(&event, &news);
        if let Some(remembered) = remembered {
            self.history.push(remembered);
        }
        if let Some(outlet) = &self.outlet {
            outlet.push(event);
        }
        Ok(())
    }

    /// Kicks a member, and tells all, itself included.
    pub(crate) fn kick(&mut self, username: &str, by: Option<&Handle>) -> Result<(), Refusal> {
        let Some(member) = self.members.named(username) else {
            return Err(Refusal::NoSuchUser {
                username: username.to_owned(),
                room: self.id.clone(),
            });
        };
        let contact = member.contact.clone();
        let event = self.message("kicked").with("username", username);
        let news = News {
            gone: Some(username.to_owned()),
            ..News::default()
        };
        self.send(event.clone(), &news);
        self.members.remove(&contact.id());
        contact.left(&self.id.to_string());
        self.notify(by, || event.into());
        Ok(())
    }

    /// Tells the node of a member the history, if there is one.
    fn tell_history(&self, member: &Contact) {
        if self.history.is_kept() {
            member.tell_history(&self.id.to_string(), self.history.iter());
        }
    }

    fn send(&self, event: Object, news: &News) {
        self.send_text(&self.text(event), news);
    }

    fn send_text(&self, text: &str, news: &News) {
        self.members.send(&self.id.to_string(), text, news, None);
    }

    fn text(&self, message: Object) -> String {
        self.surroundings.json.text(&Value::from(message))
    }
}

impl Origin {
    /// A room that is made now by a request.
    pub(crate) fn made() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let since = since.unwrap_or_default().as_millis();
        Origin {
            since: u64::try_from(since).unwrap_or(u64::MAX),
            is_shared: false,
            is_adopted: false,
        }
    }

    /// A room of the configuration, or of the file of permanent rooms.
    pub(crate) fn configured() -> Self {
        Origin {
            is_shared: true,
            ..Origin::made()
        }
    }
}

/// Returns the local time in the format of messages.
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
