//! Who speaks, and how loud.

use std::collections::BTreeMap;

use portunus_room::{PersonId, State};

/// The activity from which on somebody counts as speaking: 9 dB above the noise.
const SPEAKS: u8 = 3;

/// The steps of a level.
const STEPS: u8 = 8;

/// The speakers of a room with their levels, in steps of 1/8.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Speaking(BTreeMap<PersonId, u8>);

impl Speaking {
    /// Returns the present speakers.
    pub(super) fn of(state: &State) -> Self {
        let mut speaking = BTreeMap::new();
        for (id, activity) in state.speaking() {
            if activity.immediate >= SPEAKS {
                let level = steps(activity.immediate);
                let known: &mut u8 = speaking.entry(id.clone()).or_default();
                *known = level.max(*known);
            }
        }
        Speaking(speaking)
    }

    /// Takes the speakers of now. Returns those who are louder, lower, or silent, with their
    /// levels; 0 is silence.
    pub(super) fn change(&mut self, now: Speaking) -> Vec<(PersonId, f32)> {
        let before = std::mem::replace(self, now);
        let now = self.0.iter();
        let changed = now.filter(|(id, level)| before.0.get(id) != Some(level));
        let mut changes: Vec<(PersonId, f32)> = changed
            .map(|(id, level)| (id.clone(), f32::from(*level) / f32::from(STEPS)))
            .collect();
        let silent = before.0.into_keys().filter(|id| !self.0.contains_key(id));
        changes.extend(silent.map(|id| (id, 0.0)));
        changes
    }
}

/// Returns the level of an activity from 0 to 10.
fn steps(activity: u8) -> u8 {
    activity.min(10).saturating_mul(STEPS).div_ceil(10)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn speaking(levels: &[(&str, u8)]) -> Speaking {
        let entry = |(id, level): &(&str, u8)| (PersonId::from(*id), *level);
        Speaking(levels.iter().map(entry).collect())
    }

    #[test]
    fn only_changes_are_told() {
        let mut speakers = Speaking::default();
        let changes = speakers.change(speaking(&[("al", 4), ("bo", 8)]));
        assert_eq!(changes, [("al".into(), 0.5), ("bo".into(), 1.0)]);
        assert!(
            speakers
                .change(speaking(&[("al", 4), ("bo", 8)]))
                .is_empty()
        );
        let changes = speakers.change(speaking(&[("al", 2)]));
        assert_eq!(changes, [("al".into(), 0.25), ("bo".into(), 0.0)]);
    }

    #[test]
    fn levels_are_eighths() {
        assert_eq!([0, 3, 5, 10, 99].map(steps), [0, 3, 4, 8, 8]);
    }
}
