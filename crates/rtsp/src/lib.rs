//! An RTSP 1.0 client (RFC 2326): pulls audio and video from cameras and servers as RTP packets.
//!
//! [`Session`] is one connection: described, set up, playing. [`pull`] keeps a stream alive: it connects again
//! whenever a session ends or falls silent. Packets come over UDP or over the RTSP connection itself
//! ([`Transport`]). Whatever a server sends, memory stays bounded and every wait has an end.
#![forbid(unsafe_code)]

mod channels;
mod config;
mod connection;
mod describe;
mod error;
mod keep_alive;
mod pull;
mod request;
mod session;
mod setup;

pub use config::{Allowed, Config, Login, Transport, Usable};
pub use describe::{Choice, Medium, MediumKind, parse_description};
pub use error::RtspError;
pub use pull::{Sink, pull};
pub use session::{Session, shown_url};
