//! The registry of resources.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rand::Rng;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::path::Kind;
use super::resource::Resource;

/// The number of ended resources that are remembered.
const MAX_ENDED: usize = 4_096;

/// All resources by their ids, with a limit.
#[derive(Debug)]
pub(super) struct Registry {
    known: Mutex<Known>,
    places: Arc<Semaphore>,
}

#[derive(Debug, Default)]
struct Known {
    resources: HashMap<String, Arc<Resource>>,
    /// Ended resources, the last one last.
    ended: VecDeque<(Kind, String)>,
}

impl Registry {
    /// Allows at most `max` resources.
    pub(super) fn new(max: usize) -> Self {
        Registry {
            known: Mutex::default(),
            places: Arc::new(Semaphore::new(max.min(Semaphore::MAX_PERMITS))),
        }
    }

    /// Takes a place for a resource. Returns `None` if there are too many.
    pub(super) fn place(&self) -> Option<OwnedSemaphorePermit> {
        self.places.clone().try_acquire_owned().ok()
    }

    /// Adds a resource, and returns its id.
    pub(super) fn add(&self, resource: Arc<Resource>) -> String {
        let id = unguessable();
        self.known().resources.insert(id.clone(), resource);
        id
    }

    pub(super) fn find(&self, kind: Kind, id: &str) -> Option<Arc<Resource>> {
        let resource = self.known().resources.get(id).cloned();
        resource.filter(|resource| resource.kind() == kind)
    }

    /// Removes an ended resource, and remembers its id.
    pub(super) fn remove(&self, id: &str) {
        let mut known = self.known();
        if let Some((id, resource)) = known.resources.remove_entry(id) {
            if known.ended.len() >= MAX_ENDED {
                known.ended.pop_front();
            }
            known.ended.push_back((resource.kind(), id));
        }
    }

    /// Whether a resource with this id ended recently.
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

/// Makes an id of 128 random bits, since the path of a resource allows ending it.
fn unguessable() -> String {
    format!("{:032x}", rand::rng().random::<u128>())
}
