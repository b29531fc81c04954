//! The messages of a room: notices to its clients, and events to the observers of the server.

use portunus_media::LayerReason;
use portunus_rtp::Mid;

use crate::{ConnectionId, LayerKind, Participant, PersonId, Profile, Talk};

/// A message to clients of a room.
#[derive(Debug)]
pub enum Notice<'a> {
    /// A participant has joined and publishes nothing yet.
    Joining(&'a PersonId),
    /// Participants publish, or have changed what they publish. The media of all of them is up.
    Published(&'a [&'a PersonId]),
    /// A participant has stopped publishing.
    Unpublished(&'a PersonId),
    /// A participant has left.
    Left(&'a Participant),
    /// A participant is gone whose join failed halfway.
    JoinUndone(&'a PersonId),
    /// A participant was kicked.
    Kicked(&'a Participant),
    /// To the kicked client itself.
    ThrownOut,
    /// The room has ended.
    Destroyed,
    /// A participant has another name or other metadata.
    Renamed {
        /// The participant.
        id: &'a PersonId,
        /// The parts to tell; the others are `None`.
        profile: &'a Profile,
    },
    /// A participant has started or stopped talking.
    Talk(&'a Talk),
    /// Another participant is the dominant speaker.
    Dominant(&'a PersonId),
    /// A moderator has muted or unmuted a stream.
    Moderated {
        /// The publisher.
        id: &'a PersonId,
        /// The m-line.
        mid: &'a str,
        /// Whether it is muted.
        mute: bool,
    },
    /// To a subscriber with seats: the m-lines with these indices have other publishers now.
    Seats(ConnectionId, &'a [usize]),
    /// To a subscriber: an m-line receives another layer.
    Layer {
        /// The m-line of the subscription.
        mid: Mid,
        /// The kind of layer.
        kind: LayerKind,
        /// Its number; 0 is the lowest.
        layer: u8,
        /// The reason for the change.
        reason: LayerReason,
    },
    /// To a subscriber: a new offer, which comes with the notice.
    Offered(ConnectionId),
}

/// A message to the observers of the server.
#[derive(Debug)]
pub enum Event<'a> {
    /// A participant's media is up.
    Published(&'a PersonId),
    /// A participant has changed what it publishes.
    Updated(&'a PersonId),
    /// A participant has stopped publishing.
    Unpublished(&'a Participant),
    /// A participant has left.
    Left(&'a Participant),
    /// A participant was kicked.
    Kicked(&'a Participant),
    /// A participant has started or stopped talking.
    Talk(&'a Talk),
    /// A client has subscribed.
    Subscribing(ConnectionId),
    /// A subscription has got a new offer.
    Resubscribed(ConnectionId),
    /// A client does not receive a stream any more.
    Unsubscribed {
        /// The publisher.
        feed: &'a PersonId,
        /// The publisher's m-line.
        mid: Mid,
    },
}
