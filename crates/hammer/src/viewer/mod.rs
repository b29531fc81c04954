//! Participants with real ICE and DTLS. Each has an address or a socket of its own, and a few
//! threads run them all.

mod answering;
mod bare;
mod check;
mod count;
mod ear;
mod expectations;
mod feedback;
mod id;
mod messages;
mod peer;
mod preparation;
mod reader;
mod sender;
mod tally;
mod thread;
mod voice;
mod way;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::{io, mem};

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

pub use answering::{Agreed, Answering, Receives};
pub(crate) use bare::{Arrived, BareViewers, Counted};
pub use check::Findings;
pub use ear::{Heard, Hearing, Kept, Said};
pub use id::{PUBLISHERS, PeerId};
pub use messages::{Event, EventKind, NewPeer, Standing, Window};
pub use preparation::{Answered, Factory, Offered, PrepareError, Prepared};
pub(crate) use voice::{Speaking, Weather};

use crate::machine::Addresses;
use crate::source::{Lateness, Sent};
use thread::{Command, Load, Role};
use way::{Ports, Shared};

/// The threads that run participants. They end when this is dropped.
#[derive(Debug)]
pub struct LoadThreads {
    /// The publishers' thread, then the others.
    threads: Vec<(UnboundedSender<Command>, JoinHandle<()>)>,
    sources: Mutex<usize>,
    /// Free addresses, and the ports of each thread's sockets.
    addresses: Option<(Addresses, Vec<Ports>)>,
    given_out: AtomicU64,
    lateness: Arc<Lateness>,
}

impl LoadThreads {
    /// Starts `count` threads, and one for publishers. Events come from the channel. With
    /// `addresses`, participants share their thread's sockets. If they all `speak`, their threads
    /// have a higher priority than others.
    pub fn start(
        count: usize,
        addresses: Option<Addresses>,
        speak: bool,
    ) -> io::Result<(Self, UnboundedReceiver<Event>)> {
        let (events, receiver) = unbounded_channel();
        let lateness = Arc::<Lateness>::default();
        let mut ports = Vec::new();
        let mut start = |name: String, role| {
            let shared = addresses.map(Shared::new).transpose()?;
            ports.extend(shared.as_ref().map(Shared::ports));
            spawn(name, role, shared, events.clone(), Arc::clone(&lateness))
        };
        let publishers = ("publishers".to_owned(), Role::Publishers);
        let role = if speak { Role::Speakers } else { Role::Viewers };
        let viewers = (0..count.max(1)).map(|n| (format!("load-{n}"), role));
        let all = std::iter::once(publishers).chain(viewers);
        let threads = all.map(|(name, role)| start(name, role));
        let threads = threads.collect::<io::Result<_>>()?;
        let this = Self {
            threads,
            sources: Mutex::new(0),
            addresses: addresses.map(|addresses| (addresses, ports)),
            given_out: AtomicU64::new(0),
            lateness,
        };
        Ok((this, receiver))
    }

    /// Returns where sources record the delays of their frames, which become a part of windows.
    pub fn lateness(&self) -> Arc<Lateness> {
        Arc::clone(&self.lateness)
    }

    /// Adds a source for viewers. Returns its index.
    pub fn add_source(&self, sent: &Arc<Sent>) -> usize {
        // All threads learn the sources in the same order.
        let mut sources = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        for (thread, _) in &self.threads {
            let _ = thread.send(Command::Source(Arc::clone(sent)));
        }
        *sources += 1;
        *sources - 1
    }

    /// Returns the address of the participant that will have this id, or `None` if it needs its own
    /// socket. Participants who check packets, or report each arrival, read them whole.
    pub fn address(&self, id: PeerId, reads_all: bool) -> Option<SocketAddr> {
        let (addresses, ports) = self.addresses.as_ref()?;
        let ports = ports.get(self.thread_of(id))?;
        let n = self.given_out.fetch_add(1, Ordering::Relaxed);
        let address = addresses.nth_of(reads_all, n);
        let port = if reads_all { ports.whole } else { ports.heads };
        Some((address, port).into())
    }

    /// Runs a participant.
    pub fn add(&self, new: NewPeer) {
        self.send_command(new.id, Command::Add(Box::new(new)));
    }

    /// Passes a candidate of the server to a participant.
    pub fn add_candidate(&self, id: PeerId, candidate: String) {
        self.send_command(id, Command::Candidate(id, candidate));
    }

    /// Passes the result of a later negotiation to a participant.
    pub fn agree(&self, id: PeerId, agreed: Agreed) {
        self.send_command(id, Command::Agree(id, agreed));
    }

    /// Ends a participant.
    pub fn remove(&self, id: PeerId) {
        self.send_command(id, Command::Remove(id));
    }

    /// Returns what all participants received since the last call.
    pub async fn window(&self) -> Window {
        let mut sum = Window::default();
        for window in self.ask(Command::Window).await {
            sum.participants += window.participants;
            sum.peer_connections += window.peer_connections;
            sum.limited_bytes += window.limited_bytes;
            sum.limited += window.limited;
            sum.joined += window.joined;
            sum.left += window.left;
            sum.expected += window.expected;
            sum.packets += window.packets;
            sum.bytes += window.bytes;
            sum.findings.merge(window.findings);
            sum.heard.merge(window.heard);
            sum.longest_gap = sum.longest_gap.max(window.longest_gap);
            sum.busy_share = sum.busy_share.max(window.busy_share);
        }
        sum.late_us = self.lateness.take_us();
        sum
    }

    /// Starts or ends the restriction of the longest gap to the current participants with media.
    pub fn storm(&self, begins: bool) {
        for (thread, _) in &self.threads {
            let _ = thread.send(Command::Storm(begins));
        }
    }

    /// Returns the participants with media that received nothing since the last call.
    pub async fn starving(&self) -> Vec<PeerId> {
        let starving = self.ask(Command::Starving).await;
        starving.into_iter().flatten().collect()
    }

    /// Returns what each participant with media has received. Longest waits start anew.
    pub async fn standings(&self) -> Vec<Standing> {
        let standings = self.ask(Command::Standings).await;
        standings.into_iter().flatten().collect()
    }

    fn thread_of(&self, id: PeerId) -> usize {
        let viewers = self.threads.len().saturating_sub(1) as u64;
        match id >= PUBLISHERS {
            true => 0,
            false => 1 + id.checked_rem(viewers).unwrap_or(0) as usize,
        }
    }

    fn send_command(&self, id: PeerId, command: Command) {
        if let Some((thread, _)) = self.threads.get(self.thread_of(id)) {
            // A dead thread is noticed by the missing results.
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
    name: String,
    role: Role,
    shared: Option<Shared>,
    events: UnboundedSender<Event>,
    lateness: Arc<Lateness>,
) -> io::Result<(UnboundedSender<Command>, JoinHandle<()>)> {
    let (commands, receiver) = unbounded_channel();
    let mut load = Load::new(role, shared, receiver, events, lateness)?;
    let thread = std::thread::Builder::new()
        .name(name)
        .spawn(move || load.run())?;
    Ok((commands, thread))
}
