//! Messages that were recorded with a container, on its timeline.

use std::time::Duration;

use super::source::Source;
use super::{nanos, time};
use crate::demux::{ClockPlace, Nanos};
use crate::mjr::UnixMicros;
use crate::{FileError, MediaFile};

/// Messages that are further from the container's content were not recorded with it: the clocks
/// were wrong.
const APART: Nanos = 24 * 3_600 * 1_000_000_000;

/// Messages that are read in order.
#[derive(Debug)]
pub(super) struct Messages {
    source: Source,
    line: Line,
    /// The difference between the timeline and the container's times.
    shift: Nanos,
    /// The earliest time to play.
    from: Nanos,
    /// The time of the message in `bytes`.
    next: Option<Nanos>,
    bytes: Vec<u8>,
    ended: bool,
    error: Option<FileError>,
}

impl Messages {
    /// Returns the messages of a recording that belongs to a container.
    pub(super) fn of_container(file: &MediaFile, mut source: Source) -> Result<Self, FileError> {
        let first = source.info().first_frame;
        let last = source.last_frame()?.unwrap_or_default();
        let duration = file.duration().unwrap_or_default();
        Ok(Self {
            line: Line::new(&file.clock(), duration, first, last),
            source,
            shift: 0,
            from: Nanos::MIN,
            next: None,
            bytes: Vec::new(),
            ended: false,
            error: None,
        })
    }

    /// Returns the times of the first and of the last message on the container's timeline. They may
    /// be before its start.
    pub(super) fn span(&self) -> (Nanos, Nanos) {
        (self.line.at(0), self.line.at(self.line.last))
    }

    /// Seeks to messages at `from` or later. `shift` is the difference between the timeline and the
    /// container's times.
    pub(super) fn go_to(&mut self, from: Nanos, shift: Nanos) {
        self.shift = shift;
        self.from = from;
        self.next = None;
        let to = self.line.since_first(from.saturating_sub(shift));
        self.error = self.source.go_to(time(to)).err();
        self.ended = self.error.is_some();
    }

    /// Returns when the next message is due, or `None` at the end.
    pub(super) fn peek(&mut self) -> Option<Nanos> {
        while self.next.is_none() && !self.ended {
            match self.source.read(&mut self.bytes) {
                Ok(Some(since)) => {
                    let at = self.line.at(nanos(since)).saturating_add(self.shift);
                    self.next = (at >= self.from).then_some(at);
                    // Times never go back.
                    self.from = self.from.max(at);
                }
                Ok(None) => self.ended = true,
                Err(error) => {
                    self.ended = true;
                    self.error = Some(error);
                }
            }
        }
        self.next
    }

    /// Returns the next message.
    pub(super) fn take(&mut self) -> &[u8] {
        self.next = None;
        &self.bytes
    }

    /// Returns the error that ended it early, once.
    pub(super) fn take_error(&mut self) -> Option<FileError> {
        self.error.take()
    }
}

/// The mapping of messages to a container's timeline.
#[derive(Debug)]
struct Line {
    /// The positions with a time of day, and how long after the first message they are.
    places: Vec<(Nanos, Nanos)>,
    /// The time from the first to the last message.
    last: Nanos,
}

impl Line {
    /// Returns the mapping for a container with these times of day and this duration. `last` counts
    /// from the first message.
    fn new(clock: &[ClockPlace], duration: Duration, first: UnixMicros, last: Duration) -> Self {
        let since = |clock: UnixMicros| nanos(clock.since(first)) - nanos(first.since(clock));
        let places = clock.iter().map(|place| (place.at, since(place.clock)));
        let mut places: Vec<_> = places.filter(|_| first.0 > 0).collect();
        let (last, ends) = (nanos(last), nanos(duration));
        let is_near = |(at, since): &(Nanos, Nanos)| {
            let end = since.saturating_add(ends.saturating_sub(*at));
            *since <= last.saturating_add(APART) && end.saturating_add(APART) >= 0
        };
        if !places.iter().all(is_near) || places.is_empty() {
            places = vec![(0, 0)];
        }
        Self { places, last }
    }

    /// Returns the position of a message that came so long after the first one.
    fn at(&self, since_first: Nanos) -> Nanos {
        let behind = self.place(|(_, since)| *since <= since_first);
        let next = self.places.get(behind.saturating_add(1));
        let Some((at, since)) = self.places.get(behind) else {
            return since_first;
        };
        let at = at.saturating_add(since_first.saturating_sub(*since));
        // Messages between two parts belong to the second.
        next.map_or(at, |(next, _)| at.min(*next))
    }

    /// Returns how long after the first message a position is. If several times fit, it is the
    /// earliest.
    fn since_first(&self, at: Nanos) -> Nanos {
        let behind = self.place(|(place, _)| *place < at);
        let place = self.places.get(behind);
        place.map_or(at, |(place, since)| {
            since.saturating_add(at.saturating_sub(*place))
        })
    }

    /// Returns the last position for which the condition holds, or the first one.
    fn place(&self, is_before: impl FnMut(&(Nanos, Nanos)) -> bool) -> usize {
        self.places.partition_point(is_before).saturating_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Nanos = 1_000_000_000;
    const FIRST: UnixMicros = UnixMicros(1_700_000_000_000_000);

    fn line(places: &[(Nanos, i64)]) -> Line {
        let place = |&(at, ms): &(Nanos, i64)| ClockPlace {
            at: at * SECOND,
            clock: UnixMicros(FIRST.0.saturating_add_signed(ms * 1_000)),
        };
        let clock: Vec<_> = places.iter().map(place).collect();
        Line::new(
            &clock,
            Duration::from_secs(20),
            FIRST,
            Duration::from_secs(30),
        )
    }

    #[test]
    fn messages_are_where_the_clock_says() {
        let later = line(&[(0, 1_500)]);
        assert_eq!(
            (later.at(0), later.at(2 * SECOND)),
            (-1_500_000_000, SECOND / 2)
        );
        assert_eq!(later.since_first(SECOND / 2), 2 * SECOND);
        let earlier = line(&[(0, -700)]);
        assert_eq!(earlier.at(SECOND), 1_700_000_000);
    }

    #[test]
    fn between_parts_there_is_no_time() {
        // The first part lasts 10 s, and the second one starts 5 s after its end.
        let parts = line(&[(0, 0), (10, 15_000)]);
        let at = |seconds: Nanos| parts.at(seconds * SECOND) / SECOND;
        assert_eq!([9, 10, 12, 15, 16, 25].map(at), [9, 10, 10, 10, 11, 20]);
        let since = |seconds: Nanos| parts.since_first(seconds * SECOND) / SECOND;
        // Everything at 10 s comes after this.
        assert_eq!([9, 10, 11].map(since), [9, 10, 16]);
    }

    #[test]
    fn clocks_that_contradict_each_other_do_not_count() {
        let day = 24 * 3_600 * 1_000;
        for ms in [day + 31_000, -day - 21_000] {
            assert_eq!(line(&[(0, ms)]).at(SECOND), SECOND);
        }
        assert_eq!(line(&[(0, -day)]).at(0), day * 1_000_000);
        assert_eq!(line(&[]).at(SECOND), SECOND);
    }
}
