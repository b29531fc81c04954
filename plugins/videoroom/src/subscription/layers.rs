//! What subscribers request, stream by stream.

use std::time::Duration;

use portunus_core::media::Priority;
use portunus_core::{FieldError, Fields};

use crate::delay::Delay;
use crate::id::{Id, Ids};
use crate::members;
use crate::refusal::Refusal;

/// How long the wanted encoding may be silent before a lower one is relayed, unless the client says it.
const FALLBACK: Duration = Duration::from_millis(250);

/// An entry of `subscribe`: a stream, or all streams of a publisher.
#[derive(Debug, Clone)]
pub(crate) struct Subscribe {
    pub(crate) feed: Id,
    /// The publisher's m-line; none: all of them.
    pub(crate) mid: Option<String>,
    pub(crate) crossrefid: Option<String>,
    pub(crate) send: bool,
    pub(crate) layers: LayerRequest,
}

/// An entry of `unsubscribe`: a stream, all streams of a publisher, or an m-line of the subscription.
#[derive(Debug, Clone)]
pub(crate) struct Unsubscribe {
    pub(crate) feed: Option<Id>,
    pub(crate) mid: Option<String>,
    pub(crate) sub_mid: Option<String>,
}

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
    let known = Priority::from_name(word).ok_or_else(|| FieldError::Type {
        name: "priority".to_owned(),
        wanted: "very-low, low, medium or high",
    })?;
    Ok(Some(known))
}

impl Subscribe {
    fn read(fields: Fields<'_>, ids: Ids) -> Result<Self, FieldError> {
        let text = |name| fields.string(name).map(|text| text.map(str::to_owned));
        Ok(Subscribe {
            feed: ids.required(fields, "feed")?,
            mid: text("mid")?,
            crossrefid: text("crossrefid")?,
            send: fields.boolean("send")?.unwrap_or(true),
            layers: LayerRequest::read(fields)?,
        })
    }

    /// Reads a list that is not empty, if it is there.
    pub(crate) fn list(
        fields: Fields<'_>,
        name: &str,
        ids: Ids,
    ) -> Result<Option<Vec<Self>>, Refusal> {
        let Some(entries) = members::some_objects(fields, name)? else {
            return Ok(None);
        };
        let requests = entries.into_iter().map(|entry| Subscribe::read(entry, ids));
        Ok(Some(requests.collect::<Result<_, _>>()?))
    }
}

impl Unsubscribe {
    fn read(fields: Fields<'_>, ids: Ids) -> Result<Self, FieldError> {
        let text = |name| fields.string(name).map(|text| text.map(str::to_owned));
        let request = Unsubscribe {
            feed: ids.read(fields, "feed")?,
            mid: text("mid")?,
            sub_mid: text("sub_mid")?,
        };
        match request.feed.is_none() && request.sub_mid.is_none() {
            true => Err(FieldError::Missing("feed".to_owned())),
            false => Ok(request),
        }
    }

    /// Reads a list that is not empty, if it is there.
    pub(crate) fn list(
        fields: Fields<'_>,
        name: &str,
        ids: Ids,
    ) -> Result<Option<Vec<Self>>, Refusal> {
        let Some(entries) = members::some_objects(fields, name)? else {
            return Ok(None);
        };
        let requests = entries
            .into_iter()
            .map(|entry| Unsubscribe::read(entry, ids));
        Ok(Some(requests.collect::<Result<_, _>>()?))
    }
}
