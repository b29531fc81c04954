//! A PeerConnection of a participant, as a room sees it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use livekit_protocol::{
    DisconnectReason, MuteTrackRequest, leave_request, participant_info, signal_response,
};
use portunus_core::{Handle, JsepError};
use portunus_media::PeerId;
use portunus_record::{JointRecording, JointSpec, Recording, RecordingSpec};
use portunus_room::{
    Client, Connection, ConnectionId, Event as RoomEvent, Notice, PersonId, Profile,
    RecordedClient, Refusal, State, Told,
};
use portunus_rtp::Mid;
use portunus_sdp::{Description, LocalJsep, Msid};
use serde_json::{Value, json};

use crate::frame::Frame;
use crate::hall::{Event, Member, is_displaced, leave, ticket_of};

/// A PeerConnection of a participant.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) handle: Handle,
    pub(crate) member: Arc<Member>,
}

/// An update that is written once for all clients of this door. `None` if nobody may see it.
type Update = Option<Arc<Frame>>;

impl Connection for Peer {
    fn id(&self) -> ConnectionId {
        ConnectionId(self.handle.id().0)
    }

    fn peer(&self) -> Option<PeerId> {
        self.handle.peer()
    }

    fn offer(&self, description: Description, restart: bool) -> Result<LocalJsep, Refusal> {
        self.handle.offer(description, restart).map_err(refused)
    }

    fn answer(&self, description: Description) -> Result<LocalJsep, Refusal> {
        self.handle.answer(description).map_err(refused)
    }

    fn close(&self) {
        self.handle.close_pc();
    }

    fn msid(&self, feed: &PersonId, mid: Mid) -> Option<Msid> {
        let people = self.member.hall.people();
        let person = people.get(feed)?;
        let track = person.track_of(mid)?;
        let stream = match self.member.reception.in_sync {
            true => track.stream(),
            false => &track.sid,
        };
        Some(Msid {
            stream: format!("{}|{stream}", person.sid),
            track: track.sid.clone(),
        })
    }

    fn may_pause(&self) -> bool {
        self.member.reception.may_pause
    }

    fn record(
        &self,
        mid: Mid,
        open: bool,
        spec: RecordingSpec,
        _: RecordedClient<'_>,
    ) -> Option<Recording> {
        // This door has no message about recordings.
        self.handle.record(mid, open, spec, |_| Value::Null)
    }

    fn record_jointly(&self, spec: JointSpec, _: RecordedClient<'_>) -> Option<JointRecording> {
        self.handle.record_jointly(spec, |_| Value::Null)
    }
}

impl Client for Peer {
    fn wanted(&self) {
        self.member.is_unbalanced.store(true, Ordering::Release);
        self.member.wake.notify_one();
    }

    fn contested(&self, note: Option<&str>) {
        let other = note.map(ticket_of).unwrap_or_default();
        if is_displaced(self.member.ticket, other) {
            let reason = DisconnectReason::DuplicateIdentity;
            {
                let mut people = self.member.hall.people();
                if let Some(person) = people.get_mut(&self.member.id) {
                    person.disconnect_reason = reason;
                }
            }
            self.end(reason);
        }
    }

    fn send(&self, told: &Told<'_>, offer: Option<LocalJsep>) {
        let (member, state) = (&self.member, told.room);
        match told.notice {
            Notice::Joining(id) => {
                self.update(&told.written::<Update>(|| member.hall.update_soon(state, id)));
            }
            Notice::Renamed { id, .. } => {
                self.update(&told.written::<Update>(|| member.hall.update(state, id)));
            }
            Notice::Unpublished(id) => {
                self.update(&told.written::<Update>(|| member.hall.update(state, id)));
                member.is_behind();
            }
            Notice::Published(ids) => {
                self.update(&told.written::<Update>(|| member.hall.updates(state, ids)));
                member.is_behind();
            }
            Notice::Left(person) => {
                self.update(&told.written::<Update>(|| {
                    let profile = Some(&person.profile);
                    self.departed(state, person.id(), profile, None)
                }));
            }
            Notice::JoinUndone(id) => {
                self.update(&told.written::<Update>(|| self.departed(state, id, None, None)));
            }
            Notice::Kicked(person) => {
                self.update(&told.written::<Update>(|| {
                    let reason = DisconnectReason::ParticipantRemoved;
                    let profile = Some(&person.profile);
                    self.departed(state, person.id(), profile, Some(reason))
                }));
                member.is_behind();
            }
            Notice::Moderated { id, mid, mute } => {
                if *id == member.id {
                    self.muted(mid, mute);
                }
                self.update(&told.written::<Update>(|| member.hall.update(state, id)));
            }
            Notice::ThrownOut => self.end(DisconnectReason::ParticipantRemoved),
            Notice::Destroyed => self.end(DisconnectReason::RoomDeleted),
            Notice::Offered(_) => {
                if let Some(offer) = offer {
                    member.offer(state, offer);
                }
            }
            Notice::Talk(_) | Notice::Dominant(_) | Notice::Seats(..) | Notice::Layer { .. } => {}
        }
    }

    fn notify(&self, room: &State, event: &RoomEvent<'_>) {
        let (name, id) = match event {
            RoomEvent::Published(id) => ("published", *id),
            RoomEvent::Updated(id) => ("configured", *id),
            RoomEvent::Unpublished(person) => ("unpublished", person.id()),
            RoomEvent::Left(person) => ("leaving", person.id()),
            RoomEvent::Kicked(person) => ("kicked", person.id()),
            RoomEvent::Talk(_)
            | RoomEvent::Subscribing(_)
            | RoomEvent::Resubscribed(_)
            | RoomEvent::Unsubscribed { .. } => return,
        };
        let event = || json!({ "event": name, "room": room.name(), "id": id.as_str() });
        self.handle.notify(event);
    }

    fn hears_joins(&self) -> bool {
        true
    }

    fn hears_speech(&self) -> bool {
        true
    }
}

impl Peer {
    fn update(&self, update: &Update) {
        if let Some(frame) = update {
            self.member.out.send(frame);
        }
    }

    /// Forgets a participant that is gone, and had this profile. Returns the last update about it.
    fn departed(
        &self,
        state: &State,
        id: &PersonId,
        profile: Option<&Profile>,
        reason: Option<DisconnectReason>,
    ) -> Update {
        let mut people = self.member.hall.people();
        let is_hidden = people.is_hidden(id);
        people.change(id);
        let mut info = people.info(state, id)?;
        let published = people.remove(id).is_some_and(|it| !it.tracks.is_empty());
        info.state = participant_info::State::Disconnected.into();
        info.is_publisher = published || !info.tracks.is_empty();
        info.tracks.clear();
        if let Some(profile) = profile {
            info.name = profile.display.clone().unwrap_or_default();
            info.metadata = profile.metadata.clone().unwrap_or_default();
        }
        if let Some(reason) = reason {
            info.disconnect_reason = reason.into();
        }
        drop(people);
        if is_hidden {
            return None;
        }
        self.member.hall.departure(id, info)
    }

    /// Tells the client that a moderator has muted one of its tracks.
    fn muted(&self, mid: &str, muted: bool) {
        let people = self.member.hall.people();
        let person = people.get(&self.member.id);
        let track = person.and_then(|person| person.track_of(Mid::new(mid)?));
        let Some(sid) = track.map(|track| track.sid.clone()) else {
            return;
        };
        drop(people);
        let mute = MuteTrackRequest { sid, muted };
        self.member
            .out
            .message(signal_response::Message::Mute(mute));
    }

    /// Tells the client that it is no longer in the room.
    fn end(&self, reason: DisconnectReason) {
        self.member
            .out
            .message(leave(reason, leave_request::Action::Disconnect));
        self.member.out.close();
        self.member.happens(Event::End(reason));
    }
}

fn refused(error: JsepError) -> Refusal {
    match error {
        JsepError::Closing => Refusal::Closing,
        error => Refusal::Negotiation(error.to_string()),
    }
}
