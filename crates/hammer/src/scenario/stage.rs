//! The stage: the server, the way to it, and its watcher, before anybody joins.

use super::ScenarioError;
use super::crowd::{Crowd, Limit, Manners};
use super::load::Options;
use super::target::{Facts, Way};
use crate::client::Connection;
use crate::machine::{raise_descriptor_limit, usage::Sampler};
use crate::source::VideoCodec;
use crate::viewer::{Factory, LoadThreads, PrepareError};

/// Everything but the participants.
pub(super) struct Stage<'a> {
    pub(super) load: &'a Options,
    pub(super) facts: Facts,
    pub(super) sampler: Sampler,
    pub(super) way: Way,
    pub(super) connections: Vec<Connection>,
}

impl<'a> Stage<'a> {
    /// Connects to the server.
    pub(super) async fn new(load: &'a Options) -> Result<Self, ScenarioError> {
        let mut this = Self::without_connections(load, &load.target.janus)?;
        this.connections = load.target.connect().await?;
        this.facts = Facts::of(this.connection()?).await;
        Ok(this)
    }

    /// Creates a stage for the Janus API, or for LiveKit's protocol at this URL.
    pub(super) async fn of_rooms(
        load: &'a Options,
        livekit: Option<&str>,
    ) -> Result<Self, ScenarioError> {
        match livekit {
            Some(url) => Self::without_connections(load, url),
            None => Self::new(load).await,
        }
    }

    /// Creates a stage for a server that need not know the Janus API.
    pub(super) fn without_connections(load: &'a Options, url: &str) -> Result<Self, ScenarioError> {
        // With fewer descriptors, fewer can join, which is reported then.
        let _ = raise_descriptor_limit();
        Ok(Self {
            load,
            facts: Facts::default(),
            sampler: Sampler::new(load.watch.clone())?,
            way: load.target.way_to(url)?,
            connections: Vec::new(),
        })
    }

    /// Returns one of the connections.
    pub(super) fn connection(&self) -> Result<&Connection, ScenarioError> {
        let none = || ScenarioError::Nobody("there is no connection to the server".to_owned());
        self.connections.first().ok_or_else(none)
    }

    /// Starts the threads for participants, who all may `speak`, without any participant.
    pub(super) fn crowd(&self, speak: bool, limit: Option<Limit>) -> Result<Crowd, ScenarioError> {
        self.staff(self.factory()?, speak, limit)
    }

    /// Starts the threads for participants of rooms whose video has this codec.
    pub(super) fn crowd_of(
        &self,
        codec: VideoCodec,
        limit: Option<Limit>,
    ) -> Result<Crowd, ScenarioError> {
        self.staff(self.factory()?.preferring(codec), false, limit)
    }

    fn factory(&self) -> Result<Factory, PrepareError> {
        let (load, target) = (self.load, &self.load.target);
        Factory::new(self.way.local, target.profiles(), load.transport_feedback)
    }

    fn staff(
        &self,
        factory: Factory,
        speak: bool,
        limit: Option<Limit>,
    ) -> Result<Crowd, ScenarioError> {
        let (load, target) = (self.load, &self.load.target);
        let threads = LoadThreads::start(load.load_threads as usize, load.addresses, speak);
        let (threads, events) = threads.map_err(ScenarioError::Load)?;
        let manners = Manners {
            trust: target.trust(),
            check_share: load.check_share,
            reports: !load.no_reports,
            limit,
        };
        let connections = self.connections.clone();
        Ok(Crowd::new(threads, events, factory, connections, manners))
    }
}
