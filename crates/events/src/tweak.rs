//! Reads what an administrator's `tweak` changes.

use std::ops::RangeInclusive;

use portunus_core::Fields;
use portunus_core::events::TweakError;

/// Replaces a value if there is a new one.
pub(crate) fn set<T>(value: &mut T, new: Option<T>) {
    if let Some(new) = new {
        *value = new;
    }
}

/// Reads an integer within a range.
pub(crate) fn within(
    members: Fields<'_>,
    name: &str,
    range: RangeInclusive<u64>,
) -> Result<Option<u64>, TweakError> {
    match members.positive(name)? {
        Some(number) if !range.contains(&number) => {
            let (least, most) = (range.start(), range.end());
            let text = format!("Invalid value ({name} should be {least} to {most})");
            Err(TweakError::Invalid(text))
        }
        number => Ok(number),
    }
}
