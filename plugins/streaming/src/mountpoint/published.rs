//! A mountpoint whose media a client publishes.

use std::sync::Arc;

use portunus_core::media::{KeyframeCache, SourceRef, TrackRef};
use portunus_core::sdp::CodecSpec;

use super::{Age, Mountpoint, lock, open};
use crate::spec::{MediaKind, SourceSpec, StreamCodec};
use crate::viewer::{Viewer, ViewerId};

/// What a publisher sends as a stream.
#[derive(Debug)]
pub(crate) struct Published {
    pub(crate) codec: CodecSpec,
    pub(crate) source: Option<TrackRef>,
    pub(crate) simulcast: bool,
    pub(crate) svc: bool,
}

impl Mountpoint {
    pub(crate) fn is_published(&self) -> bool {
        lock(&self.publisher).is_some()
    }

    /// Makes `viewer` the publisher; false if there is another one.
    pub(crate) fn take_publisher(&self, viewer: &Arc<Viewer>) -> bool {
        let over = lock(&self.watched).over;
        let mut publisher = lock(&self.publisher);
        match &*publisher {
            Some(known) => known.id == viewer.id,
            None if over => false,
            None => {
                *publisher = Some(viewer.clone());
                true
            }
        }
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
        let mut live = stream.live();
        live.source = source;
        live.simulcast = published.simulcast;
        live.svc = published.svc;
        live.age = Age::Since(std::time::Instant::now());
        if stream.spec.codec.is_none() {
            let name = published.codec.codec_name();
            live.codec = name.map(StreamCodec::Plain);
            live.pt = stream.spec.pt.unwrap_or(published.codec.pt.0);
        }
        if stream.spec.fmtp.is_none() {
            live.fmtp = published.codec.fmtp;
        }
    }

    fn keyframes(&self, simulcast: bool) -> Option<KeyframeCache> {
        match &self.spec.source {
            SourceSpec::Whip(whip) if !simulcast => open::keyframe_cache(whip.keyframes),
            _ => None,
        }
    }

    /// Routes the streams to all viewers whose m-lines have nothing yet.
    pub(crate) fn connect_viewers(&self) {
        for viewer in self.viewers() {
            viewer.apply_settings(self);
        }
    }

    /// The publisher is gone: viewers wait for another one.
    pub(crate) fn unpublish(&self, id: ViewerId) {
        let mut publisher = lock(&self.publisher);
        if publisher.as_ref().is_none_or(|known| known.id != id) {
            return;
        }
        *publisher = None;
        drop(publisher);
        for stream in &self.streams {
            let mut live = stream.live();
            live.source = None;
            live.age = Age::None;
        }
        for viewer in self.viewers() {
            viewer.forget_routes(self);
        }
    }

    /// The mountpoint ends: so does its publisher.
    pub(super) fn dismiss_publisher(&self) {
        let publisher = lock(&self.publisher).take();
        if let Some(publisher) = publisher {
            publisher.dismiss(self, "stopped");
        }
    }
}
