//! Starting, pausing and ending what a subscription receives.

use portunus_core::media::{Layer, LayerReason, RouteId};
use portunus_core::sdp::{CodecSpec, Description, Kind};
use portunus_core::{HandleId, Mid, Object};

use super::payloads::Payloads;
use super::seat::Follow;
use super::{Pending, Signaling, Source};
use crate::id::Id;
use crate::refusal::Refusal;
use crate::room::RoomState;

impl RoomState {
    /// Takes the client's answer.
    pub(crate) fn accept(&mut self, key: HandleId, answer: &Description) -> Result<(), Refusal> {
        let subscriber = self.subscribers.get_mut(&key).ok_or(Refusal::NotInRoom)?;
        subscriber.signaling = Signaling::Stable;
        for (line, answered) in subscriber.lines.iter_mut().zip(&answer.media) {
            let takes = line.kind == Kind::Data || answered.direction.receives();
            let offered = line.source != Source::None || line.seat.is_some();
            line.ready = offered && !answered.rejected && takes;
            if let Some(seat) = &mut line.seat {
                let codecs = answered.codecs.iter().filter_map(CodecSpec::codec_name);
                seat.keep(&codecs.collect::<Vec<_>>());
            }
        }
        self.relay(key);
        // Somebody may sit where the client cannot decode it.
        if self.followers.contains(&key) {
            self.reseat_all();
        }
        Ok(())
    }

    /// Offers what was kept back until the last offer was answered.
    pub(crate) fn offer_pending(&mut self, key: HandleId) {
        let pending = self
            .subscribers
            .get(&key)
            .map(|subscriber| subscriber.pending);
        if pending.is_some_and(|pending| pending.offer || pending.restart) {
            self.renegotiate(key, None);
        }
    }

    /// Stops or resumes all media.
    pub(crate) fn pause(&mut self, key: HandleId, paused: bool) -> Result<(), Refusal> {
        let subscriber = self.subscribers.get_mut(&key).ok_or(Refusal::NotInRoom)?;
        subscriber.paused = paused;
        self.relay(key);
        Ok(())
    }

    /// The PeerConnection is gone: nothing is received any more until the client subscribes again.
    pub(crate) fn subscriber_hung_up(&mut self, key: HandleId) {
        self.clear_lines(key);
        if self.followers.remove(&key) {
            self.measure_speech();
        }
        if let Some(subscriber) = self.subscribers.get_mut(&key) {
            subscriber.lines.clear();
            subscriber.follow(Follow::Nobody, 0);
            subscriber.client_offered = false;
            subscriber.payloads = Payloads::default();
            subscriber.signaling = Signaling::Closed;
            subscriber.pending = Pending::default();
        }
    }

    /// The client's offer took the place of ours, which nobody will answer now.
    pub(crate) fn offer_lost(&mut self, key: HandleId) {
        if let Some(subscriber) = self.subscribers.get_mut(&key)
            && subscriber.signaling == Signaling::HaveLocalOffer
        {
            subscriber.signaling = Signaling::Stable;
            subscriber.pending.offer = true;
        }
    }

    /// A stream turned out to have layers: from now on they can be chosen, and others are told so.
    fn found_svc(&mut self, feed: &Id, mid: Mid) {
        let media = self.people.get_mut(feed).and_then(|p| p.media.as_mut());
        let Some(stream) = media.and_then(|media| media.stream_mut(mid)) else {
            return;
        };
        stream.svc = true;
        let index = stream.index;
        self.relay_stream(feed, index);
        self.tell_published(feed);
    }

    /// A route relays another layer: the client is told.
    pub(crate) fn layer_changed(
        &mut self,
        key: HandleId,
        route: RouteId,
        layer: Layer,
        reason: LayerReason,
    ) {
        let event = self.event();
        let Some(subscriber) = self.subscribers.get_mut(&key) else {
            return;
        };
        let handle = subscriber.handle.clone();
        let Some(line) = subscriber.fed_by(route) else {
            return;
        };
        let before = std::mem::replace(&mut line.current, layer);
        line.reason = Some(reason);
        let mid = line.mid;
        let Source::Track { feed, mid: from } = line.source.clone() else {
            return;
        };
        let Some(stream) = self.stream(&feed, from) else {
            return;
        };
        let (simulcast, svc) = (stream.simulcast, stream.svc);
        // Not all publishers can say of themselves that they send it.
        let found = !simulcast && !svc && layer.spatial.is_some();
        if found {
            self.found_svc(&feed, from);
        }
        let svc = svc || found;
        let tell = |name: &str, before: Option<u8>, now: Option<u8>| {
            if let Some(now) = now.filter(|_| before != now) {
                let told = layer_event(&event, mid.as_str(), name, now);
                handle.push(None, told.with("reason", reason.name()), None);
            }
        };
        if simulcast {
            tell("substream", before.substream, layer.substream);
            tell("temporal", before.temporal, layer.temporal);
        } else if svc {
            tell("spatial_layer", before.spatial, layer.spatial);
            tell("temporal_layer", before.temporal, layer.temporal);
        }
    }
}

/// What the client is told of a layer.
pub(super) fn layer_event(event: &Object, mid: &str, name: &str, layer: u8) -> Object {
    event.clone().with("mid", mid).with(name, layer)
}
