//! The server as a node of a cluster.

mod audio_rooms;
mod command;
mod mountpoint_data;
mod mountpoints;
mod recordings;
mod table;
mod text_rooms;
mod video_calls;
mod view;

use std::sync::Arc;
use std::time::Duration;

use portunus_audiobridge::ClusterRooms;
use portunus_cluster::{Cluster, ClusterConfig, Demand, Event, Facts, Load, MAX_WORKERS};
use portunus_core::{ClusterView, Gateway};
use portunus_media::{MediaError, MediaPlane};
use portunus_metrics::MetricsSource;
use portunus_recordplay::Recordings;
use portunus_room::Rooms;
use portunus_span::rooms::RoomPorts;
use portunus_span::{Span, SpanOptions, rooms};
use portunus_streaming::Mountpoints;
use portunus_textroom::TextRooms;
use portunus_videocall::VideoCalls;
use tokio::sync::mpsc;
use tokio::time::interval;

pub(crate) use command::Command;
use view::View;

/// How often the load and the drain of the server are looked at.
const LOOK: Duration = Duration::from_secs(1);

/// The node of this server.
#[derive(Debug)]
pub(crate) struct ClusterNode {
    cluster: Cluster,
    events: mpsc::Receiver<Event>,
    span: Span,
    /// The address of its HTTP server for clients.
    url: Option<String>,
}

/// The node cannot start.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClusterError {
    #[error(transparent)]
    Start(#[from] portunus_cluster::StartError),
    #[error("cluster.media_port: {0}")]
    Media(#[from] MediaError),
    #[error(
        "media.workers: a node of a cluster has {MAX_WORKERS} at most, and here are {0}; set \
         media.workers = {MAX_WORKERS}"
    )]
    Workers(usize),
}

/// What the node looks at.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) gateway: Gateway,
    pub(crate) media: MediaPlane,
    pub(crate) rooms: Rooms,
    pub(crate) mountpoints: Mountpoints,
    pub(crate) audio_rooms: ClusterRooms,
    pub(crate) text_rooms: TextRooms,
    pub(crate) video_calls: VideoCalls,
    pub(crate) recordings: Recordings,
}

impl ClusterNode {
    /// Starts the node, if the server is one.
    pub(crate) async fn start(
        config: &ClusterConfig,
        media: &MediaPlane,
    ) -> Result<Option<Self>, ClusterError> {
        if !config.is_on() {
            return Ok(None);
        }
        let bound = media.open_node_links(config.media_address(), config.node.media_port)?;
        if bound.len() > MAX_WORKERS {
            return Err(ClusterError::Workers(bound.len()));
        }
        let addresses = config.announced_media(&bound);
        let facts = Facts {
            relay: addresses.clone(),
            ..Facts::default()
        };
        let (cluster, events) = Cluster::start(config, facts).await?;
        let url = config.node.url.as_ref();
        let url = url.map(|url| url.replace("{name}", cluster.id().as_str()));
        tracing::info!(node = %cluster.id(), port = cluster.local().port(), "cluster: this node is started");
        let options = SpanOptions {
            addresses,
            max_bps: config.max_bps(),
            region: config.node.region.clone(),
            fan_out: config.node.fan_out,
        };
        let span = Span::new(cluster.clone(), media.clone(), options);
        Ok(Some(ClusterNode {
            cluster,
            events,
            span,
            url,
        }))
    }

    /// Returns the node for the core.
    pub(crate) fn view(&self) -> Arc<dyn ClusterView> {
        Arc::new(View::new(self.cluster.clone(), self.span.clone()))
    }

    pub(crate) fn metrics(&self) -> [Arc<dyn MetricsSource>; 2] {
        [Arc::new(self.cluster.clone()), Arc::new(self.span.clone())]
    }

    /// Lets the node know what the server does.
    pub(crate) fn serve(self, server: Server) -> Cluster {
        let ClusterNode {
            cluster,
            events,
            span,
            url,
        } = self;
        let ports = RoomPorts {
            rooms: span.port(rooms::KIND),
            directory: span.port(rooms::DIRECTORY),
        };
        let (rooms, media) = (server.rooms.clone(), server.media.clone());
        tokio::spawn(rooms::run(ports, rooms, media));
        let (port, port_events) = span.port(mountpoints::KIND);
        let all = (server.mountpoints.clone(), server.media.clone());
        tokio::spawn(mountpoints::run(port, port_events, all));
        let (port, port_events) = span.port(audio_rooms::KIND);
        let all = server.audio_rooms.clone();
        tokio::spawn(audio_rooms::run(port, port_events, all));
        let (port, port_events) = span.port(text_rooms::KIND);
        let all = server.text_rooms.clone();
        tokio::spawn(text_rooms::run(port, port_events, all));
        let (port, port_events) = span.port(video_calls::KIND);
        let all = server.video_calls.clone();
        tokio::spawn(video_calls::run(port, port_events, all));
        let (port, port_events) = span.port(recordings::KIND);
        let all = server.recordings.clone();
        tokio::spawn(recordings::run(port, port_events, all, url));
        tokio::spawn(follow(cluster.clone(), span.clone(), server));
        tokio::spawn(span.run(events));
        cluster
    }
}

/// Tells the node of load and drains, for as long as it runs.
async fn follow(cluster: Cluster, span: Span, server: Server) {
    let mut ticks = interval(LOOK);
    let mut is_draining = false;
    loop {
        ticks.tick().await;
        let drains = server.gateway.draining().is_some();
        if std::mem::replace(&mut is_draining, drains) != drains {
            span.set_draining(drains);
            cluster.demand(Demand::Drain(drains)).await;
        }
        cluster.demand(Demand::Load(load(&server.media))).await;
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
