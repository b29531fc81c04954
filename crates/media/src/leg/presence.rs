//! Whether the far end of a leg is there: heard, silent, failed or gone.

use std::time::{Duration, Instant};

/// Consecutive errors of RTP without a packet between them after which the far end has failed.
const ERRORS: u32 = 100;

/// Whether the far end is there. Its methods return whether that is an event to publish.
#[derive(Debug)]
pub(super) struct Presence {
    /// Since when a far end is known.
    since: Option<Instant>,
    /// How long it may be silent.
    silence: Option<Duration>,
    is_silent: bool,
    is_heard: bool,
    /// Consecutive errors.
    errors: u32,
    has_failed: bool,
    has_left: bool,
}

impl Presence {
    /// Returns the state without a far end, which may be silent for `silence`.
    pub(super) fn new(silence: Option<Duration>) -> Self {
        Self {
            since: None,
            silence,
            is_silent: false,
            is_heard: false,
            errors: 0,
            has_failed: false,
            has_left: false,
        }
    }

    /// Whether a far end is known.
    pub(super) fn is_known(&self) -> bool {
        self.since.is_some()
    }

    /// Sets since when a far end is known. `None` means that it is not.
    pub(super) fn set_since(&mut self, since: Option<Instant>) {
        self.since = since;
    }

    /// Forgets the errors, because packets go to another address.
    pub(super) fn forget_errors(&mut self) {
        (self.errors, self.has_failed) = (0, false);
    }

    /// Notes a valid packet. Returns whether it is the first one, or the first after silence.
    #[inline]
    pub(super) fn note_packet(&mut self) -> bool {
        self.errors = 0;
        self.has_left = false;
        let is_new = !self.is_heard || self.is_silent;
        (self.is_heard, self.is_silent) = (true, false);
        is_new
    }

    /// Notes an error. Returns whether the far end has failed by that.
    pub(super) fn note_error(&mut self) -> bool {
        self.errors = self.errors.saturating_add(1);
        self.errors >= ERRORS && !std::mem::replace(&mut self.has_failed, true)
    }

    /// Notes that the far end has said goodbye. Returns whether that is new.
    pub(super) fn note_bye(&mut self) -> bool {
        !std::mem::replace(&mut self.has_left, true)
    }

    /// When the far end counts as silent. `last` is when the last packet came.
    pub(super) fn silent_at(&self, last: Option<Instant>) -> Option<Instant> {
        let since = self.since.filter(|_| !self.is_silent)?;
        let last = last.map_or(since, |last| last.max(since));
        Some(last + self.silence?)
    }

    /// Notes that the far end is silent.
    pub(super) fn note_silence(&mut self) {
        self.is_silent = true;
    }
}
