//! Listeners: clients that hear the mix of a room without being in it. Nobody sees them, and they
//! share one mix for each codec.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use portunus_audio::{MixSource, Mixture};
use portunus_core::media::{RouteId, RouteOptions};
use portunus_core::{Handle, HandleId};
use portunus_dsp::{AudioCodec, Encoding};

use super::mix::Mix;
use super::profile::Profile;
use crate::codec::shared_encoding;
use crate::line::Line;

/// The listeners of a room, and the mixes for them.
#[derive(Debug, Default)]
pub(crate) struct Listeners {
    by_handle: HashMap<HandleId, Listener>,
    mixes: HashMap<Encoding, Weak<MixSource>>,
}

#[derive(Debug)]
struct Listener {
    handle: Handle,
    feed: Option<Feed>,
}

/// The stream to a listener.
#[derive(Debug)]
struct Feed {
    line: Line,
    route: Option<RouteId>,
    /// Dropping the last reference ends the mix.
    _mix: Arc<MixSource>,
}

impl Listeners {
    /// Removes all listeners.
    pub(super) fn take_all(&mut self) -> impl Iterator<Item = Handle> + use<> {
        self.mixes.clear();
        let all = std::mem::take(&mut self.by_handle).into_values();
        all.map(|listener| listener.handle)
    }

    /// The number of listeners.
    pub(crate) fn len(&self) -> usize {
        self.by_handle.len()
    }

    /// The clients.
    pub(super) fn handles(&self) -> impl Iterator<Item = &Handle> {
        self.by_handle.values().map(|listener| &listener.handle)
    }

    /// Adds a listener. It hears nothing until [`Listeners::send_mix`].
    pub(crate) fn add(&mut self, handle: &Handle) {
        let listener = Listener {
            handle: handle.clone(),
            feed: None,
        };
        self.by_handle.insert(handle.id(), listener);
    }

    pub(crate) fn has(&self, handle: HandleId) -> bool {
        self.by_handle.contains_key(&handle)
    }

    /// Sends the mix to a listener by the m-line that was negotiated.
    pub(crate) fn send_mix(&mut self, handle: HandleId, line: Line, mix: &Mix, profile: &Profile) {
        let codec = line.codec.filter(|_| line.sends);
        let mix = codec.map(|codec| self.shared_mix(codec, mix, profile));
        let Some(listener) = self.by_handle.get_mut(&handle) else {
            return;
        };
        if listener.feed.as_ref().is_some_and(|it| it.line == line) {
            return;
        }
        if let Some(route) = listener.feed.take().and_then(|feed| feed.route) {
            listener.handle.remove_route(route);
        }
        listener.feed = mix.map(|mix| Feed {
            route: listener
                .handle
                .route_from(mix.source(), line.mid, RouteOptions::default()),
            line,
            _mix: mix,
        });
    }

    pub(crate) fn remove(&mut self, handle: HandleId) {
        let removed = self.by_handle.remove(&handle);
        if let Some(listener) = removed
            && let Some(route) = listener.feed.and_then(|feed| feed.route)
        {
            listener.handle.remove_route(route);
        }
        self.mixes.retain(|_, mix| mix.strong_count() > 0);
    }

    /// The mix that all listeners with this codec share.
    fn shared_mix(&mut self, codec: AudioCodec, mix: &Mix, profile: &Profile) -> Arc<MixSource> {
        let encoding = shared_encoding(codec, profile.options());
        let known = self.mixes.get(&encoding);
        if let Some(mix) = known.and_then(Weak::upgrade) {
            return mix;
        }
        let mix = Arc::new(mix.source(Mixture::Everyone, encoding, false));
        self.mixes.insert(encoding, Arc::downgrade(&mix));
        mix
    }
}
