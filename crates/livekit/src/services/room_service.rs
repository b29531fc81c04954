//! `RoomService`: grants, names and sizes are checked here, and the rooms do the rest.

use livekit_protocol as lk;

use super::exchange::Format;
use super::json::schema;
use super::method::{Method, RoomMethod};
use super::{Code, Rooms, ServiceError, Services};
use crate::limits;
use crate::token::{Grants, VideoGrant};

/// The length of a nonce of data, in bytes.
const NONCE: usize = 16;

/// The longest name of a deployment of agents, in bytes.
const DEPLOYMENT: usize = 64;

/// A request whose token holds.
#[derive(Debug)]
pub(super) struct Call<'a> {
    pub(super) grants: &'a Grants,
    pub(super) format: Format,
    pub(super) body: &'a [u8],
}

impl Call<'_> {
    /// Carries a call of any service out.
    pub(super) async fn any<S: Services>(
        &self,
        method: Method,
        services: &S,
    ) -> Result<Vec<u8>, ServiceError> {
        match method {
            Method::Room(method) => self.carry_out(method, services).await,
            Method::Egress(method) => self.egress(method, services).await,
            Method::Ingress(method) => self.ingress(method, services).await,
            Method::Sip(method) => self.sip(method, services).await,
            Method::Missing(_) => Err(ServiceError::unimplemented("method is not implemented")),
        }
    }

    /// Carries the call out, and returns the body of the answer.
    pub(super) async fn carry_out<R: Rooms>(
        &self,
        method: RoomMethod,
        rooms: &R,
    ) -> Result<Vec<u8>, ServiceError> {
        let (format, body) = (self.format, self.body);
        match method {
            RoomMethod::CreateRoom => {
                let request: lk::CreateRoomRequest = format.read(body)?;
                self.require(|video| video.room_create)?;
                check_new_room(&request)?;
                format.write(&rooms.create_room(request).await?, &schema::ROOM)
            }
            RoomMethod::ListRooms => {
                let request: lk::ListRoomsRequest = format.read(body)?;
                self.require(|video| video.room_list)?;
                let rooms = rooms.list_rooms(request.names).await?;
                format.write(&lk::ListRoomsResponse { rooms }, &schema::LIST_ROOMS)
            }
            RoomMethod::DeleteRoom => {
                let request: lk::DeleteRoomRequest = format.read(body)?;
                self.require(|video| video.room_create)?;
                rooms.delete_room(request.room).await?;
                format.write(&lk::DeleteRoomResponse {}, &schema::EMPTY)
            }
            RoomMethod::ListParticipants => {
                let request: lk::ListParticipantsRequest = format.read(body)?;
                self.require_admin(&request.room)?;
                let participants = rooms.list_participants(request.room).await?;
                let answer = lk::ListParticipantsResponse { participants };
                format.write(&answer, &schema::LIST_PARTICIPANTS)
            }
            RoomMethod::GetParticipant => {
                let request: lk::RoomParticipantIdentity = format.read(body)?;
                self.require_admin(&request.room)?;
                let participant = rooms.get_participant(request).await?;
                format.write(&participant, &schema::PARTICIPANT)
            }
            RoomMethod::RemoveParticipant => {
                let request: lk::RoomParticipantIdentity = format.read(body)?;
                self.require_admin(&request.room)?;
                rooms.remove_participant(request).await?;
                format.write(&lk::RemoveParticipantResponse {}, &schema::EMPTY)
            }
            RoomMethod::MutePublishedTrack => {
                let request: lk::MuteRoomTrackRequest = format.read(body)?;
                self.require_admin(&request.room)?;
                let track = rooms.mute_published_track(request).await?;
                format.write(&lk::MuteRoomTrackResponse { track }, &schema::MUTE_TRACK)
            }
            RoomMethod::UpdateParticipant => {
                let request: lk::UpdateParticipantRequest = format.read(body)?;
                check_participant(&request)?;
                self.require_admin(&request.room)?;
                let participant = rooms.update_participant(request).await?;
                format.write(&participant, &schema::PARTICIPANT)
            }
            RoomMethod::UpdateSubscriptions => {
                let request: lk::UpdateSubscriptionsRequest = format.read(body)?;
                self.require_admin(&request.room)?;
                rooms.update_subscriptions(request).await?;
                format.write(&lk::UpdateSubscriptionsResponse {}, &schema::EMPTY)
            }
            RoomMethod::SendData => {
                let request: lk::SendDataRequest = format.read(body)?;
                self.require_admin(&request.room)?;
                check_nonce(&request.nonce)?;
                rooms.send_data(request).await?;
                format.write(&lk::SendDataResponse {}, &schema::EMPTY)
            }
            RoomMethod::UpdateRoomMetadata => {
                let request: lk::UpdateRoomMetadataRequest = format.read(body)?;
                check_metadata(&request.metadata)?;
                self.require_admin(&request.room)?;
                let room = rooms.update_room_metadata(request).await?;
                format.write(&room, &schema::ROOM)
            }
            RoomMethod::ForwardParticipant => {
                let request: lk::ForwardParticipantRequest = format.read(body)?;
                self.require_destination(&request.room, &request.destination_room)?;
                rooms.forward_participant(request).await?;
                format.write(&lk::ForwardParticipantResponse {}, &schema::EMPTY)
            }
            RoomMethod::MoveParticipant => {
                let request: lk::MoveParticipantRequest = format.read(body)?;
                self.require_destination(&request.room, &request.destination_room)?;
                rooms.move_participant(request).await?;
                format.write(&lk::MoveParticipantResponse {}, &schema::EMPTY)
            }
            RoomMethod::CreateDispatch => {
                let request: lk::CreateAgentDispatchRequest = format.read(body)?;
                self.require_admin(&request.room)?;
                check_deployment(&request.deployment)?;
                check_metadata(&request.metadata)?;
                check_attributes(&request.attributes)?;
                let dispatch = rooms.create_dispatch(request).await?;
                format.write(&dispatch, &schema::DISPATCH)
            }
            RoomMethod::DeleteDispatch => {
                let request: lk::DeleteAgentDispatchRequest = format.read(body)?;
                self.require_admin(&request.room)?;
                let dispatch = rooms.delete_dispatch(request).await?;
                format.write(&dispatch, &schema::DISPATCH)
            }
            RoomMethod::ListDispatch => {
                let request: lk::ListAgentDispatchRequest = format.read(body)?;
                self.require_admin(&request.room)?;
                let agent_dispatches = rooms.list_dispatch(request).await?;
                let answer = lk::ListAgentDispatchResponse { agent_dispatches };
                format.write(&answer, &schema::LIST_DISPATCHES)
            }
            RoomMethod::PerformRpc => {
                let request: lk::PerformRpcRequest = format.read(body)?;
                self.require_admin(&request.room)?;
                if request.destination_identity.is_empty() {
                    let text = "destination identity is required";
                    return Err(ServiceError::new(Code::InvalidArgument, text));
                }
                let payload = rooms.perform_rpc(request).await?;
                format.write(&lk::PerformRpcResponse { payload }, &schema::PERFORM_RPC)
            }
        }
    }

    pub(super) fn require(&self, has: impl Fn(&VideoGrant) -> bool) -> Result<(), ServiceError> {
        match self.grants.video.as_ref().is_some_and(has) {
            true => Ok(()),
            false => Err(ServiceError::denied()),
        }
    }

    fn require_admin(&self, room: &str) -> Result<(), ServiceError> {
        self.require(|video| video.is_admin_of(room))
    }

    fn require_destination(&self, room: &str, destination: &str) -> Result<(), ServiceError> {
        self.require(|video| video.is_admin_of(room) && video.destination_room == destination)?;
        if room == destination {
            let text = "destination room cannot be the same as source room";
            return Err(ServiceError::argument(text));
        }
        Ok(())
    }
}

fn check_new_room(request: &lk::CreateRoomRequest) -> Result<(), ServiceError> {
    if request.name.len() > limits::ROOM_NAME {
        let text = format!(
            "room name length exceeds limits: max length {}",
            limits::ROOM_NAME
        );
        return Err(ServiceError::new(Code::InvalidArgument, text));
    }
    check_metadata(&request.metadata)?;
    request.agents.iter().try_for_each(|agent| {
        check_metadata(&agent.metadata)?;
        check_attributes(&agent.attributes)
    })
}

fn check_participant(request: &lk::UpdateParticipantRequest) -> Result<(), ServiceError> {
    if request.name.len() > limits::PARTICIPANT_NAME {
        let what = "name length exceeds limits";
        return Err(ServiceError::exceeds(what, limits::PARTICIPANT_NAME));
    }
    check_metadata(&request.metadata)?;
    check_attributes(&request.attributes)
}

fn check_metadata(metadata: &str) -> Result<(), ServiceError> {
    match metadata.len() <= limits::METADATA {
        true => Ok(()),
        false => Err(ServiceError::exceeds(
            "metadata size exceeds limits",
            limits::METADATA,
        )),
    }
}

fn check_attributes(
    attributes: &std::collections::HashMap<String, String>,
) -> Result<(), ServiceError> {
    match limits::attributes_fit(attributes) {
        true => Ok(()),
        false => Err(ServiceError::exceeds(
            "attribute size exceeds limits",
            limits::ATTRIBUTES,
        )),
    }
}

/// Checks the name of a deployment of agents.
fn check_deployment(deployment: &str) -> Result<(), ServiceError> {
    let fault = |text: String| Err(ServiceError::new(Code::InvalidArgument, text));
    if deployment.len() > DEPLOYMENT {
        return fault(format!("deployment exceeds {DEPLOYMENT} bytes"));
    }
    let is_wrong = |byte: u8| byte == b'_' || byte <= b' ' || byte == 0x7f;
    let mut bytes = deployment.bytes().enumerate();
    match bytes.find(|(_, byte)| is_wrong(*byte)) {
        None => Ok(()),
        Some((_, b'_')) => fault("deployment contains reserved character '_'".to_owned()),
        Some((at, _)) => fault(format!(
            "deployment contains whitespace or control byte at position {at}"
        )),
    }
}

fn check_nonce(nonce: &[u8]) -> Result<(), ServiceError> {
    let length = nonce.len();
    if length == 0 || length == NONCE {
        return Ok(());
    }
    let text = format!("nonce should be 16-bytes or not present, got: {length} bytes");
    Err(ServiceError::new(Code::InvalidArgument, text))
}
