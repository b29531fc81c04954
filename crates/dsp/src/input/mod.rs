//! The input of a participant: from packets to frames of audio.
//!
//! A packet gets its place on a [`timeline`], from which [`delay`] learns how long packets must
//! wait. It waits in the [`buffer`] until the [`receiver`] needs it. Then it is decoded
//! ([`decoder`], [`phone`]) to audio that is shortened or lengthened to reach the wanted delay
//! ([`sound`], [`playout`]).

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
