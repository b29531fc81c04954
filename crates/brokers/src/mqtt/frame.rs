//! What goes to and fro, in the same words for both versions of the protocol.

use bytes::Bytes;
use rumqttc::QoS;

use super::{MqttServer, Presence};
use crate::Reply;

/// A message that is published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outgoing {
    /// Where.
    pub topic: String,
    /// What.
    pub payload: Bytes,
    /// How surely it has to arrive.
    pub qos: QoS,
    /// Whether the broker keeps it for who subscribes later.
    pub retain: bool,
    /// What says which message it answers (MQTT 5).
    pub correlation: Option<Bytes>,
    /// More to be told with it (MQTT 5).
    pub user_properties: Vec<(String, String)>,
}

/// A packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Frame {
    Connect(Box<Connect>),
    Connected(Connected),
    /// The broker does not want us.
    Refused {
        code: u8,
        reason: String,
    },
    Publish(Publish),
    /// A message of quality 1 is received, or of any quality refused.
    Acknowledged {
        id: u16,
        refusal: Option<String>,
    },
    /// A message of quality 2 is received.
    Received(u16),
    /// Its number is free again.
    Released(u16),
    /// That is known.
    Completed(u16),
    Subscribe {
        id: u16,
        filters: Vec<(String, QoS)>,
    },
    Subscribed {
        refused: bool,
    },
    Ping,
    Pong,
    Disconnect,
    /// The broker ends the connection.
    Ended(String),
    /// What no broker sends.
    Unexpected,
}

/// The start of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Connect {
    pub(super) client_id: String,
    pub(super) keep_alive: u16,
    pub(super) clean: bool,
    pub(super) login: Option<(String, String)>,
    pub(super) will: Option<Outgoing>,
}

/// The broker's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Connected {
    /// It knows us from before.
    pub(super) session_present: bool,
    /// Messages that may be under way to it.
    pub(super) receive_maximum: u16,
    /// Bytes of the largest packet that it takes.
    pub(super) max_packet: Option<u32>,
}

/// A message on its way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Publish {
    /// 0 with quality 0.
    pub(super) id: u16,
    /// It may have come before.
    pub(super) is_again: bool,
    pub(super) message: Outgoing,
    /// What its sender wants of an answer.
    pub(super) reply: Reply,
}

impl Connect {
    pub(super) fn new(server: &MqttServer, presence: &Presence) -> Self {
        let login = server.username.clone().map(|username| {
            let password = server.password.clone().unwrap_or_default().into_inner();
            (username, password)
        });
        Connect {
            client_id: server.client_id.clone(),
            keep_alive: u16::try_from(server.keep_alive_interval.as_secs()).unwrap_or(u16::MAX),
            clean: server.cleansession,
            login,
            will: presence.will.clone(),
        }
    }
}
