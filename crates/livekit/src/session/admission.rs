//! The join of a participant.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use livekit_protocol::{
    DisconnectReason, IceServer, JoinResponse, ServerInfo, client_info, participant_info,
    server_info,
};
use portunus_core::{Gateway, Purse, Requester};
use portunus_room::{Join, Profile, Refusal, SubscriberJoin, TalkSettings};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

use super::data_tracks::DataWishes;
use super::quality::{MEASURING, Wanted};
use super::wishes::Wishes;
use super::{CONNECT_LIMIT, EVENTS, INPUTS, Peer, Permissions, Session};
use crate::config::LiveKitConfig;
use crate::frame::Frame;
use crate::hall::{Event, Hall, Input, Member, Person, Reception, Role, Wire, codecs, farewell};
use crate::join_parameters::JoinParameters;
use crate::link::{Link, LinkError};
use crate::plugin::LiveKitPlugin;
use crate::token::{Grants, Renewal};

/// The version of LiveKit's server whose protocol this door speaks. Clients want to know it.
const VERSION: &str = "1.13.11";

/// The version of the signalling protocol.
const PROTOCOL: i32 = 17;

/// Seconds between the pings of clients, and until a silent server counts as gone.
const PING_INTERVAL: i32 = 5;
const PING_TIMEOUT: i32 = 15;

/// How long the answer to an offer within the join waits after the `join` to a client in Go. It sets
/// its own offer while it handles the `join`, and fails if the answer comes before it has done so.
const AFTER_JOIN: Duration = Duration::from_millis(50);

/// A client that joins.
#[derive(Debug)]
pub(crate) struct Joining<'a> {
    pub(crate) gateway: &'a Gateway,
    pub(crate) config: &'a LiveKitConfig,
    pub(crate) plugin: &'a LiveKitPlugin,
    pub(crate) hall: Arc<Hall>,
    pub(crate) identity: String,
    /// The id of its session.
    pub(crate) sid: String,
    /// When it was let in.
    pub(crate) ticket: u64,
    pub(crate) claims: Grants,
    /// Makes tokens for reconnects.
    pub(crate) token: Renewal,
    pub(crate) permissions: Permissions,
    pub(crate) parameters: JoinParameters,
    pub(crate) requester: Requester,
}

/// The reason why a client cannot join.
#[derive(Debug, thiserror::Error)]
pub(crate) enum JoinError {
    /// The core has no place for it.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// The room refuses it.
    #[error(transparent)]
    Room(#[from] Refusal),
    /// Another client has its identity meanwhile.
    #[error("another client has the identity")]
    Replaced,
}

/// A client that has joined.
#[derive(Debug)]
pub(crate) struct Joined {
    pub(crate) wire: Wire,
    pub(crate) inputs: mpsc::Sender<Input>,
    pub(crate) member: Arc<Member>,
    /// Pays for the client's requests.
    pub(crate) purse: Purse,
}

impl Joining<'_> {
    /// Joins the room and starts the session. The first message waits for the client.
    pub(crate) async fn join(self) -> Result<Joined, JoinError> {
        let (events, happening) = mpsc::channel(EVENTS);
        let (inputs, requests) = mpsc::channel(INPUTS);
        let (identity, hall) = (self.identity.clone(), self.hall.clone());
        let sid = (self.sid.clone(), self.ticket);
        let reception = self.reception();
        let member = Member::new(identity, sid, hall, reception, events, inputs.clone());
        let member = Arc::new(member);
        let single = self.parameters.single;
        let link = Link::open(self.gateway, self.requester, self.plugin, &member, single).await?;
        let peer = |role| {
            let handle = member.handle(role)?.clone();
            let member = member.clone();
            Some(Arc::new(Peer { handle, member }))
        };
        let publisher = peer(Role::Publisher).ok_or_else(|| LinkError {
            code: 0,
            text: "the handle has ended".to_owned(),
        })?;
        let wire = member.out.connect();
        let mut session = Session {
            member: member.clone(),
            link,
            publisher,
            subscriber: peer(Role::Subscriber),
            client: self.parameters.client.clone(),
            wishes: Wishes::new(self.parameters.auto_subscribe),
            refused: HashMap::new(),
            missing: HashMap::new(),
            data: DataWishes::new(self.parameters.auto_data),
            unbound: Vec::new(),
            publisher_up: false,
            asked: false,
            was_up: false,
            deadline: Some((
                Instant::now() + CONNECT_LIMIT,
                DisconnectReason::JoinFailure,
            )),
            leaving: None,
            gathering: None,
            wanted: Wanted::default(),
            balancing: None,
            measuring: Instant::now() + MEASURING / 2,
            refreshing: Instant::now(),
            token: self.token.clone(),
            breaks: None,
            ended: None,
        };
        let purse = self.gateway.memory().purse(self.requester.address());
        match self.enter(&mut session) {
            Ok(()) => drop(tokio::spawn(session.begin(
                self.parameters,
                requests,
                happening,
            ))),
            Err(JoinError::Replaced) => {
                member.out.message(farewell());
                member.out.close();
            }
            Err(error) => return Err(error),
        }
        Ok(Joined {
            wire,
            inputs,
            member,
            purse,
        })
    }

    /// Returns how the client wants media.
    fn reception(&self) -> Reception {
        let client = &self.parameters.client;
        // Firefox plays the tracks of one stream in different elements otherwise.
        let is_firefox = client.browser.eq_ignore_ascii_case("firefox");
        let may_pause = self
            .parameters
            .allow_pause
            .unwrap_or(self.config.allow_pause);
        Reception {
            may_pause,
            in_sync: self.hall.options().sync_streams && !is_firefox && client.protocol > 9,
        }
    }

    /// Enters the room, and tells the client what is there.
    fn enter(&self, session: &mut Session) -> Result<(), JoinError> {
        let (hall, id) = (&self.hall, &session.member.id.clone());
        let mut state = hall.room.lock();
        if state.is_destroyed() {
            return Err(Refusal::NotInRoom.into());
        }
        if hall.is_barred(&session.member.sid) || hall.has_later(&state, &session.member) {
            return Err(JoinError::Replaced);
        }
        hall.replace(&mut state, id);
        // Its node ends that session.
        state.yield_id(id);
        state.take_claim(id, &session.member.sid);
        let mut person = Person::new(session.member.clone());
        person.kind = self.permissions.kind;
        person.kind_details = self.permissions.kind_details.clone();
        person.permission = self.permissions.permission.clone();
        person.attributes = self.claims.attributes.clone();
        person.attributes.extend(self.parameters.attributes.clone());
        person.client_protocol = self.parameters.client.client_protocol;
        person.capabilities = self.parameters.client.capabilities.clone();
        person.state = participant_info::State::Joined;
        let metadata = match self.parameters.metadata.is_empty() {
            true => self.claims.metadata.clone(),
            false => self.parameters.metadata.clone(),
        };
        let text = |text: String| (!text.is_empty()).then_some(text);
        let before = {
            let mut people = hall.people();
            let before = people.remove(id);
            people.add(id, person);
            before
        };
        let join = Join {
            id: id.clone(),
            profile: Profile {
                display: text(self.claims.name.clone()),
                metadata: text(metadata),
            },
            permissions: portunus_room::Permissions::ALL,
            talk: TalkSettings::default(),
        };
        if let Err(refusal) = state.join(session.publisher.clone(), join) {
            let mut people = hall.people();
            people.remove(id);
            if let Some(before) = before {
                people.add(id, before);
            }
            return Err(refusal.into());
        }
        hall.is_joined();
        hall.note(&mut state, id);
        let joined = Arc::new(self.joined(&state, session));
        session.member.out.send(&joined);
        if let Some(subscriber) = session.subscriber.clone() {
            let join = SubscriberJoin {
                own_data: true,
                autoupdate: true,
                streams: session.wanted(&state),
                ..SubscriberJoin::default()
            };
            match state.join_subscriber(subscriber, join, true) {
                Ok(offer) => {
                    session.member.offer(&state, offer);
                    // livekit-server sends no such offer to who may not subscribe: some clients
                    // never answer it.
                    if !self.permissions.permission.can_subscribe {
                        session.member.answered();
                    }
                }
                Err(refusal) => {
                    state.undo_join(id);
                    hall.people().remove(id);
                    return Err(refusal.into());
                }
            }
        } else {
            state.take_subscriber(session.publisher.clone())?;
        }
        Ok(())
    }

    fn joined(&self, state: &portunus_room::State, session: &Session) -> Frame {
        let hall = &self.hall;
        let mut people = hall.people();
        let mut others = Vec::new();
        for other in state.people().map(portunus_room::Participant::id) {
            if *other != session.member.id
                && let Some(info) = people.other(state, other)
                && !people.is_hidden(other)
            {
                others.push(info);
            }
        }
        let participant = people.info(state, &session.member.id);
        drop(people);
        let permission = &self.permissions.permission;
        let join = JoinResponse {
            room: Some(hall.info(state)),
            participant,
            server_version: VERSION.to_owned(),
            ice_servers: ice_servers(self.gateway, self.config),
            subscriber_primary: session.subscriber.is_some()
                && permission.can_subscribe
                && self.parameters.client.protocol > 2,
            ping_timeout: PING_TIMEOUT,
            ping_interval: PING_INTERVAL,
            server_info: Some(server_info()),
            sif_trailer: hall.sif_trailer.clone(),
            enabled_publish_codecs: codecs(state),
            fast_publish: permission.can_publish,
            ..JoinResponse::default()
        };
        Frame::joined(join, others)
    }
}

impl Session {
    /// Takes the parts of the join that only the session's task may wait for, and serves.
    async fn begin(
        mut self,
        parameters: JoinParameters,
        requests: mpsc::Receiver<Input>,
        events: mpsc::Receiver<Event>,
    ) {
        for request in parameters.add_tracks {
            self.add_track(request);
        }
        if self.subscriber.is_none() {
            // The first offer comes unasked, and may have room for tracks.
            self.asked = true;
            self.reconcile();
        }
        if let Some(offer) = parameters.offer {
            if self.client.sdk() == client_info::Sdk::Go {
                sleep(AFTER_JOIN).await;
            }
            self.offered(offer).await;
        }
        self.run(requests, events).await;
    }
}

/// Returns the description of the server.
pub(crate) fn server_info() -> ServerInfo {
    ServerInfo {
        edition: server_info::Edition::Standard.into(),
        version: VERSION.to_owned(),
        protocol: PROTOCOL,
        node_id: "ND_portunus".to_owned(),
        agent_protocol: 1,
        ..ServerInfo::default()
    }
}

/// Returns the TURN server of this server, if there is one, and the configured ones.
fn ice_servers(gateway: &Gateway, config: &LiveKitConfig) -> Vec<IceServer> {
    let configured = config.ice_servers.iter().map(|server| IceServer {
        urls: server.urls.clone(),
        username: server.username.clone(),
        credential: server.credential.clone(),
    });
    let own = gateway.turn().into_iter().map(|turn| {
        let server = turn.ice_server();
        IceServer {
            urls: server.urls,
            username: server.username,
            credential: server.credential,
        }
    });
    own.chain(configured).collect()
}
