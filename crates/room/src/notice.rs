//! What a room tells: those who are in it, and those who watch the server.

use portunus_media::LayerReason;
use portunus_rtp::Mid;

use crate::{ConnectionId, LayerKind, Participant, PersonId, Profile};

/// What those who are in a room are told.
#[derive(Debug)]
pub enum Notice<'a> {
    /// Somebody has joined, who publishes nothing yet.
    Joining(&'a PersonId),
    /// They publish, or publish something else by now. Each of them has media that is up.
    Published(&'a [&'a PersonId]),
    /// Somebody does not publish any more.
    Unpublished(&'a PersonId),
    /// Somebody has left.
    Left(&'a Participant),
    /// Somebody whose joining failed halfway is gone again.
    JoinUndone(&'a PersonId),
    /// Somebody was thrown out.
    Kicked(&'a Participant),
    /// To whom it happened: the client was thrown out.
    ThrownOut,
    /// The room has ended.
    Destroyed,
    /// What somebody shows of themselves has changed: the parts of `profile` that there are.
    Renamed {
        /// Who.
        id: &'a PersonId,
        /// What is to be told.
        profile: &'a Profile,
    },
    /// Somebody has begun or ceased to talk.
    Talk(&'a Talk),
    /// Somebody has the floor.
    Dominant(&'a PersonId),
    /// A moderator has closed or opened a stream.
    Moderated {
        /// The publisher.
        id: &'a PersonId,
        /// The m-line.
        mid: &'a str,
        /// Whether it is closed.
        mute: bool,
    },
    /// To a subscriber who follows the speakers: these m-lines, by their places, receive others by now.
    Seats(ConnectionId, &'a [usize]),
    /// To a subscriber: an m-line receives another layer.
    Layer {
        /// The m-line of the subscription.
        mid: Mid,
        /// Which kind of layer.
        kind: LayerKind,
        /// Its number; 0 is the lowest.
        layer: u8,
        /// Why.
        reason: LayerReason,
    },
    /// To a subscriber: the m-lines are offered anew. The offer comes with it.
    Offered(ConnectionId),
}

/// What those who watch the server are told.
#[derive(Debug)]
pub enum Event<'a> {
    /// Somebody's media is up.
    Published(&'a PersonId),
    /// Somebody publishes something else by now.
    Updated(&'a PersonId),
    /// Somebody does not publish any more.
    Unpublished(&'a Participant),
    /// Somebody has left.
    Left(&'a Participant),
    /// Somebody was thrown out.
    Kicked(&'a Participant),
    /// Somebody has begun or ceased to talk.
    Talk(&'a Talk),
    /// A client subscribes.
    Subscribing(ConnectionId),
    /// A subscription was offered anew.
    Resubscribed(ConnectionId),
    /// A client receives a stream no more.
    Unsubscribed {
        /// The publisher.
        feed: &'a PersonId,
        /// The publisher's m-line.
        mid: Mid,
    },
}

/// Somebody has begun or ceased to talk.
#[derive(Debug, Clone, PartialEq)]
pub struct Talk {
    /// Who.
    pub id: PersonId,
    /// The m-line.
    pub mid: Mid,
    /// The place of the m-line.
    pub index: usize,
    /// Which of the two.
    pub talking: bool,
    /// How loud it was on average, in -dBov: 0 is the loudest, 127 silence.
    pub level: f64,
}
