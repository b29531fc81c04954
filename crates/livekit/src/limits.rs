//! The longest names and texts, as LiveKit has them by default.

use std::collections::HashMap;

/// The longest name of a room, in bytes.
pub const ROOM_NAME: usize = 256;

/// The longest identity of a participant, in bytes.
pub const IDENTITY: usize = 256;

/// The longest name of a participant, in bytes.
pub const PARTICIPANT_NAME: usize = 256;

/// The largest metadata of a room or a participant, in bytes.
pub const METADATA: usize = 512 << 10;

/// The most bytes of all attributes of a participant: names and values.
pub const ATTRIBUTES: usize = 64 << 10;

/// The most publishers of a room that this door makes. Such a room has places enough.
pub(crate) const MAX_PUBLISHERS: u64 = 1_000_000;

/// Returns whether the attributes are within the limit.
pub fn attributes_fit(attributes: &HashMap<String, String>) -> bool {
    let sizes = attributes
        .iter()
        .map(|(name, value)| name.len().saturating_add(value.len()));
    sizes.fold(0, usize::saturating_add) <= ATTRIBUTES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_values_of_attributes_count() {
        let of = |length: usize| HashMap::from([("name".to_owned(), "v".repeat(length))]);
        assert!(attributes_fit(&HashMap::new()));
        assert!(attributes_fit(&of(ATTRIBUTES - 4)));
        assert!(!attributes_fit(&of(ATTRIBUTES - 3)));
    }
}
