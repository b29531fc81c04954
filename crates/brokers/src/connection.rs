//! A connection as those who use it see it, whatever the broker is.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use crate::tell::Teller;

/// Messages that a connection has taken and not given to the broker yet, beside those whose receipt the broker has not
/// confirmed.
const OUTGOING: usize = 16;

/// Arrivals that wait to be taken; beyond that nothing is read from the broker.
const ARRIVALS: usize = 64;

/// A connection to a broker; `O` is what is published by it.
#[derive(Debug)]
pub struct Connection<O> {
    publisher: Publisher<O>,
    arrivals: mpsc::Receiver<Arrival>,
}

/// What publishes. Dropped, it ends the connection once what it has taken is published.
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
    /// It was there and is no more.
    Lost,
    /// It is tried again.
    Retrying,
    /// It cannot be made now.
    Failed {
        /// The broker's own number for why, if it has given one.
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
    /// What it says.
    pub payload: Bytes,
    /// What its sender wants of an answer.
    pub reply: Reply,
}

/// What the sender of a message wants of an answer to it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reply {
    /// Where it is to go: a topic, queue or subject.
    pub to: Option<String>,
    /// What it is to carry, so that its receiver knows what it answers.
    pub correlation: Option<Bytes>,
}

/// What a connection counts.
#[derive(Debug, Default)]
pub struct BrokerCounters {
    connects: AtomicU64,
    published: AtomicU64,
    lost: AtomicU64,
}

impl BrokerCounters {
    /// How often the broker was reached.
    pub fn connects(&self) -> u64 {
        self.connects.load(Ordering::Relaxed)
    }

    /// Messages that the broker has got; of NATS, which confirms nothing, those that were handed over.
    pub fn published(&self) -> u64 {
        self.published.load(Ordering::Relaxed)
    }

    /// Messages that the broker has refused, or that were left at the end.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    pub(crate) fn connected(&self) {
        self.connects.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn has_published(&self) {
        self.published.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn has_lost(&self, count: usize) {
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        self.lost.fetch_add(count, Ordering::Relaxed);
    }
}

/// The other end of a connection: what its task works with.
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
        // Nothing is ever sent: it ends when the sender is gone.
        while self.0.changed().await.is_ok() {}
    }
}

impl<O: Send + 'static> Connection<O> {
    /// Starts what `task` makes of the other end, on the running tokio runtime.
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

    /// What it counts.
    pub fn counters(&self) -> &Arc<BrokerCounters> {
        &self.publisher.counters
    }

    /// Its two directions. Arrivals have to be taken or the receiver dropped.
    pub fn split(self) -> (Publisher<O>, mpsc::Receiver<Arrival>) {
        (self.publisher, self.arrivals)
    }
}

impl<O> Publisher<O> {
    /// Hands a message over, once the connection takes it: not while the broker is away. Cancel safe: the message is
    /// handed over or it is not.
    pub async fn publish(&self, message: O) {
        // The task takes messages for as long as this is there.
        let _ = self.outgoing.send(message).await;
    }

    /// What the connection has counted.
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

/// Waits for `work`, and passes on what there is to tell meanwhile; none if the connection is to end.
pub(crate) async fn until_stopped<O, T>(
    work: impl Future<Output = T>,
    ends: &mut Ends<O>,
    teller: &mut Teller,
) -> Option<T> {
    let mut work = pin!(work);
    loop {
        tokio::select! {
            done = &mut work => return Some(done),
            _ = teller.pass_on() => {}
            () = ends.stop.wanted() => return None,
        }
    }
}
