//! The layers of a stream: which are requested, which are relayed, and what is told of that.

use std::time::Duration;

use portunus_media::{Layer, LayerReason, Priority, Reason, layer_number};
use serde::Deserialize;

use crate::delay::Delay;

/// How long the requested encoding may be silent before a lower one is relayed, unless the client says it.
const FALLBACK: Duration = Duration::from_millis(250);

/// What a viewer wants of a stream from now on. What is `None` stays as it is; 0 is the lowest layer, 2 the highest.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct LayerRequest {
    /// The encoding of simulcast.
    #[serde(deserialize_with = "layer_number")]
    pub substream: Option<u8>,
    /// The temporal layer of simulcast.
    #[serde(deserialize_with = "layer_number")]
    pub temporal: Option<u8>,
    /// How long the encoding may be silent before a lower one is relayed, in µs; 0 means the default.
    pub fallback: Option<u64>,
    /// The spatial layer of SVC.
    #[serde(deserialize_with = "layer_number")]
    pub spatial_layer: Option<u8>,
    /// The temporal layer of SVC.
    #[serde(deserialize_with = "layer_number")]
    pub temporal_layer: Option<u8>,
    /// Whether it comes before other streams.
    pub priority: Option<Priority>,
    /// The least playout delay, in units of 10 ms; a negative one turns both off.
    pub min_delay: Option<i64>,
    /// The greatest playout delay, in units of 10 ms; a negative one turns both off.
    pub max_delay: Option<i64>,
}

/// What a viewer has requested of a stream: its layers, its playout delay, and whether it comes before others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestedLayers {
    /// The encoding of simulcast.
    pub substream: u8,
    /// The temporal layer of simulcast.
    pub temporal: u8,
    /// How long the encoding may be silent before a lower one is relayed.
    pub fallback: Duration,
    /// The spatial layer of SVC.
    pub spatial_layer: u8,
    /// The temporal layer of SVC.
    pub temporal_layer: u8,
    /// Whether it comes before other streams.
    pub priority: Priority,
    /// The playout delay, which goes before that of the publisher.
    pub(crate) delay: Delay,
}

/// Which kind of layer.
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

/// Which of the requested layers are relayed already, and why: nothing will change then that could be told. `layered` says
/// whether the stream has simulcast, and whether it has SVC.
pub(super) fn current_among(
    requested: &LayerRequest,
    layered: (bool, bool),
    current: Layer,
    reason: Option<LayerReason>,
) -> Vec<(LayerKind, u8, LayerReason)> {
    let same = |requested: Option<u8>, current| requested.filter(|_| requested == current);
    let layers = match layered {
        (true, _) => [
            (
                LayerKind::Encoding,
                same(requested.substream, current.substream),
            ),
            (
                LayerKind::Temporal,
                same(requested.temporal, current.temporal),
            ),
        ],
        (false, true) => [
            (
                LayerKind::SpatialOfSvc,
                same(requested.spatial_layer, current.spatial),
            ),
            (
                LayerKind::TemporalOfSvc,
                same(requested.temporal_layer, current.temporal),
            ),
        ],
        (false, false) => return Vec::new(),
    };
    // It may have come for another reason, but stays for this one.
    let best = LayerReason::Chosen(Reason::Best);
    let bound = LayerReason::Chosen(Reason::ClientBound);
    let reason = if reason == Some(best) { best } else { bound };
    let current = layers.into_iter();
    current
        .filter_map(|(kind, layer)| Some((kind, layer?, reason)))
        .collect()
}

/// Which layers are others by now, and of which kind.
pub(crate) fn changed_layers(
    (simulcast, svc): (bool, bool),
    before: Layer,
    now: Layer,
) -> Vec<(LayerKind, u8)> {
    let layers = match (simulcast, svc) {
        (true, _) => [
            (LayerKind::Encoding, before.substream, now.substream),
            (LayerKind::Temporal, before.temporal, now.temporal),
        ],
        (false, true) => [
            (LayerKind::SpatialOfSvc, before.spatial, now.spatial),
            (LayerKind::TemporalOfSvc, before.temporal, now.temporal),
        ],
        (false, false) => return Vec::new(),
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
            changed_layers((true, false), low, high),
            [(LayerKind::Encoding, 2)]
        );
        assert_eq!(changed_layers((true, false), high, high), []);
        let first = changed_layers((true, false), Layer::default(), low);
        assert_eq!(first, [(LayerKind::Encoding, 0), (LayerKind::Temporal, 1)]);
        let svc = Layer {
            spatial: Some(1),
            ..Layer::default()
        };
        assert_eq!(
            changed_layers((false, true), low, svc),
            [(LayerKind::SpatialOfSvc, 1)]
        );
        assert_eq!(changed_layers((false, false), low, high), []);
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
        let current = current_among(&requested, (true, false), layer(2, 1), None);
        assert_eq!(current, [(LayerKind::Encoding, 2, bound)]);
        let current = current_among(&requested, (true, false), layer(2, 0), Some(best));
        assert_eq!(
            current,
            [
                (LayerKind::Encoding, 2, best),
                (LayerKind::Temporal, 0, best)
            ]
        );
        let current = current_among(&requested, (false, false), layer(2, 0), None);
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
