//! DSP threads: audio rooms (`portunus-dsp`) that run by deadline, away from media workers.
//!
//! A participant's source is tapped, and each mix with listeners is an ingest. So for the media
//! plane a mix is a source like any other.
#![forbid(unsafe_code)]

mod announcement;
mod clocks;
mod command;
mod config;
mod error;
mod event;
mod feeds;
mod grid;
mod leg;
mod load;
mod media_access;
mod metrics;
mod mix;
mod mix_outlet;
mod outbox;
mod output;
mod outputs;
mod recording;
mod room;
mod room_port;
mod splitter;
mod stats;
mod taps;
mod thread;
mod thread_port;
mod thread_room;
mod threads;
mod transcoder;

pub use announcement::Announcement;
pub use config::AudioConfig;
pub use error::{AudioError, RtpLegError};
pub use event::{AnnouncementEnd, AudioEvent};
pub use leg::{RtpLeg, RtpLegOptions};
pub use mix::MixSource;
pub use mix_outlet::MixOutlet;
pub use output::Out;
pub use portunus_dsp::{
    AnnouncementId, AudioCodec, Channels, Encoding, FRAME, Format, Mixture, ParticipantId,
    ParticipantOptions, RoomOptions, SampleRate, TalkOptions,
};
pub use portunus_leg::Leg;
pub use recording::{MixRecording, RecordingFormat, RecordingId};
pub use room::AudioRoom;
pub use stats::{AudioThreadStats, AudioTotals, ParticipantStats};
pub use threads::AudioThreads;
pub use transcoder::{TranscodedSide, Transcoder};
