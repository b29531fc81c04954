//! What the core sees of the cluster.

use std::sync::atomic::{AtomicUsize, Ordering};

use portunus_cluster::Cluster;
use portunus_core::{ClusterStatus, ClusterView, OtherNode};
use portunus_span::{LinkFigures, Span};
use serde_json::Value;

/// Two nodes with no more difference in load than this take clients in turn.
const ABOUT: f32 = 0.1;

/// The node as the core sees it.
#[derive(Debug)]
pub(super) struct View {
    cluster: Cluster,
    span: Span,
    /// Counts the looks at other nodes.
    turn: AtomicUsize,
}

impl View {
    pub(super) fn new(cluster: Cluster, span: Span) -> Self {
        View {
            cluster,
            span,
            turn: AtomicUsize::new(0),
        }
    }
}

impl ClusterView for View {
    fn degraded(&self) -> Option<String> {
        self.cluster.degraded()
    }

    fn least_loaded(&self) -> Option<String> {
        self.cluster.least_loaded()
    }

    fn others(&self) -> Vec<OtherNode> {
        let others = self.cluster.others();
        let least = others.first().map_or(0.0, |node| node.load);
        let equal = others.partition_point(|node| node.load <= least + ABOUT);
        let mut nodes: Vec<OtherNode> = others.iter().map(other_node).collect();
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        if let Some(first) = nodes.get_mut(..equal).filter(|first| !first.is_empty()) {
            first.rotate_left(turn.checked_rem(equal).unwrap_or(0));
        }
        nodes
    }

    fn relief(&self) -> Option<OtherNode> {
        self.cluster.relief().as_ref().map(other_node)
    }

    fn status(&self) -> ClusterStatus<'_> {
        Box::pin(async {
            let status = self.cluster.status().await?;
            let mut status = serde_json::to_value(status).ok()?;
            add_media(&mut status, &self.span.links());
            Some(status)
        })
    }
}

fn other_node(node: &portunus_cluster::OtherNode) -> OtherNode {
    OtherNode {
        name: node.node.as_str().to_owned(),
        region: node.region.clone(),
        url: node.urls.http.clone(),
        websocket_url: node.urls.websocket.clone(),
        livekit_url: node.urls.livekit.clone(),
    }
}

/// Adds what the media links carry to the links of a status.
fn add_media(status: &mut Value, media: &[LinkFigures]) {
    let links = status.get_mut("links").and_then(Value::as_array_mut);
    for link in links.into_iter().flatten() {
        let node = link.get("node").and_then(Value::as_str);
        let figures = media.iter().find(|it| node == Some(it.node.as_str()));
        let figures = figures.and_then(|it| serde_json::to_value(it).ok());
        if let (Some(figures), Some(link)) = (figures, link.as_object_mut()) {
            link.insert("media".to_owned(), figures);
        }
    }
}
