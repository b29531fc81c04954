//! The frames, for both versions of the protocol.

use bytes::Bytes;
use rumqttc::QoS;

use super::{MqttServer, Presence};
use crate::Reply;

/// A message that is published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outgoing {
    /// The topic.
    pub topic: String,
    /// The content.
    pub payload: Bytes,
    /// The quality of service.
    pub qos: QoS,
    /// Whether the broker keeps it for who subscribes later.
    pub retain: bool,
    /// The data that identifies the message that it answers (MQTT 5).
    pub correlation: Option<Bytes>,
    /// Further properties (MQTT 5).
    pub user_properties: Vec<(String, String)>,
}

/// A packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Frame {
    Connect(Box<Connect>),
    Connected(Connected),
    /// The broker refused the connection.
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
    /// The receipt of a message is confirmed.
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
    /// A packet that no broker sends.
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
    /// Whether the broker has our former session.
    pub(super) session_present: bool,
    /// The limit of messages without a confirmation.
    pub(super) receive_maximum: u16,
    /// The limit of bytes of a packet.
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
    /// The answer that its sender wants.
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
