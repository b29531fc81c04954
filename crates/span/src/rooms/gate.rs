//! Where clients wait until a room is known as the other nodes have it.

use std::time::Duration;

use portunus_room::{OtherNodes, Preparation};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

/// How long a client waits for what other nodes say of a room.
const PATIENCE: Duration = Duration::from_secs(1);

/// A client that wants to join a room.
#[derive(Debug)]
pub(crate) struct Visit {
    /// The name of the room.
    pub(crate) name: String,
    /// Closes or resolves when the room is ready.
    pub(crate) done: oneshot::Sender<()>,
}

/// The way of clients into rooms.
#[derive(Debug)]
pub(crate) struct Gate(pub(crate) mpsc::Sender<Visit>);

impl OtherNodes for Gate {
    fn prepare(&self, name: &str) -> Preparation {
        let (done, ready) = oneshot::channel();
        let visit = Visit {
            name: name.to_owned(),
            done,
        };
        let visits = self.0.clone();
        Box::pin(async move {
            let waits = async {
                if visits.send(visit).await.is_ok() {
                    // Without a word there is nothing to wait for.
                    let _ = ready.await;
                }
            };
            // Then the room is as it is here.
            let _ = timeout(PATIENCE, waits).await;
        })
    }
}
