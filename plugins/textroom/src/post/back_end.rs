//! Back-ends, and the messages of a room for one.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use portunus_core::{LogGate, Networks};
use portunus_resources::Id;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::CONTENT_TYPE;
use reqwest::{Client, redirect};
use tokio::net::lookup_host;
use tokio::time::sleep;
use url::Url;

use super::failure::Failure;
use super::queue::Queue;
use super::{literal, tls};
use crate::refusal::Refusal;
use crate::tally::Tally;

/// The wait before the first retry. It doubles with each failure.
const FIRST_WAIT: Duration = Duration::from_millis(500);
/// The longest wait.
const MOST_WAIT: Duration = Duration::from_secs(30);
/// The limit of bytes read of an answer, so that its connection can be reused. A longer answer
/// closes the connection.
const MAX_ANSWER: usize = 64 << 10;

/// The permitted addresses of a back-end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reachable {
    /// All, for a back-end of the configuration.
    Anywhere,
    /// In the networks that requests may have the server connect to.
    Outgoing,
}

/// The timeout and the retries of posts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    /// For an answer.
    pub(crate) timeout: Duration,
    /// The number of retries of a message.
    pub(crate) retries: u32,
}

/// The HTTP clients for all back-ends. They are made for the first room that needs one.
#[derive(Debug)]
pub(crate) struct BackEnds {
    outgoing: Networks,
    patience: Patience,
    tally: Arc<Tally>,
    anywhere: OnceLock<Result<Client, String>>,
    within: OnceLock<Result<Client, String>>,
}

impl BackEnds {
    pub(crate) fn new(outgoing: Networks, patience: Patience, tally: Arc<Tally>) -> Self {
        BackEnds {
            outgoing,
            patience,
            tally,
            anywhere: OnceLock::new(),
            within: OnceLock::new(),
        }
    }

    /// Returns the queue from a room to the back-end `to`.
    pub(crate) fn open(&self, room: &Id, to: Url, reachable: Reachable) -> Result<Outlet, Refusal> {
        let client = match reachable {
            Reachable::Anywhere => self.anywhere.get_or_init(|| self.client(None)),
            Reachable::Outgoing => {
                if let Some(address) = literal(&to).filter(|it| !self.outgoing.allow(*it)) {
                    return Err(Refusal::Destination(address));
                }
                let guard = || Guard(self.outgoing.clone());
                self.within.get_or_init(|| self.client(Some(guard())))
            }
        };
        let client = client.clone().map_err(Refusal::NoPosts)?;
        Ok(Outlet(Arc::new(Delivery {
            room: room.clone(),
            to,
            client,
            retries: self.patience.retries,
            tally: self.tally.clone(),
            queue: Mutex::default(),
            is_closed: AtomicBool::new(false),
            log: LogGate::default(),
        })))
    }

    fn client(&self, guard: Option<Guard>) -> Result<Client, String> {
        let tls = tls::client().map_err(|error| error.to_string())?;
        let client = Client::builder()
            .tls_backend_preconfigured(tls)
            .redirect(redirect::Policy::none())
            .no_proxy()
            .http1_only()
            .pool_max_idle_per_host(4)
            .user_agent(concat!("Portunus/", env!("CARGO_PKG_VERSION")))
            .timeout(self.patience.timeout);
        let client = match guard {
            Some(guard) => client.dns_resolver(Arc::new(guard)),
            None => client,
        };
        client.build().map_err(|error| error.to_string())
    }
}

/// Resolves names, without the addresses to which posts are not permitted. So the check holds for
/// each connection, whatever a name meant before.
#[derive(Debug)]
struct Guard(Networks);

impl Resolve for Guard {
    fn resolve(&self, name: Name) -> Resolving {
        let networks = self.0.clone();
        Box::pin(async move {
            let found: Vec<SocketAddr> = lookup_host((name.as_str(), 0)).await?.collect();
            let is_known = !found.is_empty();
            let allowed = found.into_iter().filter(|it| networks.allow(it.ip()));
            let allowed: Vec<_> = allowed.collect();
            if is_known && allowed.is_empty() {
                let text = "nothing may be sent to its addresses, see server.outgoing_networks";
                return Err(io::Error::other(text).into());
            }
            let addresses: Addrs = Box::new(allowed.into_iter());
            Ok(addresses)
        })
    }
}

/// The way from a room to its back-end.
#[derive(Debug)]
pub(crate) struct Outlet(Arc<Delivery>);

#[derive(Debug)]
struct Delivery {
    room: Id,
    to: Url,
    client: Client,
    retries: u32,
    tally: Arc<Tally>,
    queue: Mutex<Queue>,
    /// The room has ended, or posts elsewhere: what waits is posted once.
    is_closed: AtomicBool,
    log: LogGate,
}

impl Outlet {
    /// Posts a message, after the earlier ones.
    pub(crate) fn push(&self, message: String) {
        let mut queue = self.0.queue();
        let lost = queue.push(message.into());
        self.0.tally.posts_lost.add_many(lost);
        if queue.begin() {
            tokio::spawn(self.0.clone().post_all());
        }
    }

    /// Ends the queue. Each message in it gets one more attempt.
    pub(crate) fn close(self) {
        self.0.is_closed.store(true, Ordering::Relaxed);
    }
}

impl Delivery {
    async fn post_all(self: Arc<Self>) {
        while let Some(message) = self.next() {
            self.post(message).await;
        }
    }

    /// Posts a message until it is accepted or dropped.
    async fn post(&self, message: Bytes) {
        let mut wait = FIRST_WAIT;
        let mut failures = 0;
        loop {
            let Err(failure) = self.attempt(message.clone()).await else {
                return self.tally.posted.add();
            };
            failures += 1;
            let is_closed = self.is_closed.load(Ordering::Relaxed);
            let is_lost = failure.is_final() || failures > self.retries || is_closed;
            self.failed(&failure, is_lost);
            if is_lost {
                return;
            }
            sleep(wait).await;
            wait = wait.saturating_mul(2).min(MOST_WAIT);
        }
    }

    async fn attempt(&self, message: Bytes) -> Result<(), Failure> {
        let request = self
            .client
            .post(self.to.clone())
            .header(CONTENT_TYPE, "application/json")
            .body(message);
        let answer = request.send().await;
        let mut answer = answer.map_err(|error| Failure::of_error(&error))?;
        if let Some(failure) = Failure::of_status(answer.status()) {
            return Err(failure);
        }
        let mut length: usize = 0;
        // The message was taken, however the rest of the answer ends.
        while let (true, Ok(Some(chunk))) = (length <= MAX_ANSWER, answer.chunk().await) {
            length = length.saturating_add(chunk.len());
        }
        Ok(())
    }

    /// Counts a failure. Logs it at most once a second, with the host alone, because the rest of
    /// the address can be secret.
    fn failed(&self, failure: &Failure, is_lost: bool) {
        self.tally.posts_failed.add();
        self.tally.posts_lost.add_many(is_lost.into());
        if let Some(suppressed) = self.log.open() {
            let host = self.to.host_str().unwrap_or_default();
            let lost = self.tally.posts_lost.value();
            tracing::warn!(
                room = %self.room, host, suppressed, lost,
                "a message of a text room was not posted: {failure}"
            );
        }
    }

    fn next(&self) -> Option<Bytes> {
        self.queue().next()
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
