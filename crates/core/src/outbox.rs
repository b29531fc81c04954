//! The outbox of a client's connection, with a bounded number of messages.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;
use tokio::sync::mpsc;

use crate::{ClientMessage, Share};

/// The most messages that wait for a connection.
pub const OUTBOX: usize = 1024;

/// Added to [`OUTBOX`] for each handle of the client's sessions: an application with thousands of
/// handles gets events of all of them at once when they join or lose packets.
pub const OUTBOX_OF_HANDLE: usize = 16;

/// A message that waits for a connection.
#[derive(Debug)]
pub struct Posted {
    /// The number of the request that it answers, see [`crate::Client::asking`].
    pub answers: Option<u64>,
    /// The message.
    pub message: ClientMessage,
    /// The client's payment until it is written.
    pub(crate) share: Share,
}

/// The messages that wait for a connection, for its transport.
#[derive(Debug)]
pub struct Outbox {
    messages: mpsc::UnboundedReceiver<Posted>,
    waiting: Arc<AtomicUsize>,
}

/// The sender's side of an outbox.
#[derive(Debug)]
pub(crate) struct OutboxSender {
    messages: mpsc::UnboundedSender<Posted>,
    waiting: Arc<AtomicUsize>,
}

/// Makes an empty outbox.
pub(crate) fn outbox() -> (OutboxSender, Outbox) {
    let (sender, messages) = mpsc::unbounded_channel();
    let waiting = Arc::<AtomicUsize>::default();
    let sender = OutboxSender {
        messages: sender,
        waiting: Arc::clone(&waiting),
    };
    (sender, Outbox { messages, waiting })
}

impl Posted {
    /// Returns the serialized message and its payment, which the transport drops after writing.
    pub fn into_text(self) -> (String, Share) {
        (self.message.into_text(), self.share)
    }
}

impl OutboxSender {
    /// Adds a message for a client with so many handles. Returns false if it is full, or the
    /// transport is gone.
    pub(crate) fn push(&self, message: Posted, handles: usize) -> bool {
        let room = OUTBOX.saturating_add(handles.saturating_mul(OUTBOX_OF_HANDLE));
        if self.waiting.load(Ordering::Relaxed) >= room {
            return false;
        }
        // Counted before it can be taken.
        self.waiting.fetch_add(1, Ordering::Relaxed);
        self.messages.send(message).is_ok()
    }

    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }
}

impl Outbox {
    /// Returns the next message as a value, or `None` once the gateway has closed it and it is
    /// empty. Cancel safe.
    pub async fn recv(&mut self) -> Option<Value> {
        let posted = self.recv_posted().await?;
        Some(posted.message.into_value())
    }

    /// Returns the next message as a value if there is one.
    pub fn try_recv(&mut self) -> Option<Value> {
        let posted = self.try_recv_posted()?;
        Some(posted.message.into_value())
    }

    /// As [`Outbox::recv`], without conversion.
    pub async fn recv_posted(&mut self) -> Option<Posted> {
        let posted = self.messages.recv().await;
        self.taken(posted)
    }

    /// As [`Outbox::try_recv`], without conversion.
    pub fn try_recv_posted(&mut self) -> Option<Posted> {
        let posted = self.messages.try_recv().ok();
        self.taken(posted)
    }

    fn taken(&self, posted: Option<Posted>) -> Option<Posted> {
        if posted.is_some() {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
        }
        posted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn posted(message: impl Into<Value>) -> Posted {
        Posted {
            answers: None,
            message: message.into().into(),
            share: Share::default(),
        }
    }

    #[test]
    fn who_has_many_handles_may_let_more_wait() {
        let (sender, mut outbox) = outbox();
        let fill = |handles| {
            (0..)
                .take_while(|n| sender.push(posted(*n), handles))
                .count()
        };
        assert_eq!(fill(0), OUTBOX);
        assert_eq!(fill(2), 2 * OUTBOX_OF_HANDLE);
        assert!(!sender.push(posted(Value::Null), 2));
        let taken = std::iter::from_fn(|| outbox.try_recv()).count();
        assert_eq!(taken, OUTBOX + 2 * OUTBOX_OF_HANDLE);
        assert!(sender.push(posted(Value::Null), 0));
        drop(outbox);
        assert!(!sender.push(posted(Value::Null), 0), "nobody takes it");
    }
}
