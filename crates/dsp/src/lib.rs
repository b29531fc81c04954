//! Audio rooms, sans-IO: decoding, mixing and encoding.
//!
//! There are no sockets, threads or clocks in here. Audio consists of `f32` samples with full scale
//! 1.0 and interleaved channels, in frames of [`FRAME`].
#![forbid(unsafe_code)]

mod codec;
mod error;
mod format;
pub mod g711;
pub mod g722;
mod input;
pub mod level;
mod mix;
mod participant;
pub mod resample;
mod room;
mod room_options;

pub use codec::AudioCodec;
pub use error::CodecError;
pub use format::{Channels, FRAME, Format, SampleRate};
pub use input::{
    Content, IncomingPacket, Played, Receiver, ReceiverOptions, ReceiverStats, Relayed,
};
pub use participant::{Encoding, ParticipantId, ParticipantOptions, TalkOptions};
pub use room::{
    AnnouncementId, AnnouncementSource, AnnouncementState, EncodeJob, MixId, Mixture, NextPacket,
    Output, ParticipantState, Room, RoomError, RoomStats,
};
pub use room_options::RoomOptions;
