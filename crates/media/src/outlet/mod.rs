//! Outlets: destinations of a source's packets other than peers.
//!
//! A **forwarder** sends packets to a UDP port ([`crate::MediaPlane::forward`]), a **tap** passes
//! them to the control plane ([`crate::MediaPlane::tap`]), and a **collector** to a thread that
//! polls ([`crate::MediaPlane::collect`]); another node gets them by a link
//! ([`crate::MediaPlane::relay`]). Plugins gate and end an outlet like a route, by its
//! [`crate::RouteId`]. An outlet lives on the worker of its source, and ends with it.

mod collector;
mod cut;
mod forwarder;
mod link;
mod tap;

pub(crate) use collector::CollectInput;
pub use collector::{Collected, Collector};
pub use cut::Encodings;
pub(crate) use cut::{Content, Cut, Taken, write_head, write_packet};
pub(crate) use forwarder::Forwarder;
pub use forwarder::{ForwardOptions, ForwardRtcp, Framing};
pub(crate) use link::{LinkOutlet, LinkWay};
pub(crate) use tap::{Handed, TapInput, channel};
pub use tap::{Tap, TapOptions, TapRoom, Tapped, TappedMessage, TappedPacket, TappedReport};

/// What an outlet does with packets.
#[derive(Debug)]
pub(crate) enum OutletEnd {
    /// Passes them to the control plane.
    Tap(TapInput),
    /// Passes them to a thread that polls.
    Collect(CollectInput),
    /// Sends them to a UDP port.
    Forward(Box<Forwarder>),
    /// Sends them to another node.
    Link(Box<LinkOutlet>),
}

/// A new outlet.
#[derive(Debug)]
pub(crate) struct NewOutlet {
    pub(crate) id: crate::RouteId,
    pub(crate) from: crate::SourceRef,
    pub(crate) options: crate::RouteOptions,
    pub(crate) encodings: Encodings,
    pub(crate) end: OutletEnd,
}
