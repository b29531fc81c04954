//! A publisher of video with layers.

use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::bandwidth::{DataRate, Layering};

/// The interval of frames at 30 per second.
const FRAME: Duration = Duration::from_micros(33_333);
/// The time from a keyframe request to the keyframe.
const KEYFRAME_DELAY: Duration = Duration::from_millis(120);
/// The size of a keyframe as a factor of that of a normal frame.
const KEYFRAME_SIZE: f64 = 6.0;
/// The three temporal layers: the layer of each frame, and its share of the bytes.
const PATTERN: [(u8, f64); 4] = [(0, 1.8), (2, 0.6), (1, 1.0), (2, 0.6)];
/// The variation of sizes.
const VARIATION: f64 = 0.2;

/// A frame of an encoding or of a spatial layer.
#[derive(Debug, Clone, Copy)]
pub struct Frame {
    /// The number of the picture.
    pub number: u64,
    /// The encoding or spatial layer.
    pub layer: u8,
    /// The temporal layer, of three.
    pub temporal: u8,
    /// Whether it is a keyframe.
    pub keyframe: bool,
    /// The size in bytes.
    pub bytes: usize,
}

/// A camera and its encoders.
#[derive(Debug)]
pub struct Publisher {
    /// The kind of its layers.
    pub layering: Layering,
    /// The rate of each layer, in kbit/s. 0 means that it is not sent.
    pub kbps: Vec<u64>,
    /// Whether the publisher has paused.
    pub paused: bool,
    /// The share of its frames lost on the way to the server, 0.0 to 1.0.
    pub loss: f64,
    rng: StdRng,
    next: Instant,
    number: u64,
    /// When the next keyframe of each layer is due.
    keyframes: Vec<Option<Instant>>,
}

impl Publisher {
    /// Makes a publisher that starts with a keyframe. The same `seed` sends the same frames.
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

    /// Requests a keyframe of a layer. With spatial layers, it is one of all.
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

    /// Returns whether a frame is lost on the way to the server.
    pub fn loses(&mut self) -> bool {
        self.rng.random_bool(self.loss)
    }

    /// Returns the frames of the picture that is due.
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
            // A spatial layer needs the keyframe of the layer below.
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
