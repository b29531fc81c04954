//! A client's offer that waits for its answer.

use std::fmt;
use std::sync::Arc;

use super::Handle;

/// A client's offer. When the last clone is dropped, an offer without an answer is discarded: the
/// PeerConnection stays as it was, and the client can offer again. The client is not notified.
///
/// A plugin that answers an offer after its request has ended keeps this until then.
#[derive(Clone)]
pub struct PendingOffer(Arc<Inner>);

struct Inner {
    handle: Handle,
    /// The number of the offer among those of the handle.
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
