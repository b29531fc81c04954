//! The subscription of a viewer's m-line to a stream of a mountpoint.

use std::time::Duration;

use portunus_core::media::{Layer, RouteId, RouteOptions};
use portunus_core::{Handle, Mid};
use serde::Deserialize;

use super::renewal::Format;
use super::{Phase, Watching};
use crate::mountpoint::{Mountpoint, Stream};
use crate::spec::MediaKind;

/// The default silence of the wanted encoding after which a lower one is relayed.
const FALLBACK: Duration = Duration::from_millis(250);

/// A stream on its way to a viewer.
#[derive(Debug)]
pub(super) struct Subscription {
    /// The index of the stream. `None` if the present mountpoint has no such stream and the m-line
    /// is unused.
    pub(super) stream: Option<usize>,
    pub(super) kind: MediaKind,
    /// The viewer's m-line.
    pub(super) line: Mid,
    /// Whether the viewer requested it.
    pub(super) wanted: bool,
    /// Whether the viewer accepted it.
    pub(super) accepted: bool,
    /// The offered or negotiated format. `None` for data.
    pub(super) format: Option<Format>,
    /// The viewer's switch.
    pub(super) send: bool,
    pub(super) layers: Layers,
    pub(super) delay: PlayoutDelay,
    pub(super) route: Option<RouteId>,
    /// The relayed layer.
    pub(super) current: Layer,
}

/// The wanted layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Layers {
    pub(super) substream: u8,
    pub(super) temporal: u8,
    pub(super) fallback: Duration,
    pub(super) spatial_layer: u8,
    pub(super) temporal_layer: u8,
}

impl Default for Layers {
    fn default() -> Self {
        Layers {
            substream: 2,
            temporal: 2,
            fallback: FALLBACK,
            spatial_layer: 2,
            temporal_layer: 2,
        }
    }
}

/// The members of a request that choose layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub(super) struct LayerRequest {
    #[serde(deserialize_with = "portunus_core::with::layer")]
    pub(super) substream: Option<u8>,
    #[serde(deserialize_with = "portunus_core::with::layer")]
    pub(super) temporal: Option<u8>,
    /// In µs. 0 means the default.
    fallback: Option<u64>,
    #[serde(deserialize_with = "portunus_core::with::layer")]
    pub(super) spatial_layer: Option<u8>,
    #[serde(deserialize_with = "portunus_core::with::layer")]
    pub(super) temporal_layer: Option<u8>,
}

impl LayerRequest {
    pub(super) fn apply(self, layers: &mut Layers) {
        let fallback = self.fallback.map(|micros| match micros {
            0 => FALLBACK,
            micros => Duration::from_micros(micros),
        });
        *layers = Layers {
            substream: self.substream.unwrap_or(layers.substream),
            temporal: self.temporal.unwrap_or(layers.temporal),
            fallback: fallback.unwrap_or(layers.fallback),
            spatial_layer: self.spatial_layer.unwrap_or(layers.spatial_layer),
            temporal_layer: self.temporal_layer.unwrap_or(layers.temporal_layer),
        };
    }
}

/// The limits of the playout delay for a viewer, in 10 ms. They apply once the greatest one is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct PlayoutDelay {
    pub(super) min: Option<u16>,
    pub(super) max: Option<u16>,
}

impl PlayoutDelay {
    /// The largest value that the extension can have.
    const MAX: i64 = 4_095;

    /// Sets one or both. The other one follows. A negative one removes both.
    pub(super) fn set(&mut self, min: Option<i64>, max: Option<i64>) {
        if min.or(max).is_none() {
            return;
        }
        if min.is_some_and(|min| min < 0) || max.is_some_and(|max| max < 0) {
            *self = PlayoutDelay::default();
            return;
        }
        let bound = |value: i64| u16::try_from(value.min(Self::MAX)).ok();
        if let Some(min) = min.and_then(bound) {
            self.min = Some(min);
            self.max = Some(self.max.unwrap_or(min).max(min));
        }
        if let Some(max) = max.and_then(bound) {
            self.max = Some(max);
            self.min = Some(self.min.unwrap_or(0).min(max));
        }
    }

    fn range(self) -> Option<(u16, u16)> {
        self.min.zip(self.max)
    }
}

impl Subscription {
    pub(super) fn new(stream: usize, kind: MediaKind, line: Mid) -> Self {
        Subscription {
            stream: Some(stream),
            kind,
            line,
            wanted: true,
            accepted: false,
            format: None,
            send: true,
            layers: Layers::default(),
            delay: PlayoutDelay::default(),
            route: None,
            current: Layer::default(),
        }
    }

    /// Returns whether `mid` names the stream, or the m-line where they differ.
    pub(super) fn is_named(&self, mid: Mid, mountpoint: &Mountpoint) -> bool {
        self.line == mid || self.stream_of(mountpoint).is_some_and(|s| s.mid() == mid)
    }

    pub(super) fn stream_of<'m>(&self, mountpoint: &'m Mountpoint) -> Option<&'m Stream> {
        mountpoint.streams.get(self.stream?)
    }

    fn options(&self, mountpoint: &Mountpoint, paused: bool) -> RouteOptions {
        let svc = self.stream_of(mountpoint).is_some_and(|s| s.live().svc);
        let layers = self.layers;
        // A file of the viewer's own stands still instead.
        let flows = mountpoint.is_on_demand() || !paused && mountpoint.is_enabled();
        RouteOptions {
            enabled: self.wanted && self.send && flows,
            substream: layers.substream,
            spatial: layers.spatial_layer,
            temporal: if svc {
                layers.temporal_layer
            } else {
                layers.temporal
            },
            fallback: layers.fallback,
            playout_delay: self.delay.range(),
            ..RouteOptions::default()
        }
    }
}

impl Watching {
    /// Makes the missing routes, and applies the settings to all.
    pub(super) fn connect(&mut self, handle: &Handle) {
        if self.phase != Phase::Up {
            return;
        }
        if self.playing.is_none() {
            self.playing = self.mountpoint.play();
            if let Some((playing, position)) = self.playing.as_ref().zip(self.begins_at.take()) {
                playing.seek(position);
            }
        }
        if let Some(playing) = &self.playing {
            playing.hold(self.paused || !self.mountpoint.is_enabled());
        }
        let (mountpoint, paused, playing) = (&self.mountpoint, self.paused, &self.playing);
        for subscription in &mut self.subscriptions {
            let options = subscription.options(mountpoint, paused);
            match subscription.route {
                Some(route) => handle.set_route(route, options),
                None if subscription.wanted && subscription.accepted => {
                    let stream = subscription.stream_of(mountpoint);
                    let fits = stream.filter(|stream| subscription.carries(stream));
                    let of_stream = || match playing {
                        Some(playing) => playing.source(subscription.stream?),
                        None => fits?.live().source,
                    };
                    subscription.route = of_stream()
                        .and_then(|source| handle.route_from(source, subscription.line, options));
                }
                None => {}
            }
        }
    }

    /// Ends the routes of unwanted m-lines.
    pub(super) fn disconnect_unwanted(&mut self, handle: &Handle) {
        for subscription in &mut self.subscriptions {
            if !(subscription.wanted && subscription.accepted) {
                subscription.disconnect(handle);
            }
        }
    }
}

impl Subscription {
    pub(super) fn disconnect(&mut self, handle: &Handle) {
        self.current = Layer::default();
        if let Some(route) = self.route.take() {
            handle.remove_route(route);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bounds_of_the_playout_delay_pull_each_other() {
        let mut delay = PlayoutDelay::default();
        delay.set(None, None);
        assert_eq!(delay.range(), None);
        delay.set(Some(50), None);
        assert_eq!(delay.range(), Some((50, 50)));
        delay.set(None, Some(20));
        assert_eq!(delay.range(), Some((20, 20)));
        delay.set(Some(10), Some(100_000));
        assert_eq!(delay.range(), Some((10, 4_095)));
        delay.set(Some(-1), None);
        assert_eq!(delay.range(), None);
    }
}
