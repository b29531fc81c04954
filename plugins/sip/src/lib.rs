//! The SIP plugin, `janus.plugin.sip`: web pages register at SIP servers, call and are called. It
//! is control logic only: `portunus-sip` handles the messages, `portunus-call` the media.
#![forbid(unsafe_code)]

mod account;
mod call;
mod client_handle;
mod commands;
mod config;
mod counts;
mod descriptions;
mod directory;
mod ending;
mod endpoint;
mod events;
mod failure;
mod forks;
mod headers;
mod limits;
mod media;
mod page;
mod phone;
mod phones;
mod plugin;
mod profile;
mod refusal;
mod register_request;
mod requests;
mod shared;
mod sip_message;
mod status;
mod switchboard;
mod trunk;

pub use config::{Listen, ListenTransport, SipConfig};
pub use plugin::{Sip, SipError};
pub use requests::Request;
pub use trunk::{PhoneTrunks, TrunkConfig};

#[cfg(test)]
mod tests;
