//! The plugin, and what its handles share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use portunus_core::configuration::PortRange;
use portunus_core::events::{EventBus, PluginEvents};
use portunus_core::media::MediaPlane;
use portunus_core::record::Recorder;
use portunus_core::{
    Asked, Broadcast, ConfiguredPlugin, Fields, Handle, Plugin, PluginContext, PluginCounter,
    PluginHandle, PluginInfo, PluginReloaded, Reply, Rights,
};
use portunus_files::Folders;
use portunus_resources::{Asker, Reloadable, Resources, SavedError};
use serde_json::Value;

use crate::bounds::{Bounds, Places};
use crate::config::{ConfiguredMountpoint, StreamingConfig};
use crate::manage;
use crate::mountpoint::Mountpoint;
use crate::refusal::Refusal;
use crate::requests::Request;
use crate::spec::MountpointSpec;
use crate::viewer::{Attached, ViewerId};

pub(crate) const PACKAGE: &str = "janus.plugin.streaming";

/// The plugin, with its mountpoints.
pub struct Streaming {
    pub(crate) shared: Arc<Shared>,
}

/// What all handles share.
pub(crate) struct Shared {
    pub(crate) ports: PortRange,
    /// How far what is made by requests may reach.
    pub(crate) bounds: Bounds,
    pub(crate) media: MediaPlane,
    pub(crate) recorder: Recorder,
    /// Where whoever watches the server is told of what no client does.
    pub(crate) events: PluginEvents,
    pub(crate) mountpoints: Resources<Mountpoint>,
    next_viewer: AtomicU64,
}

impl Shared {
    /// Returns the request, if `rights` and those of the admin key that it shows suffice, and all of these rights.
    pub(crate) fn permit(
        &self,
        asked: Asked<Request>,
        fields: Fields<'_>,
        rights: Rights,
    ) -> Result<(Request, Rights), Refusal> {
        let rights = self.mountpoints.rights(fields, rights);
        Ok((asked.permit(fields, rights)?, rights))
    }

    /// Tells whoever watches the server what has happened: as something that `client` did, if one did it.
    pub(crate) fn notify(&self, client: Option<&Handle>, data: impl FnOnce() -> Value) {
        match client {
            Some(client) => client.notify(data),
            None => self.events.notify(data),
        }
    }

    pub(crate) fn next_viewer(&self) -> ViewerId {
        ViewerId(self.next_viewer.fetch_add(1, Ordering::Relaxed))
    }
}

impl Streaming {
    /// The plugin on `media`, which feeds its viewers, and with `recorder` for what is to be recorded. The mountpoints of the
    /// configuration and those that were saved are made at once, as far as they can be: what is wrong with the others is in the log.
    pub async fn start(
        config: StreamingConfig,
        media: MediaPlane,
        recorder: Recorder,
    ) -> Result<Self, SavedError> {
        Self::watched(config, media, recorder, &EventBus::default()).await
    }

    /// The same, whose doings are told on `events`.
    async fn watched(
        config: StreamingConfig,
        media: MediaPlane,
        recorder: Recorder,
        events: &EventBus,
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
            next_viewer: AtomicU64::new(1),
        });
        manage::create_all(&shared, first, &sources).await;
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
            services: _,
        } = context;
        let config = StreamingConfig { outgoing, ..config };
        Streaming::watched(config, media, recorder, &events).await
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

impl Reloadable for Shared {
    type Resource = Mountpoint;

    fn resources(&self) -> &Resources<Mountpoint> {
        &self.mountpoints
    }

    async fn make_configured(self: Arc<Self>, spec: MountpointSpec) -> Result<(), String> {
        let made = manage::create_configured(&self, spec).await;
        made.map_err(|refusal| refusal.to_string())
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
        Box::new(Attached::new(handle, self.shared.clone()))
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
        Some(manage::reply(shared, asked, body, administrator))
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
