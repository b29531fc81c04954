//! The metrics of a node.

use portunus_metrics::{MetricKind, MetricsPage, MetricsSource};

use super::driver::Cluster;

impl MetricsSource for Cluster {
    fn write(&self, page: &mut MetricsPage) {
        let facts = self.snapshot();
        let (sizes, counters) = (facts.sizes, facts.counters);
        page.gauge(
            "cluster_confirmed",
            "1 if the cluster's bus has confirmed this node within 10 s",
            u8::from(facts.is_confirmed),
        );
        page.gauge(
            "cluster_certificate_expiry_timestamp_seconds",
            "When this node's certificate for other nodes expires, in seconds since 1970",
            facts.expires,
        );
        for (name, help, value) in [
            (
                "cluster_nodes",
                "Nodes on the bus, this one among them",
                sizes.nodes,
            ),
            (
                "cluster_links",
                "Links to other nodes that are up",
                sizes.links,
            ),
            (
                "cluster_links_through",
                "Links that lead through a third node, since there is no direct connection",
                sizes.detours,
            ),
            (
                "cluster_homes",
                "Rooms whose home is this node",
                sizes.homes,
            ),
            (
                "cluster_open",
                "Rooms that are open on this node, wherever their home is",
                sizes.open,
            ),
        ] {
            page.gauge(name, help, value);
        }
        page.labelled(
            MetricKind::Counter,
            "cluster_bus_writes_total",
            "Writes to the bus, by what came of them",
            "outcome",
            [
                ("sent", counters.bus_writes),
                ("conflict", counters.bus_conflicts),
                ("unknown", counters.bus_unknown),
            ],
        );
        page.labelled(
            MetricKind::Counter,
            "cluster_home_changes_total",
            "Homes that this node has made, taken from a lost node, handed over, or yielded to a later revision",
            "change",
            [
                ("claim", counters.claims),
                ("takeover", counters.takeovers),
                ("handover", counters.handovers),
                ("yield", counters.yields),
            ],
        );
        page.labelled(
            MetricKind::Counter,
            "cluster_refused_total",
            "What came from other nodes or the bus and was refused",
            "what",
            [
                ("registration", counters.refused_registrations),
                ("revision", counters.fenced_messages),
                ("frame", counters.bad_frames),
                ("entry", counters.bad_entries),
                ("flood", counters.floods),
                ("item", counters.dropped_items),
                ("carried", counters.refused_carried),
                ("version", counters.version_refusals),
                ("certificate", facts.refused_certificates),
                ("revoked", facts.refused_revoked),
            ],
        );
        for (name, help, value) in [
            (
                "cluster_lost_nodes_total",
                "Nodes of which neither this node nor another one has heard for 2 s",
                counters.lost_nodes,
            ),
            (
                "cluster_link_overflows_total",
                "Links that were reset because 1,000 messages waited",
                counters.overflows,
            ),
            (
                "cluster_carried_frames_total",
                "Frames between two other nodes that this one has carried",
                counters.carried_frames,
            ),
            (
                "cluster_uncarried_frames_total",
                "Frames between two other nodes that this one could not carry",
                counters.uncarried_frames,
            ),
            (
                "cluster_lost_events_total",
                "Events of the cluster that the server did not take in time",
                facts.lost_events,
            ),
        ] {
            page.counter(name, help, value);
        }
    }
}
