//! What two nodes tell each other about their media link, as JSON.

use std::net::SocketAddr;

use portunus_cluster::MAX_WORKERS;
use portunus_media::NodeLinkKey;
use portunus_relay::Message;
use serde::{Deserialize, Serialize};

/// The longest message in bytes.
const LONGEST: usize = 16_384;

/// A message about a media link. The node that dials is the *opener*: it makes the keys. Later
/// versions may add messages and members, which earlier ones skip.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "link", rename_all = "snake_case")]
pub(crate) enum LinkMessage {
    /// From the opener: a new link, in place of the one before.
    Open {
        /// The number of the link, at random.
        session: u64,
        /// The keys.
        keys: Keys,
        /// The addresses of the opener's workers, by their index.
        addresses: Vec<SocketAddr>,
        /// The region of the opener. Absent in versions whose nodes carry nothing for others.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        region: Option<String>,
    },
    /// To the opener: the link is there.
    Opened {
        session: u64,
        /// The addresses of the other node's workers.
        addresses: Vec<SocketAddr>,
        /// The region of the other node, if its version carries sources for others.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        region: Option<String>,
    },
    /// From the opener: the connection was replaced, and the link goes on.
    Resume { session: u64 },
    /// To the opener: it goes on here, too.
    Resumed { session: u64 },
    /// To the opener: there is no such link.
    Unknown { session: u64 },
    /// From the opener: new keys. It takes packets with them already.
    Renew {
        session: u64,
        /// 1 for the first replacement.
        number: u32,
        keys: Keys,
    },
    /// To the opener: packets with the new keys are taken here, too.
    Renewed { session: u64, number: u32 },
    /// About sources.
    Relay { session: u64, about: Message },
    /// A message of a later version.
    #[serde(other)]
    Later,
}

/// The keys of a link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Keys {
    /// The key of what the opener sends.
    pub(crate) from_opener: NodeLinkKey,
    /// The key of what the opener receives.
    pub(crate) to_opener: NodeLinkKey,
}

impl Keys {
    pub(crate) fn random() -> Self {
        Keys {
            from_opener: NodeLinkKey::random(),
            to_opener: NodeLinkKey::random(),
        }
    }
}

/// A message cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LinkMessageError {
    /// It is longer than 16 KiB.
    #[error("a message about a media link has {0} bytes, and 16,384 are allowed")]
    Long(usize),
    /// It is not the expected JSON.
    #[error("a message about a media link is malformed: {0}")]
    Malformed(String),
    /// It has no or too many addresses.
    #[error("a node names {0} workers for media, and 1 to 64 are allowed")]
    Workers(usize),
}

impl LinkMessage {
    /// Reads a message.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, LinkMessageError> {
        if bytes.len() > LONGEST {
            return Err(LinkMessageError::Long(bytes.len()));
        }
        let read = serde_json::from_slice(bytes);
        let message = read.map_err(|error| LinkMessageError::Malformed(error.to_string()))?;
        match &message {
            LinkMessage::Open { addresses, .. } | LinkMessage::Opened { addresses, .. }
                if !(1..=MAX_WORKERS).contains(&addresses.len()) =>
            {
                Err(LinkMessageError::Workers(addresses.len()))
            }
            _ => Ok(message),
        }
    }

    /// Returns the bytes.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        // The type has no maps with other keys than texts, so this cannot fail.
        serde_json::to_vec(self).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use portunus_relay::{NodeName, SourceId};

    use super::*;

    #[test]
    fn messages_are_the_same_when_they_were_written_and_read() {
        let keys = Keys::random();
        let addresses = vec![SocketAddr::from(([192, 0, 2, 1], 7_900))];
        for message in [
            LinkMessage::Open {
                session: 7,
                keys: keys.clone(),
                addresses: addresses.clone(),
                region: Some("eu".to_owned()),
            },
            LinkMessage::Opened {
                session: 7,
                addresses,
                region: None,
            },
            LinkMessage::Unknown { session: u64::MAX },
            LinkMessage::Renew {
                session: 7,
                number: 1,
                keys,
            },
            LinkMessage::Relay {
                session: 7,
                about: Message::Ended {
                    source: SourceId(3),
                },
            },
            LinkMessage::Relay {
                session: 7,
                about: Message::Carriers {
                    source: SourceId(3),
                    nodes: vec![NodeName::new("b").unwrap()],
                },
            },
        ] {
            let again = LinkMessage::parse(&message.to_bytes()).unwrap();
            assert_eq!(again, message);
        }
    }

    #[test]
    fn messages_of_later_versions_are_skipped_and_malformed_ones_refused() {
        let later = br#"{"link":"teleport","session":1}"#;
        assert_eq!(LinkMessage::parse(later).unwrap(), LinkMessage::Later);
        let more = br#"{"link":"resume","session":1,"mood":"good"}"#;
        assert!(LinkMessage::parse(more).is_ok());
        let about = br#"{"link":"relay","session":1,"about":{"message":"juggle","balls":3}}"#;
        let about = LinkMessage::parse(about).unwrap();
        assert!(matches!(
            about,
            LinkMessage::Relay {
                about: Message::Later,
                ..
            }
        ));
        let nobody = br#"{"link":"opened","session":1,"addresses":[]}"#;
        assert_eq!(
            LinkMessage::parse(nobody),
            Err(LinkMessageError::Workers(0))
        );
        assert!(LinkMessage::parse(&vec![b' '; LONGEST + 1]).is_err());
        assert!(LinkMessage::parse(b"{}").is_err());
    }
}
