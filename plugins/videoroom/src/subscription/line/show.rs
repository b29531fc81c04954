//! What is told of an m-line.

use portunus_core::Object;
use portunus_core::media::{LayerReason, Priority};
use portunus_core::sdp::CodecName;
use portunus_resources::Id;
use serde_json::{Value, json};

use super::{Line, Source};
use crate::publication::{Publications, Stream, medium};
use crate::roster::Roster;
use crate::subscription::seat::Seat;

impl Line {
    /// What clients and administrators are told of it.
    pub(in crate::subscription) fn summary(
        &self,
        index: usize,
        roster: &Roster,
        publications: &Publications,
    ) -> Value {
        let track = self.track(publications);
        let track = track.and_then(|(feed, _, stream)| Some((roster.get(feed)?, stream)));
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
            .with_some("seat", self.seat.as_ref().map(Seat::slot))
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
        head.with("feed_id", publisher.id().to_json())
            .with_some("feed_display", publisher.display())
            .with_some("feed_metadata", publisher.metadata().cloned())
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
