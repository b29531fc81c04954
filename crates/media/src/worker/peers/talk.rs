//! Listening to peers and ingests: who talks, and how much.

use std::time::Instant;

use portunus_rtp::Mid;
use smallvec::SmallVec;
use tokio::sync::mpsc;

use super::{Peers, Track};
use crate::graph::{SpeechActivity, SpeechMeter, TalkChange, TalkDetection, TalkDetector};
use crate::ingest::{self, IngestId, Listening, Sound};
use crate::{Event, TrackRef};

/// What there is to tell of a packet's level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::worker) enum VoiceActivity {
    Talk(TalkChange),
    Speech(SpeechActivity),
}

/// Listens to one source of audio.
#[derive(Default)]
pub(in crate::worker) struct AudioLevels {
    /// Listens if anybody wants to know who talks.
    talk: Option<Box<TalkDetector>>,
    /// Listens if anybody wants to know how much is spoken.
    speech: Option<Box<SpeechMeter>>,
}

impl AudioLevels {
    /// Whether anybody wants to know how loud the packets are.
    pub(in crate::worker) fn are_wanted(&self) -> bool {
        self.talk.is_some() || self.speech.is_some()
    }

    /// Takes a packet's level, in -dBov.
    pub(in crate::worker) fn take(
        &mut self,
        level: u8,
        now: Instant,
    ) -> SmallVec<[VoiceActivity; 2]> {
        let talk = self.talk.as_mut().and_then(|talk| talk.hear(level));
        let speech = self.speech.as_mut();
        let speech = speech.and_then(|speech| speech.hear(level, now));
        let talk = talk.map(VoiceActivity::Talk);
        talk.into_iter()
            .chain(speech.map(VoiceActivity::Speech))
            .collect()
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
pub(in crate::worker) struct IngestLevels {
    ingest: IngestId,
    levels: AudioLevels,
    tell: mpsc::Sender<ingest::Heard>,
}

impl IngestLevels {
    /// Takes a packet's level, in -dBov.
    pub(in crate::worker) fn take(&mut self, level: u8, now: Instant) {
        for activity in self.levels.take(level, now) {
            let sound = match activity {
                VoiceActivity::Talk(TalkChange { talking, average }) => {
                    Sound::Talking { talking, average }
                }
                VoiceActivity::Speech(speech) => Sound::Speech(speech),
            };
            let ingest = self.ingest;
            // Who does not keep up hears the next one.
            let _ = self.tell.try_send(ingest::Heard { ingest, sound });
        }
    }
}

impl IngestLevels {
    /// Listens to an ingest, for whoever is told.
    pub(in crate::worker) fn new(ingest: IngestId, tell: mpsc::Sender<ingest::Heard>) -> Self {
        let levels = AudioLevels::default();
        Self {
            ingest,
            levels,
            tell,
        }
    }

    /// Listens for this from now on.
    pub(in crate::worker) fn listen(&mut self, listening: Listening) {
        let Listening {
            talking,
            speech,
            tell,
        } = listening;
        self.tell = tell;
        self.levels.detect_talking(talking);
        if speech != self.levels.speech.is_some() {
            self.levels.measure_speech(speech);
        }
    }
}

impl VoiceActivity {
    /// What the control plane is told of an m-line.
    pub(in crate::worker) fn event(self, mid: Mid) -> Event {
        match self {
            VoiceActivity::Talk(TalkChange { talking, average }) => Event::Talking {
                mid,
                talking,
                average,
            },
            VoiceActivity::Speech(activity) => Event::Speech { mid, activity },
        }
    }
}

impl Peers {
    /// Tells who begins and ceases to talk on an m-line, or no more.
    pub(in crate::worker) fn detect_talking(
        &mut self,
        of: TrackRef,
        detection: Option<TalkDetection>,
    ) {
        if let Some(track) = self.track_of(of) {
            track.levels.detect_talking(detection);
        }
    }

    /// Tells how much is spoken on an m-line, or no more.
    pub(in crate::worker) fn measure_speech(&mut self, of: TrackRef, wanted: bool) {
        if let Some(track) = self.track_of(of) {
            track.levels.measure_speech(wanted);
        }
    }

    fn track_of(&mut self, of: TrackRef) -> Option<&mut Track> {
        let (_, peer) = self.find_mut(of.peer)?;
        let index = peer.connection.media().iter().position(|m| m.mid == of.mid);
        peer.tracks.get_mut(index?)
    }
}
