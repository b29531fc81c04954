//! Requests of the services about rooms and participants of other nodes.

use std::time::Duration;

use livekit_protocol as lk;
use portunus_room::{Answered, Whom};
use prost::Message;

use super::question::{Asked, FarAnswer, FarQuestion};
use crate::door::Door;
use crate::hall::person_id;
use crate::rpc;
use crate::services::{Answer, Code, ServiceError};

/// How long another node has time to answer.
const PATIENCE: Duration = Duration::from_secs(3);

/// The most nodes that a question is sent to: the home of the room, then the node of the participant.
const MAX_HOPS: u32 = 2;

impl Asked {
    /// Returns the room of a request of the services, and the identity of the participant if it is
    /// about one.
    fn subject(&self) -> Option<(&str, Option<&str>)> {
        Some(match self {
            Asked::Enter(_) | Asked::Publish(_) => return None,
            Asked::CreateRoom(it) => (&it.name, None),
            Asked::Room(name) => (name, None),
            Asked::DeleteRoom(it) => (&it.room, None),
            Asked::ListParticipants(it) => (&it.room, None),
            Asked::GetParticipant(it) | Asked::RemoveParticipant(it) => {
                (&it.room, Some(&it.identity))
            }
            Asked::MuteTrack(it) => (&it.room, Some(&it.identity)),
            Asked::UpdateParticipant(it) => (&it.room, Some(&it.identity)),
            Asked::UpdateSubscriptions(it) => (&it.room, Some(&it.identity)),
            Asked::SendData(it) => (&it.room, None),
            Asked::UpdateRoomMetadata(it) => (&it.room, None),
            Asked::MoveParticipant(it) => (&it.room, Some(&it.identity)),
            Asked::ForwardParticipant(it) => (&it.room, Some(&it.identity)),
            Asked::PerformRpc(it) => (&it.room, Some(&it.destination_identity)),
        })
    }

    /// Returns whether a node that uses the room can answer as well as its home.
    const fn is_of_view(&self) -> bool {
        matches!(
            self,
            Asked::ListParticipants(_) | Asked::SendData(_) | Asked::Room(_)
        )
    }

    fn patience(&self) -> Duration {
        match self {
            Asked::PerformRpc(request) => rpc::limit(request).saturating_add(PATIENCE),
            _ => PATIENCE,
        }
    }
}

impl Door {
    /// Has another node answer a request of the services, if that node knows more. Returns `None` if
    /// this one has to answer.
    pub(crate) async fn ask_elsewhere<T>(&self, asked: impl FnOnce() -> Asked) -> Option<Answer<T>>
    where
        T: Message + Default,
    {
        self.rooms.others()?;
        let answer = self.ask_other(asked(), 0).await?;
        let unreadable = |_| ServiceError::new(Code::Internal, "an answer cannot be read");
        Some(answer.and_then(|body| T::decode(&*body).map_err(unreadable)))
    }

    async fn ask_other(&self, asked: Asked, hops: u32) -> Option<Answer<Vec<u8>>> {
        let others = self.rooms.others()?;
        let (room, identity) = asked.subject()?;
        let whom = self.whom(room, identity, &asked, hops)?;
        let room = room.to_owned();
        let patience = asked.patience();
        let question = FarQuestion::new(asked, hops.saturating_add(1)).encode_to_vec();
        let silent = |node: &str| {
            let text = format!("the node {node} does not answer");
            ServiceError::new(Code::Unavailable, text)
        };
        let is_home = whom == Whom::Home;
        match others
            .ask_door(&room, whom.clone(), question, patience)
            .await
        {
            Answered::Answer(answer) => Some(match FarAnswer::decode(&*answer) {
                Ok(answer) => answer.into_result(),
                Err(_) => Err(ServiceError::new(
                    Code::Internal,
                    "an answer cannot be read",
                )),
            }),
            Answered::Here if is_home => None,
            Answered::Here => Some(Err(silent("of the participant"))),
            Answered::Silent(node) => Some(Err(silent(&node))),
        }
    }

    /// Returns who knows more than this node.
    fn whom(&self, name: &str, identity: Option<&str>, asked: &Asked, hops: u32) -> Option<Whom> {
        let rooms = self.rooms.get()?;
        let is_first = hops == 0;
        let Some(room) = rooms.find(name) else {
            return is_first.then_some(Whom::Home);
        };
        let id = identity.map(|identity| person_id(identity, rooms.has_numbers()));
        let state = room.lock();
        match id {
            Some(id) => match state.person(&id) {
                Some(person) => {
                    let node = person.node().filter(|_| hops < MAX_HOPS)?;
                    Some(Whom::Node(node.to_owned()))
                }
                None => is_first.then_some(Whom::Home),
            },
            None if state.is_used_here() && asked.is_of_view() => None,
            None => is_first.then_some(Whom::Home),
        }
    }

    /// Answers a question of another node about the room `name`.
    pub(super) async fn answer(
        &self,
        name: &str,
        node: &str,
        asked: Asked,
        hops: u32,
    ) -> FarAnswer {
        match &asked {
            Asked::Enter(client) => return self.let_in(name, node, client),
            Asked::Publish(identity) => return self.let_publish(name, node, identity),
            _ => {}
        }
        if let Some(answer) = self.ask_other(asked.clone(), hops.max(1)).await {
            return FarAnswer::of(answer);
        }
        FarAnswer::of(self.serve(asked).await)
    }

    /// Answers a request of the services for another node.
    async fn serve(&self, asked: Asked) -> Answer<Vec<u8>> {
        fn written<T: Message>(answer: &T) -> Vec<u8> {
            answer.encode_to_vec()
        }
        let done = |()| Vec::new();
        match asked {
            Asked::Enter(_) | Asked::Publish(_) => Ok(Vec::new()),
            Asked::CreateRoom(request) => self.change_room(&request).map(|it| written(&it)),
            Asked::Room(name) => self.room_here(&name).map(|it| written(&it)),
            Asked::DeleteRoom(request) => self.delete_here(&request.room).map(done),
            Asked::ListParticipants(request) => {
                let participants = self.participants_here(&request.room);
                Ok(written(&lk::ListParticipantsResponse { participants }))
            }
            Asked::GetParticipant(request) => {
                self.participant_here(&request).map(|it| written(&it))
            }
            Asked::RemoveParticipant(request) => self.remove_here(&request).map(done),
            Asked::MuteTrack(request) => {
                let track = self.mute_here(&request)?;
                Ok(written(&lk::MuteRoomTrackResponse { track }))
            }
            Asked::UpdateParticipant(request) => self.update_here(request).map(|it| written(&it)),
            Asked::UpdateSubscriptions(request) => self.subscribe_here(request).await.map(done),
            Asked::SendData(request) => self.send_here(request).map(done),
            Asked::UpdateRoomMetadata(request) => {
                self.metadata_here(request).map(|it| written(&it))
            }
            Asked::MoveParticipant(request) => self.move_to(&request).await.map(done),
            Asked::ForwardParticipant(request) => self.forward_here(&request).map(done),
            Asked::PerformRpc(request) => {
                let payload = self.call_here(request).await?;
                Ok(written(&lk::PerformRpcResponse { payload }))
            }
        }
    }
}
