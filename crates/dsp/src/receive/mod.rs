//! One participant's way in: from packets to frames of sound.
//!
//! A packet gets its place on a line of time ([`timeline`]), which tells how long packets must wait ([`delay`]). It waits
//! ([`buffer`]) until it is due ([`receiver`]); then it is decoded ([`decoder`], [`phone`]) to sound that is shortened or
//! lengthened as the delay asks for ([`sound`], [`playout`]).

mod buffer;
mod decoder;
mod delay;
mod intake;
mod opus_packet;
mod packet;
mod phone;
mod playout;
mod receiver;
mod red;
mod relay;
mod sound;
mod stats;
mod timeline;

pub use packet::{Content, IncomingPacket};
pub use receiver::{Played, Receiver, ReceiverOptions};
pub(crate) use relay::QUIET;
pub use relay::Relayed;
pub use stats::ReceiverStats;
