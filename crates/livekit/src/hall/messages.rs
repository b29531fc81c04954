//! The description of a room.

use livekit_protocol::{Codec, Room};
use portunus_room::State;
use portunus_sdp::Kind;

use super::Hall;
use super::track::mime_type;

impl Hall {
    /// Returns the description of the room.
    pub(crate) fn info(&self, state: &State) -> Room {
        let people = state.people().filter(|person| !person.is_dummy());
        let (mut all, mut publishers) = (0, 0);
        for person in people {
            all += 1;
            publishers += u32::from(state.published(person.id()).is_some());
        }
        let identity = self.identity();
        let mut room = Room {
            sid: identity.sid,
            name: self.name.clone(),
            creation_time: identity.created_ms / 1_000,
            creation_time_ms: identity.created_ms,
            enabled_codecs: codecs(state),
            num_participants: all,
            num_publishers: publishers,
            ..Room::default()
        };
        self.options().describe(&mut room);
        room
    }
}

/// Returns the codecs of a room.
pub(crate) fn codecs(state: &State) -> Vec<Codec> {
    let settings = state.settings();
    let kinds = [Kind::Audio, Kind::Video].into_iter();
    let codecs = kinds.flat_map(|kind| settings.codecs(kind).iter());
    let codec = |codec| Codec {
        mime: mime_type(codec),
        fmtp_line: String::new(),
    };
    codecs.copied().map(codec).collect()
}
