//! Data channels of publishers, relayed to those who subscribed to them.

use portunus_core::HandleId;
use portunus_core::media::{DataMessage, DataPayload};

use crate::id::Id;
use crate::room::RoomState;

impl RoomState {
    /// Relays a publisher's message, on a channel with the publisher's id as its label.
    pub(crate) fn relay_data(&self, id: &Id, handle: HandleId, message: DataMessage) {
        let person = self.people.get(id).filter(|p| p.origin.is(handle));
        if person.is_some() {
            self.pass_message(id, message.payload);
        }
    }

    /// Relays what has come from a publisher, whoever sent it.
    pub(crate) fn pass_message(&self, id: &Id, payload: DataPayload) {
        let is_empty = match &payload {
            DataPayload::Text(text) => text.is_empty(),
            DataPayload::Binary(bytes) => bytes.is_empty(),
        };
        let Some(person) = self.people.get(id).filter(|_| !is_empty) else {
            return;
        };
        let message = DataMessage {
            label: id.to_string(),
            protocol: String::new(),
            payload,
        };
        let streams = person.media.iter().flat_map(|media| media.data());
        let open = streams.filter(|stream| stream.is_open());
        for (key, index) in open.flat_map(|stream| &stream.receivers) {
            if let Some(subscriber) = self.subscribers.get(key) {
                subscriber.send_data(*index, &message);
            }
        }
    }
}
