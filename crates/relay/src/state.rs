//! The relays of a node: what it offers, and its exchange with each other node.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::{Duration, Instant};

use portunus_media::{
    Demand, DemandReports, IngestId, MediaPlane, NodeLinkId, NodeLinkKey, NodeLinkOptions,
    NodeLinkStats, SourceRef,
};

use crate::far_node::FarNodeState;
use crate::far_node_id::{FarNodeId, Key};
use crate::health::Health;
use crate::pending::Subject;
use crate::rebuild_timer::Rebuild;
use crate::receiving::Receiving;
use crate::sending::{Sending, SentId};
use crate::{Message, NodeName, NodePlace, Offer, SourceDescription, SourceId, Wanted};

/// How often links are looked at.
const LOOK: Duration = Duration::from_millis(250);
/// How many nodes take a source from its node, if nothing else is set.
pub const FAN_OUT: usize = 8;

/// How another node is connected.
#[derive(Debug, Clone)]
pub struct FarNodeOptions {
    /// The link for media.
    pub link: NodeLinkOptions,
    /// What may be sent to it, in bit/s. Beyond that, top encodings are withheld first and audio
    /// last. `None` means no limit.
    pub max_bps: Option<u64>,
    /// Which node it is, and where. `None` if it is of a version that knows nothing of carriers: it
    /// neither is one nor has one.
    pub place: Option<NodePlace>,
    /// Whether the link counts as broken until the other node has answered on it.
    pub is_suspect: bool,
}

/// The part of a node in trees of nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeOptions {
    /// Which node it is, and where. Without it the node takes no part in trees.
    pub place: Option<NodePlace>,
    /// How many nodes take a source from this one. Further ones take it from those.
    pub fan_out: usize,
}

impl Default for TreeOptions {
    fn default() -> Self {
        Self {
            place: None,
            fan_out: FAN_OUT,
        }
    }
}

/// What a node does for others, and others for it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TreeFigures {
    /// Whether media crosses the link in both directions, as far as is known.
    pub works: bool,
    /// The streams that this node sends to the other one for third nodes.
    pub carried_streams: usize,
    /// The sources of the other node that come through third ones: how many by which.
    pub through: BTreeMap<NodeName, usize>,
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
    pub(crate) media: MediaPlane,
    pub(crate) reports: DemandReports,
    pub(crate) tree: TreeOptions,
    pub(crate) is_draining: bool,
    pub(crate) offers: HashMap<SourceId, Offered>,
    pub(crate) nodes: BTreeMap<FarNodeId, FarNodeState>,
    pub(crate) by_name: HashMap<NodeName, FarNodeId>,
    /// The sources of other nodes.
    pub(crate) receiving: BTreeMap<Key, Receiving>,
    pub(crate) by_ingest: HashMap<IngestId, Key>,
    next: u64,
    look_at: Option<Instant>,
    pub(crate) rebuild: Rebuild,
    pub(crate) events: VecDeque<Event>,
}

/// A source of this node.
#[derive(Debug)]
pub(crate) struct Offered {
    source: SourceRef,
    is_video: bool,
    /// What was last told of the demand of other nodes.
    told: Demand,
}

impl State {
    /// Returns the relays of a node that is alone so far.
    pub fn new(media: MediaPlane, tree: TreeOptions) -> Self {
        Self {
            media,
            reports: DemandReports::default(),
            tree,
            is_draining: false,
            offers: HashMap::new(),
            nodes: BTreeMap::new(),
            by_name: HashMap::new(),
            receiving: BTreeMap::new(),
            by_ingest: HashMap::new(),
            // The ids of sources differ from those of runs before, which other nodes may still
            // know. They stay exact as JSON numbers of any reader.
            next: u64::from(rand::random::<u32>() >> 4) << 24 | 1,
            look_at: None,
            rebuild: Rebuild::default(),
            events: VecDeque::new(),
        }
    }

    /// Where workers report what viewers can see.
    pub fn reports(&self) -> &DemandReports {
        &self.reports
    }

    /// Sets whether this node carries no more sources for others, because it drains.
    pub fn set_draining(&mut self, is_draining: bool) {
        self.is_draining = is_draining;
    }

    /// Connects another node.
    pub fn connect(&mut self, options: &FarNodeOptions, now: Instant) -> FarNodeId {
        let node = FarNodeId(self.next());
        let link = self.media.add_node_link(&options.link);
        if let Some(place) = &options.place {
            self.by_name.insert(place.name.clone(), node);
            self.look_at.get_or_insert(now + LOOK);
        }
        let health = Health::new(options.is_suspect, now);
        let state = FarNodeState::new(link, options.max_bps, options.place.clone(), health);
        self.nodes.insert(node, state);
        self.rebuild.put_off(now);
        node
    }

    /// Tells another node again what this one wants of it, as messages may have been lost.
    pub fn resume(&mut self, node: FarNodeId) {
        let wants: Vec<Subject> = self.wants_of(node).collect();
        if let Some(state) = self.nodes.get_mut(&node) {
            state.resume(wants.into_iter());
        }
    }

    /// Forgets another node. Its sources end here, and those of this node end there.
    pub fn disconnect(&mut self, node: FarNodeId, now: Instant) {
        let Some(mut state) = self.nodes.remove(&node) else {
            return;
        };
        let name = state.place.take().map(|place| place.name);
        if let Some(name) = &name
            && self.by_name.get(name) == Some(&node)
        {
            self.by_name.remove(name);
        }
        self.end_sources_of(node, name.as_ref());
        for id in state.end(&self.media) {
            if let SentId::Own(source) = id {
                self.tell_demand(source);
            }
        }
        for key in std::mem::take(&mut state.carried) {
            self.forget_child(key, node);
        }
        if let Some(name) = &name {
            for other in self.nodes.values_mut() {
                let assigned = other.assigned.values_mut();
                assigned.for_each(|carriers| carriers.retain(|it| it != name));
            }
        }
        self.lose_carrier(node, now);
        self.rebuild.put_off(now);
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
            let is_wanted = state.sends(SentId::Own(id));
            state.withdraw(&self.media, SentId::Own(id));
            if state.assigned.remove(&id).is_some() || is_wanted {
                state.pending.push(Subject::Ended(id));
            }
        }
    }

    /// Subscribes to a source of another node. Returns its ingest, to route from it. Nothing
    /// crosses as long as nobody looks. Returns `None` if the node is not connected.
    pub fn subscribe(&mut self, node: FarNodeId, offer: &Offer) -> Option<IngestId> {
        self.nodes.get(&node)?;
        let receiving = self.know((node, offer.id), offer);
        receiving.is_local = true;
        Some(receiving.ingest())
    }

    /// Returns a source of another node, which is added if it is not known.
    pub(crate) fn know(&mut self, key: Key, offer: &Offer) -> &mut Receiving {
        let (media, reports) = (&self.media, &self.reports);
        let new = || Receiving::new(media, offer, reports);
        let receiving = self.receiving.entry(key).or_insert_with(new);
        self.by_ingest.insert(receiving.ingest(), key);
        receiving
    }

    /// Removes the ingest of a source of another node, unless it is carried for a third node.
    /// Ingests of others are left alone.
    pub fn unsubscribe(&mut self, ingest: IngestId) {
        let Some(key) = self.by_ingest.get(&ingest).copied() else {
            return;
        };
        if let Some(receiving) = self.receiving.get_mut(&key) {
            receiving.is_local = false;
        }
        self.end_if_unused(key);
    }

    /// Takes a message of another node.
    pub fn take_message(&mut self, node: FarNodeId, message: &Message, now: Instant) {
        if !self.nodes.contains_key(&node) {
            return;
        }
        match message {
            Message::Want {
                source,
                streams,
                spatial,
                temporal,
                direct,
                without,
            } => {
                let wanted = (streams.as_slice(), (*spatial, *temporal));
                let except = (!*direct).then_some(without.as_slice());
                self.take_want(node, *source, wanted, except, now);
            }
            Message::Ended { source } => self.end_source((node, *source)),
            Message::Withheld { source, encodings } => {
                self.note_withheld((node, *source), encodings)
            }
            Message::Again => {
                if let Some(state) = self.nodes.get_mut(&node) {
                    state.begins_again(now);
                }
            }
            Message::Later => {}
            Message::Seek { source, without } => self.take_seek(node, *source, without, now),
            Message::Carriers { source, nodes } => self.take_carriers((node, *source), nodes, now),
            Message::Ask {
                of,
                source,
                description,
            } => {
                let offer = Offer {
                    id: *source,
                    description: description.clone(),
                };
                self.take_ask(node, of, &offer, now);
            }
            Message::Carry {
                of,
                source,
                streams,
                spatial,
                temporal,
            } => {
                let wanted = (streams.as_slice(), (*spatial, *temporal));
                self.take_carry(node, (of, *source), wanted, now);
            }
            Message::Carrying { of, source, worker } => {
                if let Some(key) = self.key_of(of, *source) {
                    self.take_carrying(node, key, *worker, now);
                }
            }
            Message::Refused { of, source } => {
                if let Some(key) = self.key_of(of, *source) {
                    self.take_refusal(node, key, now);
                }
            }
            Message::Gone { of, source } => {
                let key = self.key_of(of, *source);
                if let Some(key) = key.filter(|key| self.is_carrier(node, *key)) {
                    self.end_source(key);
                }
            }
            Message::CarriedWithheld {
                of,
                source,
                encodings,
            } => {
                let key = self.key_of(of, *source);
                if let Some(key) = key.filter(|key| self.is_carrier(node, *key)) {
                    self.note_withheld(key, encodings);
                }
            }
        }
    }

    /// Returns the key of a source of the node with this name, if that is connected.
    pub(crate) fn key_of(&self, of: &NodeName, source: SourceId) -> Option<Key> {
        Some((*self.by_name.get(of)?, source))
    }

    /// Takes what a node wants of a source of this one. `without` is `None` if it takes no carrier.
    fn take_want(
        &mut self,
        node: FarNodeId,
        source: SourceId,
        (streams, layers): (&[Wanted], (u8, u8)),
        without: Option<&[NodeName]>,
        now: Instant,
    ) {
        let carriers = match without.filter(|_| !streams.is_empty()) {
            Some(without) => self.assign(node, source, without, now),
            None => Vec::new(),
        };
        let (Some(state), offered) = (self.nodes.get_mut(&node), self.offers.get(&source)) else {
            return;
        };
        let Some(offered) = offered else {
            if !streams.is_empty() {
                state.tell_ended(source);
            }
            return;
        };
        if !carriers.is_empty() {
            state.assigned.insert(source, carriers);
            state.pending.push(Subject::Carriers(source));
            return;
        }
        let id = SentId::Own(source);
        // A node that goes over to a carrier wants nothing of this one, and keeps the carrier.
        if !streams.is_empty() || !state.sends(id) {
            state.assigned.remove(&source);
        }
        let link = state.link.id();
        let new = || Sending::new(link, offered.source, offered.is_video);
        state.send(&self.media, id, new, (streams, layers), now);
        self.tell_demand(source);
    }

    /// Takes what workers have reported.
    pub fn take_reports(&mut self, now: Instant) {
        while let Some((ingest, demand)) = self.reports.next() {
            let Some(key) = self.by_ingest.get(&ingest).copied() else {
                continue;
            };
            let receiving = self.receiving.get_mut(&key);
            if receiving.is_some_and(|it| it.want(demand, now)) {
                self.update(key, now);
            }
        }
    }

    /// Returns the next message, and the node that it is for.
    pub fn poll_message(&mut self) -> Option<(FarNodeId, Message)> {
        loop {
            let mut nodes = self.nodes.iter();
            let node = *nodes.find(|(_, state)| !state.pending.is_empty())?.0;
            if let Some(message) = self.poll_message_to(node) {
                return Some((node, message));
            }
        }
    }

    /// Returns the next message for a node.
    pub fn poll_message_to(&mut self, node: FarNodeId) -> Option<Message> {
        loop {
            let subject = self.nodes.get_mut(&node)?.pending.pop()?;
            if let Some(message) = self.message_about(node, subject) {
                return Some(message);
            }
        }
    }

    /// Returns the next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Returns when [`State::handle_timeout`] is due.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let nodes = self.nodes.values().filter_map(FarNodeState::poll_timeout);
        let receiving = self.receiving.values().filter_map(Receiving::poll_timeout);
        nodes.chain(receiving).chain(self.look_at).min()
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        let mut gone = Vec::new();
        for (node, state) in &mut self.nodes {
            let ids = state.handle_timeout(&self.media, now);
            gone.extend(ids.into_iter().map(|id| (*node, id)));
        }
        for (node, id) in gone {
            match id {
                SentId::Own(source) => self.tell_demand(source),
                SentId::Carried(key) => self.forget_child(key, node),
            }
        }
        self.handle_ways(now);
        if self.look_at.is_some_and(|at| at <= now) {
            self.look_at = (!self.by_name.is_empty()).then(|| now + LOOK);
            self.look(now);
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

    /// Returns the link with a node, for tests.
    #[doc(hidden)]
    pub fn link_of(&self, node: FarNodeId) -> Option<&portunus_media::NodeLink> {
        Some(&self.nodes.get(&node)?.link)
    }

    fn tell_demand(&mut self, source: SourceId) {
        let Some(offered) = self.offers.get_mut(&source) else {
            return;
        };
        let nodes = self.nodes.values();
        let demands = nodes.map(|state| state.wants(SentId::Own(source)));
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
