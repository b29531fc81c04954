//! The participants of a run: how they join and leave.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use portunus_sdp::Direction;
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::mountpoint::STREAMING;
use crate::client::{Broadcast, ClientError, Connection, Handle, Session, jsep};
use crate::source::{SourceConfig, spread};
use crate::viewer::{
    Event, EventKind, Factory, LoadThreads, NewPeer, Offered, PeerId, PrepareError, Prepared,
};

const ECHO_TEST: &str = "janus.plugin.echotest";

/// How long a participant may take until its first packet.
const PATIENCE: Duration = Duration::from_secs(30);

/// The participants. Clones share them.
#[derive(Debug, Clone)]
pub(super) struct Crowd(Arc<Shared>);

/// What a participant does.
#[derive(Debug, Clone)]
pub(super) enum Act {
    /// Watches a mountpoint of the streaming plugin.
    Watch {
        mountpoint: Value,
        /// Its source, as the load threads know it.
        source: usize,
    },
    /// Watches by WHEP.
    Whep {
        url: String,
        token: Option<String>,
        source: usize,
        config: Arc<SourceConfig>,
    },
    /// Sends to the echo test plugin, and gets it back.
    Echo(Arc<SourceConfig>),
}

/// What participants do with what they get.
#[derive(Debug, Clone, Copy)]
pub(super) struct Manners {
    /// The share that decrypts.
    pub(super) check_share: f64,
    /// They send receiver reports.
    pub(super) reports: bool,
}

/// How fast participants come.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    /// Joins started in a second; 0: as many as go.
    pub(super) per_s: f64,
    /// Joins under way at a time.
    pub(super) at_a_time: usize,
    /// After this time no more joins are started: a server that is overloaded may take minutes.
    pub(super) at_most: Option<Duration>,
}

/// What has been counted since the last time.
#[derive(Debug, Default)]
pub(super) struct Joins {
    /// From the first request to the first packet.
    pub(super) delays_us: Vec<f64>,
    pub(super) failed: u32,
    /// Participants that the server or the network ended.
    pub(super) ended: u32,
}

#[derive(Debug)]
struct Shared {
    load: LoadThreads,
    factory: Factory,
    connections: Vec<Connection>,
    manners: Manners,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    next: PeerId,
    /// Who waits for a viewer's first packet.
    arriving: HashMap<PeerId, oneshot::Sender<Result<(), String>>>,
    /// Who waits for a publisher to be connected.
    connecting: HashMap<PeerId, oneshot::Sender<()>>,
    members: BTreeMap<PeerId, Member>,
    joins: Joins,
    last_failure: Option<String>,
    profile: Option<portunus_srtp::Profile>,
}

/// How the server knows a participant.
#[derive(Debug)]
enum Member {
    /// By a session and a handle, which keeps its place at the connection.
    Janus(Session, Handle),
    /// By a resource.
    Whep(Broadcast),
}

impl Member {
    /// Says goodbye. The server may be gone, and then need not hear it.
    async fn end(self) {
        match self {
            Member::Janus(session, _handle) => drop(session.destroy().await),
            Member::Whep(broadcast) => drop(broadcast.end().await),
        }
    }
}

/// A source that is published by WHIP.
#[derive(Debug)]
pub(super) struct Publisher {
    id: PeerId,
    broadcast: Broadcast,
}

/// Why a source could not be published.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PublishError {
    /// The server refused.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The server's answer is not acceptable.
    #[error(transparent)]
    Prepare(#[from] PrepareError),
    /// ICE or DTLS came to nothing.
    #[error("no connection in {} s", PATIENCE.as_secs())]
    NotConnected,
}

#[derive(Debug, thiserror::Error)]
enum JoinError {
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error(transparent)]
    Prepare(#[from] PrepareError),
    #[error("{0}")]
    Ended(String),
    #[error("no media in {} s", PATIENCE.as_secs())]
    NoMedia,
}

impl Crowd {
    /// Nobody yet. What happens to participants comes from `events`.
    pub(super) fn new(
        load: LoadThreads,
        mut events: UnboundedReceiver<Event>,
        factory: Factory,
        connections: Vec<Connection>,
        manners: Manners,
    ) -> Self {
        let shared = Arc::new(Shared {
            load,
            factory,
            connections,
            manners,
            state: Mutex::default(),
        });
        let weak = Arc::downgrade(&shared);
        tokio::spawn(async move {
            while let Some(event) = events.recv().await {
                let Some(shared) = weak.upgrade() else { return };
                shared.take(event);
            }
        });
        Self(shared)
    }

    /// The threads that run the participants.
    pub(super) fn load(&self) -> &LoadThreads {
        &self.0.load
    }

    /// Participants that have joined.
    pub(super) fn len(&self) -> usize {
        self.0.state().members.len()
    }

    /// What has been counted since the last call.
    pub(super) fn take_joins(&self) -> Joins {
        std::mem::take(&mut self.0.state().joins)
    }

    /// Why the last one that could not join, or was ended, could not.
    pub(super) fn last_failure(&self) -> Option<String> {
        self.0.state().last_failure.clone()
    }

    /// What protects the media.
    pub(super) fn profile(&self) -> Option<portunus_srtp::Profile> {
        self.0.state().profile
    }

    /// Lets `count` more join, taking turns at `acts`; returns when each has media or has failed.
    pub(super) async fn join(&self, acts: &Arc<[Act]>, count: usize, pace: Pace) {
        let mut under_way = JoinSet::new();
        let mut clock = (pace.per_s > 0.0).then(|| {
            let mut clock = interval(Duration::from_secs_f64(1.0 / pace.per_s));
            clock.set_missed_tick_behavior(MissedTickBehavior::Burst);
            clock
        });
        let start = Instant::now();
        for _ in 0..count {
            if pace.at_most.is_some_and(|most| start.elapsed() > most) {
                break;
            }
            if let Some(clock) = &mut clock {
                clock.tick().await;
            }
            while under_way.len() >= pace.at_a_time.max(1) {
                under_way.join_next().await;
            }
            let (shared, acts) = (Arc::clone(&self.0), Arc::clone(acts));
            under_way.spawn(async move { shared.join(&acts).await });
        }
        while under_way.join_next().await.is_some() {}
    }

    /// Lets those go that are served no more: they got nothing since the last call. Returns how many.
    pub(super) async fn dismiss_starving(&self) -> usize {
        let mut under_way = JoinSet::new();
        for id in self.0.load.starving().await {
            let member = self.0.state().members.remove(&id);
            if let Some(member) = member {
                self.0.load.remove(id);
                under_way.spawn(member.end());
            }
        }
        let count = under_way.len();
        while under_way.join_next().await.is_some() {}
        count
    }

    /// Publishes a source by WHIP and adds it to the load threads'.
    pub(super) async fn publish(
        &self,
        url: &str,
        token: Option<&str>,
        config: &SourceConfig,
    ) -> Result<Publisher, PublishError> {
        let shared = &self.0;
        let (offered, offer) = shared.offer(Direction::SendOnly, config)?;
        let broadcast = Broadcast::offer(url, token, offer).await?;
        let mut prepared = offered.accept(&broadcast.answer)?;
        let sent = prepared.publish(config, 0.0);
        shared.load.add_source(&sent);
        let (sender, connected) = oneshot::channel();
        let id = shared.next_id();
        shared.state().connecting.insert(id, sender);
        shared.load.add(NewPeer {
            id,
            prepared,
            check: false,
            reports: false,
            source: None,
        });
        let connected = timeout(PATIENCE, connected).await;
        connected
            .ok()
            .and_then(Result::ok)
            .ok_or(PublishError::NotConnected)?;
        Ok(Publisher { id, broadcast })
    }

    /// Ends a source.
    pub(super) async fn unpublish(&self, publisher: Publisher) {
        self.0.load.remove(publisher.id);
        // The server may be gone, and then need not hear it.
        let _ = publisher.broadcast.end().await;
    }

    /// Lets `count` leave: those that have been there longest, or those that came last.
    pub(super) async fn leave(&self, count: usize, oldest: bool) {
        let mut under_way = JoinSet::new();
        for _ in 0..count {
            let mut state = self.0.state();
            let member = match oldest {
                true => state.members.pop_first(),
                false => state.members.pop_last(),
            };
            drop(state);
            let Some((id, member)) = member else { break };
            self.0.load.remove(id);
            under_way.spawn(member.end());
        }
        while under_way.join_next().await.is_some() {}
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next_id(&self) -> PeerId {
        let mut state = self.state();
        state.next += 1;
        state.next - 1
    }

    async fn join(&self, acts: &[Act]) {
        let id = self.next_id();
        let turn = usize::try_from(id).unwrap_or(0);
        let act = turn.checked_rem(acts.len()).and_then(|n| acts.get(n));
        let connection = turn
            .checked_rem(self.connections.len())
            .and_then(|n| self.connections.get(n));
        let Some(act) = act else {
            return;
        };
        let start = Instant::now();
        let mut member = None;
        match self.enter(id, act, connection, &mut member).await {
            Ok(()) => {
                let mut state = self.state();
                state
                    .joins
                    .delays_us
                    .push(start.elapsed().as_secs_f64() * 1e6);
                state.members.extend(member.map(|member| (id, member)));
            }
            Err(error) => {
                self.failed(id, &error);
                self.load.remove(id);
                if let Some(member) = member {
                    member.end().await;
                }
            }
        }
    }

    /// Joins; `member` is what has to be ended if that fails half-way.
    async fn enter(
        &self,
        id: PeerId,
        act: &Act,
        connection: Option<&Connection>,
        member: &mut Option<Member>,
    ) -> Result<(), JoinError> {
        match act {
            Act::Watch { mountpoint, source } => {
                let handle = attach(connection, STREAMING, member).await?;
                let watch = json!({ "request": "watch", "id": mountpoint });
                let reply = handle.message(watch, None).await?;
                let (prepared, answer) = self.factory.answer(sdp_in(&reply)?)?;
                let arrival = self.run(id, prepared, Some(*source));
                let answer = json!({ "type": "answer", "sdp": answer });
                handle
                    .message(json!({ "request": "start" }), Some(answer))
                    .await?;
                self.wait(id, arrival, Some(handle)).await
            }
            Act::Whep {
                url,
                token,
                source,
                config,
            } => {
                let (offered, offer) = self.offer(Direction::RecvOnly, config)?;
                let broadcast = Broadcast::offer(url, token.as_deref(), offer).await?;
                let prepared = offered.accept(&broadcast.answer)?;
                *member = Some(Member::Whep(broadcast));
                let arrival = self.run(id, prepared, Some(*source));
                self.wait(id, arrival, None).await
            }
            Act::Echo(config) => {
                let handle = attach(connection, ECHO_TEST, member).await?;
                let (offered, offer) = self.offer(Direction::SendRecv, config)?;
                let traffic = &config.traffic;
                let (audio, video) = (traffic.audio_bps > 0, traffic.video_bps > 0);
                let body = json!({ "request": "start", "audio": audio, "video": video });
                let offer = json!({ "type": "offer", "sdp": offer });
                let reply = handle.message(body, Some(offer)).await?;
                let mut prepared = offered.accept(sdp_in(&reply)?)?;
                prepared.send(config, spread(id));
                let arrival = self.run(id, prepared, None);
                self.wait(id, arrival, Some(handle)).await
            }
        }
    }

    fn offer(
        &self,
        direction: Direction,
        config: &SourceConfig,
    ) -> Result<(Offered, String), PrepareError> {
        let video = (config.traffic.video_bps > 0).then_some(config.codec);
        self.factory
            .offer(direction, config.traffic.audio_bps > 0, video)
    }

    /// Hands a participant to the load threads; the channel tells of its first packet or its end.
    fn run(
        &self,
        id: PeerId,
        prepared: Prepared,
        source: Option<usize>,
    ) -> oneshot::Receiver<Result<(), String>> {
        let (sender, arrival) = oneshot::channel();
        self.state().arriving.insert(id, sender);
        self.load.add(NewPeer {
            id,
            prepared,
            check: is_checked(id, self.manners.check_share),
            reports: self.manners.reports,
            source,
        });
        arrival
    }

    /// Waits for the first packet, and hands on the candidates that come in the meantime.
    async fn wait(
        &self,
        id: PeerId,
        mut arrival: oneshot::Receiver<Result<(), String>>,
        mut handle: Option<&mut Handle>,
    ) -> Result<(), JoinError> {
        let arrived = timeout(PATIENCE, async {
            loop {
                let event = async {
                    match &mut handle {
                        Some(handle) => handle.events.recv().await,
                        None => None,
                    }
                };
                tokio::select! {
                    arrived = &mut arrival => return arrived,
                    Some(event) = event => {
                        let candidate = event.pointer("/candidate/candidate");
                        if let Some(candidate) = candidate.and_then(Value::as_str) {
                            self.load.add_candidate(id, candidate.to_owned());
                        }
                    }
                }
            }
        });
        match arrived.await {
            Ok(Ok(Ok(()))) => {}
            Ok(Ok(Err(reason))) => return Err(JoinError::Ended(reason)),
            Ok(Err(_)) | Err(_) => return Err(JoinError::NoMedia),
        }
        // Nobody listens from now on: the load thread notices the end by itself.
        if let Some(handle) = handle {
            handle.events.close();
        }
        Ok(())
    }

    fn failed(&self, id: PeerId, error: &JoinError) {
        let mut state = self.state();
        state.arriving.remove(&id);
        state.joins.failed += 1;
        state.last_failure = Some(error.to_string());
    }

    fn take(&self, event: Event) {
        let Event { id, kind } = event;
        let mut state = self.state();
        match kind {
            EventKind::Connected(profile) => match state.connecting.remove(&id) {
                Some(connecting) => drop(connecting.send(())),
                None => state.profile = profile.or(state.profile),
            },
            EventKind::Media => {
                if let Some(arriving) = state.arriving.remove(&id) {
                    let _ = arriving.send(Ok(()));
                }
            }
            EventKind::Ended(reason) => {
                if let Some(arriving) = state.arriving.remove(&id) {
                    let _ = arriving.send(Err(reason));
                } else if state.connecting.remove(&id).is_none()
                    && state.members.remove(&id).is_some()
                {
                    state.joins.ended += 1;
                    state.last_failure = Some(reason);
                }
            }
        }
    }
}

/// Creates a session and attaches to `plugin`.
async fn attach<'a>(
    connection: Option<&Connection>,
    plugin: &str,
    member: &'a mut Option<Member>,
) -> Result<&'a mut Handle, JoinError> {
    let connection = connection.ok_or(ClientError::Closed)?;
    let session = connection.create().await?;
    let handle = session.attach(plugin).await?;
    match member.insert(Member::Janus(session, handle)) {
        Member::Janus(_, handle) => Ok(handle),
        Member::Whep(_) => Err(JoinError::NoMedia),
    }
}

fn sdp_in(reply: &Value) -> Result<&str, ClientError> {
    jsep(reply).ok_or_else(|| ClientError::Malformed {
        request: "message".to_owned(),
        missing: "jsep",
    })
}

/// Whether participant `id` is one of the `share` that decrypt: the first one always is, the others
/// are spread evenly, over those of each source too.
fn is_checked(id: PeerId, share: f64) -> bool {
    spread(id) < share
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn the_share_that_decrypts_is_spread() {
        let checked = |share| (0..1_000).filter(move |id| is_checked(*id, share));
        assert!((9..=12).contains(&checked(0.01).count()));
        assert!((498..=502).contains(&checked(0.5).count()));
        assert_eq!(checked(1.0).count(), 1_000);
        assert_eq!(checked(0.0).count(), 0);
        assert!(is_checked(0, 0.001));
        // With ten sources, viewers of each decrypt.
        let sources: HashSet<u64> = checked(0.1).map(|id| id % 10).collect();
        assert_eq!(sources.len(), 10);
    }
}
