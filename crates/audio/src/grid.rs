//! The times at which rooms are mixed: every 20 ms, without drift, and spread over that time.

use std::time::{Duration, Instant};

use portunus_dsp::FRAME;

/// The number of phases that a thread's rooms are spread over. So the thread, and the workers that
/// send its mixes, have as much to do at any time.
const PHASES: usize = 20;
const PHASE: Duration = Duration::from_millis(1);
/// A thread that is later than this skips frames, because it could not catch up.
const LATEST: Duration = Duration::from_millis(60);

/// The phases with their rooms.
#[derive(Debug)]
pub(crate) struct Grid {
    start: Instant,
    /// The number of the next phase, counted from the start.
    next: u64,
    phases: [Vec<usize>; PHASES],
    rooms: usize,
}

/// The next step of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Sleep until a room is added.
    Asleep,
    /// Sleep for this long.
    In(Duration),
    /// Mix the rooms of a phase, which was due at `due`. Before it, `skipped` frames of each room
    /// were left out.
    Due {
        phase: usize,
        due: Instant,
        skipped: u64,
    },
}

impl Grid {
    /// Returns a grid without rooms. The grids of different threads are shifted.
    pub(crate) fn new(now: Instant, thread: usize) -> Self {
        let apart = PHASE * (thread % 8) as u32 / 8;
        Self {
            start: now + apart,
            next: 0,
            phases: Default::default(),
            rooms: 0,
        }
    }

    /// Adds a room to the phase with the fewest rooms, unless it is there already.
    pub(crate) fn add(&mut self, room: usize, now: Instant) {
        if self.phases.iter().flatten().any(|other| *other == room) {
            return;
        }
        if self.rooms == 0 {
            // Without rooms nothing was due.
            let passed = now.saturating_duration_since(self.start).as_nanos() / PHASE.as_nanos();
            self.next = u64::try_from(passed).unwrap_or(self.next).saturating_add(1);
        }
        let fewest = self.phases.iter_mut().min_by_key(|rooms| rooms.len());
        if let Some(phase) = fewest {
            phase.push(room);
            self.rooms += 1;
        }
    }

    /// Removes a room, if it is there.
    pub(crate) fn remove(&mut self, room: usize) {
        for phase in &mut self.phases {
            let before = phase.len();
            phase.retain(|other| *other != room);
            self.rooms -= before - phase.len();
        }
    }

    /// Takes the rooms of a phase. They are returned by [`Grid::put_back`].
    pub(crate) fn take(&mut self, phase: usize) -> Vec<usize> {
        self.phases
            .get_mut(phase)
            .map(std::mem::take)
            .unwrap_or_default()
    }

    /// Returns all rooms.
    pub(crate) fn rooms(&self) -> impl Iterator<Item = usize> {
        self.phases.iter().flatten().copied()
    }

    /// Returns the rooms of [`Grid::take`].
    pub(crate) fn put_back(&mut self, phase: usize, rooms: Vec<usize>) {
        if let Some(phase) = self.phases.get_mut(phase) {
            *phase = rooms;
        }
    }

    /// Returns the next step. A phase is due once.
    pub(crate) fn next(&mut self, now: Instant) -> Turn {
        if self.rooms == 0 {
            return Turn::Asleep;
        }
        while self.phases.get(phase(self.next)).is_none_or(Vec::is_empty) {
            self.next += 1;
        }
        let mut due = self.time(self.next);
        let Some(late) = now.checked_duration_since(due) else {
            return Turn::In(due.saturating_duration_since(now));
        };
        let mut skipped = 0;
        if late > LATEST {
            skipped = (late.as_nanos() / FRAME.as_nanos()) as u64;
            self.next = self
                .next
                .saturating_add(skipped.saturating_mul(PHASES as u64));
            due = self.time(self.next);
        }
        let phase = phase(self.next);
        self.next += 1;
        Turn::Due {
            phase,
            due,
            skipped,
        }
    }

    fn time(&self, number: u64) -> Instant {
        let nanos = (PHASE.as_nanos() as u64).saturating_mul(number);
        self.start + Duration::from_nanos(nanos)
    }
}

const fn phase(number: u64) -> usize {
    (number % PHASES as u64) as usize
}

#[cfg(test)]
mod tests {
    #![allow(clippy::panic, reason = "a test fails by a panic")]
    use super::*;

    #[test]
    fn phases_are_a_frame_together() {
        assert_eq!(PHASE * PHASES as u32, FRAME);
    }

    /// Returns the phases that are due until `end`, with their times.
    fn due(grid: &mut Grid, start: Instant, end: Duration) -> Vec<(usize, Duration)> {
        let (mut now, mut all) = (start, Vec::new());
        while now < start + end {
            match grid.next(now) {
                Turn::Asleep => break,
                Turn::In(wait) => now += wait,
                Turn::Due { phase, due, .. } => {
                    all.push((phase, due.saturating_duration_since(start)));
                }
            }
        }
        all
    }

    #[test]
    fn each_room_is_due_every_20_ms_to_the_moment() {
        let start = Instant::now();
        let mut grid = Grid::new(start, 0);
        assert_eq!(grid.next(start), Turn::Asleep);
        for room in 0..30 {
            grid.add(room, start);
            grid.add(room, start);
        }
        let all = due(&mut grid, start, Duration::from_secs(2));
        for phase in 0..PHASES {
            let rooms = grid.take(phase);
            assert!((1..=2).contains(&rooms.len()), "{rooms:?}");
            grid.put_back(phase, rooms);
            let times: Vec<_> = all.iter().filter(|(p, _)| *p == phase).collect();
            assert!(times.len() >= 99);
            for pair in times.windows(2) {
                let [before, after] = pair else { panic!("two") };
                assert_eq!(after.1.checked_sub(before.1), Some(FRAME));
            }
        }
    }

    #[test]
    fn a_thread_that_is_a_little_late_catches_up_and_one_that_is_very_late_leaves_frames_out() {
        let start = Instant::now();
        let mut grid = Grid::new(start, 0);
        grid.add(7, start);
        grid.add(8, start);
        let first = due(&mut grid, start, Duration::from_millis(30));
        let at = |ms| start + Duration::from_millis(ms);
        // At 50 ms late nothing is lost.
        let mut later = Vec::new();
        while let Turn::Due { due, skipped, .. } = grid.next(at(80)) {
            assert_eq!(skipped, 0);
            later.push(due);
        }
        assert_eq!(first.len() + later.len(), 8);
        // At a second late, about 48 frames of each room are left out.
        let Turn::Due { due, skipped, .. } = grid.next(at(1_080)) else {
            panic!("it is due");
        };
        assert!((47..=50).contains(&skipped), "{skipped}");
        assert!(at(1_080).saturating_duration_since(due) < FRAME);
        assert_eq!(grid.rooms().collect::<Vec<_>>(), [7, 8]);
        // Then it is on time again.
        while let Turn::Due { skipped, .. } = grid.next(at(1_080)) {
            assert_eq!(skipped, 0);
        }
        assert!(matches!(grid.next(at(1_080)), Turn::In(_)));
    }

    #[test]
    fn nothing_is_owed_for_the_time_without_rooms() {
        let start = Instant::now();
        let mut grid = Grid::new(start, 3);
        grid.add(1, start);
        grid.remove(1);
        let later = start + Duration::from_secs(3_600);
        assert_eq!(grid.next(later), Turn::Asleep);
        grid.add(1, later);
        assert!(matches!(grid.next(later), Turn::In(_)));
    }
}
