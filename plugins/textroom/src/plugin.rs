//! The plugin in the form that the core knows.

use std::collections::HashSet;
use std::sync::Arc;

use portunus_core::events::EventBus;
use portunus_core::{
    Asked, ConfiguredPlugin, Fields, Handle, Plugin, PluginContext, PluginCounter, PluginHandle,
    PluginInfo, PluginReloaded, Reply,
};
use portunus_resources::{AllowedTokens, Asker, Maker, Reloadable, Resources, SavedError};
use serde_json::Value;

use crate::client_handle::ClientHandle;
use crate::cluster::TextRooms;
use crate::config::{ConfiguredRoom, TextRoomConfig};
use crate::management::{reply, requested_name};
use crate::post::{BackEnds, Reachable};
use crate::refusal::Refusal;
use crate::requests::{Management, Negotiation};
use crate::room::{Origin, Room, Surroundings};
use crate::shared::Shared;
use crate::tally::Tally;

const PACKAGE: &str = "janus.plugin.textroom";

/// The plugin, with its rooms.
#[derive(Debug)]
pub struct TextRoom {
    shared: Arc<Shared>,
}

impl TextRoom {
    /// Starts the plugin with the rooms of its configuration. Fails if the saved rooms cannot be
    /// read.
    pub fn new(config: TextRoomConfig) -> Result<Self, SavedError> {
        Self::clustered(config, TextRooms::default())
    }

    /// Starts the plugin with the rooms of a cluster.
    pub fn clustered(config: TextRoomConfig, cluster: TextRooms) -> Result<Self, SavedError> {
        Self::watched(config, &EventBus::default(), cluster)
    }

    /// Starts the plugin, with `events` for the observers of the server.
    fn watched(
        config: TextRoomConfig,
        events: &EventBus,
        cluster: TextRooms,
    ) -> Result<Self, SavedError> {
        let (keys, intake, patience) = (config.resource_keys(), config.intake(), config.patience());
        let TextRoomConfig {
            json,
            outgoing,
            rooms: configured,
            ..
        } = config;
        // A back-end of the configuration may be anywhere, even if a request has changed other
        // options of its room.
        let trusted: HashSet<_> = configured
            .iter()
            .map(|room| room.options.post.clone())
            .collect();
        let (rooms, first) = Resources::start(keys, configured)?;
        let tally = Arc::<Tally>::default();
        let shared = Shared {
            rooms,
            intake,
            back_ends: BackEnds::new(outgoing, patience, tally.clone()),
            surroundings: Surroundings {
                json,
                tally,
                events: events.of_plugin(PACKAGE),
            },
            cluster: Arc::new(cluster.clone()),
        };
        for room in first {
            let reachable = match trusted.contains(&room.options.post) {
                true => Reachable::Anywhere,
                false => Reachable::Outgoing,
            };
            let made = shared.make(
                Some(room.id),
                room.options,
                AllowedTokens::default(),
                Maker::Operator,
                reachable,
                Origin::configured(),
            );
            if let Err(error) = made {
                tracing::error!(
                    "a room of the configuration, or a saved one, is left out: {error}"
                );
            }
        }
        let shared = Arc::new(shared);
        cluster.keep_in(&shared);
        Ok(TextRoom { shared })
    }
}

impl ConfiguredPlugin for TextRoom {
    const NAME: &'static str = "textroom";
    type Config = TextRoomConfig;
    type Error = SavedError;

    async fn from_config(
        config: TextRoomConfig,
        context: PluginContext,
    ) -> Result<Self, SavedError> {
        let PluginContext {
            outgoing,
            events,
            services,
            ..
        } = context;
        let cluster = services.get::<TextRooms>().cloned().unwrap_or_default();
        TextRoom::watched(TextRoomConfig { outgoing, ..config }, &events, cluster)
    }

    async fn reload(&self, running: &TextRoomConfig, new: &TextRoomConfig) -> PluginReloaded {
        let limits = new.resource_keys().limits;
        self.shared.rooms.set_limits(limits);
        portunus_resources::reload(&self.shared, &running.rooms, &new.rooms).await
    }
}

impl Reloadable for Shared {
    type Resource = Room;

    fn resources(&self) -> &Resources<Room> {
        &self.rooms
    }

    async fn make_configured(self: Arc<Self>, room: ConfiguredRoom) -> Result<(), String> {
        let made = self.make(
            Some(room.id),
            room.options,
            AllowedTokens::default(),
            Maker::Operator,
            Reachable::Anywhere,
            Origin::configured(),
        );
        made.map(drop).map_err(|error| error.to_string())
    }
}

impl Plugin for TextRoom {
    fn info(&self) -> PluginInfo {
        PluginInfo {
            package: PACKAGE,
            name: "Text Room plugin",
            description: "Rooms whose members write to each other over data channels.",
            version: 2,
            version_string: "0.0.2",
        }
    }

    fn begins(&self, request: &str) -> bool {
        Asked::<Negotiation>::named(request).is_some_and(Asked::begins)
    }

    fn attach(&self, handle: Handle) -> Box<dyn PluginHandle> {
        Box::new(ClientHandle::new(handle, self.shared.clone()))
    }

    fn counters(&self) -> Vec<PluginCounter> {
        let mut counters = self.shared.rooms.counters();
        counters.extend(self.shared.surroundings.tally.counters());
        counters
    }

    fn admin(&self, request: Value) -> Option<Reply> {
        let reply = match request.as_object().map(Fields) {
            None => Err(Refusal::NotAnObject),
            Some(fields) => self.administer(fields),
        };
        Some(reply.unwrap_or_else(|refusal| Reply::Success(refusal.to_event().into())))
    }
}

impl TextRoom {
    /// Answers an administrator's request, which has a transaction like one of a data channel.
    fn administer(&self, fields: Fields<'_>) -> Result<Reply, Refusal> {
        let name = fields.required("request")?;
        fields.required::<&str>("transaction")?;
        if Asked::<Management>::named(name).is_none() {
            return Err(Refusal::UnknownRequest(name.to_owned()));
        }
        let asker = Asker::administrator();
        let wanted = requested_name(fields, name).unwrap_or(name);
        if let Some(home) = self.shared.home(wanted, fields) {
            let cluster = &self.shared.cluster;
            let answer = cluster.ask(&home, None, fields.0.clone(), &asker);
            return Ok(Reply::Later(answer));
        }
        let managed = requested_name(fields, name)
            .map_err(Refusal::from)
            .and_then(|wanted| self.shared.manage(wanted, fields, &asker));
        Ok(reply(managed))
    }
}
