//! `[audio]`: the threads that audio rooms run on.

use portunus_config::{Configuration, Section};
use serde::{Deserialize, Serialize};

/// The threads that audio rooms run on. Every key has a default.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AudioConfig {
    /// The number of DSP threads; 0 means one for each core. A thread starts when a room first
    /// needs it.
    pub threads: usize,
    /// Whether thread n runs on core n only. Media workers have the same cores, and take
    /// precedence.
    pub pin: bool,
}

impl Configuration for AudioConfig {
    fn read(section: &mut Section<'_>) -> Self {
        let audio: Self = section.keys();
        section.range("threads", audio.threads, 0..=1_024);
        audio
    }
}
