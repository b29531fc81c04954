//! The gains of participants.

use crate::Channels;

/// The greatest gain: 60 dB. Higher ones are limited to it.
const MOST: f32 = 1_000.0;

/// The factors of both channels. A mono room uses the left one only.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Gains {
    left: f32,
    right: f32,
}

impl Gains {
    pub(crate) const SILENT: Gains = Gains {
        left: 0.0,
        right: 0.0,
    };

    /// Returns the gains of a participant. In a stereo room, the left channel gets `1 - position`
    /// of it, and the right one `position`.
    pub(crate) fn new(gain: f32, position: f32, channels: Channels) -> Self {
        let gain = if gain.is_finite() {
            gain.clamp(0.0, MOST)
        } else {
            1.0
        };
        let position = if position.is_finite() {
            position.clamp(0.0, 1.0)
        } else {
            0.5
        };
        match channels {
            Channels::Mono => Gains {
                left: gain,
                right: gain,
            },
            Channels::Stereo => Gains {
                left: gain * (1.0 - position),
                right: gain * position,
            },
        }
    }

    pub(crate) fn is_silent(&self) -> bool {
        *self == Gains::SILENT
    }

    /// Applies the gains to a frame, with a fade if they differ from `before`.
    pub(crate) fn apply(&self, before: &Gains, sound: &mut [f32], channels: Channels) {
        match channels {
            Channels::Mono if before == self => scale(sound, self.left),
            Channels::Mono => {
                let step = (self.left - before.left) / sound.len().max(1) as f32;
                for (at, sample) in sound.iter_mut().enumerate() {
                    *sample *= before.left + step * (at + 1) as f32;
                }
            }
            Channels::Stereo => {
                let (pairs, _) = sound.as_chunks_mut::<2>();
                let length = pairs.len().max(1) as f32;
                let left = (self.left - before.left) / length;
                let right = (self.right - before.right) / length;
                for (at, [l, r]) in pairs.iter_mut().enumerate() {
                    let at = (at + 1) as f32;
                    *l *= before.left + left * at;
                    *r *= before.right + right * at;
                }
            }
        }
    }
}

fn scale(sound: &mut [f32], gain: f32) {
    if gain != 1.0 {
        for sample in sound {
            *sample *= gain;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_linear() {
        let mut sound = [1.0; 4];
        let gains = Gains::new(2.0, 0.25, Channels::Stereo);
        gains.apply(&gains, &mut sound, Channels::Stereo);
        assert_eq!(sound, [1.5, 0.5, 1.5, 0.5]);
        let middle = Gains::new(1.0, 0.5, Channels::Stereo);
        let mut sound = [1.0; 2];
        middle.apply(&middle, &mut sound, Channels::Stereo);
        assert_eq!(sound, [0.5, 0.5]);
    }

    #[test]
    fn a_change_takes_a_frame() {
        let mut sound = [1.0; 4];
        let gains = Gains::new(1.0, 0.5, Channels::Mono);
        gains.apply(&Gains::SILENT, &mut sound, Channels::Mono);
        assert_eq!(sound, [0.25, 0.5, 0.75, 1.0]);
    }

    #[test]
    fn nonsense_is_harmless() {
        let gains = Gains::new(f32::NAN, f32::INFINITY, Channels::Stereo);
        assert_eq!(gains, Gains::new(1.0, 0.5, Channels::Stereo));
        let loud = Gains::new(f32::MAX, 0.0, Channels::Stereo);
        assert_eq!(loud, Gains::new(MOST, 0.0, Channels::Stereo));
        assert!(Gains::new(-1.0, 0.5, Channels::Mono).is_silent());
    }
}
