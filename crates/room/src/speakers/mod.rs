//! The speakers of a room: the dominant one, and the recent ones.

mod dominant;

use std::collections::HashSet;

use portunus_media::SpeechActivity;
use portunus_rtp::Mid;
use tokio::time::Instant;

use crate::PersonId;
use dominant::Dominant;

/// The publishers who have spoken.
#[derive(Debug, Default)]
pub(crate) struct Speakers {
    dominant: Dominant,
    /// The publishers that were the dominant speaker, the last one first.
    recent: Vec<PersonId>,
    measured: bool,
}

impl Speakers {
    /// Notes the speech activity of a publisher. Returns whether it becomes the dominant speaker.
    pub(crate) fn hear(
        &mut self,
        id: &PersonId,
        mid: Mid,
        activity: SpeechActivity,
        now: Instant,
    ) -> bool {
        let is_new = self.dominant.hear(id, mid, activity, now);
        if is_new {
            self.recent.retain(|known| known != id);
            self.recent.insert(0, id.clone());
        }
        is_new
    }

    /// Forgets somebody who has stopped publishing.
    pub(crate) fn forget(&mut self, id: &PersonId) {
        self.dominant.forget(id);
        self.recent.retain(|known| known != id);
    }

    /// Returns who speaks now, with the activity of each stream.
    pub(crate) fn present(
        &self,
        now: Instant,
    ) -> impl Iterator<Item = (&PersonId, SpeechActivity)> {
        self.dominant.present(now)
    }

    /// Returns the dominant speaker.
    pub(crate) fn dominant(&self) -> Option<&PersonId> {
        self.dominant.id()
    }

    /// Returns `most` of the `publishers`: first the speakers, the most recent one first, then the
    /// others in their order.
    pub(crate) fn ranked<'a>(
        &'a self,
        publishers: impl Iterator<Item = &'a PersonId>,
        most: usize,
    ) -> Vec<PersonId> {
        let spoken: HashSet<&PersonId> = self.recent.iter().collect();
        let others = publishers.filter(|id| !spoken.contains(id));
        let ranked = self.recent.iter().chain(others);
        ranked.take(most).cloned().collect()
    }

    /// Returns whether speech is measured.
    pub(crate) const fn measured(&self) -> bool {
        self.measured
    }

    /// Sets whether speech is measured. Returns whether that is a change.
    pub(crate) fn measure(&mut self, measured: bool) -> bool {
        std::mem::replace(&mut self.measured, measured) != measured
    }
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::indexing_slicing,
        reason = "a test fails by a panic"
    )]
    use std::time::Duration;

    use super::*;

    #[test]
    fn who_spoke_last_comes_first_and_the_silent_as_they_came() {
        let ids: Vec<PersonId> = ["a", "b", "c", "d"].map(PersonId::from).to_vec();
        let ranked = |speakers: &Speakers, most| -> Vec<usize> {
            let ranked = speakers.ranked(ids.iter(), most);
            let place = |id: &PersonId| ids.iter().position(|known| known == id).unwrap() + 1;
            ranked.iter().map(place).collect()
        };
        let mut speakers = Speakers::default();
        assert_eq!(ranked(&speakers, 3), [1, 2, 3]);
        let (mid, start) = (Mid::new("0").unwrap(), Instant::now());
        let loud = SpeechActivity {
            immediate: 8,
            medium: 8,
            long: 8,
        };
        assert!(speakers.hear(&ids[2], mid, loud, start));
        assert_eq!(ranked(&speakers, 3), [3, 1, 2]);
        assert!(speakers.hear(&ids[3], mid, loud, start + Duration::from_secs(2)));
        assert_eq!(speakers.dominant(), Some(&ids[3]));
        assert_eq!(ranked(&speakers, 9), [4, 3, 1, 2]);
        speakers.forget(&ids[3]);
        assert_eq!(speakers.dominant(), None);
        assert_eq!(ranked(&speakers, 1), [3]);
    }
}
