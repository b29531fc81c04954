//! Access to the Admin API. Guessing the secret is slow.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use portunus_config::Secret;
use portunus_core::{ApiError, LogGate, Requester, equal_in_constant_time};
use tokio::time::{Instant, sleep_until};

/// The delay of the answer to the first wrong guess. Each further delay is twice as long.
const FIRST_DELAY: Duration = Duration::from_millis(100);
/// The longest delay.
const MAX_DELAY: Duration = Duration::from_secs(5);
/// The furthest time at which an answer may be due. Further guesses are refused immediately.
const MAX_AHEAD: Duration = Duration::from_secs(10);
/// The most answers of one requester that wait at a time.
const MAX_WAITING: usize = 100;
/// The most different wrong guesses of a requester that are compared in a [`WINDOW`]. After that
/// even the secret is refused.
const MAX_COMPARED: usize = 1_000;
/// The time after which guesses are counted from 0 again.
const WINDOW: Duration = Duration::from_secs(60);
/// How long a guesser is remembered after its last answer.
const MEMORY: Duration = Duration::from_secs(60);

/// Admits requests with the secret. Without a configured secret, admits trusted requesters.
///
/// The right secret is admitted immediately, whatever others at the same address guess: behind a
/// proxy or a broker all clients are one requester. Only a flood of different guesses locks a
/// requester out until its window ends. The answers to wrong guesses are due one after the other,
/// so that guessing is slow.
#[derive(Debug)]
pub(crate) struct Access {
    secret: Option<Secret>,
    guessers: Mutex<HashMap<Requester, Guesser>>,
    /// Keys the hashes of guesses.
    hasher: RandomState,
    log: LogGate,
}

#[derive(Debug)]
struct Guesser {
    delay: Duration,
    /// When the last answer is due.
    due: Instant,
    /// Answers that are not due yet, and whose requester still waits.
    waiting: usize,
    /// When the window started.
    since: Instant,
    /// Hashes of the wrong guesses in this window. Repeating a guess reveals nothing new.
    guesses: HashSet<u64>,
}

/// A wrong guess whose answer is delayed.
struct Waiting<'a> {
    access: &'a Access,
    requester: Requester,
    due: Instant,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if let Some(guesser) = self.access.guessers().get_mut(&self.requester) {
            guesser.waiting = guesser.waiting.saturating_sub(1);
        }
    }
}

impl Access {
    pub(crate) fn new(secret: Option<Secret>) -> Self {
        Access {
            secret,
            guessers: Mutex::default(),
            hasher: RandomState::new(),
            log: LogGate::default(),
        }
    }

    pub(crate) fn has_secret(&self) -> bool {
        self.secret.is_some()
    }

    /// Decides on a request. Returns once the answer is due.
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
            self.log_refusal(
                requester,
                "without admin.secret only programs on this machine may use the Admin API, as far as \
                 server.trust_loopback is true: set admin.secret and show it",
            );
            return Err(ApiError::NoAdminSecret);
        };
        let Some(shown) = shown else {
            self.log_refusal(requester, "admin_secret is missing");
            return Err(ApiError::Unauthorized);
        };
        if self.is_flooding(requester) {
            return Err(ApiError::TooManyGuesses);
        }
        if equal_in_constant_time(secret, shown) {
            return Ok(());
        }
        self.log_refusal(requester, "admin_secret is wrong");
        let waiting = self
            .wrong(requester, shown)
            .ok_or(ApiError::TooManyGuesses)?;
        sleep_until(waiting.due).await;
        Err(ApiError::Unauthorized)
    }

    /// Forgets requesters who stopped guessing.
    pub(crate) fn forget(&self) {
        let now = Instant::now();
        self.guessers().retain(|_, guesser| {
            let last = guesser.due.max(guesser.since);
            guesser.waiting > 0 || now.duration_since(last) < MEMORY
        });
    }

    fn is_flooding(&self, requester: Requester) -> bool {
        let guessers = self.guessers();
        let guesser = guessers.get(&requester);
        guesser.is_some_and(|guesser| {
            guesser.guesses.len() >= MAX_COMPARED && guesser.since.elapsed() < WINDOW
        })
    }

    /// Notes a wrong guess. Returns `None` if too many answers wait, so that it is refused
    /// immediately.
    fn wrong(&self, requester: Requester, shown: &str) -> Option<Waiting<'_>> {
        let now = Instant::now();
        let mut guessers = self.guessers();
        let guesser = guessers.entry(requester).or_insert_with(|| Guesser {
            delay: FIRST_DELAY / 2,
            due: now,
            waiting: 0,
            since: now,
            guesses: HashSet::new(),
        });
        if now.duration_since(guesser.since) >= WINDOW {
            guesser.since = now;
            guesser.guesses.clear();
        }
        let is_new = guesser.guesses.insert(self.hasher.hash_one(shown));
        let ahead = guesser.due.duration_since(now);
        if guesser.waiting >= MAX_WAITING || (is_new && ahead > MAX_AHEAD) {
            return None;
        }
        let due = match is_new {
            true => {
                guesser.delay = guesser.delay.saturating_mul(2).min(MAX_DELAY);
                guesser.due = guesser.due.max(now) + guesser.delay;
                guesser.due
            }
            false => now + guesser.delay,
        };
        guesser.waiting = guesser.waiting.saturating_add(1);
        Some(Waiting {
            access: self,
            requester,
            due,
        })
    }

    fn log_refusal(&self, requester: Requester, why: &str) {
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
    use std::sync::Arc;

    use super::*;

    fn from(last: u8) -> Requester {
        Requester::at(Ipv4Addr::new(192, 0, 2, last).into(), false)
    }

    async fn took(access: &Access, requester: Requester, shown: &str) -> Duration {
        let start = Instant::now();
        // Another test checks the outcome.
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

    /// Guesses without waiting for the answer.
    async fn guess(access: &Access, guess: &str) -> Option<Result<(), ApiError>> {
        let answer = access.admit(from(1), false, Some(guess));
        tokio::time::timeout(Duration::ZERO, answer).await.ok()
    }

    #[tokio::test(start_paused = true)]
    async fn the_right_secret_is_let_in_whatever_others_at_its_address_guess() {
        let access = Access::new(Some("s3".into()));
        let start = Instant::now();
        let mut too_many = 0;
        for n in 0..MAX_COMPARED {
            assert_eq!(guess(&access, "s3").await, Some(Ok(())), "after {n}");
            let answered = guess(&access, &n.to_string()).await;
            too_many += usize::from(answered == Some(Err(ApiError::TooManyGuesses)));
        }
        assert!(too_many > MAX_COMPARED - 20, "{too_many}");
        assert!(start.elapsed() < Duration::from_secs(2));
        // A flood is not looked at any more, until a minute is over.
        let refused = Some(Err(ApiError::TooManyGuesses));
        assert_eq!(guess(&access, "s3").await, refused);
        assert_eq!(access.admit(from(2), false, Some("s3")).await, Ok(()));
        tokio::time::advance(WINDOW).await;
        assert_eq!(guess(&access, "s3").await, Some(Ok(())));
    }

    #[tokio::test(start_paused = true)]
    async fn few_answers_wait_at_a_time_even_to_the_same_guess() {
        let access = Arc::new(Access::new(Some("s3".into())));
        let mut answers = tokio::task::JoinSet::new();
        for _ in 0..10 * MAX_WAITING {
            let access = access.clone();
            answers.spawn(async move { access.admit(from(1), false, Some("old")).await });
        }
        let answers = answers.join_all().await;
        let waited = |answer: &&Result<(), ApiError>| **answer == Err(ApiError::Unauthorized);
        assert_eq!(answers.iter().filter(waited).count(), MAX_WAITING);
        // They hold no places for longer.
        let later = access.admit(from(1), false, Some("old")).await;
        assert_eq!(later, Err(ApiError::Unauthorized));
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
        assert_eq!(shown, Err(ApiError::NoAdminSecret));
        let access = Access::new(Some("s3".into()));
        let missing = access.admit(from(1), true, None).await;
        assert_eq!(missing, Err(ApiError::Unauthorized));
    }
}
