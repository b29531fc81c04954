//! The commands that wait for a worker.

use std::sync::{Arc, Mutex, PoisonError};

use mio::Waker;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::command::Command;
use crate::wakeup::Wakeup;

/// The commands that wait for a worker. Its length is bounded by the requests of clients: each
/// request makes a bounded number of commands, and clients wait for answers.
///
/// Senders wait for nobody. A worker that finds a command half added sleeps until it is complete.
/// If it spun instead, a worker of the real-time class would never let a sender go on that was
/// interrupted on its core: the kernel stops such a worker after 0.95 s.
#[derive(Debug)]
pub(crate) struct Inbox {
    commands: UnboundedSender<Command>,
    /// Only the worker locks it.
    waiting: Mutex<UnboundedReceiver<Command>>,
    wakeup: Arc<Wakeup>,
}

impl Inbox {
    /// Returns an empty inbox of a worker that sleeps in the poll of `waker`.
    pub(crate) fn new(waker: Waker) -> Self {
        let (commands, waiting) = unbounded_channel();
        Self {
            commands,
            waiting: Mutex::new(waiting),
            wakeup: Arc::new(Wakeup::new(waker)),
        }
    }

    /// Wakes the worker.
    pub(crate) fn wakeup(&self) -> &Arc<Wakeup> {
        &self.wakeup
    }

    /// Sends a command. A worker that is awake is not woken: it looks for commands before it
    /// sleeps.
    pub(crate) fn send(&self, command: Command) {
        // The receiver is as old as the inbox, so it is there.
        let _ = self.commands.send(command);
        self.wakeup.wake_sleeper();
    }

    /// Takes the next command.
    pub(crate) fn take(&self) -> Option<Command> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.try_recv().ok()
    }

    /// Notes that the worker is about to sleep. Returns false if it must not, because a command or
    /// something else waits for it.
    pub(crate) fn sleep(&self) -> bool {
        self.wakeup.sleep(|| {
            let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            waiting.is_empty()
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test panics")]
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;
    use std::time::{Duration, Instant};

    use mio::{Events, Poll, Token};

    use super::*;
    use crate::sys::{pin_to_core, run_first};

    /// As long as a command that nobody was woken for would wait.
    const FOR_EVER: Duration = Duration::from_secs(20);

    fn inbox() -> (Poll, Inbox) {
        let poll = Poll::new().unwrap();
        let waker = Waker::new(poll.registry(), Token(0)).unwrap();
        (poll, Inbox::new(waker))
    }

    fn is_woken(poll: &mut Poll) -> bool {
        let mut events = Events::with_capacity(1);
        poll.poll(&mut events, Some(Duration::ZERO)).unwrap();
        !events.is_empty()
    }

    #[test]
    fn a_worker_is_woken_only_while_it_sleeps() {
        let (mut poll, inbox) = inbox();
        inbox.wakeup.stay_awake();
        inbox.send(Command::Shutdown);
        assert!(!is_woken(&mut poll));
        assert!(!inbox.sleep());
        assert!(inbox.take().is_some());
        assert!(inbox.sleep());
        inbox.send(Command::Shutdown);
        assert!(is_woken(&mut poll));
    }

    #[test]
    fn who_is_needed_has_one_turn_more_before_it_sleeps() {
        let (mut poll, inbox) = inbox();
        inbox.wakeup.stay_awake();
        inbox.wakeup.need();
        assert!(!is_woken(&mut poll));
        assert!(!inbox.sleep(), "a turn more");
        inbox.wakeup.stay_awake();
        assert!(inbox.sleep());
        inbox.wakeup.need();
        assert!(is_woken(&mut poll));
        inbox.wakeup.stay_awake();
        assert!(inbox.sleep(), "it had its turn");
    }

    #[test]
    fn no_command_is_slept_through() {
        const COMMANDS: usize = 20_000;
        let (mut poll, inbox) = inbox();
        thread::scope(|threads| {
            threads.spawn(|| {
                let mut events = Events::with_capacity(1);
                let mut taken = 0;
                while taken < COMMANDS {
                    let began = Instant::now();
                    if inbox.sleep() {
                        poll.poll(&mut events, Some(FOR_EVER)).unwrap();
                    }
                    inbox.wakeup.stay_awake();
                    assert!(began.elapsed() < FOR_EVER, "{taken} of {COMMANDS}");
                    while inbox.take().is_some() {
                        taken += 1;
                    }
                }
            });
            for n in 0..COMMANDS {
                inbox.send(Command::Shutdown);
                if n % 7 == 0 {
                    thread::yield_now();
                }
            }
        });
    }

    #[test]
    fn a_worker_of_the_real_time_class_lets_a_sender_of_its_core_go_on() {
        const SENDING: Duration = Duration::from_secs(1);
        let (_poll, inbox) = inbox();
        inbox.wakeup.stay_awake();
        let is_over = AtomicBool::new(false);
        thread::scope(|threads| {
            threads.spawn(|| {
                if pin_to_core(0).is_err() || run_first(1).is_err() {
                    is_over.store(true, Ordering::Relaxed);
                    return eprintln!("SKIPPED: threads may not run in real time");
                }
                // Its turns begin in the middle of what the sender does.
                while !is_over.load(Ordering::Relaxed) {
                    while inbox.take().is_some() {}
                    thread::sleep(Duration::from_micros(100));
                }
            });
            let sender = threads.spawn(|| {
                let (began, mut longest) = (Instant::now(), Duration::ZERO);
                let is_here = pin_to_core(0).is_ok();
                while is_here && began.elapsed() < SENDING && !is_over.load(Ordering::Relaxed) {
                    let sent = Instant::now();
                    inbox.send(Command::Shutdown);
                    longest = longest.max(sent.elapsed());
                }
                is_over.store(true, Ordering::Relaxed);
                longest
            });
            let longest = sender.join().unwrap();
            assert!(longest < Duration::from_millis(700), "{longest:?}");
        });
    }
}
