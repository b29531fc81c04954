//! The sender that the server writes into a data packet of a client.

use livekit_protocol::data_stream::{Header, TextHeader, header::ContentHeader};
use livekit_protocol::{ChatMessage, DataPacket, data_packet};
use prost::Message;

/// The sender of a packet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sender<'a> {
    pub(super) identity: &'a str,
    /// Its session.
    pub(super) sid: &'a str,
    /// Whether the others do not see it.
    pub(super) is_hidden: bool,
    /// Whether it may speak for others.
    pub(super) is_agent: bool,
}

/// The fields of a `DataPacket` that name the sender. Empty strings are encoded, too.
#[derive(Clone, PartialEq, Message)]
struct Signature {
    #[prost(message, optional, tag = "2")]
    user: Option<UserSignature>,
    /// `None` keeps the identity that the sender has written.
    #[prost(string, optional, tag = "4")]
    participant_identity: Option<String>,
    #[prost(message, optional, tag = "9")]
    chat_message: Option<ChatMessage>,
    #[prost(message, optional, tag = "13")]
    stream_header: Option<Header>,
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

/// What an agent sends for another participant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Generated {
    Chat,
    Text,
}

/// Adds the sender to a packet. The last value of a field wins, so all other fields stay as they
/// are. Of a hidden sender only the session of the packet remains: clients number reliable packets
/// by it. A packet that an agent sends for another one keeps its identity, and counts as generated.
pub(super) fn signed(mut bytes: Vec<u8>, packet: &DataPacket, sender: Sender<'_>) -> Vec<u8> {
    let Sender { identity, sid, .. } = sender;
    let shown = |text: &str| match sender.is_hidden {
        true => String::new(),
        false => text.to_owned(),
    };
    let generated = generated(packet, sender);
    let is_user = matches!(packet.value, Some(data_packet::Value::User(_)));
    // The messages are merged into those of the packet.
    let signature = Signature {
        user: is_user.then(|| UserSignature {
            participant_sid: shown(sid),
            participant_identity: shown(identity),
        }),
        participant_identity: generated.is_none().then(|| shown(identity)),
        chat_message: (generated == Some(Generated::Chat)).then(|| ChatMessage {
            generated: true,
            ..ChatMessage::default()
        }),
        stream_header: (generated == Some(Generated::Text)).then(|| Header {
            content_header: Some(ContentHeader::TextHeader(TextHeader {
                generated: true,
                ..TextHeader::default()
            })),
            ..Header::default()
        }),
        participant_sid: sid.to_owned(),
    };
    signature.encode_raw(&mut bytes);
    bytes
}

/// Returns what an agent sends for another participant, or `None` if a packet is the sender's own.
fn generated(packet: &DataPacket, sender: Sender<'_>) -> Option<Generated> {
    let named = packet.participant_identity.as_str();
    if !sender.is_agent || named.is_empty() || named == sender.identity {
        return None;
    }
    match &packet.value {
        Some(data_packet::Value::ChatMessage(_)) => Some(Generated::Chat),
        Some(data_packet::Value::StreamHeader(header)) => match &header.content_header {
            Some(ContentHeader::TextHeader(_)) => Some(Generated::Text),
            Some(ContentHeader::ByteHeader(_)) | None => None,
        },
        Some(_) | None => None,
    }
}

/// Returns a packet with its sender, or `None` if the bytes are no packet.
#[cfg(feature = "testing")]
pub(crate) fn signed_packet(bytes: Vec<u8>, identity: &str, sid: &str) -> Option<Vec<u8>> {
    let packet = DataPacket::decode(&*bytes).ok()?;
    let sender = Sender {
        identity,
        sid,
        is_hidden: false,
        is_agent: false,
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
        is_agent: false,
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

    /// Returns a packet with this content that names somebody else.
    fn spoken(value: data_packet::Value) -> DataPacket {
        DataPacket {
            value: Some(value),
            ..forged()
        }
    }

    fn header(content: ContentHeader) -> data_packet::Value {
        data_packet::Value::StreamHeader(Header {
            stream_id: "s".to_owned(),
            topic: "lk.transcription".to_owned(),
            content_header: Some(content),
            ..Header::default()
        })
    }

    fn chat() -> data_packet::Value {
        data_packet::Value::ChatMessage(ChatMessage {
            message: "hi".to_owned(),
            ..ChatMessage::default()
        })
    }

    fn text() -> data_packet::Value {
        header(ContentHeader::TextHeader(TextHeader {
            version: 3,
            ..TextHeader::default()
        }))
    }

    #[test]
    fn agents_speak_for_others_in_chat_and_text() {
        for is_hidden in [false, true] {
            let agent = Sender {
                is_agent: true,
                is_hidden,
                ..AL
            };
            let read = sign(&spoken(chat()), agent);
            assert_eq!(
                (&*read.participant_identity, &*read.participant_sid),
                ("mallory", "PA_1")
            );
            let Some(data_packet::Value::ChatMessage(chat)) = read.value else {
                unreachable!("it stays what it is")
            };
            assert_eq!((&*chat.message, chat.generated), ("hi", true));
            let read = sign(&spoken(text()), agent);
            assert_eq!(read.participant_identity, "mallory");
            let Some(data_packet::Value::StreamHeader(read)) = read.value else {
                unreachable!("it stays what it is")
            };
            assert_eq!((&*read.stream_id, &*read.topic), ("s", "lk.transcription"));
            let Some(ContentHeader::TextHeader(text)) = read.content_header else {
                unreachable!("it stays what it is")
            };
            assert_eq!((text.version, text.generated), (3, true));
        }
    }

    #[test]
    fn nobody_speaks_for_others_otherwise() {
        let agent = Sender {
            is_agent: true,
            ..AL
        };
        for value in [chat(), text()] {
            assert_eq!(sign(&spoken(value), AL).participant_identity, "al");
        }
        let bytes = header(ContentHeader::ByteHeader(Default::default()));
        assert_eq!(sign(&spoken(bytes), agent).participant_identity, "al");
        assert_eq!(sign(&forged(), agent).participant_identity, "al");
        for own in ["", "al"] {
            let packet = DataPacket {
                participant_identity: own.to_owned(),
                ..spoken(chat())
            };
            let read = sign(&packet, agent);
            assert_eq!(read.participant_identity, "al");
            let Some(data_packet::Value::ChatMessage(chat)) = read.value else {
                unreachable!("it stays what it is")
            };
            assert!(!chat.generated);
        }
    }
}
