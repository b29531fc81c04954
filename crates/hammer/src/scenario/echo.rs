//! Participants that send to the echo test plugin and receive the same.

use std::sync::Arc;

use clap::Args;

use super::crowd::Act;
use super::run::{self, Acts};
use super::stage::Stage;
use super::{ScenarioError, load};
use crate::progress::Progress;
use crate::record::RunRecord;

/// The options of the scenario.
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

pub(super) async fn measure(
    options: &Options,
    progress: &Progress,
) -> Result<RunRecord, ScenarioError> {
    options.media.traffic.check()?;
    let stage = Stage::new(&options.load).await?;
    let crowd = stage.crowd(false, None)?;
    let acts = Acts::Each(vec![Act::Echo(Arc::new(options.media.source()))]);
    run::run(stage, crowd, &options.media.flow("echo"), acts, progress).await
}
