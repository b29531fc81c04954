//! Rooms that are too large for their thread: other threads help to encode their mixes.
//!
//! A thread offers the jobs of a tick, calls for help, and works on them itself. A thread without a
//! due room takes a job, and then looks after its own rooms again.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use crossbeam_queue::ArrayQueue;
use portunus_dsp::{EncodeJob, FRAME, Room};

/// The jobs of a tick that others may take. The thread does the rest itself.
const JOBS: usize = 1_024;
/// The calls for help that may wait; the oldest are dropped.
const CALLS: usize = 256;
/// The encoding time of a tick that a thread does without help.
const ALONE: Duration = Duration::from_millis(5);
/// The time that a thread with nothing left to do waits for jobs of others.
const GRACE: Duration = Duration::from_millis(10);
/// The assumed cost of a frame before it was measured.
const GUESS: Duration = Duration::from_micros(100);
/// The weight of a measurement in the next estimate: one part of this many.
const WEIGHT: u32 = 8;

/// The state that all threads share.
#[derive(Debug)]
pub(crate) struct Pool {
    /// The limit of threads.
    most: usize,
    calls: ArrayQueue<Arc<Exchange>>,
    /// The running threads, in the order of their start. Locked briefly.
    threads: Mutex<Vec<Thread>>,
}

/// The queues of a thread's jobs. Invariant: between two ticks nothing is to do.
#[derive(Debug)]
struct Exchange {
    owner: Thread,
    todo: ArrayQueue<Taken>,
    done: ArrayQueue<Taken>,
}

/// A job with the number of its tick.
type Taken = (u64, EncodeJob);

/// The help of other threads in a tick.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Helped {
    /// Mixes that others encoded.
    pub(crate) back: u64,
    /// Mixes that did not come back in time.
    pub(crate) lost: u64,
}

/// The cost of encoding a frame of a room.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cost(Duration);

impl Default for Cost {
    fn default() -> Self {
        Self(GUESS)
    }
}

impl Cost {
    /// Notes that so many frames took this time.
    fn measured(&mut self, frames: usize, time: Duration) {
        if let Some(each) = u32::try_from(frames).ok().and_then(|n| time.checked_div(n)) {
            // A thread that waited for its core did not encode meanwhile.
            let each = each.min(FRAME);
            self.0 = (self.0 * (WEIGHT - 1) + each) / WEIGHT;
        }
    }

    /// Returns the number of threads wanted for so many frames.
    fn threads(self, frames: usize) -> usize {
        let time = self.0.as_nanos() * frames as u128;
        usize::try_from(time.div_ceil(ALONE.as_nanos())).unwrap_or(usize::MAX)
    }
}

impl Pool {
    /// Returns the pool of at most `most` threads.
    pub(crate) fn new(most: usize) -> Self {
        Self {
            most,
            calls: ArrayQueue::new(CALLS),
            threads: Mutex::default(),
        }
    }

    /// Calls helpers. Threads that started last are called first, because they have least to do.
    fn call(&self, exchange: &Arc<Exchange>, helpers: usize) {
        let threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        let own = exchange.owner.id();
        let others = threads.iter().rev().filter(|thread| thread.id() != own);
        for thread in others.take(helpers) {
            // Only its own thread needs an old call, and goes on alone.
            drop(self.calls.force_push(Arc::clone(exchange)));
            thread.unpark();
        }
    }

    /// The number of running threads.
    pub(crate) fn threads(&self) -> usize {
        let threads = self.threads.lock();
        threads.unwrap_or_else(PoisonError::into_inner).len()
    }
}

/// A thread's share in the pool, both as helper and as helped.
#[derive(Debug)]
pub(crate) struct Splitter {
    pool: Arc<Pool>,
    own: Arc<Exchange>,
    tick: u64,
    jobs: Vec<EncodeJob>,
    /// The thread that it helps now.
    helping: Option<Arc<Exchange>>,
    /// Whether another thread would help.
    wants_more: bool,
}

impl Splitter {
    /// Returns the share of the current thread.
    pub(crate) fn new(pool: Arc<Pool>) -> Self {
        let owner = thread::current();
        let mut threads = pool.threads.lock().unwrap_or_else(PoisonError::into_inner);
        threads.push(owner.clone());
        drop(threads);
        let own = Exchange {
            owner,
            todo: ArrayQueue::new(JOBS),
            done: ArrayQueue::new(JOBS),
        };
        Self {
            pool,
            own: Arc::new(own),
            tick: 0,
            jobs: Vec::new(),
            helping: None,
            wants_more: false,
        }
    }

    /// Drops the rest of a tick that was broken off.
    pub(crate) fn forget(&mut self) {
        self.jobs.clear();
        while self.own.todo.pop().is_some() {}
    }

    /// Whether another thread would have helped since the last call.
    pub(crate) fn take_wish(&mut self) -> bool {
        std::mem::take(&mut self.wants_more)
    }

    /// Encodes the mixes of a room.
    pub(crate) fn encode(&mut self, room: &mut Room, cost: &mut Cost) -> Helped {
        room.take_jobs(&mut self.jobs);
        let frames = self.jobs.iter().map(EncodeJob::frames).sum();
        let threads = cost.threads(frames);
        let offered = if threads > 1 { self.offer(threads) } else { 0 };
        let mut own = Own::default();
        for job in self.jobs.drain(..) {
            own.run(job, room);
        }
        let helped = match offered {
            0 => Helped::default(),
            offered => self.finish(offered, room, &mut own),
        };
        cost.measured(own.frames, own.time);
        helped
    }

    /// Offers jobs to other threads, if there are any. Returns the number of jobs.
    fn offer(&mut self, threads: usize) -> u64 {
        let running = self.pool.threads();
        self.wants_more = threads > running && running < self.pool.most;
        if running < 2 {
            return 0;
        }
        self.tick += 1;
        // Results of an earlier tick are of no use: their mixes have other encoders.
        while self.own.done.pop().is_some() {}
        let mut offered = 0;
        while let Some(job) = self.jobs.pop() {
            if let Err((_, job)) = self.own.todo.push((self.tick, job)) {
                self.jobs.push(job);
                break;
            }
            offered += 1;
        }
        self.pool.call(&self.own, threads - 1);
        offered
    }

    /// Encodes the jobs that nobody took, and waits for the others.
    fn finish(&self, offered: u64, room: &mut Room, own: &mut Own) -> Helped {
        let (mut missing, mut helped) = (offered, Helped::default());
        let mut deadline = None;
        loop {
            while let Some((tick, job)) = self.own.done.pop() {
                if tick == self.tick {
                    room.put_back(job);
                    missing = missing.saturating_sub(1);
                    helped.back += 1;
                }
            }
            if let Some((_, job)) = self.own.todo.pop() {
                own.run(job, room);
                missing = missing.saturating_sub(1);
                continue;
            }
            let now = Instant::now();
            let deadline = *deadline.get_or_insert(now + GRACE);
            let left = deadline.saturating_duration_since(now);
            if missing == 0 || left.is_zero() {
                helped.lost = missing;
                return helped;
            }
            thread::park_timeout(left);
        }
    }

    /// Encodes a mix of another thread. Returns false if none calls for help.
    pub(crate) fn help(&mut self) -> bool {
        let Some(other) = self.helping.take().or_else(|| self.pool.calls.pop()) else {
            return false;
        };
        if let Some((tick, mut job)) = other.todo.pop() {
            job.run();
            // There is room, because there are no more results than jobs.
            let _ = other.done.push((tick, job));
            if other.todo.is_empty() {
                other.owner.unpark();
            }
            self.helping = Some(other);
        }
        true
    }
}

impl Drop for Splitter {
    fn drop(&mut self) {
        let threads = self.pool.threads.lock();
        let mut threads = threads.unwrap_or_else(PoisonError::into_inner);
        threads.retain(|thread| thread.id() != self.own.owner.id());
    }
}

/// The work of a thread on its own tick.
#[derive(Default)]
struct Own {
    frames: usize,
    time: Duration,
}

impl Own {
    fn run(&mut self, mut job: EncodeJob, room: &mut Room) {
        self.frames += job.frames();
        let began = Instant::now();
        job.run();
        self.time += began.elapsed();
        room.put_back(job);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use std::sync::atomic::{AtomicBool, Ordering};

    use portunus_dsp::{
        AnnouncementId, AnnouncementState, AudioCodec, Channels, Encoding, Format, MixId, Mixture,
        Output, ParticipantId, RoomOptions, SampleRate,
    };

    use super::*;

    const MIXES: u64 = 120;

    /// Counts packets.
    #[derive(Default)]
    struct Count(u64);

    impl Output for Count {
        fn opened(&mut self, _: MixId, _: Encoding) {}
        fn closed(&mut self, _: MixId) {}
        fn hears(&mut self, _: ParticipantId, _: Option<MixId>) {}
        fn packet(&mut self, _: MixId, _: u32, _: bool, _: &[u8]) {
            self.0 += 1;
        }
        fn talking(&mut self, _: ParticipantId, _: bool) {}
        fn sound(&mut self, _: Option<usize>, _: &[f32]) {}
        fn announcement(&mut self, _: AnnouncementId, _: AnnouncementState) {}
    }

    /// A room with many mixes: one for each group.
    fn room() -> Room {
        let format = Format {
            rate: SampleRate::Hz16000,
            channels: Channels::Mono,
        };
        let mut room = Room::new(RoomOptions {
            format,
            loudest: 0,
            groups: MIXES as usize,
        });
        for group in 0..MIXES as usize {
            let encoding = Encoding {
                codec: AudioCodec::Opus,
                bitrate: None,
                complexity: 1,
                fec: false,
                expected_loss: 0,
            };
            room.subscribe(Mixture::Group(group), encoding, true)
                .unwrap();
        }
        room
    }

    /// Runs a tick of a room. Returns the help and the number of packets.
    fn tick(room: &mut Room, splitter: &mut Splitter) -> (Helped, u64) {
        let (mut count, mut cost) = (Count::default(), Cost::default());
        room.mix(Instant::now(), &mut count);
        let helped = splitter.encode(room, &mut cost);
        room.emit(&mut count);
        (helped, count.0)
    }

    #[test]
    fn a_thread_alone_encodes_alone_and_wishes_for_another() {
        let mut splitter = Splitter::new(Arc::new(Pool::new(2)));
        assert_eq!(tick(&mut room(), &mut splitter), (Helped::default(), MIXES));
        assert!(splitter.take_wish() && !splitter.take_wish());
    }

    #[test]
    fn another_thread_helps_and_all_packets_leave() {
        let pool = Arc::new(Pool::new(2));
        let mut splitter = Splitter::new(Arc::clone(&pool));
        let ends = Arc::new(AtomicBool::new(false));
        let helper = thread::spawn({
            let (pool, ends) = (Arc::clone(&pool), Arc::clone(&ends));
            move || {
                let mut splitter = Splitter::new(pool);
                while !ends.load(Ordering::Relaxed) {
                    if !splitter.help() {
                        thread::park_timeout(Duration::from_millis(1));
                    }
                }
            }
        });
        let (mut room, mut back) = (room(), 0);
        let began = Instant::now();
        while back == 0 {
            let (helped, packets) = tick(&mut room, &mut splitter);
            assert_eq!(packets, MIXES - helped.lost);
            back += helped.back;
            // After some ticks, silence needs no encoder.
            if room.stats().ticks == 10 {
                room = self::room();
            }
            assert!(began.elapsed() < Duration::from_secs(20));
        }
        ends.store(true, Ordering::Relaxed);
        helper.join().unwrap();
    }

    #[test]
    fn what_another_thread_keeps_costs_a_packet_and_is_of_no_use_later() {
        let pool = Arc::new(Pool::new(2));
        let mut splitter = Splitter::new(Arc::clone(&pool));
        // A thread takes two jobs, and is then interrupted for long.
        let taker = thread::spawn({
            let (pool, own) = (Arc::clone(&pool), Arc::clone(&splitter.own));
            move || {
                pool.threads.lock().unwrap().push(thread::current());
                let next = || loop {
                    if let Some(job) = own.todo.pop() {
                        return job;
                    }
                    std::hint::spin_loop();
                };
                [next(), next()]
            }
        });
        while pool.threads() < 2 {
            thread::yield_now();
        }
        let mut room = room();
        let mut lost = 0;
        while lost < 2 && room.stats().ticks < 10 {
            let (helped, packets) = tick(&mut room, &mut splitter);
            assert_eq!(packets, MIXES - helped.lost);
            lost += helped.lost;
        }
        assert_eq!(lost, 2);
        for late in taker.join().unwrap() {
            splitter.own.done.push(late).unwrap();
        }
        assert_eq!(tick(&mut room, &mut splitter), (Helped::default(), MIXES));
        assert_eq!(room.stats().failed, 2);
    }

    #[test]
    fn threads_are_wanted_by_what_a_tick_costs() {
        let mut cost = Cost::default();
        assert_eq!((cost.threads(0), cost.threads(50)), (0, 1));
        assert_eq!(cost.threads(200), 4);
        for _ in 0..100 {
            cost.measured(10, Duration::from_millis(10));
        }
        assert_eq!(cost.threads(10), 2);
    }
}
