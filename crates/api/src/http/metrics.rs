//! Counters in the text format of Prometheus
//! (https://prometheus.io/docs/instrumenting/exposition_formats/).

use std::fmt::Write;
use std::sync::Arc;

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;

use super::Shared;

/// Answers `/metrics`.
pub(crate) async fn serve(State(shared): State<Arc<Shared>>) -> impl IntoResponse {
    let kind = [(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
    (kind, text(&shared))
}

fn text(shared: &Shared) -> String {
    let core = shared.gateway.counters().snapshot();
    let mut out = String::new();
    for (name, help, value) in [
        ("sessions", "Sessions that there are", core.sessions),
        ("handles", "Handles that there are", core.handles),
        (
            "peer_connections",
            "PeerConnections that are up",
            core.peer_connections,
        ),
    ] {
        metric(&mut out, name, help, "gauge", value);
    }
    for (name, help, value) in [
        ("requests", "Requests of the Janus API", core.requests),
        ("events", "Events sent to clients", core.events),
        (
            "dropped_events",
            "Events that were not fetched or taken in time",
            core.events_dropped,
        ),
        (
            "timed_out_sessions",
            "Sessions whose clients were silent",
            core.sessions_timed_out,
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
    ]
    .into_iter()
    .chain(shared.counters.all())
    {
        metric(&mut out, &format!("{name}_total"), help, "counter", value);
    }
    let name = "portunus_bad_requests_total";
    line(
        &mut out,
        format_args!("# HELP {name} Requests that the core refused, by kind"),
    );
    line(&mut out, format_args!("# TYPE {name} counter"));
    for (kind, value) in core.bad_requests {
        line(
            &mut out,
            format_args!("{name}{{kind=\"{}\"}} {value}", kind.as_str()),
        );
    }
    out
}

fn metric(out: &mut String, name: &str, help: &str, kind: &str, value: u64) {
    line(out, format_args!("# HELP portunus_{name} {help}"));
    line(out, format_args!("# TYPE portunus_{name} {kind}"));
    line(out, format_args!("portunus_{name} {value}"));
}

fn line(out: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = writeln!(out, "{text}");
}
