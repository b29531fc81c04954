//! Data channels of publishers, relayed to those who subscribed to them.

use portunus_core::HandleId;
use portunus_core::media::{DataMessage, DataPayload};

use crate::id::Id;
use crate::room::RoomState;

impl RoomState {
    /// Relays a publisher's message, on a channel with the publisher's id as its label.
    pub(crate) fn relay_data(&self, id: &Id, handle: HandleId, message: DataMessage) {
        let is_empty = match &message.payload {
            DataPayload::Text(text) => text.is_empty(),
            DataPayload::Binary(bytes) => bytes.is_empty(),
        };
        let person = self.people.get(id).filter(|p| p.origin.is(handle));
        let Some(person) = person.filter(|_| !is_empty) else {
            return;
        };
        let message = DataMessage {
            label: id.to_string(),
            protocol: String::new(),
            payload: message.payload,
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
