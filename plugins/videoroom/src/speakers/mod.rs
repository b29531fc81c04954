//! Who speaks in a room: who does so now, and who did most recently.

mod dominant;

use std::collections::HashSet;

use portunus_core::Mid;
use portunus_core::media::SpeechActivity;
use tokio::time::Instant;

use crate::id::Id;
use crate::room::RoomState;
use dominant::Dominant;

/// Those who have spoken.
#[derive(Debug, Default)]
pub(crate) struct Speakers {
    dominant: Dominant,
    /// The dominant speakers of this room who still publish, the last one first.
    recent: Vec<Id>,
    /// Speech is measured.
    measured: bool,
}

impl Speakers {
    /// Somebody does not publish any more.
    pub(crate) fn forget(&mut self, id: &Id) {
        self.dominant.forget(id);
        self.recent.retain(|known| known != id);
    }

    /// Whether speech is measured.
    pub(crate) const fn measured(&self) -> bool {
        self.measured
    }
}

impl RoomState {
    /// The dominant speaker.
    pub(crate) fn dominant(&self) -> Option<&Id> {
        self.speakers.dominant.id()
    }

    /// The first `most` publishers: those who spoke, the most recent first, and then the others in the order in which they
    /// came.
    pub(crate) fn ranked(&self, most: usize) -> Vec<Id> {
        let recent = &self.speakers.recent;
        let spoken: HashSet<&Id> = recent.iter().collect();
        let others = self.publishers().filter(|p| !p.origin.is_dummy());
        let others = others.map(|p| &p.id).filter(|id| !spoken.contains(id));
        recent.iter().chain(others).take(most).cloned().collect()
    }

    /// Takes what was heard of somebody. If it makes that one the dominant speaker, it takes a seat where it has none, and
    /// those who want to know are told.
    pub(crate) fn speech(&mut self, id: &Id, mid: Mid, activity: SpeechActivity) {
        let stream = self.stream(id, mid);
        if !stream.is_some_and(|stream| stream.is_open() && stream.talk.measured) {
            return;
        }
        let now = Instant::now();
        if !self.speakers.dominant.hear(id, mid, activity, now) {
            return;
        }
        self.speakers.recent.retain(|known| known != id);
        self.speakers.recent.insert(0, id.clone());
        if self.options.dominant_speaker {
            self.tell_all(self.event().with("dominant", id.to_json()));
        }
        self.dominance_changed();
    }

    /// Measures speech as long as anybody wants to know of it.
    pub(crate) fn measure_speech(&mut self) {
        let wanted = self.options.dominant_speaker || self.has_speakers_followed();
        if wanted == self.speakers.measured {
            return;
        }
        self.speakers.measured = wanted;
        let people: Vec<Id> = self.publishers().map(|person| person.id.clone()).collect();
        for id in people {
            self.listen(&id);
        }
    }
}
