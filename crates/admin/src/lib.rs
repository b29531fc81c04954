//! The Admin API: what operators ask of the server, and how they steer it.
//!
//! Requests address the server, a session or a handle. Each subject has a file of its own. A
//! transport hands each request to [`Administration`].
#![forbid(unsafe_code)]

mod access;
mod administration;
mod capture;
mod config;
mod debug_flags;
mod diagnosis;
mod drain;
mod handle_info;
mod handles;
mod history;
mod log;
mod metrics;
mod network;
mod overview;
mod plugins;
mod server;
mod sessions;
mod stored_tokens;
mod subscriptions;
mod transports;
mod workers;

pub use administration::{AdminOptions, AdminTotals, Administration};
pub use config::AdminConfig;
pub use log::{LogControl, LogLevel, RememberedLog};
pub use transports::TransportControl;
