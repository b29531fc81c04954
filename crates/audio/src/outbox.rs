//! The events of a room that wait for a slow consumer.

use std::collections::VecDeque;

use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;

use crate::{AudioEvent, ParticipantId};

/// With this many waiting events, nothing starts whose end is an event.
const MOST: usize = 1_024;

/// The waiting events, in order. None is lost, so that a client's state is right in the end. The
/// number is bounded: of each participant only the last change waits, and while too many events
/// wait, no announcement and no recording starts.
#[derive(Debug)]
pub(crate) struct Outbox {
    to: mpsc::Sender<AudioEvent>,
    waiting: VecDeque<AudioEvent>,
    merged: u64,
}

impl Outbox {
    pub(crate) fn new(to: mpsc::Sender<AudioEvent>) -> Self {
        Self {
            to,
            waiting: VecDeque::new(),
            merged: 0,
        }
    }

    /// Queues an event.
    pub(crate) fn push(&mut self, event: AudioEvent) {
        if !self.waiting.is_empty() {
            self.merge(|waiting| is_replaced(waiting, &event));
        }
        self.waiting.push_back(event);
        self.flush();
    }

    /// Drops the events about a participant who has left.
    pub(crate) fn forget(&mut self, participant: ParticipantId) {
        self.merge(|waiting| speaker(waiting) == Some(participant));
    }

    /// Returns the channel of the events.
    pub(crate) fn sender(&self) -> mpsc::Sender<AudioEvent> {
        self.to.clone()
    }

    /// Hands over as many events as the channel takes.
    pub(crate) fn flush(&mut self) {
        while let Some(event) = self.waiting.pop_front() {
            match self.to.try_send(event) {
                Ok(()) => {}
                Err(TrySendError::Full(event)) => {
                    self.waiting.push_front(event);
                    return;
                }
                Err(TrySendError::Closed(_)) => self.waiting.clear(),
            }
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Whether too many events wait.
    pub(crate) fn is_full(&self) -> bool {
        self.waiting.len() >= MOST
    }

    /// Returns the number of events that a later one replaced since the last call.
    pub(crate) fn take_merged(&mut self) -> u64 {
        std::mem::take(&mut self.merged)
    }

    fn merge(&mut self, mut is_left_out: impl FnMut(&AudioEvent) -> bool) {
        let before = self.waiting.len();
        self.waiting.retain(|waiting| !is_left_out(waiting));
        self.merged += (before - self.waiting.len()) as u64;
    }
}

/// Whether the later event replaces the earlier one.
fn is_replaced(before: &AudioEvent, later: &AudioEvent) -> bool {
    match (before, later) {
        (AudioEvent::Talking { .. }, AudioEvent::Talking { .. }) => {
            speaker(before) == speaker(later)
        }
        (
            AudioEvent::AnnouncementStarted(started),
            AudioEvent::AnnouncementEnded { announcement, .. },
        ) => started == announcement,
        _ => false,
    }
}

fn speaker(event: &AudioEvent) -> Option<ParticipantId> {
    match event {
        AudioEvent::Talking { participant, .. } => Some(*participant),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by a panic")]
    use super::*;
    use crate::{AnnouncementEnd, AnnouncementId};

    fn talking(participant: u64, talking: bool) -> AudioEvent {
        AudioEvent::Talking {
            participant: ParticipantId(participant),
            talking,
        }
    }

    fn ended(announcement: u64) -> AudioEvent {
        AudioEvent::AnnouncementEnded {
            announcement: AnnouncementId(announcement),
            why: AnnouncementEnd::Played,
        }
    }

    #[test]
    fn who_reads_late_knows_the_last_state_of_all() {
        let (to, mut told) = mpsc::channel(1);
        let mut outbox = Outbox::new(to);
        outbox.push(talking(1, true));
        for n in 0..10_000 {
            outbox.push(talking(n % 3, n % 2 == 0));
        }
        outbox.push(AudioEvent::AnnouncementStarted(AnnouncementId(7)));
        outbox.push(ended(7));
        outbox.push(talking(2, true));
        outbox.forget(ParticipantId(2));
        assert_eq!(outbox.waiting.len(), 3);
        assert_eq!(outbox.take_merged(), 10_000);
        let mut last = [None; 3];
        let mut has_ended = false;
        while let Ok(event) = told.try_recv() {
            match event {
                AudioEvent::Talking {
                    participant,
                    talking,
                } => {
                    *last.get_mut(participant.0 as usize).unwrap() = Some(talking);
                }
                AudioEvent::AnnouncementEnded { .. } => has_ended = true,
                other => panic!("{other:?}"),
            }
            outbox.flush();
        }
        // 9,999 was about the first one, 9,997 about the second.
        assert_eq!((last, has_ended), ([Some(false), Some(false), None], true));
        assert!(outbox.is_empty());
    }

    #[test]
    fn ends_of_announcements_are_kept_and_no_more_begin() {
        let (to, mut told) = mpsc::channel(1);
        let mut outbox = Outbox::new(to);
        for n in 0..=MOST as u64 {
            assert!(!outbox.is_full());
            outbox.push(ended(n));
        }
        assert!(outbox.is_full());
        let mut count = 0;
        while told.try_recv().is_ok() {
            count += 1;
            outbox.flush();
        }
        assert_eq!(count, MOST + 1);
        assert!(!outbox.is_full());
    }
}
