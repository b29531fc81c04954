//! Audio, sans-IO: what audio rooms decode, mix and encode.
//!
//! Nothing here has a socket, a thread or a clock. Sound is `f32` samples, full scale 1.0, channels interleaved, in frames
//! of [`FRAME`].
#![forbid(unsafe_code)]

mod codec;
mod format;
mod participant;
mod room_options;

pub use codec::AudioCodec;
pub use format::{Channels, FRAME, Format, SampleRate};
pub use participant::{Encoding, ParticipantId, ParticipantOptions, TalkOptions};
pub use room_options::RoomOptions;
