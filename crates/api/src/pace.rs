//! Keeps a client from asking faster than it reads the replies: what waits for it is bounded in bytes, not only in
//! messages.

use tokio::sync::Semaphore;

/// Requests whose replies may wait to be written.
const AHEAD: usize = 16;

/// How far a client is ahead of what it has read.
#[derive(Debug)]
pub(crate) struct Pace(Semaphore);

impl Pace {
    pub(crate) fn new() -> Self {
        Self(Semaphore::new(AHEAD))
    }

    /// Waits until another request may be read.
    pub(crate) async fn ask(&self) {
        // It is never closed.
        if let Ok(permit) = self.0.acquire().await {
            permit.forget();
        }
    }

    /// A message was written. It may have been an event, which nobody asked for: the client is never more than
    /// [`AHEAD`] requests ahead all the same.
    pub(crate) fn wrote(&self) {
        if self.0.available_permits() < AHEAD {
            self.0.add_permits(1);
        }
    }
}
