//! What is heard in a tick.

use slab::Slab;

use super::mixes::Of;
use super::participant::Participant;

/// A sum of sounds. It is kept with 64 bits, so that what was added can be taken out again without a trace.
#[derive(Debug, Clone)]
pub(super) struct Sum {
    sound: Vec<f64>,
    /// How many sounds are in it.
    pub(super) sources: u32,
    /// Somebody hears it.
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

    /// Begins a sum. One that is not `wanted` stays empty.
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

    /// Appends the sum without one of its sounds.
    fn render_without(&self, sound: &[f32], into: &mut Vec<f32>) {
        into.extend(
            self.sound
                .iter()
                .zip(sound)
                .map(|(sum, sample)| (*sum - f64::from(*sample)) as f32),
        );
    }
}

/// What is heard in a tick.
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

    /// What a participant brings to the mix.
    fn own(&self, owner: usize) -> Option<&[f32]> {
        self.participants.get(owner)?.input.as_ref()?.contribution()
    }
}
