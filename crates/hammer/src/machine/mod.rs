//! The machine of server and load: its cores, its network namespaces, and their usage.

mod addresses;
mod carrier;
mod clock;
mod cores;
mod descriptors;
mod lateness;
mod mesh;
mod namespace;
mod speed;
mod stalls;
pub mod usage;

pub use addresses::Addresses;
pub use carrier::{PartsPerMillion, Quality};
pub use clock::wall_clock;
pub use cores::{CoreError, pin, pin_to};
pub(crate) use descriptors::raise_descriptor_limit;
pub(crate) use lateness::measure as lateness;
pub use mesh::{BUS_IP, HUB_IP, Mesh, Station};
pub(crate) use namespace::in_thread;
pub use namespace::{LOAD_IP, Link, Namespace, NamespaceError, SERVER_IP};
pub use stalls::{Disturbance, WatchError};
