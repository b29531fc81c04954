//! The mountpoints of all nodes: each node tells the others of its own, and shows theirs.
//!
//! All nodes have one thing open, the directory. Its items are the mountpoints.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use portunus_cluster::HomeKey;
use portunus_media::MediaPlane;
use portunus_relay::Offer;
use portunus_span::{Port, PortEvent};
use portunus_streaming::{Definition, Mountpoints, OwnMountpoint, OwnSource};
use tokio::sync::mpsc;
use tokio::time::{Instant, interval, sleep_until};

use super::mountpoint_data::MountpointData;

/// The kind of the directory, and its name.
pub(super) const KIND: &str = "directory.streaming";
const NAME: &str = "mountpoints";

/// How often all mountpoints are looked at.
const LOOK: Duration = Duration::from_secs(1);

/// The least time between two looks because of changes.
const SPACING: Duration = Duration::from_millis(50);

/// The longest id of a mountpoint that other nodes can show, in bytes.
const MAX_ID: usize = 512;

/// What the others were told of the mountpoints of this node.
#[derive(Debug, Default)]
struct Told(BTreeMap<String, ToldMountpoint>);

#[derive(Debug)]
struct ToldMountpoint {
    definition: Definition,
    sources: Vec<Option<(OwnSource, Offer)>>,
}

/// Keeps the directory, for as long as the server runs.
pub(super) async fn run(
    port: Port,
    mut events: mpsc::Receiver<PortEvent>,
    (mountpoints, media): (Mountpoints, MediaPlane),
) {
    let Ok(key) = port.key(NAME) else { return };
    port.open(&key).await;
    let Some(mut data) = MountpointData::open(port.clone(), media).await else {
        return;
    };
    let mut told = Told::default();
    let mut ticks = interval(LOOK);
    let mut due: Option<Instant> = None;
    let mut looked = Instant::now();
    loop {
        let pause = due.unwrap_or(looked);
        tokio::select! {
            event = events.recv() => match event {
                Some(event) if data.is_about(&event) => data.take(event, &mountpoints).await,
                Some(PortEvent::Ended { .. }) => {
                    // The directory has no end. All is told again.
                    port.open(&key).await;
                    told.end(&port);
                }
                Some(event) => take(&port, &mountpoints, event).await,
                None => return,
            },
            () = mountpoints.changed(), if due.is_none() => due = Some(looked + SPACING),
            () = sleep_until(pause), if due.is_some() => {
                look(&mut told, &mut data, (&port, &key), &mountpoints).await;
                (due, looked) = (None, Instant::now());
            }
            _ = ticks.tick() => {
                mountpoints.tidy().await;
                look(&mut told, &mut data, (&port, &key), &mountpoints).await;
            }
        }
    }
}

/// Tells the others what has changed of the mountpoints of this node and of its viewers.
async fn look(
    told: &mut Told,
    data: &mut MountpointData,
    (port, key): (&Port, &HomeKey),
    mountpoints: &Mountpoints,
) {
    let own = mountpoints.own();
    data.look(&own, mountpoints).await;
    told.look(port, key, own).await;
}

async fn take(port: &Port, mountpoints: &Mountpoints, event: PortEvent) {
    match event {
        PortEvent::Item {
            node,
            item,
            value: Some(value),
            ..
        } => match Definition::parse(&value) {
            Ok(definition) => {
                let told = (definition, port.sources(&node));
                mountpoints.set(node.as_str(), &item, told).await;
            }
            Err(error) => tracing::warn!(%node, item, "cluster: {error}"),
        },
        PortEvent::Item {
            node,
            item,
            value: None,
            ..
        } => mountpoints.remove(node.as_str(), &item).await,
        PortEvent::Linked { node } => mountpoints.linked(node.as_str()),
        PortEvent::SourceEnded { ingest, .. } => mountpoints.lose_source(ingest),
        _ => {}
    }
}

impl Told {
    /// Tells the others what has changed.
    async fn look(&mut self, port: &Port, key: &HomeKey, own: Vec<OwnMountpoint>) {
        let own = own.into_iter().filter(|it| it.id.len() <= MAX_ID);
        let own: BTreeMap<_, _> = own.map(|it| (it.id.clone(), it)).collect();
        let gone = self.0.keys().filter(|id| !own.contains_key(*id));
        for id in gone.cloned().collect::<Vec<_>>() {
            if let Some(told) = self.0.remove(&id) {
                told.end(port);
            }
            port.remove(key, &id).await;
        }
        for (id, mountpoint) in own {
            let former = self.0.remove(&id);
            let (before, former) = match former {
                Some(told) => (Some(told.definition), told.sources),
                None => (None, Vec::new()),
            };
            let sources = offer(port, mountpoint.sources.clone(), former);
            let offers = sources.iter();
            let offers = offers.map(|it| it.as_ref().map(|(_, offer)| offer.clone()));
            let definition = mountpoint.offered(offers.collect());
            if before.as_ref() != Some(&definition) {
                let value = Bytes::from(definition.to_value());
                if let Err(error) = port.set(key, &id, value).await {
                    tracing::warn!(id, "a mountpoint is not shown on other nodes: {error}");
                    port.remove(key, &id).await;
                }
            }
            self.0.insert(
                id,
                ToldMountpoint {
                    definition,
                    sources,
                },
            );
        }
    }

    /// Forgets all.
    fn end(&mut self, port: &Port) {
        for told in std::mem::take(&mut self.0).into_values() {
            told.end(port);
        }
    }
}

impl ToldMountpoint {
    fn end(&self, port: &Port) {
        for (_, offer) in self.sources.iter().flatten() {
            port.withdraw(offer.id);
        }
    }
}

/// Returns an offer for each source: the former one if the source is the same, else a new one.
fn offer(
    port: &Port,
    sources: Vec<Option<OwnSource>>,
    former: Vec<Option<(OwnSource, Offer)>>,
) -> Vec<Option<(OwnSource, Offer)>> {
    let mut former = former.into_iter();
    let mut offered = Vec::with_capacity(sources.len());
    for source in sources {
        let before = former.next().flatten();
        match (source, before) {
            (Some(source), Some((known, offer))) if known == source => {
                offered.push(Some((known, offer)));
                continue;
            }
            (source, before) => {
                if let Some((_, offer)) = before {
                    port.withdraw(offer.id);
                }
                offered.push(source.map(|source| {
                    let offer = port.offer(source.source, source.description.clone());
                    (source, offer)
                }));
            }
        }
    }
    for (_, offer) in former.flatten() {
        port.withdraw(offer.id);
    }
    offered
}
