//! The services: Twirp over HTTP, as LiveKit's server SDKs call it.

mod error;
mod json;
mod rooms;

pub use error::{Code, ServiceError};
pub use rooms::{Answer, Rooms};
