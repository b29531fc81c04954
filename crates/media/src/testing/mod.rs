//! For tests and benchmarks: a media plane without workers, and a worker without a network.

mod detached;
mod fan_out;

pub(crate) use detached::{Detached, Notes, note};
pub use detached::{Requested, RequestedIngest, RequestedOutlet, RequestedRoute};
pub use fan_out::FanOut;
