//! Counters in the text format of Prometheus.

use std::fmt::Write;
use std::sync::Arc;

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;

use super::Shared;

/// `GET /metrics`
pub(crate) async fn serve(State(shared): State<Arc<Shared>>) -> impl IntoResponse {
    let mut text = String::new();
    let core = shared.gateway.counters().snapshot();
    let gauges = [
        ("sessions", "Sessions", core.sessions),
        ("handles", "Handles", core.handles),
        (
            "peer_connections",
            "PeerConnections that are up",
            core.peer_connections,
        ),
    ];
    for (name, help, value) in gauges {
        line(&mut text, name, help, "gauge", value);
    }
    let counters = [
        ("requests_total", "Requests", core.requests),
        ("events_total", "Events sent to clients", core.events),
        (
            "events_dropped_total",
            "Events that nobody took in time",
            core.events_dropped,
        ),
        (
            "sessions_timed_out_total",
            "Sessions whose client was silent",
            core.sessions_timed_out,
        ),
        (
            "ice_failures_total",
            "PeerConnections that ended because ICE failed",
            core.ice_failures,
        ),
        (
            "dtls_failures_total",
            "PeerConnections that ended because DTLS failed",
            core.dtls_failures,
        ),
    ];
    for (name, help, value) in counters {
        line(&mut text, name, help, "counter", value);
    }
    for (name, help, value) in shared.counters.all() {
        line(&mut text, &format!("{name}_total"), help, "counter", value);
    }
    ([(CONTENT_TYPE, "text/plain; version=0.0.4")], text)
}

fn line(text: &mut String, name: &str, help: &str, kind: &str, value: u64) {
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "# HELP portunus_{name} {help}.\n# TYPE portunus_{name} {kind}\nportunus_{name} {value}"
    );
}
