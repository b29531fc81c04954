//! Media by WHIP (RFC 9725): a participant with one PeerConnection, whose offer comes by HTTP.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use livekit_protocol::ingress_state::Status;
use livekit_protocol::{
    AddTrackRequest, IngressInfo, LeaveRequest, SessionDescription, SignalRequest, SignalTarget,
    TrackInfo, TrackType, TrickleRequest, participant_info, signal_request, signal_response,
};
use portunus_core::Requester;
use serde_json::json;
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

use super::program::{audio_of, video_of};
use super::{Ingresses, key};
use crate::door::{Admitted, Door, EntryError};
use crate::hall::{Input, Wire};
use crate::join_parameters::JoinParameters;
use crate::session::{Joined, Permissions};
use crate::token::{Grants, Renewal, Verified, VideoGrant};

/// How long the answer to an offer may take.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);

/// The most m-lines of a kind, and candidates of a request.
const MAX_LINES: usize = 8;
const MAX_CANDIDATES: usize = 64;

/// The reason why a request by WHIP is refused.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WhipError {
    /// There is no such stream key.
    #[error("there is no ingress with this stream key")]
    NoKey,
    /// The ingress is turned off.
    #[error("the ingress is disabled")]
    Disabled,
    /// The offer cannot be answered.
    #[error("the offer cannot be answered")]
    Offer,
    /// The participant cannot join.
    #[error(transparent)]
    Entry(#[from] EntryError),
    /// There is no such session.
    #[error("there is no such session")]
    NoSession,
}

/// The sessions, by the secret ids that their clients have.
#[derive(Debug, Default)]
pub(crate) struct Whip(Mutex<HashMap<String, Session>>);

#[derive(Debug)]
struct Session {
    ingress: String,
    inputs: mpsc::Sender<Input>,
    /// Ends the session when it is dropped.
    _end: watch::Sender<()>,
}

/// A session that has begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Begun {
    /// Its secret id.
    pub(crate) id: String,
    /// The answer to its offer.
    pub(crate) answer: String,
}

impl Whip {
    /// Ends the sessions of an ingress.
    pub(super) fn end_of(&self, ingress: &str) {
        self.sessions()
            .retain(|_, session| session.ingress != ingress);
    }

    /// Ends a session.
    pub(crate) fn end(&self, id: &str) -> Result<(), WhipError> {
        let ended = self.sessions().remove(id);
        ended.map(drop).ok_or(WhipError::NoSession)
    }

    /// Passes candidates of a client on: an SDP fragment (RFC 8840).
    pub(crate) async fn trickle(&self, id: &str, fragment: &str) -> Result<(), WhipError> {
        let inputs = self.sessions().get(id).map(|it| it.inputs.clone());
        let inputs = inputs.ok_or(WhipError::NoSession)?;
        for candidate in candidates(fragment) {
            let trickle = TrickleRequest {
                candidate_init: candidate,
                target: SignalTarget::Publisher.into(),
                ..TrickleRequest::default()
            };
            let sent = inputs.send(of_server(signal_request::Message::Trickle(trickle)));
            sent.await.map_err(|_| WhipError::NoSession)?;
        }
        Ok(())
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<String, Session>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Door {
    /// Lets media of an ingress in, with the offer of its client.
    pub(crate) async fn begin_whip(
        &self,
        stream_key: &str,
        offer: String,
        requester: Requester,
    ) -> Result<Begun, WhipError> {
        let ingresses = self.ingresses.clone();
        let info = ingresses.by_key(stream_key).ok_or(WhipError::NoKey)?;
        if !info.enabled.unwrap_or(true) {
            return Err(WhipError::Disabled);
        }
        // Another client takes the place of a former one.
        ingresses.whip().end_of(&info.ingress_id);
        let resource = ingresses.begins(&info.ingress_id);
        let fail = |error: &WhipError| {
            let (id, status) = (&info.ingress_id, Status::EndpointError);
            ingresses.ends(id, &resource, status, error.to_string());
        };
        let admitted = self.admitted(&info, offer);
        let joined = self.join(admitted, requester).await;
        let joined = joined.map_err(WhipError::from).inspect_err(fail)?;
        let Joined {
            mut wire,
            inputs,
            member,
            ..
        } = joined;
        let answer = timeout(ANSWER_LIMIT, answer(&mut wire)).await;
        let answer = answer.ok().flatten().ok_or(WhipError::Offer);
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => {
                leave(&inputs).await;
                fail(&error);
                return Err(error);
            }
        };
        let (end, ends) = watch::channel(());
        let id = key();
        let session = Session {
            ingress: info.ingress_id.clone(),
            inputs: inputs.clone(),
            _end: end,
        };
        ingresses.whip().sessions().insert(id.clone(), session);
        let attended = Attended {
            ingresses,
            ingress: info.ingress_id,
            resource,
            id: id.clone(),
            member,
            inputs,
        };
        tokio::spawn(attended.run(wire, ends));
        Ok(Begun { id, answer })
    }

    /// Returns the join of an ingress's participant.
    fn admitted(&self, info: &IngressInfo, offer: String) -> Admitted {
        let grant = VideoGrant {
            room_create: true,
            room_join: true,
            room: info.room_name.clone(),
            can_publish: Some(true),
            can_subscribe: Some(false),
            can_publish_data: Some(false),
            ..VideoGrant::default()
        };
        let claims = Grants {
            identity: info.participant_identity.clone(),
            name: info.participant_name.clone(),
            metadata: info.participant_metadata.clone(),
            kind: "ingress".to_owned(),
            video: Some(grant.clone()),
            ..Grants::default()
        };
        let keys = self.keys.clone();
        let verified = Verified {
            key: keys.first().unwrap_or_default(),
            grants: claims.clone(),
            expires_at: 0,
        };
        Admitted {
            token: Renewal::new(keys, verified),
            permissions: Permissions::of(&claims, &grant),
            room: info.room_name.clone(),
            identity: info.participant_identity.clone(),
            parameters: JoinParameters {
                single: true,
                add_tracks: tracks(info, &offer),
                offer: Some(SessionDescription {
                    r#type: "offer".to_owned(),
                    sdp: offer,
                    id: 1,
                    ..SessionDescription::default()
                }),
                ..JoinParameters::default()
            },
            claims,
        }
    }
}

/// A session that runs.
struct Attended {
    ingresses: Ingresses,
    ingress: String,
    resource: String,
    id: String,
    member: std::sync::Arc<crate::hall::Member>,
    inputs: mpsc::Sender<Input>,
}

impl Attended {
    /// Follows the session to its end.
    async fn run(self, mut wire: Wire, mut ends: watch::Receiver<()>) {
        let mut changes = self.member.hall.room.lock().changes();
        let mut tracks = Vec::new();
        loop {
            let now = self.tracks();
            if !now.is_empty() && now.len() != tracks.len() {
                tracks.clone_from(&now);
                let hall = &self.member.hall;
                self.ingresses
                    .publishes(&self.ingress, &self.resource, hall, now);
            }
            tokio::select! {
                frame = wire.frames.recv() => {
                    if frame.is_none() {
                        break;
                    }
                }
                _ = changes.changed() => {}
                // It is removed: the client has ended it, or the ingress is gone.
                _ = ends.changed() => {
                    leave(&self.inputs).await;
                    break;
                }
            }
        }
        self.ingresses.whip().sessions().remove(&self.id);
        let (status, error) = match tracks.is_empty() {
            true => (Status::EndpointError, "no media has come".to_owned()),
            false => (Status::EndpointInactive, String::new()),
        };
        self.ingresses
            .ends(&self.ingress, &self.resource, status, error);
    }

    /// Returns the tracks once media can flow.
    fn tracks(&self) -> Vec<TrackInfo> {
        let hall = &self.member.hall;
        let state = hall.room.lock();
        let info = hall.people().info(&state, &self.member.id);
        let is_up = |info: &livekit_protocol::ParticipantInfo| {
            info.sid == self.member.sid && info.state() == participant_info::State::Active
        };
        info.filter(is_up)
            .map(|info| info.tracks)
            .unwrap_or_default()
    }
}

/// Waits for the answer to an offer. Returns `None` if it is refused.
async fn answer(wire: &mut Wire) -> Option<String> {
    loop {
        let frame = wire.frames.recv().await?;
        match frame.message() {
            Some(signal_response::Message::Answer(answer)) => return Some(answer.sdp.clone()),
            Some(signal_response::Message::Leave(_)) => return None,
            _ => {}
        }
    }
}

/// Has a participant leave.
async fn leave(inputs: &mpsc::Sender<Input>) {
    let leave = signal_request::Message::Leave(LeaveRequest::default());
    // It may be gone already.
    let _ = inputs.send(of_server(leave)).await;
}

fn of_server(message: signal_request::Message) -> Input {
    Input::of_server(SignalRequest {
        message: Some(message),
    })
}

/// Announces a track for each m-line of an offer.
fn tracks(info: &IngressInfo, offer: &str) -> Vec<AddTrackRequest> {
    let track = |kind: &str, nth: usize| {
        let (r#type, (name, source)) = match kind {
            "audio" => (TrackType::Audio, audio_of(info)),
            _ => (TrackType::Video, video_of(info)),
        };
        AddTrackRequest {
            cid: format!("{kind}-{nth}"),
            r#type: r#type.into(),
            name,
            source: source.into(),
            ..AddTrackRequest::default()
        }
    };
    let of_kind = |kind: &'static str| {
        let start = format!("m={kind} ");
        let count = offer
            .lines()
            .filter(|line| line.starts_with(&start))
            .count();
        (0..count.min(MAX_LINES)).map(move |nth| track(kind, nth))
    };
    of_kind("audio").chain(of_kind("video")).collect()
}

/// Returns the candidates of an SDP fragment, as browsers write them.
fn candidates(fragment: &str) -> Vec<String> {
    let mut mid = "0";
    let mut candidates = Vec::new();
    for line in fragment.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix("a=mid:") {
            mid = name;
        }
        let candidate = line.strip_prefix("a=");
        let candidate = candidate.filter(|it| it.starts_with("candidate:"));
        if let Some(candidate) = candidate
            && candidates.len() < MAX_CANDIDATES
        {
            candidates.push(json!({ "candidate": candidate, "sdpMid": mid }).to_string());
        }
    }
    candidates
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn candidates_have_their_m_line() {
        let fragment = "a=ice-ufrag:x\r\nm=audio 9 RTP/AVP 0\r\na=mid:1\r\na=candidate:1 1 udp 1 h 9 typ host\r\na=end-of-candidates\r\n";
        let expected = r#"{"candidate":"candidate:1 1 udp 1 h 9 typ host","sdpMid":"1"}"#;
        assert_eq!(candidates(fragment), [expected]);
    }

    #[test]
    fn each_m_line_is_a_track() {
        let info = IngressInfo::default();
        let offer = "v=0\r\nm=audio 9 x\r\nm=video 9 x\r\nm=application 9 x\r\n";
        let tracks = tracks(&info, offer);
        let kinds: Vec<TrackType> = tracks.iter().map(|track| track.r#type()).collect();
        assert_eq!(kinds, [TrackType::Audio, TrackType::Video]);
    }
}
