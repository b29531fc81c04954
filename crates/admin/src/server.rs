//! The server's own settings and state.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use portunus_core::{ApiError, Fields, Gateway, Object};
use portunus_media::MediaSettings;
use serde_json::{Value, json};

use crate::LogControl;
use crate::debug_flags::DebugFlags;
use crate::drain;

/// The longest configurable time of silence, in s: a day.
const MAX_NO_MEDIA: u64 = 86_400;

pub(super) fn status(gateway: &Gateway, log: &dyn LogControl, flags: &DebugFlags) -> Object {
    let config = gateway.config();
    let media = gateway.media().settings();
    let status = json!({
        "token_auth": config.token_auth,
        "session_timeout": gateway.session_timeout(),
        "reclaim_session_timeout": config.reclaim_session_timeout,
        "candidates_timeout": config.candidates_timeout,
        "log_level": log.level().get(),
        "log_timestamps": log.timestamps(),
        "log_colors": log.colors(),
        "locking_debug": flags.locking.load(Ordering::Relaxed),
        "refcount_debug": flags.refcount.load(Ordering::Relaxed),
        "min_nack_queue": millis(media.nack_queue),
        "nack-optimizations": media.nack_optimizations,
        "no_media_timer": gateway.no_media_ms().div_ceil(1_000),
        "slowlink_threshold": media.slow_link_threshold,
    });
    let drained = drain::state(gateway);
    Object::new().with(
        "status",
        Object::new().with_all(status).with("drain", drained),
    )
}

pub(super) fn set_session_timeout(
    gateway: &Gateway,
    fields: Fields<'_>,
) -> Result<Object, ApiError> {
    let seconds = number(fields, "timeout", u32::MAX.into())?;
    gateway.set_session_timeout(seconds.value);
    Ok(seconds.reply())
}

pub(super) fn set_locking_debug(
    flags: &DebugFlags,
    fields: Fields<'_>,
) -> Result<Object, ApiError> {
    remember(&flags.locking, fields, "debug", "locking_debug")
}

pub(super) fn set_refcount_debug(
    flags: &DebugFlags,
    fields: Fields<'_>,
) -> Result<Object, ApiError> {
    remember(&flags.refcount, fields, "debug", "refcount_debug")
}

pub(super) fn set_min_nack_queue(
    gateway: &Gateway,
    fields: Fields<'_>,
) -> Result<Object, ApiError> {
    let queue = number(fields, "min_nack_queue", millis(MediaSettings::NACK_QUEUE))?;
    let media = gateway.media();
    media.set_nack_queue(Duration::from_millis(queue.value.into()));
    Ok(queue.reply())
}

pub(super) fn set_nack_optimizations(
    gateway: &Gateway,
    fields: Fields<'_>,
) -> Result<Object, ApiError> {
    let media = gateway.media();
    media.set_nack_optimizations(fields.required::<bool>("nack_optimizations")?);
    // The reply has a hyphen where the request has an underscore.
    let told = media.settings().nack_optimizations;
    Ok(Object::new().with("nack-optimizations", told))
}

pub(super) fn set_no_media_timer(
    gateway: &Gateway,
    fields: Fields<'_>,
) -> Result<Object, ApiError> {
    let seconds = number(fields, "no_media_timer", MAX_NO_MEDIA)?;
    gateway.set_no_media_ms(seconds.value.saturating_mul(1_000));
    Ok(seconds.reply())
}

pub(super) fn set_slowlink_threshold(
    gateway: &Gateway,
    fields: Fields<'_>,
) -> Result<Object, ApiError> {
    let packets = number(fields, "slowlink_threshold", u32::MAX.into())?;
    gateway.media().set_slow_link_threshold(packets.value);
    Ok(packets.reply())
}

pub(super) fn accept_new_sessions(
    gateway: &Gateway,
    fields: Fields<'_>,
) -> Result<Object, ApiError> {
    let accept = fields.required::<bool>("accept")?;
    gateway.accept_new_sessions(accept);
    Ok(Object::new().with("accept", accept))
}

/// Reads the configuration again.
pub(super) async fn reload(gateway: &Gateway) -> Result<Object, ApiError> {
    let reloaded = gateway.reload().await?;
    Ok(Object::new()
        .with("changed", reloaded.changed)
        .with("restart", reloaded.restart)
        .with("warnings", reloaded.warnings))
}

/// Returns the nodes, links and homes of the cluster, as this node sees them.
pub(super) async fn cluster_status(gateway: &Gateway) -> Result<Object, ApiError> {
    let cluster = gateway.cluster().ok_or_else(|| {
        ApiError::Unknown("This server is not a node of a cluster (cluster.bus)".to_owned())
    })?;
    let status = cluster.status().await;
    let status = status.ok_or_else(|| ApiError::Unknown("The server is ending".to_owned()))?;
    Ok(Object::new().with("cluster", status))
}

pub(super) fn custom_event(gateway: &Gateway, fields: Fields<'_>) -> Result<Object, ApiError> {
    let schema = fields.required_string("schema")?;
    let data = fields.required_object("data")?;
    gateway.events().external(schema, || data.clone().into());
    Ok(Object::new())
}

/// Returns an empty list: the server has no event loops like Janus. See `workers_info`.
pub(super) fn loops() -> Object {
    Object::new().with("loops", Value::Array(Vec::new()))
}

fn remember(
    flag: &AtomicBool,
    fields: Fields<'_>,
    member: &str,
    told: &str,
) -> Result<Object, ApiError> {
    let on = fields.required::<bool>(member)?;
    flag.store(on, Ordering::Relaxed);
    Ok(Object::new().with(told, on))
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// A number of a request. `value` is `wanted`, limited to the maximum.
#[derive(Debug, Clone, Copy)]
struct Number<'a> {
    name: &'a str,
    value: u32,
    wanted: u64,
}

/// Reads a required number, and limits it to `most`.
fn number<'a>(fields: Fields<'_>, name: &'a str, most: u64) -> Result<Number<'a>, ApiError> {
    let wanted = fields.required::<u64>(name)?;
    let value = u32::try_from(wanted.min(most)).unwrap_or(u32::MAX);
    Ok(Number {
        name,
        value,
        wanted,
    })
}

impl Number<'_> {
    /// Returns the reply with the value in effect, and a warning if it is less than the wanted one.
    fn reply(self) -> Object {
        let Number {
            name,
            value,
            wanted,
        } = self;
        let warning = format!("{name} is {value} at most");
        Object::new()
            .with(name, value)
            .with_some("warning", (wanted > value.into()).then_some(warning))
    }
}
