//! Outlets: where packets of a source end that are not for a peer.
//!
//! A **forwarder** sends them to a UDP port ([`crate::MediaPlane::forward`]), a **tap** hands them to the control
//! plane ([`crate::MediaPlane::tap`]), and a **collector** to a thread that looks by its own clock
//! ([`crate::MediaPlane::collect`]). A plugin gates and ends an outlet like any route, by its [`crate::RouteId`].
//! An outlet lives on the worker of its source, and ends with it.

mod collect;
mod cut;
mod forward;
mod plane;
mod tap;

pub(crate) use collect::CollectInput;
pub use collect::{Collected, Collector};
pub use cut::Encodings;
pub(crate) use cut::{Cut, Taken, write_packet};
pub(crate) use forward::Forwarder;
pub use forward::{ForwardOptions, ForwardRtcp, Framing};
pub(crate) use tap::{Handed, TapInput, channel};
pub use tap::{Tap, TapOptions, TapRoom, Tapped, TappedMessage, TappedPacket, TappedReport};

/// What an outlet does with what it takes.
#[derive(Debug)]
pub(crate) enum OutletEnd {
    /// Hands it to the control plane.
    Tap(TapInput),
    /// Hands it to a thread that looks by its own clock.
    Collect(CollectInput),
    /// Sends it to a UDP port.
    Forward(Box<Forwarder>),
}

/// An outlet to be.
#[derive(Debug)]
pub(crate) struct NewOutlet {
    pub(crate) id: crate::RouteId,
    pub(crate) from: crate::SourceRef,
    pub(crate) options: crate::RouteOptions,
    pub(crate) encodings: Encodings,
    pub(crate) end: OutletEnd,
}
