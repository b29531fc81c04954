//! Values in numbered slots.
//!
//! Like the crate `slab`, with two differences. The address of a value is known without reading it,
//! so that it can be prefetched (see `relay::prefetch`). And memory is freed: slots come in pages, the
//! lowest free number is used first, and empty pages are freed.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The number of slots in a page.
const PAGE: usize = 64;

/// Values, each at the number that [`Slots::insert`] returned.
#[derive(Debug)]
pub(super) struct Slots<T> {
    /// A page whose slots are all free has no memory.
    pages: Vec<Box<[Option<T>]>>,
    /// The number of values in each page.
    used: Vec<usize>,
    /// The numbers of free slots.
    free: BinaryHeap<Reverse<usize>>,
}

impl<T> Slots<T> {
    pub(super) const fn new() -> Self {
        Self {
            pages: Vec::new(),
            used: Vec::new(),
            free: BinaryHeap::new(),
        }
    }

    /// The number of values.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.used.iter().sum()
    }

    /// Inserts a value into the free slot with the lowest number, and returns the number.
    pub(super) fn insert(&mut self, value: T) -> usize {
        let slot = match self.free.pop() {
            Some(Reverse(slot)) => slot,
            None => {
                let first = self.pages.len() * PAGE;
                self.pages.push(Box::default());
                self.used.push(0);
                self.free.extend((first + 1..first + PAGE).map(Reverse));
                first
            }
        };
        if let Some(page) = self.pages.get_mut(slot / PAGE) {
            if page.is_empty() {
                *page = (0..PAGE).map(|_| None).collect();
            }
            if let Some(place) = page.get_mut(slot % PAGE) {
                *place = Some(value);
            }
        }
        if let Some(used) = self.used.get_mut(slot / PAGE) {
            *used += 1;
        }
        slot
    }

    /// Removes a value. Its number is used again.
    pub(super) fn try_remove(&mut self, slot: usize) -> Option<T> {
        let page = self.pages.get_mut(slot / PAGE)?;
        let value = page.get_mut(slot % PAGE)?.take()?;
        self.free.push(Reverse(slot));
        let used = self.used.get_mut(slot / PAGE)?;
        *used = used.saturating_sub(1);
        if *used == 0 {
            *page = Box::default();
        }
        Some(value)
    }

    #[inline]
    pub(super) fn get(&self, slot: usize) -> Option<&T> {
        self.place(slot)?.as_ref()
    }

    #[inline]
    pub(super) fn get_mut(&mut self, slot: usize) -> Option<&mut T> {
        let page = self.pages.get_mut(slot / PAGE)?;
        page.get_mut(slot % PAGE)?.as_mut()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (usize, &mut T)> {
        let pages = self.pages.iter_mut().enumerate();
        pages.flat_map(|(page, places)| {
            let places = places.iter_mut().enumerate();
            places.filter_map(move |(n, place)| Some((page * PAGE + n, place.as_mut()?)))
        })
    }

    /// Returns a slot without reading it.
    #[inline]
    pub(super) fn place(&self, slot: usize) -> Option<&Option<T>> {
        self.pages.get(slot / PAGE)?.get(slot % PAGE)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn each_number_has_its_value_until_that_is_removed(
            steps in prop::collection::vec((any::<bool>(), 0..150_usize), 0..600),
        ) {
            let (mut slots, mut expected) = (Slots::new(), HashMap::new());
            for (value, (inserts, slot)) in steps.into_iter().enumerate() {
                if inserts {
                    let slot = slots.insert(value);
                    prop_assert_eq!(expected.insert(slot, value), None);
                } else {
                    prop_assert_eq!(slots.try_remove(slot), expected.remove(&slot));
                }
                prop_assert_eq!(slots.len(), expected.len());
                for slot in 0..150 {
                    prop_assert_eq!(slots.get(slot), expected.get(&slot));
                    prop_assert_eq!(slots.get_mut(slot).copied(), expected.get(&slot).copied());
                }
            }
        }
    }

    fn pages<T>(slots: &Slots<T>) -> usize {
        slots.pages.iter().filter(|page| !page.is_empty()).count()
    }

    #[test]
    fn pages_that_are_empty_are_freed_and_low_numbers_are_used_first() {
        let mut slots = Slots::new();
        for value in 0..10 * PAGE {
            assert_eq!(slots.insert(value), value);
        }
        for slot in (PAGE..10 * PAGE).chain([3, 1]) {
            assert!(slots.try_remove(slot).is_some());
        }
        assert_eq!(pages(&slots), 1);
        assert_eq!((slots.insert(0), slots.insert(0)), (1, 3));
        assert_eq!(slots.insert(0), PAGE);
        assert_eq!(pages(&slots), 2);
    }
}
