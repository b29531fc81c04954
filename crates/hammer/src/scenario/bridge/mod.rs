//! Audio rooms: some participants talk, and all hear the server's mix.

mod options;
mod quality;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

pub use options::Options;

use super::ScenarioError;
use super::crowd::{Act, Hall};
use super::plugins::audiobridge::Rooms;
use super::run::{self, Acts};
use super::stage::Stage;
use crate::progress::Progress;
use crate::record::RunRecord;
use crate::speech::{EncodeError, Encoding, Script, Talker};

pub(super) async fn measure(
    options: &Options,
    progress: &Progress,
) -> Result<RunRecord, ScenarioError> {
    progress.note("encoding what is said");
    let layout = options.layout();
    let scripts = scripts(layout.talkers(), options.encoding())?;
    let stage = Stage::new(&options.load).await?;
    let crowd = stage.crowd(true, None)?;
    let first = stage.connection()?.clone();
    let mut rooms = Rooms::new(&first, options.admin_key.clone()).await?;
    let members = options.room();
    for _ in 0..options.rooms() {
        rooms.create(&members).await?;
    }
    let hall = Arc::new(Hall::new(rooms.ids.clone(), layout, scripts));
    let flow = options.flow(&hall);
    let acts = Acts::Each(vec![Act::Meet(hall)]);
    let record = run::run(stage, crowd.clone(), &flow, acts, progress).await;
    rooms.destroy().await;
    let mut record = record?;
    if let Some(count) = options.quality {
        progress.note("sentences are said over a way that loses and holds up packets");
        let mut rooms = Rooms::new(&first, options.admin_key.clone()).await?;
        for _ in 0..count {
            rooms.create(&members).await?;
        }
        let quality = quality::measure(options, &rooms.ids, &crowd).await;
        rooms.destroy().await;
        let quality = quality?;
        progress.keep(&quality.to_text());
        record.summary.quality = Some(quality);
    }
    Ok(record)
}

/// Encodes the speech of each talker.
fn scripts(
    talkers: HashSet<Talker>,
    encoding: Encoding,
) -> Result<HashMap<Talker, Arc<Script>>, EncodeError> {
    let script = |talker| Ok((talker, Arc::new(Script::of(talker, encoding)?)));
    talkers.into_iter().map(script).collect()
}
