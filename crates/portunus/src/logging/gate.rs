//! A rate limit for each place in the program that logs, so that lines provoked by strangers
//! neither fill the disk nor hide other lines.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use tracing::{Event, Level, Subscriber};
use tracing_log::NormalizeEvent;
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

/// The burst of lines of a place.
const BURST: u64 = 100;
/// The ratio of the rates of ordinary lines and of warnings and errors.
const SERIOUS: u64 = 10;
/// The number of places with limits of their own. More places share the last one.
const PLACES: usize = 2_048;
/// How many places a report of lost lines names.
const NAMED: usize = 3;

/// Limits the lines of each place. Debug and trace lines have no limit.
#[derive(Debug)]
pub(super) struct Gate {
    started: Instant,
    /// Nanoseconds between two ordinary lines of a place. 0 means no limit.
    interval: AtomicU64,
    places: Box<[Place]>,
    left_out: AtomicU64,
}

/// A place in the program that logs. It has no lock, since media threads log, too.
#[derive(Debug, Default)]
struct Place {
    /// A digest of its location. 0 means unused.
    key: AtomicU64,
    name: OnceLock<Box<str>>,
    /// The theoretical arrival time of GCRA, in ns after the start.
    due: AtomicU64,
    /// Lines lost since the last report.
    left_out: AtomicU32,
}

/// Returns the nanoseconds between lines at `rate` lines per second.
fn interval(rate: u32) -> u64 {
    let interval = Duration::from_secs(1).checked_div(rate);
    interval.map_or(0, |interval| interval.as_nanos() as u64)
}

impl Gate {
    /// Allows `rate` ordinary lines per second for each place. 0 means no limit.
    pub(super) fn new(rate: u32) -> Self {
        Self {
            started: Instant::now(),
            interval: AtomicU64::new(interval(rate)),
            places: (0..PLACES).map(|_| Place::default()).collect(),
            left_out: AtomicU64::new(0),
        }
    }

    /// Changes the rate.
    pub(super) fn set_rate(&self, rate: u32) {
        self.interval.store(interval(rate), Relaxed);
    }

    /// Returns the lines lost since the start.
    pub(super) fn left_out(&self) -> u64 {
        self.left_out.load(Relaxed)
    }

    /// Returns the lines lost since the last call, and the places with most of them.
    pub(super) fn take_left_out(&self) -> (u64, String) {
        let places = self.places.iter();
        let counts = places.map(|place| (place.left_out.swap(0, Relaxed), place));
        let mut counts: Vec<_> = counts.filter(|(count, _)| *count > 0).collect();
        counts.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
        let all = counts.iter().map(|(count, _)| u64::from(*count)).sum();
        let named = counts.iter().take(NAMED).map(|(count, place)| {
            let name = place.name.get().map_or("others", |name| name);
            format!("{name} {count}")
        });
        (all, named.collect::<Vec<_>>().join(", "))
    }

    /// Whether the place `key` may log a line of `level` now. `name` returns its name.
    fn admits(
        &self,
        (key, name): (u64, impl FnOnce() -> String),
        level: Level,
        now: Duration,
    ) -> bool {
        let interval = self.interval.load(Relaxed);
        if interval == 0 || level > Level::INFO {
            return true;
        }
        let interval = match level == Level::INFO {
            true => interval,
            false => interval.saturating_mul(SERIOUS),
        };
        let Some(place) = self.place(key, name) else {
            return true;
        };
        let now = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
        let latest = now.saturating_add(interval.saturating_mul(BURST - 1));
        let next = |due: u64| (due <= latest).then(|| due.max(now).saturating_add(interval));
        let is_admitted = place.due.fetch_update(Relaxed, Relaxed, next).is_ok();
        if !is_admitted {
            self.left_out.fetch_add(1, Relaxed);
            place.left_out.fetch_add(1, Relaxed);
        }
        is_admitted
    }

    /// Returns the place with this key, and makes it if it is new.
    fn place(&self, key: u64, name: impl FnOnce() -> String) -> Option<&Place> {
        let key = key.max(1);
        let (last, own) = self.places.split_last()?;
        let first = (key % own.len().max(1) as u64) as usize;
        let (before, after) = own.split_at_checked(first)?;
        for place in after.iter().chain(before) {
            match place.key.compare_exchange(0, key, Relaxed, Relaxed) {
                Ok(_) => {
                    let _ = place.name.set(name().into());
                    return Some(place);
                }
                Err(known) if known == key => return Some(place),
                Err(_) => {}
            }
        }
        Some(last)
    }
}

/// The layer that applies a gate to all other layers.
pub(super) struct Limit(pub(super) Arc<Gate>);

impl<S: Subscriber> Layer<S> for Limit {
    fn event_enabled(&self, event: &Event<'_>, _: Context<'_, S>) -> bool {
        let Limit(gate) = self;
        let level = *event.metadata().level();
        if level > Level::INFO || gate.interval.load(Relaxed) == 0 {
            return true;
        }
        // Lines of the crate `log` share a few callsites, and have their origin in fields.
        let logged = event.normalized_metadata();
        let metadata = logged.as_ref().unwrap_or(event.metadata());
        let mut key = DefaultHasher::new();
        match &logged {
            Some(logged) => (logged.target(), logged.file(), logged.line()).hash(&mut key),
            None => metadata.callsite().hash(&mut key),
        }
        let name = || match metadata.line() {
            Some(line) => format!("{}:{line}", metadata.target()),
            None => metadata.target().to_owned(),
        };
        gate.admits((key.finish(), name), level, gate.started.elapsed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: Duration = Duration::from_secs(1);

    fn admitted(gate: &Gate, key: u64, level: Level, now: Duration, lines: u32) -> u32 {
        let name = || format!("place {key}");
        let lines = (0..lines).filter(|_| gate.admits((key, name), level, now));
        u32::try_from(lines.count()).unwrap_or(u32::MAX)
    }

    #[test]
    fn a_place_has_a_burst_and_then_its_rate() {
        let gate = Gate::new(10);
        assert_eq!(admitted(&gate, 7, Level::INFO, S, 1_000), 100);
        assert_eq!(admitted(&gate, 7, Level::INFO, S * 2, 1_000), 10);
        assert_eq!(admitted(&gate, 7, Level::INFO, S * 60, 1_000), 100);
        assert_eq!(admitted(&gate, 8, Level::WARN, S, 1_000), 100);
        assert_eq!(admitted(&gate, 8, Level::ERROR, S * 2, 1_000), 1);
        assert_eq!(gate.left_out(), 900 + 990 + 900 + 900 + 999);
    }

    #[test]
    fn a_noisy_place_hides_no_other() {
        let gate = Gate::new(10);
        assert_eq!(admitted(&gate, 7, Level::WARN, S, 100_000), 100);
        for key in 8..500 {
            assert_eq!(admitted(&gate, key, Level::INFO, S, 1), 1);
        }
        let (lines, places) = gate.take_left_out();
        assert_eq!((lines, places.as_str()), (99_900, "place 7 99900"));
        assert_eq!(gate.take_left_out(), (0, String::new()));
    }

    #[test]
    fn more_places_than_there_is_room_for_share_one() {
        let gate = Gate::new(1);
        for key in 1..10_000 {
            admitted(&gate, key, Level::INFO, S, 1);
        }
        assert_eq!(admitted(&gate, 1, Level::INFO, S, 1), 1);
        assert_eq!(admitted(&gate, 20_000, Level::INFO, S, 1), 0);
        assert!(gate.take_left_out().1.starts_with("others "));
    }

    #[test]
    fn debugging_and_no_rate_have_no_limit() {
        let gate = Gate::new(10);
        assert_eq!(admitted(&gate, 7, Level::DEBUG, S, 1_000), 1_000);
        let gate = Gate::new(0);
        assert_eq!(admitted(&gate, 7, Level::INFO, S, 1_000), 1_000);
    }

    #[test]
    fn many_threads_get_no_more_than_one() {
        let gate = Gate::new(10);
        let admitted: u32 = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8)
                .map(|_| scope.spawn(|| admitted(&gate, 7, Level::INFO, S, 1_000)))
                .collect();
            threads.into_iter().map(|it| it.join().unwrap_or(0)).sum()
        });
        assert_eq!(admitted, 100);
    }
}
