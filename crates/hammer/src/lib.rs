//! A load generator and measuring tool for WebRTC servers that speak the Janus API or WHIP and WHEP.
//!
//! What was measured is kept as a [`record::RunRecord`] for each server and round; a [`record::Report`]
//! holds those of one call, and is what is written as JSON and read by everything that shows figures.
#![forbid(unsafe_code)]

pub mod ceiling;
pub mod cli;
pub mod client;
pub mod doubts;
mod farend;
pub mod figures;
pub mod lab;
mod listening;
pub mod machine;
pub mod progress;
pub mod record;
mod report;
pub mod scenario;
pub mod source;
mod speech;
pub mod traffic;
pub mod viewer;
