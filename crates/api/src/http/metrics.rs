//! Counters in the text format of Prometheus
//! (https://prometheus.io/docs/instrumenting/exposition_formats/).

mod process;
mod times;

use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use portunus_brokers::BrokerCounters;
use portunus_core::audio::{AudioThreadStats, AudioThreads};
use portunus_core::events::{EventCounters, HandlerCounters};
use portunus_core::media::{MediaTotals, TcpTotals};
use portunus_core::record::RecorderTotals;
use portunus_core::turn::{TurnClosed, TurnRefused, TurnTotals};
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
    media(&mut out, &counted.gateway.media_totals());
    recordings(&mut out, &counted.gateway.recorder_totals());
    if let Some(threads) = counted.gateway.audio() {
        audio(&mut out, threads);
    }
    if let Some(server) = counted.gateway.turn() {
        turn(&mut out, &server.totals());
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

fn media(out: &mut String, totals: &MediaTotals) {
    let help = "Peers that the media workers hold, connected or on their way";
    metric(out, "media_peers", help, "gauge", totals.peers);
    for (name, help, value) in [
        (
            "media_received_datagrams",
            "Datagrams that peers sent",
            totals.received_datagrams,
        ),
        (
            "media_received_bytes",
            "Bytes that peers sent, without IP and UDP headers",
            totals.received_bytes,
        ),
        (
            "media_sent_datagrams",
            "Datagrams sent to peers",
            totals.sent_datagrams,
        ),
        (
            "media_sent_bytes",
            "Bytes sent to peers, without IP and UDP headers",
            totals.sent_bytes,
        ),
        (
            "media_send_calls",
            "System calls by which datagrams were sent to peers",
            totals.send_calls,
        ),
        (
            "media_send_dropped",
            "Datagrams given up because the network did not take them in time",
            totals.send_dropped,
        ),
        (
            "media_send_refused",
            "Datagrams that the kernel would not send",
            totals.send_refused,
        ),
        (
            "media_ring_dropped",
            "Packets that another worker did not take in time",
            totals.ring_dropped,
        ),
        (
            "media_handed_over",
            "Datagrams that came to another worker than their peer's, where workers share a port, and were handed over",
            totals.handed_over,
        ),
        (
            "media_handover_dropped",
            "Datagrams that the worker of their peer did not take in time from the worker that they came to",
            totals.handover_dropped,
        ),
        (
            "media_pacer_dropped",
            "Packets left out because too many waited for their viewer",
            totals.pacer_dropped,
        ),
        (
            "media_dropped_events",
            "Events of the media plane that the control plane did not take in time",
            totals.events_dropped,
        ),
        (
            "media_ingested_packets",
            "Packets and messages that sources of mountpoints sent",
            totals.ingested_packets,
        ),
        (
            "media_ingested_bytes",
            "Bytes that sources of mountpoints sent, RTP headers included",
            totals.ingested_bytes,
        ),
        (
            "media_dropped_messages",
            "Messages for data channels that did not keep up, or that were too long for them",
            totals.messages_dropped,
        ),
    ] {
        metric(out, &format!("{name}_total"), help, "counter", value);
    }
    tcp(out, &totals.tcp);
    let name = "portunus_media_refused_datagrams_total";
    line(
        out,
        format_args!("# HELP {name} Datagrams that were refused, by kind"),
    );
    line(out, format_args!("# TYPE {name} counter"));
    for (kind, value) in &totals.refused {
        line(out, format_args!("{name}{{kind=\"{kind}\"}} {value}"));
    }
    let name = "portunus_media_ingest_refused_total";
    line(
        out,
        format_args!(
            "# HELP {name} Datagrams to mountpoints that were refused, or came while they were disabled, by why"
        ),
    );
    line(out, format_args!("# TYPE {name} counter"));
    for (reason, value) in &totals.ingest_refused {
        line(out, format_args!("{name}{{reason=\"{reason}\"}} {value}"));
    }
    let name = "portunus_media_layer_changes_total";
    line(
        out,
        format_args!("# HELP {name} Times that a viewer got other layers, by why it got these"),
    );
    line(out, format_args!("# TYPE {name} counter"));
    for (reason, value) in &totals.layer_changes {
        line(out, format_args!("{name}{{reason=\"{reason}\"}} {value}"));
    }
}

fn tcp(out: &mut String, totals: &TcpTotals) {
    let help = "TCP connections of peers that are open (ICE-TCP)";
    metric(
        out,
        "media_tcp_connections",
        help,
        "gauge",
        totals.connections,
    );
    for (name, help, value) in [
        (
            "media_tcp_accepted",
            "TCP connections accepted, those that were refused later included",
            totals.accepted,
        ),
        (
            "media_tcp_received_datagrams",
            "Datagrams that peers sent by TCP",
            totals.received_frames,
        ),
        (
            "media_tcp_received_bytes",
            "Bytes that peers sent by TCP",
            totals.received_bytes,
        ),
        (
            "media_tcp_sent_datagrams",
            "Datagrams for peers on TCP",
            totals.sent_frames,
        ),
        (
            "media_tcp_sent_bytes",
            "Bytes for peers on TCP",
            totals.sent_bytes,
        ),
        (
            "media_tcp_dropped",
            "Datagrams left out because the peer's connection did not take as much as was sent",
            totals.dropped_frames,
        ),
    ] {
        metric(out, &format!("{name}_total"), help, "counter", value);
    }
    let refused: Vec<_> = TcpTotals::REFUSED.iter().zip(totals.refused).collect();
    let closed: Vec<_> = TcpTotals::CLOSED.iter().zip(totals.closed).collect();
    for (name, help, by_kind) in [
        (
            "refused",
            "TCP connections that were refused, by kind",
            refused,
        ),
        (
            "closed",
            "TCP connections of peers that have ended, by kind",
            closed,
        ),
    ] {
        let name = format!("portunus_media_tcp_{name}_total");
        line(out, format_args!("# HELP {name} {help}"));
        line(out, format_args!("# TYPE {name} counter"));
        for (kind, value) in by_kind {
            line(out, format_args!("{name}{{kind=\"{kind}\"}} {value}"));
        }
    }
}

/// Audio rooms, and the threads that mix them.
fn audio(out: &mut String, threads: &AudioThreads) {
    let totals = threads.totals();
    for (name, help, value) in [
        ("audio_rooms", "Audio rooms that there are", totals.rooms),
        (
            "audio_participants",
            "Participants of audio rooms",
            totals.participants,
        ),
    ] {
        metric(out, name, help, "gauge", value);
    }
    for (name, help, value) in [
        (
            "audio_decoded_frames",
            "Frames of participants that were decoded",
            totals.decoded,
        ),
        (
            "audio_relayed_frames",
            "Frames of participants that were neither decoded nor encoded, for they alone were heard",
            totals.relayed,
        ),
        (
            "audio_encoded_frames",
            "Frames of mixes that were encoded",
            totals.encoded,
        ),
        (
            "audio_helped_frames",
            "Frames of mixes that another thread encoded than the room's",
            totals.helped,
        ),
        (
            "audio_unreturned_frames",
            "Frames of mixes that another thread did not encode in time: a packet is missing for each",
            totals.unreturned,
        ),
        (
            "audio_mixed_frames",
            "Frames of rooms that were mixed",
            totals.ticks,
        ),
        (
            "audio_skipped_frames",
            "Frames of rooms that were left out because their thread was too late",
            totals.skipped,
        ),
        (
            "audio_dropped_packets",
            "Packets of participants that an audio thread did not take in time, or that were too many",
            totals.dropped,
        ),
        (
            "audio_undelivered_packets",
            "Packets of mixes that a media worker did not take in time",
            totals.undelivered,
        ),
        (
            "audio_merged_events",
            "Events of audio rooms that were not taken in time, and of which a later one says more",
            totals.merged_events,
        ),
    ] {
        metric(out, &format!("{name}_total"), help, "counter", value);
    }
    let stats = threads.thread_stats();
    for (name, help, read) in [
        (
            "audio_late_median_seconds",
            "By how much half of the frames of the last seconds left late at most",
            (|it| it.late_median) as fn(&AudioThreadStats) -> Duration,
        ),
        (
            "audio_late_p99_seconds",
            "By how much 99 of 100 frames of the last seconds left late at most",
            |it| it.late_p99,
        ),
        (
            "audio_late_max_seconds",
            "By how much the latest frame of the last seconds was late",
            |it| it.late_max,
        ),
    ] {
        line(out, format_args!("# HELP portunus_{name} {help}"));
        line(out, format_args!("# TYPE portunus_{name} gauge"));
        for thread in &stats {
            let (index, late) = (thread.index, read(thread).as_secs_f64());
            line(
                out,
                format_args!("portunus_{name}{{thread=\"{index}\"}} {late}"),
            );
        }
    }
}

/// The TURN server.
fn turn(out: &mut String, totals: &TurnTotals) {
    for (name, help, value) in [
        (
            "turn_allocations",
            "Allocations of the TURN server that there are",
            totals.allocations,
        ),
        (
            "turn_connections",
            "TCP and TLS connections to the TURN server that are open",
            totals.connections,
        ),
    ] {
        metric(out, name, help, "gauge", value);
    }
    for (name, help, value) in [
        ("allocated", "Allocations made", totals.allocated),
        (
            "accepted",
            "TCP and TLS connections accepted, those that were closed at once included",
            totals.accepted,
        ),
        (
            "to_media_datagrams",
            "Datagrams relayed from clients to media",
            totals.to_media,
        ),
        (
            "to_media_bytes",
            "Bytes relayed from clients to media",
            totals.to_media_bytes,
        ),
        (
            "to_clients_datagrams",
            "Datagrams relayed from media to clients",
            totals.to_clients,
        ),
        (
            "to_clients_bytes",
            "Bytes relayed from media to clients",
            totals.to_clients_bytes,
        ),
        (
            "dropped",
            "Datagrams dropped because a client or a socket did not take them",
            totals.dropped,
        ),
        (
            "unwanted",
            "Datagrams without a permission or a channel, or not from media",
            totals.unwanted,
        ),
        ("garbage", "Datagrams that are not TURN", totals.garbage),
        (
            "unanswered",
            "Requests without valid credentials that were not answered because there were too many",
            totals.unanswered,
        ),
    ] {
        metric(out, &format!("turn_{name}_total"), help, "counter", value);
    }
    let refused = TurnRefused::ALL.map(TurnRefused::as_str);
    let closed = TurnClosed::ALL.map(TurnClosed::as_str);
    let refused: Vec<_> = refused.into_iter().zip(totals.refused).collect();
    let closed: Vec<_> = closed.into_iter().zip(totals.closed).collect();
    for (name, help, by_kind) in [
        (
            "refused",
            "Requests to the TURN server that were refused, by kind",
            refused,
        ),
        (
            "closed",
            "Connections that the TURN server closed, by kind",
            closed,
        ),
    ] {
        let name = format!("portunus_turn_{name}_total");
        line(out, format_args!("# HELP {name} {help}"));
        line(out, format_args!("# TYPE {name} counter"));
        for (kind, value) in by_kind {
            line(out, format_args!("{name}{{kind=\"{kind}\"}} {value}"));
        }
    }
}

fn recordings(out: &mut String, totals: &RecorderTotals) {
    let help = "Files that are being recorded";
    metric(out, "recordings", help, "gauge", totals.open);
    let help = "Bytes of packets that wait for the disks of recordings";
    let waiting = totals.waiting_bytes;
    metric(out, "recording_waiting_bytes", help, "gauge", waiting);
    let help = "How far the disk of recordings that is latest is behind";
    seconds(out, "recording_disk_lag_seconds", help, totals.disk_lag);
    for (name, help, value) in [
        ("recordings_started", "Files begun", totals.started),
        (
            "recordings_failed",
            "Recordings that ended by an error",
            totals.failed,
        ),
        (
            "recordings_completed",
            "Files that nothing more is written into",
            totals.completed,
        ),
        ("recorded_bytes", "Bytes recorded", totals.bytes),
        (
            "recorded_packets",
            "Packets and messages recorded",
            totals.frames,
        ),
        (
            "recording_dropped",
            "Packets and messages left out of recordings because the disk was too slow",
            totals.dropped,
        ),
        (
            "recording_gaps",
            "Gaps in tracks of WebM, Matroska and MP4",
            totals.gaps,
        ),
        (
            "recording_commands",
            "Commands run for complete files",
            totals.commands,
        ),
        (
            "recording_commands_failed",
            "Commands for complete files that failed, were not there or took too long",
            totals.commands_failed,
        ),
        (
            "recording_commands_lost",
            "Complete files without a command because too many waited",
            totals.commands_lost,
        ),
    ] {
        metric(out, &format!("{name}_total"), help, "counter", value);
    }
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
