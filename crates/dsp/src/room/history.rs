//! What was heard lately, for encoders that begin.

/// How many frames are kept.
pub(super) const FRAMES: usize = 5;

/// The last frames of the mix of all.
#[derive(Debug)]
pub(super) struct History {
    frame: usize,
    /// Oldest first, once it is full.
    sound: Vec<f32>,
}

impl History {
    pub(super) fn new(frame: usize) -> Self {
        History {
            frame,
            sound: vec![0.0; frame * FRAMES],
        }
    }

    pub(super) fn push(&mut self, sound: &[f32]) {
        self.sound.copy_within(self.frame.., 0);
        let start = self.frame * (FRAMES - 1);
        for (to, from) in self.sound.iter_mut().skip(start).zip(sound) {
            *to = *from;
        }
    }

    /// The history was heard without the delay of `ahead` samples that the mix has. It moves on by as much; what it then lacks at its
    /// end begins as `next` does, as it would have gone on, and fades to what led to `next`. An empty `next` is silence.
    pub(super) fn bridge(&mut self, next: &[f32], ahead: usize) {
        self.sound.copy_within(ahead.., 0);
        let start = self.sound.len() - ahead;
        for (at, (end, next)) in self
            .sound
            .iter_mut()
            .skip(start)
            .zip(next.iter().chain(std::iter::repeat(&0.0)))
            .enumerate()
        {
            let share = (at as f32 + 0.5) / ahead as f32;
            *end = *end * share + next * (1.0 - share);
        }
    }

    /// The last frames, at most [`FRAMES`].
    pub(super) fn last(&self, frames: usize) -> &[f32] {
        let start = self.sound.len().saturating_sub(frames * self.frame);
        self.sound.get(start..).unwrap_or_default()
    }
}
