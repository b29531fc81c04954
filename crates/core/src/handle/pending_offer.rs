//! An offer of a client that waits for its answer.

use std::fmt;
use std::sync::Arc;

use super::Handle;

/// A client's offer as long as somebody may answer it. When the last clone is dropped, an offer without an answer is discarded: the
/// PeerConnection stays as it was before, the client can offer again, and is told nothing.
///
/// A plugin that answers an offer after its request has ended, as for a call that somebody has to accept, keeps it until then.
#[derive(Clone)]
pub struct PendingOffer(Arc<Inner>);

struct Inner {
    handle: Handle,
    /// Which of the handle's offers it is.
    number: u64,
}

impl PendingOffer {
    pub(super) fn new(handle: Handle, number: u64) -> Self {
        PendingOffer(Arc::new(Inner { handle, number }))
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.handle.connections().discard_offer(self.number);
    }
}

impl PartialEq for PendingOffer {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl fmt::Debug for PendingOffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PendingOffer({} of {:?})", self.0.number, self.0.handle)
    }
}
