//! The reports of a connection, to its users and to the log.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::connection::Ends;
use crate::{Arrival, BrokerCounters, Incoming};

/// The limit of states in the queue.
const STATES: usize = 16;

/// The least time between two log lines about lost messages.
const QUIET: Duration = Duration::from_secs(1);

/// The key of a received message.
pub(crate) type Tag = u32;

/// The queue of reports.
#[derive(Debug)]
pub(crate) struct Reports {
    /// The kind of broker, and its address.
    broker: &'static str,
    address: String,
    /// `None` once nobody listens.
    arrivals: Option<mpsc::Sender<Arrival>>,
    waiting: VecDeque<(Arrival, Option<Tag>)>,
    counters: Arc<BrokerCounters>,
    /// It is in the log that the broker is away.
    is_away: bool,
    /// The time of the last log line about lost messages, and their number since then.
    logged: Option<Instant>,
    unlogged: usize,
}

impl Reports {
    pub(crate) fn new(
        broker: &'static str,
        address: String,
        arrivals: mpsc::Sender<Arrival>,
        counters: Arc<BrokerCounters>,
    ) -> Self {
        Reports {
            broker,
            address,
            arrivals: Some(arrivals),
            waiting: VecDeque::new(),
            counters,
            is_away: false,
            logged: None,
            unlogged: 0,
        }
    }

    /// Returns the length of the queue.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Adds a message.
    pub(crate) fn add_message(&mut self, message: Incoming, tag: Option<Tag>) {
        self.add(Arrival::Message(message), tag);
    }

    fn add(&mut self, arrival: Arrival, tag: Option<Tag>) {
        if self.arrivals.is_some() {
            self.waiting.push_back((arrival, tag));
        }
    }

    /// Clears all tags, because another connection does not know them.
    pub(crate) fn forget_tags(&mut self) {
        for (_, tag) in &mut self.waiting {
            *tag = None;
        }
    }

    /// Passes on the oldest report once it is accepted. Returns its tag. Never returns with an
    /// empty queue. Cancel safe.
    pub(crate) async fn pass_on(&mut self) -> Option<Tag> {
        let Some(arrivals) = self.arrivals.as_ref().filter(|_| !self.waiting.is_empty()) else {
            return std::future::pending().await;
        };
        if let Ok(permit) = arrivals.reserve().await {
            let (arrival, tag) = self.waiting.pop_front()?;
            permit.send(arrival);
            return tag;
        }
        self.arrivals = None;
        self.waiting.clear();
        None
    }

    /// Notes that the broker is connected.
    pub(crate) fn connected(&mut self) {
        let (broker, address) = (self.broker, &self.address);
        tracing::info!(broker, address, "connected");
        self.is_away = false;
        self.counters.connected();
        self.add_state(Arrival::Connected);
    }

    /// Notes that the connection is lost.
    pub(crate) fn lost(&mut self, reason: &str) {
        let (broker, address) = (self.broker, &self.address);
        tracing::warn!(
            broker,
            address,
            reason,
            "the connection is lost, and tried again"
        );
        self.is_away = true;
        self.counters.disconnected();
        self.add_state(Arrival::Lost);
    }

    /// Notes the start of another attempt.
    pub(crate) fn retrying(&mut self) {
        self.add_state(Arrival::Retrying);
    }

    /// Notes a failed attempt. An outage is logged once.
    pub(crate) fn failed(&mut self, code: Option<u8>, reason: String) {
        let (broker, address) = (self.broker, &self.address);
        match std::mem::replace(&mut self.is_away, true) {
            false => tracing::warn!(broker, address, reason, "not reached, and tried again"),
            true => tracing::debug!(broker, address, reason, "not reached"),
        }
        self.counters.disconnected();
        self.add_state(Arrival::Failed { code, reason });
    }

    /// Counts lost messages. Logs the number and a reason at most once a second; the other reasons
    /// may differ.
    pub(crate) fn dropped(&mut self, count: usize, reason: &str) {
        if count == 0 {
            return;
        }
        self.counters.has_lost(count);
        self.unlogged = self.unlogged.saturating_add(count);
        let now = Instant::now();
        if self.logged.is_none_or(|at| now.duration_since(at) >= QUIET) {
            let (broker, address) = (self.broker, &self.address);
            let count = std::mem::take(&mut self.unlogged);
            tracing::warn!(broker, address, count, reason, "messages are lost");
            self.logged = Some(now);
        }
    }

    /// Queues a state. One that finds no room is dropped, as a later one replaces it.
    fn add_state(&mut self, state: Arrival) {
        if self.waiting.len() < STATES {
            self.add(state, None);
        }
    }
}

/// Waits for `work`, and passes on reports meanwhile. Returns `None` if the connection has to end.
pub(crate) async fn until_stopped<O, T>(
    work: impl Future<Output = T>,
    ends: &mut Ends<O>,
    reports: &mut Reports,
) -> Option<T> {
    let mut work = pin!(work);
    loop {
        tokio::select! {
            done = &mut work => return Some(done),
            _ = reports.pass_on() => {}
            () = ends.stop.wanted() => return None,
        }
    }
}
