//! Listening to peers: who talks, and how much.

use std::time::Instant;

use smallvec::SmallVec;

use super::Worker;
use super::peer::Track;
use crate::graph::{SpeechActivity, SpeechMeter, TalkChange, TalkDetection, TalkDetector};
use crate::{Event, TrackRef};

/// What there is to tell of a packet's level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Heard {
    Talk(TalkChange),
    Speech(SpeechActivity),
}

impl Worker {
    /// Tells who begins and ceases to talk on an m-line, or no more.
    pub(super) fn detect_talking(&mut self, of: TrackRef, detection: Option<TalkDetection>) {
        let Some(track) = self.heard_track(of) else {
            return;
        };
        match (&mut track.talk, detection) {
            (Some(talk), Some(detection)) => talk.set(detection),
            (talk, detection) => {
                *talk = detection.map(|detection| Box::new(TalkDetector::new(detection)));
            }
        }
    }

    /// Tells how much is spoken on an m-line, or no more.
    pub(super) fn measure_speech(&mut self, of: TrackRef, wanted: bool) {
        if let Some(track) = self.heard_track(of) {
            track.speech = wanted.then(|| Box::new(SpeechMeter::new()));
        }
    }

    fn heard_track(&mut self, of: TrackRef) -> Option<&mut Track> {
        let slot = self.by_id.get(&of.peer).copied();
        let peer = slot.and_then(|slot| self.peers.get_mut(slot))?;
        let index = peer.connection.media().iter().position(|m| m.mid == of.mid);
        peer.tracks.get_mut(index?)
    }

    /// Tells what was heard since the last time.
    pub(super) fn tell_what_was_heard(&mut self) {
        while let Some((slot, media, heard)) = self.heard.pop() {
            let Some(peer) = self.peers.get(slot) else {
                continue;
            };
            let Some(media) = peer.connection.media().get(media) else {
                continue;
            };
            let (id, mid) = (peer.id, media.mid);
            let event = match heard {
                Heard::Talk(TalkChange { talking, average }) => Event::Talking {
                    mid,
                    talking,
                    average,
                },
                Heard::Speech(activity) => Event::Speech { mid, activity },
            };
            self.emit(id, event);
        }
    }
}

impl Track {
    /// Whether anybody wants to know how loud its packets are.
    pub(super) fn is_heard(&self) -> bool {
        self.talk.is_some() || self.speech.is_some()
    }

    /// Takes a packet's level, in -dBov.
    pub(super) fn hear(&mut self, level: u8, now: Instant) -> SmallVec<[Heard; 2]> {
        let talk = self.talk.as_mut().and_then(|talk| talk.hear(level));
        let speech = self.speech.as_mut();
        let speech = speech.and_then(|speech| speech.hear(level, now));
        let talk = talk.map(Heard::Talk);
        talk.into_iter().chain(speech.map(Heard::Speech)).collect()
    }
}
