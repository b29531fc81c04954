//! The state that all handles of the plugin share.

use std::sync::Arc;

use portunus_core::Networks;
use portunus_core::events::{EventBus, PluginEvents};
use portunus_core::media::MediaPlane;
use portunus_core::record::Recorder;
use portunus_resources::{
    AllowedTokens, Id, Maker, Reloadable, Reservation, Resources, SavedError,
};
use portunus_room::{FileNames, Room as Conference, Rooms, Setup};

use crate::client::Watchers;
use crate::config::{ConfiguredRoom, VideoRoomConfig};
use crate::options::RoomOptions;
use crate::refusal::Refusal;
use crate::requests::fields::person;
use crate::room::{Door, Room};

pub(crate) const PACKAGE: &str = "janus.plugin.videoroom";

/// The state that all handles of the plugin share.
#[derive(Debug)]
pub(crate) struct Shared {
    /// Forwarding needs the admin key.
    pub(crate) lock_rtp_forward: bool,
    /// The networks that media may be forwarded to.
    pub(crate) outgoing: Arc<Networks>,
    pub(crate) media: MediaPlane,
    pub(crate) recorder: Recorder,
    /// The events that no client has caused.
    events: PluginEvents,
    pub(crate) rooms: Resources<Room>,
    /// Where other nodes of a cluster are found.
    pub(crate) places: Rooms,
}

impl Shared {
    /// Makes the rooms of the configuration. Fails if the saved rooms cannot be read.
    pub(crate) fn start(
        config: VideoRoomConfig,
        media: MediaPlane,
        recorder: Recorder,
        events: &EventBus,
        places: Rooms,
    ) -> Result<Self, SavedError> {
        let (rooms, first) = Resources::start(config.resource_keys(), config.rooms)?;
        let shared = Shared {
            lock_rtp_forward: config.lock_rtp_forward && rooms.has_admin_key(),
            outgoing: Arc::new(config.outgoing),
            media,
            recorder,
            events: events.of_plugin(PACKAGE),
            rooms,
            places,
        };
        for room in first {
            if let Err(error) = shared.make_saved(room) {
                tracing::warn!("a configured room is left out: {error}");
            }
        }
        Ok(shared)
    }

    /// Returns the observers of the server.
    pub(crate) fn watchers(&self) -> Watchers {
        Watchers {
            events: self.events.clone(),
            ids: self.rooms.ids(),
        }
    }

    /// Makes a room of the configuration or of the file of permanent rooms.
    fn make_saved(&self, room: ConfiguredRoom) -> Result<(), Refusal> {
        let (tokens, maker) = (AllowedTokens::default(), Maker::Operator);
        let made = self.make(Some(room.id), room.options, tokens, maker);
        made.map(drop)
    }

    /// Makes a room with the id `wanted`, or with a free one.
    pub(crate) fn make(
        &self,
        wanted: Option<Id>,
        options: RoomOptions,
        allowed: AllowedTokens,
        maker: Maker,
    ) -> Result<Arc<Room>, Refusal> {
        let reservation = self.rooms.reserve(wanted, maker)?;
        Ok(self.make_reserved(reservation, options, allowed, 0))
    }

    /// Makes a room with a reserved id, whose definition was changed `edited` times.
    pub(crate) fn make_reserved(
        &self,
        reservation: Reservation<Room>,
        options: RoomOptions,
        allowed: AllowedTokens,
        edited: u64,
    ) -> Arc<Room> {
        let id = reservation.id().clone();
        let options = options.described(&id);
        let conference = Conference::new(Setup {
            name: id.to_string().into(),
            settings: options.settings,
            media: self.media.clone(),
            recorder: self.recorder.clone(),
            names: FileNames {
                owner: PACKAGE,
                prefix: "videoroom",
            },
            watcher: Box::new(self.watchers()),
        });
        let dummy = person(&self.rooms.ids().random(|_| false));
        conference.lock().add_dummy(dummy);
        let door = Door {
            id,
            options: options.door,
            allowed,
            conference: Arc::new(conference),
            events: self.events.clone(),
            edited,
            definition: None,
        };
        let room = Arc::new(Room::new(door));
        reservation.keep(room.clone());
        room
    }
}

impl Reloadable for Shared {
    type Resource = Room;

    fn resources(&self) -> &Resources<Room> {
        &self.rooms
    }

    async fn make_configured(self: Arc<Self>, room: ConfiguredRoom) -> Result<(), String> {
        self.make_saved(room).map_err(|error| error.to_string())
    }
}
