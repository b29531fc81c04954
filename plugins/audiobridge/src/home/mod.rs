//! The clients of other nodes in rooms of this one: what they ask for, and what becomes of it.

mod places;

use std::time::Duration;

use portunus_core::{Asked, Fields, Reply};
use portunus_resources::{Asker, FarAuthor, RoomContent};
use serde_json::{Map, Value};

use crate::client_handle::{JoinRequest, ListenRequest, ok};
use crate::cluster::{Entering, FarClient, FarEntry, FarMedia, Home, OwnRoom, RoomRecord, StayId};
use crate::codec::codec_name;
use crate::options::OPTIONS;
use crate::refusal::Refusal;
use crate::requests::{Management, Participation};
use crate::room::{Room, RoomState, Who};
use crate::settings::{Configuring, Joining};
use crate::shared::Shared;

pub(crate) use places::Places;

use places::{Place, Role};

impl Home for Shared {
    fn own(&self) -> Vec<OwnRoom> {
        let own = self.rooms.all().into_iter().map(|room| {
            let state = room.lock();
            OwnRoom {
                id: room.id.to_string(),
                record: RoomRecord {
                    listed: state.listed().into(),
                    is_private: state.access().is_private,
                    is_used: state.is_used(),
                },
            }
        });
        own.collect()
    }

    fn is_used_by(&self, node: &str) -> bool {
        self.places.is_used_by(node)
    }

    fn enter(&self, client: FarClient, request: Entering) -> Result<FarEntry, Value> {
        let entered = self.enter_from(client, &request);
        entered.map_err(|refusal| refusal.to_json())
    }

    fn ask(
        &self,
        node: &str,
        stay: Option<StayId>,
        author: &FarAuthor,
        body: &Map<String, Value>,
    ) -> Reply {
        let place = stay.and_then(|stay| self.places.get(node, stay));
        let reply = self.answer_from(place, author, Fields(body));
        reply.unwrap_or_else(|refusal| Reply::Success(refusal.to_json()))
    }

    fn set_media(&self, node: &str, stay: StayId, media: FarMedia) {
        if let Some((room, role)) = self.places.get(node, stay).and_then(Place::room) {
            let mut state = room.lock();
            match role {
                Role::In(id, number) => state.set_far_media(&id, number, media),
                Role::Listening => state.set_far_listener(node, stay, &media),
            }
        }
    }

    fn leave(&self, node: &str, stay: StayId, lost: bool) {
        if let Some((room, role)) = self.places.take(node, stay).and_then(Place::room) {
            end(&room, role, (node, stay), lost);
        }
    }

    fn reset_decoder(&self, node: &str, stay: StayId) {
        if let Some((room, Role::In(id, _))) = self.places.get(node, stay).and_then(Place::room) {
            room.lock().reset_decoder(&id);
        }
    }

    fn destroy(&self, room: &str, permanently: Option<Duration>) {
        let Some(id) = self.rooms.ids().parse(room) else {
            return;
        };
        match permanently {
            Some(ago) => drop(self.rooms.end_permanently_too(&id, ago)),
            None => self.rooms.end_too(&id),
        }
    }

    fn ended_ago(&self, room: &str) -> Option<Duration> {
        let id = self.rooms.ids().parse(room)?;
        self.rooms.is_listed_elsewhere(&id)
    }

    fn edit(&self, room: &str, body: &Map<String, Value>) {
        let Some(id) = self.rooms.ids().parse(room) else {
            return;
        };
        let edit = |room: &mut RoomState| {
            let options = OPTIONS.edited(room.profile.options(), Fields(body))?;
            room.profile.set_options(options);
            Ok::<_, Refusal>(())
        };
        if let Err(error) = self.rooms.edit_permanently_too(&id, edit) {
            tracing::warn!(%id, %error, "audiobridge: a room is not changed as at its home");
        }
    }

    fn forget(&self, node: &str, stay: StayId) {
        drop(self.places.take(node, stay));
    }

    fn linked(&self, node: &str) {
        let places = self.places.of_node(node).into_iter();
        for (room, role) in places.filter_map(Place::room) {
            if let Role::In(id, number) = role {
                room.lock().retake_far_source(&id, number);
            }
        }
    }

    fn void(&self, node: &str) {
        for (stay, place) in self.places.take_node(node) {
            if let Some((room, role)) = place.room() {
                end(&room, role, (node, stay), true);
            }
        }
    }
}

fn end(room: &Room, role: Role, (node, stay): (&str, StayId), lost: bool) {
    let mut state = room.lock();
    match role {
        Role::In(id, number) => state.depart(&id, number, lost),
        Role::Listening => state.remove_far_listener(node, stay),
    }
}

impl Shared {
    fn enter_from(&self, client: FarClient, request: &Entering) -> Result<FarEntry, Refusal> {
        let fields = Fields(&request.body);
        let asker = request.author.asker(false);
        if !self.places.has_space(client.node()) {
            let full = "Too many clients of that node are in rooms of this one";
            return Err(Refusal::Unknown(full.to_owned()));
        }
        self.rooms.guarded(fields, asker.maker, || {
            let rights = self.rooms.rights(fields, asker.rights);
            let name = fields.required::<&str>("request")?;
            let asked = Asked::<Participation>::named(name);
            let asked = asked.ok_or_else(|| Refusal::UnknownRequest(name.to_owned()))?;
            asked.permit(fields, rights)?;
            let asker = Asker { rights, ..asker };
            match request.listens {
                true => self.listen_from(client, fields, &asker),
                false => self.join_from(client, fields, &asker),
            }
        })
    }

    fn join_from(
        &self,
        client: FarClient,
        fields: Fields<'_>,
        asker: &Asker,
    ) -> Result<FarEntry, Refusal> {
        let wish: Joining<'_> = fields.read()?;
        let request = JoinRequest::read(fields, &wish, self)?;
        let room = self.rooms.named(fields)?;
        let mut state = room.lock();
        let join = self.admitted(&state, &request, asker, false)?;
        let (id, codec) = (join.id.clone(), join.settings.codec);
        let number = state.join(Who::Far(client.clone()), join);
        let role = Role::In(id.clone(), number);
        self.places.add(client.node(), client.stay(), &room, role);
        // The others see its media later, even if it flows already.
        state.notify_joined(&id, false);
        let event = state.welcome(&id, "joined");
        Ok(FarEntry {
            id: Some(id.to_json()),
            codec: Some(codec_name(codec).to_owned()),
            ..entry(&state, event.into())
        })
    }

    fn listen_from(
        &self,
        client: FarClient,
        fields: Fields<'_>,
        asker: &Asker,
    ) -> Result<FarEntry, Refusal> {
        let request: ListenRequest<'_> = fields.read()?;
        let room = self.rooms.named(fields)?;
        let mut state = room.lock();
        state.profile.admit(fields, request.token, asker)?;
        let (node, stay) = (client.node(), client.stay());
        self.places.add(node, stay, &room, Role::Listening);
        let event = state.message("listening").into();
        state.add_far_listener(client);
        Ok(entry(&state, event))
    }

    /// Answers a request of a client of another node, which is perhaps in the room.
    fn answer_from(
        &self,
        place: Option<Place>,
        author: &FarAuthor,
        fields: Fields<'_>,
    ) -> Result<Reply, Refusal> {
        let name = fields.required::<&str>("request")?;
        if let Some(asked) = Asked::<Management>::named(name) {
            let named = self.rooms.ids().read(fields, "id").ok().flatten();
            let own = place.as_ref().and_then(Place::id);
            let is_own = own.is_some() && own == named.as_ref();
            return self.manage_here(asked, fields, author.asker(is_own));
        }
        let unknown = || Refusal::UnknownRequest(name.to_owned());
        let asked = Asked::<Participation>::named(name).ok_or_else(unknown)?;
        let asker = author.asker(true);
        let rights = self.rooms.rights(fields, asker.rights);
        if asked.permit(fields, rights)? != Participation::Configure {
            return Err(unknown());
        }
        let gone = || Refusal::NotInRoom("configure");
        let (room, role) = place.and_then(Place::room).ok_or_else(gone)?;
        let Role::In(id, _) = role else {
            return Ok(Reply::Success(ok()));
        };
        let wish: Configuring<'_> = fields.read()?;
        let mut state = room.lock();
        if let Some(change) = state.change(&id, &wish, rights)? {
            state.configure(&id, change);
        }
        Ok(Reply::Success(ok()))
    }
}

/// Returns an entry without what only participants have.
fn entry(state: &RoomState, event: Map<String, Value>) -> FarEntry {
    let options = state.profile.options();
    FarEntry {
        id: None,
        event,
        codec: None,
        rate: options.rate.hertz(),
        spatial: options.spatial,
    }
}
