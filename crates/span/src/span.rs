//! The handle of all that spans nodes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use portunus_cluster::{Cluster, Event};
use portunus_media::MediaPlane;
use portunus_metrics::{MetricKind, MetricsPage, MetricsSource};
use portunus_relay::{Relays, TreeOptions};
use tokio::sync::mpsc;

use crate::driver::Driver;
use crate::figures::LinkFigures;
use crate::options::SpanOptions;
use crate::port::{Port, PortEvent};
use crate::sources::{Crossings, Kind, place};

/// The events that wait for a kind. While there are more, links wait.
const EVENTS: usize = 1_024;

/// All that spans the nodes of a cluster; cheap to clone.
#[derive(Debug, Clone)]
pub struct Span {
    cluster: Cluster,
    crossings: Arc<Crossings>,
    kinds: Arc<Mutex<Kinds>>,
    options: SpanOptions,
}

type Kinds = HashMap<Kind, mpsc::Sender<PortEvent>>;

impl Span {
    /// Returns the span of a node whose media plane has open
    /// [sockets for links](MediaPlane::open_node_links). [`Span::run`] has to run.
    pub fn new(cluster: Cluster, media: MediaPlane, options: SpanOptions) -> Self {
        let tree = TreeOptions {
            place: place(cluster.id(), options.region.clone()),
            fan_out: options.fan_out,
        };
        Span {
            cluster,
            crossings: Arc::new(Crossings::new(Relays::with(media, tree))),
            kinds: Arc::default(),
            options,
        }
    }

    fn kinds(&self) -> MutexGuard<'_, Kinds> {
        self.kinds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a kind of thing, before the span runs. Its events have to be taken.
    pub fn port(&self, kind: &'static str) -> (Port, mpsc::Receiver<PortEvent>) {
        let (events, taken) = mpsc::channel(EVENTS);
        self.kinds().insert(kind, events);
        let port = Port::new(kind, self.cluster.clone(), self.crossings.clone());
        (port, taken)
    }

    /// Takes the events of the cluster, until it ends.
    pub async fn run(self, events: mpsc::Receiver<Event>) {
        let kinds = self.kinds().clone();
        let relays = self.crossings.relays.clone();
        let running = tokio::spawn(async move { relays.run().await });
        let driver = Driver::new(self.cluster, self.crossings, kinds, self.options);
        driver.run(events).await;
        running.abort();
    }

    /// Sets whether this node carries no more sources for others, because it drains.
    pub fn set_draining(&self, is_draining: bool) {
        self.crossings.relays.set_draining(is_draining);
    }

    /// Returns what the media links carry.
    pub fn links(&self) -> Vec<LinkFigures> {
        self.crossings.figures()
    }
}

impl MetricsSource for Span {
    fn write(&self, page: &mut MetricsPage) {
        let links = self.links();
        let sum = |of: fn(&LinkFigures) -> u64| links.iter().map(of).sum::<u64>();
        page.gauge(
            "cluster_media_links",
            "Media links with other nodes",
            links.len(),
        );
        page.gauge(
            "cluster_media_broken_links",
            "Media links with other nodes that carry nothing",
            links.iter().filter(|it| !it.works).count(),
        );
        page.gauge(
            "cluster_media_carried_streams",
            "Streams of other nodes that this one passes on to third nodes",
            sum(|it| it.carried_streams),
        );
        page.gauge(
            "cluster_media_sources_through_others",
            "Sources of other nodes that come through third nodes",
            sum(|it| it.through.values().sum()),
        );
        page.labelled(
            MetricKind::Gauge,
            "cluster_media_streams",
            "Streams on the media links with other nodes",
            "direction",
            [
                ("out", sum(|it| it.streams_out)),
                ("in", sum(|it| it.streams_in)),
            ],
        );
        page.labelled(
            MetricKind::Gauge,
            "cluster_media_bytes",
            "Bytes on the media links that there are now, since each was added",
            "direction",
            [("out", sum(|it| it.bytes.0)), ("in", sum(|it| it.bytes.1))],
        );
        page.gauge(
            "cluster_media_lost_packets",
            "Packets of other nodes that did not come, on the media links that there are now",
            sum(|it| it.lost_packets),
        );
    }
}
