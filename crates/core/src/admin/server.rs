//! The server's own settings and state.

use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use crate::{ApiError, Fields, Gateway, Object};

/// The longest NACK queue that clients may ask for, in ms, as Janus has it.
const MAX_NACK_QUEUE: u64 = 1_000;

pub(super) fn status(gateway: &Gateway) -> Object {
    let context = gateway.context();
    let (config, settings, log) = (&context.config, &context.settings, &context.facts.log);
    let status = json!({
        "token_auth": config.token_auth,
        "session_timeout": settings.session_timeout_seconds(),
        "reclaim_session_timeout": config.reclaim_session_timeout,
        "candidates_timeout": config.candidates_timeout,
        "log_level": log.level().get(),
        "log_timestamps": log.timestamps(),
        "log_colors": log.colors(),
        "locking_debug": settings.locking_debug.load(Ordering::Relaxed),
        "refcount_debug": settings.refcount_debug.load(Ordering::Relaxed),
        "min_nack_queue": settings.min_nack_queue.load(Ordering::Relaxed),
        "nack-optimizations": settings.nack_optimizations.load(Ordering::Relaxed),
        "no_media_timer": settings.no_media_timer.load(Ordering::Relaxed),
        "slowlink_threshold": settings.slowlink_threshold.load(Ordering::Relaxed),
    });
    Object::new().with("status", status)
}

pub(super) fn set_session_timeout(
    gateway: &Gateway,
    fields: Fields<'_>,
) -> Result<Object, ApiError> {
    let settings = &gateway.context().settings;
    settings.set_session_timeout(number(fields, "timeout", u32::MAX.into())?);
    Ok(Object::new().with("timeout", settings.session_timeout_seconds()))
}

pub(super) fn set_locking_debug(gateway: &Gateway, fields: Fields<'_>) -> Result<Object, ApiError> {
    let flag = &gateway.context().settings.locking_debug;
    remember(flag, fields, "debug", "locking_debug")
}

pub(super) fn set_refcount_debug(
    gateway: &Gateway,
    fields: Fields<'_>,
) -> Result<Object, ApiError> {
    let flag = &gateway.context().settings.refcount_debug;
    remember(flag, fields, "debug", "refcount_debug")
}

pub(super) fn set_min_nack_queue(
    gateway: &Gateway,
    fields: Fields<'_>,
) -> Result<Object, ApiError> {
    let queue = number(fields, "min_nack_queue", MAX_NACK_QUEUE)?;
    let settings = &gateway.context().settings;
    settings.min_nack_queue.store(queue, Ordering::Relaxed);
    Ok(Object::new().with("min_nack_queue", queue))
}

pub(super) fn set_nack_optimizations(
    gateway: &Gateway,
    fields: Fields<'_>,
) -> Result<Object, ApiError> {
    let flag = &gateway.context().settings.nack_optimizations;
    // The reply has a hyphen where the request has none.
    remember(flag, fields, "nack_optimizations", "nack-optimizations")
}

pub(super) fn set_no_media_timer(
    gateway: &Gateway,
    fields: Fields<'_>,
) -> Result<Object, ApiError> {
    let seconds = number(fields, "no_media_timer", u32::MAX.into())?;
    let settings = &gateway.context().settings;
    settings.no_media_timer.store(seconds, Ordering::Relaxed);
    Ok(Object::new().with("no_media_timer", seconds))
}

pub(super) fn set_slowlink_threshold(
    gateway: &Gateway,
    fields: Fields<'_>,
) -> Result<Object, ApiError> {
    let packets = number(fields, "slowlink_threshold", u32::MAX.into())?;
    let settings = &gateway.context().settings;
    settings
        .slowlink_threshold
        .store(packets, Ordering::Relaxed);
    Ok(Object::new().with("slowlink_threshold", packets))
}

pub(super) fn accept_new_sessions(
    gateway: &Gateway,
    fields: Fields<'_>,
) -> Result<Object, ApiError> {
    let accept = fields.required_boolean("accept")?;
    gateway.accept_new_sessions(accept);
    Ok(Object::new().with("accept", accept))
}

pub(super) fn custom_event(gateway: &Gateway, fields: Fields<'_>) -> Result<Object, ApiError> {
    let schema = fields.required_string("schema")?;
    let data = fields.required_object("data")?;
    gateway.events().external(schema, || data.clone().into());
    Ok(Object::new())
}

/// There are no event loops of Janus's kind: workers are told by a request of our own.
pub(super) fn loops() -> Object {
    Object::new().with("loops", Value::Array(Vec::new()))
}

fn remember(
    flag: &AtomicBool,
    fields: Fields<'_>,
    member: &str,
    told: &str,
) -> Result<Object, ApiError> {
    let on = fields.required_boolean(member)?;
    flag.store(on, Ordering::Relaxed);
    Ok(Object::new().with(told, on))
}

/// A number that has to be there; what is beyond `most` counts as that.
fn number(fields: Fields<'_>, name: &str, most: u64) -> Result<u32, ApiError> {
    let number = fields.required_positive(name)?.min(most);
    Ok(u32::try_from(number).unwrap_or(u32::MAX))
}
