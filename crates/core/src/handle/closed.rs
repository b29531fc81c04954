//! A PeerConnection that was closed, and what is left to be told of it.

use std::pin::Pin;
use std::time::Duration;

use portunus_media::{IceCause, PeerId, PeerStats};
use tokio::time::timeout;

use super::Handle;
use crate::context::Context;
use crate::events::EventKind;

/// How long its last figures are waited for. A worker gives them with its next turn.
const PATIENCE: Duration = Duration::from_millis(250);

/// A PeerConnection that was closed.
pub(super) struct Closed {
    /// Its last figures, if somebody wants them.
    last: Option<LastStats>,
}

type LastStats = Pin<Box<dyn Future<Output = Option<PeerStats>> + Send>>;

impl Closed {
    /// Asks for the last figures of `peer`, if media flowed and somebody wants them. It has to be there still.
    pub(super) fn new(context: &Context, peer: PeerId, up: bool) -> Self {
        let facts = &context.facts;
        let wanted =
            up && facts.statistics.stats_period > 0 && facts.events.wants(EventKind::Media);
        let last = wanted.then(|| Box::pin(context.media.stats(peer)) as LastStats);
        Closed { last }
    }

    /// Tells whoever watches. If it was the media plane that told of the end, `cause` says why ICE failed, if it did, and `last` has
    /// the last figures.
    pub(super) async fn tell(
        self,
        handle: &Handle,
        reason: &str,
        (cause, last): (Option<&IceCause>, Option<Box<PeerStats>>),
    ) {
        if let Some(asked) = self.last {
            let last = match last {
                Some(last) => Some(*last),
                None => timeout(PATIENCE, asked).await.ok().flatten(),
            };
            if let Some(last) = last {
                handle.tell_statistics(&last.media, last.remb);
            }
        }
        handle.tell_hangup(reason, cause);
    }

    /// Whether its last figures are still to come.
    pub(super) fn has_to_wait(&self) -> bool {
        self.last.is_some()
    }
}

/// A PeerConnection that was closed by one who could not wait for its last figures. The handle's task tells of it.
pub(super) struct Untold {
    pub(super) closed: Closed,
    pub(super) reason: &'static str,
}
