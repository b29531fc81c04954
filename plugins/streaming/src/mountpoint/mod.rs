//! A mountpoint: what it is, who watches it, and where its media comes from.

mod info;
mod open;
mod played;
mod published;
mod pulled;
mod recorded;
mod stream;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use portunus_core::events::PluginEvents;
use portunus_core::media::MediaPlane;
use portunus_core::{Notice, Object};
use portunus_resources::{Access, Id, Resource};
use serde_json::Value;

use crate::bounds::Bounds;
use crate::spec::{MediaKind, MountpointSpec, PayloadFormat, PayloadTypes, SourceSpec};
use crate::viewer::{Viewer, ViewerId};

pub(crate) use open::open;
pub(crate) use played::Playing;
pub(crate) use published::Published;
use published::Publisher;
pub(crate) use stream::{Age, Live, Ports, Stream};

use open::Feeding;

/// How long it is waited for that the sockets of a mountpoint are closed.
const CLOSING: Duration = Duration::from_secs(5);

/// A mountpoint.
pub(crate) struct Mountpoint {
    pub(crate) id: Id,
    pub(crate) name: String,
    /// As it was asked for, with the ports that it has.
    pub(crate) spec: MountpointSpec,
    /// Its streams; their places never change.
    pub(crate) streams: Vec<Stream>,
    /// What can be edited.
    details: Mutex<Details>,
    /// Held from the look at the details until they are changed, also over the time that a disk takes.
    pub(crate) editing: Arc<tokio::sync::Mutex<()>>,
    enabled: AtomicBool,
    watched: Mutex<Watched>,
    /// The server that it is pulled from has said what it has.
    described: AtomicBool,
    /// Whose media it is, if a client publishes it.
    publisher: Mutex<Option<Publisher>>,
    feeding: Feeding,
    /// How long the file lasts that each viewer sees from its start.
    duration: Option<Duration>,
    bounds: Bounds,
    media: MediaPlane,
    /// Where whoever watches the server is told of what no client does to it.
    events: PluginEvents,
}

/// What can be edited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Details {
    pub(crate) description: String,
    pub(crate) metadata: Option<String>,
    pub(crate) access: Access,
}

/// Who watches.
#[derive(Default)]
struct Watched {
    /// Destroyed: nobody can watch any more.
    over: bool,
    viewers: HashMap<ViewerId, Arc<Viewer>>,
}

impl Resource for Mountpoint {
    type Written = MountpointSpec;

    const MEMBER: &'static str = "id";

    const EDITABLE: &'static [&'static str] =
        &["description", "metadata", "is_private", "secret", "pin"];

    fn key(&self) -> Id {
        Id::Text(self.name.clone())
    }

    fn apply(&self, written: &MountpointSpec) {
        let mut details = self.details();
        let description = written.description.clone();
        details.description = description.unwrap_or_else(|| self.name.clone());
        details.metadata.clone_from(&written.metadata);
        details.access = written.access.clone();
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

    /// Whether its viewers all see the same, and can be switched to another such mountpoint.
    pub(crate) fn is_live(&self) -> bool {
        match self.spec.source {
            SourceSpec::Rtp(_) | SourceSpec::Rtsp(_) | SourceSpec::Whip(_) => true,
            SourceSpec::Live(_) | SourceSpec::OnDemand(_) => false,
        }
    }

    /// Whether each viewer has a position of its own.
    pub(crate) fn is_on_demand(&self) -> bool {
        matches!(self.spec.source, SourceSpec::OnDemand(_))
    }

    /// How long the file lasts that each viewer sees from its start, if it says so.
    pub(crate) fn duration(&self) -> Option<Duration> {
        self.duration
    }

    /// Whether its media are those of publishers over PeerConnections.
    pub(crate) fn takes_publishers(&self) -> bool {
        matches!(self.spec.source, SourceSpec::Whip(_))
    }

    /// Whether viewers may set a playout delay.
    pub(crate) fn has_playout_delay(&self) -> bool {
        match &self.spec.source {
            SourceSpec::Rtp(rtp) => rtp.playoutdelay_ext,
            SourceSpec::Whip(whip) => whip.playoutdelay_ext,
            SourceSpec::Live(_) | SourceSpec::OnDemand(_) | SourceSpec::Rtsp(_) => false,
        }
    }

    /// Whether somebody sends to it.
    fn is_fed(&self) -> bool {
        match &self.spec.source {
            SourceSpec::Rtp(_) | SourceSpec::Rtsp(_) | SourceSpec::Whip(_) => self
                .streams
                .iter()
                .any(|stream| stream.live().age.is_fresh()),
            SourceSpec::Live(_) | SourceSpec::OnDemand(_) => false,
        }
    }

    /// The number of abs-capture-time in the packets that come in.
    pub(crate) fn abs_capture_time(&self) -> Option<u8> {
        match &self.spec.source {
            SourceSpec::Rtp(rtp) => rtp.abs_capture_time,
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
            SourceSpec::Live(_) | SourceSpec::OnDemand(_) | SourceSpec::Rtsp(_) => false,
        }
    }

    /// Whether a stream whose codec nobody has said is not there, as far as one can know.
    pub(crate) fn is_described(&self) -> bool {
        self.is_published() || self.described.load(Ordering::Acquire)
    }

    /// The payload type that viewers are offered for `format` as stream number `index`: the one that was asked for, or
    /// `usual`, unless another stream has it for something else.
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

    /// Counts `viewer`; false if there is nothing to watch any more.
    pub(crate) fn add_viewer(&self, viewer: &Arc<Viewer>) -> bool {
        let mut watched = lock(&self.watched);
        if !watched.over {
            watched.viewers.insert(viewer.id, viewer.clone());
        }
        !watched.over
    }

    pub(crate) fn remove_viewer(&self, viewer: ViewerId) {
        lock(&self.watched).viewers.remove(&viewer);
    }

    pub(crate) fn viewer_count(&self) -> usize {
        lock(&self.watched).viewers.len()
    }

    pub(crate) fn viewers(&self) -> Vec<Arc<Viewer>> {
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
            if let (Some(source), MediaKind::Video) = (source, stream.kind()) {
                self.media.keep_keyframe(source, self.keyframes(simulcast));
            }
        }
        self.let_in();
    }

    /// Lets in what is wanted: by viewers if it is enabled, or by what records it.
    pub(crate) fn let_in(&self) {
        let enabled = self.is_enabled();
        match &self.spec.source {
            // A publisher's media is not ours to stop: the routes are closed. A viewer's own file is held.
            SourceSpec::Whip(_) | SourceSpec::OnDemand(_) => {
                for viewer in self.viewers() {
                    viewer.apply_settings(self);
                }
            }
            // What is recorded has to come in all the same: then only the routes are closed.
            SourceSpec::Rtp(_) | SourceSpec::Rtsp(_) | SourceSpec::Live(_) => {
                let wanted = enabled || self.is_recorded();
                self.feeding.enable(&self.media, wanted);
                self.connect_viewers();
            }
        }
    }

    /// Tells viewers why they are thrown out, and closes their PeerConnections. They may watch again.
    pub(crate) fn dismiss_viewers(&self, status: &'static str) {
        let viewers = std::mem::take(&mut lock(&self.watched).viewers);
        for viewer in viewers.into_values() {
            viewer.dismiss(self, status);
        }
    }

    /// Something that happened to it, as viewers and whoever watches the server are told of it.
    pub(crate) fn event(&self, name: &str) -> Object {
        Object::new()
            .with("event", name)
            .with("id", self.id.to_json())
    }

    /// Tells viewers something.
    pub(crate) fn tell_viewers(&self, event: impl Into<Value>) {
        let notice = Notice::new(event);
        for viewer in self.viewers() {
            viewer.tell(&notice);
        }
    }

    /// Whether it has ended.
    pub(crate) fn is_over(&self) -> bool {
        lock(&self.watched).over
    }

    /// Ends it: viewers are told, and ports are free again when this is over. Unless it is cut off before it was polled,
    /// all of that happens however long it is waited for.
    pub(crate) async fn close(&self) {
        lock(&self.watched).over = true;
        self.dismiss_viewers("stopped");
        self.dismiss_publisher();
        self.stop_recordings();
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
