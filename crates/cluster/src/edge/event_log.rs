//! The events of a node in the log.

use crate::event::Event;
use crate::wire::VersionRange;

/// Logs an event of a node if people have to know of it. `ours` are the versions of this node.
pub(super) fn write(event: &Event, ours: VersionRange) {
    match event {
        Event::Heard {
            node,
            through: None,
        } => tracing::info!(%node, "cluster: a link to a node is up"),
        Event::Heard {
            node,
            through: Some(through),
        } => tracing::warn!(
            %node,
            %through,
            "cluster: a node cannot be connected directly, so the link to it leads through another one"
        ),
        Event::NodeLost { node } => tracing::warn!(%node, "cluster: a node is lost"),
        Event::NameTaken => tracing::error!(
            "cluster: another process has this node's name (cluster.name): this one leaves the cluster"
        ),
        Event::VersionRefused { node, theirs } => tracing::error!(
            %node,
            %theirs,
            %ours,
            "cluster: a node speaks no version in common with this one"
        ),
        Event::Confirmed(true) => tracing::info!("cluster: the bus has this node"),
        Event::Confirmed(false) => {
            tracing::warn!("cluster: the bus has not confirmed this node for 10 s");
        }
        _ => {}
    }
}
