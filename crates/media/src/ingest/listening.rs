//! Listening to ingests of audio: who talks, and how much.

use tokio::sync::mpsc;

use super::IngestId;
use crate::{SpeechActivity, TalkDetection};

/// What there is to be told of an ingest of audio, as far as its packets say how loud they are (RFC 6464).
#[derive(Debug, Clone)]
pub struct Listening {
    /// When somebody counts as talking; none: that is not told.
    pub talking: Option<TalkDetection>,
    /// Whether it is told how much is spoken, every 200 ms as long as it is not silent.
    pub speech: bool,
    /// Whom to tell. What finds no room is lost.
    pub tell: mpsc::Sender<Heard>,
}

/// What was heard, and of which ingest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heard {
    /// The ingest.
    pub ingest: IngestId,
    /// What was heard.
    pub sound: Sound,
}

/// What was heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sound {
    /// Somebody has begun or ceased to talk.
    Talking {
        /// Which of the two.
        talking: bool,
        /// How loud it was on average, in hundredths of -dBov: 0 is the loudest, 12700 silence.
        average: u16,
    },
    /// How much is spoken.
    Speech(SpeechActivity),
}
