//! Events of a handle's PeerConnection.

use std::sync::Arc;

use portunus_core::media::{Layer, LayerReason, RouteId};
use portunus_core::{HandleEvent, Mid, Object};
use serde_json::{Value, json};

use super::{Phase, Session, Viewer, Watching};

impl Viewer {
    pub(super) fn happened(self: &Arc<Self>, event: HandleEvent) {
        match event {
            HandleEvent::Up => self.up(),
            HandleEvent::Layer {
                route,
                layer,
                reason,
            } => self.relayed(route, layer, reason),
            HandleEvent::Media {
                mid,
                receiving,
                substream,
                ..
            } => self.published(mid, substream, receiving),
            HandleEvent::DataChannel { .. } => self.data_is_ready(),
            HandleEvent::Hangup(_) => self.leave(),
            HandleEvent::SlowLink { .. }
            | HandleEvent::Talking { .. }
            | HandleEvent::Speech { .. }
            | HandleEvent::Paused { .. }
            | HandleEvent::Remb(_)
            | HandleEvent::Data(_) => {}
        }
    }

    fn up(self: &Arc<Self>) {
        let mut session = self.session();
        match &mut *session {
            Session::Idle => {}
            Session::Publishing(publishing) => {
                let mountpoint = publishing.mountpoint.clone();
                drop(session);
                mountpoint.connect_viewers();
            }
            Session::Watching(watching) => {
                watching.phase = Phase::Up;
                // A cached keyframe leaves with the routes, before the client hears of it.
                watching.connect(&self.handle);
                self.push_result(json!({ "status": "started" }));
                self.notify("started", &watching.mountpoint);
                drop(session);
                // The offer may be outdated by now.
                self.renew();
            }
        }
    }

    fn relayed(&self, route: RouteId, layer: Layer, reason: LayerReason) {
        let mut session = self.session();
        if let Session::Watching(watching) = &mut *session {
            for event in watching.relayed(route, layer, reason) {
                self.push_result(event);
            }
        }
    }

    /// Notes that messages can be sent to the viewer.
    fn data_is_ready(&self) {
        if let Session::Watching(watching) = &mut *self.session() {
            watching.data_ready = true;
        }
    }

    /// Notes that an encoding of a publisher's stream comes or pauses.
    fn published(&self, mid: Mid, substream: Option<u8>, receiving: bool) {
        if let Session::Publishing(publishing) = &mut *self.session() {
            publishing.receive(mid, substream.unwrap_or(0), receiving);
        }
    }
}

impl Watching {
    /// Returns the events about a route that relays another layer.
    fn relayed(&mut self, route: RouteId, layer: Layer, reason: LayerReason) -> Vec<Value> {
        let mountpoint = &self.mountpoint;
        let found = self
            .subscriptions
            .iter_mut()
            .find(|s| s.route == Some(route));
        let Some(subscription) = found else {
            return Vec::new();
        };
        let before = std::mem::replace(&mut subscription.current, layer);
        let Some(stream) = subscription.stream_of(mountpoint) else {
            return Vec::new();
        };
        let (simulcast, svc) = {
            let live = stream.live();
            (live.simulcast, live.svc)
        };
        let changed = |old: Option<u8>, new: Option<u8>| new.filter(|_| old != new);
        let substream = changed(before.substream, layer.substream);
        let spatial = changed(before.spatial, layer.spatial);
        let temporal = changed(before.temporal, layer.temporal);
        let told = |layers: [(&str, Option<u8>); 2]| -> Option<Value> {
            layers.iter().find(|(_, layer)| layer.is_some())?;
            let event = Object::new().with("mid", stream.mid().as_str());
            let add =
                |event: Object, (name, layer): (&str, Option<u8>)| event.with_some(name, layer);
            let event = layers.into_iter().fold(event, add);
            Some(event.with("reason", reason.name()).into())
        };
        let none = ("", None);
        let events = if simulcast {
            let substream = told([("substream", substream), none]);
            [substream, told([("temporal", temporal), none])]
        } else if svc && before.spatial.is_none() && spatial.is_some() {
            // The first event has both.
            let both = [("spatial_layer", spatial), ("temporal_layer", temporal)];
            [told(both), None]
        } else if svc {
            let spatial = told([("spatial_layer", spatial), none]);
            [spatial, told([("temporal_layer", temporal), none])]
        } else {
            [None, None]
        };
        events.into_iter().flatten().collect()
    }
}
