//! A DSP thread. It executes commands of its rooms, hands them the packets of participants, and
//! mixes each room when it is due.

use std::collections::HashMap;
use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::{Duration, Instant};

use portunus_media::{Collector, MediaPlane};
use portunus_udp::pin_to_core;
use slab::Slab;

use crate::command::{Command, RoomId};
use crate::feeds::Feeds;
use crate::grid::{Grid, Turn};
use crate::load::Load;
use crate::media_access::MediaAccess;
use crate::splitter::{Pool, Splitter};
use crate::taps::Taps;
use crate::thread_port::ThreadPort;
use crate::thread_room::ThreadRoom;

/// The limit of packets that wait for their rooms: those of some thousand participants in 20 ms.
const PACKETS: usize = 16_384;
/// The interval at which workers get packets while rooms are being mixed.
const DELIVERY: Duration = Duration::from_millis(1);
/// A thread does not help others when its own rooms are due this soon.
const SOON: Duration = Duration::from_micros(300);
/// The nice value of a thread: it goes before other threads, and after media workers. It takes
/// CAP_SYS_NICE.
const NICE: i32 = -5;

/// The parameters of a new thread.
pub(crate) struct Start {
    pub(crate) index: usize,
    pub(crate) pin: bool,
    pub(crate) port: Arc<ThreadPort>,
    pub(crate) media: MediaPlane,
    pub(crate) pool: Arc<Pool>,
    /// Starts another thread, to help this one.
    pub(crate) start_another: Box<dyn Fn() + Send>,
}

/// Starts a thread.
pub(crate) fn spawn(start: Start) -> io::Result<()> {
    let Start { index, pin, .. } = start;
    let run = move || {
        if pin && let Err(error) = pin_to_core(index) {
            tracing::warn!(thread = index, %error, "cannot pin the audio thread to a core");
        }
        if let Err(error) = rustix::process::setpriority_process(None, NICE) {
            tracing::debug!(thread = index, %error, "the audio thread has no precedence over others");
        }
        // It is set only here.
        let _ = start.port.thread.set(thread::current());
        let _ends = Ends(Arc::clone(&start.port));
        DspThread::new(start).run();
    };
    let builder = thread::Builder::new().name(format!("audio-{index}"));
    builder.spawn(run).map(drop)
}

/// Marks the end of a thread, also by a panic, so that nobody waits for it.
struct Ends(Arc<ThreadPort>);

impl Drop for Ends {
    fn drop(&mut self) {
        if thread::panicking() {
            tracing::error!("an audio thread has ended by a fault, with its rooms");
        }
        self.0.end();
    }
}

/// Runs work for one room. A panic ends only this room: the caller closes it, so that its
/// inconsistent state is not used.
fn guarded<T>(run: impl FnOnce() -> T) -> Option<T> {
    let outcome = panic::catch_unwind(AssertUnwindSafe(run));
    outcome
        .inspect_err(|_| tracing::error!("an audio room is ended: it has led to a fault"))
        .ok()
}

/// The state of a thread. Invariants:
///
/// - A room has an index as long as it exists, and its id leads to it.
/// - A room that is awake is in one phase of the grid; a sleeping room is in none.
struct DspThread {
    index: usize,
    port: Arc<ThreadPort>,
    media: MediaPlane,
    collector: Collector,
    feeds: Feeds,
    taps: Taps,
    rooms: Slab<ThreadRoom>,
    by_id: HashMap<RoomId, usize>,
    grid: Grid,
    load: Load,
    splitter: Splitter,
    start_another: Box<dyn Fn() + Send>,
}

impl DspThread {
    fn new(start: Start) -> Self {
        let Start {
            index, port, media, ..
        } = start;
        Self {
            splitter: Splitter::new(start.pool),
            start_another: start.start_another,
            collector: Collector::new(PACKETS),
            feeds: Feeds::new(&media),
            taps: Taps::default(),
            rooms: Slab::new(),
            by_id: HashMap::new(),
            grid: Grid::new(Instant::now(), index),
            load: Load::new(Arc::clone(&port.load)),
            index,
            port,
            media,
        }
    }

    /// Runs until the last room has ended, and nobody can open another.
    fn run(mut self) {
        loop {
            self.take_commands();
            if self.rooms.is_empty() && self.port.is_closing() {
                return;
            }
            match self.grid.next(Instant::now()) {
                Turn::Asleep => {
                    if !self.help() {
                        thread::park();
                    }
                }
                Turn::In(wait) => {
                    if wait < SOON || !self.help() {
                        thread::park_timeout(wait);
                    }
                }
                Turn::Due {
                    phase,
                    due,
                    skipped,
                } => {
                    if skipped > 0 {
                        self.skip(skipped);
                    }
                    self.take_packets();
                    self.mix(phase, due);
                }
            }
        }
    }

    /// Encodes a mix for another thread. Returns false if there is none.
    fn help(&mut self) -> bool {
        // A mix that fails is lost, like one that comes back too late.
        let helped = guarded(|| self.splitter.help()).unwrap_or(true);
        if helped {
            self.load.end_turn(self.feeds.overrun(), Instant::now());
        }
        helped
    }

    /// Skips frames of all rooms. Only frames with listeners are counted.
    fn skip(&mut self, frames: u64) {
        for place in self.grid.rooms() {
            if let Some(room) = self.rooms.get_mut(place) {
                room.skip(frames);
                if room.is_heard() {
                    self.load.skipped(frames);
                }
            }
        }
        self.load.log_late(self.index);
    }

    fn take_commands(&mut self) {
        while let Some((id, command)) = self.port.commands.pop() {
            self.take_command(id, command);
        }
    }

    fn take_command(&mut self, id: RoomId, command: Command) {
        match command {
            Command::Open {
                options,
                clocks,
                events,
            } => {
                let place = self.rooms.insert(ThreadRoom::new(options, clocks, events));
                self.by_id.insert(id, place);
                self.wake(place);
                return;
            }
            Command::Close => {
                self.close(id, false);
                return;
            }
            #[cfg(test)]
            #[allow(clippy::panic, reason = "a test asks for this fault")]
            Command::Fault { of_thread: true } => panic!("a fault of the thread, for a test"),
            _ => {}
        }
        let Some(place) = self.by_id.get(&id).copied() else {
            return;
        };
        self.wake(place);
        let mut access = MediaAccess {
            media: &self.media,
            collector: &self.collector,
            feeds: &mut self.feeds,
            taps: &mut self.taps,
        };
        let mut failed = false;
        if let Some(room) = self.rooms.get_mut(place) {
            let before = room.len();
            failed = guarded(|| room.take_command(place, command, &mut access)).is_none();
            let participants = &self.port.participants;
            // Only this thread writes the counter.
            let count = participants.load(Relaxed) + room.len();
            participants.store(count.saturating_sub(before), Relaxed);
        }
        self.feeds.deliver();
        if failed {
            self.close(id, true);
        }
    }

    /// Ends a room after a fault.
    #[cold]
    fn fail(&mut self, place: usize) {
        let mut rooms = self.by_id.iter();
        if let Some(id) = rooms.find(|(_, of)| **of == place).map(|(id, _)| *id) {
            self.splitter.forget();
            self.close(id, true);
        }
    }

    /// Ends a room. The consumer of its events learns it by their end, which follows the last
    /// recording unless the room ends `by_fault`.
    fn close(&mut self, id: RoomId, by_fault: bool) {
        let place = self.by_id.remove(&id);
        let Some((place, mut room)) = place.and_then(|at| Some((at, self.rooms.try_remove(at)?)))
        else {
            return;
        };
        self.grid.remove(place);
        let participants = &self.port.participants;
        let count = participants.load(Relaxed);
        participants.store(count.saturating_sub(room.len()), Relaxed);
        self.port.rooms.fetch_sub(1, Relaxed);
        let mut access = MediaAccess {
            media: &self.media,
            collector: &self.collector,
            feeds: &mut self.feeds,
            taps: &mut self.taps,
        };
        guarded(|| room.end(&mut access, by_fault));
        self.feeds.deliver();
    }

    /// Adds a room to the grid, unless it is there.
    fn wake(&mut self, place: usize) {
        if let Some(room) = self.rooms.get_mut(place) {
            room.stay_awake();
            self.grid.add(place, Instant::now());
        }
    }

    /// Hands packets to their rooms.
    fn take_packets(&mut self) {
        // At most a full queue: later packets wait for the next time.
        for _ in 0..PACKETS {
            let Some(collected) = self.collector.take() else {
                break;
            };
            if let Some(tap) = self.taps.get(collected.key)
                && let Some(room) = self.rooms.get_mut(tap.room)
                && guarded(|| room.push(tap, &collected.packet)).is_none()
            {
                self.fail(tap.room);
            }
        }
        self.port.dropped.store(self.collector.dropped(), Relaxed);
    }

    /// Mixes the rooms of a phase, which was due at `due`.
    fn mix(&mut self, phase: usize, due: Instant) {
        let rooms = self.grid.take(phase);
        let mut delivered = Instant::now();
        let mut asleep = false;
        let mut failed = Vec::new();
        for place in &rooms {
            let Some(room) = self.rooms.get_mut(*place) else {
                continue;
            };
            let mut access = MediaAccess {
                media: &self.media,
                collector: &self.collector,
                feeds: &mut self.feeds,
                taps: &mut self.taps,
            };
            // The time is that of the grid: lateness of this thread is no jitter.
            let Some((done, helped)) = guarded(|| room.tick(due, &mut self.splitter, &mut access))
            else {
                failed.push(*place);
                continue;
            };
            asleep |= room.may_sleep();
            self.load.ticked(done, helped);
            self.load.merged(room.take_merged());
            let end = Instant::now();
            if end.saturating_duration_since(delivered) >= DELIVERY {
                self.feeds.deliver();
                delivered = end;
            }
            self.load.late(end.saturating_duration_since(due));
        }
        self.feeds.deliver();
        self.grid.put_back(phase, rooms);
        for place in failed {
            self.fail(place);
        }
        if asleep {
            let rooms = self.rooms.iter().filter(|(_, room)| room.may_sleep());
            for place in rooms.map(|(place, _)| place).collect::<Vec<_>>() {
                self.grid.remove(place);
            }
        }
        if self.splitter.take_wish() {
            (self.start_another)();
        }
        self.load.end_turn(self.feeds.overrun(), Instant::now());
    }
}
