//! `handle_info`: all that is known of a handle and its PeerConnection.
//!
//! The plugin is asked in the handle's task, and the media plane in that of its worker, at the same time. Neither is waited for
//! for long: who asks wants to know what is wrong.

mod flags;
mod media;
mod webrtc;

use std::time::Duration;

use portunus_media::{CaptureFormat, PeerStats};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};

use super::diagnosis::{Observed, diagnose};
use crate::context::Context;
use crate::handle::{Command, ConnectionFacts, Handle, HandleFacts, Inbox};
use crate::session::Session;
use crate::{ApiError, Fields, Gateway, Object};

/// How long the plugin and the media plane may take.
const PATIENCE: Duration = Duration::from_secs(1);

pub(super) async fn handle_info(
    gateway: &Gateway,
    session: &Session,
    (handle, inbox): (&Handle, &Inbox),
    fields: Fields<'_>,
) -> Result<Object, ApiError> {
    let plugin_only = fields.boolean("plugin_only")?.unwrap_or(false);
    let context = gateway.context();
    let facts = handle.facts();
    let connection = facts.connection.as_ref().filter(|_| !plugin_only);
    let (plugin, stats) = tokio::join!(plugin_state(inbox), stats_of(context, connection));
    let id = handle.id().to_json(context.config().string_ids);
    let told = SessionState::of(context, session).told();
    let info = Object::new()
        .with_all(told)
        .with("handle_id", id.clone())
        .with_some("opaque_id", facts.opaque_id.as_deref())
        .with_some("token", facts.token.as_deref())
        .with("loop-running", true)
        .with("created", micros(context, facts.created))
        .with("current_time", micros(context, Instant::now()))
        .with("plugin", facts.plugin)
        .with("plugin_specific", plugin);
    let info = match plugin_only {
        true => info,
        false => peer_connection(context, &facts, stats.unwrap_or_default(), info),
    };
    let info = Value::from(info);
    Ok(Object::new().with("handle_id", id).with("info", info))
}

/// What is told of the handle's session.
struct SessionState {
    id: Value,
    last_activity: u64,
    timeout: u32,
    transport: &'static str,
}

impl SessionState {
    fn of(context: &Context, session: &Session) -> Self {
        let facts = session.facts();
        SessionState {
            id: session.id.to_json(context.config().string_ids),
            last_activity: micros(context, facts.last_activity),
            timeout: facts.timeout.seconds(&context.settings),
            transport: facts.transport,
        }
    }

    fn told(self) -> Value {
        json!({
            "session_id": self.id,
            "session_last_activity": self.last_activity,
            "session_timeout": self.timeout,
            "session_transport": self.transport,
        })
    }
}

/// What is left out with `plugin_only`.
fn peer_connection(
    context: &Context,
    facts: &HandleFacts,
    stats: PeerStats,
    info: Object,
) -> Object {
    let info = info.with("flags", flags::flags(facts));
    let Some(connection) = &facts.connection else {
        return info
            .with("sdps", json!({}))
            .with_some("pending-trickles", some(facts.early))
            .with("queued-packets", 0);
    };
    let (lite, controlling) = (context.facts.ice_lite, stats.ice.controlling);
    let role = if controlling {
        "controlling"
    } else {
        "controlled"
    };
    let sdps = Object::new()
        .with_some("profile", connection.profile())
        .with_some("local", connection.local.as_deref())
        .with_some("remote", connection.remote.as_deref());
    let workers = context.media.worker_stats();
    let worker = connection.peer.worker();
    let causes = diagnose(&Observed {
        stats: &stats,
        negotiated: connection.negotiated.is_some(),
        worker: workers.iter().find(|stats| stats.index == worker),
    });
    let causes = causes.into_iter();
    let causes = causes.map(|cause| json!({ "cause": cause.code, "text": cause.text }));
    let started = connection.started;
    info.with("agent-created", micros(context, connection.created))
        .with_some("agent-started", started.map(|at| micros(context, at)))
        .with("ice-mode", if lite { "lite" } else { "full" })
        .with("ice-role", role)
        .with("sdps", Value::from(sdps))
        .with_some("pending-trickles", some(facts.early))
        .with(
            "queued-packets",
            stats.pacer.map_or(0, |pacer| pacer.packets),
        )
        .with_all(capture(&stats))
        .with("webrtc", webrtc::webrtc(context, connection, &stats))
        .with("diagnosis", causes.collect::<Value>())
}

/// The capture that is running.
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

/// The plugin's own words; nothing if it does not find any in time.
async fn plugin_state(inbox: &Inbox) -> Value {
    let asked = async {
        let (reply, state) = oneshot::channel();
        inbox.send(Command::Query { reply }).await;
        state.await
    };
    match timeout(PATIENCE, asked).await {
        Ok(Ok(state)) => state,
        Ok(Err(_)) | Err(_) => json!({}),
    }
}

async fn stats_of(context: &Context, connection: Option<&ConnectionFacts>) -> Option<PeerStats> {
    let stats = context.media.stats(connection?.peer);
    timeout(PATIENCE, stats).await.ok().flatten()
}

/// Microseconds from the start of the core to `at`.
fn micros(context: &Context, at: Instant) -> u64 {
    whole_micros(at.saturating_duration_since(context.started))
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
