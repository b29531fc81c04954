//! Detection of talking: the average level over a number of frames.

use crate::TalkOptions;
use crate::level::SILENCE;

/// The levels of packets that may wait for their frames, because packets come in bursts.
const WAITING: usize = 4;

/// The window of a participant.
#[derive(Debug, Clone, Default)]
pub(crate) struct TalkWindow {
    sum: u64,
    frames: u32,
    talking: bool,
    waiting: [u8; WAITING],
    waits: u8,
}

impl TalkWindow {
    /// Takes the level of a packet.
    pub(crate) fn packet(&mut self, level: u8) {
        if let Some(place) = self.waiting.get_mut(usize::from(self.waits)) {
            *place = level;
            self.waits += 1;
        } else {
            self.waiting.rotate_left(1);
            self.waiting[WAITING - 1] = level;
        }
    }

    /// Ends a frame. Returns whether the participant talks now, if that has changed.
    pub(crate) fn frame(&mut self, options: &TalkOptions) -> Option<bool> {
        let level = if self.waits > 0 {
            self.waits -= 1;
            let [level, ..] = self.waiting;
            self.waiting.rotate_left(1);
            level
        } else {
            SILENCE
        };
        // A window may be as long as a room's lifetime.
        self.sum = self.sum.saturating_add(level.min(SILENCE).into());
        self.frames = self.frames.saturating_add(1);
        if self.frames < options.packets {
            return None;
        }
        let talking = self.sum / u64::from(self.frames) < u64::from(options.level);
        self.sum = 0;
        self.frames = 0;
        (talking != self.talking).then(|| {
            self.talking = talking;
            talking
        })
    }

    pub(crate) fn is_talking(&self) -> bool {
        self.talking
    }

    /// Restarts the window.
    pub(crate) fn restart(&mut self) {
        self.sum = 0;
        self.frames = 0;
        self.waits = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPTIONS: TalkOptions = TalkOptions {
        packets: 5,
        level: 25,
    };

    fn frames(window: &mut TalkWindow, count: usize, level: Option<u8>) -> Vec<bool> {
        (0..count)
            .filter_map(|_| {
                if let Some(level) = level {
                    window.packet(level);
                }
                window.frame(&OPTIONS)
            })
            .collect()
    }

    #[test]
    fn changes_are_told_at_the_end_of_a_window() {
        let mut window = TalkWindow::default();
        assert_eq!(frames(&mut window, 4, Some(10)), []);
        assert_eq!(frames(&mut window, 1, Some(10)), [true]);
        assert_eq!(frames(&mut window, 10, Some(24)), []);
        assert!(window.is_talking());
        assert_eq!(frames(&mut window, 5, Some(25)), [false]);
    }

    #[test]
    fn packets_that_are_missing_are_silence() {
        let mut window = TalkWindow::default();
        assert_eq!(frames(&mut window, 5, Some(0)), [true]);
        assert_eq!(frames(&mut window, 5, None), [false]);
    }

    #[test]
    fn a_burst_is_no_silence() {
        let mut window = TalkWindow::default();
        frames(&mut window, 1, None);
        for _ in 0..WAITING {
            window.packet(10);
        }
        assert_eq!(frames(&mut window, 4, None), [false; 0]);
        assert_eq!(window.sum, 0);
        assert!(!window.is_talking());
        for _ in 0..100 {
            window.packet(10);
        }
        assert_eq!(usize::from(window.waits), WAITING);
    }
}
