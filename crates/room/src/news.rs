//! When the others are told who publishes: at once, and in a storm of joins of many together, so that their number is not
//! that of the events that everybody gets.

use std::time::Duration;

use tokio::time::Instant;

use crate::PersonId;

/// Those who come within this time of the last news are told of together.
const TOGETHER: Duration = Duration::from_millis(50);

/// Who publishes and has not been told of. It knows no clock.
#[derive(Debug, Default)]
pub(crate) struct News {
    pending: Vec<PersonId>,
    /// When anybody was told of last.
    last: Option<Instant>,
}

/// When others are to be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Announcement {
    Now,
    /// At this time, unless [`News::take`] is called before.
    At(Instant),
    /// Together with somebody who came before.
    Pending,
}

impl News {
    /// Somebody's media is up.
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

    /// Takes those of whom the others are told now, in the order in which they came.
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
        let (mut news, start) = (News::default(), Instant::now());
        assert_eq!(news.announce(&al(), start), Announcement::Now);
        let later = start + TOGETHER;
        assert_eq!(news.announce(&bo(), later), Announcement::Now);
        assert_eq!(news.take(later), []);
    }

    #[test]
    fn a_storm_is_told_of_together() {
        let (mut news, start) = (News::default(), Instant::now());
        let ms = Duration::from_millis;
        assert_eq!(news.announce(&al(), start), Announcement::Now);
        let next = Announcement::At(start + TOGETHER);
        assert_eq!(news.announce(&bo(), start + ms(1)), next);
        assert_eq!(news.announce(&cy(), start + ms(2)), Announcement::Pending);
        assert_eq!(news.take(start + TOGETHER), [bo(), cy()]);
        // What was told just now is the last news.
        let next = Announcement::At(start + 2 * TOGETHER);
        assert_eq!(news.announce(&al(), start + TOGETHER + ms(1)), next);
    }

    #[test]
    fn nothing_to_tell_is_no_news() {
        let (mut news, start) = (News::default(), Instant::now());
        assert_eq!(news.take(start), []);
        assert_eq!(news.announce(&al(), start), Announcement::Now);
    }
}
