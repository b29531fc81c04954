//! A client as a guest of rooms: its requests on data channels, which are answered there, and by
//! the API.

use std::sync::{Arc, Weak};

use portunus_core::media::DataPayload;
use portunus_core::{Asked, FieldError, Fields, Handle, JsonForm, Later, Object};
use portunus_resources::Asker;
use serde::Deserialize;
use serde_json::{Map, Value};
use tokio::time::Instant;

use crate::contact::{Contact, Name, NodeName};
use crate::management::success;
use crate::pace::{Pace, Rate};
use crate::refusal::Refusal;
use crate::requests::Membership;
use crate::room::{Addressees, Join, Joining, LONGEST, Room, Way};
use crate::shared::Shared;

/// The limit of bytes of a name, which all others get.
const MAX_NAME: usize = 256;
/// The limit of bytes of other texts than messages, as `server.max_text` has it for the API.
const MAX_TEXT: usize = 4_096;
/// The limit of bytes of a refused message that is parsed for its transaction.
const MAX_REFUSED: usize = 4_096;

/// A client as long as its handle is there, at this node or at another one.
#[derive(Debug)]
pub(crate) struct Guest {
    contact: Contact,
    shared: Arc<Shared>,
    messages: Pace,
    bytes: Pace,
    /// The rooms that it has joined. It may have left some since.
    rooms: Vec<Weak<Room>>,
}

/// A request of a data channel, with the key of its answer.
struct Request {
    members: Map<String, Value>,
    /// The name, as it was written.
    name: String,
    transaction: String,
}

/// The members that each request of a data channel has.
#[derive(Deserialize)]
struct Envelope {
    textroom: String,
    transaction: String,
}

/// A message of a member.
#[derive(Deserialize)]
struct Said<'a> {
    text: &'a str,
    ack: Option<bool>,
    to: Option<&'a str>,
    #[serde(borrow)]
    tos: Option<Vec<&'a str>>,
}

impl Guest {
    pub(crate) fn new(handle: &Handle, shared: Arc<Shared>) -> Self {
        let now = Instant::now();
        Guest {
            contact: Contact::Here(handle.clone()),
            messages: Pace::new(shared.intake.messages, now),
            bytes: Pace::new(shared.intake.bytes, now),
            shared,
            rooms: Vec::new(),
        }
    }

    /// Returns a client of another node, which limits what it sends.
    pub(crate) fn far(contact: Contact, shared: Arc<Shared>) -> Self {
        let (now, limitless) = (Instant::now(), Rate { rate: 0, burst: 0 });
        Guest {
            contact,
            messages: Pace::new(limitless, now),
            bytes: Pace::new(limitless, now),
            shared,
            rooms: Vec::new(),
        }
    }

    /// Answers a request of a member that comes by the API.
    pub(crate) fn by_api(
        &mut self,
        asked: Asked<Membership>,
        fields: Fields<'_>,
        asker: &Asker,
    ) -> Result<Object, Refusal> {
        check_texts(fields.0)?;
        match asked.permit(fields, asker.rights)? {
            Membership::Join => self.join(fields, asker, Way::Api, None),
            Membership::Leave => self.leave(fields),
            Membership::Message => {
                let text = fields.0.get("text").and_then(Value::as_str);
                self.admit(text.map_or(0, str::len))?;
                // The API answers each request.
                self.say(fields).map(|(answer, _)| answer)
            }
        }
    }

    /// Takes a message of a data channel. `asker` is the client at the setup of the PeerConnection.
    pub(crate) fn take(&mut self, payload: &DataPayload, asker: &Asker) {
        let text = match payload {
            DataPayload::Text(text) => text,
            DataPayload::Binary(_) => return self.shared.surroundings.tally.ignored.add(),
        };
        if let Err(refusal) = self.admit(text.len()) {
            return self.refuse(text, &refusal);
        }
        let Ok(message) = serde_json::from_str(text) else {
            return self.shared.surroundings.tally.ignored.add();
        };
        let request = match Request::read(message) {
            Ok(request) => request,
            Err(refusal) => return self.send(refusal.to_object(), None),
        };
        let fields = Fields(&request.members);
        let home = self.shared.home(&request.name, fields);
        let Some(home) = home else {
            return self.answer(&request, asker);
        };
        if let Err(refusal) = self.say_there(&home, &request, text, asker) {
            self.send(refusal.to_object(), Some(&request.transaction));
        }
    }

    /// Sends a request of the data channel to the home of its room.
    fn say_there(
        &self,
        home: &NodeName,
        request: &Request,
        text: &str,
        asker: &Asker,
    ) -> Result<(), Refusal> {
        check_texts(&request.members)?;
        asker.check_scope(Fields(&request.members), "room", false)?;
        if let Contact::Here(handle) = &self.contact {
            self.shared.cluster.say(home, handle, text, asker);
        }
        Ok(())
    }

    /// Answers a message of the data channel at another node, which that node has let pass.
    pub(crate) fn answer_text(&mut self, text: &str, asker: &Asker) {
        if let Ok(message) = serde_json::from_str(text) {
            match Request::read(message) {
                Ok(request) => self.answer(&request, asker),
                Err(refusal) => self.send(refusal.to_object(), None),
            }
        }
    }

    /// Has the home of a room answer a request by the API.
    pub(crate) fn ask(
        &mut self,
        home: &NodeName,
        fields: Fields<'_>,
        asker: &Asker,
    ) -> Result<Later, Refusal> {
        check_texts(fields.0)?;
        asker.check_scope(fields, "room", false)?;
        let text = fields.0.get("text").and_then(Value::as_str);
        if let Some(text) = text {
            self.admit(text.len())?;
        }
        let (guest, request) = (self.contact.handle(), fields.0.clone());
        Ok(self.shared.cluster.ask(home, guest, request, asker))
    }

    /// Takes a client of another node into a room that it was in elsewhere.
    pub(crate) fn come_back(&mut self, room: &Arc<Room>, name: &Name) {
        if room.lock().come_back(&self.contact, name) {
            self.note_room(room);
        }
    }

    /// Takes the client out of all rooms.
    pub(crate) fn go(&mut self) {
        for room in self.rooms.drain(..) {
            if let Some(room) = room.upgrade() {
                room.lock().gone(&self.contact.id());
            }
        }
        if let Contact::Here(handle) = &self.contact {
            self.shared.cluster.gone(handle);
        }
    }

    /// Returns its rooms, with its names there.
    pub(crate) fn memberships(&self) -> Vec<Value> {
        let rooms = self.rooms.iter().filter_map(Weak::upgrade);
        let memberships = rooms.filter_map(|room| {
            let state = room.lock();
            let username = state.username(&self.contact.id())?;
            let membership = Object::new().with("room", room.id.to_json());
            Some(membership.with("username", username).into())
        });
        let mut memberships: Vec<Value> = memberships.collect();
        if let Contact::Here(handle) = &self.contact {
            let elsewhere = self.shared.cluster.memberships(handle).into_iter();
            memberships.extend(elsewhere.map(Value::from));
        }
        memberships
    }

    /// Counts a message of `size` bytes. Refuses it if it is too long or beyond the rate.
    fn admit(&mut self, size: usize) -> Result<(), Refusal> {
        let now = Instant::now();
        let most = self.shared.intake.longest;
        let tally = &self.shared.surroundings.tally;
        if !self.messages.fits(1, now) || !self.bytes.fits(size.min(most), now) {
            tally.too_fast.add();
            return Err(Refusal::TooFast);
        }
        self.messages.take(1, now);
        self.bytes.take(size.min(most), now);
        if size > most {
            tally.too_long.add();
            return Err(Refusal::LongMessage { size, most });
        }
        Ok(())
    }

    /// Refuses a message without answering it. The answer has its transaction if that is cheap to
    /// find.
    fn refuse(&self, text: &str, refusal: &Refusal) {
        let short = Some(text).filter(|text| text.len() <= MAX_REFUSED);
        let message = short.and_then(|text| serde_json::from_str(text).ok());
        let request = message.and_then(|message| Request::read(message).ok());
        let transaction = request.as_ref().map(|request| request.transaction.as_str());
        self.send(refusal.to_object(), transaction);
    }

    fn answer(&mut self, request: &Request, asker: &Asker) {
        let answer = self.answer_to(request, asker);
        let answer = answer.unwrap_or_else(|refusal| Some(refusal.to_object()));
        if let Some(answer) = answer {
            self.send(answer, Some(&request.transaction));
        }
    }

    /// Returns the answer to a request, or `None` if it was sent, follows later, or is not wanted.
    fn answer_to(&mut self, request: &Request, asker: &Asker) -> Result<Option<Object>, Refusal> {
        let fields = Fields(&request.members);
        check_texts(&request.members)?;
        let Some(asked) = Asked::<Membership>::named(&request.name) else {
            self.manage(request, asker)?;
            return Ok(None);
        };
        match asked.permit(fields, asker.rights)? {
            Membership::Join => {
                self.join(fields, asker, Way::Channel, Some(&request.transaction))?;
                Ok(None)
            }
            Membership::Leave => self.leave(fields).map(Some),
            Membership::Message => {
                let (answer, is_wanted) = self.say(fields)?;
                Ok(is_wanted.then_some(answer))
            }
        }
    }

    /// Joins a room. On a data channel, the answer with `transaction` is sent before this returns.
    fn join(
        &mut self,
        fields: Fields<'_>,
        asker: &Asker,
        way: Way,
        transaction: Option<&str>,
    ) -> Result<Object, Refusal> {
        let shared = Arc::clone(&self.shared);
        shared.rooms.guarded(fields, asker.maker, || {
            let join: Join<'_> = fields.read()?;
            check_name("username", join.username)?;
            check_name("display", join.display.unwrap_or_default())?;
            asker.check_scope(fields, "room", false)?;
            let room = shared.rooms.named(fields)?;
            let joining = Joining {
                contact: &self.contact,
                join,
                way,
            };
            let json = self.json();
            let participants = room.lock().join(joining, fields, |participants| {
                let answer = success().with("participants", participants);
                addressed(json, answer, transaction)
            })?;
            self.note_room(&room);
            Ok(success().with("participants", participants))
        })
    }

    /// Notes that it is a member of a room, and forgets those that it has left.
    fn note_room(&mut self, room: &Arc<Room>) {
        let contact = self.contact.id();
        let is_in =
            |it: Arc<Room>| !Arc::ptr_eq(&it, room) && it.lock().username(&contact).is_some();
        self.rooms.retain(|it| it.upgrade().is_some_and(is_in));
        self.rooms.push(Arc::downgrade(room));
    }

    fn leave(&self, fields: Fields<'_>) -> Result<Object, Refusal> {
        let room = self.shared.rooms.named(fields)?;
        room.lock().leave(&self.contact.id())?;
        Ok(success())
    }

    /// Sends a message to the room. Returns the answer, and whether the client wants it.
    fn say(&self, fields: Fields<'_>) -> Result<(Object, bool), Refusal> {
        let said: Said<'_> = fields.read()?;
        let to = match (said.to, said.tos) {
            (Some(_), Some(_)) => return Err(Refusal::BothAddresses),
            (Some(to), None) => Addressees::Named(vec![to]),
            (None, Some(tos)) => Addressees::Named(tos),
            (None, None) => Addressees::All,
        };
        let room = self.shared.rooms.named(fields)?;
        let sent = room.lock().say(&self.contact.id(), said.text, &to)?;
        Ok((success().with_some("sent", sent), said.ack.unwrap_or(true)))
    }

    /// Answers a request that the API has too. A permanent change is answered once it is saved.
    fn manage(&self, request: &Request, asker: &Asker) -> Result<(), Refusal> {
        let fields = Fields(&request.members);
        // On data channels the answer is always `success`.
        let answered = |answer: Object| answer.with("textroom", "success");
        match self.shared.manage(&request.name, fields, asker)?.now() {
            Ok(answer) => self.send(answered(answer), Some(&request.transaction)),
            Err(later) => {
                let (contact, json) = (self.contact.clone(), self.json());
                let transaction = request.transaction.clone();
                tokio::spawn(async move {
                    let answer = answered(later.complete().await);
                    contact.send(&addressed(json, answer, Some(&transaction)));
                });
            }
        }
        Ok(())
    }

    /// Sends an answer, or the refusal of an answer that is too long.
    fn send(&self, answer: Object, transaction: Option<&str>) {
        let text = addressed(self.json(), answer, transaction);
        let size = text.len();
        if size <= LONGEST {
            return self.contact.send(&text);
        }
        let most = LONGEST;
        let refusal = Refusal::LongAnswer { size, most }.to_object();
        self.contact
            .send(&addressed(self.json(), refusal, transaction));
    }

    fn json(&self) -> JsonForm {
        self.shared.surroundings.json
    }
}

impl Request {
    fn read(message: Value) -> Result<Self, Refusal> {
        let Value::Object(members) = message else {
            // It counts as an object without the member.
            let name = "textroom".to_owned();
            return Err(FieldError::Missing(name).into());
        };
        let Envelope {
            textroom: name,
            transaction,
        } = Fields(&members).read()?;
        if transaction.len() > MAX_TEXT {
            return Err(too_long("transaction", MAX_TEXT));
        }
        Ok(Request {
            members,
            name,
            transaction,
        })
    }
}

/// Returns an answer as a text, with the transaction of its request.
fn addressed(json: JsonForm, answer: Object, transaction: Option<&str>) -> String {
    let answer = answer.with_some("transaction", transaction);
    json.text(&Value::from(answer))
}

/// Checks that no text but what is said is too long.
fn check_texts(members: &Map<String, Value>) -> Result<(), Refusal> {
    let is_long = |(name, value): &(&String, &Value)| {
        let text = value.as_str().filter(|_| *name != "text");
        text.is_some_and(|text| text.len() > MAX_TEXT)
    };
    match members.iter().find(is_long) {
        Some((name, _)) => Err(too_long(name, MAX_TEXT)),
        None => Ok(()),
    }
}

fn check_name(member: &str, name: &str) -> Result<(), Refusal> {
    match name.len() > MAX_NAME {
        true => Err(too_long(member, MAX_NAME)),
        false => Ok(()),
    }
}

fn too_long(member: &str, most: usize) -> Refusal {
    Refusal::LongText {
        name: member.chars().take(40).collect(),
        most,
    }
}
