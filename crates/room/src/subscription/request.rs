//! Requests of subscribers.

use portunus_rtp::Mid;
use portunus_sdp::Kind;
use serde::Deserialize;

use super::layers::LayerRequest;
use crate::PersonId;

/// A change of the streams that a subscription receives.
#[derive(Debug, Clone, Default)]
pub struct Change {
    /// The streams to add.
    pub subscribe: Vec<Subscribe>,
    /// The streams to remove.
    pub unsubscribe: Vec<Unsubscribe>,
}

/// A request for a stream, or for all streams of a publisher.
#[derive(Debug, Clone, Deserialize)]
pub struct Subscribe {
    /// The publisher.
    pub feed: PersonId,
    /// The publisher's m-line. `None` means all of them.
    pub mid: Option<String>,
    /// The client's name for it.
    pub crossrefid: Option<String>,
    /// Whether its media is relayed.
    #[serde(default = "yes")]
    pub send: bool,
    /// The requested layers.
    pub layers: LayerRequest,
}

/// A stream, all streams of a publisher, or an m-line of the subscription, to be removed.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Unsubscribe {
    /// The publisher.
    pub feed: Option<PersonId>,
    /// The publisher's m-line. `None` means all of them.
    pub mid: Option<String>,
    /// The m-line of the subscription. The publisher is ignored if this is set.
    pub sub_mid: Option<String>,
}

impl Unsubscribe {
    /// Returns whether it names a stream by its publisher.
    pub(super) fn names(&self, feed: &PersonId, mid: Mid) -> bool {
        let is_mid = |own: &String| own == mid.as_str();
        self.feed_only() == Some(feed) && self.mid.as_ref().is_none_or(is_mid)
    }

    /// Returns the publisher, if the request does not name an m-line of the subscription.
    pub(super) fn feed_only(&self) -> Option<&PersonId> {
        self.feed.as_ref().filter(|_| self.sub_mid.is_none())
    }
}

/// Settings of one m-line of a subscription, or of all.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct LineSetting {
    /// The m-line. `None` means all of them.
    pub mid: Option<String>,
    /// Whether its media is relayed.
    pub send: Option<bool>,
    /// The requested layers.
    pub layers: LayerRequest,
}

/// Settings of a subscription. `None` leaves a setting as it is.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct SubscriberConfigure {
    /// The settings of single m-lines. serde does not read them with the rest.
    #[serde(skip)]
    pub lines: Vec<LineSetting>,
    /// Whether audio is relayed.
    pub audio: Option<bool>,
    /// Whether video is relayed.
    pub video: Option<bool>,
    /// Whether data is relayed.
    pub data: Option<bool>,
    /// Whether a new offer restarts ICE.
    pub restart: bool,
    /// Whether the client wants a new offer.
    pub update: bool,
    /// The number of speakers to follow.
    pub last_n: Option<usize>,
}

impl SubscriberConfigure {
    /// Returns whether it asks for an offer.
    pub(crate) const fn offers(&self) -> bool {
        self.restart || self.update
    }

    /// Returns its setting for m-lines of `kind`.
    pub(super) const fn sends(&self, kind: Kind) -> Option<bool> {
        match kind {
            Kind::Audio => self.audio,
            Kind::Video => self.video,
            Kind::Data => self.data,
        }
    }
}

pub(super) const fn yes() -> bool {
    true
}
