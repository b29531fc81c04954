//! Settings that administrators change at run time.

use std::time::Duration;

use crate::MediaConfig;

/// The time without media after which plugins are notified, if clients are not.
const UNTOLD_SILENCE: Duration = Duration::from_secs(1);

/// Settings that administrators change at run time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MediaSettings {
    /// The minimum time for which packets can be retransmitted, or 3/5 of that for sources of other
    /// workers.
    pub nack_queue: Duration,
    /// Packets from before the last keyframe are not retransmitted.
    pub nack_optimizations: bool,
    /// The time without media after which clients are notified. `None` disables that.
    pub no_media: Option<Duration>,
    /// The number of lost packets per second that is reported as a slow link. 0 disables it.
    pub slow_link_threshold: u32,
}

impl MediaSettings {
    /// The default and the maximum of [`MediaSettings::nack_queue`].
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

    /// The time without media after which plugins are notified.
    pub(crate) fn silence(&self) -> Duration {
        self.no_media.unwrap_or(UNTOLD_SILENCE)
    }
}
