//! `handle_info`: everything known of a handle and its PeerConnection.
//!
//! The plugin's state and the statistics of the media plane are requested at the same time. Both
//! have a short deadline, so that the reply comes even if one of them is stuck.

mod flags;
mod media;
mod webrtc;

use std::time::Duration;

use portunus_core::{
    ApiError, ConnectionFacts, Fields, Gateway, Handle, HandleFacts, Object, Session,
};
use portunus_media::{CaptureFormat, PeerStats};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

use crate::diagnosis::{Cause, Observed, diagnose};

/// The deadline for the plugin and the media plane.
const PATIENCE: Duration = Duration::from_secs(1);

pub(super) async fn handle_info(
    gateway: &Gateway,
    session: &Session,
    handle: &Handle,
    fields: Fields<'_>,
) -> Result<Object, ApiError> {
    let plugin_only = fields.boolean("plugin_only")?.unwrap_or(false);
    let facts = handle.facts();
    let connection = facts.connection.as_ref().filter(|_| !plugin_only);
    let (plugin, stats) = tokio::join!(plugin_state(handle), stats_of(gateway, connection));
    let id = handle.id().to_json(gateway.config().string_ids);
    let told = SessionState::of(gateway, session).into_json();
    let info = Object::new()
        .with_all(told)
        .with("handle_id", id.clone())
        .with_some("opaque_id", facts.opaque_id.as_deref())
        .with_some("token", facts.token.as_deref())
        .with("loop-running", true)
        .with("created", micros(gateway, facts.created))
        .with("current_time", micros(gateway, Instant::now()))
        .with("plugin", facts.plugin)
        .with("plugin_specific", plugin);
    let info = match plugin_only {
        true => info,
        false => peer_connection(gateway, &facts, stats.unwrap_or_default(), info),
    };
    let info = Value::from(info);
    Ok(Object::new().with("handle_id", id).with("info", info))
}

/// The members about the handle's session.
struct SessionState {
    id: Value,
    last_activity: u64,
    timeout: u32,
    transport: &'static str,
}

impl SessionState {
    fn of(gateway: &Gateway, session: &Session) -> Self {
        let facts = session.facts();
        SessionState {
            id: session.id().to_json(gateway.config().string_ids),
            last_activity: micros(gateway, facts.last_activity),
            timeout: facts.timeout.seconds(gateway.session_timeout()),
            transport: facts.transport,
        }
    }

    fn into_json(self) -> Value {
        json!({
            "session_id": self.id,
            "session_last_activity": self.last_activity,
            "session_timeout": self.timeout,
            "session_transport": self.transport,
        })
    }
}

/// Adds the members that `plugin_only` leaves out.
fn peer_connection(
    gateway: &Gateway,
    facts: &HandleFacts,
    stats: PeerStats,
    info: Object,
) -> Object {
    let info = info.with("flags", flags::flags(facts));
    let Some(connection) = &facts.connection else {
        return info
            .with("sdps", json!({}))
            .with_some("pending-trickles", some(facts.early))
            .with("queued-packets", 0)
            .with(
                "diagnosis",
                diagnosis(facts.last_cause.clone().map(Cause::from)),
            );
    };
    let (lite, controlling) = (gateway.facts().ice_lite, stats.ice.controlling);
    let role = if controlling {
        "controlling"
    } else {
        "controlled"
    };
    let sdps = Object::new()
        .with_some("profile", webrtc::profile(connection))
        .with_some("local", connection.local.as_deref())
        .with_some("remote", connection.remote.as_deref());
    let workers = gateway.media().worker_stats();
    let worker = connection.peer.worker();
    let causes = diagnose(&Observed {
        stats: &stats,
        negotiated: connection.negotiated.is_some(),
        worker: workers.iter().find(|stats| stats.index == worker),
    });
    let started = connection.started;
    info.with("agent-created", micros(gateway, connection.created))
        .with_some("agent-started", started.map(|at| micros(gateway, at)))
        .with("ice-mode", if lite { "lite" } else { "full" })
        .with("ice-role", role)
        .with("sdps", Value::from(sdps))
        .with_some("pending-trickles", some(facts.early))
        .with(
            "queued-packets",
            stats.pacer.map_or(0, |pacer| pacer.packets),
        )
        .with_all(capture(&stats))
        .with("webrtc", webrtc::webrtc(gateway, connection, &stats))
        .with("diagnosis", diagnosis(causes))
}

fn diagnosis(causes: impl IntoIterator<Item = Cause>) -> Value {
    let causes = causes.into_iter();
    causes
        .map(|cause| json!({ "cause": cause.code, "text": cause.text }))
        .collect()
}

/// Returns the members about a running capture.
fn capture(stats: &PeerStats) -> Value {
    let running = stats
        .capture
        .as_ref()
        .filter(|capture| capture.end.is_none());
    let Some(capture) = running else {
        return Value::Null;
    };
    let path = capture.path.display().to_string();
    match capture.format {
        CaptureFormat::Pcap => json!({ "dump-to-pcap": true, "pcap-file": path }),
        CaptureFormat::Text2pcap => json!({ "dump-to-text2pcap": true, "text2pcap-file": path }),
    }
}

/// Returns the plugin's state, or an empty object if it does not answer in time.
async fn plugin_state(handle: &Handle) -> Value {
    let state = timeout(PATIENCE, handle.query()).await;
    state.ok().flatten().unwrap_or_else(|| json!({}))
}

async fn stats_of(gateway: &Gateway, connection: Option<&ConnectionFacts>) -> Option<PeerStats> {
    let stats = gateway.media().stats(connection?.peer);
    timeout(PATIENCE, stats).await.ok().flatten()
}

/// Returns the microseconds from the start of the core to `at`.
fn micros(gateway: &Gateway, at: Instant) -> u64 {
    whole_micros(at.saturating_duration_since(gateway.started()))
}

fn whole_micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn some(count: usize) -> Option<usize> {
    (count > 0).then_some(count)
}
