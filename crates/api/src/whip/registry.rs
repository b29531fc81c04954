//! The resources that there are.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rand::Rng;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::resource::Resource;

/// All resources by their ids, and how many more there may be.
#[derive(Debug)]
pub(super) struct Registry {
    resources: Mutex<HashMap<String, Arc<Resource>>>,
    places: Arc<Semaphore>,
}

impl Registry {
    /// At most `max` resources at a time.
    pub(super) fn new(max: usize) -> Self {
        Registry {
            resources: Mutex::default(),
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
        self.resources().insert(id.clone(), resource);
        id
    }

    pub(super) fn find(&self, id: &str) -> Option<Arc<Resource>> {
        self.resources().get(id).cloned()
    }

    pub(super) fn remove(&self, id: &str) -> Option<Arc<Resource>> {
        self.resources().remove(id)
    }

    fn resources(&self) -> MutexGuard<'_, HashMap<String, Arc<Resource>>> {
        self.resources
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// 128 bits of the system's generator: who knows a resource's path may end it.
fn unguessable() -> String {
    format!("{:032x}", rand::rng().random::<u128>())
}
