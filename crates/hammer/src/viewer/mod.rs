//! Participants with real ICE and DTLS: each has its own socket; a few threads run them all.

mod check;
mod count;
mod expect;
mod peer;
mod prepare;
mod send;
mod thread;

use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;
use std::{io, mem};

use portunus_srtp::Profile;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

pub use check::Findings;
pub use prepare::{Factory, Offered, PrepareError, Prepared};

use crate::source::{Lateness, Sent};
use thread::{Command, Load};

/// Tells participants apart; never used twice.
pub type PeerId = u64;

/// A participant to be run.
#[derive(Debug)]
pub struct NewPeer {
    /// Its name from now on.
    pub id: PeerId,
    /// What it is made of.
    pub prepared: Prepared,
    /// Decrypt and check all that it gets, instead of counting.
    pub check: bool,
    /// Send receiver reports.
    pub reports: bool,
    /// The source whose packets it should get: the index of a [`LoadThreads::add_source`]. None: what
    /// it gets is not expected.
    pub source: Option<usize>,
}

/// Something that happened to a participant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// To whom.
    pub id: PeerId,
    /// What.
    pub kind: EventKind,
}

/// What happened to a participant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EventKind {
    /// ICE and DTLS are done; media is protected by this profile.
    Connected(Option<Profile>),
    /// Its first media packet came.
    Media,
    /// It is over, and why. Not told of those that are removed.
    Ended(String),
}

/// What all participants got since the last window.
#[derive(Debug, Clone, Default)]
pub struct Window {
    /// Participants with media at its end.
    pub participants: u32,
    /// Participants that got their first packet in it.
    pub joined: u32,
    /// Participants with media that left in it.
    pub left: u32,
    /// Packets that should have come.
    pub expected: u64,
    /// Packets that came.
    pub packets: u64,
    /// Their UDP payload, in bytes.
    pub bytes: u64,
    /// What the decrypting participants found.
    pub findings: Findings,
    /// The longest time between two packets of one decrypting participant.
    pub longest_gap: Duration,
    /// The share of its time that the busiest load thread did not sleep, 0 to 1.
    pub busy_share: f64,
    /// How much later than they were due frames left hammer, in microseconds.
    pub late_us: Vec<f64>,
}

/// The threads that run participants. They end when this is dropped.
#[derive(Debug)]
pub struct LoadThreads {
    threads: Vec<(mpsc::Sender<Command>, JoinHandle<()>)>,
    lateness: Arc<Lateness>,
}

impl LoadThreads {
    /// Starts `count` threads; what happens comes from the channel.
    pub fn start(count: usize) -> io::Result<(Self, UnboundedReceiver<Event>)> {
        let (events, receiver) = unbounded_channel();
        let lateness = Arc::<Lateness>::default();
        let threads = (0..count.max(1)).map(|n| spawn(n, events.clone(), Arc::clone(&lateness)));
        let threads = threads.collect::<io::Result<_>>()?;
        Ok((Self { threads, lateness }, receiver))
    }

    /// Where sources note how late their frames leave: it becomes a part of windows.
    pub fn lateness(&self) -> Arc<Lateness> {
        Arc::clone(&self.lateness)
    }

    /// Adds a source that viewers may be bound to, in the order of calls from 0.
    pub fn add_source(&self, sent: &Arc<Sent>) {
        for (thread, _) in &self.threads {
            let _ = thread.send(Command::Source(Arc::clone(sent)));
        }
    }

    /// Runs a participant.
    pub fn add(&self, new: NewPeer) {
        self.tell(new.id, Command::Add(Box::new(new)));
    }

    /// Gives a participant a candidate of the server's.
    pub fn add_candidate(&self, id: PeerId, candidate: String) {
        self.tell(id, Command::Candidate(id, candidate));
    }

    /// Ends a participant.
    pub fn remove(&self, id: PeerId) {
        self.tell(id, Command::Remove(id));
    }

    /// What all participants got since the last call.
    pub async fn window(&self) -> Window {
        let mut sum = Window::default();
        for window in self.ask(Command::Window).await {
            sum.participants += window.participants;
            sum.joined += window.joined;
            sum.left += window.left;
            sum.expected += window.expected;
            sum.packets += window.packets;
            sum.bytes += window.bytes;
            sum.findings.merge(window.findings);
            sum.longest_gap = sum.longest_gap.max(window.longest_gap);
            sum.busy_share = sum.busy_share.max(window.busy_share);
        }
        sum.late_us = self.lateness.take_us();
        sum
    }

    /// Participants with media that got nothing since the last call.
    pub async fn starving(&self) -> Vec<PeerId> {
        let starving = self.ask(Command::Starving).await;
        starving.into_iter().flatten().collect()
    }

    fn tell(&self, id: PeerId, command: Command) {
        let thread = id.checked_rem(self.threads.len() as u64).unwrap_or(0);
        if let Some((thread, _)) = self.threads.get(thread as usize) {
            // A thread that has died is noticed by what does not come of it.
            let _ = thread.send(command);
        }
    }

    async fn ask<T>(&self, question: impl Fn(oneshot::Sender<T>) -> Command) -> Vec<T> {
        let mut replies = Vec::new();
        for (thread, _) in &self.threads {
            let (sender, receiver) = oneshot::channel();
            let _ = thread.send(question(sender));
            replies.push(receiver);
        }
        let mut answers = Vec::new();
        for reply in replies {
            answers.extend(reply.await);
        }
        answers
    }
}

impl Drop for LoadThreads {
    fn drop(&mut self) {
        for (commands, thread) in mem::take(&mut self.threads) {
            drop(commands);
            let _ = thread.join();
        }
    }
}

fn spawn(
    n: usize,
    events: UnboundedSender<Event>,
    lateness: Arc<Lateness>,
) -> io::Result<(mpsc::Sender<Command>, JoinHandle<()>)> {
    let (commands, receiver) = mpsc::channel();
    let mut load = Load::new(receiver, events, lateness)?;
    let thread = std::thread::Builder::new()
        .name(format!("load-{n}"))
        .spawn(move || load.run())?;
    Ok((commands, thread))
}
