//! Keyframe requests to a peer: at once, but not too often, and repeated if no keyframe arrives.

use std::time::{Duration, Instant};

/// The least time between two requests for an encoding. Encoders do not answer sooner.
const APART: Duration = Duration::from_millis(300);
/// The time after which a request is repeated, since it or the keyframe may have been lost.
const REPEATED: Duration = Duration::from_secs(1);
/// The most repetitions. Keyframes cannot be recognized with end-to-end encryption.
const REPEATS: u8 = 2;

/// Requests to a peer, by m-line and encoding.
#[derive(Debug, Default)]
pub(super) struct KeyframeRequests {
    all: Vec<Request>,
}

#[derive(Debug)]
struct Request {
    of: (usize, u8),
    asked: Option<Instant>,
    due: Option<Instant>,
    repeats: u8,
}

impl KeyframeRequests {
    /// Requests a keyframe as soon as possible, and again if none arrives.
    pub(super) fn want(&mut self, of: (usize, u8), now: Instant) {
        self.add(of, REPEATS, now);
    }

    /// Requests a keyframe as soon as possible, but only once.
    pub(super) fn want_once(&mut self, of: (usize, u8), now: Instant) {
        self.add(of, 0, now);
    }

    fn add(&mut self, of: (usize, u8), repeats: u8, now: Instant) {
        let request = match self.all.iter_mut().position(|request| request.of == of) {
            Some(at) => self.all.get_mut(at),
            None => {
                self.all.push(Request {
                    of,
                    asked: None,
                    due: None,
                    repeats: 0,
                });
                self.all.last_mut()
            }
        };
        if let Some(request) = request {
            let at = request.asked.map_or(now, |asked| now.max(asked + APART));
            request.due = Some(request.due.map_or(at, |due| due.min(at)));
            request.repeats = request.repeats.max(repeats);
        }
    }

    /// Ends the request of an encoding, whose keyframe has arrived.
    pub(super) fn came(&mut self, of: (usize, u8)) {
        let request = self.all.iter_mut().find(|request| request.of == of);
        if let Some(request) = request {
            (request.due, request.repeats) = (None, 0);
        }
    }

    /// Returns when the next request is due.
    pub(super) fn next(&self) -> Option<Instant> {
        self.all.iter().filter_map(|request| request.due).min()
    }

    /// Passes the requests that are due to `ask`.
    pub(super) fn ask(&mut self, now: Instant, mut ask: impl FnMut((usize, u8)) -> Asked) {
        let due = |request: &&mut Request| request.due.is_some_and(|due| due <= now);
        for request in self.all.iter_mut().filter(due) {
            match ask(request.of) {
                Asked::Yes => {
                    request.asked = Some(now);
                    request.due = (request.repeats > 0).then(|| now + REPEATED);
                    request.repeats = request.repeats.saturating_sub(1);
                }
                Asked::NoRoom => {}
                Asked::NotThere => (request.due, request.repeats) = (None, 0),
            }
        }
    }
}

/// The result of writing a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    /// It was written.
    Yes,
    /// It has to go into the next datagram.
    NoRoom,
    /// There is no such stream.
    NotThere,
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Line {
        start: Instant,
        requests: KeyframeRequests,
    }

    impl Line {
        fn at(&self, ms: u64) -> Instant {
            self.start + Duration::from_millis(ms)
        }

        fn want(&mut self, ms: u64) {
            let now = self.at(ms);
            self.requests.want((0, 1), now);
        }

        /// Returns how many requests are due at once.
        fn asked(&mut self, ms: u64) -> usize {
            let (now, mut count) = (self.at(ms), 0);
            self.requests.ask(now, |of| {
                assert_eq!(of, (0, 1));
                count += 1;
                Asked::Yes
            });
            count
        }

        fn next_ms(&self) -> Option<u128> {
            let next = self.requests.next()?;
            Some(next.saturating_duration_since(self.start).as_millis())
        }
    }

    fn line() -> Line {
        Line {
            start: Instant::now(),
            requests: KeyframeRequests::default(),
        }
    }

    #[test]
    fn what_comes_too_soon_is_put_off_and_not_lost() {
        let mut line = line();
        line.want(0);
        line.want(0);
        assert_eq!((line.asked(0), line.asked(0)), (1, 0));
        line.requests.came((0, 1));
        assert_eq!(line.next_ms(), None);
        line.want(100);
        assert_eq!(line.next_ms(), Some(300));
        assert_eq!((line.asked(299), line.asked(300)), (0, 1));
    }

    #[test]
    fn a_keyframe_that_comes_serves_all_who_wait() {
        let mut line = line();
        line.want(0);
        line.asked(0);
        line.want(50);
        line.requests.came((0, 1));
        assert_eq!((line.next_ms(), line.asked(10_000)), (None, 0));
    }

    #[test]
    fn what_does_not_come_is_asked_for_again_but_not_for_ever() {
        let mut line = line();
        line.want(0);
        let asked: Vec<_> = (0..10_000).filter(|ms| line.asked(*ms) > 0).collect();
        assert_eq!(asked, [0, 1_000, 2_000]);
        line.want(20_000);
        assert_eq!(line.asked(20_000), 1);
        line.requests.came((0, 1));
        let now = line.at(30_000);
        line.requests.want_once((0, 1), now);
        let asked: Vec<_> = (30_000..40_000).filter(|ms| line.asked(*ms) > 0).collect();
        assert_eq!(asked, [30_000], "nobody waits for it");
    }

    #[test]
    fn without_room_it_is_still_due_and_without_a_stream_no_more() {
        let mut line = line();
        line.want(0);
        let now = line.at(0);
        line.requests.ask(now, |_| Asked::NoRoom);
        assert_eq!(line.next_ms(), Some(0));
        line.requests.ask(now, |_| Asked::NotThere);
        assert_eq!(line.next_ms(), None);
    }
}
