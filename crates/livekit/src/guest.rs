//! Participants of this door without a client: ingresses and telephones. Their media are ingests of
//! the media plane.

use std::collections::HashMap;
use std::sync::Arc;

use livekit_protocol::{
    AddTrackRequest, DisconnectReason, TrackSource, TrackType, participant_info,
};
use portunus_media::{IngestId, MediaPlane, PeerId};
use portunus_record::{JointRecording, JointSpec, Recording, RecordingSpec};
use portunus_room::{
    Client, Connection, ConnectionId, Event as RoomEvent, Join, Notice, Permissions, PersonId,
    Profile, RecordedClient, Refusal, Remote, State, Stream, TalkSettings, Told, hear,
};
use portunus_rtp::Mid;
use portunus_sdp::{CodecName, Description, Kind, LocalJsep};
use tokio::sync::mpsc;

use crate::hall::{Hall, Person, Track};

/// The number of news that wait for the owner of a guest.
const NEWS: usize = 16;

/// The profile of H.264 that guests send: constrained baseline.
const H264_PROFILE: &str = "42e01f";

/// How a guest is seen.
#[derive(Debug, Clone)]
pub(crate) struct GuestProfile {
    pub(crate) identity: String,
    pub(crate) name: String,
    pub(crate) metadata: String,
    pub(crate) attributes: HashMap<String, String>,
    pub(crate) kind: participant_info::Kind,
}

/// A track of a guest.
#[derive(Debug, Clone)]
pub(crate) struct GuestTrack {
    pub(crate) codec: CodecName,
    pub(crate) source: TrackSource,
    pub(crate) name: String,
    /// Its packets.
    pub(crate) ingest: IngestId,
}

/// What a room does to a guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum GuestNews {
    /// It is out of the room.
    Out(DisconnectReason),
    /// A moderator has muted its tracks, or unmuted them.
    Muted(bool),
}

/// A guest in a room. Dropping it takes it out.
#[derive(Debug)]
pub(crate) struct Guest {
    hall: Arc<Hall>,
    media: MediaPlane,
    id: PersonId,
    key: ConnectionId,
    sid: String,
}

/// The guest as the room sees it.
#[derive(Debug)]
struct Presence {
    id: PersonId,
    key: ConnectionId,
    news: mpsc::Sender<GuestNews>,
}

impl Guest {
    /// Enters a room. The receiver gets what the room does to the guest.
    pub(crate) fn enter(
        hall: &Arc<Hall>,
        media: &MediaPlane,
        profile: GuestProfile,
    ) -> Result<(Self, mpsc::Receiver<GuestNews>), Refusal> {
        hall.report_started();
        let id = hall.id_of(&profile.identity);
        // Handles have numbers below 2^53.
        let key = ConnectionId(rand::random::<u64>() | 1 << 63);
        let (news, hears) = mpsc::channel(NEWS);
        let mut state = hall.room.lock();
        if state.is_destroyed() {
            return Err(Refusal::NotInRoom);
        }
        let presence = Arc::new(Presence {
            id: id.clone(),
            key,
            news,
        });
        let person = Person::guest(profile.identity, profile.kind, profile.attributes);
        let sid = person.sid.clone();
        let before = {
            let mut people = hall.people();
            let before = people.remove(&id);
            people.add(&id, person);
            before
        };
        let text = |text: String| (!text.is_empty()).then_some(text);
        let join = Join {
            id: id.clone(),
            profile: Profile {
                display: text(profile.name),
                metadata: text(profile.metadata),
            },
            permissions: Permissions::ALL,
            talk: TalkSettings::default(),
        };
        if let Err(refusal) = state.join(presence, join) {
            let mut people = hall.people();
            people.remove(&id);
            if let Some(before) = before {
                people.add(&id, before);
            }
            return Err(refusal);
        }
        hall.is_joined();
        hall.note(&mut state, &id);
        drop(state);
        let guest = Guest {
            hall: hall.clone(),
            media: media.clone(),
            id,
            key,
            sid,
        };
        Ok((guest, hears))
    }

    /// Returns the id of its session.
    pub(crate) fn sid(&self) -> &str {
        &self.sid
    }

    /// Returns its room.
    pub(crate) const fn hall(&self) -> &Arc<Hall> {
        &self.hall
    }

    /// Returns its id in the room.
    pub(crate) const fn id(&self) -> &PersonId {
        &self.id
    }

    /// Publishes tracks.
    pub(crate) fn publish(&self, tracks: &[GuestTrack]) -> Result<(), Refusal> {
        let mut state = self.hall.room.lock();
        let (mut streams, mut ingests, mut described) = (Vec::new(), Vec::new(), Vec::new());
        for (index, track) in tracks.iter().enumerate() {
            let Some(mid) = Mid::new(&index.to_string()) else {
                continue;
            };
            streams.push(stream(index, mid, track));
            ingests.push((mid, track.ingest));
            described.push(describe(mid, track));
        }
        {
            let mut people = self.hall.people();
            if let Some(person) = people.get_mut(&self.id) {
                person.tracks = described;
            }
        }
        self.hall.note(&mut state, &self.id);
        let (remote, hears) = Remote::of_ingests(self.media.clone(), ingests);
        state.publish_ingests(&self.id, self.key, remote, streams)?;
        let room = Arc::downgrade(&self.hall.room);
        tokio::spawn(hear(room, self.id.clone(), hears));
        Ok(())
    }

    /// Returns its identity.
    pub(crate) fn identity(&self) -> String {
        self.hall.people().identity(&self.id)
    }

    /// Mutes its first track, or unmutes it. Returns whether it is muted now, or `None` if it is not
    /// in the room any more.
    pub(crate) fn toggle_mute(&self) -> Option<bool> {
        let mut state = self.hall.room.lock();
        let stream = state.publication(&self.id)?.streams().first()?;
        let (mid, muted) = (stream.mid, !stream.is_moderated());
        let moderated = state.moderate(&self.id, mid.as_str(), muted);
        moderated.ok().map(|()| muted)
    }

    /// Changes its attributes, and tells the others.
    pub(crate) fn set_attributes(&self, attributes: impl IntoIterator<Item = (String, String)>) {
        let state = self.hall.room.lock();
        {
            let mut people = self.hall.people();
            let Some(person) = people.get_mut(&self.id) else {
                return;
            };
            person.attributes.extend(attributes);
        }
        self.hall.send_update(&state, &self.id);
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        let mut state = self.hall.room.lock();
        state.gone(&self.id, self.key);
        let mut people = self.hall.people();
        let is_own = people.get(&self.id).is_some_and(|it| it.sid == self.sid);
        if is_own {
            people.remove(&self.id);
        }
    }
}

fn stream(index: usize, mid: Mid, track: &GuestTrack) -> Stream {
    let mut stream = Stream::new(track.codec.kind(), mid, index);
    stream.disabled = false;
    stream.description = Some(track.name.clone()).filter(|name| !name.is_empty());
    stream.format.codec = Some(track.codec);
    if track.codec == CodecName::H264 {
        stream.format.h264_profile = Some(H264_PROFILE.to_owned());
    }
    stream
}

fn describe(mid: Mid, track: &GuestTrack) -> Track {
    let kind = match track.codec.kind() {
        Kind::Video => TrackType::Video,
        Kind::Audio | Kind::Data => TrackType::Audio,
    };
    let request = AddTrackRequest {
        r#type: kind.into(),
        source: track.source.into(),
        name: track.name.clone(),
        ..AddTrackRequest::default()
    };
    Track {
        mid: Some(mid),
        ..Track::new(request)
    }
}

impl Presence {
    fn tell(&self, news: GuestNews) {
        if self.news.try_send(news).is_err() {
            tracing::debug!(id = %self.id, "news of a guest are lost");
        }
    }
}

impl Connection for Presence {
    fn id(&self) -> ConnectionId {
        self.key
    }

    fn peer(&self) -> Option<PeerId> {
        None
    }

    fn offer(&self, _: Description, _: bool) -> Result<LocalJsep, Refusal> {
        Err(Refusal::NotPublished)
    }

    fn answer(&self, _: Description) -> Result<LocalJsep, Refusal> {
        Err(Refusal::NotPublished)
    }

    fn close(&self) {}

    fn record(
        &self,
        _: Mid,
        _: bool,
        _: RecordingSpec,
        _: RecordedClient<'_>,
    ) -> Option<Recording> {
        // The room records ingests itself.
        None
    }

    fn record_jointly(&self, _: JointSpec, _: RecordedClient<'_>) -> Option<JointRecording> {
        None
    }
}

impl Client for Presence {
    fn send(&self, told: &Told<'_>, _: Option<LocalJsep>) {
        match told.notice {
            Notice::ThrownOut => {
                self.tell(GuestNews::Out(DisconnectReason::ParticipantRemoved));
            }
            Notice::Destroyed => self.tell(GuestNews::Out(DisconnectReason::RoomDeleted)),
            Notice::Moderated { id, mute, .. } if *id == self.id => {
                self.tell(GuestNews::Muted(mute));
            }
            _ => {}
        }
    }

    fn notify(&self, _: &State, _: &RoomEvent<'_>) {}
}
