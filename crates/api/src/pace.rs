//! Keeps a client from asking faster than it reads the replies: what waits for it is bounded in bytes, not only in
//! messages. Requests that take long do not keep it from asking further.

use std::future::Future;
use std::pin::pin;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use portunus_core::{Begun, Client, Gateway};
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

/// The requests of one client, on their way to the gateway.
#[derive(Debug)]
pub(crate) struct Requests<'c> {
    gateway: &'c Gateway,
    client: &'c Client,
    pace: &'c Pace,
    /// Those whose replies are not there yet.
    begun: FuturesUnordered<Begun>,
}

impl<'c> Requests<'c> {
    pub(crate) fn new(gateway: &'c Gateway, client: &'c Client, pace: &'c Pace) -> Self {
        Self {
            gateway,
            client,
            pace,
            begun: FuturesUnordered::new(),
        }
    }

    /// Hands a request on once the client has read enough; handles get theirs in the order in which they came.
    pub(crate) async fn take(&mut self, request: &[u8]) {
        let (gateway, client, pace) = (self.gateway, self.client, self.pace);
        let handed = async {
            pace.ask().await;
            gateway.begin(client, request).await
        };
        let begun = self.meanwhile(handed).await;
        self.begun.extend(begun);
    }

    /// Waits for `work`, and sees to the replies that come meanwhile.
    pub(crate) async fn meanwhile<T>(&mut self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        loop {
            tokio::select! {
                done = &mut work => return done,
                Some(()) = self.begun.next() => {}
            }
        }
    }
}
