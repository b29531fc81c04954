//! The Portunus WebRTC server.

fn main() {}
