//! A simulated network that joins transports: seeded loss, reordering, duplication and delay under
//! virtual time. For tests only.

mod network;
mod pair;

pub use network::{Link, Network};
pub use pair::{Pair, Side, credentials, identity};
