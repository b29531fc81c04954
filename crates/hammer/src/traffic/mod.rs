//! The traffic of a viewer: the number, size and times of packets, their senders, and the
//! encryption.

mod profile;
mod topology;

use std::time::Duration;

use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};

pub use profile::Profile;
pub use topology::Topology;
pub(crate) use topology::{Connections, Graph};

/// The length of an RTP header without extensions.
pub const RTP_HEADER_BYTES: usize = 12;
/// The largest RTP packet, in bytes. It fits an MTU of 1,280 with all headers.
pub const PACKET_BYTES: usize = 1_200;
/// The sound in an audio packet.
pub const AUDIO_PERIOD: Duration = Duration::from_millis(20);

/// How the packets of a frame, and the frames, differ in size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sizes {
    /// All packets are of one size
    #[default]
    Equal,
    /// As libwebrtc cuts: the later packets of a frame may have one byte more, frames differ a
    /// little
    AlmostEqual,
    /// As an encoder without pacing gives them: frames from a quarter to several times the mean,
    /// full packets and a short last one
    Varied,
}

/// A stream of video, of audio, or of both.
#[derive(Debug, Clone, PartialEq, Args, Serialize, Deserialize)]
pub struct Traffic {
    /// Video for each viewer, bits per second of RTP (k, M: thousands, millions); 0: none
    #[arg(long = "bitrate", value_name = "BPS", default_value = "2M", value_parser = bits)]
    pub video_bps: u64,
    /// Frames per second
    #[arg(long = "fps", value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=240))]
    pub fps: u32,
    /// Packets that a frame of mean size is cut into [default: as many as a frame needs]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub packets_per_frame: Option<u32>,
    /// How packets differ in size
    #[arg(long, value_enum, default_value_t)]
    pub sizes: Sizes,
    /// Audio for each viewer, bits per second of RTP, 50 packets per second; 0: none
    #[arg(long = "audio-bitrate", value_name = "BPS", default_value = "0", value_parser = bits)]
    pub audio_bps: u64,
}

impl Traffic {
    /// Returns audio alone, with this bit rate.
    pub(crate) fn audio(audio_bps: u64) -> Self {
        Self {
            video_bps: 0,
            fps: 50,
            packets_per_frame: None,
            sizes: Sizes::Equal,
            audio_bps,
        }
    }

    /// Checks that packets are neither too small nor too large.
    pub fn check(&self) -> Result<(), TrafficError> {
        let packet = self.mean_frame_bytes() / self.frame_packets() as f64;
        let room = RTP_HEADER_BYTES as f64 + 20.0;
        if self.video_bps > 0 && !(room..=PACKET_BYTES as f64).contains(&packet) {
            return Err(TrafficError::Video { bytes: packet });
        }
        let packet = self.audio_packet_bytes();
        if self.audio_bps > 0 && !(room as usize..=PACKET_BYTES).contains(&packet) {
            return Err(TrafficError::Audio { bytes: packet });
        }
        if self.video_bps == 0 && self.audio_bps == 0 {
            return Err(TrafficError::Nothing);
        }
        Ok(())
    }

    /// Returns the sizes of frame `number`'s packets as RTP, in bytes, in their order. Each call
    /// returns the same.
    pub fn frame(&self, number: u64) -> Vec<usize> {
        if self.video_bps == 0 {
            return Vec::new();
        }
        let (mean, packets) = (self.mean_frame_bytes(), self.frame_packets());
        match self.sizes {
            Sizes::Equal => vec![(mean / packets as f64).round() as usize; packets],
            Sizes::AlmostEqual => {
                // Within the range in which the number of packets remains.
                let least = packets * (RTP_HEADER_BYTES + 20);
                let most = packets * PACKET_BYTES;
                let bytes = mean * (0.95 + 0.1 * spread(number));
                almost_equal((bytes.round() as usize).clamp(least, most), packets)
            }
            Sizes::Varied => {
                // A quarter to four times the mean, with a mean of 1.
                let factor = 4f64.powf(2.0 * spread(number) - 1.0) / VARIED_MEAN;
                full_and_rest((mean * factor).round() as usize, self.full_packet_bytes())
            }
        }
    }

    /// Returns the size of an audio packet as RTP, in bytes, or 0 without audio.
    pub fn audio_packet_bytes(&self) -> usize {
        (self.audio_bps as f64 * AUDIO_PERIOD.as_secs_f64() / 8.0).round() as usize
    }

    /// Returns the time between two frames.
    pub fn frame_period(&self) -> Duration {
        Duration::from_secs(1) / self.fps
    }

    /// Returns the time within which packets count as in time: the time between two frames, or
    /// without video between two audio packets.
    pub fn interval(&self) -> Duration {
        match self.video_bps {
            0 => AUDIO_PERIOD,
            _ => self.frame_period(),
        }
    }

    /// Returns the packets of one viewer per second: the mean over ten seconds.
    pub fn packets_per_s(&self) -> f64 {
        let frames = u64::from(self.fps) * 10;
        let video: usize = (0..frames).map(|n| self.frame(n).len()).sum();
        let audio = if self.audio_bps > 0 {
            1.0 / AUDIO_PERIOD.as_secs_f64()
        } else {
            0.0
        };
        video as f64 / 10.0 + audio
    }

    /// Returns the packets of a frame of mean size.
    fn frame_packets(&self) -> usize {
        let needed = || {
            (self.mean_frame_bytes() / PACKET_BYTES as f64)
                .ceil()
                .max(1.0) as usize
        };
        self.packets_per_frame.map_or_else(needed, |n| n as usize)
    }

    /// Returns the size of a full packet, if frames are split into full ones and a rest.
    fn full_packet_bytes(&self) -> usize {
        ((self.mean_frame_bytes() / self.frame_packets() as f64).ceil() as usize)
            .max(RTP_HEADER_BYTES + 20)
    }

    fn mean_frame_bytes(&self) -> f64 {
        self.video_bps as f64 / 8.0 / f64::from(self.fps)
    }
}

/// The reason why traffic is impossible.
#[derive(Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TrafficError {
    /// Video packets would be too small or too large.
    #[error(
        "a video packet would have {bytes:.0} bytes; 32 to {PACKET_BYTES} are possible: \
         change --bitrate, --fps or --packets-per-frame"
    )]
    Video {
        /// The size.
        bytes: f64,
    },
    /// Audio packets would be too small or too large.
    #[error(
        "an audio packet would have {bytes} bytes; 32 to {PACKET_BYTES} are possible: change --audio-bitrate"
    )]
    Audio {
        /// The size.
        bytes: usize,
    },
    /// Neither video nor audio is requested.
    #[error("there is neither video nor audio: give --bitrate or --audio-bitrate")]
    Nothing,
}

/// Parses a bit rate such as `500k`, `2M`, `2.5M` or `64000`.
pub fn bits(text: &str) -> Result<u64, String> {
    let (number, unit) = match text.trim_end_matches("bit/s").trim() {
        t if t.ends_with(['k', 'K']) => (t.trim_end_matches(['k', 'K']), 1e3),
        t if t.ends_with('M') => (t.trim_end_matches('M'), 1e6),
        t if t.ends_with('G') => (t.trim_end_matches('G'), 1e9),
        t => (t, 1.0),
    };
    match number.trim().parse::<f64>() {
        Ok(number) if number >= 0.0 && number * unit <= 1e12 => Ok((number * unit).round() as u64),
        _ => Err("a bit rate such as 64000, 500k or 2.5M is expected".to_owned()),
    }
}

/// The mean of 4^x for x from -1 to 1.
const VARIED_MEAN: f64 = (4.0 - 0.25) / (2.0 * 2.0 * std::f64::consts::LN_2);

/// Returns a number from 0 to 1 for each `n`, evenly spread and without pattern (splitmix64).
fn spread(n: u64) -> f64 {
    let mut z = n.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    (z ^ (z >> 31)) as f64 / u64::MAX as f64
}

fn almost_equal(bytes: usize, packets: usize) -> Vec<usize> {
    let (small, larger) = (bytes / packets, bytes % packets);
    (0..packets)
        .map(|n| small + usize::from(n >= packets - larger))
        .collect()
}

fn full_and_rest(bytes: usize, full: usize) -> Vec<usize> {
    let mut sizes = vec![full; bytes / full];
    let rest = bytes % full;
    if rest > 0 || sizes.is_empty() {
        sizes.push(rest.max(RTP_HEADER_BYTES + 20));
    }
    sizes
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;

    fn traffic(sizes: Sizes) -> Traffic {
        Traffic {
            video_bps: 2_000_000,
            fps: 30,
            packets_per_frame: Some(7),
            sizes,
            audio_bps: 0,
        }
    }

    #[test]
    fn each_pattern_keeps_the_bitrate() {
        for sizes in [Sizes::Equal, Sizes::AlmostEqual, Sizes::Varied] {
            let traffic = traffic(sizes);
            assert_eq!(traffic.check(), Ok(()));
            let bytes: usize = (0..3_000).flat_map(|n| traffic.frame(n)).sum();
            let bps = bytes as f64 * 8.0 / 100.0;
            assert!((1.9e6..2.1e6).contains(&bps), "{sizes:?}: {bps}");
        }
    }

    #[test]
    fn the_patterns_are_what_they_say() {
        assert_eq!(traffic(Sizes::Equal).frame(5), vec![1_190; 7]);
        let almost = traffic(Sizes::AlmostEqual);
        for n in 0..100 {
            let sizes = almost.frame(n);
            assert_eq!(sizes.len(), 7);
            assert!(sizes.is_sorted() && sizes.last().unwrap() - sizes.first().unwrap() <= 1);
        }
        let counts: Vec<usize> = (0..300)
            .map(|n| traffic(Sizes::Varied).frame(n).len())
            .collect();
        assert!(
            counts.contains(&2) && counts.iter().any(|n| *n > 14),
            "{counts:?}"
        );
    }

    #[test]
    fn impossible_traffic_is_refused() {
        let mut large = traffic(Sizes::Equal);
        large.video_bps = 8_000_000;
        assert!(matches!(large.check(), Err(TrafficError::Video { .. })));
        large.packets_per_frame = None;
        assert_eq!(large.check(), Ok(()));
        assert_eq!(large.packets_per_s(), 28.0 * 30.0);
        large.video_bps = 0;
        assert_eq!(large.check(), Err(TrafficError::Nothing));
    }

    #[test]
    fn bit_rates_are_read() {
        assert_eq!(bits("500k"), Ok(500_000));
        assert_eq!(bits("2.5M"), Ok(2_500_000));
        assert_eq!(bits("64000"), Ok(64_000));
        for wrong in ["", "fast", "-1", "1e30", "NaN"] {
            assert!(bits(wrong).is_err(), "{wrong}");
        }
    }
}
