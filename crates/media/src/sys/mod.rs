//! The system calls of the media plane: UDP in batches, with segmentation done by the kernel.
//!
//! This is the only module of the crate that holds `unsafe`. Everything that leaves it is safe: buffers
//! are owned here, addresses are checked here, and what the kernel refuses (UDP_GRO, UDP_SEGMENT) is
//! switched off here for good and logged once.
#![allow(unsafe_code)]

mod address;
mod control;
mod pin;
mod receive;
mod send;
mod socket;
#[cfg(test)]
mod tests;

pub(crate) use pin::pin_to_core;
pub(crate) use receive::ReceiveBatch;
#[cfg(feature = "testing")]
pub(crate) use send::{ARENA_BYTES, Diverted};
pub(crate) use send::{Destination, SendBatch, SendCounters};
pub(crate) use socket::{MediaSocket, enable_gro};
