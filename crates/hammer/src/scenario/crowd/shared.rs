//! The shared state of a run's participants: the load threads, the ids, and waiting joins.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use livekit_protocol::ServerInfo;
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

/// How participants treat what they receive.
#[derive(Debug, Clone)]
pub(in crate::scenario) struct Manners {
    /// The certificates that they trust.
    pub(in crate::scenario) trust: Trust,
    /// The share of participants that decrypt.
    pub(in crate::scenario) check_share: f64,
    /// Participants send receiver reports.
    pub(in crate::scenario) reports: bool,
    /// The limit of some participants.
    pub(in crate::scenario) limit: Option<Limit>,
}

/// A limit that some participants have and report.
#[derive(Debug, Clone, Copy)]
pub(in crate::scenario) struct Limit {
    /// Their share of the viewers, 0 to 1.
    pub(in crate::scenario) share: f64,
    /// The limit of each, in bits per second.
    pub(in crate::scenario) bps: u64,
}

/// The time that the server took to set a call up.
#[derive(Debug, Clone, Copy)]
pub(in crate::scenario) struct CallSetUp {
    /// From the request to the INVITE's arrival at the far end.
    pub(in crate::scenario) asking: Duration,
    /// From the sending of the answer to the event.
    pub(in crate::scenario) answering: Duration,
}

/// Counts since the last call.
#[derive(Debug, Default)]
pub(in crate::scenario) struct Joins {
    /// Delays from the first request to the first packet.
    pub(in crate::scenario) delays_us: Vec<f64>,
    pub(in crate::scenario) failed: u32,
    /// Participants ended by the server or the network.
    pub(in crate::scenario) ended: u32,
    /// The times of call set-ups.
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

/// Resolves on a viewer's first packet, or with the reason why none came.
pub(super) type Arrival = oneshot::Receiver<Result<(), String>>;

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) next: PeerId,
    pub(super) next_publisher: PeerId,
    /// Participants that started to watch a room.
    pub(super) audience: u64,
    /// Participants that started to join.
    pub(super) turns: u64,
    /// Joins that wait for a viewer's first packet.
    pub(super) arriving: HashMap<PeerId, oneshot::Sender<Result<(), String>>>,
    /// Joins that wait for a publisher's connection.
    pub(super) connecting: HashMap<PeerId, oneshot::Sender<()>>,
    /// In the order in which they started to join.
    pub(super) members: BTreeMap<u64, Member>,
    /// The participants of PeerConnections.
    pub(super) owners: HashMap<PeerId, u64>,
    pub(super) joins: Joins,
    pub(super) last_failure: Option<String>,
    pub(super) profile: Option<portunus_srtp::Profile>,
    /// What a LiveKit server says about itself.
    pub(super) server: Option<ServerInfo>,
}

/// A viewer's place in the load threads.
#[derive(Debug)]
pub(super) struct Seat {
    pub(super) sources: Vec<usize>,
    pub(super) stands_for: u32,
    pub(super) limit_bps: Option<u64>,
    pub(super) hearing: Option<Hearing>,
}

impl Seat {
    /// Returns the place of a participant with one PeerConnection.
    pub(super) fn of(sources: Vec<usize>) -> Self {
        Self {
            sources,
            stands_for: 1,
            limit_bps: None,
            hearing: None,
        }
    }
}

/// A connecting publisher.
pub(super) struct Publishing {
    /// The source's number in the load threads.
    pub(super) source: usize,
    pub(super) sent: Arc<Sent>,
    /// Resolves when the publisher is connected.
    pub(super) connected: oneshot::Receiver<()>,
}

impl State {
    /// Removes a participant.
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

    /// Returns an unused id for a viewer.
    pub(super) fn next_id(&self) -> PeerId {
        let mut state = self.state();
        state.next += 1;
        state.next - 1
    }

    /// Returns an unused id for a publisher.
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

    /// Returns the limit of the next viewer.
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
                    // A participant with only this PeerConnection is gone. Others are measured with
                    // the rest.
                    let alone = |member: &Member| member.peers().count() == 1;
                    if state.members.get(&owner).is_some_and(alone) {
                        state.members.remove(&owner);
                    }
                }
            }
        }
    }

    /// Creates an offer for the participant that will have this id.
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

    /// Returns the address of the participant that will have this id, if it has no socket of its
    /// own.
    pub(super) fn address(&self, id: PeerId) -> Option<SocketAddr> {
        let reads_all = self.may_check(id) || self.factory.transport_feedback();
        self.load.address(id, reads_all)
    }

    pub(super) fn may_check(&self, id: PeerId) -> bool {
        id < PUBLISHERS && spread(id) < self.manners.check_share
    }

    /// Passes a viewer to the load threads. The channel resolves on its first packet or its end.
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

    /// Passes a publisher to the load threads.
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

    /// Waits for the first packet, and passes on the candidates that come meanwhile.
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
        // Nobody reads these events any more. The load thread notices the end by itself.
        if let Some(handle) = handle {
            handle.events.close();
        }
        Ok(())
    }

    /// Returns the PeerConnection, or ends it if joining failed.
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

/// Parses a candidate from the server.
pub(super) fn candidate(event: &Value) -> Option<String> {
    let candidate = event.pointer("/candidate/candidate")?;
    candidate.as_str().map(str::to_owned)
}
