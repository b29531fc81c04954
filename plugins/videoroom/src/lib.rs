//! The Video Room plugin, `janus.plugin.videoroom`: rooms in which many publish and many watch.
//!
//! It is the door of the Janus API to the conferences of `portunus_room`: it parses what clients ask for (`read`), lets them
//! in by secrets and tokens (`room`), and writes what they are told (`show`).
#![forbid(unsafe_code)]

mod attached;
mod broadcast;
mod client;
mod config;
mod manage;
mod options;
mod read;
mod refusal;
mod requests;
mod room;
mod show;

use std::sync::Arc;

use portunus_core::events::{EventBus, PluginEvents};
use portunus_core::media::MediaPlane;
use portunus_core::record::Recorder;
use portunus_core::{
    Asked, Broadcast, ConfiguredPlugin, Fields, Handle, Networks, Plugin, PluginContext,
    PluginCounter, PluginHandle, PluginInfo, PluginReloaded, Reply,
};
use portunus_resources::{AllowedTokens, Asker, Maker, Reloadable, Resources};
use serde_json::Value;

pub use config::{ConfiguredRoom, VideoRoomConfig, rewrite_saved};
pub use portunus_resources::{Id, RoomProblem, SavedError};
pub use requests::{Management, Participation};

use crate::client::Watchers;
use crate::refusal::Refusal;
use crate::room::Room;

const PACKAGE: &str = "janus.plugin.videoroom";

/// The plugin, with its rooms.
#[derive(Debug)]
pub struct VideoRoom {
    shared: Arc<Shared>,
}

/// What all handles of the plugin share.
#[derive(Debug)]
pub(crate) struct Shared {
    /// Forwarding needs the admin key.
    lock_rtp_forward: bool,
    /// The networks that media may be forwarded to.
    outgoing: Arc<Networks>,
    media: MediaPlane,
    recorder: Recorder,
    /// Where whoever watches the server is told of what no client does.
    events: PluginEvents,
    rooms: Resources<Room>,
}

impl VideoRoom {
    /// The plugin with the rooms of its configuration, on a media plane, and with what it records with; an error if the
    /// saved rooms cannot be read.
    pub fn new(
        config: VideoRoomConfig,
        media: MediaPlane,
        recorder: Recorder,
    ) -> Result<Self, SavedError> {
        Self::watched(config, media, recorder, &EventBus::default())
    }

    /// The same, whose doings are told on `events`.
    fn watched(
        config: VideoRoomConfig,
        media: MediaPlane,
        recorder: Recorder,
        events: &EventBus,
    ) -> Result<Self, SavedError> {
        let (rooms, first) = Resources::start(config.resource_keys(), config.rooms)?;
        let shared = Arc::new(Shared {
            lock_rtp_forward: config.lock_rtp_forward && rooms.has_admin_key(),
            outgoing: Arc::new(config.outgoing),
            media,
            recorder,
            events: events.of_plugin(PACKAGE),
            rooms,
        });
        for room in first {
            if let Err(error) = shared.make_saved(room) {
                tracing::warn!("a configured room is left out: {error}");
            }
        }
        Ok(VideoRoom { shared })
    }
}

impl ConfiguredPlugin for VideoRoom {
    const NAME: &'static str = "videoroom";
    type Config = VideoRoomConfig;
    type Error = SavedError;

    async fn from_config(
        config: VideoRoomConfig,
        context: PluginContext,
    ) -> Result<Self, SavedError> {
        let config = VideoRoomConfig {
            outgoing: context.outgoing,
            ..config
        };
        VideoRoom::watched(config, context.media, context.recorder, &context.events)
    }

    async fn reload(&self, running: &VideoRoomConfig, new: &VideoRoomConfig) -> PluginReloaded {
        self.shared.rooms.set_limits(new.resource_keys().limits);
        portunus_resources::reload(&self.shared, &running.rooms, &new.rooms).await
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

impl Plugin for VideoRoom {
    fn info(&self) -> PluginInfo {
        PluginInfo {
            package: PACKAGE,
            name: "Video Room plugin",
            description: "Rooms in which many publish and many watch.",
            version: 10,
            version_string: "0.0.10",
        }
    }

    fn begins(&self, request: &str) -> bool {
        Asked::<Participation>::named(request).is_some_and(Asked::begins)
    }

    fn attach(&self, handle: Handle) -> Box<dyn PluginHandle> {
        Box::new(attached::Attached::new(handle, self.shared.clone()))
    }

    fn broadcast(&self) -> Option<&dyn Broadcast> {
        Some(self)
    }

    fn counters(&self) -> Vec<PluginCounter> {
        self.shared.rooms.counters()
    }

    fn admin(&self, request: Value) -> Option<Reply> {
        let administer = |fields: Fields<'_>| {
            let name = fields.required_string("request")?;
            let asker = Asker::administrator();
            self.shared.manage_named(name, fields, asker)
        };
        let fields = request.as_object().map(Fields);
        let reply = fields.ok_or(Refusal::NotAnObject).and_then(administer);
        Some(reply.unwrap_or_else(|refusal| Reply::Success(refusal.to_json())))
    }
}

impl Shared {
    /// Makes a room of the configuration, or one that was saved.
    fn make_saved(&self, room: ConfiguredRoom) -> Result<(), Refusal> {
        let (tokens, maker) = (AllowedTokens::default(), Maker::Operator);
        let made = self.make(Some(room.id), room.options, tokens, maker);
        made.map(drop)
    }

    /// Those who watch the server.
    pub(crate) fn watchers(&self) -> Watchers {
        Watchers {
            events: self.events.clone(),
            ids: self.rooms.ids(),
        }
    }
}
