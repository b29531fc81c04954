//! Those who hear the mix of a room without being in it: nobody sees them, and they are sent what all of them share.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use portunus_audio::{MixSource, Mixture};
use portunus_core::media::{RouteId, RouteOptions};
use portunus_core::{Handle, HandleId};
use portunus_dsp::{AudioCodec, Encoding};

use super::RoomState;
use crate::codec::shared_encoding;
use crate::line::Line;

/// The listeners of a room, and the mixes for them.
#[derive(Debug, Default)]
pub(super) struct Listeners {
    by_handle: HashMap<HandleId, Listener>,
    mixes: HashMap<Encoding, Weak<MixSource>>,
}

/// Somebody who only listens.
#[derive(Debug)]
pub(crate) struct Listener {
    handle: Handle,
    hears: Option<Hears>,
}

/// What a listener is sent.
#[derive(Debug)]
struct Hears {
    line: Line,
    route: Option<RouteId>,
    /// The mix, as long as somebody hears it.
    _mix: Arc<MixSource>,
}

impl Listeners {
    pub(super) fn is_empty(&self) -> bool {
        self.by_handle.is_empty()
    }

    /// Takes out whoever is there.
    pub(super) fn take_all(&mut self) -> impl Iterator<Item = Handle> + use<> {
        self.mixes.clear();
        let all = std::mem::take(&mut self.by_handle).into_values();
        all.map(|listener| listener.handle)
    }
}

impl RoomState {
    /// How many listen without being in the room.
    pub(crate) fn listeners(&self) -> usize {
        self.listeners.by_handle.len()
    }

    /// Somebody listens from now on; what it hears is said once its m-line is agreed on.
    pub(crate) fn add_listener(&mut self, handle: &Handle) {
        let listener = Listener {
            handle: handle.clone(),
            hears: None,
        };
        self.listeners.by_handle.insert(handle.id(), listener);
    }

    /// Whether somebody listens.
    pub(crate) fn has_listener(&self, handle: HandleId) -> bool {
        self.listeners.by_handle.contains_key(&handle)
    }

    /// What was agreed on with a listener: from now on it is sent the mix.
    pub(crate) fn send_mix(&mut self, handle: HandleId, line: Line) {
        let codec = line.codec.filter(|_| line.sends);
        let mix = codec.map(|codec| self.shared_mix(codec));
        let Some(listener) = self.listeners.by_handle.get_mut(&handle) else {
            return;
        };
        if listener.hears.as_ref().is_some_and(|it| it.line == line) {
            return;
        }
        if let Some(route) = listener.hears.take().and_then(|hears| hears.route) {
            listener.handle.remove_route(route);
        }
        listener.hears = mix.map(|mix| Hears {
            route: listener
                .handle
                .route_from(mix.source(), line.mid, RouteOptions::default()),
            line,
            _mix: mix,
        });
    }

    /// Somebody listens no more.
    pub(crate) fn remove_listener(&mut self, handle: HandleId) {
        let gone = self.listeners.by_handle.remove(&handle);
        if let Some(listener) = gone
            && let Some(route) = listener.hears.and_then(|hears| hears.route)
        {
            listener.handle.remove_route(route);
        }
        self.listeners.mixes.retain(|_, mix| mix.strong_count() > 0);
    }

    /// The mix that all listeners with this codec share.
    fn shared_mix(&mut self, codec: AudioCodec) -> Arc<MixSource> {
        let encoding = shared_encoding(codec, &self.options);
        let known = self.listeners.mixes.get(&encoding);
        if let Some(mix) = known.and_then(Weak::upgrade) {
            return mix;
        }
        let mix = Arc::new(self.sound.mix(Mixture::Everyone, encoding, false));
        self.listeners.mixes.insert(encoding, Arc::downgrade(&mix));
        mix
    }
}
