//! Rooms and participants for the services.

mod moves;
mod participant;

use std::sync::Arc;
use std::time::Duration;

use livekit_protocol as lk;
use livekit_protocol::{data_packet, signal_request};
use portunus_core::{Purse, Requester};
use portunus_room::CreateError;
use prost::Message;
use tokio::time::sleep;

use crate::door::{Door, EntryError};
use crate::egress::plan;
use crate::hall::{FarContent, Hall, Input, LOSSY, Member, Packet, Person, RELIABLE, RoomOptions};
use crate::services::{
    Answer, Code, EgressAnswer, EgressRequest, IngressAnswer, IngressRequest, Rooms, ServiceError,
    Services, SipAnswer, SipRequest,
};

/// How long agents of an ended dispatch may take to leave.
const LEAVING: Duration = Duration::from_secs(3);

impl Services for Door {
    fn purse(&self, requester: Requester) -> Purse {
        self.purse_of(requester)
    }

    async fn egress(&self, request: EgressRequest) -> Answer<EgressAnswer> {
        let egresses = &self.egresses;
        let info = match request {
            EgressRequest::Start { room, request } => {
                let plan = plan(&request)?;
                let hall = self.hall(&room)?;
                egresses.start(&hall, *request, plan)?
            }
            EgressRequest::UpdateLayout(request) => egresses.update_layout(request)?,
            EgressRequest::UpdateStream(request) => egresses.update_stream(request)?,
            EgressRequest::Stop(request) => egresses.stop(&request.egress_id)?,
            EgressRequest::List(request) => {
                return Ok(EgressAnswer::List(egresses.find(&request)));
            }
        };
        Ok(EgressAnswer::Info(Box::new(info)))
    }

    async fn ingress(&self, request: IngressRequest) -> Answer<IngressAnswer> {
        let ingresses = &self.ingresses;
        let info = match request {
            IngressRequest::Create(request) => ingresses.create(*request).await?,
            IngressRequest::Update(request) => ingresses.update(*request).await?,
            IngressRequest::Delete(request) => ingresses.delete(&request.ingress_id).await?,
            IngressRequest::List(request) => {
                return Ok(IngressAnswer::List(ingresses.find(&request)));
            }
        };
        Ok(IngressAnswer::Info(Box::new(info)))
    }

    async fn sip(&self, request: SipRequest) -> Answer<SipAnswer> {
        self.sip.serve(request).await
    }
}

impl Rooms for Door {
    async fn create_room(&self, request: lk::CreateRoomRequest) -> Answer<lk::Room> {
        let composite = request.egress.as_ref().and_then(|it| it.room.clone());
        if let Some(composite) = composite {
            plan(&lk::egress_info::Request::RoomComposite(composite))?;
        }
        self.prepare_room(&request.name, true).await?;
        let options = || RoomOptions::new(&self.config).with_request(&request);
        let hall = self.hall_with(&request.name, Some(&options))?;
        hall.options().update(&request);
        hall.report_started();
        let state = hall.room.lock();
        Ok(hall.info(&state))
    }

    async fn list_rooms(&self, names: Vec<String>) -> Answer<Vec<lk::Room>> {
        let names = match names.is_empty() {
            true => {
                let rooms = self.rooms.get().map(|rooms| rooms.list());
                let rooms = rooms.unwrap_or_default().into_iter();
                rooms.map(|(name, _)| name).collect()
            }
            false => names,
        };
        // A room may end meanwhile.
        let halls = names.iter().filter_map(|name| self.hall(name).ok());
        let info = |hall: Arc<Hall>| {
            let state = hall.room.lock();
            hall.info(&state)
        };
        Ok(halls.map(info).collect())
    }

    async fn delete_room(&self, room: String) -> Answer<()> {
        let rooms = self.rooms.get().ok_or_else(ServiceError::no_room)?;
        rooms.find(&room).ok_or_else(ServiceError::no_room)?;
        rooms.destroy(&room);
        let hall = self.halls().remove(&room);
        if let Some(hall) = hall {
            hall.report_finished(lk::RoomEndReason::RoomEndApiDelete);
        }
        Ok(())
    }

    async fn list_participants(&self, room: String) -> Answer<Vec<lk::ParticipantInfo>> {
        let Ok(hall) = self.hall(&room) else {
            return Ok(Vec::new());
        };
        let state = hall.room.lock();
        let mut people = hall.people();
        let all = state.people().filter_map(|it| people.info(&state, it.id()));
        Ok(all.collect())
    }

    async fn get_participant(
        &self,
        request: lk::RoomParticipantIdentity,
    ) -> Answer<lk::ParticipantInfo> {
        let hall = self.hall(&request.room);
        let hall = hall.map_err(|_| ServiceError::no_participant())?;
        hall.participant(&hall.id_of(&request.identity))
    }

    async fn remove_participant(&self, request: lk::RoomParticipantIdentity) -> Answer<()> {
        let hall = self.hall(&request.room);
        let hall = hall.map_err(|_| ServiceError::no_participant())?;
        let id = hall.id_of(&request.identity);
        let mut state = hall.room.lock();
        let removed = state.kick(&id, None);
        removed.map_err(|_| ServiceError::no_participant())
    }

    async fn mute_published_track(
        &self,
        request: lk::MuteRoomTrackRequest,
    ) -> Answer<Option<lk::TrackInfo>> {
        let hall = self.hall(&request.room)?;
        hall.participant(&hall.id_of(&request.identity))?;
        if !request.muted && !self.config.enable_remote_unmute {
            return Err(ServiceError::no_remote_unmute());
        }
        let id = hall.id_of(&request.identity);
        if hall.is_elsewhere(&id) {
            // Its client is told there.
            hall.tell_nodes(FarContent::Mute(request.clone()));
        }
        hall.mute(&id, &request.track_sid, request.muted)
    }

    async fn update_participant(
        &self,
        request: lk::UpdateParticipantRequest,
    ) -> Answer<lk::ParticipantInfo> {
        let hall = self.hall(&request.room);
        let hall = hall.map_err(|_| ServiceError::no_participant())?;
        if hall.is_elsewhere(&hall.id_of(&request.identity)) {
            hall.tell_nodes(FarContent::Change(request.clone()));
        }
        hall.change(request)
    }

    async fn update_subscriptions(&self, request: lk::UpdateSubscriptionsRequest) -> Answer<()> {
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

    async fn send_data(&self, request: lk::SendDataRequest) -> Answer<()> {
        let hall = self.hall(&request.room)?;
        let label = match request.kind() {
            data_packet::Kind::Reliable => RELIABLE,
            data_packet::Kind::Lossy => LOSSY,
        };
        let (to, targets) = targets(&hall, &request);
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
        let packet = of_server(to, packet.encode_to_vec());
        hall.send_packet(label, &packet, targets.len() == packet.to.len());
        hall.deliver(label, packet, &targets);
        Ok(())
    }

    async fn update_room_metadata(
        &self,
        request: lk::UpdateRoomMetadataRequest,
    ) -> Answer<lk::Room> {
        let hall = self.hall(&request.room)?;
        hall.tell_nodes(FarContent::Metadata(request.clone()));
        Ok(hall.set_metadata(request.metadata))
    }

    async fn forward_participant(&self, request: lk::ForwardParticipantRequest) -> Answer<()> {
        member(&*self.hall(&request.room)?, &request.identity)?;
        Err(ServiceError::unimplemented("not implemented"))
    }

    async fn move_participant(&self, request: lk::MoveParticipantRequest) -> Answer<()> {
        self.move_to(&request)
    }

    async fn create_dispatch(
        &self,
        request: lk::CreateAgentDispatchRequest,
    ) -> Answer<lk::AgentDispatch> {
        self.prepare_room(&request.room, self.config.auto_create)
            .await?;
        let options = || RoomOptions::new(&self.config);
        let make: Option<&dyn Fn() -> RoomOptions> = match self.config.auto_create {
            true => Some(&options),
            false => None,
        };
        let hall = self.hall_with(&request.room, make)?;
        hall.report_started();
        let (room, people) = {
            let state = hall.room.lock();
            let room = hall.info(&state);
            let mut people = hall.people();
            let all = state.people().filter_map(|it| people.info(&state, it.id()));
            (room, all.collect::<Vec<_>>())
        };
        let dispatch = self.agents.dispatch(request, &room, &people);
        let text = "the room has too many dispatches";
        dispatch.ok_or_else(|| ServiceError::new(Code::ResourceExhausted, text))
    }

    async fn delete_dispatch(
        &self,
        request: lk::DeleteAgentDispatchRequest,
    ) -> Answer<lk::AgentDispatch> {
        let hall = self.hall(&request.room)?;
        let ended = self
            .agents
            .end_dispatch(&request.room, &request.dispatch_id);
        let text = "dispatch ID not found";
        let ended = ended.ok_or_else(|| ServiceError::new(Code::NotFound, text))?;
        if !ended.agents.is_empty() {
            tokio::spawn(remove_agents(hall, ended.agents));
        }
        Ok(ended.dispatch)
    }

    async fn list_dispatch(
        &self,
        request: lk::ListAgentDispatchRequest,
    ) -> Answer<Vec<lk::AgentDispatch>> {
        self.hall(&request.room)?;
        Ok(self.agents.dispatches(&request.room, &request.dispatch_id))
    }

    async fn perform_rpc(&self, request: lk::PerformRpcRequest) -> Answer<String> {
        let hall = self.hall(&request.room)?;
        let member = member(&hall, &request.destination_identity)?;
        let (call, packet) = hall.calls.begin(&request)?;
        let packet = of_server(vec![request.destination_identity], packet);
        hall.deliver(RELIABLE, packet, &[member]);
        call.answer().await
    }
}

/// Removes the agents of an ended dispatch that do not leave by themselves.
async fn remove_agents(hall: Arc<Hall>, identities: Vec<String>) {
    sleep(LEAVING).await;
    for identity in identities {
        let id = hall.id_of(&identity);
        let mut state = hall.room.lock();
        let is_agent = hall.people().get(&id).is_some_and(Person::is_agent);
        if is_agent {
            tracing::info!(room = hall.name, identity, "an agent did not leave");
            // It may just have left.
            let _ = state.kick(&id, None);
        }
    }
}

/// Returns the participants that data is for, and their identities if they are named.
fn targets(hall: &Hall, request: &lk::SendDataRequest) -> (Vec<String>, Vec<Arc<Member>>) {
    let (identities, sids) = (&request.destination_identities, &request.destination_sids);
    let is_for_all = identities.is_empty() && sids.is_empty();
    let is_named =
        |member: &Member| identities.contains(&member.identity) || sids.contains(&member.sid);
    let people = hall.people();
    let targets = people.members().filter(|it| is_for_all || is_named(it));
    let targets: Vec<_> = targets.cloned().collect();
    let mut to = Vec::new();
    if !is_for_all {
        to.clone_from(identities);
        to.extend(targets.iter().map(|it| it.identity.clone()));
        // Those at other nodes.
        to.extend(sids.iter().filter_map(|sid| people.identity_of(sid)));
        to.sort_unstable();
        to.dedup();
    }
    (to, targets)
}

/// Returns a message of the server itself.
fn of_server(to: Vec<String>, bytes: Vec<u8>) -> Packet {
    Packet {
        at: tokio::time::Instant::now(),
        from: String::new(),
        sequence: 0,
        to,
        bytes: bytes.into(),
    }
}

/// Returns a participant of this door.
fn member(hall: &Hall, identity: &str) -> Answer<Arc<Member>> {
    let people = hall.people();
    let person = people.get(&hall.id_of(identity));
    let member = person.and_then(|person| person.member.clone());
    member.ok_or_else(ServiceError::no_participant)
}

impl From<EntryError> for ServiceError {
    fn from(error: EntryError) -> Self {
        let code = match &error {
            EntryError::NoRoom => return ServiceError::no_room(),
            EntryError::Create(CreateError::Name(_)) | EntryError::Name(_) => Code::InvalidArgument,
            EntryError::Create(CreateError::Refused(_)) | EntryError::TooMany(_) => {
                Code::ResourceExhausted
            }
            _ => Code::Unavailable,
        };
        ServiceError::new(code, error.to_string())
    }
}
