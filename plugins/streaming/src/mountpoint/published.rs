//! A mountpoint whose media a client publishes.

use std::sync::Arc;
use std::time::Duration;

use portunus_core::media::{KeyframeCache, SourceRef, TrackRef};
use portunus_core::sdp::CodecSpec;
use tokio::time::Instant;
use tracing::info;

use super::played::KEYFRAMES_OF_FILES;
use super::{Age, Mountpoint, Stream, lock, open};
use crate::spec::{MediaKind, PayloadFormat, SourceSpec, StreamCodec};
use crate::viewer::{Viewer, ViewerId};

/// A publisher that nothing has come of for so long can be replaced.
const VANISHED: Duration = Duration::from_secs(2);

/// What a publisher sends as a stream.
#[derive(Debug)]
pub(crate) struct Published {
    pub(crate) codec: CodecSpec,
    pub(crate) source: Option<TrackRef>,
    pub(crate) simulcast: bool,
    pub(crate) svc: bool,
}

/// Whose media a mountpoint has.
pub(super) struct Publisher {
    viewer: Arc<Viewer>,
    since: Instant,
}

impl Mountpoint {
    pub(crate) fn is_published(&self) -> bool {
        lock(&self.publisher).is_some()
    }

    /// Whether this handle publishes to it, and it has not ended.
    pub(crate) fn has_publisher(&self, id: ViewerId) -> bool {
        let is_it = |publisher: &Publisher| publisher.viewer.id == id;
        let known = lock(&self.publisher).as_ref().is_some_and(is_it);
        known && !self.is_over()
    }

    /// Whether `viewer` can be the publisher. One that has been silent for [`VANISHED`] gives way: most likely it has
    /// crashed, and who comes is the same client again.
    fn admits(&self, publisher: Option<&Publisher>, over: bool, viewer: ViewerId) -> bool {
        match publisher {
            Some(known) if known.viewer.id == viewer => true,
            Some(known) if known.since.elapsed() < VANISHED => false,
            Some(_) => !over && self.is_silent(VANISHED),
            None => !over,
        }
    }

    /// Makes `viewer` the publisher; false unless it is [admitted](Self::admits).
    pub(crate) fn take_publisher(&self, viewer: &Arc<Viewer>) -> bool {
        let over = self.is_over();
        let former = {
            let mut publisher = lock(&self.publisher);
            if !self.admits(publisher.as_ref(), over, viewer.id) {
                return false;
            }
            if publisher
                .as_ref()
                .is_some_and(|known| known.viewer.id == viewer.id)
            {
                return true;
            }
            publisher.replace(Publisher {
                viewer: viewer.clone(),
                since: Instant::now(),
            })
        };
        if let Some(former) = former {
            info!(id = %self.id, "a publisher that fell silent is replaced");
            self.forget_sources(|_, _| false);
            former.viewer.dismiss(self, "replaced");
        }
        true
    }

    /// Whether nothing has come of any stream for `time`.
    fn is_silent(&self, time: Duration) -> bool {
        let silent = |stream: &Stream| match stream.live().age {
            Age::None => true,
            Age::Awaited(since) | Age::Since(since) => since.elapsed() >= time,
            Age::Now | Age::Ingest(_) => false,
        };
        self.streams.iter().all(silent)
    }

    /// Takes what the publisher sends as the stream's source. What it does not say of the codec is as configured.
    pub(crate) fn set_published(&self, index: usize, published: Published) {
        let Some(stream) = self.streams.get(index) else {
            return;
        };
        let source = published.source.map(SourceRef::from);
        if let (Some(source), MediaKind::Video) = (source, stream.kind()) {
            self.media
                .keep_keyframe(source, self.keyframes(published.simulcast));
        }
        let channels = published.codec.unusual_channels();
        let own = published.codec.codec_name().map(StreamCodec::Plain);
        let codec = stream.spec.codec.or(own);
        let fmtp = stream.spec.fmtp.clone().or(published.codec.fmtp);
        let usual = published.codec.pt.0;
        let pt = codec.map_or(usual, |codec| {
            let format = PayloadFormat::new(codec, fmtp.as_deref());
            self.payload_type(index, &format, usual)
        });
        let mut live = stream.live();
        if live.source != source {
            live.age = Age::Awaited(Instant::now());
        }
        live.source = source;
        live.simulcast = published.simulcast;
        live.svc = published.svc;
        live.codec = codec;
        live.pt = pt;
        live.channels = channels;
        live.fmtp = fmtp;
    }

    /// What is kept of a stream of video: of encodings to choose from, and of what nobody can tell keyframes in, nothing, nor
    /// of what nobody is to see, although it may come in to be recorded.
    pub(super) fn keyframes(&self, simulcast: bool) -> Option<KeyframeCache> {
        if simulcast || self.is_e2ee() || !self.is_enabled() {
            return None;
        }
        match &self.spec.source {
            SourceSpec::Rtp(rtp) => open::keyframe_cache(rtp.keyframes),
            SourceSpec::Rtsp(rtsp) => open::keyframe_cache(rtsp.keyframes),
            SourceSpec::Whip(whip) => open::keyframe_cache(whip.keyframes),
            SourceSpec::Live(_) | SourceSpec::OnDemand(_) => Some(KEYFRAMES_OF_FILES),
        }
    }

    /// Routes the streams to all viewers whose m-lines have nothing yet.
    pub(crate) fn connect_viewers(&self) {
        for viewer in self.viewers() {
            viewer.apply_settings(self);
        }
    }

    /// The publisher is gone: viewers wait for another one. False if it is another handle that publishes, or none.
    pub(crate) fn unpublish(&self, id: ViewerId) -> bool {
        let mut publisher = lock(&self.publisher);
        if publisher.as_ref().is_none_or(|known| known.viewer.id != id) {
            return false;
        }
        *publisher = None;
        drop(publisher);
        self.forget_sources(|_, _| false);
        true
    }

    /// Forgets the sources of the streams that `stays` is not true of: their routes end.
    pub(crate) fn forget_sources(&self, stays: impl Fn(usize, SourceRef) -> bool) {
        let mut forgotten = Vec::new();
        for (index, stream) in self.streams.iter().enumerate() {
            let mut live = stream.live();
            if !live.source.is_some_and(|source| stays(index, source)) {
                live.source = None;
                live.age = Age::None;
                forgotten.push(index);
            }
        }
        for viewer in self.viewers() {
            viewer.forget_routes(self, &forgotten);
        }
    }

    /// The mountpoint ends: so does its publisher.
    pub(super) fn dismiss_publisher(&self) {
        let publisher = lock(&self.publisher).take();
        if let Some(publisher) = publisher {
            publisher.viewer.dismiss(self, "stopped");
        }
    }
}
