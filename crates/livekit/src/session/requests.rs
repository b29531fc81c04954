//! The requests of a client.

use livekit_protocol::{
    AddTrackRequest, DisconnectReason, Ping, Pong, ReconnectResponse, RequestResponse,
    SimulateScenario, SyncState, TrickleRequest, UpdateParticipantMetadata, leave_request,
    request_response, signal_request, signal_response, simulate_scenario,
};
use portunus_room::{Configure, Profile, SubscriberConfigure};
use serde_json::Value;

use super::admission::server_info;
use super::{Session, leave};
use crate::hall::{Input, Role, Wire, frame_of, now_ms};
use crate::limits;
use crate::refusals::BadInput;

/// The most features of a track that are kept.
const MAX_FEATURES: usize = 32;

impl Session {
    /// Serves a request.
    pub(super) async fn request(&mut self, input: Input) {
        use signal_request::Message;
        // The rest of a connection that the client has replaced.
        let is_present = |generation| self.member.out.is_present(generation);
        if !input.generation.is_none_or(is_present) {
            return;
        }
        let Some(message) = input.request.message else {
            return;
        };
        match message {
            Message::Offer(offer) => self.offered(offer).await,
            Message::Answer(answer) => self.answered(&answer).await,
            Message::Trickle(trickle) => self.trickled(&trickle).await,
            Message::AddTrack(request) => self.add_track(request),
            Message::Mute(mute) => self.mute(&mute),
            Message::Subscription(update) => self.subscription(&update),
            Message::TrackSetting(settings) => self.track_settings(&settings),
            Message::Leave(_) => self.ended = Some(DisconnectReason::ClientInitiated),
            Message::SyncState(state) => self.sync(&state),
            Message::Simulate(scenario) => self.simulate(&scenario),
            Message::Ping(_) => self.send(signal_response::Message::Pong(now_ms())),
            Message::PingReq(ping) => self.ping(ping),
            Message::UpdateMetadata(update) => self.update_metadata(update),
            // The media plane sees what the client sends.
            Message::UpdateLayers(_) => {}
            Message::SubscriptionPermission(permission) => self.share(permission),
            Message::UpdateAudioTrack(update) => self.change_track(&update.track_sid, |it| {
                let features = update.features.iter().take(MAX_FEATURES);
                it.audio_features = features.copied().collect();
            }),
            Message::UpdateVideoTrack(update) => self.change_track(&update.track_sid, |it| {
                (it.width, it.height) = (update.width, update.height);
            }),
            Message::PublishDataTrackRequest(request) => self.publish_data_track(request),
            Message::UnpublishDataTrackRequest(request) => self.unpublish_data_track(request),
            Message::UpdateDataSubscription(update) => self.data_subscription(&update),
            Message::StoreDataBlobRequest(request) => self.refuse_blob(request.request_id),
            Message::GetDataBlobRequest(request) => self.refuse_blob(request.request_id),
        }
    }

    /// Changes the description of a published track.
    fn change_track(&self, sid: &str, change: impl FnOnce(&mut AddTrackRequest)) {
        let hall = &self.member.hall;
        let state = hall.room.lock();
        {
            let mut people = hall.people();
            let person = people.get_mut(&self.member.id);
            let mut tracks = person.into_iter().flat_map(|person| &mut person.tracks);
            let Some(track) = tracks.find(|track| track.sid == sid) else {
                return;
            };
            change(&mut track.request);
        }
        hall.send_update(&state, &self.member.id);
    }

    pub(super) fn send(&self, message: signal_response::Message) {
        self.member.out.message(message);
    }

    fn ping(&self, ping: Ping) {
        self.send(signal_response::Message::PongResp(Pong {
            last_ping_timestamp: ping.timestamp,
            timestamp: now_ms(),
        }));
    }

    /// Passes a candidate of the client on.
    async fn trickled(&mut self, trickle: &TrickleRequest) {
        let role = match (trickle.target, &self.subscriber) {
            (1, Some(_)) => Role::Subscriber,
            _ => Role::Publisher,
        };
        let Ok(Value::Object(init)) = serde_json::from_str(&trickle.candidate_init) else {
            return;
        };
        let mut candidate = init;
        candidate.retain(|name, value| {
            ["candidate", "sdpMid", "sdpMLineIndex"].contains(&name.as_str()) && !value.is_null()
        });
        let text = candidate.get("candidate").and_then(Value::as_str);
        if text.is_none_or(str::is_empty) {
            return;
        }
        let trickled = self.link.trickle(role, Value::Object(candidate)).await;
        if let Err(error) = trickled {
            tracing::debug!(%error, "a candidate is refused");
        }
    }

    /// Changes the client's own name, metadata and attributes.
    fn update_metadata(&mut self, update: UpdateParticipantMetadata) {
        use request_response::Reason;
        let reason = self.change_metadata(&update);
        if reason != Reason::Ok {
            self.member.hall.refusals.count(BadInput::Request);
        }
        let request_id = update.request_id;
        // Clients of former versions know no answer without a request.
        if reason != Reason::Ok || self.client.protocol > 14 {
            self.send(signal_response::Message::RequestResponse(RequestResponse {
                request_id,
                reason: reason.into(),
                message: match reason {
                    Reason::NotAllowed => "does not have permission to update own metadata",
                    Reason::LimitExceeded => "metadata size exceeds the limit",
                    _ => "",
                }
                .to_owned(),
                request: Some(request_response::Request::UpdateMetadata(update)),
            }));
        }
    }

    fn change_metadata(&self, update: &UpdateParticipantMetadata) -> request_response::Reason {
        use request_response::Reason;
        if !self.permissions().can_update_metadata {
            return Reason::NotAllowed;
        }
        let hall = &self.member.hall;
        let mut state = hall.room.lock();
        {
            let mut people = hall.people();
            let Some(person) = people.get_mut(&self.member.id) else {
                return Reason::NotFound;
            };
            let mut attributes = person.attributes.clone();
            for (name, value) in &update.attributes {
                match value.is_empty() {
                    true => drop(attributes.remove(name)),
                    false => drop(attributes.insert(name.clone(), value.clone())),
                }
            }
            let fits = limits::attributes_fit(&attributes)
                && update.metadata.len() <= limits::METADATA
                && update.name.len() <= limits::PARTICIPANT_NAME;
            if !fits {
                return Reason::LimitExceeded;
            }
            person.attributes = attributes;
        }
        let text = |text: &String| (!text.is_empty()).then(|| text.clone());
        let configure = Configure {
            profile: Profile {
                display: text(&update.name),
                metadata: text(&update.metadata),
            },
            ..Configure::default()
        };
        if let Some(key) = self.member.key(Role::Publisher) {
            // A participant that has gone needs no name.
            let _ = state.configure(&self.member.id, key, &configure, None);
        }
        self.member.changes_claims();
        hall.send_update(&state, &self.member.id);
        Reason::Ok
    }

    /// Takes over another connection of the client.
    pub(super) fn resume(&mut self) -> Wire {
        let member = self.member.clone();
        // Its next offer comes unasked: it restarts ICE.
        self.asked = self.subscriber.is_none();
        let wire = member.out.connect();
        let breaks = self.breaks.take();
        if breaks == Some(false) {
            member.out.close();
            return wire;
        }
        self.send(signal_response::Message::Reconnect(ReconnectResponse {
            server_info: Some(server_info()),
            last_message_seq: member.last_sequence(),
            ..ReconnectResponse::default()
        }));
        if breaks == Some(true) {
            member.out.close();
            return wire;
        }
        let hall = member.hall.clone();
        let mut state = hall.room.lock();
        let ids: Vec<_> = state.people().map(|person| person.id().clone()).collect();
        let infos = {
            let mut people = hall.people();
            let shown = ids
                .iter()
                .filter(|id| **id == member.id || !people.is_hidden(id));
            let shown: Vec<_> = shown.collect();
            let infos = shown.into_iter().filter_map(|id| people.info(&state, id));
            infos.collect::<Vec<_>>()
        };
        let infos = infos.into_iter().chain(hall.gone());
        member.out.send(&frame_of(infos.collect()));
        self.send(signal_response::Message::RoomUpdate(
            livekit_protocol::RoomUpdate {
                room: Some(hall.info(&state)),
            },
        ));
        if let (Some(_), Some(key)) = (&self.subscriber, member.key(Role::Subscriber)) {
            state.offer_replaced(key);
            member.answered();
            let restart = SubscriberConfigure {
                restart: true,
                ..SubscriberConfigure::default()
            };
            if let Ok(portunus_room::Outcome::Offer(offer)) =
                state.configure_subscriber(key, &restart)
            {
                member.offer(&state, offer);
            }
        }
        wire
    }

    /// Compares the client's state with that of the server after a resume.
    pub(super) fn sync(&mut self, sync: &SyncState) {
        let is_known = {
            let people = self.member.hall.people();
            let person = people.get(&self.member.id);
            let published = sync
                .publish_tracks
                .iter()
                .filter_map(|it| it.track.as_ref());
            let data = sync
                .publish_data_tracks
                .iter()
                .filter_map(|it| it.info.as_ref());
            person.is_some_and(|person| {
                let mut published = published.into_iter();
                let has = |sid: &String| person.tracks.iter().any(|known| known.sid == *sid);
                let has_data = |sid: &String| {
                    let mut tracks = person.data_tracks.iter();
                    tracks.any(|known| known.info.sid == *sid)
                };
                published.all(|track| has(&track.sid))
                    && data.into_iter().all(|track| has_data(&track.sid))
            })
        };
        if !is_known {
            self.mismatch();
            return;
        }
        if let Some(subscription) = &sync.subscription {
            self.resubscription(subscription);
        }
        if let Some(subscription) = &sync.data_subscription {
            self.data_subscription(subscription);
        }
        self.reconcile_data(true);
        self.member.repeat_data(&sync.datachannel_receive_states);
    }

    /// Plays a fault for a test of the client.
    fn simulate(&mut self, simulate: &SimulateScenario) {
        use simulate_scenario::Scenario;
        let action = match &simulate.scenario {
            Some(Scenario::LeaveRequestFullReconnect(_)) => leave_request::Action::Reconnect,
            Some(Scenario::ServerLeave(_)) => {
                self.end(DisconnectReason::ServerShutdown);
                return;
            }
            // A server that fails says nothing: the client finds that its session is gone.
            Some(Scenario::NodeFailure(_)) => {
                self.ended = Some(DisconnectReason::ServerShutdown);
                return;
            }
            Some(Scenario::Migration(_)) => leave_request::Action::Resume,
            Some(Scenario::DisconnectSignalOnResume(_)) => {
                self.breaks = Some(true);
                return;
            }
            Some(Scenario::DisconnectSignalOnResumeNoMessages(_)) => {
                self.breaks = Some(false);
                return;
            }
            _ => return,
        };
        self.send(leave(DisconnectReason::UnknownReason, action));
        self.member.out.close();
    }
}
