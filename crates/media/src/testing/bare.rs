//! A worker without a thread.
#![allow(
    clippy::expect_used,
    reason = "a test or benchmark that cannot be set up has failed"
)]

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::{Duration, Instant};

use mio::{Poll, Waker};
use portunus_rtc::streams::NtpClock;
use portunus_rtc::testing::identity;
use portunus_rtc::{LocalCandidate, StreamConfig};
use tokio::sync::mpsc;

use crate::PeerEvent;
use crate::candidates::Candidates;
use crate::inbox::Inbox;
use crate::sys::MediaSocket;
use crate::worker::{Counters, INBOX, Links, Rings, SharedLoad, Worker, WorkerParts};

/// A worker that tests drive, and its channels.
pub(crate) struct Bare {
    pub(crate) worker: Worker,
    pub(crate) inbox: Arc<Inbox>,
    /// The address of its socket.
    pub(crate) local: SocketAddr,
    pub(crate) events: mpsc::Receiver<PeerEvent>,
}

/// Returns a single worker.
pub(crate) fn bare(now: Instant) -> Bare {
    let mut all = together(1, now);
    all.pop().expect("one worker")
}

/// Returns a single worker that sends connectivity checks.
#[cfg(test)]
pub(crate) fn checking(now: Instant) -> Bare {
    let mut all = connected((1, false), false, now);
    all.pop().expect("one worker")
}

/// Returns workers that share a port and send connectivity checks.
#[cfg(test)]
pub(crate) fn sharing(count: usize, now: Instant) -> Vec<Bare> {
    connected((count, true), false, now)
}

/// Returns workers that are connected. They only answer connectivity checks.
pub(crate) fn together(count: usize, now: Instant) -> Vec<Bare> {
    connected((count, false), true, now)
}

fn connected((count, shares): (usize, bool), ice_lite: bool, now: Instant) -> Vec<Bare> {
    let polls: Vec<Poll> = (0..count).map(|_| Poll::new().expect("a poll")).collect();
    let inbox = |poll: &Poll| {
        let waker = Waker::new(poll.registry(), INBOX).expect("a waker");
        Arc::new(Inbox::new(waker))
    };
    let inboxes: Vec<Arc<Inbox>> = polls.iter().map(inbox).collect();
    let links = match shares {
        true => Links::connect(count),
        false => (0..count).map(|_| None).collect(),
    };
    let parts = polls
        .into_iter()
        .zip(Rings::connect(count).into_iter().zip(links));
    (0..)
        .zip(parts)
        .map(|(index, parts)| one_of(index, parts, (&inboxes, ice_lite), now))
        .collect()
}

fn one_of(
    index: u16,
    (poll, (rings, links)): (Poll, (Rings, Option<Links>)),
    (inboxes, ice_lite): (&[Arc<Inbox>], bool),
    now: Instant,
) -> Bare {
    let socket = MediaSocket::bind(SocketAddr::from(([127, 0, 0, 1], 0))).expect("a socket");
    let local = socket.local();
    let inbox = Arc::clone(inboxes.get(usize::from(index)).expect("an inbox"));
    let (events_in, events) = mpsc::channel(1 << 16);
    let worker = Worker::new(WorkerParts {
        index,
        socket,
        listener: None,
        most_pipes: None,
        poll,
        inboxes: inboxes.to_vec(),
        rings,
        links,
        events: events_in,
        last_stats: Arc::default(),
        identity: identity(),
        offered: Arc::new(Candidates::new(
            vec![LocalCandidate::udp(local, local)],
            false,
        )),
        turn: Arc::default(),
        ice_lite,
        bandwidth_adaptation: true,
        busy_poll: Duration::ZERO,
        streams: StreamConfig::default(),
        clock: NtpClock::new(now, Duration::ZERO),
        peer_count: Arc::new(AtomicUsize::new(0)),
        totals: Arc::new(Counters::totals()),
        load: Arc::new(SharedLoad::new()),
        ingest_count: Arc::new(AtomicUsize::new(0)),
    });
    Bare {
        worker,
        inbox,
        local,
        events,
    }
}
