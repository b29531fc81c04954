//! The relays of a node: what it offers, and its exchange with each other node.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::Instant;

use portunus_media::{
    Demand, DemandReports, IngestId, MediaPlane, NodeLinkId, NodeLinkKey, NodeLinkOptions,
    NodeLinkStats, SourceRef,
};

use crate::far_node::FarNodeState;
use crate::sending::Sending;
use crate::{Message, Offer, SourceDescription, SourceId};

/// Another node, as long as it is connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FarNodeId(u64);

/// How another node is connected.
#[derive(Debug, Clone)]
pub struct FarNodeOptions {
    /// The link for media.
    pub link: NodeLinkOptions,
    /// What may be sent to it, in bit/s. Beyond that, top encodings are withheld first and audio
    /// last. `None` means no limit.
    pub max_bps: Option<u64>,
}

/// Something that has happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// What all other nodes together want of a source of this one.
    Wanted {
        /// The source.
        source: SourceId,
        /// The encodings and layers. Nothing, if no other node wants it.
        demand: Demand,
    },
    /// A source of another node is gone, and so is its ingest.
    Ended {
        /// The other node.
        node: FarNodeId,
        /// The source there.
        source: SourceId,
        /// What its ingest was.
        ingest: IngestId,
    },
    /// Another node does not send encodings that are wanted, because the link carries no more.
    Withheld {
        /// The ingest of the source.
        ingest: IngestId,
        /// The encodings, 0 the lowest. Empty means that all are sent again.
        encodings: Vec<u8>,
    },
}

/// The relays of a node, without a lock and a clock.
#[derive(Debug)]
pub struct State {
    media: MediaPlane,
    reports: DemandReports,
    offers: HashMap<SourceId, Offered>,
    nodes: BTreeMap<FarNodeId, FarNodeState>,
    by_ingest: HashMap<IngestId, (FarNodeId, SourceId)>,
    next: u64,
    events: VecDeque<Event>,
}

/// A source of this node.
#[derive(Debug)]
struct Offered {
    source: SourceRef,
    is_video: bool,
    /// What was last told of the demand of other nodes.
    told: Demand,
}

impl State {
    /// Returns the relays of a node that is alone so far.
    pub fn new(media: MediaPlane) -> Self {
        Self {
            media,
            reports: DemandReports::default(),
            offers: HashMap::new(),
            nodes: BTreeMap::new(),
            by_ingest: HashMap::new(),
            next: 1,
            events: VecDeque::new(),
        }
    }

    /// Where workers report what viewers can see.
    pub fn reports(&self) -> &DemandReports {
        &self.reports
    }

    /// Connects another node.
    pub fn connect(&mut self, options: &FarNodeOptions) -> FarNodeId {
        let node = FarNodeId(self.next());
        let link = self.media.add_node_link(&options.link);
        let state = FarNodeState::new(link, options.max_bps);
        self.nodes.insert(node, state);
        node
    }

    /// Tells another node again what this one wants of it, as messages may have been lost.
    pub fn resume(&mut self, node: FarNodeId) {
        if let Some(state) = self.nodes.get_mut(&node) {
            state.resume();
        }
    }

    /// Forgets another node. Its sources end here, and those of this node end there.
    pub fn disconnect(&mut self, node: FarNodeId) {
        let Some(mut state) = self.nodes.remove(&node) else {
            return;
        };
        for (source, receiving) in state.receiving() {
            let ingest = receiving.ingest();
            self.by_ingest.remove(&ingest);
            let ended = Event::Ended {
                node,
                source,
                ingest,
            };
            self.events.push_back(ended);
        }
        for source in state.end(&self.media) {
            self.tell_demand(source);
        }
    }

    /// Offers a source to all other nodes.
    pub fn offer(&mut self, source: SourceRef, description: SourceDescription) -> Offer {
        let id = SourceId(self.next());
        let description = SourceDescription {
            worker: source.worker(),
            ..description
        };
        let offered = Offered {
            source,
            is_video: description.codec.codec().is_video(),
            told: Demand::NOTHING,
        };
        self.offers.insert(id, offered);
        Offer { id, description }
    }

    /// Withdraws an offer, because the source is gone. Nodes that wanted it are told.
    pub fn withdraw(&mut self, id: SourceId) {
        self.offers.remove(&id);
        for state in self.nodes.values_mut() {
            state.withdraw(&self.media, id);
        }
    }

    /// Subscribes to a source of another node. Returns its ingest, to route from it. Nothing
    /// crosses as long as nobody looks. Returns `None` if the node is not connected.
    pub fn subscribe(&mut self, node: FarNodeId, offer: &Offer) -> Option<IngestId> {
        let state = self.nodes.get_mut(&node)?;
        let receiving = state.subscribe(&self.media, offer, &self.reports);
        let ingest = receiving.ingest();
        self.by_ingest.insert(ingest, (node, offer.id));
        Some(ingest)
    }

    /// Removes the ingest of a source of another node. Ingests of others are left alone.
    pub fn unsubscribe(&mut self, ingest: IngestId) {
        let Some((node, source)) = self.by_ingest.remove(&ingest) else {
            return;
        };
        if let Some(state) = self.nodes.get_mut(&node) {
            state.unsubscribe(&self.media, source);
        }
    }

    /// Takes a message of another node.
    pub fn take_message(&mut self, node: FarNodeId, message: &Message, now: Instant) {
        let Some(state) = self.nodes.get_mut(&node) else {
            return;
        };
        match message {
            Message::Want {
                source,
                streams,
                spatial,
                temporal,
            } => {
                let Some(offered) = self.offers.get(source) else {
                    if !streams.is_empty() {
                        state.tell_ended(*source);
                    }
                    return;
                };
                let link = state.link.id();
                let new = || Sending::new(link, offered.source, offered.is_video);
                let wanted = (streams.as_slice(), (*spatial, *temporal));
                state.send(&self.media, *source, new, wanted, now);
                self.tell_demand(*source);
            }
            Message::Ended { source } => {
                let ended = state.unsubscribe_ended(&self.media, *source);
                if let Some(ingest) = ended {
                    self.by_ingest.remove(&ingest);
                    self.events.push_back(Event::Ended {
                        node,
                        source: *source,
                        ingest,
                    });
                }
            }
            Message::Withheld { source, encodings } => {
                if let Some(ingest) = state.ingest(*source) {
                    let mut encodings = encodings.clone();
                    encodings.truncate(3);
                    self.events.push_back(Event::Withheld { ingest, encodings });
                }
            }
            Message::Again => state.begins_again(now),
        }
    }

    /// Takes what workers have reported.
    pub fn take_reports(&mut self, now: Instant) {
        while let Some((ingest, demand)) = self.reports.next() {
            let Some((node, source)) = self.by_ingest.get(&ingest) else {
                continue;
            };
            if let Some(state) = self.nodes.get_mut(node) {
                state.want(&self.media, *source, demand, now);
            }
        }
    }

    /// Returns the next message, and the node that it is for.
    pub fn poll_message(&mut self) -> Option<(FarNodeId, Message)> {
        let mut nodes = self.nodes.iter_mut();
        nodes.find_map(|(node, state)| Some((*node, state.poll_message()?)))
    }

    /// Returns the next message for a node.
    pub fn poll_message_to(&mut self, node: FarNodeId) -> Option<Message> {
        self.nodes.get_mut(&node)?.poll_message()
    }

    /// Returns the next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Returns when [`State::handle_timeout`] is due.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let nodes = self.nodes.values();
        nodes.filter_map(FarNodeState::poll_timeout).min()
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        let mut changed = Vec::new();
        for state in self.nodes.values_mut() {
            changed.extend(state.handle_timeout(&self.media, now));
        }
        for source in changed {
            self.tell_demand(source);
        }
    }

    fn link(&self, node: FarNodeId) -> Option<NodeLinkId> {
        Some(self.nodes.get(&node)?.link.id())
    }

    /// Replaces the key of what comes from a node.
    pub fn set_key(&self, node: FarNodeId, number: u32, key: &NodeLinkKey) {
        if let Some(link) = self.link(node) {
            self.media.set_node_link_key(link, number, key);
        }
    }

    /// Replaces the key of what goes to a node.
    pub fn use_key(&self, node: FarNodeId, number: u32, key: &NodeLinkKey) {
        if let Some(link) = self.link(node) {
            self.media.use_node_link_key(link, number, key);
        }
    }

    /// Returns what the link with a node has carried.
    pub fn stats(&self, node: FarNodeId) -> Option<NodeLinkStats> {
        Some(self.nodes.get(&node)?.link.stats())
    }

    fn tell_demand(&mut self, source: SourceId) {
        let Some(offered) = self.offers.get_mut(&source) else {
            return;
        };
        let demands = self.nodes.values().map(|state| state.wants(source));
        let demand = demands.fold(Demand::NOTHING, Demand::union);
        if std::mem::replace(&mut offered.told, demand) != demand {
            self.events.push_back(Event::Wanted { source, demand });
        }
    }

    fn next(&mut self) -> u64 {
        let next = self.next;
        self.next += 1;
        next
    }
}
