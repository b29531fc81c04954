//! The times at which participants are told about new publishers: at once, or for many joins in a
//! short time together, so that each participant does not get an event for each join.

use std::time::Duration;

use tokio::time::Instant;

use crate::PersonId;

/// Publishers who come up within this time after the last announcement are announced together.
const TOGETHER: Duration = Duration::from_millis(50);

/// The publishers that are not announced yet. It has no clock.
#[derive(Debug, Default)]
pub(crate) struct Announcements {
    pending: Vec<PersonId>,
    /// The time of the last announcement.
    last: Option<Instant>,
}

/// The time of a publisher's announcement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Announcement {
    Now,
    /// At this time, unless [`Announcements::take`] is called before.
    At(Instant),
    /// Together with an earlier publisher.
    Pending,
}

impl Announcements {
    /// Adds a publisher whose media is up. Returns when to announce it.
    pub(crate) fn announce(&mut self, id: &PersonId, now: Instant) -> Announcement {
        let next = self.last.map(|last| last + TOGETHER);
        let Some(next) = next.filter(|next| *next > now) else {
            self.last = Some(now);
            return Announcement::Now;
        };
        self.pending.push(id.clone());
        match self.pending.len() {
            1 => Announcement::At(next),
            _ => Announcement::Pending,
        }
    }

    /// Takes the publishers to announce now, in order.
    pub(crate) fn take(&mut self, now: Instant) -> Vec<PersonId> {
        if !self.pending.is_empty() {
            self.last = Some(now);
        }
        std::mem::take(&mut self.pending)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn al() -> PersonId {
        "al".into()
    }

    fn bo() -> PersonId {
        "bo".into()
    }

    fn cy() -> PersonId {
        "cy".into()
    }

    #[test]
    fn who_comes_alone_is_told_of_at_once() {
        let (mut announcements, start) = (Announcements::default(), Instant::now());
        assert_eq!(announcements.announce(&al(), start), Announcement::Now);
        let later = start + TOGETHER;
        assert_eq!(announcements.announce(&bo(), later), Announcement::Now);
        assert_eq!(announcements.take(later), []);
    }

    #[test]
    fn a_storm_is_told_of_together() {
        let (mut announcements, start) = (Announcements::default(), Instant::now());
        let ms = Duration::from_millis;
        assert_eq!(announcements.announce(&al(), start), Announcement::Now);
        let next = Announcement::At(start + TOGETHER);
        assert_eq!(announcements.announce(&bo(), start + ms(1)), next);
        assert_eq!(
            announcements.announce(&cy(), start + ms(2)),
            Announcement::Pending
        );
        assert_eq!(announcements.take(start + TOGETHER), [bo(), cy()]);
        // What was told just now is the last announcements.
        let next = Announcement::At(start + 2 * TOGETHER);
        assert_eq!(
            announcements.announce(&al(), start + TOGETHER + ms(1)),
            next
        );
    }

    #[test]
    fn nothing_to_tell_is_no_news() {
        let (mut announcements, start) = (Announcements::default(), Instant::now());
        assert_eq!(announcements.take(start), []);
        assert_eq!(announcements.announce(&al(), start), Announcement::Now);
    }
}
