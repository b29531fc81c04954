//! Requests of the services that this node answers.

use std::sync::Arc;

use livekit_protocol as lk;
use livekit_protocol::{data_packet, signal_request};
use prost::Message;

use crate::door::Door;
use crate::hall::{
    FarContent, Hall, Input, LOSSY, MAX_PACKET, Member, Packet, RELIABLE, RoomOptions, nonce,
};
use crate::services::{Answer, ServiceError};

impl Door {
    /// Makes a room, or changes the one of this name.
    pub(super) fn make_room(&self, request: &lk::CreateRoomRequest) -> Answer<lk::Room> {
        let options = || RoomOptions::new(&self.config).with_request(request);
        let hall = self.hall_with(&request.name, Some(&options))?;
        hall.update_options(request);
        hall.report_started();
        let state = hall.room.lock();
        Ok(hall.info(&state))
    }

    /// Changes a room that exists.
    pub(crate) fn change_room(&self, request: &lk::CreateRoomRequest) -> Answer<lk::Room> {
        self.hall(&request.name)?;
        self.make_room(request)
    }

    /// Returns the description of a room.
    pub(crate) fn room_here(&self, name: &str) -> Answer<lk::Room> {
        let hall = self.hall(name)?;
        let state = hall.room.lock();
        Ok(hall.info(&state))
    }

    /// Ends a room for all nodes.
    pub(crate) fn delete_here(&self, room: &str) -> Answer<()> {
        let rooms = self.rooms.get().ok_or_else(ServiceError::no_room)?;
        rooms.find(room).ok_or_else(ServiceError::no_room)?;
        rooms.destroy(room);
        if let Some(others) = self.rooms.others() {
            others.destroyed(room, false);
        }
        let hall = self.halls().remove(room);
        if let Some(hall) = hall {
            hall.report_finished(lk::RoomEndReason::RoomEndApiDelete);
        }
        Ok(())
    }

    /// Returns the participants of a room, none if there is no such room.
    pub(crate) fn participants_here(&self, room: &str) -> Vec<lk::ParticipantInfo> {
        let Ok(hall) = self.hall(room) else {
            return Vec::new();
        };
        let state = hall.room.lock();
        let mut people = hall.people();
        let all = state.people().filter_map(|it| people.info(&state, it.id()));
        all.collect()
    }

    /// Returns a participant.
    pub(crate) fn participant_here(
        &self,
        request: &lk::RoomParticipantIdentity,
    ) -> Answer<lk::ParticipantInfo> {
        let hall = self.hall(&request.room);
        let hall = hall.map_err(|_| ServiceError::no_participant())?;
        hall.participant(&hall.id_of(&request.identity))
    }

    /// Removes a participant.
    pub(crate) fn remove_here(&self, request: &lk::RoomParticipantIdentity) -> Answer<()> {
        let hall = self.hall(&request.room);
        let hall = hall.map_err(|_| ServiceError::no_participant())?;
        let id = hall.id_of(&request.identity);
        let mut state = hall.room.lock();
        let removed = state.kick(&id, None);
        removed.map_err(|_| ServiceError::no_participant())
    }

    /// Mutes or unmutes a track. Returns `None` if there is no such track.
    pub(crate) fn mute_here(
        &self,
        request: &lk::MuteRoomTrackRequest,
    ) -> Answer<Option<lk::TrackInfo>> {
        let hall = self.hall(&request.room)?;
        let id = hall.id_of(&request.identity);
        hall.participant(&id)?;
        if !request.muted && !self.config.enable_remote_unmute {
            return Err(ServiceError::no_remote_unmute());
        }
        hall.mute(&id, &request.track_sid, request.muted)
    }

    /// Changes a participant.
    pub(crate) fn update_here(
        &self,
        request: lk::UpdateParticipantRequest,
    ) -> Answer<lk::ParticipantInfo> {
        let hall = self.hall(&request.room);
        let hall = hall.map_err(|_| ServiceError::no_participant())?;
        hall.change(request)
    }

    /// Subscribes a participant to tracks, or ends its subscriptions.
    pub(crate) async fn subscribe_here(
        &self,
        request: lk::UpdateSubscriptionsRequest,
    ) -> Answer<()> {
        let hall = self.hall(&request.room)?;
        let member = member(&hall, &request.identity)?;
        let update = lk::UpdateSubscription {
            track_sids: request.track_sids,
            subscribe: request.subscribe,
            participant_tracks: request.participant_tracks,
        };
        let input = Input::of_server(lk::SignalRequest {
            message: Some(signal_request::Message::Subscription(update)),
        });
        // It may leave meanwhile.
        let sent = member.inputs.send(input).await;
        sent.map_err(|_| ServiceError::no_participant())
    }

    /// Sends data to participants of all nodes.
    pub(crate) fn send_here(&self, request: lk::SendDataRequest) -> Answer<()> {
        let hall = self.hall(&request.room)?;
        let label = match request.kind() {
            data_packet::Kind::Reliable => RELIABLE,
            data_packet::Kind::Lossy => LOSSY,
        };
        let named = {
            let people = hall.people();
            people.named(&request.destination_identities, &request.destination_sids)
        };
        let nonce = nonce(&request.nonce);
        let packet = lk::DataPacket {
            kind: request.kind,
            destination_identities: request.destination_identities.clone(),
            value: Some(data_packet::Value::User(lk::UserPacket {
                payload: request.data,
                destination_sids: request.destination_sids,
                destination_identities: request.destination_identities,
                topic: request.topic,
                nonce: request.nonce,
                ..lk::UserPacket::default()
            })),
            ..lk::DataPacket::default()
        };
        if packet.encoded_len() > MAX_PACKET {
            let what = "data packet size exceeds limits";
            return Err(ServiceError::exceeds(what, MAX_PACKET));
        }
        let Some(to) = named else { return Ok(()) };
        let packet = Packet {
            nonce,
            ..of_server(to, packet.encode_to_vec())
        };
        hall.send(label, packet);
        Ok(())
    }

    /// Changes the metadata of a room.
    pub(crate) fn metadata_here(&self, request: lk::UpdateRoomMetadataRequest) -> Answer<lk::Room> {
        let hall = self.hall(&request.room)?;
        hall.tell_nodes(FarContent::Metadata(request.clone()));
        Ok(hall.change_metadata(request.metadata))
    }

    /// Publishes the tracks of a participant in another room, too.
    pub(crate) fn forward_here(&self, request: &lk::ForwardParticipantRequest) -> Answer<()> {
        member(&*self.hall(&request.room)?, &request.identity)?;
        Err(ServiceError::unimplemented("not implemented"))
    }

    /// Calls a method of a participant.
    pub(crate) async fn call_here(&self, request: lk::PerformRpcRequest) -> Answer<String> {
        let hall = self.hall(&request.room)?;
        let member = member(&hall, &request.destination_identity)?;
        let (call, packet) = hall.calls.begin(&request)?;
        let packet = of_server(vec![request.destination_identity], packet);
        hall.deliver(RELIABLE, packet, std::slice::from_ref(&member));
        // The task of its session takes the events until it has left the room.
        call.answer(member.events.closed()).await
    }
}

/// Returns a message of the server itself.
fn of_server(to: Vec<String>, bytes: Vec<u8>) -> Packet {
    Packet {
        at: tokio::time::Instant::now(),
        from: String::new(),
        sequence: 0,
        to,
        nonce: None,
        bytes: bytes.into(),
    }
}

/// Returns a participant of this door.
pub(super) fn member(hall: &Hall, identity: &str) -> Answer<Arc<Member>> {
    let people = hall.people();
    let person = people.get(&hall.id_of(identity));
    let member = person.and_then(|person| person.member.clone());
    member.ok_or_else(ServiceError::no_participant)
}
