//! Division of a rate among ladders.

use smallvec::SmallVec;

use super::ladder::Ladder;
use crate::bandwidth::DataRate;

/// A track that takes part.
#[derive(Debug)]
pub(super) struct Claim {
    /// Its index in the list of tracks, and its m-line.
    pub track: usize,
    pub media: usize,
    /// The priority. Higher ones come first.
    pub priority: u8,
    pub ladder: Ladder,
    /// The current step. `None` if the track is new.
    pub current: Option<usize>,
    /// The highest step that it may get.
    pub most: usize,
}

impl Claim {
    /// Returns the rate of the current step.
    pub fn present_rate(&self) -> DataRate {
        self.current
            .map_or(DataRate::ZERO, |step| self.ladder.rate(step))
    }

    /// Returns the rate of the source if its publisher alone decides on it.
    pub fn top_if_single(&self) -> Option<DataRate> {
        let ladder = &self.ladder;
        ladder.is_single.then(|| ladder.rate(ladder.top()))
    }

    /// Returns the cost of a step. A step above the current one costs more than its rate, so that
    /// it waits until there is a margin. The margin is for the keyframe that it starts with, which
    /// is as large for all frames of an encoding as for half of them.
    fn cost(&self, step: usize, margin: f64) -> DataRate {
        let rate = self.ladder.rate(step);
        if self.current.is_none_or(|current| step <= current) {
            return rate;
        }
        let whole = self.ladder.whole_rate(step);
        rate + (whole.times(margin) - whole)
    }
}

/// Returns the step of each claim. All get the lowest step, even if that exceeds `total`. Those that
/// may pause get it only if it fits: the highest priority first, and among equals those that flow
/// already. The rest goes to the highest priority first, step by step and in turn among equals.
pub(super) fn divide(claims: &[Claim], total: DataRate, margin: f64) -> SmallVec<[usize; 8]> {
    divide_by(claims, total, margin, |claim| claim.priority)
}

/// Returns the step of each claim without priorities.
pub(super) fn divide_as_equals(
    claims: &[Claim],
    total: DataRate,
    margin: f64,
) -> SmallVec<[usize; 8]> {
    divide_by(claims, total, margin, |_| 0)
}

fn divide_by(
    claims: &[Claim],
    total: DataRate,
    margin: f64,
    priority_of: impl Fn(&Claim) -> u8,
) -> SmallVec<[usize; 8]> {
    let mut steps: SmallVec<[usize; 8]> = SmallVec::from_elem(0, claims.len());
    let lowest: DataRate = claims.iter().map(|claim| claim.ladder.rate(0)).sum();
    let mut left = total - lowest;
    let mut priorities: SmallVec<[u8; 8]> = claims.iter().map(&priority_of).collect();
    priorities.sort_unstable_by(|a, b| b.cmp(a));
    priorities.dedup();
    let flows = |claim: &Claim| claim.current.is_some_and(|step| step > 0);
    for (priority, flowing) in priorities.iter().flat_map(|it| [(*it, true), (*it, false)]) {
        for (claim, step) in claims.iter().zip(&mut steps) {
            let is_next =
                claim.ladder.may_pause && priority_of(claim) == priority && flows(claim) == flowing;
            let cost = claim.cost(claim.ladder.least(), margin);
            if is_next && claim.most > 0 && cost <= left {
                left = left - cost;
                *step = claim.ladder.least();
            }
        }
    }
    for priority in priorities {
        let mut rises = true;
        while std::mem::take(&mut rises) {
            for (claim, step) in claims.iter().zip(&mut steps) {
                if priority_of(claim) != priority || claim.ladder.is_pause(*step) {
                    continue;
                }
                let before = claim.cost(*step, margin);
                // A step that costs no more than the one below is passed through.
                let next = (*step + 1..=claim.most)
                    .find(|next| claim.cost(*next, margin) <= before + left);
                if let Some(next) = next {
                    left = (left + before) - claim.cost(next, margin);
                    *step = next;
                    rises = true;
                }
            }
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing, reason = "a test fails by a panic")]
    use super::super::{LayerRates, Layering, Target};
    use super::*;
    use proptest::prelude::*;

    const ALL: Target = Target {
        encoding: 2,
        spatial: 2,
        temporal: 2,
    };

    fn claim(priority: u8, kbps: [u64; 3], current: Option<usize>) -> Claim {
        let rate = |kbps| [Some(DataRate::kbps(kbps)), None, None];
        let rates = LayerRates {
            layering: Layering::Encodings,
            rates: kbps.map(rate),
        };
        let ladder = Ladder::new(&rates, ALL);
        let most = ladder.top();
        Claim {
            track: 0,
            media: 0,
            priority,
            ladder,
            current,
            most,
        }
    }

    fn divided(claims: &[Claim], kbps: u64) -> Vec<usize> {
        divide(claims, DataRate::kbps(kbps), 1.15).to_vec()
    }

    const USUAL: [u64; 3] = [150, 500, 1_800];

    #[test]
    fn equals_rise_in_turn() {
        let claims = [
            claim(0, USUAL, None),
            claim(0, USUAL, None),
            claim(0, USUAL, None),
        ];
        assert_eq!(divided(&claims, 100), [0, 0, 0]);
        assert_eq!(divided(&claims, 1_200), [1, 1, 0]);
        assert_eq!(divided(&claims, 1_600), [1, 1, 1]);
        assert_eq!(divided(&claims, 3_000), [2, 1, 1]);
    }

    #[test]
    fn the_highest_priority_comes_first_but_all_get_the_lowest() {
        let claims = [claim(0, USUAL, None), claim(5, USUAL, None)];
        assert_eq!(divided(&claims, 700), [0, 1]);
        assert_eq!(divided(&claims, 2_000), [0, 2]);
        assert_eq!(divided(&claims, 2_300), [1, 2]);
    }

    #[test]
    fn a_higher_step_needs_room_to_spare_and_a_present_one_does_not() {
        assert_eq!(divided(&[claim(0, USUAL, Some(1))], 510), [1]);
        assert_eq!(divided(&[claim(0, USUAL, Some(0))], 510), [0]);
        assert_eq!(divided(&[claim(0, USUAL, Some(0))], 576), [1]);
    }

    proptest! {
        #[test]
        fn no_more_is_given_than_there_is_but_for_the_lowest(
            kbps in proptest::collection::vec(proptest::array::uniform3(1_u64..3_000), 1..12),
            priorities in proptest::collection::vec(0_u8..3, 12),
            total in 0_u64..20_000,
        ) {
            let claims: Vec<Claim> =
                kbps.iter().zip(&priorities).map(|(kbps, p)| claim(*p, *kbps, None)).collect();
            let steps = divide(&claims, DataRate::kbps(total), 1.0);
            let given: DataRate =
                claims.iter().zip(&steps).map(|(claim, step)| claim.ladder.rate(*step)).sum();
            let lowest: DataRate = claims.iter().map(|claim| claim.ladder.rate(0)).sum();
            prop_assert!(given <= DataRate::kbps(total).max(lowest));
        }
    }
}
