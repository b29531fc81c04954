//! JSEP offer/answer on top of an SDP library.
#![forbid(unsafe_code)]

pub mod negotiated;
