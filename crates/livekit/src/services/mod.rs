//! The services: Twirp over HTTP, as LiveKit's server SDKs call it.

mod error;
mod exchange;
mod json;
mod method;
mod room_service;
mod rooms;
mod router;

pub use error::{Code, ServiceError};
#[cfg(feature = "testing")]
pub use exchange::read_call;
pub use rooms::{Answer, Rooms};
pub use router::router;
