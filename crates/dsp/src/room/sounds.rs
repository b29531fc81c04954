//! The audio of a tick.

use slab::Slab;

use super::mixes::Of;
use super::participant::Participant;

/// A sum of audio. It has 64 bits, so that a part can be subtracted exactly.
#[derive(Debug, Clone)]
pub(super) struct Sum {
    sound: Vec<f64>,
    /// The number of parts.
    pub(super) sources: u32,
    /// Whether the sum is needed.
    wanted: bool,
}

impl Sum {
    pub(super) fn new(frame: usize) -> Self {
        Sum {
            sound: vec![0.0; frame],
            sources: 0,
            wanted: false,
        }
    }

    /// Starts a sum. A sum that is not `wanted` stays empty.
    pub(super) fn begin(&mut self, wanted: bool) {
        self.wanted = wanted;
        if self.sources > 0 {
            self.sound.fill(0.0);
            self.sources = 0;
        }
    }

    pub(super) fn add(&mut self, sound: &[f32]) {
        if !self.wanted {
            return;
        }
        self.sources += 1;
        for (sum, sample) in self.sound.iter_mut().zip(sound) {
            *sum += f64::from(*sample);
        }
    }

    /// Appends the sum to `into`.
    pub(super) fn render(&self, into: &mut Vec<f32>) {
        into.extend(self.sound.iter().map(|sum| *sum as f32));
    }

    /// Appends the sum without one of its parts.
    fn render_without(&self, sound: &[f32], into: &mut Vec<f32>) {
        into.extend(
            self.sound
                .iter()
                .zip(sound)
                .map(|(sum, sample)| (*sum - f64::from(*sample)) as f32),
        );
    }
}

/// The audio of a tick.
pub(super) struct Sounds<'a> {
    pub(super) everyone: &'a Sum,
    pub(super) groups: &'a [Sum],
    pub(super) participants: &'a Slab<Participant>,
}

impl Sounds<'_> {
    pub(super) fn is_silent(&self, of: Of) -> bool {
        match of {
            Of::Everyone => self.everyone.sources == 0,
            Of::Group(group) => self.groups.get(group).is_none_or(|sum| sum.sources == 0),
            Of::AllBut(owner) => self.everyone.sources == u32::from(self.own(owner).is_some()),
        }
    }

    /// Appends a mix to `into`.
    pub(super) fn render(&self, of: Of, into: &mut Vec<f32>) {
        match of {
            Of::Everyone => self.everyone.render(into),
            Of::Group(group) => {
                if let Some(sum) = self.groups.get(group) {
                    sum.render(into);
                }
            }
            Of::AllBut(owner) => match self.own(owner) {
                Some(own) => self.everyone.render_without(own, into),
                None => self.everyone.render(into),
            },
        }
    }

    /// Returns the part of a participant.
    fn own(&self, owner: usize) -> Option<&[f32]> {
        self.participants.get(owner)?.input.as_ref()?.contribution()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Channels;
    use crate::mix::Gains;

    const FRAME: usize = 64;

    fn voices() -> impl Strategy<Value = Vec<(Vec<f32>, f32, f32)>> {
        let sound = proptest::collection::vec(-1.0f32..1.0, FRAME);
        proptest::collection::vec((sound, 0.0f32..1_000.0, 0.0f32..1.0), 1..40)
    }

    proptest! {
        /// The audio of a participant and of its mix together is everything. Its mix equals the sum
        /// of the others, to the last encoded bit.
        #[test]
        fn ones_own_sound_is_left_out_exactly(voices in voices()) {
            let mut all = Sum::new(FRAME);
            all.begin(true);
            let mut contributions = Vec::new();
            for (sound, gain, position) in &voices {
                let mut sound = sound.clone();
                let gains = Gains::new(*gain, *position, Channels::Stereo);
                gains.apply(&gains, &mut sound, Channels::Stereo);
                all.add(&sound);
                contributions.push(sound);
            }
            let mut everyone = Vec::new();
            all.render(&mut everyone);
            for (own, contribution) in contributions.iter().enumerate() {
                let mut heard = Vec::new();
                all.render_without(contribution, &mut heard);
                for (at, heard) in heard.iter().enumerate() {
                    let others: f64 = contributions
                        .iter()
                        .enumerate()
                        .filter(|(other, _)| *other != own)
                        .filter_map(|(_, sound)| sound.get(at))
                        .map(|sample| f64::from(*sample))
                        .sum();
                    prop_assert!((f64::from(*heard) - others).abs() <= others.abs() * 1e-7 + 1e-9);
                    let whole = f64::from(*heard) + f64::from(contribution.get(at).copied().unwrap_or_default());
                    let wanted = f64::from(everyone.get(at).copied().unwrap_or_default());
                    prop_assert!((whole - wanted).abs() <= (others.abs() + wanted.abs()) * 2e-7 + 1e-9);
                }
            }
        }
    }

    #[test]
    fn what_nobody_wants_is_not_added() {
        let mut sum = Sum::new(4);
        sum.add(&[1.0; 4]);
        assert_eq!(sum.sources, 0);
        sum.begin(true);
        sum.add(&[1.0; 4]);
        sum.begin(true);
        sum.add(&[0.5; 4]);
        let mut sound = Vec::new();
        sum.render(&mut sound);
        assert_eq!(sound, [0.5; 4]);
    }
}
