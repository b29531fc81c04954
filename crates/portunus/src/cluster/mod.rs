//! The server as a node of a cluster.

mod command;
mod rooms;
mod table;
mod view;

use std::sync::Arc;
use std::time::Duration;

use portunus_cluster::{Cluster, ClusterConfig, Demand, Event, Facts, Load, StartError};
use portunus_core::{ClusterView, Gateway};
use portunus_media::MediaPlane;
use portunus_metrics::MetricsSource;
use portunus_room::Rooms;
use tokio::sync::mpsc;
use tokio::time::interval;

pub(crate) use command::Command;
use rooms::OpenRooms;
use view::View;

/// How often the rooms, the load and the drain of the server are looked at.
const LOOK: Duration = Duration::from_secs(1);

/// The node of this server.
#[derive(Debug)]
pub(crate) struct ClusterNode {
    cluster: Cluster,
    events: mpsc::Receiver<Event>,
}

/// What the node looks at.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) gateway: Gateway,
    pub(crate) media: MediaPlane,
    pub(crate) rooms: Rooms,
}

impl ClusterNode {
    /// Starts the node, if the server is one.
    pub(crate) async fn start(config: &ClusterConfig) -> Result<Option<Self>, StartError> {
        if !config.is_on() {
            return Ok(None);
        }
        let (cluster, events) = Cluster::start(config, Facts::default()).await?;
        tracing::info!(node = %cluster.id(), port = cluster.local().port(), "cluster: this node is started");
        Ok(Some(ClusterNode { cluster, events }))
    }

    /// Returns the node for the core.
    pub(crate) fn view(&self) -> Arc<dyn ClusterView> {
        Arc::new(View::new(self.cluster.clone()))
    }

    pub(crate) fn metrics(&self) -> Arc<dyn MetricsSource> {
        Arc::new(self.cluster.clone())
    }

    /// Lets the node know what the server does.
    pub(crate) fn serve(self, server: Server) -> Cluster {
        let ClusterNode { cluster, events } = self;
        tokio::spawn(follow(cluster.clone(), events, server));
        cluster
    }
}

/// Tells the node of rooms, load and drains, for as long as it runs.
async fn follow(cluster: Cluster, mut events: mpsc::Receiver<Event>, server: Server) {
    let mut ticks = interval(LOOK);
    let mut open = OpenRooms::default();
    let mut is_draining = false;
    loop {
        tokio::select! {
            event = events.recv() => match event {
                Some(event) => note(&event),
                None => return,
            },
            _ = ticks.tick() => {
                let drains = server.gateway.draining().is_some();
                if std::mem::replace(&mut is_draining, drains) != drains {
                    cluster.demand(Demand::Drain(drains)).await;
                }
                cluster.demand(Demand::Load(load(&server.media))).await;
                for demand in open.look(&server.rooms) {
                    cluster.demand(demand).await;
                }
            }
        }
    }
}

fn note(event: &Event) {
    if let Event::Home { key, place } = event {
        tracing::debug!(%key, ?place, "cluster: a room has a home");
    }
}

fn load(media: &MediaPlane) -> Load {
    let mut load = Load::default();
    for worker in media.worker_stats() {
        load.worker = load.worker.max(worker.core_share as f32);
        load.mbps_out += worker.sent_bits as f32 / 1e6;
        load.lateness_ms = load.lateness_ms.max(worker.lag_max.as_secs_f32() * 1e3);
    }
    load
}
