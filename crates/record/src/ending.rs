//! The end of a file: it gets its name, its manifest notes the reason, and subscribers are
//! notified.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use portunus_files::manifest::FileEnd;

use crate::control::Control;
use crate::pending::Unfinished;
use crate::session::{Entry, FileDone, Owner, complete};
use crate::target::Target;
use crate::{Participant, RecordError};

/// A file that has ended.
#[derive(Debug)]
pub(crate) struct Ending<'a> {
    pub(crate) entry: Option<Entry>,
    pub(crate) of: Option<&'a Participant>,
    pub(crate) control: &'a Control,
    pub(crate) end: FileEnd,
    /// The error that ended it, if any.
    pub(crate) error: Option<&'a RecordError>,
    pub(crate) duration: Duration,
}

impl Ending<'_> {
    /// Gives the file its final name, and notifies subscribers. `finished` is the result of writing
    /// its end.
    pub(crate) fn conclude(
        self,
        target: Target,
        finished: Result<(), RecordError>,
    ) -> Result<(), RecordError> {
        let shared = Arc::clone(target.shared());
        let (path, bytes) = (target.path().to_owned(), target.len());
        let whose = target.whose();
        // Waiting for all recordings includes the notifications.
        let _unfinished = Unfinished::new(&shared.pending);
        let left = target.leave();
        let outcome = finished.and(left);
        let (end, error) = match &outcome {
            Ok(()) => (self.end, self.error),
            Err(error) => (error.end(), Some(error)),
        };
        if outcome.is_ok() {
            tracing::info!(file = %path.display(), bytes, end = end.name(), "recorded");
        }
        if error.is_some() {
            shared.counters.failed.fetch_add(1, Relaxed);
        }
        let done = FileDone {
            path,
            end,
            error: error.map(ToString::to_string),
            duration: self.duration,
            bytes,
        };
        let owner = Owner {
            participant: self.of,
            whose: whose.as_deref(),
        };
        let completed = complete(self.entry, owner, &shared, done);
        self.control.notify(&completed);
        outcome
    }
}
