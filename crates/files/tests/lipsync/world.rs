//! The sender, its network, and the events of a simulation.

/// The index of the sound in [`World`]'s arrays.
pub const SOUND: usize = 0;
/// The index of the picture.
pub const PICTURE: usize = 1;

/// The properties of the sender and its network. Times are in seconds, by the server's clock,
/// which is the true one.
#[derive(Debug, Clone)]
pub struct World {
    pub seed: u64,
    pub seconds: u64,
    /// The drift of the microphone's and the camera's clock, in ppm.
    pub drift: [f64; 2],
    /// The drift of the clock in reports, in ppm.
    pub host_drift: f64,
    /// The shortest delay of packets, and the greatest additional one.
    pub delay: [f64; 2],
    pub jitter: f64,
    /// The shares of retransmitted and of lost packets.
    pub nacked: f64,
    pub lost: f64,
    pub first_report: [f64; 2],
    pub report_every: (f64, f64),
    /// The random and the constant errors of reports.
    pub report_noise: f64,
    pub report_error: [f64; 2],
    pub reports: [bool; 2],
    /// Whether packets have capture times.
    pub captures: bool,
    /// The starts of the tracks.
    pub begins: [f64; 2],
    /// The events with their times, in order.
    pub happens: Vec<(f64, Happens)>,
}

#[derive(Debug, Clone, Copy)]
pub enum Happens {
    Mute(usize),
    Unmute(usize),
    /// The sender pauses or resumes a track.
    Pause(usize),
    GoOn(usize),
    /// Nobody speaks, so there is a packet every 400 ms; or somebody does.
    Silence(bool),
    /// Another SSRC with other timestamps, and whether its clock is known before.
    NewStream(usize, bool),
    /// Another simulcast encoding.
    Layer(u8),
    /// The sender's clock is set.
    SetClock(f64),
    /// Reports of a track are wrong by this much from now on.
    Mistake(usize, f64),
    /// So many reports of a track are wrong by this much.
    Slip(usize, f64, u32),
    /// The network takes this much longer.
    Slower(f64),
    /// Another size of the pictures.
    Size(u16),
}

impl Default for World {
    fn default() -> Self {
        Self {
            seed: 1,
            seconds: 60,
            drift: [200.0, 20.0],
            host_drift: -30.0,
            delay: [0.030, 0.065],
            jitter: 0.030,
            nacked: 0.02,
            lost: 0.0,
            first_report: [1.5, 0.5],
            report_every: (1.0, 5.0),
            report_noise: 0.003,
            report_error: [0.0, 0.0],
            reports: [true, true],
            captures: false,
            begins: [0.0, 0.0],
            happens: Vec::new(),
        }
    }
}
