//! The choices for a track, the lowest first.

use smallvec::SmallVec;

use super::{LayerRates, Layering, Target};
use crate::bandwidth::DataRate;

/// A choice and its rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Step {
    pub target: Target,
    pub rate: DataRate,
}

/// The steps of a track.
#[derive(Debug, Clone, Default)]
pub(super) struct Ladder {
    pub steps: SmallVec<[Step; 8]>,
    /// The source sends more than the client wants.
    pub is_bounded: bool,
    /// The source has one encoding with one spatial layer, so its publisher decides on the rate.
    pub is_single: bool,
    /// The lowest step relays nothing.
    pub may_pause: bool,
}

impl Ladder {
    /// Makes the steps that a source offers within the client's bounds. Without an encoding within
    /// them, the lowest one counts.
    ///
    /// Above the lowest encoding or spatial layer, less than half the frame rate is not offered: a
    /// small smooth video is better than a large one that jerks.
    pub fn new(rates: &LayerRates, most: Target) -> Self {
        let mut ladder = Self::default();
        let least = (0_u8..)
            .zip(&rates.rates)
            .find(|(_, layers)| layers.iter().any(Option::is_some))
            .map_or(0, |(index, _)| index);
        for (index, layers) in (0_u8..).zip(&rates.rates) {
            let (target, bound) = match rates.layering {
                Layering::Encodings => (
                    Target {
                        encoding: index,
                        ..most
                    },
                    most.encoding.max(least),
                ),
                Layering::Spatial => (
                    Target {
                        spatial: index,
                        ..most
                    },
                    most.spatial,
                ),
            };
            let offered = || {
                (0_u8..)
                    .zip(layers)
                    .filter(|(_, rate)| rate.is_some())
                    .map(|(t, _)| t)
            };
            let (count, highest) = (
                offered().count(),
                offered().filter(|t| *t <= most.temporal).max(),
            );
            for temporal in offered() {
                if index > bound || temporal > most.temporal {
                    ladder.is_bounded = true;
                    continue;
                }
                let jerks = usize::from(temporal) + 2 < count;
                if index > 0 && jerks && !ladder.steps.is_empty() {
                    continue;
                }
                let rate = taken(rates, index, temporal);
                // The highest layer stands for all layers.
                let temporal = if Some(temporal) == highest {
                    most.temporal
                } else {
                    temporal
                };
                let target = Target { temporal, ..target };
                ladder.steps.push(Step { target, rate });
            }
        }
        let sent = rates
            .rates
            .iter()
            .filter(|layers| layers.iter().any(Option::is_some));
        ladder.is_single = sent.count() == 1;
        ladder
    }

    /// Adds a lowest step that relays nothing.
    pub fn allow_pause(&mut self) {
        if let Some(least) = self.steps.first().copied() {
            let rate = DataRate::ZERO;
            self.steps.insert(0, Step { rate, ..least });
            self.may_pause = true;
        }
    }

    /// Returns whether a step relays nothing.
    pub fn is_pause(&self, step: usize) -> bool {
        self.may_pause && step == 0
    }

    /// Returns the lowest step that relays.
    pub fn least(&self) -> usize {
        usize::from(self.may_pause)
    }

    /// Returns the step at or below a target.
    pub fn at_most(&self, target: Target) -> Option<usize> {
        let key = |target: Target| (target.encoding, target.spatial, target.temporal);
        let position = self
            .steps
            .iter()
            .rposition(|step| key(step.target) <= key(target));
        position.or_else(|| (!self.steps.is_empty()).then_some(self.least()))
    }

    /// Returns the lowest step of the same encoding and spatial layer.
    pub fn lowest_like(&self, step: usize) -> usize {
        let key = |step: &Step| (step.target.encoding, step.target.spatial);
        let of = self.steps.get(step).map(key);
        self.steps
            .iter()
            .position(|step| Some(key(step)) == of)
            .map_or(step, |position| position.max(self.least()))
    }

    /// Returns the rate of a step.
    pub fn rate(&self, step: usize) -> DataRate {
        self.steps
            .get(step)
            .map_or(DataRate::ZERO, |step| step.rate)
    }

    /// Returns the rate of the whole encoding or spatial layer of a step.
    pub fn whole_rate(&self, step: usize) -> DataRate {
        let key = |step: &Step| (step.target.encoding, step.target.spatial);
        let of = self.steps.get(step).map(key);
        let whole = self.steps.iter().rfind(|step| Some(key(step)) == of);
        whole.map_or(DataRate::ZERO, |step| step.rate)
    }

    /// Returns the best step.
    pub fn top(&self) -> usize {
        self.steps.len().saturating_sub(1)
    }
}

/// Returns the rate of a layer: its temporal layers up to this one, and with SVC those of the lower
/// spatial layers.
fn taken(rates: &LayerRates, index: u8, temporal: u8) -> DataRate {
    let lowest = match rates.layering {
        Layering::Encodings => index,
        Layering::Spatial => 0,
    };
    let layers = rates.rates.iter().take(usize::from(index) + 1);
    let layers = layers.skip(usize::from(lowest));
    let rates = layers.flat_map(|layers| layers.iter().take(usize::from(temporal) + 1));
    rates.flatten().copied().sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Target = Target {
        encoding: 2,
        spatial: 2,
        temporal: 2,
    };

    fn rates(layering: Layering, kbps: [[u64; 3]; 3]) -> LayerRates {
        let rate = |kbps| (kbps > 0).then(|| DataRate::kbps(kbps));
        let rates = kbps.map(|layers| layers.map(rate));
        LayerRates { layering, rates }
    }

    fn steps(ladder: &Ladder) -> Vec<(u8, u8, u8, u64)> {
        let step = |step: &Step| {
            let Target {
                encoding,
                spatial,
                temporal,
            } = step.target;
            (encoding, spatial, temporal, step.rate.as_bps() / 1_000)
        };
        ladder.steps.iter().map(step).collect()
    }

    #[test]
    fn simulcast_has_a_step_for_each_rate_that_does_not_jerk() {
        let rates = rates(
            Layering::Encodings,
            [[80, 30, 40], [250, 100, 150], [900, 300, 600]],
        );
        let ladder = Ladder::new(&rates, ALL);
        let expected = [
            (0, 2, 0, 80),
            (0, 2, 1, 110),
            (0, 2, 2, 150),
            (1, 2, 1, 350),
            (1, 2, 2, 500),
            (2, 2, 1, 1_200),
            (2, 2, 2, 1_800),
        ];
        assert_eq!(steps(&ladder), expected);
        assert!(!ladder.is_bounded);
    }

    #[test]
    fn svc_takes_all_layers_below() {
        let rates = rates(Layering::Spatial, [[60, 40, 0], [200, 100, 0], [0, 0, 0]]);
        let ladder = Ladder::new(&rates, ALL);
        let expected = [
            (2, 0, 0, 60),
            (2, 0, 2, 100),
            (2, 1, 0, 260),
            (2, 1, 2, 400),
        ];
        assert_eq!(steps(&ladder), expected);
    }

    #[test]
    fn the_clients_bounds_hold() {
        let rates = rates(
            Layering::Encodings,
            [[100, 50, 0], [400, 100, 0], [900, 300, 0]],
        );
        let most = Target {
            encoding: 1,
            temporal: 0,
            ..ALL
        };
        let ladder = Ladder::new(&rates, most);
        assert_eq!(steps(&ladder), [(0, 2, 0, 100), (1, 2, 0, 400)]);
        assert!(ladder.is_bounded);
    }

    #[test]
    fn the_lowest_encoding_there_is_stands_for_those_that_the_client_wants() {
        let rates = rates(Layering::Encodings, [[0; 3], [400, 100, 0], [900, 0, 0]]);
        let most = Target {
            encoding: 0,
            temporal: 0,
            ..ALL
        };
        let ladder = Ladder::new(&rates, most);
        assert_eq!(steps(&ladder), [(1, 2, 0, 400)]);
        assert!(ladder.is_bounded);
    }

    #[test]
    fn a_target_that_is_gone_becomes_the_next_below() {
        let rates = rates(Layering::Encodings, [[100, 0, 0], [0; 3], [900, 0, 0]]);
        let ladder = Ladder::new(&rates, ALL);
        assert_eq!(ladder.at_most(Target { encoding: 1, ..ALL }), Some(0));
        assert_eq!(ladder.at_most(ALL), Some(1));
        assert_eq!(Ladder::default().at_most(ALL), None);
    }
}
