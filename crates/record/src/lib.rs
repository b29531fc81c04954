//! Recorders: sources of the media graph are written into files of Janus's format (`.mjr`), Ogg, or
//! a container.
//!
//! A plugin has a [`Recorder`] record a source, and holds the [`Recording`] until it is to end. A
//! tap of the source hands packets over by a bounded queue, and the thread of the file's disk
//! writes them a few times a second. So no worker waits for a disk, and no recording for another
//! disk than its own. Packets that a disk is too slow for are dropped and counted.
#![forbid(unsafe_code)]

mod clock;
mod complete_file;
mod completions;
mod config;
mod content;
mod control;
mod disk;
mod ending;
mod error;
mod file;
mod format;
mod joint;
mod metrics;
mod new_file;
mod on_complete;
mod opening;
mod outcome;
mod output;
mod pending;
mod place;
mod recorder;
mod recording;
mod session;
mod shared;
mod single;
mod spec;
mod target;
mod write_delay;

pub use complete_file::{Completed, Whose};
pub use config::RecorderConfig;
#[cfg(feature = "testing")]
pub use disk::StallingDisk;
pub use error::RecordError;
pub use file::RecordedFile;
pub use format::{Format, UnknownFormat};
pub use joint::{JointRecording, JointSpec, TrackSpec};
pub use opening::Prepared;
pub use outcome::{End, Outcome};
pub use place::{file_safe, stamped};
pub use portunus_files::manifest::FileEnd;
pub use portunus_files::mjr::Medium;
pub use recorder::{Recorder, RecorderTotals};
pub use recording::Recording;
pub use session::{Participant, RecordedSession, SessionSpec, WeakSession};
pub use spec::{RecordedMedia, RecordingSpec};
