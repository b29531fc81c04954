//! The end of an ingest.

use tokio::sync::oneshot;

/// The end of an ingest, of which its worker was told. The ingest ends even if nobody waits for it.
#[derive(Debug)]
pub struct IngestEnd(oneshot::Receiver<()>);

impl IngestEnd {
    pub(crate) fn new(done: oneshot::Receiver<()>) -> Self {
        Self(done)
    }

    /// Waits until the ingest's sockets are closed, or its worker is gone.
    pub async fn closed(self) {
        // Nothing is ever sent: the other side is dropped.
        let _ = self.0.await;
    }
}
