//! The events of the PeerConnections of participants and subscribers.

use std::sync::Arc;

use portunus_core::{HandleEvent, Object};
use portunus_room::{PersonId, Room as Conference};
use serde_json::json;

use super::ClientHandle;

impl ClientHandle {
    pub(super) fn participant_event(
        &self,
        conference: &Arc<Conference>,
        id: &PersonId,
        event: HandleEvent,
    ) {
        let mut state = conference.lock();
        if state.publishes(id, self.client.key()).is_err() {
            return;
        }
        match event {
            HandleEvent::Up => {
                if state.media_up(id) {
                    state.announce(id, conference);
                }
            }
            HandleEvent::SlowLink {
                from_client: true, ..
            } => {
                let bitrate = state.person(id).map(|person| person.settings.bitrate);
                let event = Object::new()
                    .with("videoroom", "slow_link")
                    .with_some("current-bitrate", bitrate);
                self.client.handle.push(None, event, None);
            }
            HandleEvent::Talking {
                mid,
                talking,
                average,
            } => state.heard(id, mid, talking, average),
            HandleEvent::Speech { mid, activity } => state.speech(id, mid, activity),
            // A PeerConnection that was not negotiated has no publication.
            HandleEvent::Hangup(_) => drop(state.media_ended(id)),
            HandleEvent::SlowLink { .. }
            | HandleEvent::Media { .. }
            | HandleEvent::Layer { .. }
            | HandleEvent::Paused { .. }
            | HandleEvent::Remb(_)
            // Nobody has subscribed to the data.
            | HandleEvent::Data(_)
            | HandleEvent::DataChannel { .. } => {}
        }
    }

    pub(super) fn subscriber_event(&self, conference: &Conference, event: HandleEvent) {
        let key = self.client.key();
        match event {
            HandleEvent::Layer {
                route,
                layer,
                reason,
            } => conference.lock().layer_changed(key, route, layer, reason),
            HandleEvent::SlowLink {
                from_client: false, ..
            } => {
                let event = json!({ "videoroom": "slow_link" });
                self.client.handle.push(None, event, None);
            }
            HandleEvent::Up => {
                let state = conference.lock();
                if state.subscriber(key).is_some() {
                    let show = self.show(&state);
                    let subscribed = || show.event_of("subscribed").into();
                    self.client.handle.notify(subscribed);
                }
            }
            HandleEvent::Hangup(_) => conference.lock().subscriber_hung_up(key),
            HandleEvent::Talking { .. }
            | HandleEvent::Speech { .. }
            | HandleEvent::Paused { .. }
            | HandleEvent::SlowLink { .. }
            | HandleEvent::Media { .. }
            | HandleEvent::Remb(_)
            | HandleEvent::Data(_)
            | HandleEvent::DataChannel { .. } => {}
        }
    }
}
