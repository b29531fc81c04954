//! The door: its keys, its rooms, and the way in.

use std::collections::HashMap;
use std::fmt;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use livekit_protocol::{DisconnectReason, RoomConfiguration, RoomEndReason, SyncState};
use portunus_audio::AudioThreads;
use portunus_core::{Credentials, Gateway, Purse, Requester};
use portunus_record::Whose;
use portunus_resources::SavedError;
use portunus_room::{CreateError, Refusal, RoomSettings, Rooms};
use portunus_sdp::CodecName;
use portunus_telephony::Telephony;
use tokio::sync::oneshot;

use crate::agents::Agents;
use crate::config::LiveKitConfig;
use crate::drain;
use crate::egress::{self, Egresses};
use crate::hall::{
    Entry, EntryRefusal, Event, Hall, Halls, Member, Reports, RoomNote, RoomOptions, Setup, now_ms,
    watch_others,
};
use crate::ids::IdKind;
use crate::ingress::{self, Ingresses};
use crate::join_parameters::{JoinParameters, ParametersError};
use crate::limits;
use crate::plugin::{LiveKitPlugin, PACKAGE, SharedPlugin};
use crate::refusals::Refusals;
use crate::saved::{Content, Store};
use crate::session::{JoinError, Joined, Joining, Permissions, server_info};
use crate::sip::{self, Sip};
use crate::token::{Grants, JoinFault, Keys, Renewal, TokenFault, Verified};
use crate::webhook::{WebhookConfig, Webhooks};

/// The longest identity, name of a participant, and name of a room, in bytes.
const MAX_NAME: usize = 256;

/// What a door may use of the server besides its gateway.
#[derive(Debug, Clone, Default)]
pub struct Means {
    /// The program that composes recordings of a room, as `portunus recordings compose` does. `None`
    /// disables egresses of whole rooms.
    pub composer: Option<PathBuf>,
    /// The threads that mix rooms for telephones, and the telephones. `None` disables telephones.
    pub telephones: Option<(AudioThreads, Telephony)>,
}

/// The state that all connections share.
pub(crate) struct Door {
    pub(crate) config: LiveKitConfig,
    pub(crate) keys: Keys,
    webhooks: Webhooks,
    pub(crate) agents: Agents,
    pub(crate) egresses: Egresses,
    pub(crate) ingresses: Ingresses,
    pub(crate) sip: Sip,
    pub(crate) rooms: Rooms,
    /// The bad input.
    pub(crate) refusals: Arc<Refusals>,
    plugin: Arc<LiveKitPlugin>,
    gateway: OnceLock<Gateway>,
    halls: Mutex<HashMap<String, Arc<Hall>>>,
}

impl fmt::Debug for Door {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Door").finish_non_exhaustive()
    }
}

/// A request to join, with its token checked.
#[derive(Debug)]
pub(crate) struct Admitted {
    pub(crate) claims: Grants,
    pub(crate) token: Renewal,
    pub(crate) permissions: Permissions,
    pub(crate) room: String,
    pub(crate) identity: String,
    pub(crate) parameters: JoinParameters,
}

/// The reason why a client is not let in.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EntryError {
    /// The token is missing or wrong.
    #[error(transparent)]
    Access(#[from] TokenFault),
    /// The token does not permit the join.
    #[error(transparent)]
    NotPermitted(#[from] JoinFault),
    /// The query is wrong.
    #[error(transparent)]
    Parameters(#[from] ParametersError),
    /// The identity or the room is missing or too long.
    #[error("{0}")]
    Name(&'static str),
    /// There is no such room, and joins make none.
    #[error("requested room does not exist")]
    NoRoom,
    /// The room cannot be made.
    #[error(transparent)]
    Create(#[from] CreateError),
    /// The client makes too many requests.
    #[error("{0}")]
    TooMany(String),
    /// The server takes no more participants.
    #[error("{0}")]
    Full(&'static str),
    /// The cluster has no home for a new room.
    #[error("{0}")]
    NoHome(String),
    /// The room, or its home, refuses the client.
    #[error(transparent)]
    Refused(#[from] EntryRefusal),
    /// The client cannot join.
    #[error(transparent)]
    Join(#[from] JoinError),
}

/// What a client gets that wants to resume.
#[derive(Debug)]
pub(crate) enum Resumed {
    /// Its session goes on.
    Session(Joined),
    /// It has to join anew.
    Gone,
}

/// The rooms of a door, which this does not keep.
#[derive(Debug)]
struct HallsOf(Weak<Door>);

impl Halls for HallsOf {
    fn find(&self, name: &str) -> Option<Arc<Hall>> {
        self.0.upgrade()?.hall(name).ok()
    }

    fn open(
        &self,
        name: &str,
        configuration: Option<&RoomConfiguration>,
    ) -> Result<Arc<Hall>, String> {
        let door = self.0.upgrade().ok_or("the server ends")?;
        let options = || {
            let options = RoomOptions::new(&door.config);
            match configuration {
                Some(configuration) => options.with_configuration(configuration),
                None => options,
            }
        };
        let hall = door.hall_with(name, Some(&options));
        hall.map_err(|error| error.to_string())
    }
}

impl Door {
    pub(crate) fn new(config: LiveKitConfig, rooms: Rooms) -> Self {
        let keys = Keys::new(config.keys.clone());
        Door {
            webhooks: Webhooks::default(),
            egresses: Egresses::default(),
            ingresses: Ingresses::default(),
            sip: Sip::default(),
            agents: Agents::new(keys.clone(), server_info()),
            keys,
            config,
            rooms,
            refusals: Arc::default(),
            plugin: Arc::default(),
            gateway: OnceLock::new(),
            halls: Mutex::default(),
        }
    }

    /// Returns the plugin of the participants' handles.
    pub(crate) fn plugin(&self) -> SharedPlugin {
        SharedPlugin(self.plugin.clone())
    }

    /// Lets clients in from now on.
    pub(crate) fn open(self: &Arc<Self>, gateway: Gateway, means: Means) -> Result<(), SavedError> {
        let (store, saved) = Store::open(self.config.save.clone())?;
        let halls: Arc<dyn Halls> = Arc::new(HallsOf(Arc::downgrade(self)));
        let facts = gateway.facts();
        let recorder = facts.recorder.in_folder(&self.config.egress.dir);
        let (media, ffmpeg) = (gateway.media().clone(), self.config.ffmpeg.clone());
        let address = facts.public_ips.first().copied().or(facts.local_ip);
        self.egresses.open(egress::Means {
            config: self.config.egress.clone(),
            ffmpeg: ffmpeg.clone(),
            composer: means.composer,
            media: media.clone(),
            recorder: recorder.on_behalf_of(Whose {
                plugin: PACKAGE,
                room: None,
            }),
            webhooks: self.webhooks.clone(),
            halls: halls.clone(),
        });
        self.ingresses.open(ingress::Means {
            config: self.config.ingress.clone(),
            ffmpeg,
            address: address.unwrap_or(Ipv4Addr::LOCALHOST.into()),
            port: self.config.port,
            tls: self.config.tls,
            media: media.clone(),
            webhooks: self.webhooks.clone(),
            halls: halls.clone(),
            store: store.clone(),
        });
        if let Some((audio, telephony)) = means.telephones {
            self.sip.open(sip::Means {
                audio,
                telephony,
                media,
                halls,
                store,
            });
        }
        // It is opened once.
        let _ = self.gateway.set(gateway);
        self.set_webhooks(&self.config.webhook);
        for content in saved {
            match content {
                Content::InboundTrunk(trunk) => self.sip.restore_inbound(trunk),
                Content::OutboundTrunk(trunk) => self.sip.restore_outbound(trunk),
                Content::Rule(rule) => self.sip.restore_rule(rule),
                Content::Ingress(info) => self.ingresses.restore(info),
            }
        }
        Ok(())
    }

    /// Takes other keys and webhooks over.
    pub(crate) fn configure(&self, config: &LiveKitConfig) {
        self.keys.replace(config.keys.clone());
        self.set_webhooks(&config.webhook);
    }

    fn set_webhooks(&self, config: &WebhookConfig) {
        if let Err(error) = self.webhooks.configure(config, &self.keys) {
            tracing::error!("there are no webhooks of LiveKit: {error}");
        }
    }

    /// Tells the clients of all rooms who speaks.
    pub(crate) fn send_speakers(&self) {
        let halls: Vec<Arc<Hall>> = self.halls().values().cloned().collect();
        for hall in halls {
            hall.send_speakers();
        }
    }

    /// Tells the clients of all rooms what was put off.
    pub(crate) fn send_batches(&self) {
        let halls: Vec<Arc<Hall>> = self.halls().values().cloned().collect();
        for hall in halls {
            hall.send_batch();
        }
    }

    /// Has clients join anew, some at a time, if the server is drained and the deadline is near.
    pub(crate) fn send_elsewhere(&self) {
        let Some(gateway) = self.gateway.get().filter(|it| it.check_drain().is_err()) else {
            return;
        };
        let chance = drain::chance(gateway.draining().and_then(|drain| drain.left));
        if chance == 0.0 {
            return;
        }
        let halls: Vec<Arc<Hall>> = self.halls().values().cloned().collect();
        for hall in halls {
            let members: Vec<Arc<Member>> = hall.people().members().cloned().collect();
            for member in members {
                if rand::random::<f64>() < chance {
                    let others = gateway.cluster().map(|cluster| cluster.others());
                    member
                        .out
                        .message(drain::farewell(others.unwrap_or_default()));
                    member.happens(Event::End(DisconnectReason::ServerShutdown));
                }
            }
        }
    }

    /// Fails while the server is drained.
    pub(crate) fn check_drain(&self) -> Result<(), EntryError> {
        match self.gateway()?.check_drain() {
            Ok(()) => Ok(()),
            Err(_) => Err(EntryError::Full("the server is draining")),
        }
    }

    fn gateway(&self) -> Result<&Gateway, EntryError> {
        self.gateway.get().ok_or(EntryError::Full("not ready"))
    }

    /// Counts a request against the rate of its client.
    pub(crate) fn count(&self, requester: Requester) -> Result<(), EntryError> {
        let nobody = Credentials {
            api_secret: None,
            token: None,
        };
        let counted = self.gateway()?.count_request(requester, nobody);
        counted.map_err(|error| EntryError::TooMany(error.to_string()))
    }

    /// Returns the purse that pays for the requests of a client.
    pub(crate) fn purse_of(&self, requester: Requester) -> Purse {
        let gateway = self.gateway.get();
        let purse = gateway.map(|gateway| gateway.memory().purse(requester.address()));
        purse.unwrap_or_default()
    }

    /// Verifies a token.
    pub(crate) fn verify(&self, token: Option<&str>) -> Result<Verified, EntryError> {
        let token = token.ok_or(JoinFault::NoGrant)?;
        let now = u64::try_from(now_ms() / 1_000).unwrap_or_default();
        Ok(self.keys.verify(token, now)?)
    }

    /// Checks a client's token and parameters.
    pub(crate) fn admit(
        &self,
        token: Option<&str>,
        query: &str,
        v1: bool,
    ) -> Result<Admitted, EntryError> {
        let verified = self.verify(token)?;
        let claims = verified.grants.clone();
        let grant = claims.video.clone().ok_or(JoinFault::NoGrant)?;
        let parameters = JoinParameters::read(query, v1)?;
        let room = claims.join()?.to_owned();
        let mut identity = claims.identity.clone();
        if let Some(suffix) = &parameters.publish {
            if !grant.can_publish.unwrap_or(true) {
                return Err(JoinFault::Denied.into());
            }
            identity = format!("{identity}#{suffix}");
        }
        let too_long = [&identity, &claims.name]
            .iter()
            .any(|it| it.len() > MAX_NAME);
        if too_long {
            return Err(EntryError::Name(
                "name or identity exceeds the limit of 256 bytes",
            ));
        }
        let attributes = [&claims.attributes, &parameters.attributes]
            .into_iter()
            .flatten();
        let size: usize = attributes
            .map(|(name, value)| name.len() + value.len())
            .sum();
        let metadata = claims.metadata.len().max(parameters.metadata.len());
        if size > limits::ATTRIBUTES || metadata > limits::METADATA {
            return Err(EntryError::Name("metadata or attributes exceed the limit"));
        }
        let mut permissions = Permissions::of(&claims, &grant);
        if parameters.publish.is_some() {
            permissions.permission.can_subscribe = false;
        }
        Ok(Admitted {
            token: Renewal::new(self.keys.clone(), verified),
            permissions,
            room,
            identity,
            claims,
            parameters,
        })
    }

    /// Checks that the room of a client exists or can be made.
    pub(crate) fn check_room(&self, admitted: &Admitted) -> Result<(), EntryError> {
        let name = &admitted.room;
        let exists = || {
            let here = self.rooms.get();
            let others = self.rooms.others();
            here.is_some_and(|rooms| rooms.find(name).is_some())
                || others.is_some_and(|others| others.has(name))
        };
        match self.makes_rooms(admitted) || exists() {
            true => Ok(()),
            false => Err(EntryError::NoRoom),
        }
    }

    fn makes_rooms(&self, admitted: &Admitted) -> bool {
        let grant = admitted.claims.video.as_ref();
        self.config.auto_create || grant.is_some_and(|grant| grant.room_create)
    }

    /// Lets a client join.
    pub(crate) async fn join(
        &self,
        admitted: Admitted,
        requester: Requester,
    ) -> Result<Joined, EntryError> {
        let gateway = self.gateway()?;
        self.check_drain()?;
        if self.census().1 >= self.config.max_participants {
            return Err(EntryError::Full("no more participants are taken"));
        }
        let makes = self.makes_rooms(&admitted);
        self.prepare_room(&admitted.room, makes).await?;
        let sid = IdKind::Participant.random();
        let identity = &admitted.identity;
        let entry = self.ask_entry(&admitted.room, identity, &sid).await?;
        let options = || self.options(&admitted.claims);
        let hall = self.hall_with(&admitted.room, makes.then_some(&options))?;
        let ticket = match entry {
            Entry::Let(note) => {
                let ticket = note.ticket;
                hall.is_followed();
                hall.take_room_note(*note, true);
                ticket
            }
            Entry::Unasked => hall.admit(identity, &sid, None)?,
        };
        hall.is_joined();
        hall.report_started();
        let joining = Joining {
            gateway,
            config: &self.config,
            plugin: &self.plugin,
            hall,
            identity: admitted.identity,
            sid,
            ticket,
            claims: admitted.claims,
            token: admitted.token,
            permissions: admitted.permissions,
            parameters: admitted.parameters,
            requester,
        };
        let joined = joining.join().await;
        joined.map_err(|error| match error {
            // Another door was faster.
            JoinError::Room(Refusal::IdExists(_)) => EntryRefusal::Taken.into(),
            error => error.into(),
        })
    }

    /// Lets a client resume its session.
    pub(crate) async fn resume(&self, admitted: &Admitted, requester: Requester) -> Resumed {
        let Ok(gateway) = self.gateway() else {
            return Resumed::Gone;
        };
        let hall = self.halls().get(&admitted.room).cloned();
        let member = hall.and_then(|hall| {
            let id = hall.id_of(&admitted.identity);
            hall.people().get(&id)?.member.clone()
        });
        let sid = &admitted.parameters.sid;
        let Some(member) = member.filter(|it| sid.is_empty() || it.sid == *sid) else {
            return Resumed::Gone;
        };
        let (wire, resumed) = oneshot::channel();
        let sync_state: Option<SyncState> = admitted.parameters.sync_state.clone();
        member.happens(Event::Resume {
            sync_state: sync_state.map(Box::new),
            wire,
        });
        match resumed.await {
            Ok(wire) => Resumed::Session(Joined {
                wire,
                inputs: member.inputs.clone(),
                member,
                purse: gateway.memory().purse(requester.address()),
            }),
            Err(_) => Resumed::Gone,
        }
    }

    /// Returns the number of rooms, and of participants of this door.
    pub(crate) fn census(&self) -> (usize, usize) {
        let halls = self.halls();
        let present = halls.values().map(|hall| hall.people().members().count());
        (halls.len(), present.sum())
    }

    /// Returns the options of a room that the bearer of a token makes.
    fn options(&self, claims: &Grants) -> RoomOptions {
        let options = RoomOptions::new(&self.config);
        match &claims.room_config {
            Some(configuration) => options.with_configuration(configuration),
            None => options,
        }
    }

    /// Returns the hall of a room that exists.
    pub(crate) fn hall(&self, name: &str) -> Result<Arc<Hall>, EntryError> {
        self.hall_with(name, None)
    }

    /// Returns the hall of a room. Makes the room if there is none, with the options of `make`.
    pub(crate) fn hall_with(
        &self,
        name: &str,
        make: Option<&dyn Fn() -> RoomOptions>,
    ) -> Result<Arc<Hall>, EntryError> {
        let rooms = self.rooms.get();
        let rooms = rooms.ok_or(EntryError::Full("this server has no rooms"))?;
        // Both under one lock, so that a room has one hall.
        let mut halls = self.halls();
        let found = rooms.find(name);
        let known = halls.get(name).filter(|hall| {
            found
                .as_ref()
                .is_some_and(|room| Arc::ptr_eq(room, &hall.room))
        });
        if let Some(hall) = known {
            return Ok(hall.clone());
        }
        let is_own = found.is_none();
        let (room, options) = match (found, make) {
            (Some(room), _) => (room, RoomOptions::new(&self.config)),
            (None, Some(options)) => (rooms.create(name, settings(name))?, options()),
            (None, None) => return Err(EntryError::NoRoom),
        };
        let setup = Setup {
            is_own,
            has_numbers: rooms.has_numbers(),
            options,
            rooms: self.rooms.clone(),
            refusals: self.refusals.clone(),
            reports: Reports {
                webhooks: self.webhooks.clone(),
                agents: self.agents.clone(),
                egresses: Arc::new(self.egresses.clone()),
            },
        };
        let changes = room.lock().changes();
        let hall = Arc::new(Hall::new(name, room, setup));
        let known = self.rooms.others().and_then(|others| others.room(name));
        if let Some(note) = known.and_then(|known| RoomNote::latest(&known.notes)) {
            hall.take_room_note(note, true);
        } else {
            hall.note_room();
        }
        tokio::spawn(watch_others(Arc::downgrade(&hall), changes));
        halls.insert(name.to_owned(), hall.clone());
        Ok(hall)
    }

    pub(crate) fn halls(&self) -> MutexGuard<'_, HashMap<String, Arc<Hall>>> {
        self.halls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends rooms that this door has made and that nobody is in any more.
    pub(crate) fn clean(&self) {
        let halls: Vec<Arc<Hall>> = self.halls().values().cloned().collect();
        for hall in halls {
            if !hall.is_over() {
                continue;
            }
            let mut halls = self.halls();
            let is_same = halls
                .get(&hall.name)
                .is_some_and(|it| Arc::ptr_eq(it, &hall));
            // Nobody can find it from now on, unless somebody is just joining.
            if is_same && Arc::strong_count(&hall) <= 2 {
                halls.remove(&hall.name);
                drop(halls);
                hall.report_finished(RoomEndReason::RoomEndIdleTimeout);
                if let Some(rooms) = self.rooms.get().filter(|_| hall.is_own) {
                    rooms.destroy(&hall.name);
                }
            }
        }
    }
}

/// Returns the settings of a room that this door makes.
fn settings(name: &str) -> RoomSettings {
    let mut settings = RoomSettings {
        description: name.to_owned(),
        publishers: limits::MAX_PUBLISHERS,
        ..RoomSettings::default()
    };
    settings.codecs.audio = vec![CodecName::Opus, CodecName::Pcmu, CodecName::Pcma];
    settings.codecs.video = vec![
        CodecName::Vp8,
        CodecName::H264,
        CodecName::Vp9,
        CodecName::Av1,
        CodecName::H265,
    ];
    settings.codecs.opus_dtx = true;
    settings
}
