//! Secrets and pins.

use portunus_core::{FieldError, Fields, equal_in_constant_time};

use crate::refusal::Refusal;

/// Checks that member `name` is `secret`, if there is one.
pub(crate) fn check(
    fields: Fields<'_>,
    name: &'static str,
    secret: Option<&str>,
) -> Result<(), Refusal> {
    let Some(secret) = secret else { return Ok(()) };
    let shown = fields.string(name)?;
    let shown = shown.ok_or_else(|| FieldError::Missing(name.to_owned()))?;
    match equal_in_constant_time(secret, shown) {
        true => Ok(()),
        false => Err(Refusal::Unauthorized(name)),
    }
}
