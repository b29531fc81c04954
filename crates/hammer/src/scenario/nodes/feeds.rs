//! Sources at one node that all nodes can watch.

use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::time::{Instant, sleep};

use super::Demand;
use super::seat::Seat;
use crate::client::ClientError;
use crate::scenario::ScenarioError;
use crate::scenario::crowd::Act;
use crate::scenario::plugins::streaming::{Maker, STREAMING};
use crate::source::Source;

/// The longest time until a node knows a mountpoint of another one.
const KNOWN: Duration = Duration::from_secs(20);
/// How often it is asked.
const ASK: Duration = Duration::from_millis(100);

/// Mountpoints of one node, with sources that feed them.
pub(super) struct Feeds {
    maker: Maker,
    ids: Vec<Value>,
    source: Source,
}

impl Feeds {
    /// Makes `count` mountpoints at a node, and feeds them.
    pub(super) async fn start(
        seat: &Seat,
        demand: &Demand,
        count: u32,
    ) -> Result<Self, ScenarioError> {
        let media = &demand.media;
        let mut maker = Maker::new(seat.connection()?, None).await?;
        let (mut ids, mut destinations) = (Vec::new(), Vec::new());
        let (host, extra) = (seat.way.remote, Map::new());
        for _ in 0..count {
            let made = maker.make(&media.traffic, media.codec, host, &extra);
            let made = made.await?;
            ids.push(made.id);
            destinations.push(made.destination);
        }
        let lateness = seat.crowd.load().lateness();
        let source = Source::start(&media.source(), seat.way.local, &destinations, lateness);
        Ok(Self {
            maker,
            ids,
            source: source.map_err(ScenarioError::Source)?,
        })
    }

    /// Returns what viewers at a node do to watch each of them. Call it once for each node.
    pub(super) fn acts(&self, seat: &Seat) -> Vec<Act> {
        let acts = self.ids.iter().enumerate().filter_map(|(index, id)| {
            let sent = self.source.sent(index)?;
            Some(Act::Watch {
                mountpoint: id.clone(),
                source: seat.crowd.load().add_source(&sent),
            })
        });
        acts.collect()
    }

    /// Waits until a node knows all of them.
    pub(super) async fn known_at(&self, seat: &Seat) -> Result<(), ScenarioError> {
        let session = seat.connection()?.create().await?;
        let handle = session.attach(STREAMING).await?;
        let end = Instant::now() + KNOWN;
        for id in &self.ids {
            let info = json!({ "request": "info", "id": id });
            loop {
                match handle.message(info.clone(), None).await {
                    Ok(_) => break,
                    Err(ClientError::Refused { .. }) if Instant::now() < end => sleep(ASK).await,
                    Err(error) => return Err(error.into()),
                }
            }
        }
        session.destroy().await?;
        Ok(())
    }

    /// Ends the sources and the mountpoints.
    pub(super) async fn finish(self) {
        drop(self.source);
        self.maker.finish().await;
    }
}
