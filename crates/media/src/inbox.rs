//! What a worker is asked for.

use std::sync::atomic::{AtomicBool, Ordering, fence};

use crossbeam_queue::SegQueue;
use mio::Waker;

use crate::command::Command;

/// A worker's commands. The queue is lock-free; its length is bounded by what clients may ask (each
/// request of a client makes a bounded number of commands, and clients wait for answers).
#[derive(Debug)]
pub(crate) struct Inbox {
    commands: SegQueue<Command>,
    waker: Waker,
    /// The worker is at work, and looks for commands before it sleeps.
    is_attended: AtomicBool,
    /// The worker has to have another turn before it sleeps, for what is no command.
    is_needed: AtomicBool,
}

impl Inbox {
    pub(crate) fn new(waker: Waker) -> Self {
        Self {
            commands: SegQueue::new(),
            waker,
            is_attended: AtomicBool::new(false),
            is_needed: AtomicBool::new(false),
        }
    }

    /// Asks for something. A worker that is at work anyway is not woken: that would be a system call, and a turn for nothing.
    pub(crate) fn send(&self, command: Command) {
        self.commands.push(command);
        self.wake_sleeper();
    }

    /// Makes the worker have a turn for what is no command and is there already. A worker that is at work is not woken.
    pub(crate) fn need(&self) {
        self.is_needed.store(true, Ordering::Release);
        self.wake_sleeper();
    }

    fn wake_sleeper(&self) {
        // Either this sees that the worker wants to sleep, or the worker sees what there is: see [`Inbox::leave`].
        fence(Ordering::SeqCst);
        if !self.is_attended.load(Ordering::Relaxed) {
            self.wake();
        }
    }

    /// Lets the worker have a turn, for what is no command.
    pub(crate) fn wake(&self) {
        if let Err(error) = self.waker.wake() {
            tracing::error!(%error, "cannot wake a media worker");
        }
    }

    /// The next command.
    pub(crate) fn take(&self) -> Option<Command> {
        self.commands.pop()
    }

    /// The worker is about to sleep, and has to be woken for what is asked from now on. False: it must not, for something is
    /// asked for already.
    pub(crate) fn leave(&self) -> bool {
        self.is_attended.store(false, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        self.commands.is_empty() && !self.is_needed.load(Ordering::Relaxed)
    }

    /// The worker is at work until it says otherwise. It sees in this turn what it was needed for before.
    pub(crate) fn attend(&self) {
        self.is_attended.store(true, Ordering::Relaxed);
        self.is_needed.swap(false, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::thread;
    use std::time::{Duration, Instant};

    use mio::{Events, Poll, Token};

    use super::*;

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
        inbox.attend();
        inbox.send(Command::Shutdown);
        assert!(!is_woken(&mut poll));
        assert!(!inbox.leave());
        assert!(inbox.take().is_some());
        assert!(inbox.leave());
        inbox.send(Command::Shutdown);
        assert!(is_woken(&mut poll));
    }

    #[test]
    fn who_is_needed_has_one_turn_more_before_it_sleeps() {
        let (mut poll, inbox) = inbox();
        inbox.attend();
        inbox.need();
        assert!(!is_woken(&mut poll));
        assert!(!inbox.leave(), "a turn more");
        inbox.attend();
        assert!(inbox.leave());
        inbox.need();
        assert!(is_woken(&mut poll));
        inbox.attend();
        assert!(inbox.leave(), "it had its turn");
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
                    if inbox.leave() {
                        poll.poll(&mut events, Some(FOR_EVER)).unwrap();
                    }
                    inbox.attend();
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
}
