//! Rooms and participants for the services.

mod here;
mod listing;
mod moves;
mod participant;

use std::sync::Arc;
use std::time::Duration;

use livekit_protocol as lk;
use portunus_core::{Purse, Requester};
use portunus_room::CreateError;
use tokio::time::sleep;

use crate::cluster::Asked;
use crate::door::{Door, EntryError};
use crate::egress::plan;
use crate::hall::{Hall, Person, RoomOptions};
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
                self.prepare_room(&room, false).await?;
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
        let is_missing = |answer: &Answer<lk::Room>| {
            let error = answer.as_ref().err();
            error.is_some_and(|error| error.code() == Code::NotFound)
        };
        let known = self.ask_elsewhere(|| Asked::CreateRoom(Box::new(request.clone())));
        if let Some(known) = known.await.filter(|it| !is_missing(it)) {
            return known;
        }
        self.prepare_room(&request.name, true).await?;
        // Another node may have been faster.
        let known = self.ask_elsewhere(|| Asked::CreateRoom(Box::new(request.clone())));
        if let Some(known) = known.await.filter(|it| !is_missing(it)) {
            return known;
        }
        self.make_room(&request)
    }

    async fn list_rooms(&self, names: Vec<String>) -> Answer<Vec<lk::Room>> {
        Ok(self.rooms_of_all_nodes(names).await)
    }

    async fn delete_room(&self, room: String) -> Answer<()> {
        let request = lk::DeleteRoomRequest { room };
        let asked = || Asked::DeleteRoom(request.clone());
        match self.ask_elsewhere::<lk::DeleteRoomResponse>(asked).await {
            Some(answer) => answer.map(drop),
            None => self.delete_here(&request.room),
        }
    }

    async fn list_participants(&self, room: String) -> Answer<Vec<lk::ParticipantInfo>> {
        let request = lk::ListParticipantsRequest { room };
        let asked = || Asked::ListParticipants(request.clone());
        let answer = self.ask_elsewhere::<lk::ListParticipantsResponse>(asked);
        match answer.await {
            Some(answer) => answer.map(|it| it.participants),
            None => Ok(self.participants_here(&request.room)),
        }
    }

    async fn get_participant(
        &self,
        request: lk::RoomParticipantIdentity,
    ) -> Answer<lk::ParticipantInfo> {
        let asked = || Asked::GetParticipant(request.clone());
        match self.ask_elsewhere(asked).await {
            Some(answer) => answer,
            None => self.participant_here(&request),
        }
    }

    async fn remove_participant(&self, request: lk::RoomParticipantIdentity) -> Answer<()> {
        let asked = || Asked::RemoveParticipant(request.clone());
        let answer = self.ask_elsewhere::<lk::RemoveParticipantResponse>(asked);
        match answer.await {
            Some(answer) => answer.map(drop),
            None => self.remove_here(&request),
        }
    }

    async fn mute_published_track(
        &self,
        request: lk::MuteRoomTrackRequest,
    ) -> Answer<Option<lk::TrackInfo>> {
        let asked = || Asked::MuteTrack(request.clone());
        match self.ask_elsewhere::<lk::MuteRoomTrackResponse>(asked).await {
            Some(answer) => answer.map(|it| it.track),
            None => self.mute_here(&request),
        }
    }

    async fn update_participant(
        &self,
        request: lk::UpdateParticipantRequest,
    ) -> Answer<lk::ParticipantInfo> {
        let asked = || Asked::UpdateParticipant(request.clone());
        match self.ask_elsewhere(asked).await {
            Some(answer) => answer,
            None => self.update_here(request),
        }
    }

    async fn update_subscriptions(&self, request: lk::UpdateSubscriptionsRequest) -> Answer<()> {
        let asked = || Asked::UpdateSubscriptions(request.clone());
        let answer = self.ask_elsewhere::<lk::UpdateSubscriptionsResponse>(asked);
        match answer.await {
            Some(answer) => answer.map(drop),
            None => self.subscribe_here(request).await,
        }
    }

    async fn send_data(&self, request: lk::SendDataRequest) -> Answer<()> {
        let asked = || Asked::SendData(request.clone());
        match self.ask_elsewhere::<lk::SendDataResponse>(asked).await {
            Some(answer) => answer.map(drop),
            None => self.send_here(request),
        }
    }

    async fn update_room_metadata(
        &self,
        request: lk::UpdateRoomMetadataRequest,
    ) -> Answer<lk::Room> {
        let asked = || Asked::UpdateRoomMetadata(request.clone());
        match self.ask_elsewhere(asked).await {
            Some(answer) => answer,
            None => self.metadata_here(request),
        }
    }

    async fn forward_participant(&self, request: lk::ForwardParticipantRequest) -> Answer<()> {
        let asked = || Asked::ForwardParticipant(request.clone());
        let answer = self.ask_elsewhere::<lk::ForwardParticipantResponse>(asked);
        match answer.await {
            Some(answer) => answer.map(drop),
            None => self.forward_here(&request),
        }
    }

    async fn move_participant(&self, request: lk::MoveParticipantRequest) -> Answer<()> {
        let asked = || Asked::MoveParticipant(request.clone());
        let answer = self.ask_elsewhere::<lk::MoveParticipantResponse>(asked);
        match answer.await {
            Some(answer) => answer.map(drop),
            None => self.move_to(&request).await,
        }
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
        self.prepare_room(&request.room, false).await?;
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
        self.prepare_room(&request.room, false).await?;
        self.hall(&request.room)?;
        Ok(self.agents.dispatches(&request.room, &request.dispatch_id))
    }

    async fn perform_rpc(&self, request: lk::PerformRpcRequest) -> Answer<String> {
        let asked = || Asked::PerformRpc(request.clone());
        match self.ask_elsewhere::<lk::PerformRpcResponse>(asked).await {
            Some(answer) => answer.map(|it| it.payload),
            None => self.call_here(request).await,
        }
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

impl From<EntryError> for ServiceError {
    fn from(error: EntryError) -> Self {
        let code = match &error {
            EntryError::NoRoom => return ServiceError::no_room(),
            EntryError::Refused(refusal) => return ServiceError::from(*refusal),
            EntryError::Create(CreateError::Name(_)) | EntryError::Name(_) => Code::InvalidArgument,
            EntryError::Create(CreateError::Refused(_)) | EntryError::TooMany(_) => {
                Code::ResourceExhausted
            }
            _ => Code::Unavailable,
        };
        ServiceError::new(code, error.to_string())
    }
}
