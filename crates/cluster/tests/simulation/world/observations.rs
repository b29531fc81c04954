//! What the servers of nodes are told, and what has to hold at each moment.

use std::time::Duration;

use portunus_cluster::{Event, HomeKey, Place, Revision};

use super::{Death, World};

impl World {
    pub(super) fn event(&mut self, index: usize, event: Event) {
        let host = &mut self.hosts[index];
        match event {
            Event::Home { key, place } => {
                self.note(format!("n{index}: {key} is {place:?}"));
                self.check_place(index, &key, &place);
                self.hosts[index].places.insert(key, place);
            }
            Event::Ended { key } => {
                host.open.remove(&key);
                host.places.remove(&key);
                host.items.retain(|(of, _, _), _| *of != key);
                host.ended += 1;
            }
            Event::Item {
                key,
                node,
                item,
                value,
            } => {
                if value.is_none() {
                    self.gone.push((index, key.clone(), node.clone()));
                }
                let place = (key, node, item);
                match value {
                    Some(value) => drop(host.items.insert(place, value)),
                    None => {
                        if host.items.remove(&place).is_some() {
                            host.gone += 1;
                        }
                    }
                }
            }
            Event::NodeLost { node } => {
                self.note(format!("n{index} has lost {node}"));
                let told = |death: &Death| death.witness == index && death.node == node;
                self.deaths.retain(|death| !told(death));
            }
            Event::NameTaken => panic!("n{index} has lost its name\n{}", self.story()),
            _ => {}
        }
        let late = self.deaths.iter().find(|death| {
            let waited = self.now.saturating_duration_since(death.at);
            let host = &self.hosts[death.witness];
            waited > Duration::from_millis(2_600)
                && host.epoch == death.witness_epoch
                && host.node.is_some()
        });
        if let Some(death) = late {
            panic!("late news of a death: {death:?}\n{}", self.story());
        }
    }

    /// Revisions only grow, and two nodes never have a home at one revision.
    fn check_place(&self, index: usize, key: &HomeKey, place: &Place) {
        let revision = |place: &Place| match place {
            Place::Here { revision } | Place::There { revision, .. } => Some(*revision),
            Place::Nowhere(_) => None,
        };
        let before = self.hosts[index].places.get(key).and_then(revision);
        if let (Some(before), Some(after)) = (before, revision(place)) {
            assert!(
                after >= before || after == Revision::LOCAL,
                "{before:?} then {after:?}\n{}",
                self.story()
            );
        }
        if let Place::Here { revision } = place
            && *revision != Revision::LOCAL
        {
            for (other, host) in self.hosts.iter().enumerate() {
                let same = host.places.get(key) == Some(place);
                assert!(
                    other == index || host.node.is_none() || !same,
                    "two homes of {key}\n{}",
                    self.story()
                );
            }
        }
    }
}
