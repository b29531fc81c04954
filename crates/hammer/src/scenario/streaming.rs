//! One source to many viewers, through mountpoints of the streaming plugin.

use std::sync::Arc;

use clap::Args;
use serde_json::{Map, Value, json};

use super::crowd::Act;
use super::plugins::streaming::Maker;
use super::run::{self, Acts};
use super::stage::Stage;
use super::{ScenarioError, load};
use crate::progress::Progress;
use crate::record::RunRecord;
use crate::source::{Source, SourceConfig};
use crate::traffic::Topology;

/// The options of the scenario.
#[derive(Debug, Clone, Args)]
#[group(id = "streaming")]
pub struct Options {
    /// What all scenarios ask
    #[command(flatten)]
    pub load: load::Options,
    /// What is sent
    #[command(flatten)]
    pub media: load::Media,
    /// Viewers come by WHEP: the URL of a mountpoint's endpoint, in which {id} stands for its id
    #[arg(long, value_name = "URL")]
    pub whep: Option<String>,
    /// The bearer token that WHEP viewers show
    #[arg(long, value_name = "TOKEN", requires = "whep")]
    pub whep_token: Option<String>,
    /// The source is published by WHIP at this URL, and no mountpoint is made: the server need not
    /// know the Janus API
    #[arg(long, value_name = "URL", requires = "whep", conflicts_with_all = ["mountpoints", "mountpoint_option", "admin_key"])]
    pub whip: Option<String>,
    /// The bearer token that the WHIP source shows
    #[arg(long, value_name = "TOKEN", requires = "whip")]
    pub whip_token: Option<String>,
    /// Mountpoints that the viewers are spread over, each with a source of its own
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub mountpoints: u32,
    /// The sources of mountpoints give each frame to the kernel at once, packets of one size joined
    /// (UDP_SEGMENT); else packet by packet, as ffmpeg does
    #[arg(long, conflicts_with = "whip")]
    pub source_gso: bool,
    /// A further member of the request that makes a mountpoint; VALUE is JSON
    #[arg(long, value_name = "KEY=VALUE", value_parser = load::member)]
    pub mountpoint_option: Vec<(String, Value)>,
    /// The streaming plugin's admin key
    #[arg(long, value_name = "KEY")]
    pub admin_key: Option<String>,
}

pub(super) async fn measure(
    options: &Options,
    progress: &Progress,
) -> Result<RunRecord, ScenarioError> {
    options.media.traffic.check()?;
    let mut record = match &options.whip {
        Some(url) => published(options, url, progress).await?,
        None => through_mountpoints(options, progress).await?,
    };
    let own = [
        ("mountpoints", json!(options.mountpoints)),
        ("source-gso", json!(options.source_gso)),
        ("mountpoint-option", json!(options.further_members())),
        ("whip", json!(options.whip.is_some())),
        ("whep", json!(options.whep.is_some())),
    ];
    record.scenario.options.extend(load::given(own));
    Ok(record)
}

/// Creates mountpoints, feeds them with RTP, and lets viewers watch.
async fn through_mountpoints(
    options: &Options,
    progress: &Progress,
) -> Result<RunRecord, ScenarioError> {
    let stage = Stage::new(&options.load).await?;
    let crowd = stage.crowd(false, None)?;
    let config = options.source();

    let mut maker = Maker::new(stage.connection()?, options.admin_key.clone()).await?;
    let extra = options.further_members();
    let (mut acts, mut destinations) = (Vec::new(), Vec::new());
    for source in 0..options.mountpoints as usize {
        let made = maker
            .make(
                &options.media.traffic,
                options.media.codec,
                stage.way.remote,
                &extra,
            )
            .await?;
        let id = made.id.to_string();
        acts.push(match &options.whep {
            Some(url) => {
                let url = url.replace("{id}", id.trim_matches('"'));
                options.by_whep(url, source, &config)
            }
            None => Act::Watch {
                mountpoint: made.id,
                source,
            },
        });
        destinations.push(made.destination);
    }
    let threads = crowd.load();
    let source = Source::start(&config, stage.way.local, &destinations, threads.lateness())
        .map_err(ScenarioError::Source)?;
    for index in 0..destinations.len() {
        if let Some(sent) = source.sent(index) {
            threads.add_source(&sent);
        }
    }
    let flow = options.media.flow("streaming");
    let record = run::run(stage, crowd, &flow, Acts::Each(acts), progress).await;
    drop(source);
    maker.finish().await;
    record
}

/// Publishes a source by WHIP, and lets viewers watch by WHEP. The server need not know the Janus
/// API.
async fn published(
    options: &Options,
    whip: &str,
    progress: &Progress,
) -> Result<RunRecord, ScenarioError> {
    let stage = Stage::without_connections(&options.load, whip)?;
    let crowd = stage.crowd(false, None)?;
    let config = options.source();
    let token = options.whip_token.as_deref();
    let publisher = crowd.publish(whip, token, &config).await?;
    let whep = options.whep.clone().unwrap_or_default();
    let acts = vec![options.by_whep(whep, 0, &config)];
    let flow = options.media.flow("streaming");
    let record = run::run(stage, crowd.clone(), &flow, Acts::Each(acts), progress).await;
    crowd.unpublish(publisher).await;
    let mut record = record?;
    record.server.url = Some(whip.to_owned());
    Ok(record)
}

impl Options {
    /// Returns who receives what.
    pub(crate) fn topology(&self) -> Topology {
        Topology::Streaming {
            sources: self.mountpoints,
        }
    }

    fn further_members(&self) -> Map<String, Value> {
        self.mountpoint_option.iter().cloned().collect()
    }

    fn source(&self) -> Arc<SourceConfig> {
        Arc::new(SourceConfig {
            gso: self.source_gso,
            ..self.media.source()
        })
    }

    fn by_whep(&self, url: String, source: usize, config: &Arc<SourceConfig>) -> Act {
        Act::Whep {
            url,
            token: self.whep_token.clone(),
            source,
            config: Arc::clone(config),
        }
    }
}
