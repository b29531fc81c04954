//! The SIP plugin, `janus.plugin.sip`: web pages register at SIP servers, call and are called. It is control logic only: the
//! messages are those of `portunus-sip`, media are routed by `portunus-call`.
#![forbid(unsafe_code)]

mod account;
mod attached;
mod call;
mod called;
mod calling;
mod changing;
mod config;
mod counts;
mod ending;
mod endpoint;
mod forks;
mod forwarding;
mod headers;
mod limits;
mod lines;
mod media;
mod messages;
mod page;
mod phones;
mod plugin;
mod recording;
mod refusal;
mod register;
mod registering;
mod requests;
mod seen;
mod stack;
mod status;
mod subscribing;
mod transfer;
mod trunk;
mod why;

pub use config::{Listen, ListenTransport, SipConfig};
pub use plugin::{Sip, SipError};
pub use requests::Request;
pub use trunk::TrunkConfig;

#[cfg(test)]
mod tests;
