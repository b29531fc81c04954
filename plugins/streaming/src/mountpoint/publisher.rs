//! Mountpoints whose media a client publishes.

use std::sync::Arc;
use std::time::Duration;

use portunus_core::ExtensionMap;
use portunus_core::media::{KeyframeCache, SourceRef, TrackRef};
use portunus_core::sdp::CodecSpec;
use tokio::time::Instant;
use tracing::info;

use super::file_source::KEYFRAMES_OF_FILES;
use super::{Age, Client, ClientId, Mountpoint, Stream, lock, opening};
use crate::spec::{MediaKind, PayloadFormat, SourceSpec, StreamCodec};

/// The silence after which a publisher can be replaced.
const VANISHED: Duration = Duration::from_secs(2);

/// The media of a publisher for one stream.
#[derive(Debug)]
pub(crate) struct Published {
    pub(crate) codec: CodecSpec,
    pub(crate) source: Option<TrackRef>,
    pub(crate) simulcast: bool,
    pub(crate) svc: bool,
    /// The ids of header extensions.
    pub(crate) extensions: ExtensionMap,
}

/// Whose media a mountpoint has.
pub(super) struct Publisher {
    client: Arc<dyn Client>,
    since: Instant,
}

impl Mountpoint {
    pub(crate) fn is_published(&self) -> bool {
        lock(&self.publisher).is_some()
    }

    /// Returns whether this handle publishes to it, and it has not ended.
    pub(crate) fn has_publisher(&self, id: ClientId) -> bool {
        let is_it = |publisher: &Publisher| publisher.client.id() == id;
        let known = lock(&self.publisher).as_ref().is_some_and(is_it);
        known && !self.is_over()
    }

    /// Returns whether `client` can be the publisher. A publisher that has been silent for
    /// [`VANISHED`] is replaced: most likely it has crashed and now comes again.
    fn admits(&self, publisher: Option<&Publisher>, over: bool, client: ClientId) -> bool {
        match publisher {
            Some(known) if known.client.id() == client => true,
            Some(known) if known.since.elapsed() < VANISHED => false,
            Some(_) => !over && self.is_silent(VANISHED),
            None => !over,
        }
    }

    /// Makes `client` the publisher. Returns false unless it is [admitted](Self::admits).
    pub(crate) fn take_publisher(&self, client: &Arc<dyn Client>) -> bool {
        let over = self.is_over();
        let former = {
            let mut publisher = lock(&self.publisher);
            if !self.admits(publisher.as_ref(), over, client.id()) {
                return false;
            }
            if publisher
                .as_ref()
                .is_some_and(|known| known.client.id() == client.id())
            {
                return true;
            }
            publisher.replace(Publisher {
                client: client.clone(),
                since: Instant::now(),
            })
        };
        if let Some(former) = former {
            info!(id = %self.id, "a publisher that fell silent is replaced");
            self.forget_sources(|_, _| false);
            former.client.dismiss(self, "replaced");
        }
        true
    }

    /// Returns whether all streams have been silent for `time`.
    fn is_silent(&self, time: Duration) -> bool {
        let silent = |stream: &Stream| match stream.live().age {
            Age::None => true,
            Age::Awaited(since) | Age::Since(since) => since.elapsed() >= time,
            Age::Now | Age::Ingest(_) => false,
        };
        self.streams.iter().all(silent)
    }

    /// Makes the publisher's media the source of a stream. Missing parameters of the codec are as
    /// configured.
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
        live.extensions = published.extensions;
        live.codec = codec;
        live.pt = pt;
        live.channels = channels;
        live.fmtp = fmtp;
    }

    /// Returns the keyframe cache of a video stream. Simulcast, end-to-end encryption and a
    /// disabled mountpoint have none.
    pub(super) fn keyframes(&self, simulcast: bool) -> Option<KeyframeCache> {
        if simulcast || self.is_e2ee() || !self.is_enabled() {
            return None;
        }
        match &self.spec.source {
            SourceSpec::Rtp(rtp) => opening::keyframe_cache(rtp.keyframes),
            SourceSpec::Rtsp(rtsp) => opening::keyframe_cache(rtsp.keyframes),
            SourceSpec::Whip(whip) => opening::keyframe_cache(whip.keyframes),
            SourceSpec::Live(_) | SourceSpec::OnDemand(_) => Some(KEYFRAMES_OF_FILES),
            SourceSpec::Relayed(_) => None,
        }
    }

    /// Makes the missing routes to all viewers.
    pub(crate) fn connect_viewers(&self) {
        for viewer in self.viewers() {
            viewer.apply_settings(self);
        }
    }

    /// Removes the publisher, so that viewers wait for another one. Returns false if `id` does not
    /// publish.
    pub(crate) fn unpublish(&self, id: ClientId) -> bool {
        let mut publisher = lock(&self.publisher);
        if publisher
            .as_ref()
            .is_none_or(|known| known.client.id() != id)
        {
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

    /// Dismisses the publisher, because the mountpoint ends.
    pub(super) fn dismiss_publisher(&self) {
        let publisher = lock(&self.publisher).take();
        if let Some(publisher) = publisher {
            publisher.client.dismiss(self, "stopped");
        }
    }
}
