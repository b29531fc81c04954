//! The plugin in the form that the core knows.

use std::sync::Arc;

use portunus_core::events::EventBus;
use portunus_core::media::MediaPlane;
use portunus_core::record::Recorder;
use portunus_core::{
    Asked, Broadcast, ConfiguredPlugin, Fields, Handle, Later, Plugin, PluginContext,
    PluginCounter, PluginHandle, PluginInfo, PluginReloaded, Reply,
};
use portunus_resources::{Asker, SavedError};
use portunus_room::Rooms;
use serde_json::{Map, Value};

use crate::client_handle::ClientHandle;
use crate::config::VideoRoomConfig;
use crate::directory::RoomDirectory;
use crate::preparation::named;
use crate::prepared::Prepared;
use crate::refusal::Refusal;
use crate::requests::{Management, Participation};
use crate::shared::{PACKAGE, Shared};

/// The plugin, with its rooms.
#[derive(Debug)]
pub struct VideoRoom {
    pub(crate) shared: Arc<Shared>,
}

impl VideoRoom {
    /// Starts the plugin with the rooms of its configuration. Fails if the saved rooms cannot be
    /// read.
    pub fn new(
        config: VideoRoomConfig,
        media: MediaPlane,
        recorder: Recorder,
    ) -> Result<Self, SavedError> {
        Self::watched(
            config,
            media,
            recorder,
            &EventBus::default(),
            Rooms::default(),
        )
    }

    /// Starts the plugin, with `events` for the observers of the server.
    fn watched(
        config: VideoRoomConfig,
        media: MediaPlane,
        recorder: Recorder,
        events: &EventBus,
        places: Rooms,
    ) -> Result<Self, SavedError> {
        let shared = Shared::start(config, media, recorder, events, places)?;
        Ok(VideoRoom {
            shared: Arc::new(shared),
        })
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
        // Tests start it without a server around it.
        let rooms = context.services.get::<Rooms>().cloned().unwrap_or_default();
        let (media, recorder) = (context.media, context.recorder);
        let plugin = VideoRoom::watched(config, media, recorder, &context.events, rooms.clone())?;
        let shared = Arc::downgrade(&plugin.shared);
        rooms.set(Arc::new(RoomDirectory(shared)));
        Ok(plugin)
    }

    async fn reload(&self, running: &VideoRoomConfig, new: &VideoRoomConfig) -> PluginReloaded {
        self.shared.rooms.set_limits(new.resource_keys().limits);
        portunus_resources::reload(&self.shared, &running.rooms, &new.rooms).await
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
        Box::new(ClientHandle::new(handle, self.shared.clone()))
    }

    fn broadcast(&self) -> Option<&dyn Broadcast> {
        Some(self)
    }

    fn counters(&self) -> Vec<PluginCounter> {
        self.shared.rooms.counters()
    }

    fn admin(&self, request: Value) -> Option<Reply> {
        let Value::Object(body) = request else {
            return Some(Reply::Success(Refusal::NotAnObject.to_json()));
        };
        let work = named(&body).and_then(|request: Management| {
            let asker = Asker::administrator();
            self.shared
                .prepare_management(request, Fields(&body), &asker)
        });
        let Some(work) = work else {
            return Some(administer(&self.shared, &body, Prepared::Nothing));
        };
        let shared = self.shared.clone();
        Some(Reply::Later(Later::new(async move {
            match administer(&shared, &body, work.await) {
                Reply::Success(answer) => answer,
                Reply::Later(later) => later.result().await,
                // No such request is answered like this.
                Reply::Ack(_) | Reply::Error(_) => Value::Null,
            }
        })))
    }
}

/// Answers a request of an administrator after its preparation.
fn administer(shared: &Shared, body: &Map<String, Value>, prepared: Prepared) -> Reply {
    let prepared = match prepared {
        Prepared::Answer(answer) => return Reply::Success(answer),
        prepared => prepared,
    };
    let fields = Fields(body);
    let name = fields.required_string("request");
    let reply = name.map_err(Refusal::from).and_then(|name| {
        let asker = Asker::administrator();
        shared.manage_named(name, fields, asker, prepared)
    });
    reply.unwrap_or_else(|refusal| Reply::Success(refusal.to_json()))
}
