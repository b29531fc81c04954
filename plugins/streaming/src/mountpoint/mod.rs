//! A mountpoint: its streams, its viewers, and its source.

mod client;
mod file_source;
mod info;
mod opening;
mod publisher;
mod recordings;
mod relayed;
mod rtsp_source;
mod stream;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use portunus_core::events::PluginEvents;
use portunus_core::media::MediaPlane;
use portunus_core::{Notice, Object};
use portunus_resources::{Id, Resource};
use serde_json::Value;

use crate::bounds::Bounds;
use crate::spec::{
    DETAILS, Details, MediaKind, MountpointSpec, PayloadFormat, PayloadTypes, SourceSpec,
};

pub(crate) use client::{Client, ClientId};
pub(crate) use file_source::Playing;
pub(crate) use info::Disclosure;
pub(crate) use opening::{OpenContext, open};
pub(crate) use publisher::Published;
use publisher::Publisher;
use relayed::Relay;
pub(crate) use stream::{Age, Live, Ports, Stream};

use opening::Feeding;

/// The timeout for the sockets of a closed mountpoint.
const CLOSING: Duration = Duration::from_secs(5);

/// A mountpoint.
pub(crate) struct Mountpoint {
    pub(crate) id: Id,
    pub(crate) name: String,
    /// The specification, with the ports in use.
    pub(crate) spec: MountpointSpec,
    /// The streams. Their indices never change.
    pub(crate) streams: Vec<Stream>,
    /// The options that can be edited.
    details: Mutex<Details>,
    /// The lock of an edit, from the check of the details to the write to the disk.
    pub(crate) editing: Arc<tokio::sync::Mutex<()>>,
    enabled: AtomicBool,
    watched: Mutex<Watched>,
    /// Whether the RTSP server has described its media.
    described: AtomicBool,
    /// The client that publishes, if there is one.
    publisher: Mutex<Option<Publisher>>,
    feeding: Feeding,
    /// What another node has told of the mountpoint, if it is that node's.
    relay: Mutex<Relay>,
    /// The duration of a file that plays for each viewer.
    duration: Option<Duration>,
    bounds: Bounds,
    media: MediaPlane,
    /// The events that no client has caused.
    events: PluginEvents,
}

/// The viewers.
#[derive(Default)]
struct Watched {
    /// Whether the mountpoint has ended, so that it takes no viewers.
    over: bool,
    viewers: HashMap<ClientId, Arc<dyn Client>>,
}

impl Resource for Mountpoint {
    type Written = MountpointSpec;

    const MEMBER: &'static str = "id";

    fn is_editable(key: &str) -> bool {
        DETAILS.is_editable(key)
    }

    fn key(&self) -> Id {
        Id::Text(self.name.clone())
    }

    fn apply(&self, written: &MountpointSpec) {
        *self.details() = written.details.clone().of(&self.name);
    }

    fn id(&self) -> &Id {
        &self.id
    }

    fn is_private(&self) -> bool {
        self.details().access.is_private
    }

    fn has_clients(&self) -> bool {
        self.viewer_count() > 0 || self.is_published()
    }

    fn is_used(&self) -> bool {
        self.viewer_count() > 0 || self.is_published() || self.is_fed()
    }

    async fn end_unused(self: Arc<Self>) -> bool {
        let is_ours = {
            let mut watched = lock(&self.watched);
            let unused = !watched.over && watched.viewers.is_empty();
            watched.over |= unused;
            unused
        };
        if is_ours {
            self.close().await;
            self.events.notify(|| self.event("destroyed").into());
        }
        is_ours
    }
}

impl Mountpoint {
    pub(crate) fn details(&self) -> MutexGuard<'_, Details> {
        lock(&self.details)
    }

    pub(crate) fn is_enabled(&self) -> bool {
        self.enabled.load(Ordering::Acquire)
    }

    /// Returns whether all viewers see the same, so that they can switch to another such
    /// mountpoint.
    pub(crate) fn is_live(&self) -> bool {
        match self.spec.source {
            SourceSpec::Rtp(_)
            | SourceSpec::Rtsp(_)
            | SourceSpec::Whip(_)
            | SourceSpec::Relayed(_) => true,
            SourceSpec::Live(_) | SourceSpec::OnDemand(_) => false,
        }
    }

    /// Returns whether each viewer has a position of its own.
    pub(crate) fn is_on_demand(&self) -> bool {
        matches!(self.spec.source, SourceSpec::OnDemand(_))
    }

    /// Returns the duration of a file that plays for each viewer, if it is known.
    pub(crate) fn duration(&self) -> Option<Duration> {
        self.duration
    }

    /// Returns whether its media comes from publishers over PeerConnections.
    pub(crate) fn takes_publishers(&self) -> bool {
        matches!(self.spec.source, SourceSpec::Whip(_))
    }

    /// Returns whether viewers may set a playout delay.
    pub(crate) fn has_playout_delay(&self) -> bool {
        match &self.spec.source {
            SourceSpec::Rtp(rtp) => rtp.playoutdelay_ext,
            SourceSpec::Whip(whip) => whip.playoutdelay_ext,
            SourceSpec::Relayed(relayed) => relayed.playoutdelay_ext,
            SourceSpec::Live(_) | SourceSpec::OnDemand(_) | SourceSpec::Rtsp(_) => false,
        }
    }

    /// Returns whether packets come in.
    fn is_fed(&self) -> bool {
        match &self.spec.source {
            SourceSpec::Rtp(_) | SourceSpec::Rtsp(_) | SourceSpec::Whip(_) => self
                .streams
                .iter()
                .any(|stream| stream.live().age.is_fresh()),
            SourceSpec::Live(_) | SourceSpec::OnDemand(_) | SourceSpec::Relayed(_) => false,
        }
    }

    /// Returns the id of abs-capture-time in incoming packets.
    pub(crate) fn abs_capture_time(&self) -> Option<u8> {
        match &self.spec.source {
            SourceSpec::Rtp(rtp) => rtp.abs_capture_time,
            SourceSpec::Relayed(relayed) => relayed.abs_capture_time,
            SourceSpec::Whip(_)
            | SourceSpec::Live(_)
            | SourceSpec::OnDemand(_)
            | SourceSpec::Rtsp(_) => None,
        }
    }

    pub(crate) fn is_e2ee(&self) -> bool {
        match &self.spec.source {
            SourceSpec::Rtp(rtp) => rtp.e2ee,
            SourceSpec::Whip(whip) => whip.e2ee,
            SourceSpec::Relayed(relayed) => relayed.e2ee,
            SourceSpec::Live(_) | SourceSpec::OnDemand(_) | SourceSpec::Rtsp(_) => false,
        }
    }

    /// Returns whether all of the source's codecs are known, so that a stream without one does not
    /// exist.
    pub(crate) fn is_described(&self) -> bool {
        self.is_published() || self.described.load(Ordering::Acquire)
    }

    /// Returns the payload type of `format` for viewers, as stream `index`: the requested one or
    /// `usual`, unless another stream has it for another format.
    fn payload_type(&self, index: usize, format: &PayloadFormat, usual: u8) -> u8 {
        let mut types = PayloadTypes::default();
        let others = self.streams.iter().enumerate();
        for (_, other) in others.filter(|(other, _)| *other != index) {
            let live = other.live();
            match (live.codec, other.spec.pt) {
                (Some(codec), _) => {
                    let format = PayloadFormat::new(codec, live.fmtp.as_deref());
                    types.take(live.pt, format);
                }
                (None, Some(pt)) => types.reserve(pt),
                (None, None) => {}
            }
        }
        let asked = self.streams.get(index).and_then(|stream| stream.spec.pt);
        types.find(format, asked, usual).unwrap_or(usual)
    }

    /// Adds a viewer. Returns false if the mountpoint has ended.
    pub(crate) fn add_viewer(&self, viewer: Arc<dyn Client>) -> bool {
        let mut watched = lock(&self.watched);
        if !watched.over {
            watched.viewers.insert(viewer.id(), viewer);
        }
        let is_added = !watched.over;
        drop(watched);
        if is_added && self.home().is_some() {
            self.take_sources();
        }
        is_added
    }

    pub(crate) fn remove_viewer(&self, viewer: ClientId) {
        lock(&self.watched).viewers.remove(&viewer);
    }

    pub(crate) fn viewer_count(&self) -> usize {
        lock(&self.watched).viewers.len()
    }

    pub(crate) fn viewers(&self) -> Vec<Arc<dyn Client>> {
        lock(&self.watched).viewers.values().cloned().collect()
    }

    /// Turns the relaying of what comes in on or off.
    pub(crate) fn enable(&self, enabled: bool) {
        self.enabled.store(enabled, Ordering::Release);
        for stream in &self.streams {
            let (source, simulcast) = {
                let live = stream.live();
                (live.source, live.simulcast)
            };
            // The relay keeps those of other nodes.
            let is_own = self.home().is_none();
            if let (Some(source), MediaKind::Video, true) = (source, stream.kind(), is_own) {
                self.media.keep_keyframe(source, self.keyframes(simulcast));
            }
        }
        self.let_in();
    }

    /// Opens or closes the source: it is open if the mountpoint is enabled or recorded.
    pub(crate) fn let_in(&self) {
        let enabled = self.is_enabled();
        match &self.spec.source {
            // The source cannot be stopped here. The routes are closed, and own files of viewers
            // pause.
            SourceSpec::Whip(_) | SourceSpec::OnDemand(_) | SourceSpec::Relayed(_) => {
                for viewer in self.viewers() {
                    viewer.apply_settings(self);
                }
            }
            // A recorded source stays open. Then only the routes are closed.
            SourceSpec::Rtp(_) | SourceSpec::Rtsp(_) | SourceSpec::Live(_) => {
                let wanted = enabled || self.is_recorded();
                self.feeding.enable(&self.media, wanted);
                self.connect_viewers();
            }
        }
    }

    /// Dismisses all viewers with this status, and closes their PeerConnections. They may watch
    /// again.
    pub(crate) fn dismiss_viewers(&self, status: &'static str) {
        let viewers = std::mem::take(&mut lock(&self.watched).viewers);
        for viewer in viewers.into_values() {
            viewer.dismiss(self, status);
        }
    }

    /// Returns the head of an event, for viewers and observers of the server.
    pub(crate) fn event(&self, name: &str) -> Object {
        Object::new()
            .with("event", name)
            .with("id", self.id.to_json())
    }

    /// Tells viewers something.
    pub(crate) fn notify_viewers(&self, event: impl Into<Value>) {
        let notice = Notice::new(event);
        for viewer in self.viewers() {
            viewer.send_notice(&notice);
        }
    }

    /// Returns whether it has ended.
    pub(crate) fn is_over(&self) -> bool {
        lock(&self.watched).over
    }

    /// Ends the mountpoint. Returns when its ports are free again. Once polled, the end happens
    /// even if the caller does not wait for it.
    pub(crate) async fn close(&self) {
        lock(&self.watched).over = true;
        self.dismiss_viewers("stopped");
        self.dismiss_publisher();
        self.stop_recordings();
        self.release_all();
        let ends = self.feeding.close(&self.media);
        let closed = async {
            for end in ends {
                end.closed().await;
            }
        };
        if tokio::time::timeout(CLOSING, closed).await.is_err() {
            tracing::warn!(id = %self.id, "the workers are slow: ports of a destroyed mountpoint are not free yet");
        }
    }
}

impl std::fmt::Debug for Mountpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Mountpoint({})", self.id)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
