//! What administrators change of the media plane while it runs.

use std::time::Duration;

use crate::MediaConfig;

/// How long a medium may be silent before plugins are told, where clients are not to be.
const UNTOLD_SILENCE: Duration = Duration::from_secs(1);

/// What administrators change of the media plane while it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MediaSettings {
    /// For how long what is sent can be sent again, at least. What came from another worker is kept for 3/5 of that.
    pub nack_queue: Duration,
    /// What came before the last keyframe is not sent again.
    pub nack_optimizations: bool,
    /// How long a medium may be silent before that is told; none: clients are not to be told.
    pub no_media: Option<Duration>,
    /// Packets lost within a second that are told as a slow link; 0: never.
    pub slow_link_threshold: u32,
}

impl MediaSettings {
    /// For how long what is sent can be sent again, where nothing else is asked for; and the longest that can be asked for.
    pub const NACK_QUEUE: Duration = Duration::from_secs(1);

    pub(crate) fn new(config: &MediaConfig) -> Self {
        let no_media = Duration::from_millis(config.no_media_ms.into());
        Self {
            nack_queue: Self::NACK_QUEUE,
            nack_optimizations: false,
            no_media: Some(no_media).filter(|time| !time.is_zero()),
            slow_link_threshold: config.slow_link_threshold,
        }
    }

    /// How long a medium may be silent before plugins are told.
    pub(crate) fn silence(&self) -> Duration {
        self.no_media.unwrap_or(UNTOLD_SILENCE)
    }
}
