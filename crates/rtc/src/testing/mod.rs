//! A simulated network that joins transports: seeded loss, reordering, duplication and delay under
//! virtual time. For tests only.

mod bottleneck;
mod lines;
mod media_pair;
mod media_side;
mod network;
mod pair;
mod publisher;

pub use bottleneck::{Bottleneck, BottleneckLink};
pub use lines::{AUDIO_PT, RTX_PT, VIDEO_PT, audio, data, mirrored, simulcast, video};
pub use media_pair::MediaPair;
pub use media_side::{Arrival, MediaSide};
pub use network::{Link, Network};
pub use pair::{Pair, Side, credentials, identity};
pub use publisher::{Frame, Publisher};
