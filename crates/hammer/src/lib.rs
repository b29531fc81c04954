//! A load generator and measuring tool for WebRTC servers with the Janus API, or with WHIP and
//! WHEP.
//!
//! The measurements of each server and round are a [`record::RunRecord`]. A [`record::Report`]
//! contains those of one call. It is written as JSON, and read by everything that shows figures.
#![forbid(unsafe_code)]

mod browsers;
mod catalogue;
pub mod ceiling;
pub mod cli;
pub mod client;
pub mod cluster;
pub mod doubts;
mod farend;
pub mod figures;
pub mod lab;
pub mod machine;
pub mod progress;
pub mod record;
mod report;
pub mod scenario;
mod sound_check;
pub mod source;
mod speech;
pub mod thresholds;
pub mod traffic;
pub mod viewer;
