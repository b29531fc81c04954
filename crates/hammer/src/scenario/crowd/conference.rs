//! Video rooms: publishers and subscribers.

use std::sync::Arc;

use futures_util::future::join_all;
use portunus_sdp::Direction;
use serde_json::{Map, Value};
use tokio::time::timeout;

use super::join_error::{JoinError, PATIENCE};
use super::member::{Endpoint, Joined, Member};
use super::shared::{Publishing, Seat, Shared, candidate};
use crate::client::{Connection, Session};
use crate::scenario::plugins::videoroom::{self, Room, VIDEOROOM};
use crate::source::{Sent, SourceConfig};

/// The PeerConnections of a participant that watches several feeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::scenario) enum Form {
    /// One for each feed.
    PerFeed,
    /// One for all.
    Multistream,
}

/// The feeds to watch in a room.
#[derive(Debug)]
pub(in crate::scenario) struct Audience {
    pub(in crate::scenario) room: Value,
    pub(in crate::scenario) feeds: Vec<Feed>,
    pub(in crate::scenario) form: Form,
}

/// A feed published in a room.
#[derive(Debug, Clone)]
pub(in crate::scenario) struct Feed {
    /// The feed's id on the server.
    id: Value,
    /// The source's number in the load threads.
    source: usize,
    sent: Arc<Sent>,
}

impl Feed {
    /// Creates a feed. `source` is the source's number in the load threads.
    pub(super) fn new(id: Value, source: usize, sent: Arc<Sent>) -> Self {
        Self { id, source, sent }
    }

    /// Returns the feed's id on the server.
    pub(in crate::scenario) fn id(&self) -> &Value {
        &self.id
    }

    /// Returns the count of sent packets.
    pub(super) fn sent(&self) -> &Arc<Sent> {
        &self.sent
    }

    /// Returns the same feed for other load threads, in which the source has this number.
    pub(super) fn with_source(&self, source: usize) -> Self {
        Self {
            source,
            ..self.clone()
        }
    }

    /// Returns the source's number in the load threads.
    pub(super) fn source(&self) -> usize {
        self.source
    }

    /// Returns the packets sent so far.
    pub(in crate::scenario) fn packets(&self) -> u64 {
        self.sent.packets()
    }
}

/// A room with endpoints.
#[derive(Debug)]
pub(in crate::scenario) struct Conference {
    pub(in crate::scenario) endpoints: u32,
    pub(in crate::scenario) form: Form,
    pub(in crate::scenario) config: Arc<SourceConfig>,
    /// Further members of the request that creates the room.
    pub(in crate::scenario) members: Map<String, Value>,
    /// The room counts as one participant, instead of each endpoint.
    pub(in crate::scenario) counts_once: bool,
}

impl Shared {
    /// Watches all of `feeds` in the requested form. Counts as `stands_for` participants.
    pub(super) async fn attend(
        &self,
        endpoint: &mut Endpoint,
        room: &Value,
        feeds: &[&Feed],
        form: Form,
        stands_for: u32,
    ) -> Result<(), JoinError> {
        let limit_bps = self.limit();
        let groups: Vec<&[&Feed]> = match form {
            Form::PerFeed => feeds.chunks(1).collect(),
            Form::Multistream => vec![feeds],
        };
        let session = &endpoint.session;
        let subscriptions = groups.into_iter().enumerate().map(|(n, feeds)| {
            let seat = Seat {
                sources: feeds.iter().map(|feed| feed.source).collect(),
                stands_for: if n == 0 { stands_for } else { 0 },
                limit_bps,
                hearing: None,
            };
            self.subscribe(session, room, feeds, seat)
        });
        let mut outcome = Ok(());
        for subscribed in join_all(subscriptions).await {
            match subscribed {
                Ok(peer) => endpoint.add(peer),
                Err(error) => outcome = Err(error),
            }
        }
        outcome
    }

    async fn subscribe(
        &self,
        session: &Session,
        room: &Value,
        feeds: &[&Feed],
        seat: Seat,
    ) -> Result<Joined, JoinError> {
        let mut handle = session.attach(VIDEOROOM).await?;
        let ids = feeds.iter().map(|feed| &feed.id);
        let offer = videoroom::subscribe(&handle, room, ids).await?;
        let id = self.next_id();
        let (prepared, answer) = self.factory.answer(&offer, self.address(id))?;
        let arrival = self.run(id, prepared, seat);
        let outcome = match videoroom::start(&handle, room, answer).await {
            Ok(()) => self.wait(id, arrival, Some(&mut handle)).await,
            Err(error) => Err(error.into()),
        };
        self.kept(id, handle, outcome)
    }

    /// Publishes in a room. When it returns, others may subscribe.
    pub(super) async fn publish_in(
        &self,
        session: &Session,
        room: &Value,
        config: &SourceConfig,
    ) -> Result<(Feed, Joined), JoinError> {
        let mut handle = session.attach(VIDEOROOM).await?;
        let id = videoroom::join(&handle, room).await?;
        let peer = self.next_publisher();
        let (offered, offer) = self.offer(peer, Direction::SendOnly, config)?;
        let answer = videoroom::publish(&handle, offer).await?;
        let publishing = self.run_publisher(peer, offered.accept(&answer)?, config);
        let Publishing {
            source,
            sent,
            connected,
        } = publishing;
        let up = timeout(PATIENCE, async {
            // The server sends an event when the PeerConnection is up on its side.
            while let Some(event) = handle.events.recv().await {
                if event.get("janus").and_then(Value::as_str) == Some("webrtcup") {
                    break;
                }
                if let Some(candidate) = candidate(&event) {
                    self.load.add_candidate(peer, candidate);
                }
            }
            connected.await
        });
        let outcome = match up.await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(JoinError::NotConnected),
        };
        handle.events.close();
        let joined = self.kept(peer, handle, outcome)?;
        Ok((Feed { id, source, sent }, joined))
    }

    /// Creates a room whose endpoints all publish, and then watch each other.
    pub(super) async fn confer(
        &self,
        conference: &Conference,
        connection: Option<&Connection>,
        member: &mut Member,
    ) -> Result<(), JoinError> {
        let Conference {
            endpoints,
            form,
            config,
            ..
        } = conference;
        let feeds = self
            .convene(*endpoints, config, &conference.members, connection, member)
            .await?;
        let room = member.room_id();
        let (room, feeds) = (&room, &feeds);
        let attending = member
            .endpoints
            .iter_mut()
            .enumerate()
            .map(|(n, endpoint)| {
                let others: Vec<&Feed> = feeds
                    .iter()
                    .enumerate()
                    .filter(|(at, _)| *at != n)
                    .map(|(_, feed)| feed)
                    .collect();
                let stands_for = u32::from(n == 0 || !conference.counts_once);
                async move {
                    self.attend(endpoint, room, &others, *form, stands_for)
                        .await
                }
            });
        let outcomes = join_all(attending).await;
        let mut last = None;
        let failures = outcomes.into_iter().filter_map(Result::err);
        let failed = failures.map(|error| last = Some(error)).count();
        match last {
            Some(error) if failed == member.endpoints.len() => Err(error),
            // The endpoints that joined are measured, and the others count as missing.
            Some(error) => {
                self.failed(&error);
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Creates a room, and lets `count` endpoints publish in it.
    pub(super) async fn convene(
        &self,
        count: u32,
        config: &SourceConfig,
        members: &Map<String, Value>,
        connection: Option<&Connection>,
        member: &mut Member,
    ) -> Result<Vec<Feed>, JoinError> {
        let Some(first) = connection else {
            return Err(JoinError::NotConnected);
        };
        let room = Room::create(first, count, members).await?;
        let id = room.id.clone();
        member.room = Some(room);
        let publishing = (0..count).map(|n| {
            let connection = self.connections.iter().cycle().nth(n as usize);
            let id = &id;
            async move {
                let mut endpoint = Endpoint::new(connection).await?;
                let published = self.publish_in(&endpoint.session, id, config).await;
                let published = published.map(|(feed, joined)| {
                    endpoint.add(joined);
                    feed
                });
                Ok::<_, JoinError>((endpoint, published))
            }
        });
        let (mut feeds, mut failure) = (Vec::new(), None);
        for outcome in join_all(publishing).await {
            match outcome {
                Ok((endpoint, published)) => {
                    member.endpoints.push(endpoint);
                    match published {
                        Ok(feed) => feeds.push(feed),
                        Err(error) => failure = Some(error),
                    }
                }
                Err(error) => failure = Some(error),
            }
        }
        failure.map_or(Ok(feeds), Err)
    }
}
