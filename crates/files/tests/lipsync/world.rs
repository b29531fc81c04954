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
    /// By how much the clocks of microphone and camera are fast, in ppm.
    pub drift: [f64; 2],
    /// The same of the clock that reports are by.
    pub host_drift: f64,
    /// The fastest way of a packet, and what it may take longer.
    pub delay: [f64; 2],
    pub jitter: f64,
    /// Shares of packets that come again when they are asked for, and that never come.
    pub nacked: f64,
    pub lost: f64,
    pub first_report: [f64; 2],
    pub report_every: (f64, f64),
    /// By how much reports err at random, and always.
    pub report_noise: f64,
    pub report_error: [f64; 2],
    pub reports: [bool; 2],
    /// Whether packets have capture times.
    pub captures: bool,
    /// When the tracks begin.
    pub begins: [f64; 2],
    /// What happens, in order.
    pub happens: Vec<(f64, Happens)>,
}

#[derive(Debug, Clone, Copy)]
pub enum Happens {
    Mute(usize),
    Unmute(usize),
    /// The sender sends nothing of a track, or goes on.
    Pause(usize),
    GoOn(usize),
    /// Nobody speaks: a packet each 400 ms. Or somebody does.
    Silence(bool),
    /// Another SSRC, with other timestamps; whether its clock is known before.
    NewStream(usize, bool),
    /// Another simulcast encoding.
    Layer(u8),
    /// The sender's clock is set.
    SetClock(f64),
    /// Reports of a track err by that much from now on.
    Mistake(usize, f64),
    /// So many reports of a track err by that much.
    Slip(usize, f64, u32),
    /// The network takes so much longer.
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
