//! Merging of the frames of all tracks, by their times.

use std::collections::VecDeque;

use crate::container::TrackSetup;

use super::step::Note;
use super::{Nanos, PartReason};

/// The limit of waiting bytes per track.
const MAX_BYTES: usize = 4 << 20;
/// The limit of waiting frames per track.
const MAX_FRAMES: usize = 2_048;

/// A frame that waits for its turn.
#[derive(Debug)]
pub(super) struct Queued {
    /// Its time on the server's clock.
    pub(super) at: Nanos,
    /// Zero if it is unknown.
    pub(super) duration: Nanos,
    pub(super) keyframe: bool,
    pub(super) data: Vec<u8>,
    /// The new setup of its track from here on, if any.
    pub(super) opening: Option<Box<Opening>>,
    /// The notes that are returned with it. Their times are on the server's clock.
    pub(super) notes: Vec<Note>,
}

/// A new setup of a track.
#[derive(Debug)]
pub(super) struct Opening {
    pub(super) setup: TrackSetup,
    /// The reason for another part, if it needs one.
    pub(super) part: Option<PartReason>,
}

/// The frames of a track that wait for those of others.
#[derive(Debug, Default)]
pub(super) struct Queue {
    frames: VecDeque<Queued>,
    bytes: usize,
}

impl Queue {
    pub(super) fn push(&mut self, frame: Queued) {
        self.bytes = self.bytes.saturating_add(frame.data.len());
        self.frames.push_back(frame);
    }

    pub(super) fn first(&self) -> Option<&Queued> {
        self.frames.front()
    }

    pub(super) fn pop(&mut self) -> Option<Queued> {
        let frame = self.frames.pop_front()?;
        self.bytes = self.bytes.saturating_sub(frame.data.len());
        Some(frame)
    }

    pub(super) fn is_full(&self) -> bool {
        self.bytes > MAX_BYTES || self.frames.len() > MAX_FRAMES
    }
}
