//! The handle of all that spans nodes.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use portunus_cluster::{Cluster, Event, NodeId};
use portunus_media::{MediaPlane, NodeLinkStats};
use portunus_relay::Relays;
use tokio::sync::mpsc;

use crate::driver::Driver;
use crate::port::{Port, PortEvent};
use crate::sources::{Crossings, Kind};

/// The events that wait for a kind. While there are more, links wait.
const EVENTS: usize = 1_024;

/// The settings of a span.
#[derive(Debug, Clone)]
pub struct SpanOptions {
    /// The addresses of this node's workers for media of others, by their index, as the others
    /// reach them.
    pub addresses: Vec<SocketAddr>,
    /// The limit of what is sent to another node, in bit/s. `None` means no limit.
    pub max_bps: Option<u64>,
}

/// All that spans the nodes of a cluster; cheap to clone.
#[derive(Debug, Clone)]
pub struct Span {
    cluster: Cluster,
    crossings: Arc<Crossings>,
    kinds: Arc<Mutex<Kinds>>,
    options: SpanOptions,
}

type Kinds = HashMap<Kind, mpsc::Sender<PortEvent>>;

/// The media link with another node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkFigures {
    /// The other node.
    pub node: NodeId,
    /// What the link has carried since it was added.
    pub stats: NodeLinkStats,
}

impl Span {
    /// Returns the span of a node whose media plane has open
    /// [sockets for links](MediaPlane::open_node_links). [`Span::run`] has to run.
    pub fn new(cluster: Cluster, media: MediaPlane, options: SpanOptions) -> Self {
        Span {
            cluster,
            crossings: Arc::new(Crossings::new(Relays::new(media))),
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

    /// Returns what the media links carry.
    pub fn links(&self) -> Vec<LinkFigures> {
        let nodes = self.crossings.nodes().into_iter();
        let figures = nodes.filter_map(|(node, id)| {
            let stats = self.crossings.relays.stats(id)?;
            Some(LinkFigures { node, stats })
        });
        figures.collect()
    }
}
