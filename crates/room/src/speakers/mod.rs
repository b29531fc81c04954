//! Who speaks in a room: who does so now, and who did most recently.

mod dominant;

use std::collections::HashSet;

use portunus_media::SpeechActivity;
use portunus_rtp::Mid;
use tokio::time::Instant;

use crate::PersonId;
use dominant::Dominant;

/// Those who have spoken and still publish.
#[derive(Debug, Default)]
pub(crate) struct Speakers {
    dominant: Dominant,
    /// Those who were the dominant speaker, the last one first.
    recent: Vec<PersonId>,
    measured: bool,
}

impl Speakers {
    /// Takes what was heard of somebody; true if it makes that one the dominant speaker.
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

    /// Somebody does not publish any more.
    pub(crate) fn forget(&mut self, id: &PersonId) {
        self.dominant.forget(id);
        self.recent.retain(|known| known != id);
    }

    /// The dominant speaker.
    pub(crate) fn dominant(&self) -> Option<&PersonId> {
        self.dominant.id()
    }

    /// The first `most` of those who publish, which are given in the order in which they came: first those who spoke, the
    /// most recent one before the others.
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

    /// Whether speech is measured.
    pub(crate) const fn measured(&self) -> bool {
        self.measured
    }

    /// Measures speech from now on, or does not; false if that was so before.
    pub(crate) fn measure(&mut self, measured: bool) -> bool {
        std::mem::replace(&mut self.measured, measured) != measured
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
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
