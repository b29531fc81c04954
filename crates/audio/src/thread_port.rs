//! The access to an audio thread.

use std::sync::atomic::{
    AtomicBool, AtomicU64, AtomicUsize,
    Ordering::{Relaxed, SeqCst},
    fence,
};
use std::sync::{Arc, OnceLock};
use std::thread::Thread;

use crossbeam_queue::SegQueue;

use crate::command::{Command, RoomId};
use crate::load::SharedLoad;

/// The access of other threads to an audio thread: its commands and its counters.
#[derive(Debug)]
pub(crate) struct ThreadPort {
    pub(crate) commands: SegQueue<(RoomId, Command)>,
    pub(crate) rooms: AtomicUsize,
    pub(crate) participants: AtomicUsize,
    /// Packets of participants that were dropped.
    pub(crate) dropped: AtomicU64,
    pub(crate) load: Arc<SharedLoad>,
    /// Whether no more rooms are opened.
    closing: AtomicBool,
    /// Whether the thread has ended, so that commands are dropped.
    ended: AtomicBool,
    pub(crate) thread: OnceLock<Thread>,
    next_id: Arc<AtomicU64>,
}

impl ThreadPort {
    /// All threads share `next_id`.
    pub(crate) fn new(next_id: Arc<AtomicU64>) -> Self {
        Self {
            commands: SegQueue::new(),
            rooms: AtomicUsize::new(0),
            participants: AtomicUsize::new(0),
            dropped: AtomicU64::new(0),
            load: Arc::default(),
            closing: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            thread: OnceLock::new(),
            next_id,
        }
    }

    /// Tells the thread to end after its last room.
    pub(crate) fn close(&self) {
        self.closing.store(true, Relaxed);
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }

    /// Sends a command. The queue needs no bound: a request of a client makes a bounded number of
    /// commands, and clients wait for replies.
    pub(crate) fn send(&self, room: RoomId, command: Command) {
        self.commands.push((room, command));
        // Either this sees the end of the thread, or the end sees the command.
        fence(SeqCst);
        if self.has_ended() {
            self.drop_commands();
        } else if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ended.load(Relaxed)
    }

    /// Marks the thread as ended, and drops its commands with their replies.
    pub(crate) fn end(&self) {
        self.ended.store(true, Relaxed);
        fence(SeqCst);
        self.drop_commands();
    }

    fn drop_commands(&self) {
        while self.commands.pop().is_some() {}
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.closing.load(Relaxed) && self.commands.is_empty()
    }

    /// Returns a number that is used once.
    pub(crate) fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, Relaxed)
    }
}
