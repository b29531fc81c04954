//! Messages between the parts of this door at the nodes of a cluster, in protobuf. Later versions may
//! add some, which earlier ones skip.

use livekit_protocol as lk;
use prost::Message;
use tokio::time::Instant;

use super::data::{LOSSY, MAX_PACKET, RELIABLE};
use super::{Hall, Packet};

/// The bytes that a sender adds to a packet: its identity and its session, twice.
const SIGNATURE: usize = 2_048;

/// A message about a room.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct FarMessage {
    #[prost(oneof = "FarContent", tags = "1, 2, 3, 4, 5, 6")]
    content: Option<FarContent>,
}

/// The content of a message.
#[derive(Clone, PartialEq, prost::Oneof)]
pub(crate) enum FarContent {
    /// A data packet for participants.
    #[prost(message, tag = "1")]
    Data(FarPacket),
    /// A service changes a participant.
    #[prost(message, tag = "2")]
    Change(lk::UpdateParticipantRequest),
    /// A service mutes or unmutes a track.
    #[prost(message, tag = "3")]
    Mute(lk::MuteRoomTrackRequest),
    /// A service changes the metadata of the room.
    #[prost(message, tag = "4")]
    Metadata(lk::UpdateRoomMetadataRequest),
    /// A client of another node has the identity of a session.
    #[prost(message, tag = "5")]
    Replaced(Replaced),
    /// A packet of a data track, for a node that wants it.
    #[prost(message, tag = "6")]
    Frame(FarFrame),
}

/// A session whose identity another client has.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Replaced {
    #[prost(string, tag = "1")]
    pub(super) identity: String,
    #[prost(string, tag = "2")]
    pub(super) sid: String,
}

/// A packet of a data track.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct FarFrame {
    /// The id of the track.
    #[prost(string, tag = "1")]
    pub(super) track: String,
    #[prost(bytes = "vec", tag = "2")]
    pub(super) packet: Vec<u8>,
}

/// A data packet with its sender.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct FarPacket {
    /// The data channel.
    #[prost(string, tag = "1")]
    label: String,
    /// The session that sent it. Empty for a server.
    #[prost(string, tag = "2")]
    from: String,
    /// Its number among those of the sender.
    #[prost(uint32, tag = "3")]
    sequence: u32,
    /// The identities that it is for. Empty means all.
    #[prost(string, repeated, tag = "4")]
    to: Vec<String>,
    #[prost(bytes = "vec", tag = "5")]
    bytes: Vec<u8>,
    /// Its nonce, 16 bytes. Empty without one.
    #[prost(bytes = "vec", tag = "6")]
    nonce: Vec<u8>,
}

#[cfg(test)]
impl FarPacket {
    /// Returns the packet.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl FarMessage {
    /// Reads a message. Returns `None` if it is malformed, or of a later version.
    pub(crate) fn parse(bytes: &[u8]) -> Option<FarContent> {
        FarMessage::decode(bytes).ok()?.content
    }
}

impl Hall {
    /// Tells this door at other nodes something, if there are any.
    pub(crate) fn tell_nodes(&self, content: FarContent) {
        if let Some(others) = self.rooms.others() {
            let content = Some(content);
            others.tell(&self.name, FarMessage { content }.encode_to_vec());
        }
    }

    /// Tells this door at one node something.
    pub(super) fn tell_node(&self, node: &str, content: FarContent, may_be_lost: bool) {
        if let Some(others) = self.rooms.others() {
            let content = Some(content);
            let message = FarMessage { content }.encode_to_vec();
            others.tell_node(node, &self.name, message, may_be_lost);
        }
    }

    /// Sends a packet to participants at other nodes. `is_here`: all that it names are at this one.
    pub(super) fn send_packet(&self, label: &str, packet: &Packet, is_here: bool) {
        if is_here && !packet.to.is_empty() || self.rooms.others().is_none() {
            return;
        }
        self.tell_nodes(FarContent::Data(FarPacket {
            label: label.to_owned(),
            from: packet.from.clone(),
            sequence: packet.sequence,
            to: packet.to.clone(),
            bytes: packet.bytes.to_vec(),
            nonce: packet.nonce.map(Vec::from).unwrap_or_default(),
        }));
    }

    /// Takes what another node tells.
    pub(crate) fn take(&self, content: FarContent) {
        match content {
            FarContent::Data(packet) => self.take_packet(packet),
            FarContent::Change(request) => {
                let id = self.id_of(&request.identity);
                if self.people().has_client(&id) {
                    // It may have left meanwhile.
                    let _ = self.change(request);
                }
            }
            FarContent::Mute(request) => {
                let id = self.id_of(&request.identity);
                if self.people().has_client(&id) {
                    // As above.
                    let _ = self.mute(&id, &request.track_sid, request.muted);
                }
            }
            FarContent::Metadata(request) => self.set_metadata(request.metadata),
            FarContent::Replaced(replaced) => self.take_replaced(replaced),
            FarContent::Frame(FarFrame { track, packet }) => self.take_frame(&track, packet),
        }
    }

    fn take_packet(&self, packet: FarPacket) {
        let FarPacket {
            label,
            from,
            sequence,
            to,
            bytes,
            nonce,
        } = packet;
        let is_known = label == RELIABLE || label == LOSSY;
        if !is_known || bytes.len() > MAX_PACKET + SIGNATURE {
            return;
        }
        let packet = Packet {
            at: Instant::now(),
            from,
            sequence,
            to,
            nonce: super::nonce(&nonce),
            bytes: bytes.into(),
        };
        // Another node may have sent a repeated request.
        if self.is_repeated(&packet) {
            return;
        }
        let targets = self.targets(&packet);
        self.deliver(&label, packet, &targets);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_the_same_when_it_was_written_and_read() {
        let content = FarContent::Data(FarPacket {
            label: RELIABLE.to_owned(),
            from: "PA_1".to_owned(),
            sequence: 7,
            to: vec!["bo".to_owned()],
            bytes: vec![1, 2],
            nonce: vec![3; 16],
        });
        let message = FarMessage {
            content: Some(content.clone()),
        };
        assert_eq!(FarMessage::parse(&message.encode_to_vec()), Some(content));
        // One of a later version has no content that this one knows.
        assert_eq!(FarMessage::parse(&[0x7a, 0x01, 0x00]), None);
        assert_eq!(FarMessage::parse(&[0xff]), None);
    }
}
