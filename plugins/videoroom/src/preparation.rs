//! What is done before a request on a node of a cluster: a room of another node is made known here,
//! and the home of the room is asked.

use std::sync::Arc;

use portunus_core::{Asked, Fields, PluginRequest};
use portunus_resources::{Asker, FarAuthor, Id};
use portunus_room::{Answered, ClaimError, OtherNodes, PersonId, Unprepared, Work};
use serde_json::{Map, Value};

use crate::entry::Entry;
use crate::prepared::{Permit, Prepared};
use crate::question::{HomeAnswer, Question};
use crate::refusal::Refusal;
use crate::requests::{Management, Participation};
use crate::shared::Shared;

/// The members of a join that the home has to know.
const OF_JOINS: [&str; 7] = ["request", "room", "ptype", "id", "pin", "secret", "token"];

/// The members of a request about forwarders and remote publications that the home has to know.
const OF_PERMITS: [&str; 4] = ["request", "room", "id", "secret"];

impl Shared {
    /// Returns the work before a client joins a room. `publishes`: it begins to publish at once.
    pub(crate) fn prepare_join(
        &self,
        fields: Fields<'_>,
        asker: &Asker,
        publishes: bool,
    ) -> Option<Work<Prepared>> {
        let others = self.places.others()?.clone();
        let room = self.rooms.ids().required(fields, "room").ok()?;
        asker.check_scope(fields, "room", false).ok()?;
        let token = fields.string("token").ok().flatten();
        let body = fields.0.iter();
        let body = body.filter(|(name, _)| OF_JOINS.contains(&name.as_str()));
        let question = Question::Enter {
            author: FarAuthor::of(asker, &room, token),
            publishes,
            body: body.map(|(name, it)| (name.clone(), it.clone())).collect(),
        };
        let name = room.to_string();
        Some(Box::pin(async move {
            if let Err(Unprepared::NoHome(reason)) = others.prepare(&name).await {
                return Prepared::refused(&Refusal::Cluster(reason));
            }
            ask(others.as_ref(), &name, &question).await
        }))
    }

    /// Returns the work before a participant of `room` begins to publish.
    pub(crate) fn prepare_publication(&self, room: &Id, id: &PersonId) -> Option<Work<Prepared>> {
        let others = self.places.others()?.clone();
        let (name, id) = (room.to_string(), id.to_string());
        Some(Box::pin(async move {
            ask(others.as_ref(), &name, &Question::Publish { id }).await
        }))
    }

    /// Returns the work before a request about rooms.
    pub(crate) fn prepare_management(
        self: &Arc<Self>,
        request: Management,
        fields: Fields<'_>,
        asker: &Asker,
    ) -> Option<Work<Prepared>> {
        let others = self.places.others()?.clone();
        let makes = request == Management::Create;
        asker.check_scope(fields, "room", makes).ok()?;
        match request {
            Management::Create => self.prepare_room(others, fields, asker),
            Management::Edit
            | Management::Destroy
            | Management::Allowed
            | Management::Kick
            | Management::Moderate
            | Management::EnableRecording => {
                let room = self.rooms.ids().required(fields, "room").ok()?;
                let token = fields.string("token").ok().flatten();
                let question = Question::Manage {
                    author: FarAuthor::of(asker, &room, token),
                    body: fields.0.clone(),
                };
                let name = room.to_string();
                Some(Box::pin(async move {
                    ask(others.as_ref(), &name, &question).await
                }))
            }
            Management::RtpForward
            | Management::StopRtpForward
            | Management::ListForwarders
            | Management::PublishRemotely
            | Management::UnpublishRemotely
            | Management::ListRemotes
            | Management::AddRemotePublisher
            | Management::UpdateRemotePublisher
            | Management::RemoveRemotePublisher => {
                let room = self.rooms.ids().required(fields, "room").ok()?;
                let body = fields.0.iter();
                let body = body.filter(|(name, _)| OF_PERMITS.contains(&name.as_str()));
                let question = Question::Permit {
                    author: FarAuthor::of(asker, &room, None),
                    adds: request == Management::AddRemotePublisher,
                    body: body.map(|(name, it)| (name.clone(), it.clone())).collect(),
                };
                let name = room.to_string();
                Some(Box::pin(async move {
                    // This node does what the request asks for, so it has to have the room.
                    if let Err(Unprepared::NoHome(reason)) = others.prepare(&name).await {
                        return Prepared::refused(&Refusal::Cluster(reason));
                    }
                    ask(others.as_ref(), &name, &question).await
                }))
            }
            // Who is in the room is the answer.
            Management::ListParticipants => {
                let name = self.rooms.ids().required(fields, "room").ok()?.to_string();
                Some(Box::pin(async move {
                    // It is answered either way.
                    let _ = others.prepare(&name).await;
                    Prepared::Nothing
                }))
            }
            _ => None,
        }
    }

    /// Returns the work before a new room: no other node may have one with its id.
    fn prepare_room(
        self: &Arc<Self>,
        others: Arc<dyn OtherNodes>,
        fields: Fields<'_>,
        asker: &Asker,
    ) -> Option<Work<Prepared>> {
        let rights = self.rooms.rights(fields, asker.rights);
        // Strangers who may not make a room claim no name.
        Asked::unnamed(Management::Create)
            .permit(fields, rights)
            .ok()?;
        self.rooms.check_admin_key(fields).ok()?;
        let wanted = self.rooms.ids().wanted(fields, "room").ok()?;
        let saved = self.rooms.permanent(fields).ok()?;
        let maker = self.rooms.maker(asker.maker, saved.is_some());
        let reservation = self.rooms.reserve(wanted, maker).ok()?;
        let id = reservation.id().clone();
        Some(Box::pin(async move {
            match others.claim(&id.to_string()).await {
                Ok(()) => Prepared::Reserved(reservation),
                Err(ClaimError::Taken) => Prepared::refused(&Refusal::RoomExists(id)),
                Err(ClaimError::Unknown(reason)) => Prepared::refused(&Refusal::Cluster(reason)),
            }
        }))
    }
}

/// Asks the home of a room.
async fn ask(others: &dyn OtherNodes, name: &str, question: &Question) -> Prepared {
    let answer = match others.ask(name, question.to_text()).await {
        Answered::Here => return Prepared::Nothing,
        Answered::Answer(answer) => answer,
        // A join can be decided here, and so can what this node does. Anything else may have been done there.
        Answered::Silent(node) => {
            return match question {
                Question::Manage { .. } => Prepared::refused(&Refusal::Silent(node)),
                _ => Prepared::Nothing,
            };
        }
    };
    match HomeAnswer::parse(&answer) {
        Some(HomeAnswer::Managed { answer } | HomeAnswer::Refused { answer }) => {
            Prepared::Answer(answer)
        }
        Some(HomeAnswer::Entered { by_secret, id }) => Prepared::Entered(Entry {
            by_secret,
            id: id.map(PersonId::from),
        }),
        Some(HomeAnswer::Place) => Prepared::Place,
        Some(HomeAnswer::Permitted { id }) => Prepared::Permitted(Permit {
            id: id.map(PersonId::from),
        }),
        Some(HomeAnswer::Later) | None => Prepared::Nothing,
    }
}

/// Returns whether a request is a join that begins to publish at once.
pub(crate) fn publishes(request: Participation, describes: bool) -> bool {
    describes && request == Participation::JoinAndConfigure
}

/// Returns the request with this name.
pub(crate) fn named<R: PluginRequest>(body: &Map<String, Value>) -> Option<R> {
    let name = Fields(body).required_string("request").ok()?;
    R::ALL
        .iter()
        .find(|request| {
            let mut names = request.names().iter();
            names.any(|known| known.eq_ignore_ascii_case(name))
        })
        .copied()
}
