//! Counters in the text format of Prometheus
//! (https://prometheus.io/docs/instrumenting/exposition_formats/).

mod audio;
mod media;
mod process;
mod recordings;
mod times;
mod turn;

use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use portunus_brokers::BrokerCounters;
use portunus_core::events::{EventCounters, HandlerCounters};
use portunus_core::{Gateway, LogLosses, PluginCounter, TokenTotals};

use crate::Counters;

/// Whose counters are shown.
#[derive(Debug, Clone)]
pub(crate) struct Counted {
    pub(crate) gateway: Gateway,
    pub(crate) counters: Arc<Counters>,
}

/// Answers `/metrics`.
pub(crate) async fn serve(State(counted): State<Counted>) -> impl IntoResponse {
    let kind = [(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
    // It looks at files.
    let text = tokio::task::spawn_blocking(move || text(&counted)).await;
    (kind, text.unwrap_or_default())
}

fn text(counted: &Counted) -> String {
    let core = counted.gateway.counters().snapshot();
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
    seconds(
        &mut out,
        "statistics_interval_seconds",
        "Time from one event with statistics of a PeerConnection to its next; 0: nobody wants them",
        Duration::from_millis(core.statistics_interval_ms),
    );
    for (name, help, value) in [
        ("requests", "Requests of the Janus API", core.requests),
        (
            "admin_requests",
            "Requests of the Admin API",
            core.admin_requests,
        ),
        (
            "refused_admin_requests",
            "Requests of the Admin API without the right secret",
            core.admin_refused,
        ),
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
    .chain(counted.counters.all())
    {
        metric(&mut out, &format!("{name}_total"), help, "counter", value);
    }
    for (plugin, counter) in counted.gateway.plugin_counters() {
        let name = format!("{plugin}_{}_total", counter.name);
        metric(&mut out, &name, counter.help, "counter", counter.value);
    }
    for (plugin, gauge) in counted.gateway.plugin_gauges() {
        let name = format!("{plugin}_{}", gauge.name);
        metric(&mut out, &name, gauge.help, "gauge", gauge.value);
    }
    memory(&mut out, &counted.gateway);
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
    brokers(&mut out, &counted.counters);
    events(&mut out, &counted.gateway.events().counters());
    tokens(&mut out, &counted.gateway.token_totals());
    log(&mut out, counted.gateway.log_losses());
    times::write(&mut out, &counted.gateway);
    process::write(&mut out, &counted.gateway);
    media::write(&mut out, &counted.gateway.media_totals());
    recordings::write(&mut out, &counted.gateway.recorder_totals());
    if let Some(threads) = counted.gateway.audio() {
        audio::write(&mut out, threads);
    }
    if let Some(server) = counted.gateway.turn() {
        turn::write(&mut out, &server.totals());
    }
    out
}

/// The memory that clients hold.
fn memory(out: &mut String, gateway: &Gateway) {
    for (api, whose, totals) in [
        ("client", "clients", gateway.memory().totals()),
        (
            "admin",
            "clients of the Admin API",
            gateway.admin_memory().totals(),
        ),
    ] {
        let name = format!("{api}_memory_bytes");
        let help = format!("Memory that {whose} hold, as it is reckoned");
        metric(out, &name, &help, "gauge", totals.used);
        let name = format!("{api}_memory_limit_bytes");
        let help = format!("Memory that {whose} may hold");
        metric(out, &name, &help, "gauge", totals.limit);
        let name = format!("{api}_memory_refused_total");
        let help = format!(
            "What {whose} were refused because the memory of one address, or of all, was used up"
        );
        let refused = [
            ("address", totals.refused_to_address),
            ("all", totals.refused_to_all),
        ];
        of_each(out, &name, &help, ("counter", "of"), &refused);
    }
}

/// The bus and its handlers.
fn events(out: &mut String, counters: &EventCounters) {
    let help = "Events of the server that somebody wanted";
    let (name, value) = ("event_bus_published_total", counters.published);
    metric(out, name, help, "counter", value);
    let of_handlers = |read: fn(&HandlerCounters) -> u64| {
        let values = counters.handlers.iter().map(|it| (it.package, read(it)));
        values.collect::<Vec<_>>()
    };
    let (name, help) = (
        "event_handler_dropped_total",
        "Events that an event handler did not take in time",
    );
    of_each(
        out,
        name,
        help,
        ("counter", "handler"),
        &of_handlers(|it| it.dropped),
    );
    let (name, help) = (
        "event_handler_running",
        "Whether an event handler takes events (0: it has ended)",
    );
    let running = of_handlers(|it| it.is_running.into());
    of_each(out, name, help, ("gauge", "handler"), &running);
    let (name, help) = (
        "event_handler_waiting",
        "Events that wait for an event handler",
    );
    let waiting = of_handlers(|it| it.waiting.try_into().unwrap_or(u64::MAX));
    of_each(out, name, help, ("gauge", "handler"), &waiting);
    // The same counter of several handlers has to stand together.
    let mut own: Vec<(PluginCounter, Vec<(&str, u64)>)> = Vec::new();
    for handler in &counters.handlers {
        for counter in &handler.own {
            let value = (handler.package, counter.value);
            match own.iter_mut().find(|(known, _)| known.name == counter.name) {
                Some((_, values)) => values.push(value),
                None => own.push((*counter, vec![value])),
            }
        }
    }
    for (counter, values) in own {
        let name = format!("event_handler_{}_total", counter.name);
        of_each(out, &name, counter.help, ("counter", "handler"), &values);
    }
}

/// What the connections to brokers by which the APIs are served count.
fn brokers(out: &mut String, counters: &Counters) {
    let brokers = counters.brokers();
    let of_brokers = |read: fn(&BrokerCounters) -> u64| {
        let values = brokers.iter().map(|(kind, it)| (*kind, read(it)));
        values.collect::<Vec<_>>()
    };
    for (name, help, values) in [
        (
            "broker_published_messages_total",
            "Replies and events that the broker has got, or with NATS that were handed over",
            of_brokers(BrokerCounters::published),
        ),
        (
            "broker_lost_messages_total",
            "Replies and events that the broker has refused, or that were left at the end",
            of_brokers(BrokerCounters::lost),
        ),
    ] {
        of_each(out, name, help, ("counter", "broker"), &values);
    }
}

/// A figure of each of several; `kind` is that of the metric, `label` says what they are.
fn of_each(
    out: &mut String,
    name: &str,
    help: &str,
    (kind, label): (&str, &str),
    values: &[(&str, u64)],
) {
    line(out, format_args!("# HELP portunus_{name} {help}"));
    line(out, format_args!("# TYPE portunus_{name} {kind}"));
    for (which, value) in values {
        line(
            out,
            format_args!("portunus_{name}{{{label}=\"{which}\"}} {value}"),
        );
    }
}

fn tokens(out: &mut String, totals: &TokenTotals) {
    let name = "portunus_refused_tokens_total";
    let help = format_args!("# HELP {name} Tokens that were refused, by reason");
    line(out, help);
    line(out, format_args!("# TYPE {name} counter"));
    for (reason, count) in &totals.refused {
        line(out, format_args!("{name}{{reason=\"{reason}\"}} {count}"));
    }
    for (name, help, value) in [
        (
            "token_key_reads_total",
            "Times that jwt.jwks_file was read again because it had changed",
            totals.key_reads,
        ),
        (
            "token_key_failures_total",
            "Times that jwt.jwks_file gave no keys, so that the former ones stayed",
            totals.key_failures,
        ),
    ] {
        metric(out, name, help, "counter", value);
    }
}

/// The log.
fn log(out: &mut String, losses: LogLosses) {
    let help = "Log lines that were not written: not read in time, or more of a kind than log.rate lets through";
    let values = [("unread", losses.dropped), ("rate", losses.left_out)];
    let (name, kind) = ("log_lines_lost_total", ("counter", "reason"));
    of_each(out, name, help, kind, &values);
}

fn metric(out: &mut String, name: &str, help: &str, kind: &str, value: u64) {
    line(out, format_args!("# HELP portunus_{name} {help}"));
    line(out, format_args!("# TYPE portunus_{name} {kind}"));
    line(out, format_args!("portunus_{name} {value}"));
}

/// A gauge of a time, in the unit that Prometheus wants.
fn seconds(out: &mut String, name: &str, help: &str, value: Duration) {
    let value = value.as_secs_f64();
    line(out, format_args!("# HELP portunus_{name} {help}"));
    line(out, format_args!("# TYPE portunus_{name} gauge"));
    line(out, format_args!("portunus_{name} {value}"));
}

fn line(out: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = writeln!(out, "{text}");
}
