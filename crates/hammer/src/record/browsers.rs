//! Real browsers as participants.

use serde::{Deserialize, Serialize};

/// What browsers did, and what they measured.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Browsers {
    /// The names and versions of the browsers.
    pub versions: Vec<String>,
    /// Participants of a full room.
    pub room_size: u32,
    /// All participants that were started, in that order.
    pub attempts: Vec<Attempt>,
    /// The quality in times of constant load.
    pub phases: Vec<Phase>,
}

/// One participant. Times are since the start of the run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Attempt {
    /// Its room, from 1.
    pub room: u32,
    /// Its browser, such as `chromium`.
    pub browser: String,
    /// The states that it went through, with the times of their starts.
    pub states: Vec<(State, f64)>,
    /// The reason of a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

/// The state of a participant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Its page is opened.
    Starting,
    /// It has a session and sets up its PeerConnections.
    Connecting,
    /// Its tracks are sent, and both tracks of at least one other participant arrive. The first of
    /// a room only sends.
    Connected,
    /// It did not get there, or lost its connection.
    Failed,
}

/// What the connected browsers measured in a time of constant load.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// `alone`, or what loaded the server besides.
    pub name: String,
    /// Its start, since the start of the run.
    pub start_s: f64,
    /// Its end.
    pub end_s: f64,
    /// Connected browsers.
    pub browsers: u32,
    /// Received video tracks.
    pub video_tracks: u32,
    /// Decoded frames per second and track.
    pub frames_per_s: f64,
    /// Freezes per minute and track.
    pub freezes_per_min: f64,
    /// The share of time in which a track was frozen.
    pub frozen_share: f64,
    /// The share of packets that browsers missed.
    pub lost_share: f64,
    /// The mean round trip of the PeerConnections' selected pairs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round_trip_ms: Option<f64>,
    /// The mean time that a frame waited in the jitter buffer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter_buffer_ms: Option<f64>,
    /// The share of time in which senders limited their video because of CPU time.
    pub limited_by_cpu_share: f64,
    /// The same because of bandwidth.
    pub limited_by_bandwidth_share: f64,
    /// CPU time of the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_cpu_cores: Option<f64>,
}

impl State {
    /// Returns its name in texts.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Connecting => "connecting",
            Self::Connected => "connected",
            Self::Failed => "failed",
        }
    }
}

impl Attempt {
    /// Returns its last state.
    pub fn state(&self) -> State {
        self.states
            .last()
            .map_or(State::Starting, |(state, _)| *state)
    }

    /// Notes a new state. A state that it already has is ignored.
    pub fn enter(&mut self, state: State, at_s: f64) {
        if self.states.last().is_none_or(|(last, _)| *last != state) {
            self.states.push((state, at_s));
        }
    }
}
