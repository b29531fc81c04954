//! How two nodes agree on their media link: sans-IO, one for each other node.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use portunus_media::NodeLinkKey;
use portunus_relay::Message;

use crate::link_message::{Keys, LinkMessage};

/// How long a link keeps its keys. A stream must not have 2^31 packets with one key (RFC 3711,
/// 9.2), which takes 24,000 packets a second for a day.
const KEYS_LAST: Duration = Duration::from_secs(86_400);

/// An action that the exchange asks of its driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Action {
    /// Send a message to the other node.
    Send(LinkMessage),
    /// Add the link.
    Connect {
        addresses: Vec<SocketAddr>,
        /// The region of the other node, if it carries sources for others.
        region: Option<String>,
        send: NodeLinkKey,
        receive: NodeLinkKey,
    },
    /// Tell again what is wanted: messages may be missing.
    Resume,
    /// Remove the link.
    Disconnect,
    /// Take packets with a new key.
    SetKey(u32, NodeLinkKey),
    /// Send packets with a new key.
    UseKey(u32, NodeLinkKey),
    /// Take a message about sources.
    Relay(Message),
}

/// The exchange with one other node.
#[derive(Debug)]
pub(crate) struct Exchange {
    /// Whether this node opens the link.
    is_opener: bool,
    ours: Vec<SocketAddr>,
    /// The region of this node.
    region: String,
    session: Option<Session>,
    actions: Vec<Action>,
}

#[derive(Debug)]
struct Session {
    id: u64,
    keys: Keys,
    is_connected: bool,
    /// The number of the last key.
    number: u32,
    /// At the opener: new keys that the other node has not confirmed.
    renewal: Option<Keys>,
    renewed: Instant,
}

impl Exchange {
    /// Returns the exchange with a node to which there is no connection yet.
    pub(crate) fn new(is_opener: bool, ours: Vec<SocketAddr>, region: String) -> Self {
        Exchange {
            is_opener,
            ours,
            region,
            session: None,
            actions: Vec::new(),
        }
    }

    /// Takes what has to be done.
    pub(crate) fn take_actions(&mut self) -> Vec<Action> {
        std::mem::take(&mut self.actions)
    }

    /// Returns the number of the link, if there is one.
    pub(crate) fn session(&self) -> Option<u64> {
        let session = self.session.as_ref().filter(|it| it.is_connected);
        session.map(|session| session.id)
    }

    /// The node is there, after it was not.
    pub(crate) fn node_up(&mut self, now: Instant) {
        self.node_lost();
        if self.is_opener {
            self.open(now);
        }
    }

    /// The connection to the node was replaced.
    pub(crate) fn node_resumed(&mut self, now: Instant) {
        if !self.is_opener {
            return;
        }
        match self.session() {
            Some(session) => {
                self.send(LinkMessage::Resume { session });
                self.send_renewal();
            }
            // Its keys may be in use at the other node.
            None => self.open(now),
        }
    }

    /// The node is gone.
    pub(crate) fn node_lost(&mut self) {
        if self.session.take().is_some_and(|it| it.is_connected) {
            self.actions.push(Action::Disconnect);
        }
    }

    fn open(&mut self, now: Instant) {
        let (session, keys) = (rand::random(), Keys::random());
        self.send(LinkMessage::Open {
            session,
            keys: keys.clone(),
            addresses: self.ours.clone(),
            region: Some(self.region.clone()),
        });
        self.begin(session, keys, now);
    }

    fn begin(&mut self, id: u64, keys: Keys, now: Instant) {
        self.session = Some(Session {
            id,
            keys,
            is_connected: false,
            number: 0,
            renewal: None,
            renewed: now,
        });
    }

    fn send(&mut self, message: LinkMessage) {
        self.actions.push(Action::Send(message));
    }

    fn connect(&mut self, addresses: Vec<SocketAddr>, region: Option<String>) {
        let is_opener = self.is_opener;
        if let Some(session) = &mut self.session {
            session.is_connected = true;
            let Keys {
                from_opener,
                to_opener,
            } = session.keys.clone();
            let (send, receive) = match is_opener {
                true => (from_opener, to_opener),
                false => (to_opener, from_opener),
            };
            self.actions.push(Action::Connect {
                addresses,
                region,
                send,
                receive,
            });
        }
    }

    /// Takes a message of the node.
    pub(crate) fn take(&mut self, message: LinkMessage, now: Instant) {
        match message {
            LinkMessage::Open {
                session,
                keys,
                addresses,
                region,
            } if !self.is_opener => {
                self.node_lost();
                self.begin(session, keys, now);
                self.connect(addresses, region);
                let (addresses, region) = (self.ours.clone(), Some(self.region.clone()));
                self.send(LinkMessage::Opened {
                    session,
                    addresses,
                    region,
                });
            }
            LinkMessage::Opened {
                session,
                addresses,
                region,
            } if self.is_opener => {
                let opens = |it: &Session| it.id == session && !it.is_connected;
                if self.session.as_ref().is_some_and(opens) {
                    self.connect(addresses, region);
                }
            }
            LinkMessage::Resume { session } if !self.is_opener => {
                if self.session() == Some(session) {
                    self.actions.push(Action::Resume);
                    self.send(LinkMessage::Resumed { session });
                } else {
                    self.node_lost();
                    self.send(LinkMessage::Unknown { session });
                }
            }
            LinkMessage::Resumed { session }
                if self.is_opener && self.session() == Some(session) =>
            {
                self.actions.push(Action::Resume);
            }
            LinkMessage::Unknown { session }
                if self.is_opener && self.session.as_ref().is_some_and(|it| it.id == session) =>
            {
                self.node_up(now);
            }
            LinkMessage::Renew {
                session,
                number,
                keys,
            } if !self.is_opener => self.take_renewal(session, number, keys),
            LinkMessage::Renewed { session, number } if self.is_opener => {
                self.renewed(session, number);
            }
            LinkMessage::Relay { session, about } if self.session() == Some(session) => {
                self.actions.push(Action::Relay(about));
            }
            // Of a later version, of a session that is over, or of a node that takes the wrong part.
            _ => {}
        }
    }

    /// Replaces keys that are old.
    pub(crate) fn tick(&mut self, now: Instant) {
        let Some(session) = &mut self.session else {
            return;
        };
        let is_old = now.saturating_duration_since(session.renewed) >= KEYS_LAST;
        if !self.is_opener || !session.is_connected || session.renewal.is_some() || !is_old {
            return;
        }
        session.renewed = now;
        session.number = session.number.saturating_add(1);
        let keys = Keys::random();
        let set = Action::SetKey(session.number, keys.to_opener.clone());
        session.renewal = Some(keys);
        self.actions.push(set);
        self.send_renewal();
    }

    fn send_renewal(&mut self) {
        let renewal = self.session.as_ref().and_then(|session| {
            Some(LinkMessage::Renew {
                session: session.id,
                number: session.number,
                keys: session.renewal.clone()?,
            })
        });
        self.actions.extend(renewal.map(Action::Send));
    }

    fn take_renewal(&mut self, id: u64, number: u32, keys: Keys) {
        let Some(session) = &mut self.session else {
            return;
        };
        if session.id != id {
            return;
        }
        if number == session.number.saturating_add(1) {
            session.number = number;
            self.actions.push(Action::SetKey(number, keys.from_opener));
            // The opener takes packets with it already.
            self.actions.push(Action::UseKey(number, keys.to_opener));
        }
        self.send(LinkMessage::Renewed {
            session: id,
            number,
        });
    }

    fn renewed(&mut self, id: u64, number: u32) {
        let session = self.session.as_mut();
        let session = session.filter(|it| it.id == id && it.number == number);
        if let Some(keys) = session.and_then(|it| it.renewal.take()) {
            self.actions.push(Action::UseKey(number, keys.from_opener));
        }
    }
}

#[cfg(test)]
mod tests;
