//! The media graph: sources, routes and sinks, as plain state without sockets or clocks.

mod history;
mod numbering;
mod packet;
mod selector;
mod sink;
mod source;

pub(crate) use history::History;
pub(crate) use numbering::{Numbering, Sent};
pub(crate) use packet::{Packet, Vp8Ids};
pub(crate) use selector::{Selection, Selector};
pub(crate) use sink::{Sink, Stamp};
pub(crate) use source::{KeyframeRequests, Source, SourceKey};
