//! NATS JetStream as the bus: two key-value buckets, which are watched.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_nats::jetstream::kv::{CreateErrorKind, Operation, Store, UpdateErrorKind, Watch};
use async_nats::jetstream::stream::StorageType;
use async_nats::jetstream::{Context, kv};
use async_nats::{Client, ConnectOptions, Event, HeaderMap, ServerAddr};
use bytes::Bytes;
use futures_util::StreamExt as _;
use tokio::sync::{Semaphore, mpsc};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::bus::{Bucket, BusEvent, BusRequest, Entry, Outcome, Write};

/// The oldest server whose buckets can do what is needed.
const OLDEST: (u32, u32) = (2, 11);

/// How long a write may take.
const LIMIT: Duration = Duration::from_secs(5);

/// The most writes under way.
const WRITES: usize = 256;

/// How often the server is asked for a sign of life. Two without an answer mean that it is lost.
const PING: Duration = Duration::from_secs(2);

/// The waits before attempts to connect. They double, and stay short: all is normal within 5 s after
/// the bus is back, however long it was away.
const FIRST_WAIT: Duration = Duration::from_millis(250);
const LAST_WAIT: Duration = Duration::from_secs(1);

/// When an entry of a node expires.
const NODE_EXPIRY: Duration = Duration::from_secs(15);

/// How long the marks of deleted and expired entries stay.
const MARKS: Duration = Duration::from_secs(3_600);

/// Before a bucket that cannot be used is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// How long a watch may take to begin, and how often that is tried. One of several NATS servers is
/// chosen for it, which may have died a moment ago.
const BEGIN: Duration = Duration::from_millis(1_500);
const TRIES: usize = 4;

/// After this time without any entry a bucket is asked whether it is empty.
const EMPTY: Duration = Duration::from_secs(2);

/// What the bus needs.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) options: ConnectOptions,
    pub(super) servers: Vec<ServerAddr>,
    pub(super) prefix: String,
    pub(super) replicas: usize,
}

/// Why the bus cannot be used, for people. `None` while it can.
#[derive(Debug, Clone, Default)]
pub(super) struct Complaint(Arc<Mutex<Option<String>>>);

impl Complaint {
    pub(super) fn get(&self) -> Option<String> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Sets it. Returns whether it is another one than before.
    fn set(&self, text: Option<String>) -> bool {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = *known != text;
        *known = text;
        is_new
    }
}

/// Why a session with the bus has ended.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("the NATS server has version {0}, and 2.11 or newer is needed")]
    TooOld(String),
    #[error("JetStream cannot be used: {0}")]
    Bucket(String),
    #[error("the bucket {0} cannot be watched: {1}")]
    Watch(String, String),
}

/// Keeps the connection. Never returns, unless nobody takes events.
pub(super) async fn run(
    plan: Plan,
    mut requests: mpsc::Receiver<BusRequest>,
    events: mpsc::Sender<BusEvent>,
    complaint: Complaint,
) {
    let (told, mut states) = mpsc::unbounded_channel();
    let options = plan
        .options
        .ping_interval(PING)
        .reconnect_delay_callback(wait_after)
        .event_callback(move |event| {
            // The receiver is gone only at the end.
            let _ = told.send(event);
            std::future::ready(())
        });
    complaint.set(Some("the bus is not connected yet".to_owned()));
    let client = match options.connect(plan.servers).await {
        Ok(client) => client,
        Err(error) => {
            // With attempts in the background only a wrong configuration ends here.
            tracing::error!(%error, "cluster: the bus cannot be used");
            complaint.set(Some(error.to_string()));
            while let Some(request) = requests.recv().await {
                refuse(&request, &events).await;
            }
            return;
        }
    };
    let mut is_connected = false;
    loop {
        tokio::select! {
            state = states.recv() => match state {
                Some(Event::Connected) => is_connected = true,
                Some(Event::Disconnected | Event::Closed) => is_connected = false,
                Some(Event::ClientError(error)) => {
                    if complaint.set(Some(error.to_string())) {
                        tracing::warn!(%error, "cluster: the bus is not reached");
                    }
                }
                Some(Event::ServerError(error)) => {
                    if complaint.set(Some(error.to_string())) {
                        tracing::warn!(%error, "cluster: the bus refuses something");
                    }
                }
                Some(_) => {}
                None => return,
            },
            request = requests.recv() => match request {
                Some(request) => refuse(&request, &events).await,
                None => return,
            },
        }
        while is_connected {
            let session = Session {
                client: &client,
                prefix: &plan.prefix,
                replicas: plan.replicas,
                events: &events,
            };
            let ended = tokio::select! {
                ended = session.run(&mut requests, &complaint) => ended,
                () = until_lost(&mut states) => {
                    is_connected = false;
                    Ok(())
                }
            };
            if events.send(BusEvent::Lost).await.is_err() {
                return;
            }
            match ended {
                Ok(()) if is_connected => return,
                Ok(()) => {
                    complaint.set(Some("the connection to the bus is lost".to_owned()));
                    tracing::warn!("cluster: the bus is lost; rooms and media go on");
                }
                Err(failure) => {
                    if complaint.set(Some(failure.to_string())) {
                        tracing::error!(%failure, "cluster: the bus cannot be used");
                    }
                    sleep(RETRY).await;
                }
            }
        }
    }
}

async fn until_lost(states: &mut mpsc::UnboundedReceiver<Event>) {
    while let Some(state) = states.recv().await {
        if matches!(state, Event::Disconnected | Event::Closed) {
            return;
        }
    }
}

async fn refuse(request: &BusRequest, events: &mpsc::Sender<BusEvent>) {
    let event = BusEvent::Written {
        id: request.id,
        outcome: Outcome::Unknown,
    };
    let _ = events.send(event).await;
}

/// A connection to the bus while it lasts.
#[derive(Debug)]
struct Session<'a> {
    client: &'a Client,
    prefix: &'a str,
    replicas: usize,
    events: &'a mpsc::Sender<BusEvent>,
}

/// A bucket that is watched.
struct Watched {
    bucket: Bucket,
    store: Store,
    watch: Watch,
    is_current: bool,
    /// When an empty bucket is asked whether it is.
    ask: Instant,
}

impl Session<'_> {
    /// Watches both buckets, and makes writes. Returns `Ok` once nobody has requests.
    async fn run(
        &self,
        requests: &mut mpsc::Receiver<BusRequest>,
        complaint: &Complaint,
    ) -> Result<(), Failure> {
        let version = self.client.server_info().version;
        if !is_new_enough(&version) {
            return Err(Failure::TooOld(version));
        }
        let context = async_nats::jetstream::new(self.client.clone());
        let mut nodes = self.watch(&context, Bucket::Nodes).await?;
        let mut homes = self.watch(&context, Bucket::Homes).await?;
        self.tell(BusEvent::Connected).await;
        for (bucket, generation) in [
            (Bucket::Nodes, generation(&nodes.store)),
            (Bucket::Homes, generation(&homes.store)),
        ] {
            self.tell(BusEvent::Snapshot { bucket, generation }).await;
        }
        if complaint.set(None) {
            tracing::info!(version, "cluster: the bus is connected");
        }
        let writes = Arc::new(Semaphore::new(WRITES));
        loop {
            tokio::select! {
                entry = nodes.watch.next() => self.entry(&mut nodes, entry).await?,
                entry = homes.watch.next() => self.entry(&mut homes, entry).await?,
                () = sleep_until(nodes.ask), if !nodes.is_current => self.ask(&mut nodes).await?,
                () = sleep_until(homes.ask), if !homes.is_current => self.ask(&mut homes).await?,
                request = requests.recv() => {
                    let Some(request) = request else {
                        return Ok(());
                    };
                    let store = match request.bucket {
                        Bucket::Nodes => nodes.store.clone(),
                        Bucket::Homes => homes.store.clone(),
                    };
                    let Ok(permit) = writes.clone().try_acquire_owned() else {
                        refuse(&request, self.events).await;
                        continue;
                    };
                    let (context, events) = (context.clone(), self.events.clone());
                    tokio::spawn(async move {
                        let id = request.id;
                        let written = timeout(LIMIT, write(&context, &store, request)).await;
                        let outcome = written.unwrap_or(Outcome::Unknown);
                        let _ = events.send(BusEvent::Written { id, outcome }).await;
                        drop(permit);
                    });
                }
            }
        }
    }

    async fn tell(&self, event: BusEvent) {
        // Nobody takes it only at the end.
        let _ = self.events.send(event).await;
    }

    /// Opens a bucket, makes it if it is missing, and watches it from the beginning.
    async fn watch(&self, context: &Context, bucket: Bucket) -> Result<Watched, Failure> {
        let name = format!("{}_{}", self.prefix, suffix(bucket));
        let store = match context.get_key_value(&name).await {
            Ok(store) => store,
            Err(_) => {
                let made = self.make(context, bucket, &name).await;
                made.map_err(|error| Failure::Bucket(error.to_string()))?
            }
        };
        let mut reason = String::new();
        for _ in 0..TRIES {
            match timeout(BEGIN, store.watch_with_history(">")).await {
                Ok(Ok(watch)) => {
                    return Ok(Watched {
                        bucket,
                        store,
                        watch,
                        is_current: false,
                        ask: Instant::now(),
                    });
                }
                Ok(Err(error)) => {
                    reason = error.to_string();
                    sleep(FIRST_WAIT).await;
                }
                Err(_) => reason = format!("no answer within {BEGIN:?}"),
            }
        }
        Err(Failure::Watch(name, reason))
    }

    async fn make(
        &self,
        context: &Context,
        bucket: Bucket,
        name: &str,
    ) -> Result<Store, async_nats::jetstream::context::CreateKeyValueError> {
        let is_cluster = self.client.server_info().cluster.is_some();
        let replicas = match self.replicas {
            0 if is_cluster => 3,
            0 => 1,
            replicas => replicas,
        };
        let (storage, max_age, description) = match bucket {
            Bucket::Nodes => (StorageType::Memory, NODE_EXPIRY, "Portunus: nodes"),
            Bucket::Homes => (StorageType::File, Duration::ZERO, "Portunus: homes"),
        };
        let config = kv::Config {
            bucket: name.to_owned(),
            description: description.to_owned(),
            history: 1,
            max_value_size: 8_192,
            max_age,
            storage,
            num_replicas: replicas,
            limit_markers: Some(MARKS),
            ..kv::Config::default()
        };
        context.create_key_value(config).await
    }

    async fn entry(
        &self,
        watched: &mut Watched,
        entry: Option<Result<kv::Entry, kv::WatcherError>>,
    ) -> Result<(), Failure> {
        let failed = |reason: String| Failure::Watch(watched.store.name.clone(), reason);
        let entry = entry.ok_or_else(|| failed("the watch has ended".to_owned()))?;
        let entry = entry.map_err(|error| failed(error.to_string()))?;
        let value = (entry.operation == Operation::Put).then_some(entry.value);
        self.tell(BusEvent::Entry(Entry {
            bucket: watched.bucket,
            key: entry.key,
            sequence: entry.revision,
            value,
        }))
        .await;
        if entry.seen_current {
            self.is_current(watched).await;
        }
        Ok(())
    }

    async fn is_current(&self, watched: &mut Watched) {
        if !std::mem::replace(&mut watched.is_current, true) {
            self.tell(BusEvent::Current(watched.bucket)).await;
        }
    }

    /// Asks a bucket without an entry so far whether it is empty.
    async fn ask(&self, watched: &mut Watched) -> Result<(), Failure> {
        let info = watched.store.stream.get_info().await;
        let info = info.map_err(|error| Failure::Bucket(error.to_string()))?;
        match info.state.messages {
            0 => self.is_current(watched).await,
            _ => watched.ask = Instant::now() + EMPTY,
        }
        Ok(())
    }
}

/// Makes a write.
async fn write(context: &Context, store: &Store, request: BusRequest) -> Outcome {
    match request.write {
        Write::Create(value) => match store.create(&request.key, value).await {
            Ok(sequence) => Outcome::Done(sequence),
            Err(error) if error.kind() == CreateErrorKind::AlreadyExists => Outcome::Conflict,
            Err(error) => unknown(&error),
        },
        Write::Update(value, sequence) => match store.update(&request.key, value, sequence).await {
            Ok(sequence) => Outcome::Done(sequence),
            Err(error) if error.kind() == UpdateErrorKind::WrongLastRevision => Outcome::Conflict,
            Err(error) => unknown(&error),
        },
        Write::Delete(sequence) => delete(context, store, &request.key, sequence).await,
    }
}

/// Deletes an entry. The mark that stays in its place goes after a while. The library's own request
/// does not say at which sequence number the mark is.
async fn delete(context: &Context, store: &Store, key: &str, sequence: u64) -> Outcome {
    use async_nats::header::{NATS_EXPECTED_LAST_SUBJECT_SEQUENCE, NATS_MESSAGE_TTL, NATS_ROLLUP};
    use async_nats::jetstream::context::PublishErrorKind;

    let mut headers = HeaderMap::new();
    headers.insert("KV-Operation", "PURGE");
    headers.insert(NATS_ROLLUP, "sub");
    headers.insert(NATS_MESSAGE_TTL, MARKS.as_secs().to_string());
    headers.insert(NATS_EXPECTED_LAST_SUBJECT_SEQUENCE, sequence.to_string());
    let subject = format!("{}{key}", store.prefix);
    let published = context
        .publish_with_headers(subject, headers, Bytes::new())
        .await;
    let outcome = match published {
        Ok(confirmed) => confirmed.await,
        Err(error) => Err(error),
    };
    match outcome {
        Ok(confirmed) => Outcome::Done(confirmed.sequence),
        Err(error) if error.kind() == PublishErrorKind::WrongLastSequence => Outcome::Conflict,
        Err(error) => unknown(&error),
    }
}

fn unknown(error: &dyn std::fmt::Display) -> Outcome {
    tracing::debug!(%error, "cluster: a write is not confirmed");
    Outcome::Unknown
}

/// Returns when a bucket was made, in ms since 1970.
fn generation(store: &Store) -> u64 {
    let created = store.stream.cached_info().created.unix_timestamp_nanos();
    u64::try_from(created / 1_000_000).unwrap_or_default()
}

const fn suffix(bucket: Bucket) -> &'static str {
    match bucket {
        Bucket::Nodes => "nodes",
        Bucket::Homes => "homes",
    }
}

fn is_new_enough(version: &str) -> bool {
    let mut numbers = version
        .split(['.', '-'])
        .map(|part| part.parse::<u32>().ok());
    let found = (numbers.next().flatten(), numbers.next().flatten());
    matches!(found, (Some(major), Some(minor)) if (major, minor) >= OLDEST)
}

/// Returns the wait after this number of attempts.
fn wait_after(tries: usize) -> Duration {
    let doublings = u32::try_from(tries.saturating_sub(1)).unwrap_or(u32::MAX);
    let factor = 2_u32.saturating_pow(doublings);
    FIRST_WAIT.saturating_mul(factor).min(LAST_WAIT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn older_servers_are_refused() {
        for right in ["2.11.0", "2.12.1-RC.1", "2.15.3", "3.0.0"] {
            assert!(is_new_enough(right), "{right}");
        }
        for wrong in ["2.9.10", "2.10.29", "1.99", "", "x.y"] {
            assert!(!is_new_enough(wrong), "{wrong}");
        }
    }
}
