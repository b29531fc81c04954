//! A SIP stack (RFC 3261) that knows no sockets, and the sockets for it.
//!
//! [`message`] parses and writes requests and responses, [`transaction`] repeats them until they arrive. Bytes and a time go in; bytes, events and a deadline come out.
//! Whatever a peer sends, memory stays bounded and nothing panics.
#![forbid(unsafe_code)]

mod deadlines;
pub mod dialog;
pub mod flow;
pub mod message;
pub mod transaction;
