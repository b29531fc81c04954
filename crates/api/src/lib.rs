//! The Janus API and the Admin API over HTTP, WebSocket, Unix socket and message brokers; WHIP and
//! WHEP; the web pages.
//!
//! [`Transports::start`] binds everything that [`ApiConfig`] enables, and serves until
//! [`Transports::shutdown`]. The transports do not interpret requests: each message goes to the
//! [`portunus_core::Gateway`] or the [`portunus_admin::Administration`], and each reply and event
//! comes back.
#![forbid(unsafe_code)]

mod admin;
mod bodies;
mod broker;
mod config;
mod control;
mod counters;
mod error;
mod extra_server;
mod forwarded;
mod http;
mod kept_sockets;
mod listen;
mod notifications;
mod pace;
mod packages;
mod reload;
mod reply;
mod requester;
mod socket;
mod start;
#[cfg(feature = "testing")]
pub mod testing;
mod tls;
mod unix;
mod websocket;
mod whip;

pub use admin::AdminApiConfig;
pub use broker::{BrokerApi, MqttApi, MqttConfig, NatsApi, NatsConfig, RabbitApi, RabbitConfig};
pub use config::{
    ApiConfig, FileMode, HttpConfig, IceServer, UnixConfig, UnixKind, WebSocketConfig,
    WhipAuthorization, WhipConfig,
};
pub use counters::{Counter, Counters};
pub use error::StartError;
pub use extra_server::ExtraServer;
pub use reload::{PreparedTransports, TransportsReload};
pub use start::{AdminAddresses, Transports, brokers, transport_infos};
pub use tls::TlsConfig;
