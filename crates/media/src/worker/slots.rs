//! Values in numbered places.
//!
//! Like the crate `slab`, but the place of a value can be told without reading it: what is far from the cache is
//! asked for first and looked at later (see `relay::ahead`).

/// Values, each with the number that [`Slots::insert`] gave it.
#[derive(Debug)]
pub(super) struct Slots<T> {
    places: Vec<Option<T>>,
    /// Numbers of places that are empty.
    free: Vec<usize>,
}

impl<T> Slots<T> {
    pub(super) const fn new() -> Self {
        Self {
            places: Vec::new(),
            free: Vec::new(),
        }
    }

    /// How many values there are.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// Puts a value into an empty place, and returns its number.
    pub(super) fn insert(&mut self, value: T) -> usize {
        if let Some(slot) = self.free.pop()
            && let Some(place) = self.places.get_mut(slot)
        {
            *place = Some(value);
            return slot;
        }
        self.places.push(Some(value));
        self.places.len() - 1
    }

    /// Takes the value out of a place. Its number goes to another value then.
    pub(super) fn try_remove(&mut self, slot: usize) -> Option<T> {
        let value = self.places.get_mut(slot)?.take()?;
        self.free.push(slot);
        Some(value)
    }

    #[inline]
    pub(super) fn get(&self, slot: usize) -> Option<&T> {
        self.places.get(slot)?.as_ref()
    }

    #[inline]
    pub(super) fn get_mut(&mut self, slot: usize) -> Option<&mut T> {
        self.places.get_mut(slot)?.as_mut()
    }

    #[cfg(all(test, feature = "testing"))]
    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.places.iter_mut().flatten()
    }

    /// The place itself, of which nothing is read.
    #[inline]
    pub(super) fn place(&self, slot: usize) -> Option<&Option<T>> {
        self.places.get(slot)
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
            steps in prop::collection::vec((any::<bool>(), 0..20_usize), 0..200),
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
                for slot in 0..20 {
                    prop_assert_eq!(slots.get(slot), expected.get(&slot));
                    prop_assert_eq!(slots.get_mut(slot).copied(), expected.get(&slot).copied());
                }
            }
        }
    }
}
