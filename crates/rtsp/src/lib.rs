//! An RTSP 1.0 client (RFC 2326): pulls audio and video from cameras and servers as RTP packets.
//!
//! A [`Session`] is one connection that plays. [`pull`] keeps a stream alive: it reconnects when a
//! session ends or falls silent. Packets come over UDP or over the RTSP connection itself
//! ([`Transport`]). Memory stays bounded and every wait has an end, whatever a server sends.
#![forbid(unsafe_code)]

mod channels;
mod config;
mod connection;
mod description;
mod error;
mod keep_alive;
mod pull;
mod request;
mod session;
mod setup;
mod sink;

pub use config::{Allowed, Config, Login, Transport};
pub use description::{Choice, Medium, MediumKind, Usable, WantedMedia, parse_description};
pub use error::RtspError;
pub use pull::pull;
pub use session::{Session, shown_url};
pub use sink::Sink;
