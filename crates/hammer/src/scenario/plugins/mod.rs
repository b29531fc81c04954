//! Requests of Janus's plugins.

pub(super) mod audiobridge;
pub(super) mod streaming;
pub(super) mod videoroom;
