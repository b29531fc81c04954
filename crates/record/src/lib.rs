//! Recorders: what comes from a source of the media graph, into files of Janus's format (`.mjr`), or Opus into Ogg.
//!
//! A plugin asks a [`Recorder`] to record a source, and holds the [`Recording`] as long as that is to go on. A tap of the
//! source hands packets over by a bounded queue, and a task of the recording writes them, a few times a second, on a
//! thread that may block: no worker ever waits for a disk. What a disk is too slow for is dropped and counted.
#![forbid(unsafe_code)]

mod complete;
mod config;
mod content;
mod error;
mod file;
mod format;
mod joint;
mod output;
mod place;
mod recorder;
mod recording;
mod session;
mod spec;
mod task;

pub use complete::Completed;
pub use config::RecorderConfig;
pub use error::RecordError;
pub use file::RecordedFile;
pub use format::{Format, UnknownFormat};
pub use joint::{JointRecording, JointSpec, TrackSpec};
pub use place::{file_safe, stamped};
pub use portunus_files::manifest::FileEnd;
pub use portunus_files::mjr::Medium;
pub use recorder::{Prepared, Recorder, RecorderTotals};
pub use recording::{End, Outcome, Recording};
pub use session::{Participant, RecordedSession, SessionSpec};
pub use spec::{RecordedMedia, RecordingSpec};
