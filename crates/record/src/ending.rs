//! The end of a file: it has its name, its manifest says why it ended, and whoever waits for that is told.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use portunus_files::manifest::FileEnd;

use crate::control::Control;
use crate::session::Entry;
use crate::shared::Unfinished;
use crate::target::Target;
use crate::{Participant, RecordError};

/// What is known of a file that nothing more is written into.
#[derive(Debug)]
pub(crate) struct Ending<'a> {
    pub(crate) entry: Option<Entry>,
    pub(crate) of: Option<&'a Participant>,
    pub(crate) control: &'a Control,
    pub(crate) end: FileEnd,
    /// What ended it.
    pub(crate) error: Option<&'a RecordError>,
    pub(crate) duration: Duration,
}

impl Ending<'_> {
    /// Keeps what was written under its name, and tells of it. `finished`: whether its end could be written.
    pub(crate) fn conclude(
        self,
        target: Target,
        finished: Result<(), RecordError>,
    ) -> Result<(), RecordError> {
        let shared = Arc::clone(target.shared());
        let (path, bytes) = (target.path().to_owned(), target.len());
        let whose = target.whose();
        // Whoever waits for all to be complete waits for those who are told of it, too.
        let _unfinished = Unfinished::new(&shared);
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
        let done = (end, error.map(ToString::to_string), self.duration, bytes);
        let completed =
            Entry::complete(self.entry, (self.of, whose.as_deref()), &shared, path, done);
        self.control.tell(&completed);
        outcome
    }
}
