//! A SIP stack (RFC 3261) without sockets, and the sockets for it.
//!
//! [`message`] parses and writes requests and responses, [`framing`] finds them in datagrams and
//! streams, [`digest`] authenticates, [`locate`] finds the addresses of a name, [`transaction`]
//! repeats requests until they arrive, [`dialog`] keeps the state of dialogs, [`agent`] registers
//! and calls. Bytes and a time go in; bytes, events and a deadline come out. Only [`net`] knows
//! sockets and clocks. Memory stays bounded and nothing panics, whatever a peer sends.
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
