//! Audio levels of publishers: who talks, and who is the dominant speaker.

use portunus_media::SpeechActivity;
use portunus_rtp::Mid;
use tokio::time::Instant;

use super::State;
use crate::publication::detection;
use crate::{Event, Notice, PersonId};

impl State {
    /// Brings the monitoring of a publication's audio up to date.
    pub(super) fn listen(&mut self, id: &PersonId) {
        let Some(person) = self.roster.get(id) else {
            return;
        };
        let detection = detection(person.settings.talk, &self.settings);
        let measured = self.speakers.measured();
        for (mid, level) in self.publications.monitor(id, detection, measured) {
            self.heard(id, mid, false, level);
        }
    }

    /// Notes that a participant talks or is silent, with its average level in -dBov. Tells all.
    pub fn heard(&mut self, id: &PersonId, mid: Mid, talking: bool, level: f64) {
        let Some(talk) = self.publications.heard(id, mid, talking, level) else {
            return;
        };
        if self.roster.get(id).is_some() {
            self.notify_of(id, &Event::Talk(&talk));
        }
        self.tell_all(Notice::Talk(&talk));
    }

    /// Notes the speech activity of a participant. A new dominant speaker gets a seat where it has
    /// none, and is announced.
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

    /// Returns who speaks now, with the activity of each stream. Speech is measured while a client
    /// [hears it](crate::Client::hears_speech).
    pub fn speaking(&self) -> impl Iterator<Item = (&PersonId, SpeechActivity)> {
        self.speakers.present(Instant::now())
    }

    /// Measures speech while the room or a subscription needs the speakers.
    pub(super) fn measure_speech(&mut self) {
        let wanted = self.settings.dominant_speaker
            || self.subscriptions.most_followed().is_some()
            || self.clients.hear_speech();
        if !self.speakers.measure(wanted) {
            return;
        }
        let feeds = self.publications.in_order().map(|(feed, _)| feed.clone());
        for id in feeds.collect::<Vec<_>>() {
            self.listen(&id);
        }
    }
}
