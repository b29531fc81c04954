//! Wrong pins over all calls to a room, so that nobody finds a pin by repeated calls.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The maximum number of rooms whose wrong pins are remembered.
const MOST_ROOMS: usize = 10_000;
/// The longest wait.
const LONGEST: Duration = Duration::from_secs(3_600);
/// The time without a wrong pin after which all are forgotten.
const FORGOTTEN: Duration = Duration::from_secs(24 * 3_600);

/// The wrong pins by room.
#[derive(Debug)]
pub(super) struct WrongPins {
    /// The number after which a room waits; 0 disables it.
    most: u32,
    /// The first wait. It doubles with each further wrong pin.
    wait: Duration,
    rooms: Mutex<HashMap<String, Room>>,
}

#[derive(Debug, Clone, Copy)]
struct Room {
    wrong: u32,
    last: Instant,
}

impl WrongPins {
    pub(super) fn new(most: u32, wait: Duration) -> Self {
        WrongPins {
            most,
            wait,
            rooms: Mutex::default(),
        }
    }

    /// Returns the rest of a room's wait, or `None` if it takes pins.
    pub(super) fn waits(&self, room: &str, now: Instant) -> Option<Duration> {
        let rooms = self.rooms.lock().unwrap_or_else(PoisonError::into_inner);
        let known = rooms.get(room)?;
        let over = self.wait_after(known.wrong)?;
        let left = over.saturating_sub(now.saturating_duration_since(known.last));
        (!left.is_zero()).then_some(left)
    }

    /// Notes a wrong pin.
    pub(super) fn note(&self, room: &str, now: Instant) {
        if self.most == 0 {
            return;
        }
        let mut rooms = self.rooms.lock().unwrap_or_else(PoisonError::into_inner);
        let is_old = |room: &Room| now.saturating_duration_since(room.last) >= FORGOTTEN;
        if rooms.len() >= MOST_ROOMS && !rooms.contains_key(room) {
            rooms.retain(|_, room| !is_old(room));
            // The room without wrong pins for longest makes room.
            let oldest = rooms.iter().min_by_key(|(_, room)| room.last);
            let oldest = oldest.map(|(room, _)| room.clone());
            if let Some(oldest) = oldest.filter(|_| rooms.len() >= MOST_ROOMS) {
                rooms.remove(&oldest);
            }
        }
        let known = rooms.entry(room.to_owned());
        let known = known.or_insert(Room {
            wrong: 0,
            last: now,
        });
        if is_old(known) {
            known.wrong = 0;
        }
        known.wrong = known.wrong.saturating_add(1);
        known.last = now;
        if let Some(wait) = self.wait_after(known.wrong) {
            tracing::warn!(room, wrong = known.wrong, ?wait, "callers enter wrong pins");
        }
    }

    /// Returns the wait after a number of wrong pins.
    fn wait_after(&self, wrong: u32) -> Option<Duration> {
        let more = wrong.checked_sub(self.most).filter(|_| self.most > 0)?;
        let doubled = 2_u32.checked_pow(more).unwrap_or(u32::MAX);
        Some(self.wait.saturating_mul(doubled).min(LONGEST))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_room_waits_longer_with_each_wrong_pin_and_others_do_not() {
        let pins = WrongPins::new(3, 60 * SECOND);
        let mut now = Instant::now();
        for wrong in 1..3 {
            pins.note("1", now);
            assert_eq!(pins.waits("1", now), None, "{wrong}");
        }
        for minutes in [1, 2, 4, 8, 16, 32, 60, 60] {
            pins.note("1", now);
            let wait = minutes * 60 * SECOND;
            assert_eq!(pins.waits("1", now), Some(wait));
            assert_eq!(pins.waits("2", now), None);
            now += wait;
            assert_eq!(pins.waits("1", now - SECOND), Some(SECOND));
            assert_eq!(pins.waits("1", now), None);
        }
        // A day later it is forgotten.
        now += FORGOTTEN;
        pins.note("1", now);
        assert_eq!(pins.waits("1", now), None);
    }

    #[test]
    fn memory_is_bounded_and_0_is_no_limit() {
        let (now, pins) = (Instant::now(), WrongPins::new(1, SECOND));
        for room in 0..MOST_ROOMS + 10 {
            pins.note(&room.to_string(), now);
        }
        let known = |pins: &WrongPins| pins.rooms.lock().map(|rooms| rooms.len()).unwrap_or(0);
        assert_eq!(known(&pins), MOST_ROOMS);
        let none = WrongPins::new(0, SECOND);
        none.note("1", now);
        assert_eq!((none.waits("1", now), known(&none)), (None, 0));
    }
}
