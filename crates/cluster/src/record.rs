//! The values on the bus, as JSON.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::id::{Epoch, NodeId};
use crate::wire::VersionRange;

/// The longest value in bytes.
const LONGEST: usize = 8_192;

/// The most media workers of a node of a cluster. Each has an address for links.
pub const MAX_WORKERS: usize = 64;

/// The most addresses of one kind in a record.
const ADDRESSES: usize = 16;

/// What a node says of itself, every 3 s.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NodeRecord {
    /// Its run.
    pub epoch: Epoch,
    /// Whether it takes new clients.
    #[serde(default)]
    pub state: NodeState,
    /// The versions of the control protocol that it speaks.
    pub versions: VersionRange,
    /// The addresses of its control port (TCP). At least one.
    pub control: Vec<SocketAddr>,
    /// The addresses of its media links (UDP), one for each worker. Empty means that it relays no
    /// media.
    #[serde(default)]
    pub relay: Vec<SocketAddr>,
    /// The SHA-256 of its certificate, in hexadecimal.
    #[serde(default)]
    pub fingerprint: String,
    /// Where it is. Nodes of one region are preferred.
    #[serde(default)]
    pub region: String,
    /// The URL of its HTTP server for clients, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The URL of its WebSocket server for clients, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub websocket_url: Option<String>,
    /// The URL of its server for LiveKit's clients, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub livekit_url: Option<String>,
    /// Its load.
    #[serde(default)]
    pub load: Load,
}

/// Whether a node takes new clients and homes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NodeState {
    /// It does.
    #[default]
    Serving,
    /// It is being drained.
    Draining,
    /// A later version's state, which counts as draining.
    #[serde(other)]
    Other,
}

/// The load of a node.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Load {
    /// The share of a core that the busiest media worker uses, 0 to 1.
    pub worker: f32,
    /// The rate of all that it sends, in Mbit/s.
    pub mbps_out: f32,
    /// The longest delay of a turn of its workers in the last seconds, in ms.
    pub lateness_ms: f32,
}

/// Where something is at home.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HomeRecord {
    /// The home.
    pub node: NodeId,
    /// The run of the home.
    pub epoch: Epoch,
    /// When it was written, in seconds since 1970 by the writer's clock. For people only.
    #[serde(default)]
    pub since: u64,
}

/// A value on the bus cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// It is longer than 4 KiB.
    #[error("a value of {0} bytes, and 4,096 are allowed")]
    Long(usize),
    /// It is not the expected JSON.
    #[error("{0}")]
    Malformed(String),
}

impl NodeRecord {
    /// Reads a value. Unknown members are skipped.
    pub fn parse(value: &[u8]) -> Result<Self, RecordError> {
        let record: Self = parse(value)?;
        if !(1..=ADDRESSES).contains(&record.control.len()) || record.relay.len() > MAX_WORKERS {
            return Err(RecordError::Malformed(
                "a wrong number of addresses".to_owned(),
            ));
        }
        Ok(record)
    }

    /// Returns the value.
    pub fn to_value(&self) -> Vec<u8> {
        // The type has no maps with other keys than texts, so this cannot fail.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Returns whether it takes new homes.
    pub fn is_serving(&self) -> bool {
        self.state == NodeState::Serving
    }
}

impl HomeRecord {
    /// Reads a value. Unknown members are skipped.
    pub fn parse(value: &[u8]) -> Result<Self, RecordError> {
        parse(value)
    }

    /// Returns the value.
    pub fn to_value(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Returns whether this run of this node is the home.
    pub fn is(&self, node: &NodeId, epoch: Epoch) -> bool {
        self.node == *node && self.epoch == epoch
    }
}

fn parse<'de, T: Deserialize<'de>>(value: &'de [u8]) -> Result<T, RecordError> {
    if value.len() > LONGEST {
        return Err(RecordError::Long(value.len()));
    }
    serde_json::from_slice(value).map_err(|error| RecordError::Malformed(error.to_string()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;

    #[test]
    fn records_of_later_versions_can_be_read() {
        let text = br#"{"epoch":7,"state":"resting","versions":{"min":1,"max":9},
            "control":["192.0.2.1:7000"],"moon":{"phase":"full"},"load":{"gpu":1}}"#;
        let record = NodeRecord::parse(text).unwrap();
        assert_eq!(record.state, NodeState::Other);
        assert!(!record.is_serving());
        assert_eq!(
            NodeRecord::parse(&record.to_value()).unwrap().epoch,
            Epoch(7)
        );
    }

    #[test]
    fn malformed_records_are_refused() {
        let versions = r#""epoch":7,"versions":{"min":1,"max":1}"#;
        for wrong in [
            "".to_owned(),
            "{}".to_owned(),
            format!("{{{versions},\"control\":[]}}"),
            format!("{{{versions},\"control\":[\"nowhere\"]}}"),
            format!(
                "{{{versions},\"control\":[\"1.2.3.4:5\"],\"region\":\"{}\"}}",
                "x".repeat(LONGEST)
            ),
        ] {
            assert!(NodeRecord::parse(wrong.as_bytes()).is_err(), "{wrong:?}");
        }
        assert!(HomeRecord::parse(br#"{"node":"A b","epoch":1}"#).is_err());
        let home = HomeRecord::parse(br#"{"node":"a","epoch":1}"#).unwrap();
        assert!(home.is(&NodeId::new("a").unwrap(), Epoch(1)));
    }
}
