//! Recorders: what comes from a source of the media graph, into files of Janus's format (`.mjr`), or Opus into Ogg.
//!
//! A plugin asks a [`Recorder`] to record a source, and holds the [`Recording`] as long as that is to go on. A tap of the
//! source hands packets over by a bounded queue, and the thread of the disk that the file is on writes them, a few times a
//! second: no worker ever waits for a disk, and no recording for another disk than its own. What a disk is too slow for is
//! dropped and counted.
#![forbid(unsafe_code)]

mod clock;
mod complete;
mod config;
mod content;
mod control;
mod disk;
mod ending;
mod error;
mod file;
mod format;
mod held;
mod joint;
mod manifest_file;
mod metrics;
mod opening;
mod output;
mod place;
mod recorder;
mod recording;
mod session;
mod shared;
mod single;
mod spec;
mod target;

pub use complete::{Completed, Whose};
pub use config::RecorderConfig;
#[cfg(feature = "testing")]
pub use disk::StallingDisk;
pub use error::RecordError;
pub use file::RecordedFile;
pub use format::{Format, UnknownFormat};
pub use joint::{JointRecording, JointSpec, TrackSpec};
pub use place::{file_safe, stamped};
pub use portunus_files::manifest::FileEnd;
pub use portunus_files::mjr::Medium;
pub use recorder::{Prepared, Recorder, RecorderTotals};
pub use recording::{End, Outcome, Recording};
pub use session::{Participant, RecordedSession, SessionSpec, WeakSession};
pub use spec::{RecordedMedia, RecordingSpec};
