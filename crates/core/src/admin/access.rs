//! Who may use the Admin API. Guesses of the secret are slowed down.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use crate::{ApiError, LogGate, Requester, equal_in_constant_time};

/// How long the first wrong guess waits for its answer; each further one waits twice as long as the one before.
const FIRST_DELAY: Duration = Duration::from_millis(100);
/// The longest of these delays.
const MAX_DELAY: Duration = Duration::from_secs(5);
/// When answers are due so much later, guesses are not looked at any more.
const MAX_AHEAD: Duration = Duration::from_secs(10);
/// How long after its last answer a guesser is remembered.
const MEMORY: Duration = Duration::from_secs(60);

/// Lets those in who show the secret; without one, those who are trusted for where they are.
///
/// The answers to wrong guesses of a requester are due one after the other, so that guessing with many connections at once is not
/// faster. One who guesses right is answered at once, unless its address has made so many wrong guesses that they are not
/// looked at.
#[derive(Debug)]
pub(crate) struct Access {
    secret: Option<String>,
    guessers: Mutex<HashMap<Requester, Guesser>>,
    log: LogGate,
}

#[derive(Debug)]
struct Guesser {
    delay: Duration,
    /// When the last answer so far is due.
    due: Instant,
    /// The last wrong guess: who repeats it has learnt nothing new.
    last: String,
}

/// Bytes of a wrong guess that are remembered.
const MAX_GUESS: usize = 256;

impl Access {
    pub(crate) fn new(secret: Option<String>) -> Self {
        Access {
            secret,
            guessers: Mutex::default(),
            log: LogGate::default(),
        }
    }

    pub(crate) fn has_secret(&self) -> bool {
        self.secret.is_some()
    }

    /// Returns once the answer is due.
    pub(crate) async fn admit(
        &self,
        requester: Requester,
        trusted: bool,
        shown: Option<&str>,
    ) -> Result<(), ApiError> {
        let Some(secret) = &self.secret else {
            if trusted {
                return Ok(());
            }
            self.tell(
                requester,
                "without admin.secret only programs on this machine may use the Admin API, as far as \
                 server.trust_loopback is true: set admin.secret and show it",
            );
            return Err(ApiError::Unauthorized);
        };
        let Some(shown) = shown else {
            self.tell(requester, "admin_secret is missing");
            return Err(ApiError::Unauthorized);
        };
        if self.is_ahead(requester) {
            return Err(ApiError::TooManyGuesses);
        }
        if equal_in_constant_time(secret, shown) {
            return Ok(());
        }
        self.tell(requester, "admin_secret is wrong");
        let due = self.wrong(requester, shown);
        sleep_until(due).await;
        Err(ApiError::Unauthorized)
    }

    /// Forgets those who guess no more.
    pub(crate) fn forget(&self) {
        let now = Instant::now();
        self.guessers()
            .retain(|_, guesser| now.duration_since(guesser.due) < MEMORY);
    }

    fn is_ahead(&self, requester: Requester) -> bool {
        let guessers = self.guessers();
        let due = guessers.get(&requester).map(|guesser| guesser.due);
        due.is_some_and(|due| due.duration_since(Instant::now()) > MAX_AHEAD)
    }

    /// Notes a wrong guess; gives the time when its answer is due.
    fn wrong(&self, requester: Requester, shown: &str) -> Instant {
        let now = Instant::now();
        let shown: String = shown.chars().take(MAX_GUESS).collect();
        let mut guessers = self.guessers();
        let guesser = guessers.entry(requester).or_insert_with(|| Guesser {
            delay: FIRST_DELAY / 2,
            due: now,
            last: String::new(),
        });
        if guesser.last == shown {
            return now + guesser.delay;
        }
        guesser.last = shown;
        guesser.delay = guesser.delay.saturating_mul(2).min(MAX_DELAY);
        guesser.due = guesser.due.max(now) + guesser.delay;
        guesser.due
    }

    fn tell(&self, requester: Requester, why: &str) {
        if let Some(more) = self.log.open() {
            let address = requester.address();
            tracing::warn!(%address, more, "refused a request of the Admin API: {why}");
        }
    }

    fn guessers(&self) -> MutexGuard<'_, HashMap<Requester, Guesser>> {
        self.guessers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn from(last: u8) -> Requester {
        Requester::at(Ipv4Addr::new(192, 0, 2, last).into(), false)
    }

    async fn took(access: &Access, requester: Requester, shown: &str) -> Duration {
        let start = Instant::now();
        // What comes of it is looked at elsewhere.
        let _ = access.admit(requester, false, Some(shown)).await;
        start.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn wrong_guesses_wait_longer_and_longer_and_right_ones_do_not() {
        let access = Access::new(Some("s3".into()));
        let times: Vec<_> = {
            let mut times = Vec::new();
            for guess in 0..8 {
                times.push(took(&access, from(1), &guess.to_string()).await);
                assert_eq!(took(&access, from(1), "s3").await, Duration::ZERO);
            }
            times.iter().map(Duration::as_millis).collect()
        };
        assert_eq!(times, [100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000]);
        // Others are not slowed by that.
        assert_eq!(took(&access, from(2), "0").await, FIRST_DELAY);
        assert_eq!(access.admit(from(2), false, Some("s3")).await, Ok(()));
        // Nor is the same client once it has been forgotten.
        tokio::time::advance(MEMORY).await;
        access.forget();
        assert_eq!(took(&access, from(1), "0").await, FIRST_DELAY);
    }

    #[tokio::test(start_paused = true)]
    async fn guesses_at_once_are_answered_one_after_the_other_and_then_not_looked_at() {
        let access = Access::new(Some("s3".into()));
        let start = Instant::now();
        // Who does not wait for the answer has guessed all the same.
        for guess in 0..1_000 {
            let guess = guess.to_string();
            let answer = access.admit(from(1), false, Some(&guess));
            let given_up = tokio::time::timeout(Duration::ZERO, answer).await;
            if given_up == Ok(Err(ApiError::TooManyGuesses)) {
                break;
            }
        }
        let refused = access.admit(from(1), false, Some("s3")).await;
        assert_eq!(refused, Err(ApiError::TooManyGuesses));
        assert_eq!(access.admit(from(2), false, Some("s3")).await, Ok(()));
        assert!(start.elapsed() < Duration::from_secs(1));
        tokio::time::advance(MAX_AHEAD).await;
        assert_eq!(access.admit(from(1), false, Some("s3")).await, Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn who_repeats_a_wrong_secret_locks_nobody_out() {
        let access = Access::new(Some("s3".into()));
        for _ in 0..1_000 {
            let answer = access.admit(from(1), false, Some("old"));
            let _ = tokio::time::timeout(Duration::ZERO, answer).await;
        }
        assert_eq!(access.admit(from(1), false, Some("s3")).await, Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_secret_only_the_trusted_are_let_in() {
        let access = Access::new(None);
        assert_eq!(access.admit(from(1), true, None).await, Ok(()));
        let shown = access.admit(from(1), false, Some("")).await;
        assert_eq!(shown, Err(ApiError::Unauthorized));
        let access = Access::new(Some("s3".into()));
        let missing = access.admit(from(1), true, None).await;
        assert_eq!(missing, Err(ApiError::Unauthorized));
    }
}
