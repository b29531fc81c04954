//! RTP, RTCP, header extensions, codec payload descriptors, packetisers and depacketisers: borrowed
//! views and writers.
#![forbid(unsafe_code)]

pub mod codec;
pub mod depacketize;
mod error;
pub mod extension;
pub mod header;
mod id;
pub mod packetize;
pub mod red;
pub mod rtcp;
pub mod telephone_event;

pub use error::RtpError;
pub use extension::{ExtensionKind, ExtensionMap, ExtensionSet};
pub use header::{Fields, Header, write_header};
pub use id::{Mid, Pt, Rid, SeqNo, Ssrc};
