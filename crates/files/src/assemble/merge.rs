//! Frames of all tracks in the order of their times.

use std::collections::VecDeque;

use crate::container::TrackSetup;

use super::step::Note;
use super::{Nanos, PartReason};

/// So many bytes of frames of a track wait for others.
const MAX_BYTES: usize = 4 << 20;
/// And so many frames.
const MAX_FRAMES: usize = 2_048;

/// A frame that waits for its turn.
#[derive(Debug)]
pub(super) struct Queued {
    /// On the server's clock.
    pub(super) at: Nanos,
    /// Zero if it is not known.
    pub(super) duration: Nanos,
    pub(super) keyframe: bool,
    pub(super) data: Vec<u8>,
    /// What its track is from here on, if that was something else before.
    pub(super) opening: Option<Box<Opening>>,
    /// What is told when it is written, with times on the server's clock.
    pub(super) notes: Vec<Note>,
}

/// What a track becomes.
#[derive(Debug)]
pub(super) struct Opening {
    pub(super) setup: TrackSetup,
    /// Whether that needs another part.
    pub(super) part: Option<PartReason>,
}

/// The frames of one track that wait for those of others.
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
