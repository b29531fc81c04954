//! The inbox of a handle's task.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use portunus_media::{Event, PeerEvent};
use portunus_sdp::IceCredentials;
use serde_json::{Map, Value};
use tokio::sync::{mpsc, oneshot};

use super::local::LocalIce;
use crate::counters::add;
use crate::{Client, Counters, Purse, Share};

/// The most commands that wait for a handle's task. As many droppable events may wait in addition,
/// plus messages of data channels and vital commands.
const CAPACITY: usize = 256;
/// The most bytes of data channel messages that wait, including their places, so that many short
/// messages are not lost.
const MAX_MESSAGE_BYTES: usize = 4 << 20;
/// The size of a message's place.
const PLACE: usize = size_of::<Command>();

/// A command for a handle's task.
#[derive(Debug)]
pub(crate) enum Command {
    Message {
        transaction: String,
        members: Map<String, Value>,
        /// The client that sent it.
        client: Client,
        responder: Responder,
    },
    Trickle {
        transaction: String,
        members: Map<String, Value>,
        responder: Responder,
    },
    Hangup {
        reason: String,
        responder: Option<(String, Responder)>,
    },
    Detach {
        responder: Option<(String, Responder)>,
    },
    Query {
        reply: oneshot::Sender<Value>,
    },
    RestartIce {
        remote: IceCredentials,
        reply: oneshot::Sender<Option<LocalIce>>,
    },
    Peer(PeerEvent),
    /// Publishes the ends of PeerConnections that were closed meanwhile.
    TellClosed,
}

impl Command {
    /// Whether losing it costs the client only temporary information.
    fn is_droppable(&self) -> bool {
        match self {
            Command::Peer(PeerEvent { event, .. }) => {
                matches!(
                    event,
                    Event::SlowLink { .. } | Event::Remb { .. } | Event::Speech { .. }
                )
            }
            Command::Message { .. }
            | Command::Trickle { .. }
            | Command::Hangup { .. }
            | Command::Detach { .. }
            | Command::Query { .. }
            | Command::RestartIce { .. }
            | Command::TellClosed => false,
        }
    }

    /// Returns the size of a data channel message in bytes.
    fn message_size(&self) -> Option<usize> {
        match self {
            Command::Peer(PeerEvent {
                event: Event::Data(message),
                ..
            }) => Some(message.size().saturating_add(PLACE)),
            _ => None,
        }
    }

    /// Whether the handle cannot work without it. There are few of these.
    fn is_vital(&self) -> bool {
        match self {
            Command::Peer(PeerEvent { event, .. }) => {
                matches!(
                    event,
                    Event::Closed(_) | Event::Connected { .. } | Event::DataChannel { .. }
                )
            }
            Command::Message { .. }
            | Command::Trickle { .. }
            | Command::Hangup { .. }
            | Command::Detach { .. }
            | Command::Query { .. }
            | Command::RestartIce { .. }
            | Command::TellClosed => true,
        }
    }
}

/// The sender's side of a handle's inbox.
#[derive(Debug, Clone)]
pub(crate) struct Inbox {
    /// Boxed, since the queue reserves 32 places, which would be 5 KiB for each handle.
    commands: mpsc::Sender<Box<Command>>,
    counters: Arc<Counters>,
    late: Arc<Mutex<Late>>,
    /// The bytes of messages that wait.
    message_bytes: Arc<AtomicUsize>,
}

/// The receiver's side of a handle's inbox.
#[derive(Debug)]
pub(crate) struct Commands {
    queue: mpsc::Receiver<Box<Command>>,
    message_bytes: Arc<AtomicUsize>,
}

impl Commands {
    /// Returns the next command, or `None` once all senders are gone.
    pub(crate) async fn recv(&mut self) -> Option<Command> {
        let command = *self.queue.recv().await?;
        let size = command.message_size().unwrap_or(0);
        self.message_bytes.fetch_sub(size, Ordering::Relaxed);
        Some(command)
    }
}

/// Commands that did not fit into the queue, in order.
#[derive(Debug, Default)]
struct Late {
    queue: VecDeque<Command>,
    /// The number of commands other than data channel messages.
    others: usize,
    /// Whether a task is sending them.
    is_sent: bool,
}

impl Inbox {
    pub(crate) fn new(counters: Arc<Counters>) -> (Inbox, Commands) {
        let (commands, queue) = mpsc::channel(CAPACITY);
        let message_bytes = Arc::<AtomicUsize>::default();
        let inbox = Inbox {
            commands,
            counters,
            late: Arc::default(),
            message_bytes: message_bytes.clone(),
        };
        let commands = Commands {
            queue,
            message_bytes,
        };
        (inbox, commands)
    }

    /// Waits for a place. Returns false if the task has ended.
    pub(crate) async fn send(&self, command: Command) -> bool {
        self.commands.send(Box::new(command)).await.is_ok()
    }

    /// Does not wait. If the queue is full, a droppable command is counted and dropped, and other
    /// commands are sent later. Data channel messages are dropped beyond [`MAX_MESSAGE_BYTES`]. The
    /// order is kept.
    pub(crate) fn deliver(&self, mut command: Command) {
        let mut late = self.late();
        let size = command.message_size().unwrap_or(0);
        let waiting = self.message_bytes.load(Ordering::Relaxed);
        if size > 0 && waiting.saturating_add(size) > MAX_MESSAGE_BYTES {
            return add(&self.counters.events_dropped);
        }
        self.message_bytes.fetch_add(size, Ordering::Relaxed);
        if !late.is_sent {
            match self.commands.try_send(Box::new(command)) {
                Ok(()) | Err(mpsc::error::TrySendError::Closed(_)) => return,
                Err(mpsc::error::TrySendError::Full(refused)) => command = *refused,
            }
        }
        let has_room = command.is_vital() || size > 0 || late.others < CAPACITY;
        if command.is_droppable() || !has_room {
            self.message_bytes.fetch_sub(size, Ordering::Relaxed);
            return add(&self.counters.events_dropped);
        }
        late.others += usize::from(size == 0);
        late.queue.push_back(command);
        if !std::mem::replace(&mut late.is_sent, true) {
            tokio::spawn(self.clone().send_late());
        }
    }

    async fn send_late(self) {
        while let Some(command) = self.next_late() {
            // If the task has ended, the command is dropped.
            let _ = self.commands.send(Box::new(command)).await;
        }
    }

    fn next_late(&self) -> Option<Command> {
        let mut late = self.late();
        let next = late.queue.pop_front();
        if next
            .as_ref()
            .is_some_and(|next| next.message_size().is_none())
        {
            late.others = late.others.saturating_sub(1);
        }
        late.is_sent = next.is_some();
        next
    }

    fn late(&self) -> MutexGuard<'_, Late> {
        self.late.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The destination of the reply to a request.
#[derive(Debug)]
pub(crate) struct Responder {
    /// The client whose queue gets the reply, so that no event overtakes it.
    client: Option<Client>,
    done: oneshot::Sender<Option<Value>>,
    /// Pays for the reply in the client's queue.
    purse: Purse,
    /// The payment for the request.
    _paid: Share,
}

impl Responder {
    /// Makes a responder, and the receiver of the reply. The receiver gets `None` if the reply went
    /// into the client's queue. `paid` is given back with the reply.
    pub(crate) fn new(
        client: Option<Client>,
        purse: Purse,
        paid: Share,
    ) -> (Self, oneshot::Receiver<Option<Value>>) {
        let (done, reply) = oneshot::channel();
        let responder = Responder {
            client,
            done,
            purse,
            _paid: paid,
        };
        (responder, reply)
    }

    /// Sends the reply. Returns true if it went into the client's queue, where events follow it.
    pub(crate) fn respond(self, reply: Value) -> bool {
        let is_pushed = self.client.is_some();
        let reply = match &self.client {
            Some(client) => {
                client.push_paid(reply, &self.purse);
                None
            }
            None => Some(reply),
        };
        // The receiver is gone if the transport has abandoned the request.
        let _ = self.done.send(reply);
        is_pushed
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::panic, reason = "a test fails by a panic")]
    use portunus_media::{DataMessage, DataPayload, IceState, MediaPlane, PeerId, PeerOptions};

    use super::*;

    fn hangup(n: usize) -> Command {
        Command::Hangup {
            reason: n.to_string(),
            responder: None,
        }
    }

    fn peer() -> PeerId {
        let (media, _, _) = MediaPlane::detached();
        media.create_peer(PeerOptions {
            ice: super::super::local::new_credentials(),
            controlling: false,
            worker: None,
        })
    }

    #[tokio::test]
    async fn what_finds_no_room_comes_later_in_its_order() {
        let (inbox, mut commands) = Inbox::new(Arc::default());
        for n in 0..2 * CAPACITY {
            inbox.deliver(hangup(n));
        }
        for n in 0..3 * CAPACITY {
            let Some(Command::Hangup { reason, .. }) = commands.recv().await else {
                panic!("no hangup");
            };
            assert_eq!(reason, n.to_string());
            // As long as something waits, what comes has to wait behind it.
            if n < CAPACITY {
                inbox.deliver(hangup(2 * CAPACITY + n));
            }
        }
    }

    #[tokio::test]
    async fn news_that_find_no_room_are_bounded_and_counted() {
        let counters = Arc::new(Counters::default());
        let (inbox, mut commands) = Inbox::new(counters.clone());
        let peer = peer();
        let news = |event| Command::Peer(PeerEvent::new(peer, event));
        for _ in 0..3 * CAPACITY {
            inbox.deliver(news(Event::Ice(IceState::Connected)));
        }
        inbox.deliver(news(Event::Remb { bitrate: 1 }));
        inbox.deliver(hangup(0));
        let dropped = counters
            .events_dropped
            .load(std::sync::atomic::Ordering::Relaxed);
        assert_eq!(dropped, CAPACITY as u64 + 1);
        for _ in 0..2 * CAPACITY {
            assert!(matches!(commands.recv().await, Some(Command::Peer(_))));
        }
        assert!(matches!(
            commands.recv().await,
            Some(Command::Hangup { .. })
        ));
    }

    #[tokio::test]
    async fn many_short_messages_find_room_in_their_order() {
        let counters = Arc::new(Counters::default());
        let (inbox, mut commands) = Inbox::new(counters.clone());
        let peer = peer();
        let message = |n: usize| DataMessage {
            label: "chat".to_owned(),
            protocol: String::new(),
            payload: DataPayload::Text(n.to_string()),
        };
        let count = 10 * CAPACITY;
        let news = |event| Command::Peer(PeerEvent::new(peer, event));
        for n in 0..count {
            inbox.deliver(news(Event::Data(message(n))));
        }
        // They take no place from what has changed.
        inbox.deliver(news(Event::Ice(IceState::Connected)));
        for n in 0..count {
            let Some(Command::Peer(event)) = commands.recv().await else {
                panic!("no message");
            };
            assert_eq!(event.event, Event::Data(message(n)));
        }
        assert!(matches!(commands.recv().await, Some(Command::Peer(_))));
        assert_eq!(counters.events_dropped.load(Ordering::Relaxed), 0);
        assert_eq!(inbox.message_bytes.load(Ordering::Relaxed), 0);
    }

    #[tokio::test]
    async fn messages_are_bounded_by_their_bytes() {
        let counters = Arc::new(Counters::default());
        let (inbox, mut commands) = Inbox::new(counters.clone());
        let peer = peer();
        let message = || {
            let message = DataMessage {
                label: String::new(),
                protocol: String::new(),
                payload: DataPayload::Binary(vec![0; MAX_MESSAGE_BYTES / 4 - PLACE]),
            };
            Command::Peer(PeerEvent::new(peer, Event::Data(message)))
        };
        let dropped = || counters.events_dropped.load(Ordering::Relaxed);
        for _ in 0..5 {
            inbox.deliver(message());
        }
        assert_eq!(dropped(), 1);
        // Other commands have places of their own, and taking a message makes room.
        inbox.deliver(hangup(0));
        commands.recv().await;
        inbox.deliver(message());
        assert_eq!(dropped(), 1);
        inbox.deliver(message());
        assert_eq!(dropped(), 2);
        for _ in 0..5 {
            commands.recv().await;
        }
        assert_eq!(inbox.message_bytes.load(Ordering::Relaxed), 0);
    }
}
