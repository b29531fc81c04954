//! What participants do with the server until they have media.

use std::sync::Arc;

use portunus_sdp::Direction;
use serde_json::{Value, json};

use super::assembly::{Assembly, Venue};
use super::calls::Line;
use super::conference::{Audience, Conference, Feed};
use super::hall::{Hall, Place};
use super::join_error::JoinError;
use super::member::{Endpoint, Joined, Member};
use super::shared::{Seat, Shared};
use crate::client::{Broadcast, Connection, Session, description};
use crate::scenario::plugins::audiobridge::{self, AUDIOBRIDGE};
use crate::scenario::plugins::streaming::STREAMING;
use crate::source::{SourceConfig, spread};

const ECHO_TEST: &str = "janus.plugin.echotest";

/// What a participant does.
#[derive(Debug, Clone)]
pub(in crate::scenario) enum Act {
    /// Watches a mountpoint of the streaming plugin.
    Watch {
        mountpoint: Value,
        /// The source's number in the load threads.
        source: usize,
    },
    /// Watches by WHEP.
    Whep {
        url: String,
        token: Option<String>,
        source: usize,
        config: Arc<SourceConfig>,
    },
    /// Sends to the echo test plugin, and receives the echo.
    Echo(Arc<SourceConfig>),
    /// Watches feeds of a video room.
    Subscribe(Arc<Audience>),
    /// Several endpoints that publish and watch each other in a room of their own.
    Confer(Arc<Conference>),
    /// Visits a room of LiveKit's protocol.
    Visit(Arc<Venue>),
    /// Several participants that publish and watch each other in a room of LiveKit's protocol.
    Assemble(Arc<Assembly>),
    /// Takes a place in an audio room.
    Meet(Arc<Hall>),
    /// Registers at the far end and calls it.
    Call(Arc<Line>),
}

impl Shared {
    /// Joins. `member` is ended if joining fails half-way.
    pub(super) async fn enter(
        self: &Arc<Self>,
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
            Act::Visit(venue) => self.visit(venue, member).await,
            Act::Assemble(assembly) => self.assemble(assembly, member).await,
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
    ) -> Result<Joined, JoinError> {
        let mut handle = session.attach(STREAMING).await?;
        let watch = json!({ "request": "watch", "id": mountpoint });
        let reply = handle.message(watch, None).await?;
        let offer = description(&reply, "watch")?;
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
        self.kept(id, handle, outcome)
    }

    async fn echo(&self, session: &Session, config: &SourceConfig) -> Result<Joined, JoinError> {
        let mut handle = session.attach(ECHO_TEST).await?;
        let id = self.next_id();
        let (offered, offer) = self.offer(id, Direction::SendRecv, config)?;
        let traffic = &config.traffic;
        let (audio, video) = (traffic.audio_bps > 0, traffic.video_bps > 0);
        let body = json!({ "request": "start", "audio": audio, "video": video });
        let offer = json!({ "type": "offer", "sdp": offer });
        let reply = handle.message(body, Some(offer)).await?;
        let mut prepared = offered.accept(&description(&reply, "start")?)?;
        prepared.send(config, spread(self.next_turn()));
        let arrival = self.run(id, prepared, Seat::of(Vec::new()));
        let outcome = self.wait(id, arrival, Some(&mut handle)).await;
        self.kept(id, handle, outcome)
    }

    async fn meet(
        &self,
        session: &Session,
        hall: &Hall,
        place: &mut Place,
    ) -> Result<Joined, JoinError> {
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
        self.kept(id, handle, outcome)
    }
}
