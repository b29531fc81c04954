//! `configure`: what of the streams is sent, and which layers.

use portunus_core::media::Layer;
use portunus_core::{FieldError, Fields, Message, Mid, Object};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::subscription::{LayerRequest, Subscription};
use super::{Answer, Session, Viewer, Watching};
use crate::mountpoint::Mountpoint;
use crate::refusal::Refusal;
use crate::spec::MediaKind;

/// The change of one stream, or of all.
struct Change {
    gate: Gate,
    layers: LayerRequest,
    delays: Delays,
}

/// The gate of a stream.
#[derive(Deserialize)]
struct Gate {
    /// `None`: all streams.
    mid: Option<String>,
    send: Option<bool>,
}

/// The playout delay, in units of 10 ms.
#[derive(Deserialize)]
struct Delays {
    min_delay: Option<i64>,
    max_delay: Option<i64>,
}

impl Change {
    fn read(members: &Map<String, Value>) -> Result<Self, Refusal> {
        let fields = Fields(members);
        Ok(Change {
            gate: fields.read()?,
            layers: fields.read()?,
            delays: fields.read()?,
        })
    }

    /// Reads the list `streams`.
    fn list(list: &Value) -> Result<Vec<Self>, Refusal> {
        let wrong = || FieldError::wrong_type("streams", "a list of objects");
        let entries = list.as_array().ok_or_else(wrong)?;
        let mut changes = Vec::with_capacity(entries.len());
        for entry in entries {
            changes.push(Change::read(entry.as_object().ok_or_else(wrong)?)?);
        }
        if changes.len() > 1 && changes.iter().any(|change| change.gate.mid.is_none()) {
            return Err(Refusal::element("mid", "each of several streams needs one"));
        }
        Ok(changes)
    }

    fn concerns(&self, subscription: &Subscription, mountpoint: &Mountpoint) -> bool {
        match &self.gate.mid {
            None => true,
            Some(mid) => Mid::new(mid).is_some_and(|mid| subscription.is_named(mid, mountpoint)),
        }
    }
}

impl Viewer {
    pub(super) fn configure(&self, message: &Message) -> Result<Answer, Refusal> {
        let mut session = self.session();
        let Session::Watching(watching) = &mut *session else {
            return Err(Refusal::NotWatching);
        };
        let fields = Fields(&message.body);
        let changes = match message.body.get("streams") {
            Some(list) => Change::list(list)?,
            None => vec![Change::read(&message.body)?],
        };
        let mut gates = Vec::new();
        for kind in [MediaKind::Audio, MediaKind::Video, MediaKind::Data] {
            gates.push((kind, fields.member(kind.name())?));
        }
        for change in &changes {
            for event in watching.change(change) {
                self.push_result(event);
            }
        }
        for (kind, send) in gates {
            let of_kind = watching.subscriptions.iter_mut().filter(|s| s.kind == kind);
            for subscription in of_kind {
                subscription.send = send.unwrap_or(subscription.send);
            }
        }
        watching.connect(&self.handle);
        Ok((json!({ "event": "configured" }), None))
    }
}

impl Watching {
    /// Applies a change. Returns the events about layers that are relayed already.
    fn change(&mut self, change: &Change) -> Vec<Value> {
        let mut events = Vec::new();
        let mountpoint = &self.mountpoint;
        for subscription in &mut self.subscriptions {
            if !change.concerns(subscription, mountpoint) {
                continue;
            }
            subscription.send = change.gate.send.unwrap_or(subscription.send);
            change.layers.apply(&mut subscription.layers);
            if subscription.kind == MediaKind::Video && mountpoint.has_playout_delay() {
                let Delays {
                    min_delay,
                    max_delay,
                } = change.delays;
                subscription.delay.set(min_delay, max_delay);
            }
            events.extend(in_place(subscription, change.layers, mountpoint));
        }
        events
    }
}

/// Returns the events about requested layers that are relayed already.
fn in_place(
    subscription: &Subscription,
    request: LayerRequest,
    mountpoint: &Mountpoint,
) -> Vec<Value> {
    let Some(stream) = subscription.stream_of(mountpoint) else {
        return Vec::new();
    };
    let Layer {
        substream,
        spatial,
        temporal,
        sent: _,
    } = subscription.current;
    let (simulcast, svc) = {
        let live = stream.live();
        (live.simulcast, live.svc)
    };
    let candidates = [
        ("substream", simulcast, request.substream, substream),
        ("temporal", simulcast, request.temporal, temporal),
        ("spatial_layer", svc, request.spatial_layer, spatial),
        ("temporal_layer", svc, request.temporal_layer, temporal),
    ];
    candidates
        .into_iter()
        .filter(|(_, has, asked, now)| *has && asked.is_some() && asked == now)
        .map(|(name, _, _, now)| {
            let event = Object::new().with("mid", stream.mid().as_str());
            event.with_some(name, now).into()
        })
        .collect()
}
