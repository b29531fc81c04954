//! Talk detection and speech measurement of audio ingests.

use portunus_graph::{IngestId, SpeechActivity, TalkDetection};
use tokio::sync::mpsc;

/// What is reported of an audio ingest whose packets carry audio levels (RFC 6464).
#[derive(Debug, Clone)]
pub struct Listening {
    /// When the source counts as talking. `None` disables these reports.
    pub talking: Option<TalkDetection>,
    /// Whether speech activity is reported, every 200 ms unless it is silent.
    pub speech: bool,
    /// The channel for reports. They are dropped if it is full.
    pub tell: mpsc::Sender<Heard>,
}

/// A report on an ingest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heard {
    /// The ingest.
    pub ingest: IngestId,
    /// The report.
    pub sound: Sound,
}

/// The content of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sound {
    /// The source has started or stopped talking.
    Talking {
        /// Whether it talks now.
        talking: bool,
        /// The average level in hundredths of -dBov: 0 is the loudest, 12,700 is silence.
        average: u16,
    },
    /// The speech activity.
    Speech(SpeechActivity),
}
