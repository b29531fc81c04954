//! Events to a handle's client. Each follows the reply to the request in progress, and an answer
//! follows the ack of its request after a pause.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

use crate::ClientMessage;

/// The events of a handle that are not sent yet, in order.
#[derive(Debug)]
pub(super) struct Outgoing {
    /// The pause between an ack and the event that answers the same request.
    pause: Duration,
    queue: VecDeque<Event>,
    /// Whether a reply is in progress. Nothing is sent before it.
    is_replying: bool,
    /// The end of the pause after the last ack.
    answers_from: Option<Instant>,
    /// Whether a task waits for [`Outgoing::deadline`].
    is_awaited: bool,
}

#[derive(Debug)]
struct Event {
    message: ClientMessage,
    /// The earliest time, or `None` for immediately after the reply in progress.
    due: Option<Instant>,
}

impl Event {
    /// Whether it answers a request.
    fn is_answer(&self) -> bool {
        self.message.is_answer()
    }
}

impl Outgoing {
    pub(super) fn new(pause: Duration) -> Self {
        Outgoing {
            pause,
            queue: VecDeque::new(),
            is_replying: false,
            answers_from: None,
            is_awaited: false,
        }
    }

    /// Holds events until [`Outgoing::replied`].
    pub(super) fn replying(&mut self) {
        self.is_replying = true;
    }

    /// Notes that the reply is sent. After an ack, answers wait for the pause.
    pub(super) fn replied(&mut self, is_ack: bool, now: Instant) {
        self.is_replying = false;
        self.answers_from = (is_ack && !self.pause.is_zero()).then(|| now + self.pause);
        let due = self.answers_from;
        for event in &mut self.queue {
            if event.due.is_none() && event.is_answer() {
                event.due = due;
            }
        }
    }

    pub(super) fn push(&mut self, message: impl Into<ClientMessage>) {
        let mut event = Event {
            message: message.into(),
            due: None,
        };
        if !self.is_replying && event.is_answer() {
            event.due = self.answers_from;
        }
        self.queue.push_back(event);
    }

    /// Returns the next event that may be sent.
    pub(super) fn next(&mut self, now: Instant) -> Option<ClientMessage> {
        let is_due = |event: &Event| event.due.is_none_or(|due| due <= now);
        if self.is_replying || !self.queue.front().is_some_and(is_due) {
            return None;
        }
        self.pop()
    }

    /// Returns the next event, ignoring pauses, since the handle ends.
    pub(super) fn last(&mut self) -> Option<ClientMessage> {
        let is_out = |event: &Event| event.due.is_some();
        if self.is_replying && !self.queue.front().is_some_and(is_out) {
            return None;
        }
        self.pop()
    }

    fn pop(&mut self) -> Option<ClientMessage> {
        self.queue.pop_front().map(|event| event.message)
    }

    /// Returns when to call [`Outgoing::next`] again. The caller waits until then and calls
    /// [`Outgoing::woken`]. `None` if no call is needed.
    pub(super) fn deadline(&mut self) -> Option<Instant> {
        if self.is_awaited || self.is_replying {
            return None;
        }
        let due = self.queue.front()?.due?;
        self.is_awaited = true;
        Some(due)
    }

    /// Notes that the deadline has come.
    pub(super) fn woken(&mut self) {
        self.is_awaited = false;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const PAUSE: Duration = Duration::from_millis(2);

    fn answer(transaction: &str) -> Value {
        json!({ "janus": "event", "transaction": transaction })
    }

    fn news(name: &str) -> Value {
        json!({ "janus": name })
    }

    /// Returns the events that are sent at `now`.
    fn leaving(outgoing: &mut Outgoing, now: Instant) -> Vec<Value> {
        let leaving = std::iter::from_fn(|| outgoing.next(now));
        leaving.map(ClientMessage::into_value).collect()
    }

    #[test]
    fn an_answer_leaves_a_pause_after_its_ack_and_the_rest_keeps_its_order() {
        let mut outgoing = Outgoing::new(PAUSE);
        let start = Instant::now();
        outgoing.replying();
        outgoing.push(news("before"));
        outgoing.push(answer("1"));
        outgoing.push(news("after"));
        assert!(leaving(&mut outgoing, start).is_empty());
        outgoing.replied(true, start);
        assert_eq!(leaving(&mut outgoing, start), [news("before")]);
        assert_eq!(outgoing.deadline(), Some(start + PAUSE));
        outgoing.push(news("later"));
        // One is enough to wait.
        assert_eq!(outgoing.deadline(), None);
        outgoing.woken();
        let left = leaving(&mut outgoing, start + PAUSE);
        assert_eq!(left, [answer("1"), news("after"), news("later")]);
        assert_eq!(outgoing.deadline(), None);
    }

    #[test]
    fn only_answers_after_an_ack_wait() {
        let mut outgoing = Outgoing::new(PAUSE);
        let start = Instant::now();
        outgoing.push(answer("0"));
        assert_eq!(leaving(&mut outgoing, start), [answer("0")]);
        // A reply that is no ack has said it all.
        outgoing.replying();
        outgoing.push(answer("1"));
        outgoing.replied(false, start);
        assert_eq!(leaving(&mut outgoing, start), [answer("1")]);
        outgoing.replying();
        outgoing.replied(true, start);
        outgoing.push(news("webrtcup"));
        assert_eq!(leaving(&mut outgoing, start), [news("webrtcup")]);
        // One that a plugin gives a little later waits for the rest of the pause.
        outgoing.push(answer("2"));
        assert_eq!(outgoing.deadline(), Some(start + PAUSE));
        outgoing.woken();
        assert_eq!(leaving(&mut outgoing, start + PAUSE), [answer("2")]);
        outgoing.push(answer("3"));
        assert_eq!(leaving(&mut outgoing, start + 2 * PAUSE), [answer("3")]);
    }

    #[test]
    fn answers_to_requests_in_a_row_leave_one_after_the_other() {
        let mut outgoing = Outgoing::new(PAUSE);
        let start = Instant::now();
        let half = start + PAUSE / 2;
        for (transaction, at) in [("1", start), ("2", half)] {
            outgoing.replying();
            outgoing.push(answer(transaction));
            outgoing.replied(true, at);
        }
        assert_eq!(leaving(&mut outgoing, half), Vec::<Value>::new());
        assert_eq!(outgoing.deadline(), Some(start + PAUSE));
        outgoing.woken();
        assert_eq!(leaving(&mut outgoing, start + PAUSE), [answer("1")]);
        assert_eq!(outgoing.deadline(), Some(half + PAUSE));
        outgoing.woken();
        assert_eq!(leaving(&mut outgoing, half + PAUSE), [answer("2")]);
    }

    #[test]
    fn when_the_handle_ends_what_waits_for_its_pause_leaves() {
        let mut outgoing = Outgoing::new(PAUSE);
        outgoing.replying();
        outgoing.push(answer("1"));
        outgoing.replied(true, Instant::now());
        outgoing.replying();
        outgoing.push(answer("2"));
        assert_eq!(outgoing.last(), Some(answer("1").into()));
        assert_eq!(outgoing.last(), None);
    }

    #[test]
    fn without_a_pause_nothing_waits_but_for_its_reply() {
        let mut outgoing = Outgoing::new(Duration::ZERO);
        let start = Instant::now();
        outgoing.replying();
        outgoing.push(answer("1"));
        assert_eq!(outgoing.next(start), None);
        outgoing.replied(true, start);
        assert_eq!(outgoing.next(start), Some(answer("1").into()));
        assert_eq!(outgoing.deadline(), None);
    }
}
