//! The rooms, as the services see them.

use std::future::Future;

use livekit_protocol as lk;
use portunus_core::{Purse, Requester};

use super::{
    EgressAnswer, EgressRequest, IngressAnswer, IngressRequest, ServiceError, SipAnswer, SipRequest,
};

/// The result of an operation.
pub type Answer<T> = Result<T, ServiceError>;

/// Everything behind the services. Grants are checked already.
pub trait Services: Rooms {
    /// Returns the purse that pays for the requests of a client.
    fn purse(&self, requester: Requester) -> Purse;

    /// Serves a request to the service `Egress`.
    fn egress(&self, request: EgressRequest) -> impl Future<Output = Answer<EgressAnswer>> + Send;

    /// Serves a request to the service `Ingress`.
    fn ingress(
        &self,
        request: IngressRequest,
    ) -> impl Future<Output = Answer<IngressAnswer>> + Send;

    /// Serves a request to the service `SIP`.
    fn sip(&self, request: SipRequest) -> impl Future<Output = Answer<SipAnswer>> + Send;
}

/// The rooms behind the services. Grants, names and sizes are checked already.
pub trait Rooms: Send + Sync + 'static {
    /// Creates a room, or changes the room of this name.
    fn create_room(
        &self,
        request: lk::CreateRoomRequest,
    ) -> impl Future<Output = Answer<lk::Room>> + Send;

    /// Returns the rooms of these names, or all rooms if there are no names.
    fn list_rooms(&self, names: Vec<String>) -> impl Future<Output = Answer<Vec<lk::Room>>> + Send;

    /// Ends a room. Its participants leave with `ROOM_DELETED`.
    fn delete_room(&self, room: String) -> impl Future<Output = Answer<()>> + Send;

    /// Returns the participants of a room, none if there is no such room.
    fn list_participants(
        &self,
        room: String,
    ) -> impl Future<Output = Answer<Vec<lk::ParticipantInfo>>> + Send;

    /// Returns a participant.
    fn get_participant(
        &self,
        request: lk::RoomParticipantIdentity,
    ) -> impl Future<Output = Answer<lk::ParticipantInfo>> + Send;

    /// Removes a participant, who leaves with `PARTICIPANT_REMOVED`.
    fn remove_participant(
        &self,
        request: lk::RoomParticipantIdentity,
    ) -> impl Future<Output = Answer<()>> + Send;

    /// Mutes or unmutes a track. Returns `None` if there is no such track.
    fn mute_published_track(
        &self,
        request: lk::MuteRoomTrackRequest,
    ) -> impl Future<Output = Answer<Option<lk::TrackInfo>>> + Send;

    /// Changes the name, metadata, attributes and permissions of a participant.
    fn update_participant(
        &self,
        request: lk::UpdateParticipantRequest,
    ) -> impl Future<Output = Answer<lk::ParticipantInfo>> + Send;

    /// Subscribes a participant to tracks, or ends its subscriptions.
    fn update_subscriptions(
        &self,
        request: lk::UpdateSubscriptionsRequest,
    ) -> impl Future<Output = Answer<()>> + Send;

    /// Sends data to participants.
    fn send_data(&self, request: lk::SendDataRequest) -> impl Future<Output = Answer<()>> + Send;

    /// Changes the metadata of a room.
    fn update_room_metadata(
        &self,
        request: lk::UpdateRoomMetadataRequest,
    ) -> impl Future<Output = Answer<lk::Room>> + Send;

    /// Publishes the tracks of a participant in another room, too.
    fn forward_participant(
        &self,
        request: lk::ForwardParticipantRequest,
    ) -> impl Future<Output = Answer<()>> + Send;

    /// Moves a participant to another room.
    fn move_participant(
        &self,
        request: lk::MoveParticipantRequest,
    ) -> impl Future<Output = Answer<()>> + Send;

    /// Dispatches an agent to a room, and makes the room if there is none.
    fn create_dispatch(
        &self,
        request: lk::CreateAgentDispatchRequest,
    ) -> impl Future<Output = Answer<lk::AgentDispatch>> + Send;

    /// Ends a dispatch with its jobs.
    fn delete_dispatch(
        &self,
        request: lk::DeleteAgentDispatchRequest,
    ) -> impl Future<Output = Answer<lk::AgentDispatch>> + Send;

    /// Returns the dispatches of a room, or the one with this id.
    fn list_dispatch(
        &self,
        request: lk::ListAgentDispatchRequest,
    ) -> impl Future<Output = Answer<Vec<lk::AgentDispatch>>> + Send;

    /// Calls a method of a participant, and returns what it answers.
    fn perform_rpc(
        &self,
        request: lk::PerformRpcRequest,
    ) -> impl Future<Output = Answer<String>> + Send;
}
