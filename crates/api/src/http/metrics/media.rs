//! Of the media plane.

use portunus_core::media::{MediaTotals, RelayedTotals, TcpTotals};

use super::{line, metric};

pub(super) fn write(out: &mut String, totals: &MediaTotals) {
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
    relayed(out, &totals.relayed);
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

/// What passes by TURN servers of others, at which the server has an address.
fn relayed(out: &mut String, totals: &RelayedTotals) {
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
        metric(out, &format!("media_relayed_{name}"), help, "gauge", value);
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
        metric(out, &name, help, "counter", value);
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
