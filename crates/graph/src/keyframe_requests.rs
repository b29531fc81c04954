//! Keyframe requests of many viewers, merged into few for their source.

use std::time::{Duration, Instant};

use super::ENCODINGS;

/// Keyframe requests to a source: those to pass on, and when the last ones were passed to another
/// worker. Requests of many viewers at once are merged.
#[derive(Debug, Default)]
pub struct KeyframeRequests {
    wanted: [bool; ENCODINGS],
    last: [Option<Instant>; ENCODINGS],
}

impl KeyframeRequests {
    /// Less than a keyframe takes to arrive.
    const APART: Duration = Duration::from_millis(2);

    /// Adds a request. Returns whether it is the first one.
    #[inline]
    pub fn want(&mut self, encoding: u8) -> bool {
        let wanted = self.wanted.get_mut(usize::from(encoding));
        wanted.is_some_and(|wanted| !std::mem::replace(wanted, true))
    }

    /// Removes the request, to pass it on. Returns whether there was one.
    #[inline]
    pub fn take(&mut self, encoding: u8) -> bool {
        let wanted = self.wanted.get_mut(usize::from(encoding));
        wanted.is_some_and(std::mem::take)
    }

    /// Whether a request may be passed on now, as none was passed a moment ago.
    #[inline]
    pub fn ask(&mut self, encoding: u8, now: Instant) -> bool {
        let Some(last) = self.last.get_mut(usize::from(encoding)) else {
            return false;
        };
        if last.is_some_and(|last| now.saturating_duration_since(last) < Self::APART) {
            return false;
        }
        *last = Some(now);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_keyframe_that_many_want_is_wanted_once() {
        let mut requests = KeyframeRequests::default();
        assert!(requests.want(1) && !requests.want(1) && requests.want(0));
        assert!(!requests.want(9), "there is none");
        assert!(requests.take(1) && !requests.take(1) && !requests.take(2));
        assert!(requests.want(1));
    }

    #[test]
    fn keyframe_requests_are_merged() {
        let start = Instant::now();
        let mut requests = KeyframeRequests::default();
        let mut ask = |encoding, us| {
            let now = start + Duration::from_micros(us);
            requests.ask(encoding, now)
        };
        assert!(ask(0, 0));
        assert!(!ask(0, 1_999));
        assert!(ask(1, 1_999));
        assert!(ask(0, 2_000));
        assert!(!ask(9, 2_000));
    }
}
