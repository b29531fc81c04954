//! The layers of a stream: which are requested, which are relayed, and what is told of that.

use std::time::Duration;

use portunus_core::media::{Layer, LayerReason, Priority, Reason};
use portunus_core::{FieldError, Fields};

use crate::delay::Delay;

/// How long the requested encoding may be silent before a lower one is relayed, unless the client says it.
const FALLBACK: Duration = Duration::from_millis(250);

/// Members of a request that set [`RequestedLayers`].
#[derive(Debug, Clone, Default)]
pub(crate) struct LayerRequest {
    pub(crate) substream: Option<u8>,
    pub(crate) temporal: Option<u8>,
    /// µs; 0: the default
    pub(crate) fallback: Option<u64>,
    pub(crate) spatial_layer: Option<u8>,
    pub(crate) temporal_layer: Option<u8>,
    pub(crate) priority: Option<Priority>,
    min_delay: Option<i64>,
    max_delay: Option<i64>,
}

/// What a client has requested of a stream: its layers, its playout delay, and whether it comes before others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RequestedLayers {
    pub(crate) substream: u8,
    pub(crate) temporal: u8,
    pub(crate) fallback: Duration,
    pub(crate) spatial_layer: u8,
    pub(crate) temporal_layer: u8,
    pub(crate) priority: Priority,
    pub(crate) delay: Delay,
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

impl LayerRequest {
    pub(crate) fn read(fields: Fields<'_>) -> Result<Self, FieldError> {
        Ok(LayerRequest {
            substream: fields.layer("substream")?,
            temporal: fields.layer("temporal")?,
            fallback: fields.positive("fallback")?,
            spatial_layer: fields.layer("spatial_layer")?,
            temporal_layer: fields.layer("temporal_layer")?,
            priority: priority(fields)?,
            min_delay: fields.integer("min_delay")?,
            max_delay: fields.integer("max_delay")?,
        })
    }
}

fn priority(fields: Fields<'_>) -> Result<Option<Priority>, FieldError> {
    let Some(word) = fields.string("priority")? else {
        return Ok(None);
    };
    let known = Priority::from_name(word)
        .ok_or_else(|| FieldError::wrong_type("priority", "very-low, low, medium or high"))?;
    Ok(Some(known))
}

/// Which of the requested layers are relayed already, and why: nothing will change then that could be told. `layered` says
/// whether the stream has simulcast, and whether it has SVC.
pub(super) fn current_among(
    requested: &LayerRequest,
    layered: (bool, bool),
    current: Layer,
    reason: Option<LayerReason>,
) -> Vec<(&'static str, u8, LayerReason)> {
    let same = |requested: Option<u8>, current| requested.filter(|_| requested == current);
    let layers = match layered {
        (true, _) => [
            ("substream", same(requested.substream, current.substream)),
            ("temporal", same(requested.temporal, current.temporal)),
        ],
        (false, true) => [
            (
                "spatial_layer",
                same(requested.spatial_layer, current.spatial),
            ),
            (
                "temporal_layer",
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
        .filter_map(|(name, layer)| Some((name, layer?, reason)))
        .collect()
}

/// Which layers are others by now, as clients are told of them.
pub(crate) fn changed_layers(
    (simulcast, svc): (bool, bool),
    before: Layer,
    now: Layer,
) -> Vec<(&'static str, u8)> {
    let layers = match (simulcast, svc) {
        (true, _) => [
            ("substream", before.substream, now.substream),
            ("temporal", before.temporal, now.temporal),
        ],
        (false, true) => [
            ("spatial_layer", before.spatial, now.spatial),
            ("temporal_layer", before.temporal, now.temporal),
        ],
        (false, false) => return Vec::new(),
    };
    let changed = layers.into_iter().filter(|(_, before, now)| before != now);
    changed
        .filter_map(|(name, _, now)| Some((name, now?)))
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
    fn what_changed_is_told_in_the_words_of_the_stream() {
        let (low, high) = (layer(0, 1), layer(2, 1));
        assert_eq!(changed_layers((true, false), low, high), [("substream", 2)]);
        assert_eq!(changed_layers((true, false), high, high), []);
        let first = changed_layers((true, false), Layer::default(), low);
        assert_eq!(first, [("substream", 0), ("temporal", 1)]);
        let svc = Layer {
            spatial: Some(1),
            ..Layer::default()
        };
        assert_eq!(
            changed_layers((false, true), low, svc),
            [("spatial_layer", 1)]
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
        assert_eq!(current, [("substream", 2, bound)]);
        let current = current_among(&requested, (true, false), layer(2, 0), Some(best));
        assert_eq!(current, [("substream", 2, best), ("temporal", 0, best)]);
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
