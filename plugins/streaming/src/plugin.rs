//! The plugin in the form that the core knows.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use portunus_core::events::EventBus;
use portunus_core::media::MediaPlane;
use portunus_core::record::Recorder;
use portunus_core::{
    Asked, Broadcast, ConfiguredPlugin, Fields, Handle, Plugin, PluginContext, PluginCounter,
    PluginHandle, PluginInfo, PluginReloaded, Reply,
};
use portunus_files::Folders;
use portunus_resources::{Asker, Resources, SavedError};
use serde_json::Value;

use crate::bounds::{Bounds, Places};
use crate::cluster::Mountpoints;
use crate::config::{ConfiguredMountpoint, PACKAGE, StreamingConfig};
use crate::management;
use crate::refusal::Refusal;
use crate::requests::Request;
use crate::shared::Shared;
use crate::viewer::ViewerHandle;

/// The plugin, with its mountpoints.
pub struct Streaming {
    pub(crate) shared: Arc<Shared>,
}

impl Streaming {
    /// Starts the plugin with the mountpoints of the configuration and the permanent ones. Logs
    /// those that cannot be made.
    pub async fn start(
        config: StreamingConfig,
        media: MediaPlane,
        recorder: Recorder,
    ) -> Result<Self, SavedError> {
        let cluster = Mountpoints::default();
        Self::watched(config, (media, recorder), &EventBus::default(), &cluster).await
    }

    /// Starts the plugin, with `events` for the observers of the server, and `cluster` for other
    /// nodes.
    async fn watched(
        config: StreamingConfig,
        (media, recorder): (MediaPlane, Recorder),
        events: &EventBus,
        cluster: &Mountpoints,
    ) -> Result<Self, SavedError> {
        let keys = config.resource_keys();
        let StreamingConfig {
            rtp_port_range,
            folders,
            outgoing,
            mountpoints,
            ..
        } = config;
        let sources: Vec<_> = mountpoints.iter().map(|m| m.source().clone()).collect();
        let configured = mountpoints.into_iter().map(|m| m.into_spec()).collect();
        let (mountpoints, first) = Resources::start(keys, configured)?;
        let shared = Arc::new(Shared {
            ports: rtp_port_range,
            bounds: Bounds::Within(Arc::new(Places {
                folders: Folders::new(folders),
                networks: outgoing,
            })),
            media,
            recorder,
            events: events.of_plugin(PACKAGE),
            mountpoints,
            next_client: AtomicU64::new(1),
            changed: cluster.changes(),
        });
        cluster.keep_in(&shared);
        management::create_all(&shared, first, &sources).await;
        Ok(Streaming { shared })
    }
}

impl ConfiguredPlugin for Streaming {
    const NAME: &'static str = "streaming";
    type Config = StreamingConfig;
    type Error = SavedError;

    async fn from_config(
        config: StreamingConfig,
        context: PluginContext,
    ) -> Result<Self, SavedError> {
        let PluginContext {
            media,
            recorder,
            outgoing,
            events,
            services,
        } = context;
        let cluster = services.get::<Mountpoints>().cloned().unwrap_or_default();
        let config = StreamingConfig { outgoing, ..config };
        Streaming::watched(config, (media, recorder), &events, &cluster).await
    }

    async fn reload(&self, running: &StreamingConfig, new: &StreamingConfig) -> PluginReloaded {
        self.shared
            .mountpoints
            .set_limits(new.resource_keys().limits);
        let specs = |config: &StreamingConfig| {
            let all = config.mountpoints.iter().cloned();
            all.map(ConfiguredMountpoint::into_spec).collect::<Vec<_>>()
        };
        portunus_resources::reload(&self.shared, &specs(running), &specs(new)).await
    }
}

impl Plugin for Streaming {
    fn info(&self) -> PluginInfo {
        PluginInfo {
            package: PACKAGE,
            name: "Streaming plugin",
            description: "One source to many viewers.",
            version: 11,
            version_string: "0.0.11",
        }
    }

    fn begins(&self, request: &str) -> bool {
        Asked::<Request>::named(request).is_some_and(Asked::begins)
    }

    fn attach(&self, handle: Handle) -> Box<dyn PluginHandle> {
        Box::new(ViewerHandle::new(handle, self.shared.clone()))
    }

    fn broadcast(&self) -> Option<&dyn Broadcast> {
        Some(self)
    }

    fn admin(&self, request: Value) -> Option<Reply> {
        let Value::Object(body) = request else {
            return Some(Reply::Success(Refusal::NotAnObject.to_json()));
        };
        let asked = match Request::asked(Fields(&body)) {
            Ok(asked) => asked,
            Err(refusal) => return Some(Reply::Success(refusal.to_json())),
        };
        let (shared, administrator) = (self.shared.clone(), Asker::administrator());
        Some(management::reply(shared, asked, body, administrator))
    }

    fn counters(&self) -> Vec<PluginCounter> {
        self.shared.mountpoints.counters()
    }
}

impl std::fmt::Debug for Streaming {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Streaming").finish_non_exhaustive()
    }
}
