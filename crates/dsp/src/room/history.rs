//! The recent audio of the mix, to prepare new encoders.

/// The number of frames.
pub(super) const FRAMES: usize = 5;

/// The last frames of the room's mix.
#[derive(Debug)]
pub(super) struct History {
    frame: usize,
    /// The oldest first, once it is full.
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

    /// Moves the history on by `ahead` samples, the delay of the mix, because it was heard without
    /// it. The missing end starts like `next`, and fades to the audio before `next`. An empty
    /// `next` is silence.
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

    /// Returns the last frames, at most [`FRAMES`].
    pub(super) fn last(&self, frames: usize) -> &[f32] {
        let start = self.sound.len().saturating_sub(frames * self.frame);
        self.sound.get(start..).unwrap_or_default()
    }
}
