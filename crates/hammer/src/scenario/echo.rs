//! Peers that send and get the same back, through the echo test plugin.

use std::sync::Arc;

use clap::Args;

use super::crowd::{Act, Crowd};
use super::run::Acts;
use super::target::Facts;
use super::{ScenarioError, block_on, load, raise_descriptor_limit, run};
use crate::progress::Progress;
use crate::record::RunRecord;
use crate::usage::Sampler;

/// What to do.
#[derive(Debug, Clone, Args)]
#[group(id = "echo")]
pub struct Options {
    /// What all scenarios ask
    #[command(flatten)]
    pub load: load::Options,
    /// What is sent
    #[command(flatten)]
    pub media: load::Media,
}

/// Measures, and writes the record if that is asked for.
pub fn run(options: &Options, progress: &Progress) -> Result<RunRecord, ScenarioError> {
    let record = block_on(options.load.core, measure(options, progress))?;
    run::write(&options.load, &record)?;
    Ok(record)
}

/// Measures.
pub async fn measure(options: &Options, progress: &Progress) -> Result<RunRecord, ScenarioError> {
    let load = &options.load;
    options.media.traffic.check()?;
    // With fewer descriptors fewer peers can join, which is reported then.
    let _ = raise_descriptor_limit();
    let sampler = Sampler::new(load.watch.clone())?;
    let (local, _) = load.target.way()?;
    let connections = load.target.connect().await?;
    let first = connections
        .first()
        .ok_or_else(ScenarioError::no_connection)?;
    let facts = Facts::of(first).await;
    let factory = load.factory(local)?;
    let act = Act::Echo(Arc::new(options.media.source()));
    let (threads, events) = load.start_threads(false)?;
    let crowd = Crowd::new(threads, events, factory, connections, load.manners());
    run::run(
        load,
        &options.media.flow("echo"),
        facts,
        sampler,
        crowd,
        Acts::Each(vec![act]),
        progress,
    )
    .await
}
