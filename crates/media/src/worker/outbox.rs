//! Events on their way to the control plane.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;

use crate::plane::PeerId;
use crate::waiting::Waiting;
use crate::{Event, PeerEvent};

/// Events kept while the control plane does not take them.
const BACKLOG: usize = 16_384;
/// Events that the control plane may have before it from which on it is spared those that only advise: on a core that is
/// behind they are many, and whoever joins would wait behind them.
const ADVICE: usize = 1_024;
/// Bytes of messages of a worker that the control plane has not taken.
const MAX_MESSAGE_BYTES: usize = 32 << 20;
/// How long a backlog waits before it is offered again.
const RETRY: Duration = Duration::from_millis(5);

/// A channel to the control plane, with a bounded backlog. Events arrive in the order in which they were sent.
pub(super) struct Outbox {
    channel: mpsc::Sender<PeerEvent>,
    /// Events that found the channel full. While there are any, later ones wait behind them.
    backlog: VecDeque<PeerEvent>,
    /// Messages that the control plane has not taken, wherever they wait.
    messages: Waiting,
    /// Events that were left out since the start.
    dropped: u64,
    is_closed: bool,
}

impl Outbox {
    pub(super) fn new(channel: mpsc::Sender<PeerEvent>) -> Self {
        Self {
            channel,
            backlog: VecDeque::new(),
            messages: Waiting::default(),
            dropped: 0,
            is_closed: false,
        }
    }

    /// Tells the control plane. What the channel does not take is kept, up to [`BACKLOG`] events; of
    /// further ones only those that end or connect a peer, of which there are few for each peer. Those that only advise are
    /// left out long before ([`ADVICE`]). Messages are bounded by their bytes, too ([`MAX_MESSAGE_BYTES`]), wherever they
    /// wait.
    pub(super) fn send(&mut self, peer: PeerId, event: Event) {
        self.send_event(PeerEvent::new(peer, event));
    }

    /// As [`Self::send`].
    pub(super) fn send_event(&mut self, mut event: PeerEvent) {
        let waiting = self.channel.max_capacity() - self.channel.capacity();
        let is_unwelcome = match weight(&event.event) {
            Weight::Vital => false,
            Weight::State => self.backlog.len() >= BACKLOG,
            Weight::Message => self.backlog.len() >= BACKLOG / 2,
            Weight::Advice => waiting >= ADVICE,
        };
        if is_unwelcome {
            self.dropped += 1;
            return;
        }
        if let Event::Data(message) = &event.event {
            let Some(held) = self.messages.hold(message.size(), MAX_MESSAGE_BYTES) else {
                self.dropped += 1;
                return;
            };
            event = event.holding(held);
        }
        if !self.backlog.is_empty() {
            self.backlog.push_back(event);
            return;
        }
        match self.channel.try_send(event) {
            Ok(()) => {}
            Err(TrySendError::Full(event)) => self.backlog.push_back(event),
            Err(TrySendError::Closed(_)) => self.is_closed = true,
        }
    }

    /// Sends what waits, as far as the channel takes it.
    pub(super) fn flush(&mut self) {
        while let Some(event) = self.backlog.pop_front() {
            if let Err(error) = self.channel.try_send(event) {
                if let TrySendError::Full(event) = error {
                    self.backlog.push_front(event);
                }
                return;
            }
        }
    }

    /// How long to wait before what waits is offered again; none: nothing waits.
    pub(super) fn retry(&self) -> Option<Duration> {
        (!self.backlog.is_empty()).then_some(RETRY)
    }

    /// Events that were left out since the start.
    pub(super) fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Whether the control plane is gone, and with it everything that could want an event.
    pub(super) fn is_closed(&self) -> bool {
        self.is_closed
    }
}

/// What becomes of an event while the control plane has too much before it.
enum Weight {
    /// The control plane cannot go on without it.
    Vital,
    /// It says what has changed.
    State,
    /// Somebody says something. It takes no place from what has changed.
    Message,
    /// It says how things go, and the next one says it again.
    Advice,
}

fn weight(event: &Event) -> Weight {
    match event {
        Event::Closed(_) | Event::Connected { .. } | Event::DataChannel { .. } => Weight::Vital,
        Event::Ice(_)
        | Event::SelectedPair { .. }
        | Event::Dtls { .. }
        | Event::Media { .. }
        | Event::Layer { .. }
        | Event::Talking { .. } => Weight::State,
        Event::Data(_) => Weight::Message,
        Event::SlowLink { .. } | Event::Speech { .. } | Event::Remb { .. } => Weight::Advice,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::{DataMessage, DataPayload, IceState};

    const PEER: PeerId = PeerId {
        worker: 0,
        serial: 1,
    };

    fn outbox() -> (Outbox, mpsc::Receiver<PeerEvent>) {
        let (channel, events) = mpsc::channel(4 * ADVICE);
        (Outbox::new(channel), events)
    }

    fn message(bytes: usize) -> Event {
        Event::Data(DataMessage {
            label: String::new(),
            protocol: String::new(),
            payload: DataPayload::Binary(vec![0; bytes]),
        })
    }

    #[test]
    fn messages_that_nobody_takes_are_bounded_by_their_bytes() {
        let (mut outbox, mut events) = outbox();
        for _ in 0..10 {
            outbox.send(PEER, message(MAX_MESSAGE_BYTES / 8));
        }
        assert_eq!((events.len(), outbox.dropped()), (8, 2));
        // Whoever takes one holds it for as long as it is there.
        let first = events.try_recv().unwrap();
        outbox.send(PEER, message(MAX_MESSAGE_BYTES / 8));
        assert_eq!(events.len(), 7);
        drop(first);
        outbox.send(PEER, message(MAX_MESSAGE_BYTES / 8));
        outbox.send(PEER, Event::Remb { bitrate: 1 });
        assert_eq!((events.len(), outbox.dropped()), (9, 3));
    }

    #[test]
    fn messages_that_nobody_takes_leave_room_for_what_has_changed() {
        let (mut outbox, events) = outbox();
        for _ in 0..events.max_capacity() + BACKLOG {
            outbox.send(PEER, message(0));
        }
        let waiting = outbox.backlog.len();
        assert_eq!(waiting, BACKLOG / 2);
        outbox.send(PEER, Event::Ice(IceState::Connected));
        assert_eq!(outbox.backlog.len(), waiting + 1);
    }

    #[test]
    fn what_only_advises_does_not_hold_up_what_has_changed() {
        let (mut outbox, mut events) = outbox();
        for _ in 0..2 * ADVICE {
            outbox.send(PEER, Event::Remb { bitrate: 1 });
        }
        assert_eq!(events.len(), ADVICE);
        outbox.send(PEER, Event::Ice(IceState::Connected));
        outbox.send(PEER, Event::Remb { bitrate: 1 });
        assert_eq!(events.len(), ADVICE + 1);
        // Once something of it was taken, there is room again.
        for _ in 0..2 {
            assert_eq!(events.try_recv().unwrap().event, Event::Remb { bitrate: 1 });
        }
        outbox.send(PEER, Event::Remb { bitrate: 2 });
        assert_eq!(events.len(), ADVICE);
    }

    #[test]
    fn what_waited_leaves_in_order_and_before_what_comes_later() {
        let (mut outbox, mut events) = outbox();
        let all = events.max_capacity() + 3;
        for number in 0..all {
            outbox.send(PEER, message(number));
        }
        assert!(outbox.retry().is_some());
        events.try_recv().unwrap();
        outbox.send(PEER, message(all));
        outbox.flush();
        let mut next = 1;
        while let Ok(event) = events.try_recv() {
            let Event::Data(message) = event.event else {
                continue;
            };
            assert_eq!(message.size(), next);
            next += 1;
            outbox.flush();
        }
        assert_eq!(next, all + 1);
        assert_eq!(outbox.retry(), None);
        drop(events);
        assert!(!outbox.is_closed());
        outbox.send(PEER, message(0));
        assert!(outbox.is_closed());
    }
}
