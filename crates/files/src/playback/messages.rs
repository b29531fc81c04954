//! Messages that were recorded beside a container, at their times on its time line.

use std::time::Duration;

use super::source::Source;
use super::{nanos, time};
use crate::demux::{ClockPlace, Nanos};
use crate::mjr::UnixMicros;
use crate::{FileError, MediaFile};

/// Messages that are further than this from all that is in the container were not recorded with it: clocks were not set.
const APART: Nanos = 24 * 3_600 * 1_000_000_000;

/// Messages that are read one after the other.
#[derive(Debug)]
pub(super) struct Messages {
    source: Source,
    line: Line,
    /// What is added to times of the container.
    shift: Nanos,
    /// Nothing is played that is before this.
    from: Nanos,
    /// When the message in `bytes` is due.
    next: Option<Nanos>,
    bytes: Vec<u8>,
    ended: bool,
    error: Option<FileError>,
}

impl Messages {
    /// Those of a recording of messages beside a container.
    pub(super) fn beside(file: &MediaFile, mut source: Source) -> Result<Self, FileError> {
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

    /// When the first and the last message came, on the time line of the container: before its beginning, perhaps.
    pub(super) fn span(&self) -> (Nanos, Nanos) {
        (self.line.at(0), self.line.at(self.line.last))
    }

    /// Goes on with what is due at `from` or later, if `shift` is added to times of the container.
    pub(super) fn go_to(&mut self, from: Nanos, shift: Nanos) {
        self.shift = shift;
        self.from = from;
        self.next = None;
        let to = self.line.since_first(from.saturating_sub(shift));
        self.error = self.source.go_to(time(to)).err();
        self.ended = self.error.is_some();
    }

    /// When the next message is due; nothing at the end.
    pub(super) fn peek(&mut self) -> Option<Nanos> {
        while self.next.is_none() && !self.ended {
            match self.source.read(&mut self.bytes) {
                Ok(Some(since)) => {
                    let at = self.line.at(nanos(since)).saturating_add(self.shift);
                    self.next = (at >= self.from).then_some(at);
                    // Times do not go back.
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

    /// The message that is next.
    pub(super) fn take(&mut self) -> &[u8] {
        self.next = None;
        &self.bytes
    }

    /// Why it ended before its end; it is told once.
    pub(super) fn take_error(&mut self) -> Option<FileError> {
        self.error.take()
    }
}

/// Where messages are on the time line of a container.
#[derive(Debug)]
struct Line {
    /// Places of that line, and how long after the first message they are.
    places: Vec<(Nanos, Nanos)>,
    /// How long after the first message the last one came.
    last: Nanos,
}

impl Line {
    /// Of a container that tells this of the time of day and lasts so long; `last` is since the first message.
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

    /// Where on the line a message is that came so long after the first one.
    fn at(&self, since_first: Nanos) -> Nanos {
        let behind = self.place(|(_, since)| *since <= since_first);
        let next = self.places.get(behind.saturating_add(1));
        let Some((at, since)) = self.places.get(behind) else {
            return since_first;
        };
        let at = at.saturating_add(since_first.saturating_sub(*since));
        // What came between two parts comes with the second.
        next.map_or(at, |(next, _)| at.min(*next))
    }

    /// How long after the first message whatever is at this place came; what comes before it as well is not left out.
    fn since_first(&self, at: Nanos) -> Nanos {
        let behind = self.place(|(place, _)| *place < at);
        let place = self.places.get(behind);
        place.map_or(at, |(place, since)| {
            since.saturating_add(at.saturating_sub(*place))
        })
    }

    /// The last place of which this is so; the first one if there is none.
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
        // The first lasts 10 s, and 5 s after its end the second one begins.
        let parts = line(&[(0, 0), (10, 15_000)]);
        let at = |seconds: Nanos| parts.at(seconds * SECOND) / SECOND;
        assert_eq!([9, 10, 12, 15, 16, 25].map(at), [9, 10, 10, 10, 11, 20]);
        let since = |seconds: Nanos| parts.since_first(seconds * SECOND) / SECOND;
        // All that is played at 10 s is behind this.
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
