//! For tests and benchmarks: a media plane without workers, and a worker without a network.

mod bare;
mod detached;
mod fan_out;
mod leg;
mod remote;
mod simulation;

#[cfg(test)]
pub(crate) use bare::{Bare, bare, checking, sharing};
pub(crate) use detached::{Detached, Notes, note};
pub use detached::{Requested, RequestedIngest, RequestedLeg, RequestedOutlet, RequestedRoute};
pub use fan_out::FanOut;
pub use leg::BareLeg;
pub use remote::RemotePublisher;
pub use simulation::{Camera, Seen, Simulation, Watcher};
