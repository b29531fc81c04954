//! What a participant's page reports about itself.

use serde::Deserialize;

/// The state and counters of a page.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PageReport {
    pub(crate) state: PageState,
    pub(crate) failure: Option<String>,
    /// The time of the counters, in ms of the page's own clock.
    pub(crate) at_ms: f64,
    pub(crate) video_tracks: u32,
    pub(crate) frames_decoded: f64,
    pub(crate) freezes: f64,
    pub(crate) frozen_s: f64,
    pub(crate) packets_received: f64,
    pub(crate) packets_lost: f64,
    pub(crate) round_trip_ms: Option<f64>,
    pub(crate) jitter_buffer_s: f64,
    pub(crate) jitter_buffer_frames: f64,
    pub(crate) limited_by_cpu_s: f64,
    pub(crate) limited_by_bandwidth_s: f64,
    /// The time of all senders' limits and of none.
    pub(crate) sending_s: f64,
}

/// The state of a page.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum PageState {
    #[default]
    Connecting,
    Connected,
    Failed,
}
