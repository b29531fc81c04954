//! What is told of a room, and waits until whoever takes it has room.

use std::collections::VecDeque;

use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;

use crate::{AudioEvent, ParticipantId};

/// With so many events that wait nothing is begun that has an end to be told of.
const MOST: usize = 1_024;

/// Events in their order. None is lost, so that a client's state is right in the end. What waits is bounded all the same: of
/// each participant only the last change waits, and while too much waits no announcement and no recording begins.
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

    /// Tells of an event.
    pub(crate) fn tell(&mut self, event: AudioEvent) {
        if !self.waiting.is_empty() {
            self.merge(|waiting| is_replaced(waiting, &event));
        }
        self.waiting.push_back(event);
        self.flush();
    }

    /// Of a participant who is gone nothing more is told.
    pub(crate) fn forget(&mut self, participant: ParticipantId) {
        self.merge(|waiting| speaker(waiting) == Some(participant));
    }

    /// Where events go.
    pub(crate) fn sender(&self) -> mpsc::Sender<AudioEvent> {
        self.to.clone()
    }

    /// Hands over what there is room for.
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

    /// Too much waits.
    pub(crate) fn is_full(&self) -> bool {
        self.waiting.len() >= MOST
    }

    /// Events that were left out since this was asked last, because a later one says more.
    pub(crate) fn take_merged(&mut self) -> u64 {
        std::mem::take(&mut self.merged)
    }

    fn merge(&mut self, mut is_left_out: impl FnMut(&AudioEvent) -> bool) {
        let before = self.waiting.len();
        self.waiting.retain(|waiting| !is_left_out(waiting));
        self.merged += (before - self.waiting.len()) as u64;
    }
}

/// The later event says all that the one before would.
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
    #![allow(clippy::unwrap_used, clippy::panic)]
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
        outbox.tell(talking(1, true));
        for n in 0..10_000 {
            outbox.tell(talking(n % 3, n % 2 == 0));
        }
        outbox.tell(AudioEvent::AnnouncementStarted(AnnouncementId(7)));
        outbox.tell(ended(7));
        outbox.tell(talking(2, true));
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
        // 9,999 was of the first one, 9,997 of the second.
        assert_eq!((last, has_ended), ([Some(false), Some(false), None], true));
        assert!(outbox.is_empty());
    }

    #[test]
    fn ends_of_announcements_are_kept_and_no_more_begin() {
        let (to, mut told) = mpsc::channel(1);
        let mut outbox = Outbox::new(to);
        for n in 0..=MOST as u64 {
            assert!(!outbox.is_full());
            outbox.tell(ended(n));
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
