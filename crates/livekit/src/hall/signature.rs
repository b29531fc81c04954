//! The sender that the server writes into a data packet of a client.

use livekit_protocol::{DataPacket, data_packet};
use prost::Message;

/// The sender of a packet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sender<'a> {
    pub(super) identity: &'a str,
    /// Its session.
    pub(super) sid: &'a str,
    /// Whether the others do not see it.
    pub(super) is_hidden: bool,
}

/// The fields of a `DataPacket` that name the sender. Empty strings are encoded, too.
#[derive(Clone, PartialEq, Message)]
struct Signature {
    #[prost(message, optional, tag = "2")]
    user: Option<UserSignature>,
    #[prost(string, required, tag = "4")]
    participant_identity: String,
    #[prost(string, required, tag = "17")]
    participant_sid: String,
}

/// The fields of a `UserPacket` that name the sender. Empty strings are encoded, too.
#[derive(Clone, PartialEq, Message)]
struct UserSignature {
    #[prost(string, required, tag = "1")]
    participant_sid: String,
    #[prost(string, required, tag = "5")]
    participant_identity: String,
}

/// Adds the sender to a packet. The last value of a field wins, so all other fields stay as they
/// are. Of a hidden sender only the session of the packet remains: clients number reliable packets
/// by it.
pub(super) fn signed(mut bytes: Vec<u8>, packet: &DataPacket, sender: Sender<'_>) -> Vec<u8> {
    let Sender {
        identity,
        sid,
        is_hidden,
    } = sender;
    let shown = |text: &str| match is_hidden {
        true => String::new(),
        false => text.to_owned(),
    };
    let is_user = matches!(packet.value, Some(data_packet::Value::User(_)));
    let signature = Signature {
        // It is merged into the packet's own.
        user: is_user.then(|| UserSignature {
            participant_sid: shown(sid),
            participant_identity: shown(identity),
        }),
        participant_identity: shown(identity),
        participant_sid: sid.to_owned(),
    };
    signature.encode_raw(&mut bytes);
    bytes
}

/// Returns a packet with its sender, or `None` if the bytes are no packet.
#[cfg(feature = "testing")]
pub(crate) fn signed_packet(bytes: Vec<u8>, identity: &str, sid: &str) -> Option<Vec<u8>> {
    let packet = DataPacket::decode(&*bytes).ok()?;
    let sender = Sender {
        identity,
        sid,
        is_hidden: false,
    };
    Some(signed(bytes, &packet, sender))
}

#[cfg(test)]
mod tests {
    use livekit_protocol::UserPacket;

    use super::*;

    const AL: Sender<'_> = Sender {
        identity: "al",
        sid: "PA_1",
        is_hidden: false,
    };

    /// Returns a packet that names others as its sender.
    fn forged() -> DataPacket {
        DataPacket {
            participant_identity: "mallory".to_owned(),
            participant_sid: "PA_9".to_owned(),
            sequence: 7,
            value: Some(data_packet::Value::User(UserPacket {
                participant_sid: "PA_9".to_owned(),
                participant_identity: "mallory".to_owned(),
                payload: vec![1, 2],
                topic: Some("t".to_owned()),
                ..UserPacket::default()
            })),
            ..DataPacket::default()
        }
    }

    fn sign(packet: &DataPacket, sender: Sender<'_>) -> DataPacket {
        let bytes = signed(packet.encode_to_vec(), packet, sender);
        DataPacket::decode(&*bytes).unwrap_or_default()
    }

    fn user(packet: DataPacket) -> UserPacket {
        match packet.value {
            Some(data_packet::Value::User(user)) => user,
            _ => unreachable!("it stays what it is"),
        }
    }

    #[test]
    fn the_sender_is_added_and_the_rest_stays() {
        let packet = forged();
        let mut bytes = packet.encode_to_vec();
        // A field of a later version.
        bytes.extend([0xA2, 0x06, 1, 9]);
        let signed = signed(bytes, &packet, AL);
        assert!(signed.windows(4).any(|it| it == [0xA2, 0x06, 1, 9]));
        let read = DataPacket::decode(&*signed).unwrap_or_default();
        assert_eq!(
            (&*read.participant_identity, &*read.participant_sid),
            ("al", "PA_1")
        );
        assert_eq!(read.sequence, 7);
        let user = user(read);
        assert_eq!(user.payload, [1, 2]);
        assert_eq!(user.topic.as_deref(), Some("t"));
        assert_eq!(
            (&*user.participant_identity, &*user.participant_sid),
            ("al", "PA_1")
        );
    }

    #[test]
    fn a_hidden_sender_is_not_named_and_names_nobody() {
        let sender = Sender {
            is_hidden: true,
            ..AL
        };
        let read = sign(&forged(), sender);
        assert_eq!(
            (&*read.participant_identity, &*read.participant_sid),
            ("", "PA_1")
        );
        assert_eq!(read.sequence, 7);
        let user = user(read);
        assert_eq!(user.payload, [1, 2]);
        assert_eq!(
            (&*user.participant_identity, &*user.participant_sid),
            ("", "")
        );
    }
}
