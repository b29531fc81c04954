//! Video rooms: few publish to many, all to all, and many such rooms.

use std::sync::Arc;

use clap::Args;
use serde_json::{Map, Value, json};

use super::crowd::{Act, Audience, Conference, Crowd, Form};
use super::run::Acts;
use super::target::Facts;
use super::{ScenarioError, block_on, load, raise_descriptor_limit, run};
use crate::ceiling::Topology;
use crate::progress::Progress;
use crate::record::RunRecord;
use crate::source::SourceConfig;
use crate::usage::Sampler;

/// Some publish in a room, and many watch all of them.
#[derive(Debug, Clone, Args)]
#[group(id = "room")]
pub struct RoomOptions {
    /// What all scenarios ask
    #[command(flatten)]
    pub load: load::Options,
    /// What is sent
    #[command(flatten)]
    pub media: load::Media,
    /// What all rooms ask
    #[command(flatten)]
    pub common: CommonOptions,
    /// How many publish; those who watch are the participants
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub publishers: u32,
}

/// All endpoints of one room publish and watch each other.
#[derive(Debug, Clone, Args)]
#[group(id = "star")]
pub struct StarOptions {
    /// What all scenarios ask; participants are endpoints
    #[command(flatten)]
    pub load: load::Options,
    /// What is sent
    #[command(flatten)]
    pub media: load::Media,
    /// What all rooms ask
    #[command(flatten)]
    pub common: CommonOptions,
}

/// Rooms whose endpoints all publish and watch each other.
#[derive(Debug, Clone, Args)]
#[group(id = "rooms")]
pub struct RoomsOptions {
    /// What all scenarios ask; participants are rooms
    #[command(flatten)]
    pub load: load::Options,
    /// What is sent
    #[command(flatten)]
    pub media: load::Media,
    /// What all rooms ask
    #[command(flatten)]
    pub common: CommonOptions,
    /// Endpoints in each room
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(2..=1_000))]
    pub endpoints: u32,
}

/// How rooms are used.
#[derive(Debug, Clone, Args)]
#[group(id = "rooms-common")]
pub struct CommonOptions {
    /// One PeerConnection for all that somebody watches, instead of one for each feed
    #[arg(long)]
    pub multistream: bool,
    /// Publishers send two lower layers beside the video that is asked for, with a quarter and a twelfth
    /// of its bit rate
    #[arg(long)]
    pub simulcast: bool,
    /// Temporal layers of VP8 video
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=3))]
    pub temporal_layers: u8,
    /// The share of those who watch that can take only --limit; what they get is counted apart
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, value_parser = load::share, requires = "limit")]
    pub limited_share: f64,
    /// What they can take, in bits per second: they tell the server so (REMB); with --transport-feedback
    /// they do not, but are behind a link of that rate which delays and loses
    #[arg(long, value_name = "BPS", value_parser = crate::traffic::bits)]
    pub limit: Option<u64>,
    /// The video room plugin's admin key
    #[arg(long, value_name = "KEY")]
    pub admin_key: Option<String>,
}

/// Some publish, many watch: measures, and writes the record if that is asked for.
pub fn run_room(options: &RoomOptions, progress: &Progress) -> Result<RunRecord, ScenarioError> {
    finish(
        &options.load,
        block_on(options.load.core, room(options, progress)),
    )
}

/// All to all: measures, and writes the record if that is asked for.
pub fn run_star(options: &StarOptions, progress: &Progress) -> Result<RunRecord, ScenarioError> {
    finish(
        &options.load,
        block_on(options.load.core, star(options, progress)),
    )
}

/// Many rooms: measures, and writes the record if that is asked for.
pub fn run_rooms(options: &RoomsOptions, progress: &Progress) -> Result<RunRecord, ScenarioError> {
    finish(
        &options.load,
        block_on(options.load.core, rooms(options, progress)),
    )
}

fn finish(
    load: &load::Options,
    record: Result<RunRecord, ScenarioError>,
) -> Result<RunRecord, ScenarioError> {
    let record = record?;
    run::write(load, &record)?;
    Ok(record)
}

async fn room(options: &RoomOptions, progress: &Progress) -> Result<RunRecord, ScenarioError> {
    let RoomOptions {
        load,
        media,
        common,
        publishers,
    } = options;
    let stage = Stage::new(load, media, common.limited()).await?;
    let config = common.source(media);
    let members = common.members();
    let (member, feeds) = stage.crowd.convene(*publishers, &config, &members).await?;
    let act = Act::Subscribe(Arc::new(Audience {
        room: member.room_id(),
        feeds,
        form: common.form(),
    }));
    let crowd = stage.crowd.clone();
    let record = stage
        .run("room", load, media, Acts::Each(vec![act]), progress)
        .await;
    crowd.end(vec![member]).await;
    let mut record = record?;
    record.scenario.options.extend(common.by_name());
    record
        .scenario
        .options
        .insert("publishers".to_owned(), json!(publishers));
    Ok(record)
}

async fn star(options: &StarOptions, progress: &Progress) -> Result<RunRecord, ScenarioError> {
    let StarOptions {
        load,
        media,
        common,
    } = options;
    let stage = Stage::new(load, media, common.limited()).await?;
    let (common_of_all, config) = (common.clone(), Arc::new(common.source(media)));
    // Everybody's PeerConnections depend on how many there are, so each size is made anew.
    let act = move |endpoints| conference(&common_of_all, &config, endpoints, false);
    let acts = Acts::Anew(Box::new(act));
    let mut record = stage.run("star", load, media, acts, progress).await?;
    record.scenario.options.extend(common.by_name());
    Ok(record)
}

async fn rooms(options: &RoomsOptions, progress: &Progress) -> Result<RunRecord, ScenarioError> {
    let RoomsOptions {
        load,
        media,
        common,
        endpoints,
    } = options;
    let stage = Stage::new(load, media, common.limited()).await?;
    let act = conference(common, &Arc::new(common.source(media)), *endpoints, true);
    let mut record = stage
        .run("rooms", load, media, Acts::Each(vec![act]), progress)
        .await?;
    record.scenario.options.extend(common.by_name());
    record
        .scenario
        .options
        .insert("endpoints".to_owned(), json!(endpoints));
    Ok(record)
}

fn conference(
    common: &CommonOptions,
    config: &Arc<SourceConfig>,
    endpoints: u32,
    counts_once: bool,
) -> Act {
    Act::Confer(Arc::new(Conference {
        endpoints,
        form: common.form(),
        config: Arc::clone(config),
        members: common.members(),
        counts_once,
    }))
}

/// Everything but the participants.
pub(super) struct Stage {
    facts: Facts,
    sampler: Sampler,
    pub(super) crowd: Crowd,
}

impl Stage {
    /// `limited`: the share of those who watch that can take no more than so many bits per second.
    pub(super) async fn new(
        load: &load::Options,
        media: &load::Media,
        limited: Option<(f64, u64)>,
    ) -> Result<Self, ScenarioError> {
        media.traffic.check()?;
        // With fewer descriptors fewer can join, which is reported then.
        let _ = raise_descriptor_limit();
        let sampler = Sampler::new(load.watch.clone())?;
        let (local, _) = load.target.way()?;
        let connections = load.target.connect().await?;
        let first = connections
            .first()
            .ok_or_else(ScenarioError::no_connection)?;
        let facts = Facts::of(first).await;
        let factory = load.factory(local)?;
        let (threads, events) = load.start_threads(false)?;
        let mut manners = load.manners();
        manners.limited = limited;
        Ok(Self {
            facts,
            sampler,
            crowd: Crowd::new(threads, events, factory, connections, manners),
        })
    }

    pub(super) async fn run(
        self,
        name: &'static str,
        load: &load::Options,
        media: &load::Media,
        acts: Acts,
        progress: &Progress,
    ) -> Result<RunRecord, ScenarioError> {
        let Self {
            facts,
            sampler,
            crowd,
        } = self;
        run::run(
            load,
            &media.flow(name),
            facts,
            sampler,
            crowd,
            acts,
            progress,
        )
        .await
    }
}

impl RoomOptions {
    /// Who gets what.
    pub(crate) fn topology(&self) -> Topology {
        Topology::Room {
            publishers: self.publishers,
            multistream: self.common.multistream,
        }
    }
}

impl StarOptions {
    /// Who gets what.
    pub(crate) fn topology(&self) -> Topology {
        Topology::Star {
            multistream: self.common.multistream,
        }
    }
}

impl RoomsOptions {
    /// Who gets what.
    pub(crate) fn topology(&self) -> Topology {
        Topology::Rooms {
            endpoints: self.endpoints,
            multistream: self.common.multistream,
        }
    }
}

impl CommonOptions {
    fn limited(&self) -> Option<(f64, u64)> {
        self.limit.map(|bps| (self.limited_share, bps))
    }

    fn form(&self) -> Form {
        match self.multistream {
            true => Form::Multistream,
            false => Form::PerFeed,
        }
    }

    /// Further members of the request that makes a room.
    fn members(&self) -> Map<String, Value> {
        let key = self.admin_key.iter();
        key.map(|key| ("admin_key".to_owned(), key.as_str().into()))
            .collect()
    }

    fn source(&self, media: &load::Media) -> SourceConfig {
        SourceConfig {
            simulcast: self.simulcast,
            temporal_layers: self.temporal_layers,
            ..media.source()
        }
    }

    fn by_name(&self) -> impl Iterator<Item = (String, Value)> {
        let limited = self.limit.filter(|_| self.limited_share > 0.0);
        let pairs = [
            ("multistream", json!(self.multistream)),
            ("simulcast", json!(self.simulcast)),
            ("temporal-layers", json!(self.temporal_layers)),
            ("limited-share", json!(limited.map(|_| self.limited_share))),
            ("limit", json!(limited)),
        ];
        let given = pairs.into_iter().filter(|(_, value)| !value.is_null());
        given.map(|(name, value)| (name.to_owned(), value))
    }
}
