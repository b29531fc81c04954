//! Listening to those who publish: who talks, and who has the floor.

use portunus_core::Mid;
use portunus_core::media::SpeechActivity;
use portunus_resources::Id;
use serde_json::Value;
use tokio::time::Instant;

use super::RoomState;
use crate::publication::detection;

impl RoomState {
    /// Listens to what somebody sends, where the room wants that and packets say how loud they are.
    pub(crate) fn listen(&mut self, id: &Id) {
        let Some(person) = self.roster.get(id) else {
            return;
        };
        let detection = detection(person.settings.talk, &self.options);
        let measured = self.speakers.measured();
        for (mid, level) in self.publications.listen(id, detection, measured) {
            self.heard(id, mid, false, level);
        }
    }

    /// Somebody has begun or ceased to talk: all are told.
    pub(crate) fn heard(&mut self, id: &Id, mid: Mid, talking: bool, level: f64) {
        let heard = self.publications.heard((&self.id, id), mid, talking, level);
        if let Some(event) = heard {
            let event = Value::from(event);
            if let Some(person) = self.roster.get(id) {
                self.notify(person.handle(), || event.clone());
            }
            self.tell_all(event);
        }
    }

    /// Takes what was heard of somebody. If it makes that one the dominant speaker, it takes a seat where it has none, and
    /// those who want to know are told.
    pub(crate) fn speech(&mut self, id: &Id, mid: Mid, activity: SpeechActivity) {
        if !self.publications.is_measured(id, mid) {
            return;
        }
        if !self.speakers.hear(id, mid, activity, Instant::now()) {
            return;
        }
        if self.options.dominant_speaker {
            self.tell_all(self.event().with("dominant", id.to_json()));
        }
        self.dominant_changed();
    }

    /// Measures speech as long as anybody wants to know of it.
    pub(crate) fn measure_speech(&mut self) {
        let wanted = self.options.dominant_speaker || self.subscriptions.most_followed().is_some();
        if !self.speakers.measure(wanted) {
            return;
        }
        let feeds = self.publications.in_order().map(|(feed, _)| feed.clone());
        for id in feeds.collect::<Vec<_>>() {
            self.listen(&id);
        }
    }
}
