//! Requests of Janus's plugins, as scenarios make them.

pub(super) mod audiobridge;
pub(super) mod streaming;
pub(super) mod videoroom;
