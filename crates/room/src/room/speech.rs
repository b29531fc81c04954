//! Listening to those who publish: who talks, and who has the floor.

use portunus_media::SpeechActivity;
use portunus_rtp::Mid;
use tokio::time::Instant;

use super::State;
use crate::publication::detection;
use crate::{Event, Notice, PersonId};

impl State {
    /// Listens to what somebody sends, where the room wants that and packets say how loud they are.
    pub(super) fn listen(&mut self, id: &PersonId) {
        let Some(person) = self.roster.get(id) else {
            return;
        };
        let detection = detection(person.settings.talk, &self.settings);
        let measured = self.speakers.measured();
        for (mid, level) in self.publications.listen(id, detection, measured) {
            self.heard(id, mid, false, level);
        }
    }

    /// Somebody has begun or ceased to talk, with this average level in -dBov: all are told.
    pub fn heard(&mut self, id: &PersonId, mid: Mid, talking: bool, level: f64) {
        let Some(talk) = self.publications.heard(id, mid, talking, level) else {
            return;
        };
        if let Some(person) = self.roster.get(id) {
            self.notify_of(person, &Event::Talk(&talk));
        }
        self.tell_all(Notice::Talk(&talk));
    }

    /// Takes what was heard of somebody. If it makes that one the dominant speaker, it takes a seat where it has none, and
    /// those who want to know are told.
    pub fn speech(&mut self, id: &PersonId, mid: Mid, activity: SpeechActivity) {
        if !self.publications.is_measured(id, mid) {
            return;
        }
        if !self.speakers.hear(id, mid, activity, Instant::now()) {
            return;
        }
        if self.settings.dominant_speaker {
            self.tell_all(Notice::Dominant(id));
        }
        self.reseat_followers(true);
    }

    /// Measures speech as long as anybody wants to know of it.
    pub(super) fn measure_speech(&mut self) {
        let wanted = self.settings.dominant_speaker || self.subscriptions.most_followed().is_some();
        if !self.speakers.measure(wanted) {
            return;
        }
        let feeds = self.publications.in_order().map(|(feed, _)| feed.clone());
        for id in feeds.collect::<Vec<_>>() {
            self.listen(&id);
        }
    }
}
