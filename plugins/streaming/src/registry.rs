//! The mountpoints by their ids, and ids that are being made into mountpoints.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::id::MountpointId;
use crate::mountpoint::Mountpoint;
use crate::refusal::Refusal;

/// All mountpoints.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    entries: Mutex<Entries>,
}

#[derive(Debug, Default)]
struct Entries {
    by_id: HashMap<MountpointId, Entry>,
    /// Counts what was reserved, so that lists have the order of creation.
    next: u64,
}

#[derive(Debug)]
struct Entry {
    order: u64,
    /// None while it is being made.
    mountpoint: Option<Arc<Mountpoint>>,
}

/// An id that nobody else gets; it is free again when this is dropped without [`Reservation::keep`].
#[derive(Debug)]
pub(crate) struct Reservation {
    registry: Arc<Registry>,
    id: MountpointId,
    kept: bool,
}

impl Registry {
    /// Takes `wanted`, or a free id if none is wanted.
    pub(crate) fn reserve(
        self: &Arc<Self>,
        wanted: Option<MountpointId>,
        string_ids: bool,
    ) -> Result<Reservation, Refusal> {
        let mut entries = self.entries();
        let id = match wanted {
            Some(id) if entries.by_id.contains_key(&id) => {
                let reason = format!("there is a mountpoint {id} already");
                return Err(Refusal::CannotCreate(reason));
            }
            Some(id) => id,
            None => loop {
                let id = MountpointId::random(string_ids);
                if !entries.by_id.contains_key(&id) {
                    break id;
                }
            },
        };
        let order = entries.next;
        entries.next += 1;
        let entry = Entry {
            order,
            mountpoint: None,
        };
        entries.by_id.insert(id.clone(), entry);
        Ok(Reservation {
            registry: self.clone(),
            id,
            kept: false,
        })
    }

    /// The mountpoint with this id.
    pub(crate) fn get(&self, id: &MountpointId) -> Result<Arc<Mountpoint>, Refusal> {
        let entries = self.entries();
        let entry = entries.by_id.get(id);
        entry
            .and_then(|entry| entry.mountpoint.clone())
            .ok_or_else(|| Refusal::NoSuchMountpoint(id.clone()))
    }

    /// Forgets a mountpoint; an error if it is gone already.
    pub(crate) fn remove(&self, mountpoint: &Arc<Mountpoint>) -> Result<(), Refusal> {
        let mut entries = self.entries();
        let known = entries.by_id.get(&mountpoint.id);
        let known = known.and_then(|entry| entry.mountpoint.as_ref());
        if !known.is_some_and(|known| Arc::ptr_eq(known, mountpoint)) {
            return Err(Refusal::NoSuchMountpoint(mountpoint.id.clone()));
        }
        entries.by_id.remove(&mountpoint.id);
        Ok(())
    }

    /// All mountpoints, in the order of their creation.
    pub(crate) fn all(&self) -> Vec<Arc<Mountpoint>> {
        let entries = self.entries();
        let made = entries.by_id.values();
        let mut all: Vec<_> = made
            .filter_map(|entry| Some((entry.order, entry.mountpoint.clone()?)))
            .collect();
        drop(entries);
        all.sort_unstable_by_key(|(order, _)| *order);
        all.into_iter().map(|(_, mountpoint)| mountpoint).collect()
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reservation {
    /// The id.
    pub(crate) fn id(&self) -> &MountpointId {
        &self.id
    }

    /// Puts the mountpoint there.
    pub(crate) fn keep(mut self, mountpoint: Arc<Mountpoint>) {
        self.kept = true;
        if let Some(entry) = self.registry.entries().by_id.get_mut(&self.id) {
            entry.mountpoint = Some(mountpoint);
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if !self.kept {
            self.registry.entries().by_id.remove(&self.id);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn an_id_is_taken_while_its_mountpoint_is_made_and_free_if_that_fails() {
        let registry = Arc::new(Registry::default());
        let seven = MountpointId::Number(7);
        let reservation = registry.reserve(Some(seven.clone()), false).unwrap();
        let again = registry.reserve(Some(seven.clone()), false);
        assert_eq!(again.unwrap_err().code(), 456);
        assert_eq!(registry.get(&seven).unwrap_err().code(), 455);
        drop(reservation);
        assert!(registry.reserve(Some(seven), false).is_ok());
        assert!(registry.all().is_empty());
    }

    #[test]
    fn ids_are_numbers_or_text() {
        let registry = Arc::new(Registry::default());
        let number = registry.reserve(None, false).unwrap();
        assert!(matches!(number.id(), MountpointId::Number(1..)));
        let text = registry.reserve(None, true).unwrap();
        assert!(matches!(text.id(), MountpointId::Text(id) if id.len() == 36));
    }
}
