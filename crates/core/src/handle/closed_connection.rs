//! A closed PeerConnection, and the events of its end.

use std::pin::Pin;
use std::time::Duration;

use portunus_media::{IceCause, PeerId, PeerStats};
use tokio::time::timeout;

use super::Handle;
use crate::context::Context;
use crate::events::EventKind;

/// How long the last statistics are waited for. A worker sends them in its next turn.
const PATIENCE: Duration = Duration::from_millis(250);

/// A closed PeerConnection.
pub(super) struct Closed {
    /// The last statistics, if anyone subscribed to them.
    last: Option<LastStats>,
}

type LastStats = Pin<Box<dyn Future<Output = Option<PeerStats>> + Send>>;

impl Closed {
    /// Requests the last statistics of `peer`, if media flowed and anyone subscribed to them. Must
    /// run before the peer is removed.
    pub(super) fn new(context: &Context, peer: PeerId, up: bool) -> Self {
        let facts = &context.facts;
        let wanted =
            up && facts.statistics.stats_period > 0 && facts.events.wants(EventKind::Media);
        let last = wanted.then(|| Box::pin(context.media.stats(peer)) as LastStats);
        Closed { last }
    }

    /// Publishes the end. If the media plane reported it, `cause` is the reason of a failure of
    /// ICE, and `last` are the last statistics.
    pub(super) async fn publish(
        self,
        handle: &Handle,
        reason: &str,
        cause: Option<&IceCause>,
        last: Option<Box<PeerStats>>,
    ) {
        if let Some(asked) = self.last {
            let last = match last {
                Some(last) => Some(*last),
                None => timeout(PATIENCE, asked).await.ok().flatten(),
            };
            if let Some(last) = last {
                handle.publish_statistics(&last.media, last.remb);
            }
        }
        handle.publish_hangup(reason, cause);
    }

    /// Whether the last statistics are still to come.
    pub(super) fn has_to_wait(&self) -> bool {
        self.last.is_some()
    }
}

/// A PeerConnection whose closer could not wait for its last statistics. The handle's task
/// publishes its end.
pub(super) struct Untold {
    pub(super) closed: Closed,
    pub(super) reason: &'static str,
}
