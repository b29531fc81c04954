//! The users of the video call of all nodes: each name is at home at the node of its user.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use portunus_cluster::{HomeKey, KeyError, NodeId, Place};
use portunus_media::SourceRef;
use portunus_relay::{Offer, SourceDescription, SourceId, Sources};
use portunus_span::{Port, PortEvent};
use portunus_videocall::{CallDemand, ClaimError, Crossing, VideoCalls};
use tokio::sync::{mpsc, oneshot};
use tokio::time::interval;

/// The kind of users.
pub(super) const KIND: &str = "user.videocall";
/// The name of the thing that messages about calls are about.
const CALLS: &str = "calls";

/// How long the bus has to confirm a name.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often names that were not confirmed are looked for.
const LOOK: Duration = Duration::from_secs(1);

/// The media of calls.
#[derive(Debug)]
struct Media(Port);

impl Crossing for Media {
    fn offer(&self, source: SourceRef, description: SourceDescription) -> Offer {
        self.0.offer(source, description)
    }

    fn withdraw(&self, source: SourceId) {
        self.0.withdraw(source);
    }

    fn sources(&self, node: &str) -> Arc<dyn Sources> {
        match NodeId::new(node) {
            Ok(node) => self.0.sources(&node),
            Err(_) => Arc::new(Nothing),
        }
    }
}

/// The sources of no node.
#[derive(Debug)]
struct Nothing;

impl Sources for Nothing {
    fn take(&self, _: &Offer) -> Option<portunus_media::IngestId> {
        None
    }

    fn release(&self, _: portunus_media::IngestId) {}
}

/// A name that the bus has to confirm.
#[derive(Debug)]
struct Claim {
    since: Instant,
    /// Whether a node has the name that cannot be reached. It may be dead.
    is_elsewhere: bool,
    answer: oneshot::Sender<Result<(), ClaimError>>,
}

/// The names of this node.
#[derive(Debug)]
struct Names {
    port: Port,
    /// The names that the bus has to confirm.
    claims: HashMap<HomeKey, Claim>,
}

/// Lets users call those of other nodes, for as long as the server runs.
pub(super) async fn run(port: Port, mut events: mpsc::Receiver<PortEvent>, calls: VideoCalls) {
    let Ok(key) = port.key(CALLS) else { return };
    let mut demands = calls.begin(Arc::new(Media(port.clone())));
    let mut names = Names {
        port,
        claims: HashMap::new(),
    };
    let mut ticks = interval(LOOK);
    loop {
        tokio::select! {
            event = events.recv() => match event {
                Some(event) => names.event(&calls, event).await,
                None => return,
            },
            Some(demand) = demands.recv() => names.demand(&key, demand).await,
            _ = ticks.tick() => names.give_up(Instant::now()).await,
        }
    }
}

impl Names {
    async fn demand(&mut self, calls: &HomeKey, demand: CallDemand) {
        match demand {
            CallDemand::Claim { name, answer } => self.claim(&name, answer).await,
            CallDemand::Release { name } => {
                if let Ok(key) = self.port.key(&name) {
                    self.claims.remove(&key);
                    self.port.release(&key).await;
                }
            }
            CallDemand::Find { name, answer } => {
                let node = match self.port.key(&name) {
                    Ok(key) => self.port.home_of(&key).await,
                    Err(_) => None,
                };
                let node = node.filter(|node| node != self.port.node());
                // The caller may be gone.
                let _ = answer.send(node.map(|node| node.as_str().to_owned()));
            }
            CallDemand::List { answer } => {
                // The client may be gone.
                let _ = answer.send(self.port.names().await);
            }
            CallDemand::Send { node, message } => {
                let Ok(node) = NodeId::new(&node) else { return };
                if let Err(error) = self.port.send(&node, calls, message).await {
                    tracing::warn!(%node, %error, "cluster: a message about a call is left out");
                }
            }
        }
    }

    async fn claim(&mut self, name: &str, answer: oneshot::Sender<Result<(), ClaimError>>) {
        let key = match self.port.key(name) {
            Ok(key) => key,
            // It stays at this node.
            Err(KeyError::Empty | KeyError::Long(_) | KeyError::Malformed) => {
                // The client may be gone.
                let _ = answer.send(Ok(()));
                return;
            }
        };
        let claim = Claim {
            since: Instant::now(),
            is_elsewhere: false,
            answer,
        };
        self.claims.insert(key.clone(), claim);
        self.port.claim(&key).await;
    }

    /// Refuses names that the bus has not confirmed in time.
    async fn give_up(&mut self, now: Instant) {
        let late = self
            .claims
            .extract_if(|_, claim| now.saturating_duration_since(claim.since) >= PATIENCE);
        for (key, claim) in late.collect::<Vec<_>>() {
            self.port.release(&key).await;
            let refused = match claim.is_elsewhere {
                true => ClaimError::Taken,
                false => ClaimError::Unknown("the cluster does not answer".to_owned()),
            };
            // The client may be gone.
            let _ = claim.answer.send(Err(refused));
        }
    }

    /// The cluster says where a name is.
    async fn home(&mut self, key: &HomeKey, place: &Place) {
        if let Place::There { is_reachable, .. } = place
            && !is_reachable
        {
            // If that node is dead, this one gets the name in time.
            if let Some(claim) = self.claims.get_mut(key) {
                claim.is_elsewhere = true;
            }
            return;
        }
        let outcome = match place {
            Place::Here { .. } => Ok(()),
            Place::There { .. } => Err(ClaimError::Taken),
            Place::Nowhere(reason) => Err(ClaimError::Unknown(reason.to_string())),
        };
        let Some(claim) = self.claims.remove(key) else {
            if outcome == Err(ClaimError::Taken) {
                tracing::warn!(%key, "cluster: a user of this node is registered at another one, too");
            }
            return;
        };
        if outcome.is_err() {
            self.port.release(key).await;
        }
        // The client may be gone: then its name is released.
        let _ = claim.answer.send(outcome);
    }

    async fn event(&mut self, calls: &VideoCalls, event: PortEvent) {
        match event {
            PortEvent::Home { key, place } => self.home(&key, &place).await,
            PortEvent::Message { from, body, .. } => calls.take(from.as_str(), &body),
            PortEvent::Resumed { node } => calls.resumed(node.as_str()),
            PortEvent::Lost { node } => calls.lost(node.as_str()),
            PortEvent::Linked { node } => calls.linked(node.as_str()),
            PortEvent::SourceEnded { ingest, .. } => calls.source_ended(ingest),
            PortEvent::Item { .. }
            | PortEvent::Complete { .. }
            | PortEvent::Ended { .. }
            | PortEvent::Wanted { .. } => {}
        }
    }
}
