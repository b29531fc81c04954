//! Media by WHIP (RFC 9725): a participant with one PeerConnection, whose offer comes by HTTP.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use livekit_protocol::ingress_state::Status;
use livekit_protocol::{
    AddTrackRequest, IngressInfo, LeaveRequest, SignalRequest, SignalTarget, TrackInfo, TrackType,
    TrickleRequest, participant_info, signal_request, signal_response,
};
use serde_json::json;
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

use super::program::{audio_of, video_of};
use super::{Ingresses, key};
use crate::hall::{Input, Member, Wire};
use crate::session::Joined;

/// How long the answer to an offer may take.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);

/// The most m-lines of a kind, and candidates of a request.
const MAX_LINES: usize = 8;
const MAX_CANDIDATES: usize = 64;

/// There is no such session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("there is no such session")]
pub(crate) struct NoSession;

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
    pub(crate) fn end_of(&self, ingress: &str) {
        self.sessions()
            .retain(|_, session| session.ingress != ingress);
    }

    /// Ends a session.
    pub(crate) fn end(&self, id: &str) -> Result<(), NoSession> {
        let ended = self.sessions().remove(id);
        ended.map(drop).ok_or(NoSession)
    }

    /// Passes candidates of a client on: an SDP fragment (RFC 8840).
    pub(crate) async fn trickle(&self, id: &str, fragment: &str) -> Result<(), NoSession> {
        let inputs = self.sessions().get(id).map(|it| it.inputs.clone());
        let inputs = inputs.ok_or(NoSession)?;
        for candidate in candidates(fragment) {
            let trickle = TrickleRequest {
                candidate_init: candidate,
                target: SignalTarget::Publisher.into(),
                ..TrickleRequest::default()
            };
            let sent = inputs.send(of_server(signal_request::Message::Trickle(trickle)));
            sent.await.map_err(|_| NoSession)?;
        }
        Ok(())
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<String, Session>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Begins the session of a participant that has joined with its offer. Returns `None` if the offer
/// cannot be answered.
pub(crate) async fn begin(
    ingresses: &Ingresses,
    ingress: &str,
    resource: &str,
    joined: Joined,
) -> Option<Begun> {
    let Joined {
        mut wire,
        inputs,
        member,
        ..
    } = joined;
    let answer = timeout(ANSWER_LIMIT, answer(&mut wire)).await;
    let Some(answer) = answer.ok().flatten() else {
        leave(&inputs).await;
        return None;
    };
    let (end, ends) = watch::channel(());
    let id = key();
    let session = Session {
        ingress: ingress.to_owned(),
        inputs: inputs.clone(),
        _end: end,
    };
    ingresses.whip().sessions().insert(id.clone(), session);
    let attended = Attended {
        ingresses: ingresses.clone(),
        ingress: ingress.to_owned(),
        resource: resource.to_owned(),
        id: id.clone(),
        member,
        inputs,
    };
    tokio::spawn(attended.run(wire, ends));
    Some(Begun { id, answer })
}

/// A session that runs.
struct Attended {
    ingresses: Ingresses,
    ingress: String,
    resource: String,
    id: String,
    member: Arc<Member>,
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
pub(crate) fn tracks(info: &IngressInfo, offer: &str) -> Vec<AddTrackRequest> {
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
