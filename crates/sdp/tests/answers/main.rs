//! The answers of the server: lines, directions, codecs, simulcast, header extensions.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

mod codecs;
mod feedback;
mod lines;
mod simulcast;
#[path = "../support/mod.rs"]
mod support;

const AUDIO: &str = "audio 9 UDP/TLS/RTP/SAVPF 111 0 8 9";
const OPUS: &str = "rtpmap:111 opus/48000/2";
const VIDEO: &str = "video 9 UDP/TLS/RTP/SAVPF 96 97 98";
const VP8: &str = "rtpmap:96 VP8/90000";
const DATA: &str = "application 9 UDP/DTLS/SCTP webrtc-datachannel";
