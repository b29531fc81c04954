//! The messages of webhooks, without a socket.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use livekit_protocol::{ParticipantInfo, Room, WebhookEvent};
use openssl::sha::sha256;
use std::time::Duration;

use crate::happening::Happening;
use crate::token::{Grants, Keys, SigningError};

/// How long the token of a message is valid.
const VALID: Duration = Duration::from_secs(300);

/// A message to post.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) body: String,
    /// The header `Authorization`. LiveKit's has no `Bearer`.
    pub(crate) authorization: String,
}

/// Returns the event of something that happened at `now`, in seconds since 1970.
pub(crate) fn event(happening: Happening, id: String, now: i64) -> WebhookEvent {
    let mut event = WebhookEvent {
        id,
        created_at: now,
        ..WebhookEvent::default()
    };
    let (name, room) = match happening {
        Happening::RoomStarted(room) => ("room_started", Some(room)),
        Happening::RoomFinished(room, reason) => {
            event.room_end_reason = reason.into();
            ("room_finished", Some(room))
        }
        Happening::Joined(room, participant) => {
            event.participant = Some(participant);
            ("participant_joined", Some(room))
        }
        Happening::Left(room, participant) => {
            event.participant = Some(participant);
            ("participant_left", Some(room))
        }
        Happening::Aborted(room, participant) => {
            event.participant = Some(participant);
            ("participant_connection_aborted", Some(room))
        }
        Happening::Published(room, participant, track) => {
            (event.participant, event.track) = (Some(named(participant)), Some(track));
            ("track_published", Some(short(room)))
        }
        Happening::Unpublished(room, participant, track) => {
            (event.participant, event.track) = (Some(named(participant)), Some(track));
            ("track_unpublished", Some(short(room)))
        }
        Happening::EgressStarted(info) => {
            event.egress_info = Some(*info);
            ("egress_started", None)
        }
        Happening::EgressUpdated(info) => {
            event.egress_info = Some(*info);
            ("egress_updated", None)
        }
        Happening::EgressEnded(info) => {
            event.egress_info = Some(*info);
            ("egress_ended", None)
        }
        Happening::IngressStarted(info) => {
            event.ingress_info = Some(*info);
            ("ingress_started", None)
        }
        Happening::IngressEnded(info) => {
            event.ingress_info = Some(*info);
            ("ingress_ended", None)
        }
    };
    event.event = name.to_owned();
    event.room = room;
    event
}

/// Returns what events of tracks tell of a room.
fn short(room: Room) -> Room {
    Room {
        sid: room.sid,
        name: room.name,
        ..Room::default()
    }
}

/// Returns what events of tracks tell of a participant.
fn named(participant: ParticipantInfo) -> ParticipantInfo {
    ParticipantInfo {
        sid: participant.sid,
        identity: participant.identity,
        ..ParticipantInfo::default()
    }
}

/// Writes and signs an event at `now`, in seconds since 1970.
pub(crate) fn sign(
    event: &WebhookEvent,
    keys: &Keys,
    key: &str,
    now: u64,
) -> Result<Message, SigningError> {
    let body = serde_json::to_string(event).map_err(|_| SigningError::Unsigned)?;
    let grants = Grants {
        sha256: STANDARD.encode(sha256(body.as_bytes())),
        ..Grants::default()
    };
    Ok(Message {
        authorization: keys.sign(key, &grants, now, VALID)?,
        body,
    })
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::indexing_slicing,
        reason = "a test fails by a panic"
    )]
    use livekit_protocol::{RoomEndReason, TrackInfo};
    use serde_json::{Value, json};

    use super::*;

    fn room() -> Room {
        Room {
            sid: "RM_1".to_owned(),
            name: "den".to_owned(),
            num_participants: 2,
            ..Room::default()
        }
    }

    fn participant() -> ParticipantInfo {
        ParticipantInfo {
            sid: "PA_1".to_owned(),
            identity: "al".to_owned(),
            name: "Al".to_owned(),
            ..ParticipantInfo::default()
        }
    }

    fn json_of(happening: Happening) -> Value {
        serde_json::to_value(event(happening, "EV_1".to_owned(), 7)).unwrap()
    }

    #[test]
    fn events_of_rooms_and_participants_describe_them() {
        let got = json_of(Happening::RoomFinished(
            room(),
            RoomEndReason::RoomEndApiDelete,
        ));
        let expected = json!({
            "event": "room_finished", "id": "EV_1", "createdAt": "7",
            "room": {"sid": "RM_1", "name": "den", "numParticipants": 2},
            "roomEndReason": "ROOM_END_API_DELETE",
        });
        assert_eq!(got, expected);
        let got = json_of(Happening::Joined(room(), participant()));
        assert_eq!(got["event"], "participant_joined");
        assert_eq!(got["participant"]["name"], "Al");
    }

    #[test]
    fn events_of_tracks_name_the_room_and_the_participant_only() {
        let track = TrackInfo {
            sid: "TR_1".to_owned(),
            ..TrackInfo::default()
        };
        let got = json_of(Happening::Published(room(), participant(), track));
        let expected = json!({
            "event": "track_published", "id": "EV_1", "createdAt": "7",
            "room": {"sid": "RM_1", "name": "den"},
            "participant": {"sid": "PA_1", "identity": "al"},
            "track": {"sid": "TR_1"},
        });
        assert_eq!(got, expected);
    }

    #[test]
    fn the_token_has_the_digest_of_the_body() {
        let keys = Keys::new([("devkey".to_owned(), "secret".into())]);
        let event = event(Happening::RoomStarted(room()), "EV_1".to_owned(), 7);
        let message = sign(&event, &keys, "devkey", 1_000).unwrap();
        let verified = keys.verify(&message.authorization, 1_000).unwrap();
        let digest = STANDARD.encode(sha256(message.body.as_bytes()));
        assert_eq!(verified.grants.sha256, digest);
        assert_eq!(verified.expires_at, 1_300);
        let read: WebhookEvent = serde_json::from_str(&message.body).unwrap();
        assert_eq!(read, event);
        assert_eq!(sign(&event, &keys, "no", 0), Err(SigningError::NoKey));
    }
}
