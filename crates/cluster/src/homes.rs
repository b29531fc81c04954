//! The homes as the bus has them.

use std::collections::BTreeMap;

use crate::id::Revision;
use crate::key::HomeKey;
use crate::record::HomeRecord;

/// The most homes of a cluster.
pub(crate) const MOST: usize = 200_000;

/// A home, or the mark that there is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Home {
    pub(crate) revision: Revision,
    pub(crate) record: Option<HomeRecord>,
    /// Whether it is among the entries since the last connection.
    is_current: bool,
}

/// All homes. Revisions only grow: an older entry never replaces a newer one.
#[derive(Debug, Default)]
pub(crate) struct Homes {
    by_key: BTreeMap<HomeKey, Home>,
    is_current: bool,
    generation: u64,
}

/// What an entry has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Observed {
    Newer,
    Known,
    TooMany,
}

impl Homes {
    pub(crate) fn get(&self, key: &HomeKey) -> Option<&Home> {
        self.by_key.get(key)
    }

    /// Returns all that have a home.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&HomeKey, Revision, &HomeRecord)> {
        let homes = self.by_key.iter();
        homes.filter_map(|(key, home)| Some((key, home.revision, home.record.as_ref()?)))
    }

    /// Takes what the bus, an answer of it or a node says.
    pub(crate) fn observe(
        &mut self,
        key: &HomeKey,
        revision: Revision,
        record: Option<HomeRecord>,
    ) -> Observed {
        if let Some(known) = self.by_key.get_mut(key) {
            if revision < known.revision || (revision == known.revision && known.is_current) {
                return Observed::Known;
            }
            let is_news = revision > known.revision;
            *known = Home {
                revision,
                record,
                is_current: true,
            };
            return if is_news {
                Observed::Newer
            } else {
                Observed::Known
            };
        }
        if self.by_key.len() >= MOST {
            return Observed::TooMany;
        }
        let home = Home {
            revision,
            record,
            is_current: true,
        };
        self.by_key.insert(key.clone(), home);
        Observed::Newer
    }

    /// Begins to read all entries of a bucket of this generation.
    pub(crate) fn reread(&mut self, generation: u64) {
        self.is_current = false;
        self.generation = generation;
        // A bucket cannot have entries of a later one: a clock was wrong.
        self.by_key
            .retain(|_, home| home.revision.generation <= generation);
        for home in self.by_key.values_mut() {
            home.is_current = false;
        }
    }

    /// Ends that. Returns what was not among the entries: it has no home any more.
    pub(crate) fn reread_ends(&mut self) -> Vec<HomeKey> {
        self.is_current = true;
        let mut gone = Vec::new();
        for (key, home) in &mut self.by_key {
            if !home.is_current && home.record.take().is_some() {
                gone.push(key.clone());
            }
            home.is_current = true;
        }
        gone
    }

    pub(crate) fn bus_lost(&mut self) {
        self.is_current = false;
    }

    pub(crate) fn is_current(&self) -> bool {
        self.is_current
    }

    /// Returns the revision of a sequence number.
    pub(crate) fn at(&self, sequence: u64) -> Revision {
        Revision {
            generation: self.generation,
            sequence,
        }
    }

    /// Forgets a mark that there is no home.
    pub(crate) fn forget(&mut self, key: &HomeKey) {
        if self.by_key.get(key).is_some_and(|it| it.record.is_none()) {
            self.by_key.remove(key);
        }
    }
}
