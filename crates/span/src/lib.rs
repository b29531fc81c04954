//! What spans the nodes of a cluster.
//!
//! The cluster ([`portunus_cluster`]) finds nodes and homes, and carries messages. The relays
//! ([`portunus_relay`]) carry media. [`Span`] joins them: it agrees on the keys of the media link
//! with each other node, and hands each *kind* of thing ([`Port`]) what the other nodes tell about
//! its things.
//!
//! A kind is one sort of thing that is the same on all nodes: video rooms ([`rooms`]),
//! mountpoints. For each of its things a kind
//!
//! 1. opens the key ([`Port::open`]), as long as the thing is used on this node;
//! 2. sets items ([`Port::set`]), with the [offers](Port::offer) of the sources that it has;
//! 3. gets the items of the other nodes ([`PortEvent::Item`]), and takes the sources that they
//!    offer ([`Port::sources`]). Nothing crosses before somebody looks;
//! 4. learns what other nodes want of its own sources ([`PortEvent::Wanted`]).
#![forbid(unsafe_code)]

mod driver;
mod envelope;
mod exchange;
mod figures;
mod fragments;
mod link_message;
mod message_pace;
mod options;
mod port;
pub mod rooms;
mod sources;
mod span;
#[cfg(feature = "testing")]
pub mod testing;

pub use figures::LinkFigures;
pub use message_pace::MessagePace;
pub use options::SpanOptions;
pub use port::{Port, PortError, PortEvent};
pub use span::Span;
