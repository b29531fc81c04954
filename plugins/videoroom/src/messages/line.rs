//! The messages about a subscription.

use portunus_core::Object;
use portunus_core::media::{LayerReason, Priority};
use portunus_core::sdp::CodecName;
use portunus_room::{ConnectionId, Line, Participant, Stream};
use serde_json::Value;

use super::person::metadata;
use super::{Show, stream};

impl<'a> Show<'a> {
    /// Writes all m-lines of a subscription.
    pub(crate) fn lines(self, key: ConnectionId) -> Vec<Value> {
        let lines = self.all_lines(key).iter().enumerate();
        lines.map(|(index, line)| self.line(index, line)).collect()
    }

    /// Writes the m-lines with these indices.
    pub(super) fn some_lines(self, key: ConnectionId, places: &[usize]) -> Vec<Value> {
        let lines = self.all_lines(key);
        let line = |index: &usize| Some(self.line(*index, lines.get(*index)?));
        places.iter().filter_map(line).collect()
    }

    fn all_lines(self, key: ConnectionId) -> &'a [Line] {
        let subscriber = self.room.subscriber(key);
        subscriber.map_or(&[], |subscriber| &subscriber.lines)
    }

    /// Writes the answer to a new subscriber.
    pub(crate) fn attached(self, key: ConnectionId) -> Object {
        self.head("attached").with("streams", self.lines(key))
    }

    /// Writes the message with an offer.
    pub(crate) fn offered(self, key: ConnectionId) -> Object {
        self.head("updated").with("streams", self.lines(key))
    }

    /// Writes the state of a subscription, for administrators.
    pub(crate) fn subscriber_state(self, key: ConnectionId) -> Option<Value> {
        let subscriber = self.room.subscriber(key)?;
        let state = Object::new()
            .with("type", "subscriber")
            .with("room", self.room())
            .with("private_id", subscriber.private_id.unwrap_or(0))
            .with("answered", subscriber.is_answered())
            .with("pending_offer", subscriber.is_offer_pending())
            .with("pending_restart", subscriber.is_restart_pending())
            .with("paused", subscriber.paused)
            .with_some("e2ee", subscriber.e2ee.then_some(true))
            .with("streams", self.lines(key))
            .with("hangingup", 0)
            .with("destroyed", 0);
        Some(state.into())
    }

    /// Writes an m-line, for clients and administrators.
    fn line(self, index: usize, line: &Line) -> Value {
        let track = self.track(line);
        let is_data = line.carries_data();
        let head = Object::new()
            .with("type", line.kind.name())
            .with("active", track.is_some() || is_data)
            .with("mindex", index)
            .with("mid", line.mid.as_str())
            .with_some("crossrefid", line.crossrefid.as_deref())
            .with_some("seat", line.slot())
            .with("ready", line.ready)
            .with("send", line.send);
        if is_data {
            let ids: Vec<_> = line.feeds().iter().map(|feed| self.id(feed)).collect();
            return head
                .with("sources", ids.len())
                .with("source_ids", ids)
                .into();
        }
        let Some((publisher, stream)) = track else {
            return head.into();
        };
        let priority = line.requested.priority;
        head.with("feed_id", self.id(publisher.id()))
            .with_some("feed_display", publisher.profile.display.as_deref())
            .with_some("feed_metadata", metadata(&publisher.profile))
            .with("feed_mid", stream.mid.as_str())
            .with_some("feed_description", stream.description.as_deref())
            .with_some("codec", stream.format.codec.map(CodecName::name))
            .with_some("h264-profile", stream.format.h264_profile.as_deref())
            .with_some("vp9-profile", stream.format.vp9_profile.as_deref())
            .with_some(
                "playout-delay",
                line.playout_delay(stream).map(stream::delay),
            )
            .with_some(
                "priority",
                (priority != Priority::default()).then_some(priority.name()),
            )
            .with_all(layers(line, stream))
            .into()
    }

    /// Returns the stream that an m-line receives, if its media is up.
    fn track(&self, line: &Line) -> Option<(&Participant, &Stream)> {
        let (feed, mid) = line.source()?;
        let stream = self.room.published(feed)?.stream(mid)?;
        let person = self.room.person(feed)?;
        (!stream.disabled).then_some((person, stream))
    }
}

fn layers(line: &Line, stream: &Stream) -> Object {
    let now = |layer: Option<u8>| layer.map_or(-1, i16::from);
    let (requested, layer) = (&line.requested, line.current);
    let reason = line.reason.map(LayerReason::name);
    if stream.format.simulcast {
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
    if stream.format.svc {
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
