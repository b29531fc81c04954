//! The task that carries messages between the cluster, the relays and the kinds of things.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use portunus_cluster::{Cluster, Demand, Event, HomeKey, NodeId};
use portunus_media::NodeLinkOptions;
use portunus_relay::{Event as RelayEvent, FarNodeId, FarNodeOptions, Message};
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval};

use crate::envelope::Envelope;
use crate::exchange::{Action, Exchange};
use crate::fragments::Fragments;
use crate::link_message::LinkMessage;
use crate::options::SpanOptions;
use crate::port::{LINKS, PortEvent, THINGS};
use crate::sources::{Crossings, Kind, place};

/// How often links are measured, and the age of their keys is looked at.
const LOOK: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct Driver {
    cluster: Cluster,
    crossings: Arc<Crossings>,
    kinds: HashMap<Kind, mpsc::Sender<PortEvent>>,
    options: SpanOptions,
    exchanges: HashMap<NodeId, Exchange>,
    fragments: Fragments,
    /// The nodes whose control link goes through a third one.
    indirect: HashSet<NodeId>,
}

impl Driver {
    pub(crate) fn new(
        cluster: Cluster,
        crossings: Arc<Crossings>,
        kinds: HashMap<Kind, mpsc::Sender<PortEvent>>,
        options: SpanOptions,
    ) -> Self {
        Driver {
            cluster,
            crossings,
            kinds,
            options,
            exchanges: HashMap::new(),
            fragments: Fragments::default(),
            indirect: HashSet::new(),
        }
    }

    pub(crate) async fn run(mut self, mut events: mpsc::Receiver<Event>) {
        let relays = self.crossings.relays.clone();
        let mut ticks = interval(LOOK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                event = events.recv() => match event {
                    Some(event) => self.cluster_event(event).await,
                    None => return,
                },
                (to, message) = relays.next_message() => self.send_relay(to, message).await,
                event = relays.next_event() => self.relay_event(event).await,
                _ = ticks.tick() => {
                    self.crossings.measure(Instant::now());
                    let nodes: Vec<NodeId> = self.exchanges.keys().cloned().collect();
                    for node in nodes {
                        self.exchange(&node, Exchange::tick).await;
                    }
                }
            }
        }
    }

    async fn cluster_event(&mut self, event: Event) {
        match event {
            Event::Heard { node, through } => {
                match through {
                    Some(_) => self.indirect.insert(node),
                    None => self.indirect.remove(&node),
                };
            }
            Event::NodeUp { node, .. } => {
                self.fragments.forget(&node);
                self.exchange(&node, Exchange::node_up).await;
                self.tell_all(&PortEvent::Resumed { node }).await;
            }
            Event::NodeResumed { node } => {
                self.fragments.forget(&node);
                self.exchange(&node, Exchange::node_resumed).await;
                self.tell_all(&PortEvent::Resumed { node }).await;
            }
            Event::NodeLost { node } => {
                self.fragments.forget(&node);
                self.exchange(&node, |it, _| it.node_lost()).await;
                self.exchanges.remove(&node);
                self.indirect.remove(&node);
                self.tell_all(&PortEvent::Lost { node }).await;
            }
            Event::Direct {
                from,
                channel: LINKS,
                payload,
            } => match LinkMessage::parse(&payload) {
                Ok(message) => self.exchange(&from, |it, now| it.take(message, now)).await,
                Err(error) => tracing::warn!(node = %from, %error, "cluster: skipped"),
            },
            Event::Direct {
                from,
                channel: THINGS,
                payload,
            } => match Envelope::parse(payload) {
                Ok(envelope) => self.envelope(from, envelope).await,
                Err(error) => tracing::warn!(node = %from, %error, "cluster: skipped"),
            },
            Event::Item {
                key,
                node,
                item,
                value,
            } => {
                let event = PortEvent::Item {
                    key: key.clone(),
                    node,
                    item,
                    value,
                };
                self.tell(&key, event).await;
            }
            Event::Home { key, place } => {
                tracing::debug!(%key, ?place, "cluster: it has a home");
                let event = PortEvent::Home {
                    key: key.clone(),
                    place,
                };
                self.tell(&key, event).await;
            }
            Event::Accepted { key } => {
                let event = PortEvent::Complete { key: key.clone() };
                self.tell(&key, event).await;
            }
            Event::Ended { key } => {
                let event = PortEvent::Ended { key: key.clone() };
                self.tell(&key, event).await;
            }
            // The cluster logs the others, and nothing here depends on them.
            _ => {}
        }
    }

    /// Takes a message about a thing, or a part of one.
    async fn envelope(&mut self, from: NodeId, envelope: Envelope) {
        let key = envelope.key.clone();
        match self.fragments.take(&from, envelope) {
            Ok(Some(body)) => {
                let event = PortEvent::Message {
                    key: key.clone(),
                    from,
                    body,
                };
                self.tell(&key, event).await;
            }
            Ok(None) => {}
            Err(error) => tracing::warn!(node = %from, %error, "cluster: skipped"),
        }
    }

    /// Calls the exchange with a node, and does what follows from it.
    async fn exchange(&mut self, node: &NodeId, call: impl FnOnce(&mut Exchange, Instant)) {
        let is_opener = self.cluster.id() < node;
        let SpanOptions {
            addresses, region, ..
        } = &self.options;
        let new = || Exchange::new(is_opener, addresses.clone(), region.clone());
        let exchange = self.exchanges.entry(node.clone()).or_insert_with(new);
        call(exchange, Instant::now());
        for action in exchange.take_actions() {
            self.act(node, action).await;
        }
    }

    async fn act(&mut self, node: &NodeId, action: Action) {
        let relays = self.crossings.relays.clone();
        match action {
            Action::Send(message) => self.send(node, &message).await,
            Action::Connect {
                addresses,
                region,
                send,
                receive,
            } => {
                let link = NodeLinkOptions {
                    far: addresses,
                    send,
                    receive,
                };
                let (id, far) = relays.connect(&FarNodeOptions {
                    link,
                    max_bps: self.options.max_bps,
                    place: region.and_then(|region| place(node, region)),
                    is_suspect: self.indirect.contains(node),
                });
                self.crossings.add_node(node.clone(), id, far);
                tracing::info!(%node, "cluster: a media link is up");
                let node = node.clone();
                self.tell_all(&PortEvent::Linked { node }).await;
            }
            Action::Resume => {
                if let Some(id) = self.crossings.node(node) {
                    relays.resume(id);
                }
            }
            Action::Disconnect => {
                if let Some(id) = self.crossings.remove_node(node) {
                    tracing::info!(%node, "cluster: a media link is down");
                    relays.disconnect(id);
                    // Before a new link is told of.
                    while let Some(event) = relays.poll_event() {
                        self.relay_event(event).await;
                    }
                }
            }
            Action::SetKey(number, key) => {
                if let Some(id) = self.crossings.node(node) {
                    relays.set_key(id, number, &key);
                }
            }
            Action::UseKey(number, key) => {
                if let Some(id) = self.crossings.node(node) {
                    relays.use_key(id, number, &key);
                }
            }
            Action::Relay(message) => {
                if let Some(id) = self.crossings.node(node) {
                    relays.take_message(id, &message);
                }
            }
        }
    }

    async fn send(&self, to: &NodeId, message: &LinkMessage) {
        let demand = Demand::Direct {
            to: to.clone(),
            channel: LINKS,
            payload: Bytes::from(message.to_bytes()),
        };
        self.cluster.demand(demand).await;
    }

    async fn send_relay(&self, to: FarNodeId, about: Message) {
        let Some(node) = self.crossings.name_of(to) else {
            return;
        };
        let session = self.exchanges.get(&node).and_then(Exchange::session);
        if let Some(session) = session {
            let message = LinkMessage::Relay { session, about };
            self.send(&node, &message).await;
        }
    }

    async fn relay_event(&self, event: RelayEvent) {
        match event {
            RelayEvent::Wanted { source, demand } => {
                let kind = self.crossings.offerer(source);
                self.tell_kind(kind, PortEvent::Wanted { source, demand })
                    .await;
            }
            RelayEvent::Ended { source, ingest, .. } => {
                if let Some((kind, node)) = self.crossings.forget_taken(ingest) {
                    let event = PortEvent::SourceEnded {
                        node,
                        source,
                        ingest,
                    };
                    self.tell_kind(Some(kind), event).await;
                }
            }
            RelayEvent::Withheld { ingest, encodings } => {
                tracing::debug!(?ingest, ?encodings, "cluster: a link carries no more");
            }
        }
    }

    async fn tell(&self, key: &HomeKey, event: PortEvent) {
        let kind = self.kinds.keys().find(|kind| **kind == key.kind());
        self.tell_kind(kind.copied(), event).await;
    }

    async fn tell_all(&self, event: &PortEvent) {
        for kind in self.kinds.values() {
            // A kind that has ended needs nothing.
            let _ = kind.send(event.clone()).await;
        }
    }

    async fn tell_kind(&self, kind: Option<Kind>, event: PortEvent) {
        if let Some(events) = kind.and_then(|kind| self.kinds.get(kind)) {
            // A kind that has ended needs nothing.
            let _ = events.send(event).await;
        }
    }
}
