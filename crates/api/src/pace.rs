//! Keeps clients from sending requests faster than they read the replies. Slow requests do not
//! delay further ones.

use std::future::Future;
use std::pin::pin;

use futures_util::StreamExt;
use futures_util::future::{BoxFuture, Either};
use futures_util::stream::FuturesUnordered;
use portunus_admin::Administration;
use portunus_core::{Budget, Client, Gateway, PendingReply};
use tokio::sync::Semaphore;

/// The most requests whose replies wait to be written.
const AHEAD: usize = 16;

/// The number of requests that a client may still send before it reads.
#[derive(Debug)]
pub(crate) struct Pace {
    free: Semaphore,
    ahead: usize,
}

impl Pace {
    pub(crate) fn new() -> Self {
        Self::ahead(AHEAD)
    }

    /// For a connection that many clients share. Replies to this many requests may wait.
    pub(crate) fn ahead(ahead: usize) -> Self {
        Self {
            free: Semaphore::new(ahead),
            ahead,
        }
    }

    /// Waits until another request may be read.
    pub(crate) async fn ask(&self) {
        // The semaphore is never closed.
        if let Ok(permit) = self.free.acquire().await {
            permit.forget();
        }
    }

    /// Notes that a message was written. It may have been an event, so the number of free requests
    /// is limited.
    pub(crate) fn wrote(&self) {
        if self.free.available_permits() < self.ahead {
            self.free.add_permits(1);
        }
    }
}

/// The API of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Api {
    Janus,
    Admin,
}

impl Api {
    /// Returns the memory for its clients.
    pub(crate) fn memory(self, gateway: &Gateway) -> &Budget {
        match self {
            Api::Janus => gateway.memory(),
            Api::Admin => gateway.admin_memory(),
        }
    }
}

/// The requests of one client that are being processed.
#[derive(Debug)]
pub(crate) struct Requests<'c> {
    api: Api,
    administration: &'c Administration,
    client: &'c Client,
    pace: &'c Pace,
    /// Requests without a reply yet.
    pending: FuturesUnordered<Either<PendingReply, BoxFuture<'static, ()>>>,
}

impl<'c> Requests<'c> {
    pub(crate) fn new(
        api: Api,
        administration: &'c Administration,
        client: &'c Client,
        pace: &'c Pace,
    ) -> Self {
        Self {
            api,
            administration,
            client,
            pace,
            pending: FuturesUnordered::new(),
        }
    }

    /// Passes on a request once the client has read enough. Handles get their requests in order.
    /// Requests of the Admin API do not wait for each other.
    pub(crate) async fn take(&mut self, request: &[u8]) {
        self.take_from(self.client, request).await;
    }

    /// As [`Requests::take`], for a derived client, see [`Client::asking`].
    pub(crate) async fn take_from(&mut self, client: &Client, request: &[u8]) {
        let (administration, pace) = (self.administration, self.pace);
        let api = self.api;
        let handed = async {
            pace.ask().await;
            match api {
                Api::Janus => administration
                    .gateway()
                    .begin(client, request)
                    .await
                    .map(Either::Left),
                Api::Admin => {
                    let (administration, client) = (administration.clone(), client.clone());
                    let request = request.to_vec();
                    let answered = async move { administration.submit(&client, &request).await };
                    Some(Either::Right(Box::pin(answered) as BoxFuture<'static, ()>))
                }
            }
        };
        let pending = self.meanwhile(handed).await;
        self.pending.extend(pending);
    }

    /// Waits for `work`, and processes replies meanwhile.
    pub(crate) async fn meanwhile<T>(&mut self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        loop {
            tokio::select! {
                done = &mut work => return done,
                Some(()) = self.pending.next() => {}
            }
        }
    }
}
