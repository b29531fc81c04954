//! A publisher whose video has layers.

use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::bandwidth::{DataRate, Layering};

/// 30 pictures a second.
const FRAME: Duration = Duration::from_micros(33_333);
/// From the request of a keyframe to the keyframe.
const KEYFRAME_DELAY: Duration = Duration::from_millis(120);
/// A keyframe is so many times as large as a usual frame.
const KEYFRAME_SIZE: f64 = 6.0;
/// Three temporal layers: which frame belongs to which, and what share of the bytes each has.
const PATTERN: [(u8, f64); 4] = [(0, 1.8), (2, 0.6), (1, 1.0), (2, 0.6)];
/// Sizes vary by this much.
const VARIATION: f64 = 0.2;

/// A frame of an encoding or of a spatial layer.
#[derive(Debug, Clone, Copy)]
pub struct Frame {
    /// Which picture.
    pub number: u64,
    /// Encoding or spatial layer.
    pub layer: u8,
    /// Its temporal layer, of three.
    pub temporal: u8,
    /// Nothing before it is needed.
    pub keyframe: bool,
    /// Its size.
    pub bytes: usize,
}

/// A camera and its encoders.
#[derive(Debug)]
pub struct Publisher {
    /// What tells its layers apart.
    pub layering: Layering,
    /// What each layer takes, in kbit/s; 0: it is not sent.
    pub kbps: Vec<u64>,
    /// The camera is covered, so to speak: nothing is sent.
    pub paused: bool,
    /// Share of its frames that are lost on the way to the server, 0.0 to 1.0.
    pub loss: f64,
    rng: StdRng,
    next: Instant,
    number: u64,
    /// When the next frame of a layer is to be a keyframe.
    keyframes: Vec<Option<Instant>>,
}

impl Publisher {
    /// One that begins with a keyframe. The same `seed` sends the same.
    pub fn new(seed: u64, layering: Layering, kbps: &[u64], now: Instant) -> Self {
        Self {
            layering,
            kbps: kbps.to_vec(),
            paused: false,
            loss: 0.0,
            rng: StdRng::seed_from_u64(seed),
            next: now,
            number: 0,
            keyframes: vec![Some(now); kbps.len()],
        }
    }

    /// A keyframe of a layer is to come soon; with spatial layers it is one of all.
    pub fn request_keyframe(&mut self, layer: u8, now: Instant) {
        let layers = match self.layering {
            Layering::Encodings => usize::from(layer)..usize::from(layer) + 1,
            Layering::Spatial => 0..self.keyframes.len(),
        };
        for keyframe in self
            .keyframes
            .iter_mut()
            .take(layers.end)
            .skip(layers.start)
        {
            keyframe.get_or_insert(now + KEYFRAME_DELAY);
        }
    }

    /// Whether a frame is lost on the way to the server.
    pub fn loses(&mut self) -> bool {
        self.rng.random_bool(self.loss)
    }

    /// The frames of the picture that is due, if one is.
    pub fn poll(&mut self, now: Instant) -> Vec<Frame> {
        if self.next > now {
            return Vec::new();
        }
        self.next += FRAME;
        self.number += 1;
        if self.paused {
            return Vec::new();
        }
        let [even, first, middle, last] = PATTERN;
        let (temporal, weight) = match self.number % 4 {
            0 => even,
            1 => first,
            2 => middle,
            _ => last,
        };
        let mut frames = Vec::new();
        for (layer, kbps) in self.kbps.iter().enumerate() {
            if *kbps == 0 {
                continue;
            }
            let Some(requested) = self.keyframes.get_mut(layer) else {
                break;
            };
            let due = requested.is_some_and(|at| at <= now);
            // A spatial layer needs the keyframe of the one below.
            let alone = layer == 0 || self.layering == Layering::Encodings;
            let keyframe =
                due && (alone || frames.last().is_some_and(|frame: &Frame| frame.keyframe));
            if keyframe {
                *requested = None;
            }
            let size = DataRate::kbps(*kbps).bytes_in(FRAME) as f64;
            let varied = self.rng.random_range(1.0 - VARIATION..1.0 + VARIATION);
            let bytes = if keyframe {
                size * KEYFRAME_SIZE
            } else {
                size * weight * varied
            };
            frames.push(Frame {
                number: self.number,
                layer: layer as u8,
                temporal: if keyframe { 0 } else { temporal },
                keyframe,
                bytes: bytes as usize,
            });
        }
        frames
    }
}
