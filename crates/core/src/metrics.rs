//! The metrics of the core, and of the parts that it was started with.

use portunus_metrics::{MetricKind, MetricsPage, MetricsSource};

use crate::events::{EventCounters, HandlerCounters};
use crate::{CountersSnapshot, Gateway, PluginCounter};

impl MetricsSource for Gateway {
    fn write(&self, page: &mut MetricsPage) {
        let counters = self.counters().snapshot();
        sessions(page, &counters);
        requests(page, &counters);
        plugins(page, self);
        memory(page, self);
        events(page, &self.events().counters());
        times(page, self);
        readiness(page, self);
        self.tokens().write(page);
        self.media().write(page);
        self.facts().recorder.write(page);
        if let Some(turn) = self.turn() {
            turn.write(page);
        }
    }
}

fn sessions(page: &mut MetricsPage, counters: &CountersSnapshot) {
    page.gauge("sessions", "Sessions that there are", counters.sessions);
    page.gauge("handles", "Handles that there are", counters.handles);
    let help = "PeerConnections that are up";
    page.gauge("peer_connections", help, counters.peer_connections);
    let help =
        "Time from one event with statistics of a PeerConnection to its next; 0: nobody wants them";
    let interval = counters.statistics_interval_ms as f64 / 1_000.0;
    page.gauge("statistics_interval_seconds", help, interval);
}

fn requests(page: &mut MetricsPage, counters: &CountersSnapshot) {
    for (name, help, value) in [
        ("requests", "Requests of the Janus API", counters.requests),
        ("events", "Events sent to clients", counters.events),
        (
            "dropped_events",
            "Events that were not fetched or taken in time",
            counters.events_dropped,
        ),
        (
            "timed_out_sessions",
            "Sessions whose clients were silent",
            counters.sessions_timed_out,
        ),
        (
            "ice_failures",
            "PeerConnections that ended because ICE failed",
            counters.ice_failures,
        ),
        (
            "dtls_failures",
            "PeerConnections that ended because DTLS failed",
            counters.dtls_failures,
        ),
    ] {
        page.counter(&format!("{name}_total"), help, value);
    }
    let help = "Requests that the core refused, by kind";
    let refused = counters.bad_requests.iter();
    let refused = refused.map(|(kind, count)| (kind.as_str(), *count));
    page.labelled(
        MetricKind::Counter,
        "bad_requests_total",
        help,
        "kind",
        refused,
    );
}

fn plugins(page: &mut MetricsPage, gateway: &Gateway) {
    for (plugin, counter) in gateway.plugin_counters() {
        let name = format!("{plugin}_{}_total", counter.name);
        page.counter(&name, counter.help, counter.value);
    }
    for (plugin, gauge) in gateway.plugin_gauges() {
        page.gauge(&format!("{plugin}_{}", gauge.name), gauge.help, gauge.value);
    }
}

/// The memory that clients hold.
fn memory(page: &mut MetricsPage, gateway: &Gateway) {
    for (api, whose, totals) in [
        ("client", "clients", gateway.memory().totals()),
        (
            "admin",
            "clients of the Admin API",
            gateway.admin_memory().totals(),
        ),
    ] {
        let help = format!("Memory that {whose} hold, as it is reckoned");
        page.gauge(&format!("{api}_memory_bytes"), &help, totals.used);
        let help = format!("Memory that {whose} may hold");
        page.gauge(&format!("{api}_memory_limit_bytes"), &help, totals.limit);
        let name = format!("{api}_memory_refused_total");
        let help = format!(
            "What {whose} were refused because the memory of one address, or of all, was used up"
        );
        let refused = [
            ("address", totals.refused_to_address),
            ("all", totals.refused_to_all),
        ];
        page.labelled(MetricKind::Counter, &name, &help, "of", refused);
    }
}

/// The event bus and its handlers.
fn events(page: &mut MetricsPage, counters: &EventCounters) {
    let help = "Events of the server that somebody wanted";
    page.counter("event_bus_published_total", help, counters.published);
    let mut of_handlers = |kind, name, help, read: fn(&HandlerCounters) -> u64| {
        let values = counters.handlers.iter().map(|it| (it.package, read(it)));
        page.labelled(kind, name, help, "handler", values);
    };
    of_handlers(
        MetricKind::Counter,
        "event_handler_dropped_total",
        "Events that an event handler did not take in time",
        |it| it.dropped,
    );
    of_handlers(
        MetricKind::Gauge,
        "event_handler_running",
        "Whether an event handler takes events (0: it has ended)",
        |it| it.is_running.into(),
    );
    of_handlers(
        MetricKind::Gauge,
        "event_handler_waiting",
        "Events that wait for an event handler",
        |it| it.waiting.try_into().unwrap_or(u64::MAX),
    );
    // The format wants the same counter of all handlers together.
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
        page.labelled(MetricKind::Counter, &name, counter.help, "handler", values);
    }
}

/// How long requests and connections take.
fn times(page: &mut MetricsPage, gateway: &Gateway) {
    let times = &gateway.counters().times;
    for (name, help, times) in [
        (
            "ice_seconds",
            "Time from the first offer and answer of a PeerConnection until ICE was connected",
            &times.ice,
        ),
        (
            "dtls_seconds",
            "Time from there until DTLS was done",
            &times.dtls,
        ),
        (
            "first_media_seconds",
            "Time from there until the first packet of a medium came from the client",
            &times.first_media,
        ),
        (
            "control_lag_seconds",
            "By how much timers of the control plane were late",
            &times.control_lag,
        ),
    ] {
        page.head(MetricKind::Histogram, name, help);
        page.histogram(name, "", &times.snapshot());
    }
    let name = "request_seconds";
    let help = "Time from a request of the Janus API to its reply";
    page.head(MetricKind::Histogram, name, help);
    for kind in times.requests() {
        let labels = format!("transport=\"{}\",verb=\"{}\"", kind.transport, kind.verb);
        page.histogram(name, &labels, &kind.times);
    }
}

fn readiness(page: &mut MetricsPage, gateway: &Gateway) {
    let is_ready = gateway.not_ready().is_empty() && gateway.stuck().is_empty();
    let help = "Whether new clients are taken: 1 or 0";
    page.gauge("ready", help, u8::from(is_ready));
    let is_draining = gateway.check_drain().is_err();
    let help = "Whether the server is being drained: 1 or 0";
    page.gauge("draining", help, u8::from(is_draining));
}
