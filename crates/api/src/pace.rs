//! Keeps a client from asking faster than it reads the replies. Requests that take long do not keep
//! it from asking further.

use std::future::Future;
use std::pin::pin;

use futures_util::StreamExt;
use futures_util::future::{BoxFuture, Either};
use futures_util::stream::FuturesUnordered;
use portunus_core::{Begun, Budget, Client, Gateway};
use tokio::sync::Semaphore;

/// Requests whose replies may wait to be written.
const AHEAD: usize = 16;

/// How far a client is ahead of what it has read.
#[derive(Debug)]
pub(crate) struct Pace {
    free: Semaphore,
    ahead: usize,
}

impl Pace {
    pub(crate) fn new() -> Self {
        Self::ahead(AHEAD)
    }

    /// For a connection that is many clients: so many requests may have replies that wait.
    pub(crate) fn ahead(ahead: usize) -> Self {
        Self {
            free: Semaphore::new(ahead),
            ahead,
        }
    }

    /// Waits until another request may be read.
    pub(crate) async fn ask(&self) {
        // It is never closed.
        if let Ok(permit) = self.free.acquire().await {
            permit.forget();
        }
    }

    /// A message was written. It may have been an event, which nobody asked for: the client is never more than
    /// the agreed number of requests ahead all the same.
    pub(crate) fn wrote(&self) {
        if self.free.available_permits() < self.ahead {
            self.free.add_permits(1);
        }
    }
}

/// Which API a connection speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Api {
    Janus,
    Admin,
}

impl Api {
    /// The memory that its clients pay from.
    pub(crate) fn memory(self, gateway: &Gateway) -> &Budget {
        match self {
            Api::Janus => gateway.memory(),
            Api::Admin => gateway.admin_memory(),
        }
    }
}

/// The requests of one client, on their way to the gateway.
#[derive(Debug)]
pub(crate) struct Requests<'c> {
    api: Api,
    gateway: &'c Gateway,
    client: &'c Client,
    pace: &'c Pace,
    /// Those whose replies are not there yet.
    begun: FuturesUnordered<Either<Begun, BoxFuture<'static, ()>>>,
}

impl<'c> Requests<'c> {
    pub(crate) fn new(api: Api, gateway: &'c Gateway, client: &'c Client, pace: &'c Pace) -> Self {
        Self {
            api,
            gateway,
            client,
            pace,
            begun: FuturesUnordered::new(),
        }
    }

    /// Hands a request on once the client has read enough; handles get theirs in the order in which they came. Those of the Admin
    /// API do not wait for each other.
    pub(crate) async fn take(&mut self, request: &[u8]) {
        self.take_from(self.client, request).await;
    }

    /// The same from a form of the client, see [`Client::asking`].
    pub(crate) async fn take_from(&mut self, client: &Client, request: &[u8]) {
        let (gateway, pace) = (self.gateway, self.pace);
        let api = self.api;
        let handed = async {
            pace.ask().await;
            match api {
                Api::Janus => gateway.begin(client, request).await.map(Either::Left),
                Api::Admin => {
                    let (gateway, client) = (gateway.clone(), client.clone());
                    let request = request.to_vec();
                    let answered = async move { gateway.submit_admin(&client, &request).await };
                    Some(Either::Right(Box::pin(answered) as BoxFuture<'static, ()>))
                }
            }
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
