//! What all participants of a run have in common: the load threads, the ids, and who waits for what.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use portunus_sdp::Direction;
use serde_json::Value;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::join_error::{JoinError, PATIENCE};
use super::member::{Joined, Member};
use crate::client::{Connection, Handle, Trust};
use crate::source::{Sent, SourceConfig, spread};
use crate::viewer::{
    Event, EventKind, Factory, Hearing, LoadThreads, NewPeer, Offered, PUBLISHERS, PeerId,
    PrepareError, Prepared,
};

/// What participants do with what they get.
#[derive(Debug, Clone)]
pub(in crate::scenario) struct Manners {
    /// Whose certificates they take.
    pub(in crate::scenario) trust: Trust,
    /// The share that decrypts.
    pub(in crate::scenario) check_share: f64,
    /// They send receiver reports.
    pub(in crate::scenario) reports: bool,
    /// What some can take.
    pub(in crate::scenario) limit: Option<Limit>,
}

/// Some can take no more than so much, and say so.
#[derive(Debug, Clone, Copy)]
pub(in crate::scenario) struct Limit {
    /// Their share of those who watch, 0 to 1.
    pub(in crate::scenario) share: f64,
    /// What each can take, in bits per second.
    pub(in crate::scenario) bps: u64,
}

/// How long the server took to set a call up.
#[derive(Debug, Clone, Copy)]
pub(in crate::scenario) struct CallSetUp {
    /// From the request to the INVITE's arrival at the far end.
    pub(in crate::scenario) asking: Duration,
    /// From the answer's leaving there to the event.
    pub(in crate::scenario) answering: Duration,
}

/// What has been counted since the last time.
#[derive(Debug, Default)]
pub(in crate::scenario) struct Joins {
    /// From the first request to the first packet.
    pub(in crate::scenario) delays_us: Vec<f64>,
    pub(in crate::scenario) failed: u32,
    /// Participants that the server or the network ended.
    pub(in crate::scenario) ended: u32,
    /// How calls were set up.
    pub(in crate::scenario) set_ups: Vec<CallSetUp>,
}

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) load: LoadThreads,
    pub(super) factory: Factory,
    pub(super) connections: Vec<Connection>,
    pub(super) manners: Manners,
    pub(super) state: Mutex<State>,
}

/// Tells of a viewer's first packet, or why none came.
pub(super) type Arrival = oneshot::Receiver<Result<(), String>>;

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) next: PeerId,
    pub(super) next_publisher: PeerId,
    /// Those who have begun to watch a room.
    pub(super) audience: u64,
    /// Participants that have begun to join.
    pub(super) turns: u64,
    /// Who waits for a viewer's first packet.
    pub(super) arriving: HashMap<PeerId, oneshot::Sender<Result<(), String>>>,
    /// Who waits for a publisher to be connected.
    pub(super) connecting: HashMap<PeerId, oneshot::Sender<()>>,
    /// In the order in which they began to join.
    pub(super) members: BTreeMap<u64, Member>,
    /// Whose PeerConnections they are.
    pub(super) owners: HashMap<PeerId, u64>,
    pub(super) joins: Joins,
    pub(super) last_failure: Option<String>,
    pub(super) profile: Option<portunus_srtp::Profile>,
}

/// What a viewer is to the load threads.
#[derive(Debug)]
pub(super) struct Seat {
    pub(super) sources: Vec<usize>,
    pub(super) stands_for: u32,
    pub(super) limit_bps: Option<u64>,
    pub(super) hearing: Option<Hearing>,
}

impl Seat {
    /// A participant by itself.
    pub(super) fn of(sources: Vec<usize>) -> Self {
        Self {
            sources,
            stands_for: 1,
            limit_bps: None,
            hearing: None,
        }
    }
}

/// A publisher on its way.
pub(super) struct Publishing {
    /// Its source, as the load threads know it.
    pub(super) source: usize,
    pub(super) sent: Arc<Sent>,
    /// Tells when it is connected.
    pub(super) connected: oneshot::Receiver<()>,
}

impl State {
    /// Takes a participant out.
    pub(super) fn take_member(&mut self, turn: u64) -> Option<Member> {
        let member = self.members.remove(&turn)?;
        for peer in member.peers() {
            self.owners.remove(&peer);
        }
        Some(member)
    }
}

impl Shared {
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An id for one who watches that is not used yet.
    pub(super) fn next_id(&self) -> PeerId {
        let mut state = self.state();
        state.next += 1;
        state.next - 1
    }

    /// An id for one who publishes that is not used yet.
    pub(super) fn next_publisher(&self) -> PeerId {
        let mut state = self.state();
        state.next_publisher += 1;
        PUBLISHERS + state.next_publisher - 1
    }

    pub(super) fn next_turn(&self) -> u64 {
        let mut state = self.state();
        state.turns += 1;
        state.turns - 1
    }

    /// What the next one who watches can take.
    pub(super) fn limit(&self) -> Option<u64> {
        let Limit { share, bps } = self.manners.limit?;
        let mut state = self.state();
        state.audience += 1;
        (spread(state.audience) < share).then_some(bps)
    }

    pub(super) fn failed(&self, error: &JoinError) {
        let mut state = self.state();
        state.joins.failed += 1;
        state.last_failure = Some(error.to_string());
    }

    pub(super) fn take(&self, event: Event) {
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
                    && let Some(owner) = state.owners.remove(&id)
                {
                    state.joins.ended += 1;
                    state.last_failure = Some(reason);
                    // Whose only one it was is gone; others are measured with what is left of them.
                    let alone = |member: &Member| member.peers().count() == 1;
                    if state.members.get(&owner).is_some_and(alone) {
                        state.members.remove(&owner);
                    }
                }
            }
        }
    }

    /// An offer of the participant that will have this id.
    pub(super) fn offer(
        &self,
        id: PeerId,
        direction: Direction,
        config: &SourceConfig,
    ) -> Result<(Offered, String), PrepareError> {
        let video = (config.traffic.video_bps > 0).then_some(config.codec);
        let simulcast = config.simulcast && direction == Direction::SendOnly;
        let audio = config.traffic.audio_bps > 0;
        self.factory
            .offer(self.address(id), direction, audio, video, simulcast)
    }

    /// The address of the participant that will have this id, if it has no socket of its own.
    pub(super) fn address(&self, id: PeerId) -> Option<SocketAddr> {
        let reads_all = self.may_check(id) || self.factory.transport_feedback();
        self.load.address(id, reads_all)
    }

    pub(super) fn may_check(&self, id: PeerId) -> bool {
        id < PUBLISHERS && spread(id) < self.manners.check_share
    }

    /// Hands one who watches to the load threads; the channel tells of its first packet or its end.
    pub(super) fn run(&self, id: PeerId, prepared: Prepared, seat: Seat) -> Arrival {
        let (sender, arrival) = oneshot::channel();
        self.state().arriving.insert(id, sender);
        let counts = seat.limit_bps.is_some() || seat.hearing.is_some();
        let check = self.may_check(id) && !counts;
        self.load.add(NewPeer {
            id,
            prepared,
            check,
            reports: self.manners.reports,
            sources: seat.sources,
            stands_for: seat.stands_for,
            limit_bps: seat.limit_bps,
            hearing: seat.hearing,
        });
        arrival
    }

    /// Hands one who publishes to the load threads.
    pub(super) fn run_publisher(
        &self,
        id: PeerId,
        mut prepared: Prepared,
        config: &SourceConfig,
    ) -> Publishing {
        let sent = prepared.publish(config, spread(id - PUBLISHERS));
        let source = self.load.add_source(&sent);
        let (sender, connected) = oneshot::channel();
        self.state().connecting.insert(id, sender);
        self.load.add(NewPeer {
            id,
            prepared,
            check: false,
            reports: false,
            sources: Vec::new(),
            stands_for: 0,
            limit_bps: None,
            hearing: None,
        });
        Publishing {
            source,
            sent,
            connected,
        }
    }

    /// Waits for the first packet, and hands on the candidates that come in the meantime.
    pub(super) async fn wait(
        &self,
        id: PeerId,
        mut arrival: Arrival,
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
                        if let Some(candidate) = candidate(&event) {
                            self.load.add_candidate(id, candidate);
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

    /// The PeerConnection, or its end if it came to nothing.
    pub(super) fn kept(
        &self,
        peer: PeerId,
        handle: Handle,
        outcome: Result<(), JoinError>,
    ) -> Result<Joined, JoinError> {
        if outcome.is_err() {
            let mut state = self.state();
            state.arriving.remove(&peer);
            state.connecting.remove(&peer);
            drop(state);
            self.load.remove(peer);
        }
        outcome.map(|()| Joined { peer, handle })
    }
}

/// A candidate of the server's.
pub(super) fn candidate(event: &Value) -> Option<String> {
    let candidate = event.pointer("/candidate/candidate")?;
    candidate.as_str().map(str::to_owned)
}
