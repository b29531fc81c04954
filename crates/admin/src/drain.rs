//! Drains: `drain` and `undrain`.

use std::time::Duration;

use portunus_core::{ApiError, Fields, Gateway, Object};

/// The longest deadline of a drain, in s: a week.
const MAX_DEADLINE: u64 = 604_800;

/// Starts a drain, or gives the one under way another deadline.
pub(super) fn drain(gateway: &Gateway, fields: Fields<'_>) -> Result<Object, ApiError> {
    let deadline = fields.positive("deadline")?;
    if deadline.is_some_and(|seconds| seconds > MAX_DEADLINE) {
        let text = format!("Invalid element (deadline is {MAX_DEADLINE} seconds at most)");
        return Err(ApiError::InvalidElement(text));
    }
    let was_on = gateway.drain(deadline.map(Duration::from_secs));
    Ok(Object::new()
        .with("already", was_on)
        .with_all(state(gateway)))
}

/// Ends a drain.
pub(super) fn undrain(gateway: &Gateway) -> Result<Object, ApiError> {
    let was_on = gateway.undrain()?;
    Ok(Object::new()
        .with("already", !was_on)
        .with_all(state(gateway)))
}

/// Describes the drain that is under way, if there is one.
pub(super) fn state(gateway: &Gateway) -> Object {
    let Some(status) = gateway.draining() else {
        return Object::new().with("draining", false);
    };
    let seconds = |time: Duration| time.as_millis() as f64 / 1_000.0;
    Object::new()
        .with("draining", true)
        .with("since", seconds(status.lasted))
        .with_some("deadline", status.left.map(seconds))
        .with("ending", status.is_final)
        .with("sessions", status.sessions)
        .with("calls", status.calls)
}
