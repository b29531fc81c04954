//! Resources by their ids, and ids that are being made into resources.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::{Id, Ids, Refusal};

/// All resources of a plugin.
#[derive(Debug)]
pub(crate) struct Registry<R> {
    entries: Mutex<Entries<R>>,
}

#[derive(Debug)]
struct Entries<R> {
    by_id: HashMap<Id, Entry<R>>,
    /// Counts what was reserved, so that lists have the order of creation.
    next: u64,
}

#[derive(Debug)]
struct Entry<R> {
    order: u64,
    /// None while it is being made.
    resource: Option<Arc<R>>,
}

/// An id that nobody else gets; it is free again when this is dropped without [`Reservation::keep`].
#[derive(Debug)]
#[must_use]
pub struct Reservation<R> {
    registry: Arc<Registry<R>>,
    id: Id,
    kept: bool,
}

impl<R> Default for Registry<R> {
    fn default() -> Self {
        let entries = Entries {
            by_id: HashMap::new(),
            next: 0,
        };
        Registry {
            entries: Mutex::new(entries),
        }
    }
}

impl<R> Registry<R> {
    /// Takes `wanted`, or a free id if none is wanted.
    pub(crate) fn reserve(
        self: &Arc<Self>,
        wanted: Option<Id>,
        ids: Ids,
    ) -> Result<Reservation<R>, Refusal> {
        let mut entries = self.entries();
        let id = match wanted {
            Some(id) if entries.by_id.contains_key(&id) => return Err(Refusal::Exists(id)),
            Some(id) => id,
            None => ids.random(|id| entries.by_id.contains_key(id)),
        };
        let entry = Entry {
            order: entries.next,
            resource: None,
        };
        entries.next += 1;
        entries.by_id.insert(id.clone(), entry);
        Ok(Reservation {
            registry: self.clone(),
            id,
            kept: false,
        })
    }

    pub(crate) fn get(&self, id: &Id) -> Result<Arc<R>, Refusal> {
        let entries = self.entries();
        let entry = entries.by_id.get(id);
        entry
            .and_then(|entry| entry.resource.clone())
            .ok_or_else(|| Refusal::NoSuch(id.clone()))
    }

    /// Forgets a resource; an error if it is gone already.
    pub(crate) fn remove(&self, id: &Id, resource: &Arc<R>) -> Result<(), Refusal> {
        let mut entries = self.entries();
        let known = entries.by_id.get(id);
        let known = known.and_then(|entry| entry.resource.as_ref());
        if !known.is_some_and(|known| Arc::ptr_eq(known, resource)) {
            return Err(Refusal::NoSuch(id.clone()));
        }
        entries.by_id.remove(id);
        Ok(())
    }

    /// All resources, in the order of their creation.
    pub(crate) fn all(&self) -> Vec<Arc<R>> {
        let entries = self.entries();
        let made = entries.by_id.values();
        let mut all: Vec<_> = made
            .filter_map(|entry| Some((entry.order, entry.resource.clone()?)))
            .collect();
        drop(entries);
        all.sort_unstable_by_key(|(order, _)| *order);
        all.into_iter().map(|(_, resource)| resource).collect()
    }

    fn entries(&self) -> MutexGuard<'_, Entries<R>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<R> Reservation<R> {
    /// The id.
    pub fn id(&self) -> &Id {
        &self.id
    }

    /// Puts the resource there.
    pub fn keep(mut self, resource: Arc<R>) {
        self.kept = true;
        if let Some(entry) = self.registry.entries().by_id.get_mut(&self.id) {
            entry.resource = Some(resource);
        }
    }
}

impl<R> Drop for Reservation<R> {
    fn drop(&mut self) {
        if !self.kept {
            self.registry.entries().by_id.remove(&self.id);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;

    fn registry() -> Arc<Registry<&'static str>> {
        Arc::default()
    }

    #[test]
    fn an_id_is_taken_while_its_resource_is_made_and_free_if_that_fails() {
        let registry = registry();
        let seven = Id::Number(7);
        let reserve = || registry.reserve(Some(seven.clone()), Ids::Numbers);
        let reservation = reserve().unwrap();
        assert_eq!(reserve().unwrap_err(), Refusal::Exists(seven.clone()));
        assert_eq!(
            registry.get(&seven).unwrap_err(),
            Refusal::NoSuch(seven.clone())
        );
        drop(reservation);
        assert!(reserve().is_ok());
        assert!(registry.all().is_empty());
    }

    #[test]
    fn lists_have_the_order_of_creation() {
        let registry = registry();
        let numbers = [5, 3, 9, 1];
        for number in numbers {
            let reservation = registry.reserve(Some(Id::Number(number)), Ids::Numbers);
            reservation.unwrap().keep(Arc::new("a resource"));
        }
        let all = registry.all();
        registry.remove(&Id::Number(3), &all[1]).unwrap();
        assert!(Arc::ptr_eq(&registry.all()[1], &all[2]));
    }

    #[test]
    fn what_has_taken_its_id_since_is_not_removed() {
        let registry = registry();
        let one = Id::Number(1);
        let make = || {
            let made = Arc::new("a resource");
            let reservation = registry.reserve(Some(one.clone()), Ids::Numbers);
            reservation.unwrap().keep(made.clone());
            made
        };
        let first = make();
        registry.remove(&one, &first).unwrap();
        let second = make();
        assert!(registry.remove(&one, &first).is_err());
        assert!(Arc::ptr_eq(&registry.get(&one).unwrap(), &second));
    }
}
