//! UDP in batches: sendmmsg with UDP_SEGMENT, recvmmsg with UDP_GRO.
//!
//! The only module of the crate that holds `unsafe`. The `nix` crate, which the rest uses, gives all
//! messages of a sendmmsg call the same control messages, and so the same segment size; frames whose
//! packets differ in size need one each.
#![allow(unsafe_code)]

mod address;
mod control;
mod priority;
mod receive;
mod send;
#[cfg(test)]
mod tests;

pub use priority::run_first;
pub use receive::{ReceiveBatch, Received};
pub use send::{Flushed, SendBatch};
