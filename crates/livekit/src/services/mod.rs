//! The services: Twirp over HTTP, as LiveKit's server SDKs call it.

mod error;
mod exchange;
mod json;
mod method;
mod room_service;
mod rooms;
mod router;

pub use error::{Code, ServiceError};
pub use rooms::{Answer, Rooms};
pub use router::router;
