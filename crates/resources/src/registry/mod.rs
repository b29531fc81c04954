//! Resources by their ids, and ids that are being made into resources.

mod expiry;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use portunus_core::{ClientAddress, LogGate};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::{Id, Ids, Limits, Maker, Refusal, Resource, TooMany, Written};

/// All resources of a plugin.
#[derive(Debug)]
pub(crate) struct Registry<R> {
    limits: Mutex<Limits>,
    entries: Mutex<Entries<R>>,
    refused: AtomicU64,
    refused_log: LogGate,
    expired: AtomicU64,
    changes: watch::Sender<()>,
}

#[derive(Debug)]
struct Entries<R> {
    by_id: HashMap<Id, Entry<R>>,
    /// Counts what was reserved, so that lists have the order of creation.
    next: u64,
    /// Whether a task checks the resources of clients.
    is_watched: bool,
}

#[derive(Debug)]
struct Entry<R> {
    order: u64,
    /// `None` while it is being made.
    resource: Option<Arc<R>>,
    /// The client that made it. `None` means the operator.
    client: Option<ClientAddress>,
    /// The last known use.
    used: Instant,
    /// When a request made it. `None` for one of the start.
    made: Option<Instant>,
}

/// An exclusive id. It is free again if this is dropped without [`Reservation::keep`].
#[derive(Debug)]
#[must_use]
pub struct Reservation<R: Resource> {
    registry: Arc<Registry<R>>,
    id: Id,
    kept: bool,
}

impl<R: Resource> Registry<R> {
    /// Returns a registry without resources.
    pub(crate) fn new(limits: Limits) -> Self {
        let entries = Entries {
            by_id: HashMap::new(),
            next: 0,
            is_watched: false,
        };
        Registry {
            limits: Mutex::new(limits),
            entries: Mutex::new(entries),
            refused: AtomicU64::new(0),
            refused_log: LogGate::default(),
            expired: AtomicU64::new(0),
            changes: watch::Sender::new(()),
        }
    }

    /// Returns a receiver that sees when resources were made or removed.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    pub(crate) fn limits(&self) -> Limits {
        *self.limits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set_limits(&self, limits: Limits) {
        *self.limits.lock().unwrap_or_else(PoisonError::into_inner) = limits;
    }

    /// Reserves `wanted` or a free id for a resource of `maker`.
    pub(crate) fn reserve(
        self: &Arc<Self>,
        wanted: Option<Id>,
        ids: Ids,
        maker: Maker,
    ) -> Result<Reservation<R>, Refusal> {
        let limits = self.limits();
        let mut entries = self.entries();
        let id = match wanted {
            Some(id) if entries.by_id.contains_key(&id) => return Err(Refusal::Exists(id)),
            Some(id) => id,
            None => ids.random(|id| entries.by_id.contains_key(id)),
        };
        let client = match maker {
            Maker::Operator => None,
            Maker::Client(client) => {
                let fits = entries.fits(client, &limits);
                fits.inspect_err(|limit| self.refused(client, limit))
                    .map_err(Refusal::TooMany)?;
                Some(client)
            }
        };
        let entry = Entry {
            order: entries.next,
            resource: None,
            client,
            used: Instant::now(),
            made: None,
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

    /// Returns a resource for its use, which counts.
    pub(crate) fn get_to_use(&self, id: &Id) -> Result<Arc<R>, Refusal> {
        if let Some(entry) = self.entries().by_id.get_mut(id) {
            entry.used = Instant::now();
        }
        self.get(id)
    }

    /// Notes that a request has made a resource just now.
    pub(crate) fn note_made(&self, id: &Id) {
        if let Some(entry) = self.entries().by_id.get_mut(id) {
            entry.made = Some(Instant::now());
        }
    }

    /// Returns whether a request has made the resource of this id in the last `time`.
    pub(crate) fn is_made_within(&self, id: &Id, time: Duration) -> bool {
        let made = self.entries().by_id.get(id).and_then(|entry| entry.made);
        made.is_some_and(|made| made.elapsed() < time)
    }

    /// Makes the operator the owner of a resource, if it is still there.
    pub(crate) fn adopt(&self, id: &Id, resource: &Arc<R>) {
        let mut entries = self.entries();
        let entry = entries.by_id.get_mut(id);
        let is_it = |known: &Arc<R>| Arc::ptr_eq(known, resource);
        if let Some(entry) = entry.filter(|entry| entry.resource.as_ref().is_some_and(is_it)) {
            entry.client = None;
        }
    }

    /// Returns the operator's resources, in the order of creation.
    pub(crate) fn of_operator(&self) -> Vec<Arc<R>> {
        let all = self.all();
        let entries = self.entries();
        let is_of_operator = |resource: &Arc<R>| {
            let entry = entries.by_id.get(resource.id());
            entry.is_some_and(|entry| entry.client.is_none())
        };
        all.into_iter().filter(is_of_operator).collect()
    }

    /// Returns the resources of clients.
    pub(crate) fn of_clients(&self) -> Vec<Arc<R>> {
        let entries = self.entries();
        let of_clients = entries
            .by_id
            .values()
            .filter(|entry| entry.client.is_some());
        of_clients
            .filter_map(|entry| entry.resource.clone())
            .collect()
    }

    /// Returns whether a client's resource has been unused for `timeout`.
    pub(crate) fn is_expired(&self, resource: &Arc<R>, timeout: Duration, now: Instant) -> bool {
        // It may have a lock, under which ours is taken elsewhere.
        let is_used = resource.is_used();
        let mut entries = self.entries();
        let Some(entry) = entries.by_id.get_mut(resource.id()) else {
            return false;
        };
        if is_used {
            entry.used = now;
        }
        entry.client.is_some() && now.saturating_duration_since(entry.used) >= timeout
    }

    /// Returns whether the caller has to start the task that checks the resources of clients.
    pub(crate) fn begin_watching(&self) -> bool {
        !std::mem::replace(&mut self.entries().is_watched, true)
    }

    /// Returns whether the task can end, because there is nothing to check.
    pub(crate) fn end_watching(&self) -> bool {
        let mut entries = self.entries();
        entries.is_watched = entries.by_id.values().any(|entry| entry.client.is_some());
        !entries.is_watched
    }

    pub(crate) fn count_expired(&self) {
        self.expired.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a refusal to a client, and logs it at most once a second.
    fn refused(&self, client: ClientAddress, limit: &TooMany) {
        self.refused.fetch_add(1, Ordering::Relaxed);
        if let Some(suppressed) = self.refused_log.open() {
            let what = <R::Written as Written>::ONE;
            tracing::info!(%client, suppressed, "a {what} was refused: {limit}");
        }
    }

    /// Returns the number of refusals because of the limits, and the number of unused resources of
    /// clients that ended.
    pub(crate) fn counts(&self) -> (u64, u64) {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        (read(&self.refused), read(&self.expired))
    }

    /// Removes a resource. Fails if it is gone.
    pub(crate) fn remove(&self, id: &Id, resource: &Arc<R>) -> Result<(), Refusal> {
        let mut entries = self.entries();
        let known = entries.by_id.get(id);
        let known = known.and_then(|entry| entry.resource.as_ref());
        if !known.is_some_and(|known| Arc::ptr_eq(known, resource)) {
            return Err(Refusal::NoSuch(id.clone()));
        }
        entries.by_id.remove(id);
        drop(entries);
        self.changes.send_replace(());
        Ok(())
    }

    /// Returns all resources, in the order of their creation.
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

impl<R> Entries<R> {
    /// Returns whether `client` may make one more.
    fn fits(&self, client: ClientAddress, limits: &Limits) -> Result<(), TooMany> {
        let makers = self.by_id.values().filter_map(|entry| entry.client);
        let (all, own) = makers.fold((0, 0), |(all, own), maker| {
            (all + 1, own + usize::from(maker == client))
        });
        if own >= limits.max_per_client {
            return Err(TooMany::OfClient(limits.max_per_client));
        }
        if all >= limits.max_from_clients {
            return Err(TooMany::OfClients(limits.max_from_clients));
        }
        Ok(())
    }
}

impl<R: Resource> Reservation<R> {
    /// Returns the id.
    pub fn id(&self) -> &Id {
        &self.id
    }

    /// Puts the resource there.
    pub fn keep(mut self, resource: Arc<R>) {
        self.kept = true;
        let mut is_of_client = false;
        if let Some(entry) = self.registry.entries().by_id.get_mut(&self.id) {
            entry.resource = Some(resource);
            entry.used = Instant::now();
            is_of_client = entry.client.is_some();
        }
        self.registry.changes.send_replace(());
        if is_of_client {
            expiry::watch(&self.registry);
        }
    }
}

impl<R: Resource> Drop for Reservation<R> {
    fn drop(&mut self) {
        if !self.kept {
            self.registry.entries().by_id.remove(&self.id);
        }
    }
}

#[cfg(test)]
mod tests;
