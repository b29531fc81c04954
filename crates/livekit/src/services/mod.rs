//! The services: Twirp over HTTP, as LiveKit's server SDKs call it.

mod egress_service;
mod error;
mod exchange;
mod ingress_service;
mod json;
mod method;
mod room_service;
mod rooms;
mod router;
mod sip_service;

pub use egress_service::{EgressAnswer, EgressRequest};
pub use error::{Code, ServiceError};
#[cfg(feature = "testing")]
pub use exchange::read_call;
pub use ingress_service::{IngressAnswer, IngressRequest};
pub use rooms::{Answer, Rooms, Services};
pub use router::router;
pub use sip_service::{SipAnswer, SipRequest};
