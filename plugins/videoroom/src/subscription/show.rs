//! What is told of a subscription.

use std::collections::HashMap;

use portunus_core::media::{LayerReason, Priority};
use portunus_core::sdp::CodecName;
use portunus_core::{HandleId, Object};
use serde_json::{Value, json};

use super::{Line, Signaling, Source, Subscriber};
use crate::id::Id;
use crate::publication::{Stream, medium};
use crate::room::RoomState;
use crate::roster::Participant;

impl RoomState {
    /// The summaries of all m-lines of a subscription.
    pub(super) fn summaries(&self, key: HandleId) -> Vec<Value> {
        let lines = self.subscribers.get(&key).map(|s| s.lines.as_slice());
        let lines = lines.unwrap_or_default().iter().enumerate();
        lines
            .map(|(index, line)| line.summary(index, &self.people))
            .collect()
    }

    /// A subscription's state, for administrators.
    pub(crate) fn subscriber_state(&self, key: HandleId) -> Option<Value> {
        let subscriber = self.subscribers.get(&key)?;
        let state = subscriber.state().with("streams", self.summaries(key));
        let state = Object::new()
            .with("type", "subscriber")
            .with("room", self.id.to_json())
            .with_all(state)
            .with("hangingup", 0)
            .with("destroyed", 0);
        Some(state.into())
    }
}

impl Subscriber {
    fn state(&self) -> Object {
        Object::new()
            .with_some("private_id", self.private_id)
            .with("answered", self.signaling == Signaling::Stable)
            .with("pending_offer", self.pending.offer)
            .with("pending_restart", self.pending.restart)
            .with("paused", self.paused)
            .with_some("e2ee", self.e2ee.then_some(true))
    }
}

impl Line {
    pub(super) fn summary(&self, index: usize, people: &HashMap<Id, Participant>) -> Value {
        let track = self.track(people);
        let data = match &self.source {
            Source::Data(feeds) => Some(feeds),
            Source::None | Source::Track { .. } => None,
        };
        let head = Object::new()
            .with("type", medium(self.kind))
            .with("active", track.is_some() || data.is_some())
            .with("mindex", index)
            .with("mid", self.mid.as_str())
            .with_some("crossrefid", self.crossrefid.as_deref())
            .with_some("seat", self.seat.as_ref().map(|seat| seat.slot))
            .with("ready", self.ready)
            .with("send", self.send);
        if let Some(feeds) = data {
            let ids: Vec<_> = feeds.iter().map(Id::to_json).collect();
            return head
                .with("sources", ids.len())
                .with("source_ids", ids)
                .into();
        }
        let Some((publisher, stream)) = track else {
            return head.into();
        };
        let delay = self.requested.delay.range().or(stream.delay.range());
        let priority = self.requested.priority;
        head.with("feed_id", publisher.id.to_json())
            .with_some("feed_display", publisher.display.as_deref())
            .with_some("feed_metadata", publisher.metadata.clone())
            .with("feed_mid", stream.mid.as_str())
            .with_some("feed_description", stream.description.as_deref())
            .with_some("codec", stream.codec.map(CodecName::name))
            .with_some("h264-profile", stream.h264_profile.as_deref())
            .with_some("vp9-profile", stream.vp9_profile.as_deref())
            .with_some(
                "playout-delay",
                delay.map(|(min, max)| json!({ "min-delay": min, "max-delay": max })),
            )
            .with_some(
                "priority",
                (priority != Priority::default()).then_some(priority.name()),
            )
            .with_all(self.layers(stream))
            .into()
    }

    fn layers(&self, stream: &Stream) -> Object {
        let now = |layer: Option<u8>| layer.map_or(-1, i16::from);
        let (requested, layer) = (&self.requested, self.current);
        let reason = self.reason.map(LayerReason::name);
        if stream.simulcast {
            let fallback = u64::try_from(requested.fallback.as_micros()).unwrap_or(u64::MAX);
            let simulcast = Object::new()
                .with("substream", now(layer.substream))
                .with("substream-target", requested.substream)
                .with("temporal-layer", now(layer.temporal))
                .with("temporal-layer-target", requested.temporal)
                .with("fallback", fallback)
                .with_some("reason", reason);
            return Object::new().with("simulcast", Value::from(simulcast));
        }
        if stream.svc {
            let svc = Object::new()
                .with("spatial-layer", now(layer.spatial))
                .with("target-spatial-layer", requested.spatial_layer)
                .with("temporal-layer", now(layer.temporal))
                .with("target-temporal-layer", requested.temporal_layer)
                .with_some("reason", reason);
            return Object::new().with("svc", Value::from(svc));
        }
        Object::new()
    }
}
