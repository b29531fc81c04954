//! Events to the control plane.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;

use crate::PeerId;
use crate::backlog::Backlog;
use crate::{Event, PeerEvent};

/// The maximum number of events that wait for the control plane.
const BACKLOG: usize = 16_384;
/// Events that are mere advice are dropped if more events than this wait for the control plane,
/// because they would delay others on a busy core.
const ADVICE: usize = 1_024;
/// The maximum size of messages that wait for the control plane, in bytes.
const MAX_MESSAGE_BYTES: usize = 32 << 20;
/// The interval at which waiting events are sent again.
const RETRY: Duration = Duration::from_millis(5);

/// A channel to the control plane, with a bounded backlog. It keeps the order of events.
pub(super) struct Outbox {
    channel: mpsc::Sender<PeerEvent>,
    /// Events that found the channel full. Later ones wait behind them.
    backlog: VecDeque<PeerEvent>,
    /// The size of messages that the control plane has not taken yet.
    messages: Backlog,
    /// Events dropped since the start.
    dropped: u64,
    is_closed: bool,
}

impl Outbox {
    pub(super) fn new(channel: mpsc::Sender<PeerEvent>) -> Self {
        Self {
            channel,
            backlog: VecDeque::new(),
            messages: Backlog::default(),
            dropped: 0,
            is_closed: false,
        }
    }

    /// Sends an event. Up to [`BACKLOG`] events wait if the channel is full; beyond that, only
    /// those that connect or end a peer do. Advice is dropped long before ([`ADVICE`]), and
    /// messages are limited by size, too ([`MAX_MESSAGE_BYTES`]).
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

    /// Sends waiting events, as long as the channel takes them.
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

    /// When to flush again. `None` means that no events wait.
    pub(super) fn retry(&self) -> Option<Duration> {
        (!self.backlog.is_empty()).then_some(RETRY)
    }

    /// The number of events dropped since the start.
    pub(super) fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Whether the control plane is gone.
    pub(super) fn is_closed(&self) -> bool {
        self.is_closed
    }
}

/// The importance of an event when too many wait.
enum Weight {
    /// The control plane depends on it.
    Vital,
    /// It reports a change.
    State,
    /// It is a message. It must not displace changes.
    Message,
    /// It reports a condition, and will be repeated.
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
        | Event::Paused { .. }
        | Event::Talking { .. } => Weight::State,
        Event::Data(_) => Weight::Message,
        Event::SlowLink { .. } | Event::Speech { .. } | Event::Remb { .. } => Weight::Advice,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test panics")]
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
