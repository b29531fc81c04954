//! Sources of other nodes: what each node of a cluster wants of the others.
//!
//! A node *offers* its sources: [`Relays::offer`] gives each an id and a description, which the
//! caller makes known to other nodes in its own messages. A node that may need a source
//! *subscribes* to it ([`Relays::subscribe`]): it gets an ingest, a source like any other, and
//! nothing crosses yet. As soon as somebody on that node can see the source, the node asks the
//! other one for it, by its encodings; 5 s after nobody looks, it asks for less.
//!
//! The media goes by the node link of the media plane ([`portunus_media::NodeLink`]). What the two
//! nodes have to tell each other are [`Message`]s: the caller takes them from
//! [`Relays::next_message`], carries them over a connection of its own, in order, and hands them to
//! [`Relays::take_message`] of the other node. [`State`] is all of that without a lock and a clock.
//!
//! A source may come through a third node, a *carrier*: because many nodes want it
//! ([`TreeOptions::fan_out`]), because a node of the same region has it, or because the media link
//! with its own node does not work. It stays the source of its node, with the same ingest.
//!
//! | event | who calls |
//! |---|---|
//! | another node is reachable, with keys that both have agreed on | [`Relays::connect`] |
//! | the connection for messages was lost and is back | [`Relays::resume`] |
//! | the other node is gone, or has started anew | [`Relays::disconnect`] |
//! | a local source is there, or is gone | [`Relays::offer`], [`Relays::withdraw`] |
//! | a source of another node may be needed, or not any more | [`Relays::subscribe`], [`Relays::unsubscribe`] |
//! | this node drains, and carries no more for others | [`Relays::set_draining`] |
//! | something has happened | [`Relays::next_event`] |
#![forbid(unsafe_code)]

mod capacity;
mod carrying;
mod course;
mod description;
mod far_node;
mod far_node_id;
mod health;
mod hold;
mod message;
mod node_name;
mod pending;
mod rebuild;
mod rebuild_timer;
mod receiving;
mod relays;
mod sending;
mod state;
mod tree;
mod ways;

pub use description::{ExtensionId, Offer, SourceDescription, SourceId};
pub use far_node_id::FarNodeId;
pub use message::{Message, Wanted};
pub use node_name::{NodeName, NodeNameError, NodePlace};
pub use relays::{FarNode, Relays, Sources};
pub use state::{Event, FAN_OUT, FarNodeOptions, State, TreeFigures, TreeOptions};
