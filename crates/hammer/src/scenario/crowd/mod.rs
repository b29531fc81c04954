//! The participants of a run: how they join and leave.

mod acts;
mod announcements;
mod assembly;
mod calls;
mod conference;
mod guest;
mod hall;
mod join_error;
mod member;
mod shared;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use livekit_protocol::ServerInfo;
use portunus_sdp::Direction;
use serde_json::{Map, Value};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::{Interval, MissedTickBehavior, interval, timeout};

pub(super) use acts::Act;
pub(super) use assembly::{Assembly, Host, Venue};
pub(super) use calls::{Line, LineEnd, SIP, Sound};
pub(super) use conference::{Audience, Conference, Feed, Form};
use guest::{Guest, Order};
pub use hall::Silence;
pub(super) use hall::{Hall, Layout};
pub use join_error::JoinError;
use join_error::PATIENCE;
use member::Endpoint;
pub(super) use member::Member;
use shared::Shared;
pub(super) use shared::{CallSetUp, Joins, Limit, Manners};

use crate::client::{Broadcast, Connection};
use crate::source::SourceConfig;
use crate::viewer::{Event, Factory, LoadThreads, PeerId};

/// The participants. Clones share them.
#[derive(Debug, Clone)]
pub(super) struct Crowd(Arc<Shared>);

/// The pace of joins.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    /// Joins started per second. 0 means no limit.
    pub(super) per_s: f64,
    /// Joins in progress at a time.
    pub(super) at_a_time: usize,
    /// After this time, no more joins are started. An overloaded server may take minutes.
    pub(super) at_most: Option<Duration>,
}

impl Pace {
    /// Returns an interval that ticks when the next join may start, or `None` without a limit.
    pub(super) fn clock(&self) -> Option<Interval> {
        (self.per_s > 0.0).then(|| {
            let mut clock = interval(Duration::from_secs_f64(1.0 / self.per_s));
            clock.set_missed_tick_behavior(MissedTickBehavior::Burst);
            clock
        })
    }
}

/// The sessions that were resumed.
#[derive(Debug, Default)]
pub(super) struct Resumptions {
    /// The times from the break to the answered ICE restart.
    pub(super) delays_us: Vec<f64>,
    pub(super) failed: u32,
    /// The reason of the last failure.
    pub(super) failure: Option<String>,
}

/// A source published by WHIP.
#[derive(Debug)]
pub(super) struct Publisher {
    id: PeerId,
    broadcast: Broadcast,
}

impl Crowd {
    /// Creates an empty crowd. Events of participants come from `events`.
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

    /// Returns the threads that run the participants.
    pub(super) fn load(&self) -> &LoadThreads {
        &self.0.load
    }

    /// Returns the number of participants that have joined.
    pub(super) fn len(&self) -> usize {
        self.0.state().members.len()
    }

    /// Returns the PeerConnections of the joined participants.
    pub(super) fn connections(&self) -> usize {
        self.0.state().owners.len()
    }

    /// Returns the counts since the last call.
    pub(super) fn take_joins(&self) -> Joins {
        std::mem::take(&mut self.0.state().joins)
    }

    /// Returns the reason of the last participant that failed to join, or was ended.
    pub(super) fn last_failure(&self) -> Option<String> {
        self.0.state().last_failure.clone()
    }

    /// Returns the profile that protects the media.
    pub(super) fn profile(&self) -> Option<portunus_srtp::Profile> {
        self.0.state().profile
    }

    /// Lets `count` participants join, which take turns at `acts`. Returns when each has media or
    /// has failed.
    pub(super) async fn join(&self, acts: &Arc<[Act]>, count: usize, pace: Pace) {
        let mut under_way = JoinSet::new();
        let mut clock = pace.clock();
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

    /// Removes participants that received nothing since the last call. Returns their number.
    pub(super) async fn dismiss_starving(&self) -> usize {
        let starving = self.0.load.starving().await;
        let members: Vec<Member> = {
            let mut state = self.0.state();
            let owners = starving.iter().filter_map(|id| state.owners.get(id));
            let owners: BTreeSet<u64> = owners.copied().collect();
            let members = owners.iter().filter_map(|owner| state.take_member(*owner));
            members.collect()
        };
        let count = members.len();
        self.end(members).await;
        count
    }

    /// Creates a room with these further members of `create`, in which `count` endpoints publish.
    /// Returns the members to end, and the feeds.
    pub(super) async fn convene(
        &self,
        count: u32,
        config: &SourceConfig,
        members: &Map<String, Value>,
    ) -> Result<(Member, Vec<Feed>), JoinError> {
        let mut member = Member::default();
        let connection = self.0.connections.first();
        let feeds = self
            .0
            .convene(count, config, members, connection, &mut member);
        match feeds.await {
            Ok(feeds) => Ok((member, feeds)),
            Err(error) => {
                self.end(vec![member]).await;
                Err(error)
            }
        }
    }

    /// Publishes a source in a room that is there. Returns the member to end, and the feed.
    pub(super) async fn publish_in(
        &self,
        room: &Value,
        config: &SourceConfig,
    ) -> Result<(Member, Feed), JoinError> {
        let mut endpoint = Endpoint::new(self.0.connections.first()).await?;
        let published = self.0.publish_in(&endpoint.session, room, config).await;
        let mut member = Member::default();
        let feed = published.map(|(feed, joined)| {
            endpoint.add(joined);
            feed
        });
        member.endpoints.push(endpoint);
        match feed {
            Ok(feed) => Ok((member, feed)),
            Err(error) => {
                self.end(vec![member]).await;
                Err(error)
            }
        }
    }

    /// Makes a feed of another crowd one that this crowd can watch.
    pub(super) fn adopt(&self, feed: &Feed) -> Feed {
        feed.with_source(self.load().add_source(feed.sent()))
    }

    /// Returns the PeerConnections of the joined participants.
    pub(super) fn peers(&self) -> BTreeSet<PeerId> {
        self.0.state().owners.keys().copied().collect()
    }

    /// Opens a room of LiveKit's protocol in which `count` participants publish. Returns the members
    /// to end, and the room.
    pub(super) async fn open_venue(
        &self,
        host: &Host,
        count: u32,
        config: &SourceConfig,
    ) -> Result<(Member, Venue), JoinError> {
        let mut member = Member::default();
        match self.0.open_venue(host, count, config, &mut member).await {
            Ok(venue) => Ok((member, venue)),
            Err(error) => {
                self.end(vec![member]).await;
                Err(error)
            }
        }
    }

    /// Returns what a LiveKit server says about itself, once somebody has joined it.
    pub(super) fn livekit_server(&self) -> Option<ServerInfo> {
        self.0.state().server.clone()
    }

    /// Breaks the connections of all participants of LiveKit's rooms at once, and lets them resume.
    pub(super) async fn resume(&self) -> Resumptions {
        let orders: Vec<_> = {
            let state = self.0.state();
            let guests = state.members.values().flat_map(|member| &member.guests);
            guests.map(Guest::orders).collect()
        };
        let resuming = orders.into_iter().map(|orders| async move {
            let start = Instant::now();
            let (done, outcome) = oneshot::channel();
            let _ = orders.send(Order::Resume(done));
            match outcome.await {
                Ok(Ok(())) => Ok(start.elapsed()),
                Ok(Err(error)) => Err(error.to_string()),
                Err(_) => Err("its connection has ended".to_owned()),
            }
        });
        let mut resumed = Resumptions::default();
        for outcome in join_all(resuming).await {
            match outcome {
                Ok(delay) => resumed.delays_us.push(delay.as_secs_f64() * 1e6),
                Err(reason) => {
                    resumed.failed += 1;
                    resumed.failure = Some(reason);
                }
            }
        }
        resumed
    }

    /// Ends participants.
    pub(super) async fn end(&self, members: Vec<Member>) {
        let mut under_way = JoinSet::new();
        for member in members {
            let shared = Arc::clone(&self.0);
            under_way.spawn(async move { member.end(&shared.load).await });
        }
        while under_way.join_next().await.is_some() {}
    }

    /// Publishes a source by WHIP, and adds it to the load threads'.
    pub(super) async fn publish(
        &self,
        url: &str,
        token: Option<&str>,
        config: &SourceConfig,
    ) -> Result<Publisher, JoinError> {
        let shared = &self.0;
        let id = shared.next_publisher();
        let (offered, offer) = shared.offer(id, Direction::SendOnly, config)?;
        let broadcast = Broadcast::offer(url, token, &shared.manners.trust, offer).await?;
        let prepared = offered.accept(&broadcast.answer)?;
        let publishing = shared.run_publisher(id, prepared, config);
        let connected = timeout(PATIENCE, publishing.connected).await;
        connected
            .ok()
            .and_then(Result::ok)
            .ok_or(JoinError::NotConnected)?;
        Ok(Publisher { id, broadcast })
    }

    /// Ends a source.
    pub(super) async fn unpublish(&self, publisher: Publisher) {
        self.0.load.remove(publisher.id);
        // The server may be gone, so errors are ignored.
        let _ = publisher.broadcast.end().await;
    }

    /// Lets `count` participants leave, the oldest or the newest ones.
    pub(super) async fn leave(&self, count: usize, oldest: bool) {
        let members: Vec<Member> = {
            let mut state = self.0.state();
            let turns = state.members.keys().copied();
            let turns: Vec<u64> = match oldest {
                true => turns.take(count).collect(),
                false => turns.rev().take(count).collect(),
            };
            turns
                .iter()
                .filter_map(|turn| state.take_member(*turn))
                .collect()
        };
        self.end(members).await;
    }
}

impl Shared {
    async fn join(self: &Arc<Self>, acts: &[Act]) {
        let turn = self.next_turn();
        let place = usize::try_from(turn).unwrap_or(0);
        let act = place.checked_rem(acts.len()).and_then(|n| acts.get(n));
        let connection = place
            .checked_rem(self.connections.len())
            .and_then(|n| self.connections.get(n));
        let Some(act) = act else {
            return;
        };
        let start = Instant::now();
        let mut member = Member::default();
        match self.enter(act, connection, &mut member).await {
            Ok(()) => {
                let mut state = self.state();
                let delay_us = start.elapsed().as_secs_f64() * 1e6;
                state.joins.delays_us.push(delay_us);
                let owners = member.peers().map(|peer| (peer, turn));
                state.owners.extend(owners);
                state.members.insert(turn, member);
            }
            Err(error) => {
                self.failed(&error);
                member.end(&self.load).await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use crate::source::spread;

    #[test]
    fn those_that_decrypt_are_spread_over_all_sources() {
        let checked = |share| (0..1_000u64).filter(move |id| spread(*id) < share);
        assert!((9..=12).contains(&checked(0.01).count()));
        assert_eq!(checked(1.0).count(), 1_000);
        assert_eq!(checked(0.0).count(), 0);
        assert!(spread(0) < 0.001, "the first one decrypts");
        let sources: HashSet<u64> = checked(0.1).map(|id| id % 10).collect();
        assert_eq!(sources.len(), 10);
    }
}
