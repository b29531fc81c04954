//! The state that all handles of the plugin share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use portunus_core::configuration::PortRange;
use portunus_core::events::PluginEvents;
use portunus_core::media::MediaPlane;
use portunus_core::record::Recorder;
use portunus_core::{Asked, Fields, Handle, Rights};
use portunus_resources::Resources;
use serde_json::Value;
use tokio::sync::Notify;

use crate::bounds::Bounds;
use crate::mountpoint::{ClientId, Mountpoint, OpenContext};
use crate::refusal::Refusal;
use crate::requests::Request;

/// The state that all handles share.
pub(crate) struct Shared {
    pub(crate) ports: PortRange,
    /// The files and servers that mountpoints of requests may use.
    pub(crate) bounds: Bounds,
    pub(crate) media: MediaPlane,
    pub(crate) recorder: Recorder,
    /// The events that no client has caused.
    pub(crate) events: PluginEvents,
    pub(crate) mountpoints: Resources<Mountpoint>,
    pub(crate) next_client: AtomicU64,
    /// Told when mountpoints may have changed that other nodes show.
    pub(crate) changed: Arc<Notify>,
}

impl Shared {
    /// Returns the request and its rights, if `rights` and those of the shown admin key suffice.
    pub(crate) fn permit(
        &self,
        asked: Asked<Request>,
        fields: Fields<'_>,
        rights: Rights,
    ) -> Result<(Request, Rights), Refusal> {
        let rights = self.mountpoints.rights(fields, rights);
        Ok((asked.permit(fields, rights)?, rights))
    }

    /// Tells the observers of the server an event that `client` has caused, or nobody.
    pub(crate) fn notify(&self, client: Option<&Handle>, data: impl FnOnce() -> Value) {
        match client {
            Some(client) => client.notify(data),
            None => self.events.notify(data),
        }
    }

    pub(crate) fn next_client(&self) -> ClientId {
        ClientId(self.next_client.fetch_add(1, Ordering::Relaxed))
    }

    pub(crate) fn open_context(&self) -> OpenContext<'_> {
        OpenContext {
            ports: self.ports,
            media: &self.media,
            events: &self.events,
        }
    }
}
