//! A connection to any broker, for its users.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bytes::Bytes;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

/// The limit of messages that a connection has accepted and not sent, besides those that the broker
/// has not confirmed.
const OUTGOING: usize = 16;

/// The limit of arrivals in the queue. Nothing is read from the broker while it is full.
const ARRIVALS: usize = 64;

/// A connection to a broker. `O` is the type of published messages.
#[derive(Debug)]
pub struct Connection<O> {
    publisher: Publisher<O>,
    arrivals: mpsc::Receiver<Arrival>,
}

/// The publishing end of a connection. Dropping it ends the connection once all accepted messages
/// are published.
#[derive(Debug)]
pub struct Publisher<O> {
    outgoing: mpsc::Sender<O>,
    stop: watch::Sender<()>,
    task: JoinHandle<()>,
    counters: Arc<BrokerCounters>,
}

/// Something that comes from a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Arrival {
    /// It is there.
    Connected,
    /// The connection is lost.
    Lost,
    /// It is tried again.
    Retrying,
    /// It cannot be made now.
    Failed {
        /// The broker's error code, if it sent one.
        code: Option<u8>,
        /// Why, for people.
        reason: String,
    },
    /// A message.
    Message(Incoming),
}

/// A message that came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Incoming {
    /// By which of the subscriptions, counted from 0 in the order in which they were given.
    pub subscription: usize,
    /// The content.
    pub payload: Bytes,
    /// The wanted answer.
    pub reply: Reply,
}

/// The answer that the sender of a message wants.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reply {
    /// Its destination: a topic, queue or subject.
    pub to: Option<String>,
    /// The data by which its receiver recognizes it.
    pub correlation: Option<Bytes>,
}

/// The counters of a connection.
#[derive(Debug, Default)]
pub struct BrokerCounters {
    connects: AtomicU64,
    is_connected: AtomicBool,
    published: AtomicU64,
    lost: AtomicU64,
}

impl BrokerCounters {
    /// Returns the number of successful connects.
    pub fn connects(&self) -> u64 {
        self.connects.load(Ordering::Relaxed)
    }

    /// Returns whether the broker is connected now.
    pub fn is_connected(&self) -> bool {
        self.is_connected.load(Ordering::Relaxed)
    }

    /// Returns the number of messages that the broker confirmed; with NATS, which confirms nothing,
    /// of those sent.
    pub fn published(&self) -> u64 {
        self.published.load(Ordering::Relaxed)
    }

    /// Returns the number of messages that the broker refused, or that were left at the end.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    pub(crate) fn connected(&self) {
        self.connects.fetch_add(1, Ordering::Relaxed);
        self.is_connected.store(true, Ordering::Relaxed);
    }

    pub(crate) fn disconnected(&self) {
        self.is_connected.store(false, Ordering::Relaxed);
    }

    pub(crate) fn has_published(&self) {
        self.published.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn has_lost(&self, count: usize) {
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        self.lost.fetch_add(count, Ordering::Relaxed);
    }
}

/// The task's ends of a connection.
#[derive(Debug)]
pub(crate) struct Ends<O> {
    pub(crate) outgoing: mpsc::Receiver<O>,
    pub(crate) arrivals: mpsc::Sender<Arrival>,
    pub(crate) stop: Stop,
    pub(crate) counters: Arc<BrokerCounters>,
}

/// Says when the connection is to end.
#[derive(Debug)]
pub(crate) struct Stop(watch::Receiver<()>);

impl Stop {
    /// Ends when the connection is to end. Cancel safe.
    pub(crate) async fn wanted(&mut self) {
        // Nothing is ever sent. It ends when the sender is gone.
        while self.0.changed().await.is_ok() {}
    }
}

impl<O: Send + 'static> Connection<O> {
    /// Starts `task` with the other ends, on the running tokio runtime.
    pub(crate) fn start<F>(task: impl FnOnce(Ends<O>) -> F) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (sender, outgoing) = mpsc::channel(OUTGOING);
        let (told, arrivals) = mpsc::channel(ARRIVALS);
        let (stop, stopped) = watch::channel(());
        let counters = Arc::<BrokerCounters>::default();
        let ends = Ends {
            outgoing,
            arrivals: told,
            stop: Stop(stopped),
            counters: counters.clone(),
        };
        let publisher = Publisher {
            outgoing: sender,
            stop,
            task: tokio::spawn(task(ends)),
            counters,
        };
        Connection {
            publisher,
            arrivals,
        }
    }

    /// Returns its counters.
    pub fn counters(&self) -> &Arc<BrokerCounters> {
        &self.publisher.counters
    }

    /// Returns its two directions. The caller has to take arrivals or drop the receiver.
    pub fn split(self) -> (Publisher<O>, mpsc::Receiver<Arrival>) {
        (self.publisher, self.arrivals)
    }
}

impl<O> Publisher<O> {
    /// Passes a message to the connection, and waits while the broker is away. Cancel safe: the
    /// message is passed or not.
    pub async fn publish(&self, message: O) {
        // The task takes messages for as long as this is there.
        let _ = self.outgoing.send(message).await;
    }

    /// Returns the connection's counters.
    pub fn counters(&self) -> &Arc<BrokerCounters> {
        &self.counters
    }

    /// Ends the connection, once all is published. If the broker is away, at once.
    pub async fn finish(self) {
        drop(self.outgoing);
        drop(self.stop);
        // A task that panicked has ended too.
        let _ = self.task.await;
    }
}
