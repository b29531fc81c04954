//! Sources for mountpoints: RTP whose payloads look like a codec's and end with a [`Stamp`].

mod config;
mod pace;
mod packets;
mod payload;
mod stamp;
mod streams;
mod thread;

pub use config::SourceConfig;
pub use pace::Lateness;
pub(crate) use pace::{Due, spread};
pub use packets::{Made, Packets};
pub use stamp::{Delayed, STAMP_BYTES, Stamp};
pub use streams::{AUDIO, LOWER, STREAMS, Sent, VIDEO, VideoCodec};
pub use thread::{Destination, Source};
