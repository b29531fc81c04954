//! What a connection tells of itself: to those who use it, and to the log.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::{Arrival, BrokerCounters, Incoming};

/// States of the connection that wait to be told.
const STATES: usize = 16;

/// Between two lines of the log that say that messages are lost.
const QUIET: Duration = Duration::from_secs(1);

/// What a connection knows a message by that came.
pub(crate) type Tag = u32;

/// What waits to be told.
#[derive(Debug)]
pub(crate) struct Teller {
    /// The kind of broker, and where it is.
    broker: &'static str,
    address: String,
    /// None once nobody wants to know.
    arrivals: Option<mpsc::Sender<Arrival>>,
    waiting: VecDeque<(Arrival, Option<Tag>)>,
    counters: Arc<BrokerCounters>,
    /// It is in the log that the broker is away.
    is_away: bool,
    /// When the log last said that messages are lost, and how many are since.
    logged: Option<Instant>,
    unlogged: usize,
}

impl Teller {
    pub(crate) fn new(
        broker: &'static str,
        address: String,
        arrivals: mpsc::Sender<Arrival>,
        counters: Arc<BrokerCounters>,
    ) -> Self {
        Teller {
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

    /// How much waits.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Adds a message.
    pub(crate) fn tell(&mut self, message: Incoming, tag: Option<Tag>) {
        self.add(Arrival::Message(message), tag);
    }

    fn add(&mut self, arrival: Arrival, tag: Option<Tag>) {
        if self.arrivals.is_some() {
            self.waiting.push_back((arrival, tag));
        }
    }

    /// Another connection knows nothing of the tags of this one.
    pub(crate) fn forget_tags(&mut self) {
        for (_, tag) in &mut self.waiting {
            *tag = None;
        }
    }

    /// Tells what waits, as far as it is taken, and gives its tag; never ends if nothing waits. Cancel safe.
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

    /// The broker is there.
    pub(crate) fn connected(&mut self) {
        let (broker, address) = (self.broker, &self.address);
        tracing::info!(broker, address, "connected");
        self.is_away = false;
        self.counters.connected();
        self.tell_state(Arrival::Connected);
    }

    /// The connection is lost.
    pub(crate) fn lost(&mut self, reason: &str) {
        let (broker, address) = (self.broker, &self.address);
        tracing::warn!(
            broker,
            address,
            reason,
            "the connection is lost, and tried again"
        );
        self.is_away = true;
        self.tell_state(Arrival::Lost);
    }

    /// Another try begins.
    pub(crate) fn retrying(&mut self) {
        self.tell_state(Arrival::Retrying);
    }

    /// A try has failed. An outage is in the log once.
    pub(crate) fn failed(&mut self, code: Option<u8>, reason: String) {
        let (broker, address) = (self.broker, &self.address);
        match std::mem::replace(&mut self.is_away, true) {
            false => tracing::warn!(broker, address, reason, "not reached, and tried again"),
            true => tracing::debug!(broker, address, reason, "not reached"),
        }
        self.tell_state(Arrival::Failed { code, reason });
    }

    /// So many messages are lost, and why. The log says so once a second at most: others may be the reason.
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

    /// What nobody takes is made up for by what the connection is later.
    fn tell_state(&mut self, state: Arrival) {
        if self.waiting.len() < STATES {
            self.add(state, None);
        }
    }
}
