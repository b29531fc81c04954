//! What participants do with the server until they have media.

use std::net::SocketAddr;
use std::sync::Arc;

use futures_util::future::join_all;
use portunus_sdp::Direction;
use serde_json::{Map, Value, json};
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::member::{Endpoint, Member};
use super::{Arrival, JoinError, PATIENCE, Seat, Shared};
use crate::client::{Broadcast, Connection, Handle, Session};
use crate::scenario::audiobridge::{self, AUDIOBRIDGE};
use crate::scenario::hall::{Hall, Place};
use crate::scenario::mountpoint::STREAMING;
use crate::scenario::telephone::Line;
use crate::scenario::videoroom::{self, Room, VIDEOROOM};
use crate::source::{Sent, SourceConfig, spread};
use crate::viewer::{NewPeer, Offered, PUBLISHERS, PeerId, PrepareError, Prepared};

const ECHO_TEST: &str = "janus.plugin.echotest";

/// What a participant does.
#[derive(Debug, Clone)]
pub(in crate::scenario) enum Act {
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
    /// Watches feeds of a video room.
    Subscribe(Arc<Audience>),
    /// Several who all publish and watch each other in a room of their own.
    Confer(Arc<Conference>),
    /// Takes a place in an audio room.
    Meet(Arc<Hall>),
    /// Registers at the far end and calls it.
    Call(Arc<Line>),
}

/// How many PeerConnections one who watches several feeds has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::scenario) enum Form {
    /// One for each feed.
    PerFeed,
    /// One for all.
    Multistream,
}

/// What is to be watched in a room.
#[derive(Debug)]
pub(in crate::scenario) struct Audience {
    pub(in crate::scenario) room: Value,
    pub(in crate::scenario) feeds: Vec<Feed>,
    pub(in crate::scenario) form: Form,
}

/// What one publishes in a room.
#[derive(Debug, Clone)]
pub(in crate::scenario) struct Feed {
    /// By which the server knows it.
    id: Value,
    /// As the load threads know it.
    source: usize,
    sent: Arc<Sent>,
}

impl Feed {
    /// Packets of it that have been sent so far.
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
    /// Further members of the request that makes the room.
    pub(in crate::scenario) members: Map<String, Value>,
    /// The room is what counts as a participant, and not each endpoint.
    pub(in crate::scenario) counts_once: bool,
}

impl Shared {
    /// Joins; `member` is what has to be ended if that fails half-way.
    pub(super) async fn enter(
        &self,
        act: &Act,
        connection: Option<&Connection>,
        member: &mut Member,
    ) -> Result<(), JoinError> {
        match act {
            Act::Watch { mountpoint, source } => {
                let mut endpoint = Endpoint::new(connection).await?;
                let outcome = self.watch(&endpoint.session, mountpoint, *source).await;
                let outcome = outcome.map(|peer| endpoint.add(peer));
                member.endpoints.push(endpoint);
                outcome
            }
            Act::Whep {
                url,
                token,
                source,
                config,
            } => {
                let id = self.next_id();
                let (offered, offer) = self.offer(id, Direction::RecvOnly, config)?;
                let (token, trust) = (token.as_deref(), &self.manners.trust);
                let broadcast = Broadcast::offer(url, token, trust, offer).await?;
                let prepared = offered.accept(&broadcast.answer)?;
                *member = Member::whep(broadcast);
                let arrival = self.run(id, prepared, Seat::of(vec![*source]));
                member.broadcast_peer = Some(id);
                self.wait(id, arrival, None).await
            }
            Act::Echo(config) => {
                let mut endpoint = Endpoint::new(connection).await?;
                let outcome = self.echo(&endpoint.session, config).await;
                let outcome = outcome.map(|peer| endpoint.add(peer));
                member.endpoints.push(endpoint);
                outcome
            }
            Act::Subscribe(audience) => {
                let mut endpoint = Endpoint::new(connection).await?;
                let feeds: Vec<&Feed> = audience.feeds.iter().collect();
                let watching = self.attend(&mut endpoint, &audience.room, &feeds, audience.form, 1);
                let outcome = watching.await;
                member.endpoints.push(endpoint);
                outcome
            }
            Act::Confer(conference) => self.confer(conference, connection, member).await,
            Act::Meet(hall) => {
                let mut endpoint = Endpoint::new(connection).await?;
                let place = member.place.insert(hall.take_place());
                let outcome = self.meet(&endpoint.session, hall, place).await;
                let outcome = outcome.map(|peer| endpoint.add(peer));
                member.endpoints.push(endpoint);
                outcome
            }
            Act::Call(line) => {
                let mut endpoint = Endpoint::new(connection).await?;
                let outcome = self.call(&endpoint.session, line).await;
                let outcome = outcome.map(|peer| endpoint.add(peer));
                member.endpoints.push(endpoint);
                outcome
            }
        }
    }

    async fn watch(
        &self,
        session: &Session,
        mountpoint: &Value,
        source: usize,
    ) -> Result<(PeerId, Handle), JoinError> {
        let mut handle = session.attach(STREAMING).await?;
        let watch = json!({ "request": "watch", "id": mountpoint });
        let reply = handle.message(watch, None).await?;
        let offer = videoroom::description(&reply, "watch")?;
        let id = self.next_id();
        let (prepared, answer) = self.factory.answer(&offer, self.address(id))?;
        let arrival = self.run(id, prepared, Seat::of(vec![source]));
        let answer = json!({ "type": "answer", "sdp": answer });
        let start = json!({ "request": "start" });
        let started = handle.message(start, Some(answer)).await;
        let outcome = match started {
            Ok(_) => self.wait(id, arrival, Some(&mut handle)).await,
            Err(error) => Err(error.into()),
        };
        self.kept(id, outcome).map(|id| (id, handle))
    }

    async fn echo(
        &self,
        session: &Session,
        config: &SourceConfig,
    ) -> Result<(PeerId, Handle), JoinError> {
        let mut handle = session.attach(ECHO_TEST).await?;
        let id = self.next_id();
        let (offered, offer) = self.offer(id, Direction::SendRecv, config)?;
        let traffic = &config.traffic;
        let (audio, video) = (traffic.audio_bps > 0, traffic.video_bps > 0);
        let body = json!({ "request": "start", "audio": audio, "video": video });
        let offer = json!({ "type": "offer", "sdp": offer });
        let reply = handle.message(body, Some(offer)).await?;
        let mut prepared = offered.accept(&videoroom::description(&reply, "start")?)?;
        prepared.send(config, spread(self.next_turn()));
        let arrival = self.run(id, prepared, Seat::of(Vec::new()));
        let outcome = self.wait(id, arrival, Some(&mut handle)).await;
        self.kept(id, outcome).map(|id| (id, handle))
    }

    async fn meet(
        &self,
        session: &Session,
        hall: &Hall,
        place: &mut Place,
    ) -> Result<(PeerId, Handle), JoinError> {
        let mut handle = session.attach(AUDIOBRIDGE).await?;
        let id = self.next_id();
        let hearing = place.hearing();
        let (codec, name) = hall.codec();
        let address = self.load.address(id, hearing.keeps);
        let listens = place.listens_only();
        let (offered, offer) = self.factory.offer_voice(address, codec, listens)?;
        let room = place.room().cloned().unwrap_or_default();
        let muted = place.is_muted();
        let answer = audiobridge::join(&handle, &room, name, muted, offer).await?;
        let mut prepared = offered.accept(&answer)?;
        if let Some(speaking) = place.speaking() {
            prepared.speak(speaking);
        }
        place.seat(id);
        let seat = Seat {
            hearing: Some(hearing),
            ..Seat::of(Vec::new())
        };
        let arrival = self.run(id, prepared, seat);
        let outcome = self.wait(id, arrival, Some(&mut handle)).await;
        self.kept(id, outcome).map(|id| (id, handle))
    }

    /// Watches all of `feeds` in the form that is asked for, and stands for `stands_for` participants.
    async fn attend(
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
    ) -> Result<(PeerId, Handle), JoinError> {
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
        self.kept(id, outcome).map(|id| (id, handle))
    }

    /// Publishes in a room; others may subscribe when it returns.
    pub(super) async fn publish_in(
        &self,
        session: &Session,
        room: &Value,
        config: &SourceConfig,
    ) -> Result<(Feed, PeerId, Handle), JoinError> {
        let mut handle = session.attach(VIDEOROOM).await?;
        let id = videoroom::join(&handle, room).await?;
        let peer = self.next_publisher();
        let (offered, offer) = self.offer(peer, Direction::SendOnly, config)?;
        let answer = videoroom::publish(&handle, offer).await?;
        let (source, sent, connected) = self.run_publisher(peer, offered.accept(&answer)?, config);
        let up = timeout(PATIENCE, async {
            // The server says so when it is up on its side.
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
        let peer = self.kept(peer, outcome)?;
        Ok((Feed { id, source, sent }, peer, handle))
    }

    /// A room whose endpoints all publish, and then all watch each other.
    async fn confer(
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
            // Those who are there are measured, and the others are missed.
            Some(error) => {
                self.failed(&error);
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Makes a room and lets `count` publish in it.
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
                let published = published.map(|(feed, peer, handle)| {
                    endpoint.add((peer, handle));
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

    fn may_check(&self, id: PeerId) -> bool {
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

    /// Hands one who publishes to the load threads: the id of its source, and a channel that tells
    /// when it is connected.
    pub(super) fn run_publisher(
        &self,
        id: PeerId,
        mut prepared: Prepared,
        config: &SourceConfig,
    ) -> (usize, Arc<Sent>, oneshot::Receiver<()>) {
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
        (source, sent, connected)
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
        id: PeerId,
        outcome: Result<(), JoinError>,
    ) -> Result<PeerId, JoinError> {
        if outcome.is_err() {
            let mut state = self.state();
            state.arriving.remove(&id);
            state.connecting.remove(&id);
            drop(state);
            self.load.remove(id);
        }
        outcome.map(|()| id)
    }
}

/// A candidate of the server's.
fn candidate(event: &Value) -> Option<String> {
    let candidate = event.pointer("/candidate/candidate")?;
    candidate.as_str().map(str::to_owned)
}
