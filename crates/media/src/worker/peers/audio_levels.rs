//! Talk detection and speech measurement of peers and ingests.

use std::time::Instant;

use portunus_graph::{SpeechActivity, SpeechMeter, TalkChange, TalkDetection, TalkDetector};
use portunus_rtp::Mid;
use smallvec::SmallVec;
use tokio::sync::mpsc;

use super::{Peers, Track};
use crate::ingest::{self, IngestId, Listening, Sound};
use crate::{Event, TrackRef};

/// A report on the audio level of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::worker) enum VoiceActivity {
    Talk(TalkChange),
    Speech(SpeechActivity),
}

/// Measures the audio levels of a source.
#[derive(Default)]
pub(in crate::worker) struct AudioLevels {
    /// Detects talking, if wanted.
    talk: Option<Box<TalkDetector>>,
    /// Measures speech, if wanted.
    speech: Option<Box<SpeechMeter>>,
}

impl AudioLevels {
    /// Whether audio levels are needed.
    pub(in crate::worker) fn are_wanted(&self) -> bool {
        self.talk.is_some() || self.speech.is_some()
    }

    /// Takes the level of a packet, in -dBov.
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
        self.speech = wanted.then(|| Box::new(SpeechMeter::default()));
    }
}

/// Measures the audio levels of an ingest.
pub(in crate::worker) struct IngestLevels {
    ingest: IngestId,
    levels: AudioLevels,
    tell: mpsc::Sender<ingest::Heard>,
}

impl IngestLevels {
    /// Takes the level of a packet, in -dBov.
    pub(in crate::worker) fn take(&mut self, level: u8, now: Instant) {
        for activity in self.levels.take(level, now) {
            let sound = match activity {
                VoiceActivity::Talk(TalkChange { talking, average }) => {
                    Sound::Talking { talking, average }
                }
                VoiceActivity::Speech(speech) => Sound::Speech(speech),
            };
            let ingest = self.ingest;
            // A receiver that does not keep up gets the next report.
            let _ = self.tell.try_send(ingest::Heard { ingest, sound });
        }
    }
}

impl IngestLevels {
    /// Returns the measurement of an ingest, without anything to report yet.
    pub(in crate::worker) fn new(ingest: IngestId, tell: mpsc::Sender<ingest::Heard>) -> Self {
        let levels = AudioLevels::default();
        Self {
            ingest,
            levels,
            tell,
        }
    }

    /// Sets what is reported.
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
    /// Returns the event for an m-line.
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
    /// Sets whether talking on an m-line is reported.
    pub(in crate::worker) fn detect_talking(
        &mut self,
        of: TrackRef,
        detection: Option<TalkDetection>,
    ) {
        if let Some(track) = self.track_of(of) {
            track.levels.detect_talking(detection);
        }
    }

    /// Sets whether speech on an m-line is reported.
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
