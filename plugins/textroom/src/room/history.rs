//! The history of a room for later members.

use std::collections::VecDeque;

/// The limit of bytes of the history: half of the queue of a member, so that a new member gets all
/// of it.
const MAX_BYTES: usize = 512 << 10;

/// The last messages of a room, as they are sent.
#[derive(Debug)]
pub(crate) struct History {
    /// Messages at most.
    most: usize,
    bytes: usize,
    messages: VecDeque<String>,
}

impl History {
    pub(crate) fn new(most: usize) -> Self {
        History {
            most,
            bytes: 0,
            messages: VecDeque::new(),
        }
    }

    /// Returns whether there is a history.
    pub(crate) fn is_kept(&self) -> bool {
        self.most > 0
    }

    /// Adds a message, and drops the oldest ones for it.
    pub(crate) fn push(&mut self, message: String) {
        self.bytes = self.bytes.saturating_add(message.len());
        self.messages.push_back(message);
        while self.messages.len() > self.most || self.bytes > MAX_BYTES {
            let Some(oldest) = self.messages.pop_front() else {
                return;
            };
            self.bytes = self.bytes.saturating_sub(oldest.len());
        }
    }

    /// Returns all messages, the oldest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        self.messages.iter().map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_messages_are_kept() {
        let mut history = History::new(2);
        for message in ["a", "b", "c"] {
            history.push(message.to_owned());
        }
        assert_eq!(history.iter().collect::<Vec<_>>(), ["b", "c"]);
        assert_eq!(history.bytes, 2);
    }

    #[test]
    fn long_messages_are_fewer() {
        let mut history = History::new(10_000);
        for _ in 0..100 {
            history.push("x".repeat(60_000));
        }
        assert_eq!(history.messages.len(), MAX_BYTES / 60_000);
        history.push("x".repeat(MAX_BYTES + 1));
        assert_eq!((history.messages.len(), history.bytes), (0, 0));
    }

    #[test]
    fn a_room_without_a_history_keeps_nothing() {
        let mut history = History::new(0);
        assert!(!history.is_kept());
        history.push("a".to_owned());
        assert_eq!(history.iter().count(), 0);
    }
}
