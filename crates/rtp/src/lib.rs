//! RTP, RTCP, header extensions and codec payload descriptors: borrowed views and writers.
#![forbid(unsafe_code)]

pub mod extension;
mod id;

pub use extension::{ExtensionKind, ExtensionMap};
pub use id::{Mid, Pt, Rid, SeqNo, Ssrc};
