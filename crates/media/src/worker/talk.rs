//! Listening to peers and ingests: who talks, and how much.

use std::time::Instant;

use smallvec::SmallVec;
use tokio::sync::mpsc;

use super::Worker;
use super::peer::Track;
use crate::graph::{SpeechActivity, SpeechMeter, TalkChange, TalkDetection, TalkDetector};
use crate::ingest::{self, IngestId, Listening, Sound};
use crate::{Event, TrackRef};

/// What there is to tell of a packet's level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Heard {
    Talk(TalkChange),
    Speech(SpeechActivity),
}

/// Listens to one source of audio.
#[derive(Default)]
pub(super) struct Ears {
    /// Listens if anybody wants to know who talks.
    talk: Option<Box<TalkDetector>>,
    /// Listens if anybody wants to know how much is spoken.
    speech: Option<Box<SpeechMeter>>,
}

impl Ears {
    /// Whether anybody wants to know how loud the packets are.
    pub(super) fn are_open(&self) -> bool {
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

    fn detect_talking(&mut self, detection: Option<TalkDetection>) {
        match (&mut self.talk, detection) {
            (Some(talk), Some(detection)) => talk.set(detection),
            (talk, detection) => {
                *talk = detection.map(|detection| Box::new(TalkDetector::new(detection)));
            }
        }
    }

    fn measure_speech(&mut self, wanted: bool) {
        self.speech = wanted.then(|| Box::new(SpeechMeter::new()));
    }
}

/// Listens to an ingest.
pub(super) struct IngestEars {
    ingest: IngestId,
    ears: Ears,
    tell: mpsc::Sender<ingest::Heard>,
}

impl IngestEars {
    /// Takes a packet's level, in -dBov.
    pub(super) fn hear(&mut self, level: u8, now: Instant) {
        for heard in self.ears.hear(level, now) {
            let sound = match heard {
                Heard::Talk(TalkChange { talking, average }) => Sound::Talking { talking, average },
                Heard::Speech(activity) => Sound::Speech(activity),
            };
            let ingest = self.ingest;
            // Who does not keep up hears the next one.
            let _ = self.tell.try_send(ingest::Heard { ingest, sound });
        }
    }
}

impl Worker {
    /// Listens to an ingest, or no more.
    pub(super) fn listen_to_ingest(&mut self, id: IngestId, listening: Option<Listening>) {
        let Some(ingest) = self.ingests.get_mut(id) else {
            return;
        };
        let Some(Listening {
            talking,
            speech,
            tell,
        }) = listening
        else {
            ingest.ears = None;
            return;
        };
        let known = ingest.ears.get_or_insert_with(|| {
            Box::new(IngestEars {
                ingest: id,
                ears: Ears::default(),
                tell: tell.clone(),
            })
        });
        known.tell = tell;
        known.ears.detect_talking(talking);
        if speech != known.ears.speech.is_some() {
            known.ears.measure_speech(speech);
        }
    }

    /// Tells who begins and ceases to talk on an m-line, or no more.
    pub(super) fn detect_talking(&mut self, of: TrackRef, detection: Option<TalkDetection>) {
        if let Some(track) = self.heard_track(of) {
            track.ears.detect_talking(detection);
        }
    }

    /// Tells how much is spoken on an m-line, or no more.
    pub(super) fn measure_speech(&mut self, of: TrackRef, wanted: bool) {
        if let Some(track) = self.heard_track(of) {
            track.ears.measure_speech(wanted);
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
            self.outbox.send(id, event);
        }
    }
}
