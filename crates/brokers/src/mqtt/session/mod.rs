//! The messages under way to and from the broker. They survive a connection. The session has no
//! socket and no clock.

use std::collections::{HashSet, VecDeque};

use rumqttc::{QoS, matches};

use super::frame::{Connected, Frame, Outgoing, Publish};
use super::{Presence, Topic};
use crate::Incoming;
use crate::reports::Tag;

/// The limit of broken connections for a message under way. The message may be the reason that they
/// break.
const TRIES: u8 = 5;

/// Bytes that a packet has beside its topic and payload, at most, as far as sizes are checked.
const OVERHEAD: usize = 1_024;

/// The session.
#[derive(Debug)]
pub(super) struct Session {
    topics: Vec<Topic>,
    presence: Presence,
    max_inflight: usize,
    /// The broker's limit of these.
    allowed: usize,
    max_packet: usize,
    /// In the order in which they were published.
    inflight: VecDeque<InFlight>,
    last_id: u16,
    /// The ids of received messages of QoS 2 that are not free yet.
    received: HashSet<u16>,
    /// A ping has no answer yet.
    pinged: bool,
    /// The frames to send.
    frames: VecDeque<Frame>,
    /// The number of messages that the broker confirmed since the last look.
    published: usize,
    /// Messages that are lost, and why.
    lost: Vec<String>,
}

/// A message that the broker has not confirmed.
#[derive(Debug)]
struct InFlight {
    id: u16,
    message: Outgoing,
    /// Whether the broker has confirmed the first half of QoS 2. The second half frees the id.
    is_received: bool,
    tries: u8,
}

/// The reason why a connection cannot continue.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum SessionError {
    #[error("the broker does not answer a ping")]
    Silent,
    #[error("the broker refuses a subscription")]
    NotSubscribed,
    #[error("{0}")]
    Ended(String),
    #[error("the broker sends what is none of its packets")]
    Unexpected,
}

impl Session {
    pub(super) fn new(topics: Vec<Topic>, presence: Presence, max_inflight: u16) -> Self {
        Session {
            topics,
            presence,
            max_inflight: max_inflight.into(),
            allowed: max_inflight.into(),
            max_packet: super::codec::MAX_PACKET,
            inflight: VecDeque::new(),
            last_id: 0,
            received: HashSet::new(),
            pinged: false,
            frames: VecDeque::new(),
            published: 0,
            lost: Vec::new(),
        }
    }

    /// Starts with a new connection: subscribes, and repeats unconfirmed messages.
    pub(super) fn begin(&mut self, connected: &Connected) {
        self.frames.clear();
        self.pinged = false;
        self.allowed = self.max_inflight.min(connected.receive_maximum.into());
        let max = connected
            .max_packet
            .and_then(|max| usize::try_from(max).ok());
        self.max_packet = max.unwrap_or(super::codec::MAX_PACKET);
        if !connected.session_present {
            self.received.clear();
        }
        if !self.topics.is_empty() {
            let id = self.new_id();
            let filters = self.topics.iter();
            let filters = filters
                .map(|topic| (topic.filter.clone(), topic.qos))
                .collect();
            self.frames.push_back(Frame::Subscribe { id, filters });
        }
        for mut under_way in std::mem::take(&mut self.inflight) {
            under_way.tries = under_way.tries.saturating_add(1);
            if under_way.tries >= TRIES {
                let reason = "the connection broke each time that it was sent";
                self.lost.push(reason.to_owned());
            } else if under_way.is_received && !connected.session_present {
                // The broker has forgotten the id, so it has the message.
                self.published = self.published.saturating_add(1);
            } else {
                self.frames.push_back(match under_way.is_received {
                    true => Frame::Released(under_way.id),
                    false => Frame::Publish(Publish {
                        id: under_way.id,
                        is_again: connected.session_present,
                        message: under_way.message.clone(),
                        reply: crate::Reply::default(),
                    }),
                });
                self.inflight.push_back(under_way);
            }
        }
        if let Some(first) = self.presence.on_connect.clone() {
            self.publish(first);
        }
    }

    /// Returns whether another message may be published.
    pub(super) fn has_room(&self) -> bool {
        self.inflight.len() < self.allowed
    }

    /// Returns whether nothing is under way.
    pub(super) fn is_idle(&self) -> bool {
        self.inflight.is_empty()
    }

    /// Publishes a message.
    pub(super) fn publish(&mut self, message: Outgoing) {
        let size = message.topic.len().saturating_add(message.payload.len());
        if size.saturating_add(OVERHEAD) > self.max_packet {
            let reason = format!("a message of {size} bytes is too long for the broker");
            self.lost.push(reason);
            return;
        }
        let id = match message.qos {
            QoS::AtMostOnce => {
                self.published = self.published.saturating_add(1);
                0
            }
            QoS::AtLeastOnce | QoS::ExactlyOnce => {
                let id = self.new_id();
                self.inflight.push_back(InFlight {
                    id,
                    message: message.clone(),
                    is_received: false,
                    tries: 0,
                });
                id
            }
        };
        self.frames.push_back(Frame::Publish(Publish {
            id,
            is_again: false,
            message,
            reply: crate::Reply::default(),
        }));
    }

    /// Asks whether the broker is there.
    pub(super) fn ping(&mut self) -> Result<(), SessionError> {
        if std::mem::replace(&mut self.pinged, true) {
            return Err(SessionError::Silent);
        }
        self.frames.push_back(Frame::Ping);
        Ok(())
    }

    /// Sends the last message.
    pub(super) fn end(&mut self) {
        if let Some(message) = self.presence.on_disconnect.take() {
            self.publish(message);
        }
        self.frames.push_back(Frame::Disconnect);
    }

    /// Handles a frame. Returns its message, if it has one. With a tag, the receipt has to be
    /// confirmed.
    pub(super) fn take(
        &mut self,
        frame: Frame,
    ) -> Result<Option<(Incoming, Option<Tag>)>, SessionError> {
        match frame {
            Frame::Publish(publish) => return Ok(self.arrived(publish)),
            Frame::Acknowledged { id, refusal } => {
                if self.forget(id) {
                    match refusal {
                        Some(reason) => self.lost.push(format!("the broker refuses: {reason}")),
                        None => self.published = self.published.saturating_add(1),
                    }
                }
            }
            Frame::Received(id) => {
                let known = self.inflight.iter_mut().find(|known| known.id == id);
                if let Some(known) = known {
                    known.is_received = true;
                }
                self.frames.push_back(Frame::Released(id));
            }
            Frame::Completed(id) => {
                if self.forget(id) {
                    self.published = self.published.saturating_add(1);
                }
            }
            Frame::Released(id) => {
                self.received.remove(&id);
                self.frames.push_back(Frame::Completed(id));
            }
            Frame::Subscribed { refused: true } => return Err(SessionError::NotSubscribed),
            Frame::Subscribed { refused: false } => {}
            Frame::Pong => self.pinged = false,
            Frame::Ended(reason) | Frame::Refused { reason, .. } => {
                return Err(SessionError::Ended(reason));
            }
            Frame::Connect(_)
            | Frame::Connected(_)
            | Frame::Subscribe { .. }
            | Frame::Ping
            | Frame::Disconnect
            | Frame::Unexpected => return Err(SessionError::Unexpected),
        }
        Ok(None)
    }

    /// Confirms the receipt of the message with this tag.
    pub(super) fn confirm(&mut self, tag: Tag) {
        let Ok(id) = u16::try_from(tag) else {
            return;
        };
        self.frames.push_back(match self.received.contains(&id) {
            true => Frame::Received(id),
            false => Frame::Acknowledged { id, refusal: None },
        });
    }

    fn arrived(&mut self, publish: Publish) -> Option<(Incoming, Option<Tag>)> {
        let Publish {
            id, message, reply, ..
        } = publish;
        let tag = (message.qos != QoS::AtMostOnce).then_some(Tag::from(id));
        if message.qos == QoS::ExactlyOnce && !self.received.insert(id) {
            self.frames.push_back(Frame::Received(id));
            return None;
        }
        let mut topics = self.topics.iter();
        let subscription = topics.position(|topic| matches(&message.topic, &topic.filter));
        // A retained message comes again with each connection, and would repeat its request. A
        // message without a topic of ours belongs to an earlier configuration.
        let Some(subscription) = subscription.filter(|_| !message.retain) else {
            if let Some(tag) = tag {
                self.confirm(tag);
            }
            return None;
        };
        let incoming = Incoming {
            subscription,
            payload: message.payload,
            reply,
        };
        Some((incoming, tag))
    }

    /// Returns the next frame to send.
    pub(super) fn next_frame(&mut self) -> Option<Frame> {
        self.frames.pop_front()
    }

    /// Takes the number of messages that the broker confirmed since the last call.
    pub(super) fn take_published(&mut self) -> usize {
        std::mem::take(&mut self.published)
    }

    /// Returns the reasons for which messages were lost since the last call, one for each message.
    pub(super) fn take_lost(&mut self) -> Vec<String> {
        std::mem::take(&mut self.lost)
    }

    /// Returns the number of messages that are not confirmed.
    pub(super) fn under_way(&self) -> usize {
        self.inflight.len()
    }

    fn forget(&mut self, id: u16) -> bool {
        let place = self.inflight.iter().position(|known| known.id == id);
        place
            .and_then(|place| self.inflight.remove(place))
            .is_some()
    }

    /// Returns a free id.
    fn new_id(&mut self) -> u16 {
        loop {
            self.last_id = self.last_id.checked_add(1).unwrap_or(1);
            if self.inflight.iter().all(|known| known.id != self.last_id) {
                return self.last_id;
            }
        }
    }
}

#[cfg(test)]
mod tests;
