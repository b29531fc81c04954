//! A bus: two buckets of entries with sequence numbers, whose writes are compared and set.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use bytes::Bytes;
use portunus_cluster::{Bucket, BusRequest, Entry, Outcome, Write};

/// When an entry of a node expires.
const EXPIRY: Duration = Duration::from_secs(15);

/// The bus.
#[derive(Debug)]
pub struct Bus {
    pub generation: u64,
    pub is_up: bool,
    /// All writes that were made.
    pub writes: u64,
    sequence: BTreeMap<Bucket, u64>,
    entries: BTreeMap<(Bucket, String), Stored>,
}

#[derive(Debug)]
struct Stored {
    sequence: u64,
    value: Option<Bytes>,
    at: Instant,
}

impl Bus {
    pub fn new() -> Self {
        Bus {
            generation: 1,
            is_up: true,
            writes: 0,
            sequence: BTreeMap::new(),
            entries: BTreeMap::new(),
        }
    }

    /// Loses all entries, as a bus in memory that is started anew.
    pub fn wipe(&mut self) {
        self.generation += 1;
        self.sequence.clear();
        self.entries.clear();
    }

    /// Makes a write. Returns the entry that it has changed.
    pub fn write(&mut self, request: &BusRequest, now: Instant) -> (Outcome, Option<Entry>) {
        let place = (request.bucket, request.key.clone());
        let known = self.entries.get(&place);
        let present = known.filter(|it| it.value.is_some()).map(|it| it.sequence);
        let (fits, value) = match &request.write {
            Write::Create(value) => (present.is_none(), Some(value.clone())),
            Write::Update(value, expected) => (present == Some(*expected), Some(value.clone())),
            Write::Delete(expected) => (present == Some(*expected), None),
        };
        if !fits {
            return (Outcome::Conflict, None);
        }
        self.writes += 1;
        let entry = self.store(request.bucket, request.key.clone(), value, now);
        (Outcome::Done(entry.sequence), Some(entry))
    }

    /// Expires entries of nodes.
    pub fn expire(&mut self, now: Instant) -> Vec<Entry> {
        let over = |(place, it): (&(Bucket, String), &Stored)| {
            let is_over = place.0 == Bucket::Nodes && it.value.is_some() && now >= it.at + EXPIRY;
            is_over.then(|| place.1.clone())
        };
        let over: Vec<_> = self.entries.iter().filter_map(over).collect();
        let entries = over
            .into_iter()
            .map(|key| self.store(Bucket::Nodes, key, None, now));
        entries.collect()
    }

    /// Returns all entries of a bucket, in the order of their sequence numbers.
    pub fn entries(&self, bucket: Bucket) -> Vec<Entry> {
        let of_bucket = self.entries.iter().filter(|(place, _)| place.0 == bucket);
        let entries = of_bucket.map(|(place, it)| Entry {
            bucket,
            key: place.1.clone(),
            sequence: it.sequence,
            value: it.value.clone(),
        });
        let mut entries: Vec<_> = entries.collect();
        entries.sort_by_key(|entry| entry.sequence);
        entries
    }

    fn store(&mut self, bucket: Bucket, key: String, value: Option<Bytes>, at: Instant) -> Entry {
        let sequence = self.sequence.entry(bucket).or_default();
        *sequence += 1;
        let sequence = *sequence;
        let stored = Stored {
            sequence,
            value: value.clone(),
            at,
        };
        self.entries.insert((bucket, key.clone()), stored);
        Entry {
            bucket,
            key,
            sequence,
            value,
        }
    }
}
