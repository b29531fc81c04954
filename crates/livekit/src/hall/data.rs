//! Events of PeerConnections, and the messages of data channels.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use livekit_protocol::{
    DataChannelReceiveState, DataPacket, StreamState, StreamStateInfo, StreamStateUpdate,
    data_packet, signal_response,
};
use portunus_core::HandleEvent;
use portunus_media::{DataMessage, DataOptions, DataPayload, Reliability, RouteId};
use prost::Message;
use tokio::time::Instant;

use super::Hall;
use super::input::Event;
use super::member::{Member, Role};
use super::nonces::{Nonce, nonce};
use super::packets::Packet;
use super::signature::{Sender, signed};
use crate::refusals::BadInput;

/// The labels of data channels.
pub(crate) const RELIABLE: &str = "_reliable";
pub(crate) const LOSSY: &str = "_lossy";
pub(super) const DATA_TRACK: &str = "_data_track";

/// The longest message, in bytes.
pub(crate) const MAX_PACKET: usize = 64 << 10;

impl Member {
    /// Takes an event of a PeerConnection. The handle's task calls it.
    pub(crate) fn media_event(&self, role: Role, event: HandleEvent) {
        let room = &self.hall.room;
        match event {
            HandleEvent::Up => {
                if role == Role::Subscriber {
                    self.open_channels();
                    self.open_data();
                }
                self.happens(Event::Up(role));
            }
            HandleEvent::Hangup(reason) => self.happens(Event::HungUp(role, reason)),
            HandleEvent::Data(message) => self.data(message),
            HandleEvent::Layer {
                route,
                layer,
                reason,
            } => {
                if let Some(key) = self.key(role) {
                    room.lock().layer_changed(key, route, layer, reason);
                }
            }
            HandleEvent::Paused { route, paused } => self.paused(role, route, paused),
            HandleEvent::Talking {
                mid,
                talking,
                average,
            } => room.lock().heard(&self.id, mid, talking, average),
            HandleEvent::Speech { mid, activity } => room.lock().speech(&self.id, mid, activity),
            // With one PeerConnection the client opens the channels.
            HandleEvent::DataChannel { label, .. } => {
                if role == self.receiving() && role == Role::Publisher && label == RELIABLE {
                    self.open_data();
                }
            }
            HandleEvent::Media { .. } | HandleEvent::SlowLink { .. } | HandleEvent::Remb(_) => {}
        }
    }

    /// Tells the client that the link to it carries a track no longer, or again.
    fn paused(&self, role: Role, route: RouteId, paused: bool) {
        let state = self.hall.room.lock();
        let source = self.key(role).and_then(|key| state.source_of(key, route));
        let Some((feed, mid)) = source else { return };
        let people = self.hall.people();
        let person = people.get(feed);
        let Some((person, track)) = person.and_then(|it| Some((it, it.track_of(mid)?))) else {
            return;
        };
        let state = match paused {
            true => StreamState::Paused,
            false => StreamState::Active,
        };
        let info = StreamStateInfo {
            participant_sid: person.sid.clone(),
            track_sid: track.sid.clone(),
            state: state.into(),
        };
        let update = StreamStateUpdate {
            stream_states: vec![info],
        };
        let message = signal_response::Message::StreamStateUpdate(update);
        self.out.message(message);
    }

    /// Forwards a message of the client to the others.
    fn data(&self, message: DataMessage) {
        let bytes = match message.payload {
            DataPayload::Binary(bytes) => bytes,
            DataPayload::Text(text) => text.into_bytes(),
        };
        let is_known = matches!(message.label.as_str(), RELIABLE | LOSSY | DATA_TRACK);
        if !is_known || bytes.len() > MAX_PACKET {
            self.hall.refusals.count(BadInput::Data);
            return;
        }
        if message.label == DATA_TRACK {
            self.data_frame(bytes);
            return;
        }
        let Ok(packet) = DataPacket::decode(&*bytes) else {
            tracing::debug!("a data message is no packet");
            self.hall.refusals.count(BadInput::Data);
            return;
        };
        if self.hall.calls.take(&self.identity, &packet) {
            return;
        }
        let people = self.hall.people();
        let Some(person) = people.get(&self.id) else {
            return;
        };
        let permission = &person.permission;
        if !permission.can_publish_data || !is_forwarded(&packet, person.is_agent()) {
            self.hall.refusals.count(BadInput::Data);
            return;
        }
        if message.label == RELIABLE && !self.is_next(packet.sequence) {
            return;
        }
        let sender = Sender {
            identity: &self.identity,
            sid: &self.sid,
            is_hidden: permission.hidden,
            is_agent: person.is_agent(),
        };
        let (identities, sids) = destinations(&packet);
        let Some(to) = people.named(identities, sids) else {
            return;
        };
        let packet = Packet {
            at: Instant::now(),
            from: self.sid.clone(),
            sequence: packet.sequence,
            to,
            nonce: nonce_of(&packet),
            bytes: signed(bytes, &packet, sender).into(),
        };
        drop(people);
        self.hall.send(&message.label, packet);
    }

    /// Opens the channels for messages of the server. Some clients count as connected once these
    /// are open.
    fn open_channels(&self) {
        let Some(handle) = self.handle(self.receiving()) else {
            return;
        };
        for label in [RELIABLE, LOSSY, DATA_TRACK] {
            handle.open_data(label, channel_options(label));
        }
    }

    /// Sends the reliable messages that have come since the client joined, now that it can get
    /// them.
    pub(crate) fn open_data(&self) {
        let packets = self.hall.packets();
        if self.has_data.swap(true, Ordering::AcqRel) {
            return;
        }
        let missed = packets.since(self.joined);
        for packet in missed.filter(|packet| packet.is_for(&self.identity, &self.sid)) {
            self.send_data(RELIABLE, &packet.bytes);
        }
    }

    /// Sends the reliable messages again that the client has missed: `got` are the last ones of
    /// each sender that it has.
    pub(crate) fn repeat_data(&self, got: &[DataChannelReceiveState]) {
        let got = got.iter().map(|it| (it.publisher_sid.clone(), it.last_seq));
        let got = got.collect();
        let packets = self.hall.packets();
        let missed = packets.after(&got);
        for packet in missed.filter(|packet| packet.is_for(&self.identity, &self.sid)) {
            self.send_data(RELIABLE, &packet.bytes);
        }
    }

    /// Sends a message to the client.
    pub(super) fn send_data(&self, label: &str, bytes: &[u8]) {
        let message = DataMessage {
            label: label.to_owned(),
            protocol: String::new(),
            payload: DataPayload::Binary(bytes.to_vec()),
        };
        if let Some(handle) = self.handle(self.receiving()) {
            handle.send_data_with(message, channel_options(label));
        }
    }
}

impl Hall {
    /// Sends a message to the participants of all nodes that it is for, unless its nonce is repeated.
    pub(crate) fn send(&self, label: &str, packet: Packet) {
        if self.is_repeated(&packet) {
            return;
        }
        let targets = self.targets(&packet);
        self.send_packet(label, &packet, targets.len() == packet.to.len());
        self.deliver(label, packet, &targets);
    }

    /// Returns the clients of this node that a message is for.
    pub(super) fn targets(&self, packet: &Packet) -> Vec<Arc<Member>> {
        let people = self.people();
        let members = people.members();
        let targets = members.filter(|it| packet.is_for(&it.identity, &it.sid));
        targets.cloned().collect()
    }

    /// Sends a message to participants of this node. If it is reliable, it waits for those whose channel
    /// is not open yet.
    pub(crate) fn deliver(&self, label: &str, packet: Packet, targets: &[Arc<Member>]) {
        // Under the lock, so that a channel which is being opened misses nothing.
        let mut packets = self.packets();
        let open = targets
            .iter()
            .filter(|it| it.has_data.load(Ordering::Acquire));
        for target in open {
            target.send_data(label, &packet.bytes);
        }
        if label == RELIABLE {
            packets.keep(packet);
        }
    }
}

/// Returns the nonce of a packet, if it has one.
fn nonce_of(packet: &DataPacket) -> Option<Nonce> {
    match &packet.value {
        Some(data_packet::Value::User(user)) => nonce(&user.nonce),
        Some(_) | None => None,
    }
}

/// Returns the options of a channel of the server.
fn channel_options(label: &str) -> DataOptions {
    match label {
        LOSSY | DATA_TRACK => DataOptions {
            ordered: false,
            reliability: Reliability::MaxRetransmits(0),
        },
        _ => DataOptions::default(),
    }
}

/// Returns whether clients get a packet at all.
fn is_forwarded(packet: &DataPacket, is_agent: bool) -> bool {
    use data_packet::Value;
    match &packet.value {
        Some(Value::Transcription(_)) => is_agent,
        Some(Value::Metrics(_) | Value::Speaker(_)) => false,
        // Fields of later versions are kept, so that clients which know them get them.
        Some(_) | None => true,
    }
}

/// Returns the identities and the sessions that a packet is for. Nobody named means all.
fn destinations(packet: &DataPacket) -> (&[String], &[String]) {
    let identities = packet.destination_identities.as_slice();
    let Some(data_packet::Value::User(user)) = &packet.value else {
        return (identities, &[]);
    };
    match identities {
        [] => (&user.destination_identities, &user.destination_sids),
        _ => (identities, &user.destination_sids),
    }
}

#[cfg(test)]
mod tests {
    use livekit_protocol::RpcRequest;

    use super::*;

    #[test]
    fn transcriptions_are_from_agents_only() {
        let of = |value| DataPacket {
            value: Some(value),
            ..DataPacket::default()
        };
        let transcription = of(data_packet::Value::Transcription(Default::default()));
        assert!(is_forwarded(&transcription, true));
        assert!(!is_forwarded(&transcription, false));
        let request = of(data_packet::Value::RpcRequest(RpcRequest::default()));
        assert!(is_forwarded(&request, false));
        assert!(!is_forwarded(
            &of(data_packet::Value::Metrics(Default::default())),
            true
        ));
    }
}
