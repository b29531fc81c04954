//! Keep-alives.

use std::time::Duration;

use tokio::time::Instant;

/// The methods, tried in turn until one is accepted: servers know one or both (RFC 2326 sections
/// 10.1 and 10.8).
const METHODS: [&str; 2] = ["OPTIONS", "GET_PARAMETER"];

/// The times and methods of keep-alives, and which answers belong to them. Many cameras do not
/// answer them and continue.
#[derive(Debug)]
pub(crate) struct KeepAlive {
    method: &'static str,
    /// Whether the next one has the same method: the last one was accepted, or is repeated.
    stays: bool,
    every: Duration,
    next: Instant,
    /// The number of the first keep-alive.
    first: Option<u32>,
    /// The time from which on one may be repeated.
    repeats_from: Instant,
}

impl KeepAlive {
    pub fn new(every: Duration, now: Instant) -> Self {
        let [method, _] = METHODS;
        Self {
            method,
            stays: true,
            every,
            next: now + every,
            first: None,
            repeats_from: now,
        }
    }

    /// Returns when the next one is due.
    pub fn next(&self) -> Instant {
        self.next
    }

    /// Returns the method of the one that is due.
    pub fn method(&mut self) -> &'static str {
        let [usual, other] = METHODS;
        if !std::mem::take(&mut self.stays) {
            self.method = if self.method == usual { other } else { usual };
        }
        self.method
    }

    /// Notes that the last one was accepted.
    pub fn accepted(&mut self) {
        self.stays = true;
    }

    /// Notes that one was sent with this number.
    pub fn sent(&mut self, number: u32, now: Instant) {
        self.next = now + self.every;
        self.first.get_or_insert(number);
    }

    /// Returns whether an answer with this number, or without any, is to one of them.
    pub fn is_answered_by(&self, number: Option<u32>) -> bool {
        self.first
            .is_some_and(|first| number.is_none_or(|number| number >= first))
    }

    /// Repeats one with other credentials that the server wanted, because it may count accepted
    /// ones only. After a second refusal, waits for the next one.
    pub fn repeat(&mut self, now: Instant) {
        if now >= self.repeats_from {
            self.repeats_from = now + self.every;
            self.next = now;
            self.stays = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVERY: Duration = Duration::from_secs(30);

    #[test]
    fn answers_are_told_from_those_to_earlier_requests() {
        let now = Instant::now();
        let mut alive = KeepAlive::new(EVERY, now);
        assert!(!alive.is_answered_by(None));
        for number in [5, 6] {
            alive.sent(number, now);
        }
        let numbers = [None, Some(4), Some(5), Some(6)];
        assert_eq!(
            numbers.map(|number| alive.is_answered_by(number)),
            [true, false, true, true]
        );
    }

    #[test]
    fn what_is_not_accepted_is_followed_by_the_other_method() {
        let mut alive = KeepAlive::new(EVERY, Instant::now());
        assert_eq!(
            [(); 3].map(|()| alive.method()),
            ["OPTIONS", "GET_PARAMETER", "OPTIONS"]
        );
        alive.accepted();
        assert_eq!(alive.method(), "OPTIONS");
        alive.repeat(Instant::now());
        assert_eq!(alive.method(), "OPTIONS");
        assert_eq!(alive.method(), "GET_PARAMETER");
    }

    #[test]
    fn one_with_stale_credentials_is_repeated_at_once_but_not_for_ever() {
        let start = Instant::now();
        let mut alive = KeepAlive::new(EVERY, start);
        for turn in 1..3 {
            let now = start + turn * EVERY;
            assert_eq!(alive.next(), now);
            alive.sent(5, now);
            alive.repeat(now);
            assert_eq!(alive.next(), now);
            alive.sent(6, now);
            alive.repeat(now);
            assert_eq!(alive.next(), now + EVERY);
        }
    }
}
