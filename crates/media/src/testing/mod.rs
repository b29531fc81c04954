//! For tests and benchmarks: a media plane without workers, and a worker without a network.

mod bare;
mod detached;
mod fan_out;
mod far_node;
mod leg;
mod notes;
mod remote;
mod simulation;

#[cfg(test)]
pub(crate) use bare::{Bare, bare, checking, sharing};
pub(crate) use detached::Detached;
pub use detached::{Requested, RequestedIngest, RequestedLeg, RequestedOutlet, RequestedRoute};
pub use fan_out::FanOut;
pub use far_node::{Arrival, PlayedNode};
pub use leg::BareLeg;
pub(crate) use notes::{Notes, note};
pub use remote::RemotePublisher;
pub use simulation::{Camera, Crossing, FarCamera, NodePath, Seen, Simulation, Watcher};
