//! The resources that were ended permanently, for nodes of a cluster that were away meanwhile: such a
//! node has them in its configuration or its file, and would bring them back.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::Id;

/// How long an end is known.
const KNOWN: Duration = Duration::from_secs(30 * 86_400);
/// The most ends that are known.
const MAX_ENDS: usize = 1_000;
/// How long the other nodes may still list a resource after its end, and how long those that return
/// together take to tell of theirs.
const SPREADING: Duration = Duration::from_secs(3);

/// The ids of resources that were ended permanently since the start of this node, and when.
#[derive(Debug, Default)]
pub(crate) struct Ended(Mutex<BTreeMap<Id, End>>);

#[derive(Debug)]
struct End {
    at: Instant,
    /// When a node was first told that had been away.
    told: Option<Instant>,
}

impl Ended {
    fn times(&self) -> MutexGuard<'_, BTreeMap<Id, End>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a resource was ended. Beyond the limit the oldest end is forgotten.
    pub(crate) fn note(&self, id: &Id, at: Instant) {
        let mut times = self.times();
        times.insert(id.clone(), End { at, told: None });
        if times.len() > MAX_ENDS {
            let oldest = times.iter().min_by_key(|(_, end)| end.at);
            if let Some(id) = oldest.map(|(id, _)| id.clone()) {
                times.remove(&id);
            }
        }
    }

    /// A resource of this id was made anew.
    pub(crate) fn made(&self, id: &Id) {
        self.times().remove(id);
    }

    /// Another node has such a resource. Returns how long ago it was ended, so that the node ends it,
    /// too, if it does not know of the end. Some time after the end it may also have been made anew: 3 s
    /// after the first node was told, the end is forgotten.
    pub(crate) fn listed(&self, id: &Id, now: Instant) -> Option<Duration> {
        let mut times = self.times();
        let end = times.get_mut(id)?;
        let ago = now.saturating_duration_since(end.at);
        if ago >= SPREADING {
            let told = *end.told.get_or_insert(now);
            if now.saturating_duration_since(told) >= SPREADING {
                times.remove(id);
                return None;
            }
        }
        (ago < KNOWN).then_some(ago)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_ends_are_known_until_a_resource_is_made_anew() {
        let begin = Instant::now();
        let at = |seconds: u64| begin + Duration::from_secs(seconds);
        let last = MAX_ENDS as u64;
        let ended = Ended::default();
        for id in 0..=last {
            ended.note(&Id::Number(id), at(id));
        }
        ended.made(&Id::Number(7));
        let listed = |id: u64, seconds: u64| {
            let ago = ended.listed(&Id::Number(id), at(id + seconds));
            ago.map(|ago| ago.as_secs())
        };
        assert_eq!(listed(0, 1), None, "it is the oldest one");
        assert_eq!(listed(7, 1), None, "there is another one here");
        assert_eq!((listed(8, 1), listed(8, 2)), (Some(1), Some(2)));
        // Two nodes that have returned, and one that has it later.
        assert_eq!((listed(9, 60), listed(9, 61)), (Some(60), Some(61)));
        assert_eq!((listed(9, 63), listed(9, 64)), (None, None));
        assert_eq!(listed(10, KNOWN.as_secs()), None, "it is too long ago");
    }
}
