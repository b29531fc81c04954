//! A SIP stack (RFC 3261) that knows no sockets, and the sockets for it.
//!
//! [`message`] parses and writes requests and responses, [`framing`] finds them in datagrams and streams, [`digest`] proves
//! and asks who somebody is, [`locate`] finds where requests go, [`transaction`] repeats them until they arrive,
//! [`dialog`] keeps what belongs together, [`agent`] registers and calls. Bytes and a time go in; bytes, events and a deadline come out.
//! Only [`net`] knows sockets and clocks. Whatever a peer sends, memory stays bounded and nothing panics.
#![forbid(unsafe_code)]

pub mod agent;
mod deadlines;
pub mod dialog;
pub mod digest;
pub mod dtmf;
pub mod flow;
pub mod framing;
pub mod locate;
pub mod message;
pub mod net;
pub mod transaction;
