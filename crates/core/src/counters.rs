//! Counters of the core, for metrics and the dashboard.

use std::sync::atomic::{AtomicU64, Ordering};

use portunus_log_gate::LogGate;

use crate::{ApiError, Times};

/// Counts since the start, and present numbers. Read them with [`Counters::snapshot`].
#[derive(Debug, Default)]
pub struct Counters {
    pub(crate) sessions: AtomicU64,
    pub(crate) handles: AtomicU64,
    pub(crate) peer_connections: AtomicU64,
    pub(crate) requests: AtomicU64,
    pub(crate) events: AtomicU64,
    pub(crate) events_dropped: AtomicU64,
    pub(crate) sessions_timed_out: AtomicU64,
    pub(crate) ice_failures: AtomicU64,
    pub(crate) dtls_failures: AtomicU64,
    pub(crate) statistics_interval_ms: AtomicU64,
    /// Histograms of times.
    pub times: Times,
    bad: [BadCount; BadRequest::ALL.len()],
}

/// The kinds of refused requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BadRequest {
    /// Not JSON, or not an object.
    Json,
    /// A member is missing or of the wrong type.
    Element,
    /// The verb does not exist, or not at this level.
    Verb,
    /// An unknown session or handle.
    Address,
    /// Wrong or missing secret or token.
    Unauthorized,
    /// An SDP that cannot be used.
    Sdp,
    /// A candidate that cannot be used.
    Candidate,
    /// More requests than a client may make.
    Rate,
}

impl BadRequest {
    /// All kinds.
    pub const ALL: [BadRequest; 8] = [
        BadRequest::Json,
        BadRequest::Element,
        BadRequest::Verb,
        BadRequest::Address,
        BadRequest::Unauthorized,
        BadRequest::Sdp,
        BadRequest::Candidate,
        BadRequest::Rate,
    ];

    /// Its name in logs and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            BadRequest::Json => "json",
            BadRequest::Element => "element",
            BadRequest::Verb => "verb",
            BadRequest::Address => "address",
            BadRequest::Unauthorized => "unauthorized",
            BadRequest::Sdp => "sdp",
            BadRequest::Candidate => "candidate",
            BadRequest::Rate => "rate",
        }
    }

    /// Returns the kind of an error, or `None` if the client is not at fault.
    const fn of(error: &ApiError) -> Option<Self> {
        Some(match error {
            ApiError::Unauthorized | ApiError::NoAdminSecret | ApiError::UnauthorizedPlugin(_) => {
                BadRequest::Unauthorized
            }
            ApiError::InvalidJson(_) | ApiError::InvalidJsonObject(_) | ApiError::Transport(_) => {
                BadRequest::Json
            }
            ApiError::MissingElement(_) | ApiError::InvalidElement(_) | ApiError::TooLong(..) => {
                BadRequest::Element
            }
            ApiError::TooManyRequests(_) | ApiError::TooManyGuesses => BadRequest::Rate,
            ApiError::UnknownRequest(_) | ApiError::InvalidPath(_) | ApiError::PathConflict(_) => {
                BadRequest::Verb
            }
            ApiError::NoSession
            | ApiError::SessionNotFound(_)
            | ApiError::NoHandle
            | ApiError::HandleNotFound(..)
            | ApiError::PluginNotFound(_)
            | ApiError::ModuleNotFound(_)
            | ApiError::TokenNotFound(_)
            | ApiError::SessionConflict => BadRequest::Address,
            ApiError::JsepUnknownType(_)
            | ApiError::InvalidSdp(_)
            | ApiError::UnexpectedAnswer
            | ApiError::WebRtcState(_) => BadRequest::Sdp,
            // The budget counts and logs these.
            ApiError::OverBudget(_)
            | ApiError::PluginAttach(_)
            | ApiError::PluginMessage(_)
            | ApiError::NotAcceptingSessions
            | ApiError::Draining(_)
            | ApiError::Unknown(_) => {
                return None;
            }
        })
    }
}

#[derive(Debug, Default)]
struct BadCount {
    count: AtomicU64,
    gate: LogGate,
}

/// The counters at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CountersSnapshot {
    /// Present sessions.
    pub sessions: u64,
    /// Present handles.
    pub handles: u64,
    /// PeerConnections that are up.
    pub peer_connections: u64,
    /// Requests since the start.
    pub requests: u64,
    /// Events sent to clients since the start.
    pub events: u64,
    /// Events dropped because a client or a handle did not take them in time.
    pub events_dropped: u64,
    /// Sessions that timed out.
    pub sessions_timed_out: u64,
    /// PeerConnections that ended because ICE failed.
    pub ice_failures: u64,
    /// PeerConnections that ended because DTLS failed.
    pub dtls_failures: u64,
    /// Milliseconds between two events with statistics of a PeerConnection. 0 if nobody subscribed
    /// to them.
    pub statistics_interval_ms: u64,
    /// Refused requests by kind.
    pub bad_requests: Vec<(BadRequest, u64)>,
}

impl Counters {
    /// Returns the counters at present.
    pub fn snapshot(&self) -> CountersSnapshot {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        CountersSnapshot {
            sessions: read(&self.sessions),
            handles: read(&self.handles),
            peer_connections: read(&self.peer_connections),
            requests: read(&self.requests),
            events: read(&self.events),
            events_dropped: read(&self.events_dropped),
            sessions_timed_out: read(&self.sessions_timed_out),
            ice_failures: read(&self.ice_failures),
            dtls_failures: read(&self.dtls_failures),
            statistics_interval_ms: read(&self.statistics_interval_ms),
            bad_requests: BadRequest::ALL
                .into_iter()
                .zip(&self.bad)
                .map(|(kind, bad)| (kind, read(&bad.count)))
                .collect(),
        }
    }

    /// Counts a refused request, and logs at most one per second of each kind.
    pub(crate) fn refused(&self, error: &ApiError) {
        if let Some(kind) = BadRequest::of(error) {
            self.bad(kind, error);
        }
    }

    /// As [`Counters::refused`], for faults without an error reply.
    pub(crate) fn bad(&self, kind: BadRequest, cause: &dyn std::fmt::Display) {
        let Some(bad) = self.bad.get(kind as usize) else {
            return;
        };
        add(&bad.count);
        if let Some(suppressed) = bad.gate.open() {
            tracing::info!(
                kind = kind.as_str(),
                suppressed,
                "refused a request: {cause}"
            );
        }
    }
}

pub(crate) fn add(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

pub(crate) fn subtract(counter: &AtomicU64) {
    counter.fetch_sub(1, Ordering::Relaxed);
}
