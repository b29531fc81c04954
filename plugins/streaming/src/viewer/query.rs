//! A handle's state, for administrators.

use portunus_core::Object;
use serde_json::{Value, json};

use super::subscription::Subscription;
use super::{Phase, Session, Viewer, Watching};
use crate::mountpoint::Mountpoint;

impl Viewer {
    pub(super) fn query(&self) -> Value {
        let session = self.session();
        let (state, watching) = match &*session {
            Session::Idle => ("idle", None),
            Session::Publishing(_) => ("publishing", None),
            Session::Watching(watching) => ("watching", Some(watching)),
        };
        let mountpoint = match &*session {
            Session::Idle => None,
            Session::Publishing(publishing) => Some(&publishing.mountpoint),
            Session::Watching(watching) => Some(&watching.mountpoint),
        };
        let flag = |on: bool| u8::from(on);
        let is = |test: fn(&Watching) -> bool| watching.is_some_and(|w| test(w));
        let media = watching.map(|watching| {
            let media = watching.subscriptions.iter();
            media.map(|s| s.query(&watching.mountpoint)).collect()
        });
        Object::new()
            .with("state", state)
            .with_some("mountpoint_id", mountpoint.map(|m| m.id.to_json()))
            .with_some("mountpoint_name", mountpoint.map(|m| m.name.as_str()))
            .with_some("mountpoint_viewers", mountpoint.map(|m| m.viewer_count()))
            .with_some("media", media.map(Value::Array))
            .with_some("e2ee", is(Watching::is_e2ee).then_some(true))
            .with("hangingup", 0)
            .with("started", flag(is(|w| w.phase == Phase::Up)))
            .with("dataready", flag(is(|w| w.data_ready)))
            .with("paused", flag(is(|w| w.paused)))
            .with("stopping", 0)
            .with("destroyed", 0)
            .into()
    }
}

impl Subscription {
    fn query(&self, mountpoint: &Mountpoint) -> Value {
        let stream = self.stream_of(mountpoint);
        let live = stream.map(|stream| stream.live().clone());
        let is = |test: fn(&crate::mountpoint::Live) -> bool| live.as_ref().is_some_and(test);
        let now = |layer: Option<u8>| layer.map_or(-1, i16::from);
        let simulcast = is(|live| live.simulcast).then(|| {
            json!({
                "substream": now(self.current.substream),
                "substream-target": self.layers.substream,
                "temporal-layer": now(self.current.temporal),
                "temporal-layer-target": self.layers.temporal,
                "fallback": u64::try_from(self.layers.fallback.as_micros()).unwrap_or(u64::MAX),
            })
        });
        let svc = is(|live| live.svc).then(|| {
            json!({
                "spatial-layer": now(self.current.spatial),
                "target-spatial-layer": self.layers.spatial_layer,
                "temporal-layer": now(self.current.temporal),
                "target-temporal-layer": self.layers.temporal_layer,
            })
        });
        let delay = self.delay.min.zip(self.delay.max);
        Object::new()
            .with("type", self.kind.name())
            .with_some("mindex", self.stream)
            .with("mid", self.line.as_str())
            .with("send", self.send)
            .with_some("simulcast", simulcast)
            .with_some("svc", svc)
            .with_some(
                "playout-delay",
                delay.map(|(min, max)| json!({ "min-delay": min, "max-delay": max })),
            )
            .with_some("abs-capture-time-src-ext-id", mountpoint.abs_capture_time())
            .into()
    }
}
