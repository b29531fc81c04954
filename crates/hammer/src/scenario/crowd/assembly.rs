//! Participants of LiveKit's rooms: each has a connection, a PeerConnection to publish, and one for
//! all that it receives.

use std::mem;
use std::sync::Arc;

use futures_util::future::join_all;
use livekit_protocol::{SessionDescription, SignalTarget, signal_request, signal_response};
use portunus_sdp::Direction;
use tokio::time::timeout;

use super::announcements::{answer, candidate, offer_of, tracks};
use super::conference::Feed;
use super::guest::{Guest, Line, Receiving};
use super::join_error::{JoinError, PATIENCE};
use super::member::Member;
use super::shared::{Publishing, Seat, Shared};
use crate::client::ClientError;
use crate::client::livekit::{ApiKey, Grants, Opened, Pass, Responses, Signal};
use crate::source::SourceConfig;
use crate::viewer::{Answered, PeerId};

use signal_request::Message as Request;
use signal_response::Message as Response;

/// The most candidates of a PeerConnection that wait until it runs.
const MAX_CANDIDATES: usize = 64;

/// A LiveKit server, and the key for its rooms.
#[derive(Debug, Clone)]
pub(in crate::scenario) struct Host {
    /// The server's URL.
    pub(in crate::scenario) url: String,
    pub(in crate::scenario) key: ApiKey,
}

/// A room with publishers, which others visit.
#[derive(Debug)]
pub(in crate::scenario) struct Venue {
    pub(in crate::scenario) host: Host,
    /// The room's name.
    pub(in crate::scenario) room: String,
    pub(in crate::scenario) feeds: Vec<Feed>,
}

/// A room whose participants all publish and watch each other.
#[derive(Debug)]
pub(in crate::scenario) struct Assembly {
    pub(in crate::scenario) host: Host,
    pub(in crate::scenario) endpoints: u32,
    pub(in crate::scenario) config: Arc<SourceConfig>,
    /// The room counts as one participant, instead of each endpoint.
    pub(in crate::scenario) counts_once: bool,
}

/// A participant that is about to have media.
#[derive(Debug)]
struct Newcomer {
    signal: Signal,
    responses: Responses,
    pass: Pass,
    /// Its PeerConnections that run.
    peers: Vec<PeerId>,
    publisher: Side,
    subscriber: Side,
    /// The server's last offer, if it is not answered yet.
    offer: Option<SessionDescription>,
    /// Answers the server's offers after the first.
    receiving: Option<Receiving>,
}

/// One of its PeerConnections.
#[derive(Debug, Default)]
struct Side {
    peer: Option<PeerId>,
    /// Candidates that came before it runs.
    candidates: Vec<String>,
}

impl Side {
    /// Takes a candidate of the server.
    fn take(&mut self, shared: &Shared, candidate: String) {
        match self.peer {
            Some(peer) => shared.load.add_candidate(peer, candidate),
            None if self.candidates.len() < MAX_CANDIDATES => self.candidates.push(candidate),
            None => {}
        }
    }

    /// Notes that it runs.
    fn runs(&mut self, shared: &Shared, peer: PeerId) {
        self.peer = Some(peer);
        for candidate in mem::take(&mut self.candidates) {
            shared.load.add_candidate(peer, candidate);
        }
    }
}

impl Newcomer {
    /// Returns the next response that is not about candidates and offers.
    async fn next(&mut self, shared: &Shared) -> Result<Response, JoinError> {
        loop {
            let response = self.responses.recv().await.ok_or(ClientError::Closed)?;
            match response {
                Response::Trickle(trickle) => {
                    let side = match trickle.target() {
                        SignalTarget::Publisher => &mut self.publisher,
                        SignalTarget::Subscriber => &mut self.subscriber,
                    };
                    if let Some(candidate) = candidate(&trickle) {
                        side.take(shared, candidate);
                    }
                }
                Response::Offer(offer) => match &mut self.receiving {
                    Some(receiving) => self.signal.send(receiving.answer(shared, &offer)?),
                    None => self.offer = Some(offer),
                },
                Response::Leave(leave) => {
                    let reason = leave.reason().as_str_name();
                    return Err(JoinError::Dismissed(reason.to_owned()));
                }
                response => return Ok(response),
            }
        }
    }

    /// Waits for the server's first offer.
    async fn offer(&mut self, shared: &Shared) -> Result<SessionDescription, JoinError> {
        loop {
            if let Some(offer) = self.offer.take() {
                return Ok(offer);
            }
            // The answers to its requests have come, so only offers are of interest.
            let response = self.responses.recv().await.ok_or(ClientError::Closed)?;
            match response {
                Response::Offer(offer) => return Ok(offer),
                Response::Trickle(trickle) if trickle.target() == SignalTarget::Subscriber => {
                    if let Some(candidate) = candidate(&trickle) {
                        self.subscriber.take(shared, candidate);
                    }
                }
                Response::Leave(leave) => {
                    let reason = leave.reason().as_str_name();
                    return Err(JoinError::Dismissed(reason.to_owned()));
                }
                _ => {}
            }
        }
    }

    /// Becomes a participant whose connection is served in the background.
    fn settle(self, shared: &Arc<Shared>) -> Guest {
        let line = Line {
            signal: self.signal,
            responses: self.responses,
            pass: self.pass,
            receiving: self.receiving,
        };
        Guest::new(line, self.peers, shared)
    }
}

impl Shared {
    /// Joins a room.
    async fn arrive(
        &self,
        host: &Host,
        room: &str,
        identity: &str,
        grants: Grants,
    ) -> Result<Newcomer, JoinError> {
        let token = host.key.token(room, identity, grants)?;
        let opened = Signal::open(&host.url, &token, &self.manners.trust).await?;
        let Opened {
            signal,
            responses,
            join,
        } = opened;
        if let Some(info) = join.server_info {
            self.state().server.get_or_insert(info);
        }
        let sid = join.participant.map(|it| it.sid).unwrap_or_default();
        let url = host.url.clone();
        Ok(Newcomer {
            signal,
            responses,
            pass: Pass { url, token, sid },
            peers: Vec::new(),
            publisher: Side::default(),
            subscriber: Side::default(),
            offer: None,
            receiving: None,
        })
    }

    /// Publishes audio and video. When it returns, others may receive these.
    async fn publish_as(
        &self,
        newcomer: &mut Newcomer,
        config: &SourceConfig,
    ) -> Result<Feed, JoinError> {
        let peer = self.next_publisher();
        let (offered, offer) = self.offer(peer, Direction::SendOnly, config)?;
        let tracks = tracks(&offer, config);
        let mut missing: Vec<String> = tracks.iter().map(|track| track.cid.clone()).collect();
        for track in tracks {
            newcomer.signal.send(Request::AddTrack(track));
        }
        let negotiating = timeout(PATIENCE, async {
            while !missing.is_empty() {
                match newcomer.next(self).await? {
                    Response::TrackPublished(published) => {
                        missing.retain(|cid| *cid != published.cid);
                    }
                    Response::RequestResponse(refused) => {
                        return Err(JoinError::Client(ClientError::Refused {
                            request: "add_track".to_owned(),
                            code: refused.reason.into(),
                            reason: refused.reason().as_str_name().to_owned(),
                        }));
                    }
                    _ => {}
                }
            }
            newcomer.signal.send(offer_of(offer));
            loop {
                if let Response::Answer(answer) = newcomer.next(self).await? {
                    return Ok(answer);
                }
            }
        });
        let answer = negotiating.await.map_err(|_| JoinError::NotConnected)??;
        let publishing = self.run_publisher(peer, offered.accept(&answer.sdp)?, config);
        let Publishing {
            source,
            sent,
            mut connected,
        } = publishing;
        newcomer.peers.push(peer);
        newcomer.publisher.runs(self, peer);
        let up = timeout(PATIENCE, async {
            loop {
                tokio::select! {
                    up = &mut connected => return up.map_err(|_| JoinError::NotConnected),
                    response = newcomer.next(self) => drop(response?),
                }
            }
        });
        let outcome = up.await.unwrap_or(Err(JoinError::NotConnected));
        if outcome.is_err() {
            self.state().connecting.remove(&peer);
        }
        outcome?;
        Ok(Feed::new(peer.into(), source, sent))
    }

    /// Receives all that the server offers: `feeds`. Counts as `stands_for` participants.
    async fn receive_as(
        &self,
        newcomer: &mut Newcomer,
        feeds: &[&Feed],
        stands_for: u32,
    ) -> Result<(), JoinError> {
        let offer = timeout(PATIENCE, newcomer.offer(self)).await;
        let offer = offer.map_err(|_| JoinError::NotConnected)??;
        let id = self.next_id();
        let answered = self.factory.answer_first(&offer.sdp, self.address(id))?;
        let Answered {
            prepared,
            answering,
            text,
        } = answered;
        let seat = Seat {
            sources: feeds.iter().map(|feed| feed.source()).collect(),
            stands_for,
            limit_bps: self.limit(),
            hearing: None,
        };
        let mut arrival = self.run(id, prepared, seat);
        newcomer.peers.push(id);
        newcomer.subscriber.runs(self, id);
        newcomer.receiving = Some(Receiving {
            peer: id,
            answering,
            answer: text.clone(),
        });
        newcomer.signal.send(answer(&offer, text));
        let arrived = timeout(PATIENCE, async {
            loop {
                tokio::select! {
                    arrived = &mut arrival => return match arrived {
                        Ok(Ok(())) => Ok(()),
                        Ok(Err(reason)) => Err(JoinError::Ended(reason)),
                        Err(_) => Err(JoinError::NoMedia),
                    },
                    response = newcomer.next(self) => drop(response?),
                }
            }
        });
        let outcome = arrived.await.unwrap_or(Err(JoinError::NoMedia));
        if outcome.is_err() {
            self.state().arriving.remove(&id);
        }
        outcome
    }

    /// Visits a room, and receives all that is published there.
    pub(super) async fn visit(
        self: &Arc<Self>,
        venue: &Venue,
        member: &mut Member,
    ) -> Result<(), JoinError> {
        let Venue { host, room, feeds } = venue;
        let identity = format!("v{:016x}", rand::random::<u64>());
        let arriving = self.arrive(host, room, &identity, Grants::Subscribe);
        let mut newcomer = arriving.await?;
        let feeds: Vec<&Feed> = feeds.iter().collect();
        let outcome = self.receive_as(&mut newcomer, &feeds, 1).await;
        member.guests.push(newcomer.settle(self));
        outcome
    }

    /// Lets the participants of a new room publish, and then watch each other.
    pub(super) async fn assemble(
        self: &Arc<Self>,
        assembly: &Assembly,
        member: &mut Member,
    ) -> Result<(), JoinError> {
        let Assembly {
            host,
            endpoints,
            config,
            counts_once,
        } = assembly;
        let room = room_name();
        let published = self.publishers(host, &room, *endpoints, config, Grants::Both);
        let published = published.await;
        let (newcomers, feeds) = published.into_parts(self, member)?;
        let watching = newcomers.into_iter().enumerate().map(|(n, mut newcomer)| {
            let others = feeds.iter().enumerate().filter(|(at, _)| *at != n);
            let others: Vec<&Feed> = others.map(|(_, feed)| feed).collect();
            let stands_for = u32::from(n == 0 || !counts_once);
            async move {
                let outcome = self.receive_as(&mut newcomer, &others, stands_for).await;
                (newcomer, outcome)
            }
        });
        let (mut last, mut failed) = (None, 0);
        for (newcomer, outcome) in join_all(watching).await {
            member.guests.push(newcomer.settle(self));
            if let Err(error) = outcome {
                last = Some(error);
                failed += 1;
            }
        }
        match last {
            Some(error) if failed == feeds.len() => Err(error),
            // The endpoints that joined are measured, and the others count as missing.
            Some(error) => {
                self.failed(&error);
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Lets `count` participants publish in a new room, and receive nothing. They become part of
    /// `member`.
    pub(super) async fn open_venue(
        self: &Arc<Self>,
        host: &Host,
        count: u32,
        config: &SourceConfig,
        member: &mut Member,
    ) -> Result<Venue, JoinError> {
        let room = room_name();
        let published = self.publishers(host, &room, count, config, Grants::Publish);
        let published = published.await;
        let (newcomers, feeds) = published.into_parts(self, member)?;
        let guests = newcomers.into_iter().map(|newcomer| newcomer.settle(self));
        member.guests.extend(guests);
        Ok(Venue {
            host: host.clone(),
            room,
            feeds,
        })
    }

    /// Lets `count` participants join and publish.
    async fn publishers(
        &self,
        host: &Host,
        room: &str,
        count: u32,
        config: &SourceConfig,
        grants: Grants,
    ) -> Published {
        let publishing = (0..count).map(|n| async move {
            let mut newcomer = self.arrive(host, room, &format!("p{n}"), grants).await?;
            let outcome = self.publish_as(&mut newcomer, config).await;
            Ok::<_, JoinError>((newcomer, outcome))
        });
        let mut published = Published::default();
        for outcome in join_all(publishing).await {
            match outcome {
                Ok((newcomer, outcome)) => {
                    published.newcomers.push(newcomer);
                    match outcome {
                        Ok(feed) => published.feeds.push(feed),
                        Err(error) => published.failure = Some(error),
                    }
                }
                Err(error) => published.failure = Some(error),
            }
        }
        published
    }
}

/// Participants that have joined, and what they publish.
#[derive(Debug, Default)]
struct Published {
    newcomers: Vec<Newcomer>,
    feeds: Vec<Feed>,
    /// The reason why one of them does not publish.
    failure: Option<JoinError>,
}

impl Published {
    /// Returns participants and feeds, in the same order. If one has failed, the others become part
    /// of `member`, which ends them.
    fn into_parts(
        self,
        shared: &Arc<Shared>,
        member: &mut Member,
    ) -> Result<(Vec<Newcomer>, Vec<Feed>), JoinError> {
        let Self {
            newcomers,
            feeds,
            failure,
        } = self;
        let Some(failure) = failure else {
            return Ok((newcomers, feeds));
        };
        let guests = newcomers
            .into_iter()
            .map(|newcomer| newcomer.settle(shared));
        member.guests.extend(guests);
        Err(failure)
    }
}

/// Returns the name of a new room.
fn room_name() -> String {
    format!("hammer-{:016x}", rand::random::<u64>())
}
