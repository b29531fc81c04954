//! The thread that runs participants: it reads their sockets, drives their transports, and counts.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};
use portunus_udp::{Received, SendBatch, enable_timestamps, run_first};
use slab::Slab;
use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::sync::oneshot;

use super::answering::Agreed;
use super::expectations::Expectation;
use super::id::PeerId;
use super::messages::{Event, EventKind, NewPeer, Standing, Window};
use super::peer::{News, Peer};
use super::reader::{EVENTS, Extent, PASS, Reader};
use super::tally::Tally;
use super::way::{Shared, Way};
use crate::machine::wall_clock;
use crate::source::{Lateness, Sent};

/// The interval of passes over publishers' sockets, unless a frame is due sooner. Publishers
/// receive hardly anything.
const PUBLISHERS_PASS: Duration = Duration::from_millis(1);

/// The interval of passes of a thread without participants.
const IDLE_PASS: Duration = Duration::from_millis(5);

/// The longest wait for a moment between two frames, when a window is requested.
const BETWEEN_FRAMES: Duration = Duration::from_millis(35);

/// The least time between two passes of sending, so that frames that are due together leave with
/// one system call.
const SHARED_PUBLISHERS_PASS: Duration = Duration::from_micros(200);

/// The buffer for what a participant sends at once.
const SEND_BYTES: usize = 1 << 18;
const SEND_RUNS: usize = 256;

/// The participants of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Viewers,
    /// Participants of audio rooms.
    Speakers,
    Publishers,
}

/// The commands to a thread.
pub(super) enum Command {
    Source(Arc<Sent>),
    Add(Box<NewPeer>),
    Candidate(PeerId, String),
    Agree(PeerId, Agreed),
    Remove(PeerId),
    Window(oneshot::Sender<Window>),
    Starving(oneshot::Sender<Vec<PeerId>>),
    Standings(oneshot::Sender<Vec<Standing>>),
    Storm(bool),
}

/// The thread's state.
pub(super) struct Load {
    role: Role,
    poll: Poll,
    /// The shared sockets, if participants have none of their own.
    shared: Option<Shared>,
    /// Its receiver sleeps while a command is being added. That of the standard library spins: at the
    /// priority of this thread, it would take the core from a sender that was interrupted.
    commands: UnboundedReceiver<Command>,
    events: UnboundedSender<Event>,
    peers: Slab<Entry>,
    keys: HashMap<PeerId, usize>,
    timers: BinaryHeap<Reverse<(Instant, PeerId)>>,
    reader: Reader,
    out: SendBatch,
    expectation: Expectation,
    lateness: Arc<Lateness>,
    tally: Tally,
    window: Window,
    /// Participants with media now.
    with_media: u32,
    /// PeerConnections that have media.
    having_media: usize,
    /// PeerConnections that are up.
    connected: u32,
    /// Participants with a limit and with media.
    limited: u32,
    /// The time slept since the last window.
    slept: Duration,
    window_start: Instant,
    news: Vec<News>,
    /// The keys of participants to settle after a batch.
    touched: Vec<usize>,
    /// Requests for a window, and their times.
    askers: Vec<(oneshot::Sender<Window>, Instant)>,
    /// Requests for standings.
    inquirers: Vec<oneshot::Sender<Vec<Standing>>>,
}

struct Entry {
    id: PeerId,
    sources: Vec<usize>,
    stands_for: u32,
    limited: bool,
    is_connected: bool,
    has_media: bool,
    /// The packets when starving participants were last requested.
    had: u64,
    peer: Peer,
}

impl Entry {
    /// Takes a received message. Returns whether the participant needs attention.
    #[inline]
    fn take(
        &mut self,
        now: Instant,
        arrival: Received<'_>,
        tally: &mut Tally,
        window: &mut Window,
    ) -> bool {
        let (packets, bytes) = (tally.packets, tally.bytes);
        let touched = self.peer.take(self.id, now, arrival, tally);
        if self.limited {
            // The server decides what fits a limit.
            tally.sent += tally.packets - packets;
            window.limited_bytes += tally.bytes - bytes;
        }
        touched
    }
}

impl Load {
    pub(super) fn new(
        role: Role,
        shared: Option<Shared>,
        commands: UnboundedReceiver<Command>,
        events: UnboundedSender<Event>,
        lateness: Arc<Lateness>,
    ) -> io::Result<Self> {
        Ok(Self {
            role,
            reader: Reader::new(shared.is_some()),
            shared,
            poll: Poll::new()?,
            commands,
            events,
            peers: Slab::new(),
            keys: HashMap::new(),
            timers: BinaryHeap::new(),
            out: SendBatch::new(SEND_BYTES, SEND_RUNS, true),
            expectation: Expectation::default(),
            lateness,
            tally: Tally::default(),
            window: Window::default(),
            with_media: 0,
            having_media: 0,
            connected: 0,
            limited: 0,
            slept: Duration::ZERO,
            window_start: Instant::now(),
            news: Vec::new(),
            touched: Vec::new(),
            askers: Vec::new(),
            inquirers: Vec::new(),
        })
    }

    /// Runs until the control side ends.
    pub(super) fn run(&mut self) {
        if self.role != Role::Viewers {
            // Without the right, frames may be late.
            let _ = run_first(1);
        }
        let mut events = Events::with_capacity(EVENTS);
        let mut start = Instant::now();
        while self.take_commands() {
            let before = wall_clock();
            let idle = match self.shared {
                Some(_) => self.receive_shared(),
                None => {
                    // An error here is a signal. The next pass polls again.
                    let _ = self.poll.poll(&mut events, Some(Duration::ZERO));
                    for event in &events {
                        self.receive(event.token().0);
                    }
                    events.is_empty()
                }
            };
            self.pass_timers(Instant::now());
            self.leave();
            let now = Instant::now();
            self.answer(idle, now);
            self.tell_standings(before);
            let next = self.next_pass(start);
            if now < next {
                std::thread::sleep(next - now);
                let woke = Instant::now();
                self.slept += woke - now;
                start = woke;
            } else {
                start = now;
            }
        }
        for (_, entry) in &mut self.peers {
            entry.peer.close(&mut self.out);
        }
        self.leave();
    }

    /// Sends what waits for the shared sockets.
    fn leave(&mut self) {
        if let Some(shared) = &self.shared {
            self.out.flush(&*shared.sockets);
        }
    }

    /// Returns when the next pass is due, after one that started at `start`.
    fn next_pass(&self, start: Instant) -> Instant {
        match self.role {
            _ if self.peers.is_empty() => start + IDLE_PASS,
            Role::Viewers | Role::Speakers => start + PASS,
            Role::Publishers => {
                let due = self.timers.peek().map(|Reverse((at, _))| *at);
                let pass = start + PUBLISHERS_PASS;
                let due = due.map_or(pass, |due| due.min(pass));
                match self.shared {
                    Some(_) => due.max(start + SHARED_PUBLISHERS_PASS),
                    None => due,
                }
            }
        }
    }

    /// Takes all that waits in the socket of one participant.
    fn receive(&mut self, key: usize) {
        let Some(entry) = self.peers.get_mut(key) else {
            return;
        };
        let now = Instant::now();
        let mut touched = false;
        let extent = match entry.peer.reads_all() {
            true => Extent::Whole,
            false => Extent::heads(!entry.has_media),
        };
        let batch = self.reader.batch(extent);
        loop {
            // A packet that the kernel does not pass on counts as absent.
            let received = batch.receive(entry.peer.way()).unwrap_or(0);
            for arrival in batch.iter(received) {
                touched |= entry.take(now, arrival, &mut self.tally, &mut self.window);
            }
            if !batch.was_full(received) {
                break;
            }
        }
        if touched {
            self.settle(key);
        }
    }

    /// Takes what waits in the shared sockets. Returns whether there was nothing.
    fn receive_shared(&mut self) -> bool {
        let Some(shared) = &self.shared else {
            return true;
        };
        let now = Instant::now();
        let joining = self.having_media < self.peers.len();
        let idle = self.reader.shared(shared, joining, |key, arrival| {
            // Packets may still arrive for participants that have left.
            let Some(entry) = self.peers.get_mut(key) else {
                return;
            };
            if entry.take(now, arrival, &mut self.tally, &mut self.window) {
                self.touched.push(key);
            }
        });
        let mut touched = std::mem::take(&mut self.touched);
        for key in touched.drain(..) {
            self.settle(key);
        }
        self.touched = touched;
        idle
    }

    /// Sends a participant's packets, reports its events, and sets its timer.
    fn settle(&mut self, key: usize) {
        let Some(entry) = self.peers.get_mut(key) else {
            return;
        };
        entry.peer.flush(&mut self.out, &mut self.news);
        let id = entry.id;
        let mut ended = false;
        for news in self.news.drain(..) {
            let kind = match news {
                News::Connected(profile) => {
                    self.connected += u32::from(!entry.is_connected);
                    entry.is_connected = true;
                    EventKind::Connected(profile)
                }
                News::Ended(reason) => {
                    ended = true;
                    EventKind::Ended(reason)
                }
            };
            let _ = self.events.send(Event { id, kind });
        }
        let packets = entry.peer.packets();
        if packets > 0 && !entry.has_media {
            entry.has_media = true;
            self.having_media += 1;
            self.with_media += entry.stands_for;
            self.window.joined += entry.stands_for;
            self.limited += u32::from(entry.limited);
            self.expectation.join(&entry.sources, packets);
            let kind = EventKind::Media;
            let _ = self.events.send(Event { id, kind });
        }
        if ended {
            self.remove(id);
            return;
        }
        let deadline = entry.peer.poll_timeout();
        if let Some(at) = deadline
            && entry.peer.scheduled.is_none_or(|scheduled| at < scheduled)
        {
            entry.peer.scheduled = Some(at);
            self.timers.push(Reverse((at, id)));
        }
    }

    fn pass_timers(&mut self, now: Instant) {
        while let Some(Reverse((at, id))) = self.timers.peek().copied()
            && at <= now
        {
            self.timers.pop();
            let Some(key) = self.keys.get(&id).copied() else {
                continue;
            };
            let Some(entry) = self.peers.get_mut(key) else {
                continue;
            };
            if entry.peer.scheduled != Some(at) {
                continue;
            }
            entry.peer.scheduled = None;
            let (out, tally) = (&mut self.out, &mut self.tally);
            entry
                .peer
                .handle_timeout(id, now, out, tally, &self.lateness);
            self.settle(key);
        }
    }

    /// Takes commands. Returns whether the control side is still there.
    fn take_commands(&mut self) -> bool {
        loop {
            match self.commands.try_recv() {
                Ok(command) => self.obey(command),
                Err(TryRecvError::Empty) => return true,
                Err(TryRecvError::Disconnected) => return false,
            }
        }
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::Source(sent) => self.expectation.add_source(sent),
            Command::Add(new) => self.add(*new),
            Command::Candidate(id, text) => {
                let Some(key) = self.keys.get(&id).copied() else {
                    return;
                };
                if let Some(entry) = self.peers.get_mut(key) {
                    entry.peer.add_candidate(&text, Instant::now());
                    self.settle(key);
                }
            }
            Command::Agree(id, agreed) => {
                let Some(key) = self.keys.get(&id).copied() else {
                    return;
                };
                if let Some(entry) = self.peers.get_mut(key) {
                    entry.peer.agree(agreed, Instant::now());
                    self.settle(key);
                }
            }
            Command::Remove(id) => self.remove(id),
            Command::Window(reply) => self.askers.push((reply, Instant::now())),
            // A requester that is gone needs no answer.
            Command::Storm(begins) => {
                self.tally.of_veterans = begins;
                for (_, entry) in &mut self.peers {
                    entry.peer.is_veteran = begins && entry.has_media;
                }
            }
            Command::Starving(reply) => drop(reply.send(self.starving())),
            Command::Standings(reply) => self.inquirers.push(reply),
        }
    }

    fn add(&mut self, new: NewPeer) {
        let NewPeer {
            id,
            mut prepared,
            check,
            reports,
            sources,
            stands_for,
            limit_bps,
            hearing,
        } = new;
        let slot = self.peers.vacant_entry();
        let key = slot.key();
        let registry = self.poll.registry();
        let way = match (prepared.socket.take(), &mut self.shared) {
            (Some(socket), _) => {
                if check {
                    // Without it, the time of reading is used, which is later.
                    enable_timestamps(&socket);
                }
                let fd = socket.as_raw_fd();
                let token = Token(key);
                registry
                    .register(&mut SourceFd(&fd), token, Interest::READABLE)
                    .map(|()| Way::Own(socket))
            }
            (None, Some(shared)) => {
                let address = prepared.address.ip();
                shared.assign(address, Some(key));
                Ok(Way::Shared(Arc::clone(&shared.sockets), address))
            }
            (None, None) => Err(io::ErrorKind::NotConnected.into()),
        };
        let way = match way {
            Ok(way) => way,
            Err(error) => {
                let reason = format!("its socket cannot be polled: {error}");
                let kind = EventKind::Ended(reason);
                return drop(self.events.send(Event { id, kind }));
            }
        };
        let peer = Peer::new(prepared, way, check, reports, limit_bps, hearing);
        slot.insert(Entry {
            id,
            limited: limit_bps.is_some(),
            // A participant whose packets the server may thin out expects what it receives.
            sources: if limit_bps.is_some() {
                Vec::new()
            } else {
                sources
            },
            stands_for,
            is_connected: false,
            has_media: false,
            had: 0,
            peer,
        });
        self.keys.insert(id, key);
        self.settle(key);
    }

    fn remove(&mut self, id: PeerId) {
        let Some(key) = self.keys.remove(&id) else {
            return;
        };
        let mut entry = self.peers.remove(key);
        entry.peer.close(&mut self.out);
        if let Some(shared) = &mut self.shared {
            shared.assign(entry.peer.address().ip(), None);
        }
        self.connected -= u32::from(entry.is_connected);
        if entry.has_media {
            self.having_media -= 1;
            self.with_media -= entry.stands_for;
            self.window.left += entry.stands_for;
            self.limited -= u32::from(entry.limited);
            self.expectation.leave(&entry.sources);
        }
        // Closing the socket removes it from the poll.
    }

    /// Answers requests for a window: between two frames if there is such a moment soon, so that a
    /// frame on its way counts neither as missing nor as surplus.
    fn answer(&mut self, idle: bool, now: Instant) {
        let Some((_, asked)) = self.askers.first() else {
            return;
        };
        let due = self.expectation.due() + self.tally.sent;
        let is_complete = self.tally.packets + due / 1_000 >= due;
        if idle && is_complete || now >= *asked + BETWEEN_FRAMES {
            let (reply, _) = self.askers.remove(0);
            // A requester that is gone needs no answer.
            let _ = reply.send(self.take_window());
        }
    }

    fn starving(&mut self) -> Vec<PeerId> {
        let starves = |(_, entry): (usize, &mut Entry)| {
            let packets = entry.peer.packets();
            let had = std::mem::replace(&mut entry.had, packets);
            (entry.has_media && had == packets).then_some(entry.id)
        };
        self.peers.iter_mut().filter_map(starves).collect()
    }

    /// Answers requests for standings, as of `clock`. All that had arrived then was taken, so a
    /// thread that was held up finds nobody silent.
    fn tell_standings(&mut self, clock: Duration) {
        for reply in std::mem::take(&mut self.inquirers) {
            // A requester that is gone needs no answer.
            let _ = reply.send(self.standings(clock));
        }
    }

    /// Returns what each participant with media has received.
    fn standings(&mut self, clock: Duration) -> Vec<Standing> {
        let entries = self.peers.iter_mut().map(|(_, entry)| entry);
        let of = |entry: &mut Entry| {
            let (lost, longest_wait) = entry.peer.take_checked().unzip();
            Standing {
                id: entry.id,
                packets: entry.peer.packets(),
                lost,
                longest_wait,
                silent: entry.peer.silent(clock),
            }
        };
        entries.filter(|entry| entry.has_media).map(of).collect()
    }

    fn take_window(&mut self) -> Window {
        let now = Instant::now();
        let length = now - std::mem::replace(&mut self.window_start, now);
        let slept = std::mem::take(&mut self.slept);
        let tally = self.tally.take();
        let clock = wall_clock();
        let counts = |peer: &Peer| peer.is_veteran || !tally.of_veterans;
        let peers = self.peers.iter().map(|(_, entry)| &entry.peer);
        let waiting = peers
            .filter(|peer| counts(peer))
            .filter_map(|peer| peer.silent(clock));
        let longest_gap = waiting.max().unwrap_or_default().max(tally.longest_gap);
        let window = std::mem::take(&mut self.window);
        let peers = self.peers.iter_mut();
        let of_rooms: u64 = peers.map(|(_, entry)| entry.peer.due(clock)).sum();
        Window {
            participants: self.with_media,
            peer_connections: self.connected,
            limited: self.limited,
            expected: self.expectation.take() + tally.sent + of_rooms,
            packets: tally.packets,
            bytes: tally.bytes,
            findings: tally.findings,
            heard: tally.heard,
            longest_gap,
            busy_share: 1.0 - slept.as_secs_f64() / length.as_secs_f64().max(1e-9),
            ..window
        }
    }
}
