//! RTP, RTCP, header extensions, codec payload descriptors and packetisers: borrowed views and writers.
#![forbid(unsafe_code)]

pub mod codec;
mod error;
pub mod extension;
pub mod header;
mod id;
pub mod packetize;
pub mod rtcp;

pub use error::RtpError;
pub use extension::{ExtensionKind, ExtensionMap, ExtensionSet};
pub use header::{Fields, Header, write_header};
pub use id::{Mid, Pt, Rid, SeqNo, Ssrc};
