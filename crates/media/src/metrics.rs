//! The metrics of the media plane.

use std::time::Duration;

use portunus_metrics::{MetricKind, MetricsPage, MetricsSource};

use crate::{MediaPlane, MediaTotals, RelayedTotals, TcpTotals, WorkerStats};

impl MetricsSource for MediaPlane {
    fn write(&self, page: &mut MetricsPage) {
        workers(page, &self.worker_stats());
        write(page, &self.totals());
    }
}

fn write(page: &mut MetricsPage, totals: &MediaTotals) {
    let help = "Peers that the media workers hold, connected or on their way";
    page.gauge("media_peers", help, totals.peers);
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
        page.counter(&format!("{name}_total"), help, value);
    }
    tcp(page, &totals.tcp);
    relayed(page, &totals.relayed);
    let help = "Datagrams that were refused, by kind";
    let (name, label) = ("media_refused_datagrams_total", "kind");
    page.labelled(
        MetricKind::Counter,
        name,
        help,
        label,
        totals.refused.iter().copied(),
    );
    let help =
        "Datagrams to mountpoints that were refused, or came while they were disabled, by why";
    let (name, label) = ("media_ingest_refused_total", "reason");
    page.labelled(
        MetricKind::Counter,
        name,
        help,
        label,
        totals.ingest_refused.iter().copied(),
    );
    let help = "Datagrams to the sockets of links between nodes that were refused, by why";
    let (name, label) = ("media_node_link_refused_total", "reason");
    page.labelled(
        MetricKind::Counter,
        name,
        help,
        label,
        totals.node_link_refused.iter().copied(),
    );
    let help = "Times that a viewer got other layers, by why it got these";
    let (name, label) = ("media_layer_changes_total", "reason");
    page.labelled(
        MetricKind::Counter,
        name,
        help,
        label,
        totals.layer_changes.iter().copied(),
    );
}

/// What passes by TURN servers of others, at which the server has an address.
fn relayed(page: &mut MetricsPage, totals: &RelayedTotals) {
    for (name, help, value) in [
        (
            "allocations",
            "Media workers that have an address at a TURN server",
            totals.allocations,
        ),
        (
            "channels",
            "Addresses of peers that have a channel at a TURN server",
            totals.channels,
        ),
    ] {
        page.gauge(&format!("media_relayed_{name}"), help, value);
    }
    for (name, help, value) in [
        (
            "received_datagrams",
            "Datagrams of peers that came by a TURN server",
            totals.received_datagrams,
        ),
        (
            "sent_datagrams",
            "Datagrams for peers that left by a TURN server",
            totals.sent_datagrams,
        ),
        (
            "dropped",
            "Datagrams left out because the TURN server refuses the peer, has no allocation or does not take them",
            totals.dropped_datagrams,
        ),
        (
            "refused",
            "Datagrams of a TURN server that were not understood",
            totals.refused_datagrams,
        ),
    ] {
        let name = format!("media_relayed_{name}_total");
        page.counter(&name, help, value);
    }
}

fn tcp(page: &mut MetricsPage, totals: &TcpTotals) {
    let help = "TCP connections of peers that are open (ICE-TCP)";
    page.gauge("media_tcp_connections", help, totals.connections);
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
        page.counter(&format!("{name}_total"), help, value);
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
        let name = format!("media_tcp_{name}_total");
        page.labelled(MetricKind::Counter, &name, help, "kind", by_kind);
    }
}

fn workers(page: &mut MetricsPage, workers: &[WorkerStats]) {
    let seconds = |time: Duration| time.as_secs_f64();
    type Read<'a> = &'a dyn Fn(&WorkerStats) -> f64;
    let all: [(&str, &str, Read<'_>); 4] = [
        (
            "media_worker_lag_seconds",
            "By how much the latest turn of a media worker in the last seconds was late",
            &|it| seconds(it.lag_max),
        ),
        (
            "media_worker_silent_seconds",
            "How long ago the last turn of a media worker ended; much more than a second: it is stuck",
            &|it| seconds(it.silent),
        ),
        (
            "media_worker_core_ratio",
            "The share of a core that a media worker used in the last second",
            &|it| it.core_share,
        ),
        ("media_worker_peers", "Peers of a media worker", &|it| {
            it.peers as f64
        }),
    ];
    for (name, help, read) in all {
        let values = workers.iter().map(|it| (it.index, read(it)));
        page.labelled(MetricKind::Gauge, name, help, "worker", values);
    }
}
