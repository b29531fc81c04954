//! The layers of a stream: those that a viewer requests, and those that it receives.

use std::time::Duration;

use portunus_media::{Layer, LayerReason, Priority, Reason, layer_number};
use portunus_rtp::Mid;
use serde::Deserialize;

use crate::delay::Delay;
use crate::publication::Layering;

/// The default of [`LayerRequest::fallback`].
const FALLBACK: Duration = Duration::from_millis(250);

/// A viewer's wishes for a stream. `None` leaves a wish as it is. Layers are 0 (lowest) to 2.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct LayerRequest {
    /// The encoding of simulcast.
    #[serde(deserialize_with = "layer_number")]
    pub substream: Option<u8>,
    /// The temporal layer of simulcast.
    #[serde(deserialize_with = "layer_number")]
    pub temporal: Option<u8>,
    /// The silence of an encoding after which a lower one is relayed, in µs; 0 means the default.
    pub fallback: Option<u64>,
    /// The spatial layer of SVC.
    #[serde(deserialize_with = "layer_number")]
    pub spatial_layer: Option<u8>,
    /// The temporal layer of SVC.
    #[serde(deserialize_with = "layer_number")]
    pub temporal_layer: Option<u8>,
    /// Its priority over other streams when bandwidth is short.
    pub priority: Option<Priority>,
    /// The least playout delay, in 10 ms. A negative one removes both limits.
    pub min_delay: Option<i64>,
    /// The greatest playout delay, in 10 ms. A negative one removes both limits.
    pub max_delay: Option<i64>,
}

/// The wishes of a viewer for a stream so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestedLayers {
    /// The encoding of simulcast.
    pub substream: u8,
    /// The temporal layer of simulcast.
    pub temporal: u8,
    /// The silence of an encoding after which a lower one is relayed.
    pub fallback: Duration,
    /// The spatial layer of SVC.
    pub spatial_layer: u8,
    /// The temporal layer of SVC.
    pub temporal_layer: u8,
    /// Its priority over other streams when bandwidth is short.
    pub priority: Priority,
    /// The playout delay. It overrides the publisher's.
    pub(crate) delay: Delay,
}

/// A kind of layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LayerKind {
    /// An encoding of simulcast.
    Encoding,
    /// A temporal layer of an encoding.
    Temporal,
    /// A spatial layer of SVC.
    SpatialOfSvc,
    /// A temporal layer of SVC.
    TemporalOfSvc,
}

impl Default for RequestedLayers {
    fn default() -> Self {
        RequestedLayers {
            substream: 2,
            temporal: 2,
            fallback: FALLBACK,
            spatial_layer: 2,
            temporal_layer: 2,
            priority: Priority::default(),
            delay: Delay::default(),
        }
    }
}

impl RequestedLayers {
    pub(crate) fn apply(&mut self, layers: &LayerRequest) {
        let set = |target: &mut u8, value: Option<u8>| *target = value.unwrap_or(*target);
        set(&mut self.substream, layers.substream);
        set(&mut self.temporal, layers.temporal);
        set(&mut self.spatial_layer, layers.spatial_layer);
        set(&mut self.temporal_layer, layers.temporal_layer);
        match layers.fallback {
            None => {}
            Some(0) => self.fallback = FALLBACK,
            Some(micros) => self.fallback = Duration::from_micros(micros),
        }
        self.priority = layers.priority.unwrap_or(self.priority);
        self.delay.set(layers.min_delay, layers.max_delay);
    }
}

/// A layer that an m-line of a subscription receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RelayedLayer {
    /// The m-line of the subscription.
    pub(crate) mid: Mid,
    pub(crate) kind: LayerKind,
    /// The number of the layer; 0 is the lowest.
    pub(crate) layer: u8,
    pub(crate) reason: LayerReason,
}

/// Returns the requested layers that are relayed already. No later change will report them.
pub(super) fn current_layers(
    requested: &LayerRequest,
    layering: Layering,
    current: Layer,
) -> Vec<(LayerKind, u8)> {
    let same = |requested: Option<u8>, current| requested.filter(|_| requested == current);
    let (substream, spatial) = (requested.substream, requested.spatial_layer);
    let layers = match layering {
        Layering::Simulcast => [
            (LayerKind::Encoding, same(substream, current.substream)),
            (
                LayerKind::Temporal,
                same(requested.temporal, current.temporal),
            ),
        ],
        Layering::Svc => [
            (LayerKind::SpatialOfSvc, same(spatial, current.spatial)),
            (
                LayerKind::TemporalOfSvc,
                same(requested.temporal_layer, current.temporal),
            ),
        ],
        Layering::Single => return Vec::new(),
    };
    let current = layers.into_iter();
    current
        .filter_map(|(kind, layer)| Some((kind, layer?)))
        .collect()
}

/// Returns the reason for which a requested layer stays that came for `reason`.
pub(super) fn current_reason(reason: Option<LayerReason>) -> LayerReason {
    let best = LayerReason::Chosen(Reason::Best);
    match reason == Some(best) {
        true => best,
        false => LayerReason::Chosen(Reason::ClientBound),
    }
}

/// Returns the layers that differ between `before` and `now`.
pub(crate) fn changed_layers(
    layering: Layering,
    before: Layer,
    now: Layer,
) -> Vec<(LayerKind, u8)> {
    let layers = match layering {
        Layering::Simulcast => [
            (LayerKind::Encoding, before.substream, now.substream),
            (LayerKind::Temporal, before.temporal, now.temporal),
        ],
        Layering::Svc => [
            (LayerKind::SpatialOfSvc, before.spatial, now.spatial),
            (LayerKind::TemporalOfSvc, before.temporal, now.temporal),
        ],
        Layering::Single => return Vec::new(),
    };
    let changed = layers.into_iter().filter(|(_, before, now)| before != now);
    changed
        .filter_map(|(kind, _, now)| Some((kind, now?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layer(substream: u8, temporal: u8) -> Layer {
        Layer {
            substream: Some(substream),
            temporal: Some(temporal),
            ..Layer::default()
        }
    }

    #[test]
    fn what_changed_is_told_by_the_kind_of_the_stream() {
        let (low, high) = (layer(0, 1), layer(2, 1));
        assert_eq!(
            changed_layers(Layering::Simulcast, low, high),
            [(LayerKind::Encoding, 2)]
        );
        assert_eq!(changed_layers(Layering::Simulcast, high, high), []);
        let first = changed_layers(Layering::Simulcast, Layer::default(), low);
        assert_eq!(first, [(LayerKind::Encoding, 0), (LayerKind::Temporal, 1)]);
        let svc = Layer {
            spatial: Some(1),
            ..Layer::default()
        };
        assert_eq!(
            changed_layers(Layering::Svc, low, svc),
            [(LayerKind::SpatialOfSvc, 1)]
        );
        assert_eq!(changed_layers(Layering::Single, low, high), []);
    }

    #[test]
    fn what_is_relayed_already_is_told_at_once() {
        let requested = LayerRequest {
            substream: Some(2),
            temporal: Some(0),
            ..LayerRequest::default()
        };
        let bound = LayerReason::Chosen(Reason::ClientBound);
        let best = LayerReason::Chosen(Reason::Best);
        let current = current_layers(&requested, Layering::Simulcast, layer(2, 1));
        assert_eq!(current, [(LayerKind::Encoding, 2)]);
        assert_eq!(current_reason(None), bound);
        let current = current_layers(&requested, Layering::Simulcast, layer(2, 0));
        let both = [(LayerKind::Encoding, 2), (LayerKind::Temporal, 0)];
        assert_eq!(current, both);
        assert_eq!(current_reason(Some(best)), best);
        let current = current_layers(&requested, Layering::Single, layer(2, 0));
        assert_eq!(current, []);
    }

    #[test]
    fn requests_change_what_they_name() {
        let mut requested = RequestedLayers::default();
        requested.apply(&LayerRequest {
            substream: Some(1),
            fallback: Some(2_000),
            ..LayerRequest::default()
        });
        assert_eq!((requested.substream, requested.temporal), (1, 2));
        assert_eq!(requested.fallback, Duration::from_millis(2));
        requested.apply(&LayerRequest {
            fallback: Some(0),
            ..LayerRequest::default()
        });
        assert_eq!((requested.substream, requested.fallback), (1, FALLBACK));
    }
}
