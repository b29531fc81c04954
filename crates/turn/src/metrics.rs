//! The metrics of the TURN server.

use portunus_metrics::{MetricKind, MetricsPage, MetricsSource};

use crate::{Turn, TurnClosed, TurnRefused};

impl MetricsSource for Turn {
    fn write(&self, page: &mut MetricsPage) {
        let totals = self.totals();
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
            page.gauge(name, help, value);
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
            page.counter(&format!("turn_{name}_total"), help, value);
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
            let name = format!("turn_{name}_total");
            page.labelled(MetricKind::Counter, &name, help, "kind", by_kind);
        }
    }
}
