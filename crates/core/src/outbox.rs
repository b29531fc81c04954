//! What waits for a client's connection: in order, and no more than the client has a use for.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;
use tokio::sync::mpsc;

use crate::{ClientMessage, Share};

/// Messages that wait for a connection at most.
pub const OUTBOX: usize = 1024;

/// So many more for each handle of the client's sessions: an application that has thousands gets events of all
/// of them at once when they all join or lose packets.
pub const OUTBOX_OF_HANDLE: usize = 16;

/// A message that waits for a connection.
#[derive(Debug)]
pub struct Posted {
    /// The request that it answers, if that was told by [`crate::Client::asking`].
    pub answers: Option<u64>,
    /// The message.
    pub message: ClientMessage,
    /// What the client pays for it, until it is written.
    pub(crate) share: Share,
}

/// The messages that wait for a connection, as its transport takes them.
#[derive(Debug)]
pub struct Outbox {
    messages: mpsc::UnboundedReceiver<Posted>,
    waiting: Arc<AtomicUsize>,
}

/// Where messages are put.
#[derive(Debug)]
pub(crate) struct OutboxSender {
    messages: mpsc::UnboundedSender<Posted>,
    waiting: Arc<AtomicUsize>,
}

/// An empty outbox.
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
    /// The message as it is written, and what is paid for it: to be dropped once it is written.
    pub fn into_text(self) -> (String, Share) {
        (self.message.into_text(), self.share)
    }
}

impl OutboxSender {
    /// Adds a message for a client with so many handles; false if there is no room, or nobody takes it.
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
    /// The next message as a value; none once the gateway has cut the client off and all before is taken. Cancel safe.
    pub async fn recv(&mut self) -> Option<Value> {
        let posted = self.recv_posted().await?;
        Some(posted.message.into_value())
    }

    /// The next message as a value if it is there.
    pub fn try_recv(&mut self) -> Option<Value> {
        let posted = self.try_recv_posted()?;
        Some(posted.message.into_value())
    }

    /// As [`Outbox::recv`], as it is posted.
    pub async fn recv_posted(&mut self) -> Option<Posted> {
        let posted = self.messages.recv().await;
        self.taken(posted)
    }

    /// As [`Outbox::try_recv`], as it is posted.
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
