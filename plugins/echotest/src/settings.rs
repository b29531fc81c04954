//! The settings of a client, from the start of its handle or its last hangup on.

use std::time::Duration;

use crate::request::Configure;

/// The settings of a client.
pub(crate) struct Settings {
    pub(crate) audio: bool,
    pub(crate) video: bool,
    /// In bit/s. 0 means no cap.
    pub(crate) bitrate: u64,
    pub(crate) substream: u8,
    pub(crate) temporal: u8,
    pub(crate) spatial_layer: u8,
    pub(crate) temporal_layer: u8,
    pub(crate) fallback: Duration,
    /// In 10 ms. Both apply once both are set.
    pub(crate) min_delay: Option<u16>,
    pub(crate) max_delay: Option<u16>,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            audio: true,
            video: true,
            bitrate: 0,
            substream: 2,
            temporal: 2,
            spatial_layer: 2,
            temporal_layer: 2,
            fallback: DEFAULT_FALLBACK,
            min_delay: None,
            max_delay: None,
        }
    }
}

const DEFAULT_FALLBACK: Duration = Duration::from_millis(250);

impl Settings {
    pub(crate) fn apply(&mut self, request: &Configure) {
        let set = |target: &mut u8, value: Option<u8>| *target = value.unwrap_or(*target);
        self.audio = request.audio.unwrap_or(self.audio);
        self.video = request.video.unwrap_or(self.video);
        self.bitrate = request.bitrate.unwrap_or(self.bitrate);
        set(&mut self.substream, request.substream);
        set(&mut self.temporal, request.temporal);
        set(&mut self.spatial_layer, request.spatial_layer);
        set(&mut self.temporal_layer, request.temporal_layer);
        match request.fallback {
            None => {}
            Some(0) => self.fallback = DEFAULT_FALLBACK,
            Some(micros) => self.fallback = Duration::from_micros(micros),
        }
        self.set_delays(request.min_delay, request.max_delay);
    }

    /// Sets one or both. The other one follows where they would cross. A negative one removes both.
    fn set_delays(&mut self, min: Option<i64>, max: Option<i64>) {
        /// The header extension has 12 bits for each.
        const LONGEST: u16 = 4_095;
        let delay = |value: i64| u16::try_from(value).ok().map(|delay| delay.min(LONGEST));
        let (min, max) = (
            min.map(|v| v.min(LONGEST.into())),
            max.map(|v| v.min(LONGEST.into())),
        );
        if let Some(min) = min {
            self.min_delay = delay(min);
            self.max_delay = self
                .min_delay
                .map(|min| self.max_delay.unwrap_or(min).max(min));
        }
        if let Some(max) = max {
            self.max_delay = delay(max);
            self.min_delay = match (self.min_delay, self.max_delay) {
                (Some(min), Some(max)) => Some(min.min(max)),
                (_, None) | (None, _) => None,
            };
        }
    }
}
