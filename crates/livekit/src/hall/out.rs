//! The way to a client: a queue for its WebSocket.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use livekit_protocol::{DisconnectReason, LeaveRequest, leave_request, signal_response};
use tokio::sync::mpsc;

use crate::frame::Frame;

/// The most frames that wait for a client. One with more is disconnected; it can resume.
const CAPACITY: usize = 1_024;

/// The queue of a client. It has another one after each reconnect.
#[derive(Debug, Default)]
pub(crate) struct Out(Mutex<Current>);

#[derive(Debug, Default)]
struct Current {
    sender: Option<mpsc::Sender<Arc<Frame>>>,
    /// The number of the connection.
    generation: u64,
}

/// A connection of a client.
#[derive(Debug)]
pub(crate) struct Wire {
    /// The frames for it. Once they end, it has to be closed.
    pub(crate) frames: mpsc::Receiver<Arc<Frame>>,
    /// Its number.
    pub(crate) generation: u64,
}

impl Out {
    /// Replaces the connection, which ends the one before.
    pub(crate) fn connect(&self) -> Wire {
        let (sender, frames) = mpsc::channel(CAPACITY);
        let mut current = self.current();
        current.sender = Some(sender);
        current.generation += 1;
        Wire {
            frames,
            generation: current.generation,
        }
    }

    /// Returns whether this is the number of the present connection.
    pub(crate) fn is_present(&self, generation: u64) -> bool {
        self.current().generation == generation
    }

    /// Returns whether there is a connection.
    pub(crate) fn is_open(&self) -> bool {
        self.current().sender.is_some()
    }

    /// Closes the connection once everything is sent.
    pub(crate) fn close(&self) {
        self.current().sender = None;
    }

    /// Notes that a connection has ended. Returns whether it was the present one.
    pub(crate) fn ended(&self, generation: u64) -> bool {
        let mut current = self.current();
        let is_present = current.generation == generation;
        if is_present {
            current.sender = None;
        }
        is_present
    }

    /// Sends a message.
    pub(crate) fn message(&self, message: signal_response::Message) {
        self.send(&Arc::new(Frame::new(message)));
    }

    /// Sends a frame.
    pub(crate) fn send(&self, frame: &Arc<Frame>) {
        let mut current = self.current();
        let Some(sender) = &current.sender else {
            return;
        };
        if sender.try_send(frame.clone()).is_err() {
            tracing::debug!("a client does not read its messages");
            current.sender = None;
        }
    }

    fn current(&self) -> MutexGuard<'_, Current> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the message that ends a connection.
pub(crate) fn leave(
    reason: DisconnectReason,
    action: leave_request::Action,
) -> signal_response::Message {
    signal_response::Message::Leave(LeaveRequest {
        can_reconnect: action != leave_request::Action::Disconnect,
        reason: reason.into(),
        action: action.into(),
        ..LeaveRequest::default()
    })
}
