//! What subscribers ask for, stream by stream.

use std::time::Duration;

use portunus_core::media::Priority;
use portunus_core::{FieldError, Fields};

use crate::delay::Delay;
use crate::id::{Id, Ids};
use crate::members;
use crate::refusal::Refusal;

/// How long the wanted encoding may be silent before a lower one is relayed, unless the client says it.
const FALLBACK: Duration = Duration::from_millis(250);

/// A stream, or all streams of a publisher.
#[derive(Debug, Clone)]
pub(crate) struct Want {
    pub(crate) feed: Id,
    /// The publisher's m-line; none: all of them.
    pub(crate) mid: Option<String>,
    pub(crate) crossrefid: Option<String>,
    pub(crate) send: bool,
    pub(crate) layers: Layers,
}

/// What is not wanted any more.
#[derive(Debug, Clone)]
pub(crate) struct Unwant {
    pub(crate) feed: Option<Id>,
    pub(crate) mid: Option<String>,
    pub(crate) sub_mid: Option<String>,
}

/// Members of a request that set [`Wish`].
#[derive(Debug, Clone, Default)]
pub(crate) struct Layers {
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

/// What is wanted of the layers of a stream, of its delay, and whether it comes before others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wish {
    pub(crate) substream: u8,
    pub(crate) temporal: u8,
    pub(crate) fallback: Duration,
    pub(crate) spatial_layer: u8,
    pub(crate) temporal_layer: u8,
    pub(crate) priority: Priority,
    pub(crate) delay: Delay,
}

impl Default for Wish {
    fn default() -> Self {
        Wish {
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

impl Wish {
    pub(crate) fn apply(&mut self, layers: &Layers) {
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

impl Layers {
    pub(crate) fn read(fields: Fields<'_>) -> Result<Self, FieldError> {
        Ok(Layers {
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

impl Want {
    fn read(fields: Fields<'_>, ids: Ids) -> Result<Self, FieldError> {
        let text = |name| fields.string(name).map(|text| text.map(str::to_owned));
        Ok(Want {
            feed: ids.required(fields, "feed")?,
            mid: text("mid")?,
            crossrefid: text("crossrefid")?,
            send: fields.boolean("send")?.unwrap_or(true),
            layers: Layers::read(fields)?,
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
        let wants = entries.into_iter().map(|entry| Want::read(entry, ids));
        Ok(Some(wants.collect::<Result<_, _>>()?))
    }
}

impl Unwant {
    fn read(fields: Fields<'_>, ids: Ids) -> Result<Self, FieldError> {
        let text = |name| fields.string(name).map(|text| text.map(str::to_owned));
        let unwant = Unwant {
            feed: ids.read(fields, "feed")?,
            mid: text("mid")?,
            sub_mid: text("sub_mid")?,
        };
        match unwant.feed.is_none() && unwant.sub_mid.is_none() {
            true => Err(FieldError::Missing("feed".to_owned())),
            false => Ok(unwant),
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
        let unwants = entries.into_iter().map(|entry| Unwant::read(entry, ids));
        Ok(Some(unwants.collect::<Result<_, _>>()?))
    }
}
