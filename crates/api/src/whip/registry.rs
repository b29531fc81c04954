//! The resources that there are.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rand::Rng;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::path::Kind;
use super::resource::Resource;

/// How many resources that have ended are remembered, the last ones.
const MAX_ENDED: usize = 4_096;

/// All resources by their ids, and how many more there may be.
#[derive(Debug)]
pub(super) struct Registry {
    known: Mutex<Known>,
    places: Arc<Semaphore>,
}

#[derive(Debug, Default)]
struct Known {
    resources: HashMap<String, Arc<Resource>>,
    /// Those that have ended, the last one last.
    ended: VecDeque<(Kind, String)>,
}

impl Registry {
    /// At most `max` resources at a time.
    pub(super) fn new(max: usize) -> Self {
        Registry {
            known: Mutex::default(),
            places: Arc::new(Semaphore::new(max.min(Semaphore::MAX_PERMITS))),
        }
    }

    /// A place for a resource; none if there are too many.
    pub(super) fn place(&self) -> Option<OwnedSemaphorePermit> {
        self.places.clone().try_acquire_owned().ok()
    }

    /// Adds a resource; gives its id.
    pub(super) fn add(&self, resource: Arc<Resource>) -> String {
        let id = unguessable();
        self.known().resources.insert(id.clone(), resource);
        id
    }

    pub(super) fn find(&self, kind: Kind, id: &str) -> Option<Arc<Resource>> {
        let resource = self.known().resources.get(id).cloned();
        resource.filter(|resource| resource.kind() == kind)
    }

    /// Forgets a resource that ends, but for its id.
    pub(super) fn remove(&self, id: &str) {
        let mut known = self.known();
        if let Some((id, resource)) = known.resources.remove_entry(id) {
            if known.ended.len() >= MAX_ENDED {
                known.ended.pop_front();
            }
            known.ended.push_back((resource.kind(), id));
        }
    }

    /// Whether there was a resource of this id not long ago.
    pub(super) fn has_ended(&self, kind: Kind, id: &str) -> bool {
        let known = self.known();
        known
            .ended
            .iter()
            .rev()
            .any(|(of, ended)| (*of, ended.as_str()) == (kind, id))
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// 128 bits of the system's generator: who knows a resource's path may end it.
fn unguessable() -> String {
    format!("{:032x}", rand::rng().random::<u128>())
}
