//! The thread of a disk.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::{Job, PERIOD, Round, Turn, WAITING, guarded, lock};

/// The interval between turns of ending jobs.
const SOON: Duration = Duration::from_millis(5);
/// A round that takes this long is logged.
const LATE: Duration = Duration::from_secs(1);
/// The capacity of the packet buffers that is kept between rounds.
const KEPT: usize = 8_192;

#[derive(Debug)]
pub(crate) struct Thread {
    number: u64,
    inbox: Mutex<Inbox>,
    changed: Condvar,
    /// When the next round is due.
    due: Mutex<Instant>,
}

#[derive(Debug, Default)]
struct Inbox {
    jobs: Vec<Box<dyn Job>>,
    woken: bool,
}

/// Gives a job its turn. Returns whether it continues. A job with a fault is dropped.
fn take_turn(job: &mut Box<dyn Job>, round: &mut Round) -> bool {
    guarded(|| job.turn(round)) == Some(Turn::GoesOn)
}

type Threads = Arc<Mutex<HashMap<u64, Arc<Thread>>>>;

impl Thread {
    pub(super) fn start(number: u64, threads: Threads) -> io::Result<Arc<Self>> {
        let thread = Arc::new(Self {
            number,
            inbox: Mutex::default(),
            changed: Condvar::new(),
            due: Mutex::new(Instant::now() + PERIOD),
        });
        let running = Arc::clone(&thread);
        let builder = std::thread::Builder::new().name("record".to_owned());
        builder.spawn(move || running.run(&threads))?;
        Ok(thread)
    }

    pub(super) fn give(&self, job: Box<dyn Job>) {
        let mut inbox = lock(&self.inbox);
        inbox.jobs.push(job);
        inbox.woken = true;
        self.changed.notify_one();
    }

    /// Whether too many jobs wait.
    pub(super) fn is_full(&self) -> bool {
        lock(&self.inbox).jobs.len() >= WAITING
    }

    pub(super) fn wake(&self) {
        lock(&self.inbox).woken = true;
        self.changed.notify_one();
    }

    /// Returns by how much the present or next round is late.
    pub(super) fn lag(&self) -> Duration {
        lock(&self.due).elapsed()
    }

    fn run(&self, threads: &Threads) {
        let mut jobs = Vec::new();
        let mut round = Round::new(Instant::now());
        let mut is_told = false;
        // When the next full round is due.
        let mut due = round.now;
        let mut soon = false;
        loop {
            let until = if soon { round.now + SOON } else { due };
            let is_new = self.wait(until, &mut jobs);
            round.now = Instant::now();
            let is_due = round.now >= due;
            if is_due {
                due = round.now + PERIOD;
                *lock(&self.due) = due + PERIOD;
            }
            let new_from = jobs.len().saturating_sub(is_new);
            let mut index = 0;
            jobs.retain_mut(|job: &mut Box<dyn Job>| {
                let is_new = index >= new_from;
                index += 1;
                !(is_due || is_new || job.is_ending()) || take_turn(job, &mut round)
            });
            soon = jobs.iter().any(|job| job.is_ending());
            round.batch.shrink_to(KEPT);
            round.mixed.shrink_to(KEPT);
            let took = round.now.elapsed();
            if took >= LATE && !std::mem::replace(&mut is_told, true) {
                tracing::warn!(
                    disk = self.number,
                    "recordings on a disk had to wait for it for {took:?}"
                );
            }
            if jobs.is_empty() && self.retire(threads) {
                return;
            }
        }
    }

    /// Waits until `until`, or until the thread is woken. Appends new jobs, and returns their
    /// number.
    fn wait(&self, until: Instant, jobs: &mut Vec<Box<dyn Job>>) -> usize {
        let mut inbox = lock(&self.inbox);
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if inbox.woken || left.is_zero() {
                break;
            }
            let waited = self.changed.wait_timeout(inbox, left);
            inbox = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        inbox.woken = false;
        let new = inbox.jobs.len();
        jobs.append(&mut inbox.jobs);
        new
    }

    /// Ends the thread if it has no job. Afterwards nobody finds it.
    fn retire(&self, threads: &Threads) -> bool {
        let mut threads = lock(threads);
        let is_idle = lock(&self.inbox).jobs.is_empty();
        if is_idle {
            threads.remove(&self.number);
        }
        is_idle
    }
}
