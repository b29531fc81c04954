//! The connected subscribers.

use std::time::Duration;

use bytes::Bytes;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::wire::{self, Framing, WireError};
use crate::batch::Batch;
use crate::stream::Stream;
use crate::tally::Tally;

/// Subscribers at a time.
const MOST: usize = 64;

/// The limit of messages in a subscriber's queue. Beyond that, this subscriber misses some.
const WAITING: usize = 16;

/// The timeout for the present subscribers at the end.
const END: Duration = Duration::from_secs(1);

/// All who listen.
pub(super) struct Subscribers {
    framing: Framing,
    all: Vec<Sender<Bytes>>,
    tasks: JoinSet<()>,
}

impl Subscribers {
    pub(super) fn new(framing: Framing) -> Self {
        Subscribers {
            framing,
            all: Vec::new(),
            tasks: JoinSet::new(),
        }
    }

    /// Adds a connection, which may prove not to be a subscriber.
    pub(super) fn add(&mut self, stream: Box<dyn Stream>) {
        self.all.retain(|subscriber| !subscriber.is_closed());
        while self.tasks.try_join_next().is_some() {}
        if self.all.len() >= MOST {
            tracing::warn!("a nanomsg subscriber is refused: there are {MOST} already");
            return;
        }
        let (subscriber, messages) = channel(WAITING);
        self.all.push(subscriber);
        let framing = self.framing;
        self.tasks.spawn(async move {
            if let Err(error) = serve(stream, framing, messages).await {
                tracing::debug!(%error, "a nanomsg subscriber is gone");
            }
        });
    }

    /// Hands a batch to all.
    pub(super) fn send(&mut self, batch: &Batch, tally: &Tally) {
        self.all.retain(|subscriber| !subscriber.is_closed());
        for subscriber in &self.all {
            match subscriber.try_send(batch.body.clone()) {
                Ok(()) => tally.sent(batch.events),
                Err(_) => tally.lost(batch.events),
            }
        }
    }

    /// Lets them have what waits.
    pub(super) async fn end(mut self) {
        self.all.clear();
        let all = async { while self.tasks.join_next().await.is_some() {} };
        let _ = timeout(END, all).await;
    }
}

/// Sends messages until there are no more, or the connection fails.
async fn serve(
    mut stream: Box<dyn Stream>,
    framing: Framing,
    mut messages: Receiver<Bytes>,
) -> Result<(), WireError> {
    wire::greet(&mut *stream).await?;
    loop {
        let message = tokio::select! {
            message = messages.recv() => message,
            error = wire::gone(&mut *stream) => return Err(error),
        };
        match message {
            Some(message) => wire::send(&mut *stream, framing, &message).await?,
            None => return Ok(()),
        }
    }
}
