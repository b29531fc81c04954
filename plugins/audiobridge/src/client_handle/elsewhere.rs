//! A client in a room of another node: its PeerConnection is here, and it is in the room at the home.
//!
//! The home is asked before the request is handled ([`Attached::prepare_elsewhere`]).

use std::sync::{Arc, PoisonError};

use portunus_core::sdp::Direction;
use portunus_core::{
    Asked, Author, ExtensionMap, Fields, Handle, Jsep, JsepKind, LocalJsep, Message, Object,
    Preparation,
};
use portunus_dsp::{AudioCodec, SampleRate};
use portunus_resources::{Asker, FarAuthor, Id};
use serde_json::{Map, Value};

use super::admission::JoinRequest;
use super::listener::{WISH, check_codecs};
use super::{Answer, Attached, Place, alone};
use crate::cluster::{ClientMedia, Entered, Entrance, Stay, destroyed};
use crate::codec::{codec_name, named_codec};
use crate::line::Wish;
use crate::refusal::Refusal;
use crate::requests::Participation;
use crate::room::{Link, PeerLink, Profile, Who};
use crate::settings::{Configuring, Joining};

/// The answer of another node to a request.
#[derive(Debug)]
pub(super) enum Prepared {
    /// The client is in the room, or is refused by this answer.
    Entered(Result<Entered, Value>),
    /// The answer to `configure`.
    Answered(Value),
}

/// The place of a client in a room of another node.
#[derive(Debug)]
pub(super) struct Elsewhere {
    stay: Stay,
    /// The id of a participant. `None`: it listens.
    id: Option<Value>,
    codec: Option<AudioCodec>,
    /// What negotiations need.
    profile: Profile,
    /// Whether the client knows that it is in the room.
    is_welcome: bool,
}

impl Elsewhere {
    /// Returns the place, and the answer to the client.
    fn new(entered: Entered) -> Result<(Self, Map<String, Value>), Refusal> {
        let Entered { stay, room, entry } = entered;
        let codec = entry.codec.as_deref();
        let rate = SampleRate::from_hertz(entry.rate);
        let rate = rate.ok_or(Refusal::SamplingRate(entry.rate.into()))?;
        let place = Elsewhere {
            stay,
            id: entry.id,
            codec: codec.map(|codec| named_codec(Some(codec))).transpose()?,
            profile: Profile::elsewhere(room, rate, entry.spatial),
            is_welcome: false,
        };
        Ok((place, entry.event))
    }

    fn room(&self) -> &Id {
        self.profile.id()
    }

    /// Returns the state for administrators, unless the home has ended the stay.
    pub(super) fn state(&self) -> Option<Object> {
        let state = match self.id {
            Some(_) => "inroom",
            None => "listening",
        };
        self.stay.is_there().then(|| {
            Object::new()
                .with("state", state)
                .with("room", self.room().to_json())
                .with_some("id", self.id.clone())
                .with("node", self.stay.node())
        })
    }
}

impl Attached {
    /// Whether the client is in a room of another node, or listens to it.
    pub(super) fn is_elsewhere(&self) -> bool {
        matches!(&self.place, Place::Elsewhere(place) if place.stay.is_there())
    }

    /// Whether the client is in a room, or listens to one.
    fn is_somewhere(&self) -> bool {
        let handle = self.handle.id();
        match &self.place {
            Place::Idle => false,
            Place::In(room, id) => room.upgrade().is_some_and(|it| it.lock().has(id, handle)),
            Place::Listening(room) => {
                let room = room.upgrade();
                room.is_some_and(|room| room.lock().listeners.has(handle))
            }
            Place::Elsewhere(place) => place.stay.is_there(),
        }
    }

    /// Checks that the client is in no room of another node.
    pub(super) fn check_not_elsewhere(&self) -> Result<(), Refusal> {
        match &self.place {
            Place::Elsewhere(place) if place.stay.is_there() => Err(match place.id {
                Some(_) => Refusal::AlreadyJoined,
                None => Refusal::Listening,
            }),
            _ => Ok(()),
        }
    }

    pub(super) fn take_prepared(&self) -> Option<Prepared> {
        let prepared = self.prepared.lock();
        prepared.unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Asks the home of a room of another node, if the next request is about one.
    pub(super) fn prepare_elsewhere(
        &self,
        fields: Fields<'_>,
        author: &Author,
    ) -> Option<Preparation> {
        let name = fields.required::<&str>("request").ok()?;
        let asked = Asked::<Participation>::named(name)?;
        let is = |request| asked == Asked::unnamed(request);
        if is(Participation::Configure) {
            return self.prepare_change(fields, author);
        }
        let (listens, moves) = (is(Participation::Listen), is(Participation::ChangeRoom));
        if !(is(Participation::Join) || listens || moves) {
            return None;
        }
        // The request itself finds out what is wrong with it.
        let asker = Asker::author(&self.handle, author);
        asker.check_scope(fields, "room", false).ok()?;
        let room = self.shared.rooms.ids().required(fields, "room").ok()?;
        let node = self.shared.home_elsewhere(&room)?;
        let body = match moves {
            true => self.moving(fields, &room)?,
            false if self.is_somewhere() => return None,
            false => fields.0.clone(),
        };
        let token = fields.member::<&str>("token").ok().flatten();
        let entering = self.shared.cluster.enter(Entrance {
            handle: self.handle.clone(),
            node,
            author: FarAuthor::of(&asker, &room, token),
            room,
            listens,
            body,
        });
        let prepared = Arc::clone(&self.prepared);
        Some(Box::pin(async move {
            let entered = Prepared::Entered(entering.await);
            *prepared.lock().unwrap_or_else(PoisonError::into_inner) = Some(entered);
        }))
    }

    /// Returns the members of a request to move to `room`, or `None` if this client cannot.
    fn moving(&self, fields: Fields<'_>, room: &Id) -> Option<Map<String, Value>> {
        let mut body = fields.0.clone();
        let mut keep = |name: &str, value: Value| {
            body.entry(name).or_insert(value);
        };
        match &self.place {
            Place::Idle | Place::Listening(_) => return None,
            Place::In(from, id) => {
                let from = from.upgrade().filter(|from| from.id != *room)?;
                let state = from.lock();
                // A leg stays at its node.
                let is_there = state.has(id, self.handle.id()) && !state.is_by_rtp(id);
                let settings = state.settings_of(id).filter(|_| is_there)?;
                keep("codec", codec_name(settings.codec).into());
                keep("quality", settings.quality.into());
                keep("expected_loss", settings.expected_loss.into());
            }
            Place::Elsewhere(place) => {
                let is_there = place.stay.is_there() && place.room() != room;
                keep(
                    "codec",
                    codec_name(place.codec.filter(|_| is_there)?).into(),
                );
            }
        }
        Some(body)
    }

    fn prepare_change(&self, fields: Fields<'_>, author: &Author) -> Option<Preparation> {
        let Place::Elsewhere(place) = &self.place else {
            return None;
        };
        if !place.stay.is_there() {
            return None;
        }
        let asker = Asker::author(&self.handle, author);
        let author = FarAuthor::of(&asker, place.room(), None);
        let (node, stay) = (place.stay.node().to_owned(), place.stay.number());
        let asking = self
            .shared
            .cluster
            .ask(node, Some(stay), author, fields.0.clone());
        let prepared = Arc::clone(&self.prepared);
        Some(Box::pin(async move {
            let answered = Prepared::Answered(asking.await);
            *prepared.lock().unwrap_or_else(PoisonError::into_inner) = Some(answered);
        }))
    }

    /// Handles a request that another node has answered.
    pub(super) fn take_elsewhere(
        &mut self,
        asked: Asked<Participation>,
        message: &Message,
        prepared: Prepared,
    ) -> Answer {
        self.connection.refresh(&self.handle);
        match prepared {
            Prepared::Entered(Err(refusal)) => Ok(alone(refusal)),
            Prepared::Answered(answer) if answer.get("error_code").is_some() => Ok(alone(answer)),
            Prepared::Answered(answer) => self.configure_elsewhere(message, answer),
            Prepared::Entered(Ok(entered)) => {
                match asked == Asked::unnamed(Participation::ChangeRoom) {
                    true => self.change_to_elsewhere(entered),
                    false => self.enter_elsewhere(message, entered),
                }
            }
        }
    }

    /// Joins a room of another node, or listens to it.
    fn enter_elsewhere(&mut self, message: &Message, entered: Entered) -> Answer {
        let jsep = message.jsep.as_ref();
        self.connection.check(jsep)?;
        let fields = Fields(&message.body);
        if jsep.is_none() && fields.has("rtp") {
            return Err(Refusal::Unknown(
                "Plain RTP reaches only rooms of its own node".to_owned(),
            ));
        }
        let (place, event) = Elsewhere::new(entered)?;
        let offers = place.id.is_none() || fields.member("generate_offer")? == Some(true);
        let local = self.negotiate_elsewhere(&place, jsep, offers, false)?;
        self.place = Place::Elsewhere(Box::new(place));
        self.tell_media();
        Ok((event.into(), local))
    }

    /// Answers an offer, accepts an answer, or offers.
    fn negotiate_elsewhere(
        &mut self,
        place: &Elsewhere,
        jsep: Option<&Jsep>,
        offers: bool,
        again: bool,
    ) -> Result<Option<LocalJsep>, Refusal> {
        let codecs = place.codec.map(|codec| [codec]);
        let wish = match &codecs {
            Some(codecs) => Wish {
                codecs,
                direction: Direction::SendRecv,
            },
            None => WISH,
        };
        let (connection, profile) = (&mut self.connection, &place.profile);
        let Some(jsep) = jsep else {
            let codec = place.codec.unwrap_or(AudioCodec::Opus);
            let direction = wish.direction;
            let local =
                offers.then(|| connection.offer(&self.handle, profile, codec, direction, again));
            return local.transpose();
        };
        match jsep.kind {
            JsepKind::Offer => {
                if place.codec.is_none() {
                    check_codecs(jsep)?;
                }
                let offer = &jsep.description;
                Ok(Some(connection.answer(
                    &self.handle,
                    offer,
                    profile,
                    wish,
                )?))
            }
            JsepKind::Answer => {
                connection.agreed(&self.handle, &jsep.description);
                Ok(None)
            }
        }
    }

    /// Completes a `configure` to which the home has agreed.
    fn configure_elsewhere(&mut self, message: &Message, answer: Value) -> Answer {
        let jsep = message.jsep.as_ref();
        self.connection.check(jsep)?;
        let asked: Configuring<'_> = Fields(&message.body).read()?;
        let place = match std::mem::replace(&mut self.place, Place::Idle) {
            Place::Elsewhere(place) => place,
            other => {
                self.place = other;
                return Err(Refusal::NotInRoom("configure"));
            }
        };
        let again = asked.update && self.connection.is_ours();
        let offers = place.id.is_some() && (again || asked.generate_offer);
        let local = self.negotiate_elsewhere(&place, jsep, offers, again);
        self.place = Place::Elsewhere(place);
        let local = local?;
        if jsep.is_some() {
            self.tell_media();
        }
        Ok((answer, local))
    }

    /// Moves to a room of another node with the same PeerConnection.
    fn change_to_elsewhere(&mut self, entered: Entered) -> Answer {
        let (place, mut event) = Elsewhere::new(entered)?;
        match std::mem::replace(&mut self.place, Place::Elsewhere(Box::new(place))) {
            Place::Idle | Place::Listening(_) => {}
            Place::In(room, id) => {
                if let Some(room) = room.upgrade() {
                    let handle = self.handle.id();
                    let mut room = room.lock();
                    drop(room.take_link(&id, handle));
                    room.leave(&id, handle);
                }
            }
            Place::Elsewhere(before) => before.stay.leave(),
        }
        event.insert("audiobridge".to_owned(), "roomchanged".into());
        self.tell_media();
        Ok(alone(event.into()))
    }

    /// Moves from a room of another node to one of this node with the same PeerConnection.
    pub(super) fn change_from_elsewhere(
        &mut self,
        message: &Message,
        asker: &Asker,
    ) -> Result<Value, Refusal> {
        let Place::Elsewhere(place) = &self.place else {
            return Err(Refusal::NotInRoom("change room"));
        };
        let codec = place.codec.ok_or(Refusal::NotInRoom("change room"))?;
        let mut body = message.body.clone();
        body.entry("codec").or_insert(codec_name(codec).into());
        let fields = Fields(&body);
        let wish: Joining<'_> = fields.read()?;
        let request = JoinRequest::read(fields, &wish, &self.shared)?;
        if self.shared.rooms.ids().required(fields, "room")? == *place.room() {
            return Err(Refusal::SameRoom);
        }
        let room = self.shared.rooms.named(fields)?;
        let mut state = room.lock();
        let mut join = self.shared.admitted(&state, &request, asker, false)?;
        if let Some(link) = self.connection.link() {
            join.link = Link::Peer(link.clone());
            join.setup = self.connection.is_up();
        }
        let (id, setup) = (join.id.clone(), join.setup);
        state.join(Who::Client(self.handle.clone()), join);
        state.notify_joined(&id, setup);
        let changed = state.welcome(&id, "roomchanged");
        drop(state);
        let place = Place::In(Arc::downgrade(&room), id);
        if let Place::Elsewhere(before) = std::mem::replace(&mut self.place, place) {
            before.stay.leave();
        }
        Ok(changed.into())
    }

    /// Leaves a room of another node. The PeerConnection stays and is silent.
    pub(super) fn leave_elsewhere(&mut self) -> Result<Value, Refusal> {
        let Place::Elsewhere(place) = std::mem::replace(&mut self.place, Place::Idle) else {
            return Err(Refusal::NotInRoom("leave"));
        };
        let left = Object::new()
            .with("audiobridge", "left")
            .with("room", place.room().to_json())
            .with_some("id", place.id);
        place.stay.leave();
        Ok(left.into())
    }

    pub(super) fn reset_decoder_elsewhere(&self) {
        if let Place::Elsewhere(place) = &self.place {
            place.stay.reset_decoder();
        }
    }

    /// Tells the home of a room of another node of the client's media.
    pub(super) fn tell_media(&self) {
        if let Place::Elsewhere(place) = &self.place {
            let link = self.connection.link();
            let media = link.map(|link| client_media(&self.handle, link));
            let is_up = self.connection.is_up();
            place.stay.set_media(media.as_ref(), place.codec, is_up);
        }
    }

    /// The client has got the answer to its entry: the events since follow.
    pub(super) fn welcome_elsewhere(&mut self) {
        let Place::Elsewhere(place) = &mut self.place else {
            return;
        };
        let is_news = !std::mem::replace(&mut place.is_welcome, true);
        if is_news && !place.stay.welcomed() {
            self.handle.push(None, destroyed(place.room()), None);
        }
    }
}

/// Describes the media of a client to other nodes.
fn client_media(handle: &Handle, link: &PeerLink) -> ClientMedia {
    let line = &link.line;
    let negotiated = handle.negotiated();
    let media = negotiated.as_ref().and_then(|negotiated| {
        let mut all = negotiated.media.iter();
        all.find(|media| media.mid == line.mid)
    });
    ClientMedia {
        track: link.track,
        codec: line.codec,
        talks: line.receives,
        hears: line.sends,
        extensions: media.map_or_else(ExtensionMap::default, |media| media.extensions),
        levels: line.levels,
        fec: line.fec,
        red: line.red,
    }
}
