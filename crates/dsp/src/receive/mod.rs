//! One participant's way in: from packets to frames of sound.

mod decoder;
mod packet;
mod receiver;
mod stats;

pub use packet::{Content, IncomingPacket};
pub use receiver::{Played, Receiver, ReceiverOptions};
pub use stats::ReceiverStats;
