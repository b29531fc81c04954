//! Video rooms: few publishers and many subscribers, all to all, and many such rooms.

use std::collections::BTreeMap;
use std::sync::Arc;

use clap::Args;
use serde_json::{Map, Value, json};

use super::ScenarioError;
use super::crowd::{Act, Assembly, Audience, Conference, Crowd, Form, Host, Limit};
use super::load::{self, given};
use super::run::{self, Acts};
use super::stage::Stage;
use crate::client::livekit::ApiKey;
use crate::progress::Progress;
use crate::record::RunRecord;
use crate::source::SourceConfig;
use crate::traffic::Topology;

/// Some participants publish in a room, and many watch all of them.
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

/// The options of all room scenarios.
#[derive(Debug, Clone, Args)]
#[group(id = "rooms-common")]
pub struct CommonOptions {
    /// One PeerConnection for all that somebody watches, instead of one for each feed
    #[arg(long)]
    pub multistream: bool,
    /// Publishers send two lower layers beside the video that is asked for, with a quarter and a
    /// twelfth of its bit rate
    #[arg(long)]
    pub simulcast: bool,
    /// Temporal layers of VP8 video
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=3))]
    pub temporal_layers: u8,
    /// The share of those who watch that can take only --limit; what they get is counted apart
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, value_parser = load::share, requires = "limit")]
    pub limited_share: f64,
    /// Their bandwidth, in bits per second: they tell the server so (REMB); with
    /// --transport-feedback they do not, but are behind a link of that rate which delays and loses
    #[arg(long, value_name = "BPS", value_parser = crate::traffic::bits)]
    pub limit: Option<u64>,
    /// The video room plugin's admin key
    #[arg(long, value_name = "KEY")]
    pub admin_key: Option<String>,
    /// LiveKit's protocol at this URL, ws:// or wss://, in place of the Janus API; each participant
    /// has one PeerConnection for all that it watches
    #[arg(long, value_name = "URL", conflicts_with_all = ["simulcast", "admin_key"])]
    pub livekit: Option<String>,
    /// The API key for --livekit
    #[arg(long, value_name = "KEY", default_value = "devkey")]
    pub livekit_key: String,
    /// The secret of that key
    #[arg(long, value_name = "SECRET", default_value = "secret")]
    pub livekit_secret: String,
}

/// Runs a room with some publishers and many subscribers.
pub(super) async fn room(
    options: &RoomOptions,
    progress: &Progress,
) -> Result<RunRecord, ScenarioError> {
    let RoomOptions {
        load,
        media,
        common,
        publishers,
    } = options;
    media.traffic.check()?;
    let stage = Stage::of_rooms(load, common.livekit.as_deref()).await?;
    let crowd = stage.crowd_of(media.codec, common.limit())?;
    let config = common.source(media);
    let (member, act) = match common.host() {
        Some(host) => {
            let (member, venue) = crowd.open_venue(&host, *publishers, &config).await?;
            (member, Act::Visit(Arc::new(venue)))
        }
        None => {
            let members = common.members();
            let (member, feeds) = crowd.convene(*publishers, &config, &members).await?;
            let act = Act::Subscribe(Arc::new(Audience {
                room: member.room_id(),
                feeds,
                form: common.form(),
            }));
            (member, act)
        }
    };
    let (acts, flow) = (Acts::Each(vec![act]), media.flow("room"));
    let record = run::run(stage, crowd.clone(), &flow, acts, progress).await;
    crowd.end(vec![member]).await;
    let mut record = record?;
    common.tell(&mut record, &crowd);
    let own = [("publishers", json!(publishers))];
    record.scenario.options.extend(given(own));
    Ok(record)
}

/// Runs a room of all to all.
pub(super) async fn star(
    options: &StarOptions,
    progress: &Progress,
) -> Result<RunRecord, ScenarioError> {
    let StarOptions {
        load,
        media,
        common,
    } = options;
    media.traffic.check()?;
    let stage = Stage::of_rooms(load, common.livekit.as_deref()).await?;
    let crowd = stage.crowd_of(media.codec, common.limit())?;
    let (common_of_all, config) = (common.clone(), Arc::new(common.source(media)));
    // All PeerConnections depend on the number of endpoints, so each size needs new ones.
    let act = move |endpoints| conference(&common_of_all, &config, endpoints, false);
    let acts = Acts::Anew(Box::new(act));
    let flow = media.flow("star");
    let mut record = run::run(stage, crowd.clone(), &flow, acts, progress).await?;
    common.tell(&mut record, &crowd);
    Ok(record)
}

/// Runs many rooms of all to all.
pub(super) async fn rooms(
    options: &RoomsOptions,
    progress: &Progress,
) -> Result<RunRecord, ScenarioError> {
    let RoomsOptions {
        load,
        media,
        common,
        endpoints,
    } = options;
    media.traffic.check()?;
    let stage = Stage::of_rooms(load, common.livekit.as_deref()).await?;
    let crowd = stage.crowd_of(media.codec, common.limit())?;
    let act = conference(common, &Arc::new(common.source(media)), *endpoints, true);
    let acts = Acts::Each(vec![act]);
    let flow = media.flow("rooms");
    let mut record = run::run(stage, crowd.clone(), &flow, acts, progress).await?;
    common.tell(&mut record, &crowd);
    let own = [("endpoints", json!(endpoints))];
    record.scenario.options.extend(given(own));
    Ok(record)
}

fn conference(
    common: &CommonOptions,
    config: &Arc<SourceConfig>,
    endpoints: u32,
    counts_once: bool,
) -> Act {
    if let Some(host) = common.host() {
        return Act::Assemble(Arc::new(Assembly {
            host,
            endpoints,
            config: Arc::clone(config),
            counts_once,
        }));
    }
    Act::Confer(Arc::new(Conference {
        endpoints,
        form: common.form(),
        config: Arc::clone(config),
        members: common.members(),
        counts_once,
    }))
}

impl RoomOptions {
    /// Returns who receives what.
    pub(crate) fn topology(&self) -> Topology {
        Topology::Room {
            publishers: self.publishers,
            multistream: self.common.is_multistream(),
        }
    }
}

impl StarOptions {
    /// Returns who receives what.
    pub(crate) fn topology(&self) -> Topology {
        Topology::Star {
            multistream: self.common.is_multistream(),
        }
    }
}

impl RoomsOptions {
    /// Returns who receives what.
    pub(crate) fn topology(&self) -> Topology {
        Topology::Rooms {
            endpoints: self.endpoints,
            multistream: self.common.is_multistream(),
        }
    }
}

impl CommonOptions {
    /// Returns the LiveKit server, if its protocol is used.
    fn host(&self) -> Option<Host> {
        let url = self.livekit.clone()?;
        let key = ApiKey {
            key: self.livekit_key.clone(),
            secret: self.livekit_secret.clone(),
        };
        Some(Host { url, key })
    }

    /// Returns whether a participant has one PeerConnection for all that it watches.
    fn is_multistream(&self) -> bool {
        self.multistream || self.livekit.is_some()
    }

    /// Adds the options to a record, and what the server says about itself.
    fn tell(&self, record: &mut RunRecord, crowd: &Crowd) {
        record.scenario.options.extend(self.by_name());
        let Some(url) = &self.livekit else { return };
        let server = &mut record.server;
        server.url = Some(url.clone());
        if let Some(info) = crowd.livekit_server()
            && server.version.is_none()
            && !info.version.is_empty()
        {
            server.version = Some(format!("LiveKit {}", info.version));
        }
    }

    fn limit(&self) -> Option<Limit> {
        let share = self.limited_share;
        self.limit.map(|bps| Limit { share, bps })
    }

    fn form(&self) -> Form {
        match self.multistream {
            true => Form::Multistream,
            false => Form::PerFeed,
        }
    }

    /// Returns further members of the request that creates a room.
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

    fn by_name(&self) -> BTreeMap<String, Value> {
        let limited = self.limit.filter(|_| self.limited_share > 0.0);
        given([
            ("multistream", json!(self.is_multistream())),
            ("simulcast", json!(self.simulcast)),
            ("temporal-layers", json!(self.temporal_layers)),
            ("limited-share", json!(limited.map(|_| self.limited_share))),
            ("limit", json!(limited)),
        ])
    }
}
