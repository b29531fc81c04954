//! The tracks that an egress takes.

use livekit_protocol::TrackSource;
use portunus_record::TrackSpec;
use portunus_room::PersonId;
use portunus_sdp::{CodecName, Kind};

use crate::hall::Hall;

/// What an egress takes of its room.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Source {
    /// The tracks with these ids.
    Tracks(Vec<String>),
    /// What a participant publishes.
    Participant {
        identity: String,
        /// The screen share and its sound instead of camera and microphone.
        screen_share: bool,
    },
    /// What all participants publish.
    Room {
        audio_only: bool,
        video_only: bool,
        layout: String,
    },
}

/// A track that an egress takes.
#[derive(Debug, Clone)]
pub(super) struct SourceTrack {
    /// Its id.
    pub(super) sid: String,
    /// The participant.
    pub(super) owner: PersonId,
    pub(super) identity: String,
    pub(super) display: Option<String>,
    /// Its source, as LiveKit names it.
    pub(super) source: &'static str,
    pub(super) kind: Kind,
    pub(super) codec: CodecName,
    /// The track for the recorder. Its key is the id of the track.
    pub(super) spec: TrackSpec,
}

/// The tracks that there are now.
#[derive(Debug, Default)]
pub(super) struct Selection {
    pub(super) tracks: Vec<SourceTrack>,
    /// Whether those that publish them are there.
    pub(super) is_there: bool,
    /// Whether a track is left out because it is encrypted end to end.
    pub(super) is_encrypted: bool,
}

impl Source {
    /// Returns the template for the name of a file that the request does not name.
    pub(super) fn default_name(&self) -> &'static str {
        match self {
            Source::Tracks(ids) if ids.len() == 1 => "{track_id}-{time}",
            Source::Participant { .. } => "{room_name}-{publisher_identity}-{time}",
            Source::Tracks(_) | Source::Room { .. } => "{room_name}-{time}",
        }
    }

    /// Returns whether the whole room is composed.
    pub(super) const fn is_room(&self) -> bool {
        matches!(self, Source::Room { .. })
    }

    /// Returns the tracks that there are now.
    pub(super) fn select(&self, hall: &Hall) -> Selection {
        let state = hall.room.lock();
        let mut people = hall.people();
        let mut selection = Selection::default();
        let feeds: Vec<PersonId> = state.feeds().cloned().collect();
        selection.is_there = match self {
            Source::Participant { identity, .. } => state.person(&hall.id_of(identity)).is_some(),
            Source::Room { .. } => true,
            Source::Tracks(_) => false,
        };
        for feed in feeds {
            let Some(publication) = state.published(&feed) else {
                continue;
            };
            let tracks = people.tracks(&state, &feed);
            let identity = people.identity(&feed);
            let display = state
                .person(&feed)
                .and_then(|it| it.profile.display.clone());
            for (mid, track) in tracks {
                let Some(stream) = publication.stream(mid) else {
                    continue;
                };
                if !self.takes(&track.sid, &identity, track.request.source(), stream.kind) {
                    continue;
                }
                if publication.e2ee || track.is_encrypted() {
                    selection.is_encrypted = true;
                    continue;
                }
                let Some((mut spec, codec)) = publication.track(stream).zip(stream.format.codec)
                else {
                    continue;
                };
                spec.key.clone_from(&track.sid);
                selection.tracks.push(SourceTrack {
                    sid: track.sid,
                    owner: feed.clone(),
                    identity: identity.clone(),
                    display: display.clone(),
                    source: track.request.source().as_str_name(),
                    kind: stream.kind,
                    codec,
                    spec,
                });
            }
        }
        selection.is_there |= !selection.tracks.is_empty();
        selection
    }

    fn takes(&self, sid: &str, identity: &str, source: TrackSource, kind: Kind) -> bool {
        match self {
            Source::Tracks(ids) => ids.iter().any(|id| id == sid),
            Source::Participant {
                identity: wanted,
                screen_share,
            } => {
                let is_screen = matches!(
                    source,
                    TrackSource::ScreenShare | TrackSource::ScreenShareAudio
                );
                wanted == identity && is_screen == *screen_share
            }
            Source::Room {
                audio_only,
                video_only,
                ..
            } => match kind {
                Kind::Audio => !video_only,
                Kind::Video => !audio_only,
                Kind::Data => false,
            },
        }
    }
}
