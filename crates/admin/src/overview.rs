//! `overview`: the server at a glance, for the dashboard. Janus has no such request.

use std::collections::HashMap;
use std::time::Duration;

use portunus_core::events::HandlerCounters;
use portunus_core::{
    ApiError, Fields, Gateway, Handle, HandleId, Object, PeerFacts, PluginCounter, Session,
    SessionFacts, SessionId,
};
use portunus_media::{IceState, PeerId, PeerStats};
use serde_json::{Value, json};
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout_at};

/// The number of sessions in an answer by default.
const LIMIT: u64 = 100;
/// The most sessions in an answer.
const MAX_LIMIT: u64 = 1_000;
/// How long the media plane may take for the statistics of all handles in an answer.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long an order by statistics is kept. With many handles it is kept longer: see
/// [`RANKING_SHARE`].
const RANKING_AGE: Duration = Duration::from_secs(5);
/// An order is kept for this many times the time that it took to compute.
const RANKING_SHARE: u32 = 200;

pub(super) async fn overview(
    gateway: &Gateway,
    ranking: &SharedRanking,
    refused: u64,
    fields: Fields<'_>,
) -> Result<Object, ApiError> {
    let wanted = Wanted::read(fields)?;
    let mut sessions: Vec<_> = gateway
        .sessions()
        .iter()
        .map(|session| Row::of(gateway, session))
        .filter(|row| wanted.search.as_deref().is_none_or(|text| row.has(text)))
        .collect();
    match wanted.sort {
        Sort::Newest => sessions.sort_by_key(|row| std::cmp::Reverse(row.facts.created)),
        Sort::Activity => sessions.sort_by_key(|row| row.facts.last_activity),
        Sort::Bitrate | Sort::Loss => {
            let mut ranking = ranking.0.lock().await;
            ranking.renew(gateway).await;
            let figure = |row: &Row| ranking.of(row, wanted.sort);
            sessions.sort_by(|a, b| figure(b).total_cmp(&figure(a)));
        }
    }
    let total = sessions.len();
    let page = sessions.iter().skip(wanted.offset).take(wanted.limit);
    let deadline = Instant::now() + PATIENCE;
    let mut told = Vec::new();
    for row in page {
        told.push(row.to_json(gateway, deadline).await);
    }
    let counters = gateway.counters().snapshot();
    let counts = json!({
        "sessions": counters.sessions,
        "handles": counters.handles,
        "peer_connections": counters.peer_connections,
    });
    Ok(Object::new()
        .with("counts", counts)
        .with("uptime", gateway.started().elapsed().as_secs_f64())
        .with("total", total)
        .with("sessions", told)
        .with("trouble", trouble(gateway, refused))
        .with("handlers", handlers(gateway)))
}

/// The options of the request.
struct Wanted {
    offset: usize,
    limit: usize,
    /// In lower case.
    search: Option<String>,
    sort: Sort,
}

/// The order of sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sort {
    Newest,
    /// The longest idle first.
    Activity,
    /// The sum of both directions.
    Bitrate,
    Loss,
}

impl Wanted {
    fn read(fields: Fields<'_>) -> Result<Self, ApiError> {
        let sort = match fields.string("sort")? {
            None | Some("newest") => Sort::Newest,
            Some("activity") => Sort::Activity,
            Some("bitrate") => Sort::Bitrate,
            Some("loss") => Sort::Loss,
            Some(_) => {
                let text =
                    "Invalid element type (sort should be newest, activity, bitrate or loss)";
                return Err(ApiError::InvalidElement(text.to_owned()));
            }
        };
        let offset = fields.positive("offset")?.unwrap_or(0);
        let limit = fields.positive("limit")?.unwrap_or(LIMIT).min(MAX_LIMIT);
        let search = fields.text("search")?;
        Ok(Wanted {
            offset: usize::try_from(offset).unwrap_or(usize::MAX),
            limit: usize::try_from(limit).unwrap_or(usize::MAX),
            search: search.map(str::to_lowercase),
            sort,
        })
    }
}

/// A session with its handles.
struct Row {
    id: SessionId,
    facts: SessionFacts,
    handles: Vec<Handle>,
}

impl Row {
    fn of(gateway: &Gateway, session: &Session) -> Self {
        Row {
            id: session.id(),
            facts: session.facts(),
            handles: gateway.handles(session),
        }
    }

    /// Whether `text`, in lower case, is in an id, address or name of the session.
    fn has(&self, text: &str) -> bool {
        let facts = &self.facts;
        let is_in = |known: &str| known.to_lowercase().contains(text);
        is_in(&self.id.to_string())
            || is_in(facts.transport)
            || is_in(&facts.address.to_string())
            || self.handles.iter().any(|handle| {
                is_in(&handle.id().to_string())
                    || is_in(handle.package())
                    || handle.opaque_id().is_some_and(is_in)
            })
    }

    async fn to_json(&self, gateway: &Gateway, deadline: Instant) -> Value {
        let facts = &self.facts;
        let string_ids = gateway.config().string_ids;
        let mut handles = Vec::new();
        for handle in &self.handles {
            let told = Object::new()
                .with("handle_id", handle.id().to_json(string_ids))
                .with("plugin", handle.package())
                .with_some("opaque_id", handle.opaque_id());
            let told = match handle.peer_facts() {
                None => told,
                Some(peer) => {
                    let stats = stats_by(deadline, gateway, peer.peer).await;
                    told.with_all(link(peer, stats.ok().flatten()))
                }
            };
            handles.push(Value::from(told));
        }
        json!({
            "session_id": self.id.to_json(string_ids),
            "transport": facts.transport,
            "address": facts.address.to_string(),
            "age": facts.created.elapsed().as_secs_f64(),
            "idle": facts.last_activity.elapsed().as_secs_f64(),
            "handles": handles,
        })
    }
}

/// The deadline has passed.
struct Late;

/// Returns the statistics of `peer` if they arrive by `deadline`. After the deadline nothing is
/// requested.
async fn stats_by(
    deadline: Instant,
    gateway: &Gateway,
    peer: PeerId,
) -> Result<Option<PeerStats>, Late> {
    if Instant::now() >= deadline {
        return Err(Late);
    }
    let stats = timeout_at(deadline, gateway.media().stats(peer)).await;
    stats.map_err(|_| Late)
}

/// Describes the state of a PeerConnection.
fn link(peer: PeerFacts, stats: Option<PeerStats>) -> Object {
    let ice = stats.as_ref().and_then(|stats| stats.ice.state);
    let connection = match ice {
        Some(IceState::Failed) => "failed",
        Some(IceState::Disconnected) => "disconnected",
        _ if peer.up => "connected",
        _ if peer.negotiated => "connecting",
        _ => "new",
    };
    let told = Object::new().with("connection", connection);
    let Some(stats) = stats else { return told };
    let last = Figures::of(&stats);
    told.with("bitrate_in", last.received)
        .with("bitrate_out", last.sent)
        .with("loss_in", last.received_lost)
        .with("loss_out", last.sent_lost)
        .with_some("round_trip", last.round_trip.map(|rtt| rtt.as_secs_f64()))
}

/// The last second of a PeerConnection.
struct Figures {
    /// In bit/s.
    received: u64,
    sent: u64,
    /// From 0 to 1.
    received_lost: f64,
    sent_lost: f64,
    round_trip: Option<Duration>,
}

impl Figures {
    fn of(stats: &PeerStats) -> Self {
        let sample = stats.series.last().copied().unwrap_or_default();
        Figures {
            received: sample.received,
            sent: sample.sent,
            received_lost: sample.received_lost,
            sent_lost: sample.sent_lost,
            round_trip: sample.round_trip.or(stats.ice.round_trip),
        }
    }
}

/// The statistics of handles by which sessions are ordered, shared by all requests.
#[derive(Debug, Default)]
pub(crate) struct SharedRanking(Mutex<Ranking>);

#[derive(Debug, Default)]
struct Ranking {
    /// When it expires.
    until: Option<Instant>,
    figures: HashMap<HandleId, (f64, f64)>,
}

impl Ranking {
    /// Requests the statistics of all handles again if the order has expired.
    async fn renew(&mut self, gateway: &Gateway) {
        let start = Instant::now();
        if self.until.is_some_and(|until| start < until) {
            return;
        }
        self.figures.clear();
        let deadline = start + PATIENCE;
        'all: for session in gateway.sessions() {
            for handle in gateway.handles(&session) {
                let Some(PeerFacts { peer, .. }) = handle.peer_facts() else {
                    continue;
                };
                let Ok(stats) = stats_by(deadline, gateway, peer).await else {
                    break 'all;
                };
                if let Some(stats) = stats {
                    let figures = Figures::of(&stats);
                    let bitrate = figures.received.saturating_add(figures.sent);
                    let loss = figures.received_lost.max(figures.sent_lost);
                    self.figures.insert(handle.id(), (bitrate as f64, loss));
                }
            }
        }
        let took = start.elapsed();
        let holds = RANKING_AGE.max(took.saturating_mul(RANKING_SHARE));
        self.until = Some(Instant::now() + holds);
    }

    /// Returns a session's figure: the sum of its bitrates, or its highest loss.
    fn of(&self, row: &Row, sort: Sort) -> f64 {
        let handles = row.handles.iter().map(Handle::id);
        let figures = handles.filter_map(|id| self.figures.get(&id));
        match sort {
            Sort::Loss => figures.map(|(_, loss)| *loss).fold(0.0, f64::max),
            _ => figures.map(|(bitrate, _)| *bitrate).sum(),
        }
    }
}

/// Counts of events that should not happen.
fn trouble(gateway: &Gateway, refused: u64) -> Value {
    let core = gateway.counters().snapshot();
    let media = gateway.media_totals();
    let sum = |counts: &[(&str, u64)]| counts.iter().map(|(_, count)| count).sum::<u64>();
    let bad_requests = core.bad_requests.iter().map(|(_, count)| count).sum();
    [
        ("bad_requests", "requests that were refused", bad_requests),
        (
            "refused_admin_requests",
            "requests of the Admin API without the right secret",
            refused,
        ),
        (
            "ice_failures",
            "PeerConnections that ended because ICE failed",
            core.ice_failures,
        ),
        (
            "dtls_failures",
            "PeerConnections that ended because DTLS failed",
            core.dtls_failures,
        ),
        (
            "timed_out_sessions",
            "sessions whose clients were silent",
            core.sessions_timed_out,
        ),
        (
            "dropped_events",
            "events that clients or handles did not take in time",
            core.events_dropped.saturating_add(media.events_dropped),
        ),
        (
            "refused_datagrams",
            "datagrams that were malformed, not authentic, replayed or unexpected",
            sum(&media.refused),
        ),
        (
            "refused_ingest_datagrams",
            "datagrams that ingests refused",
            sum(&media.ingest_refused),
        ),
        (
            "unsent_datagrams",
            "datagrams that the kernel did not take",
            media.send_dropped.saturating_add(media.send_refused),
        ),
        (
            "late_packets",
            "packets left out because too many waited for their viewer",
            media.pacer_dropped,
        ),
        (
            "ring_dropped",
            "packets for a worker that did not take them in time",
            media.ring_dropped,
        ),
        (
            "handover_dropped",
            "datagrams that came to another worker, and that their peer's did not take in time",
            media.handover_dropped,
        ),
        (
            "dropped_messages",
            "messages of data channels that were not sent",
            media.messages_dropped,
        ),
    ]
    .into_iter()
    .map(|(name, help, value)| json!({ "name": name, "help": help, "value": value }))
    .collect()
}

fn handlers(gateway: &Gateway) -> Value {
    let counter =
        |it: PluginCounter| json!({ "name": it.name, "help": it.help, "value": it.value });
    let handler = |it: HandlerCounters| {
        json!({
            "package": it.package,
            "running": it.is_running,
            "waiting": it.waiting,
            "dropped": it.dropped,
            "counters": it.own.into_iter().map(counter).collect::<Value>(),
        })
    };
    let counted = gateway.events().counters();
    counted.handlers.into_iter().map(handler).collect()
}
