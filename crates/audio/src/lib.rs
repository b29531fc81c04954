//! DSP threads: audio rooms (`portunus-dsp`) that run by deadline, away from media workers.
//!
//! A participant's source is tapped, and each mix that somebody hears is an ingest, so that for the media plane a mix is a
//! source like any other.
#![forbid(unsafe_code)]

mod announcement;
mod command;
mod config;
mod error;
mod event;
mod feeds;
mod grid;
mod leg;
mod load;
mod metrics;
mod mix;
mod outbox;
mod outputs;
mod recording;
mod room;
mod running;
mod split;
mod stats;
mod taps;
mod thread;
mod threads;
mod transcoder;

pub use announcement::Announcement;
pub use config::AudioConfig;
pub use error::{AudioError, RtpLegError};
pub use event::{AnnouncementEnd, AudioEvent};
pub use leg::{RtpLeg, RtpLegOptions};
pub use mix::MixSource;
pub use portunus_dsp::{
    AnnouncementId, AudioCodec, Channels, Encoding, FRAME, Format, Mixture, ParticipantId,
    ParticipantOptions, RoomOptions, SampleRate, TalkOptions,
};
pub use portunus_leg::Leg;
pub use recording::{MixRecording, RecordingFormat, RecordingId};
pub use room::{AudioRoom, Out};
pub use stats::{AudioThreadStats, AudioTotals, ParticipantStats};
pub use threads::AudioThreads;
pub use transcoder::{TranscodedSide, Transcoder};
