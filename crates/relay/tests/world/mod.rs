//! Nodes that exchange messages in virtual time, whose media planes only note requests.
#![allow(dead_code, reason = "each test uses some of it")]

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use portunus_media::{
    Demand, IngestId, MediaPlane, NodeLinkId, NodeLinkKey, NodeLinkOptions, SourceRef,
};
use portunus_relay::{
    Event, FarNodeId, FarNodeOptions, Message, NodeName, NodePlace, Offer, SourceDescription,
    State, TreeOptions,
};
use portunus_sdp::CodecName;

const TICK: Duration = Duration::from_millis(100);

pub struct Node {
    pub media: MediaPlane,
    pub state: State,
    pub events: Vec<Event>,
    /// The other nodes as it knows them, by their number.
    pub others: BTreeMap<usize, FarNodeId>,
    /// What viewers here can see of ingests.
    looks: BTreeMap<IngestId, u8>,
    reported: BTreeMap<IngestId, Demand>,
}

pub struct World {
    pub nodes: Vec<Node>,
    pub now: Instant,
    /// Pairs between which no media passes.
    cut: BTreeSet<(usize, usize)>,
    dead: BTreeSet<usize>,
    regions: Vec<&'static str>,
    /// Nodes of a version without carriers.
    old: BTreeSet<usize>,
    pub messages: usize,
}

fn pair(a: usize, b: usize) -> (usize, usize) {
    (a.min(b), a.max(b))
}

pub fn name(number: usize) -> NodeName {
    NodeName::new(&format!("n{number}")).unwrap()
}

impl World {
    /// Nodes of these regions, each connected with each.
    pub fn new(regions: &[&'static str], fan_out: usize) -> Self {
        Self::with(regions, fan_out, &[])
    }

    pub fn with(regions: &[&'static str], fan_out: usize, old: &[usize]) -> Self {
        let mut world = World {
            nodes: Vec::new(),
            now: Instant::now(),
            cut: BTreeSet::new(),
            dead: BTreeSet::new(),
            regions: regions.to_vec(),
            old: old.iter().copied().collect(),
            messages: 0,
        };
        for number in 0..regions.len() {
            let (media, _, _) = MediaPlane::detached();
            let place = Some(world.place(number));
            let state = State::new(media.clone(), TreeOptions { place, fan_out });
            world.nodes.push(Node {
                media,
                state,
                events: Vec::new(),
                others: BTreeMap::new(),
                looks: BTreeMap::new(),
                reported: BTreeMap::new(),
            });
        }
        for a in 0..regions.len() {
            for b in 0..regions.len() {
                if a != b {
                    world.connect(a, b);
                }
            }
        }
        world
    }

    fn place(&self, number: usize) -> NodePlace {
        NodePlace {
            name: name(number),
            region: self.regions[number].to_owned(),
        }
    }

    fn connect(&mut self, a: usize, b: usize) {
        let is_old = self.old.contains(&a) || self.old.contains(&b);
        let options = FarNodeOptions {
            link: NodeLinkOptions {
                far: vec![SocketAddr::from(([192, 0, 2, 1], 4_000))],
                send: NodeLinkKey::random(),
                receive: NodeLinkKey::random(),
            },
            max_bps: None,
            place: (!is_old).then(|| self.place(b)),
            is_suspect: false,
        };
        let now = self.now;
        let node = &mut self.nodes[a];
        node.others.insert(b, node.state.connect(&options, now));
    }

    /// Offers a source of a node.
    pub fn offer(&mut self, node: usize, encodings: u8) -> Offer {
        let source = SourceRef::Ingest(IngestId {
            worker: 0,
            serial: 900_000,
        });
        let description = SourceDescription {
            encodings,
            ..SourceDescription::new(CodecName::Vp8)
        };
        self.nodes[node].state.offer(source, description)
    }

    pub fn subscribe(&mut self, node: usize, of: usize, offer: &Offer) -> IngestId {
        let node = &mut self.nodes[node];
        node.state.subscribe(node.others[&of], offer).unwrap()
    }

    /// Sets what viewers of a node can see of an ingest.
    pub fn look(&mut self, node: usize, ingest: IngestId, encodings: u8) {
        self.nodes[node].looks.insert(ingest, encodings);
        self.settle();
    }

    /// Lets media pass no more between two nodes.
    pub fn cut(&mut self, a: usize, b: usize) {
        self.cut.insert(pair(a, b));
    }

    pub fn heal(&mut self, a: usize, b: usize) {
        self.cut.remove(&pair(a, b));
    }

    /// Ends a node, of which the others learn later.
    pub fn kill(&mut self, node: usize) {
        self.dead.insert(node);
    }

    /// The others learn that a node is gone.
    pub fn lose(&mut self, node: usize) {
        let now = self.now;
        for other in &mut self.nodes {
            if let Some(id) = other.others.remove(&node) {
                other.state.disconnect(id, now);
            }
        }
        self.settle();
    }

    /// The connection for messages between two nodes was replaced, and what was on its way is lost.
    pub fn replace_connection(&mut self, a: usize, b: usize) {
        for (a, b) in [(a, b), (b, a)] {
            let node = &mut self.nodes[a];
            let other = node.others[&b];
            while node.state.poll_message_to(other).is_some() {}
            node.state.resume(other);
        }
    }

    fn passes(&self, a: usize, b: usize) -> bool {
        let is_dead = self.dead.contains(&a) || self.dead.contains(&b);
        !is_dead && !self.cut.contains(&pair(a, b))
    }

    fn alive(&self) -> Vec<usize> {
        let nodes = 0..self.nodes.len();
        nodes.filter(|node| !self.dead.contains(node)).collect()
    }

    /// Reports what viewers and other nodes can see.
    fn report(&mut self, number: usize) {
        let node = &mut self.nodes[number];
        let requested = node.media.requested();
        for ingest in requested.ingests.iter().map(|it| it.id) {
            let mut encodings = node.looks.get(&ingest).copied().unwrap_or_default();
            for outlet in &requested.outlets {
                let relay = outlet.relay().filter(|_| outlet.options.enabled);
                if outlet.from == SourceRef::Ingest(ingest) {
                    encodings |= relay.map_or(0, |relay| 1 << relay.encoding);
                }
            }
            let demand = Demand {
                encodings,
                spatial: 2,
                temporal: 2,
            };
            let before = node.reported.insert(ingest, demand).unwrap_or_default();
            if before != demand {
                node.state.reports().pretend(ingest, demand);
            }
        }
        node.state.take_reports(self.now);
    }

    /// Delivers all messages.
    pub fn settle(&mut self) {
        loop {
            let mut is_quiet = true;
            for from in self.alive() {
                self.report(from);
                let node = &mut self.nodes[from];
                if node.state.poll_timeout().is_some_and(|at| at <= self.now) {
                    node.state.handle_timeout(self.now);
                }
                while let Some((to, message)) = self.nodes[from].state.poll_message() {
                    is_quiet = false;
                    self.deliver(from, to, &message);
                }
                let node = &mut self.nodes[from];
                node.events
                    .extend(std::iter::from_fn(|| node.state.poll_event()));
            }
            if is_quiet {
                return;
            }
        }
    }

    fn deliver(&mut self, from: usize, to: FarNodeId, message: &Message) {
        let text = serde_json::to_string(message).unwrap();
        assert!(text.len() < 8_192, "{text}");
        let read: Message = serde_json::from_str(&text).unwrap();
        assert_eq!(read, *message);
        self.messages += 1;
        let others = self.nodes[from].others.iter();
        let known: Vec<usize> = others
            .filter(|(_, id)| **id == to)
            .map(|it| *it.0)
            .collect();
        let Some(to) = known.first().copied() else {
            return;
        };
        if self.dead.contains(&to) {
            return;
        }
        let is_old = self.old.contains(&to);
        let for_all = matches!(
            message,
            Message::Want { .. }
                | Message::Ended { .. }
                | Message::Withheld { .. }
                | Message::Again
        );
        assert!(!is_old || for_all, "an old node does not know {text}");
        let now = self.now;
        let node = &mut self.nodes[to];
        if let Some(id) = node.others.get(&from).copied() {
            node.state.take_message(id, &read, now);
        }
    }

    pub fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            self.now += TICK;
            for a in self.alive() {
                for b in self.alive() {
                    let node = &self.nodes[a];
                    if a != b
                        && self.passes(a, b)
                        && let Some(id) = node.others.get(&b)
                    {
                        node.state.link_of(*id).unwrap().pretend_life();
                    }
                }
            }
            self.settle();
        }
    }

    pub fn seconds(&mut self, seconds: u64) {
        self.pass(Duration::from_secs(seconds));
    }

    fn link(&self, node: usize, to: usize) -> Option<NodeLinkId> {
        let id = self.nodes[node].others.get(&to)?;
        Some(self.nodes[node].state.link_of(*id)?.id())
    }

    /// The node that sends an encoding of an ingest to another one, as far as media passes.
    fn sender(&self, node: usize, ingest: IngestId, encoding: u8) -> Option<(usize, SourceRef)> {
        let expected = self.nodes[node].media.requested().relayed;
        let expected = expected
            .iter()
            .filter(|it| it.ingest == ingest && it.encoding == encoding);
        for stream in expected {
            for from in self.alive() {
                if from == node
                    || !self.passes(from, node)
                    || self.link(node, from) != Some(stream.link)
                {
                    continue;
                }
                let link = self.link(from, node);
                let outlets = self.nodes[from].media.requested().outlets;
                let mut outlets = outlets.iter().filter(|it| it.options.enabled);
                let sends = outlets.find(|it| {
                    it.relay().is_some_and(|relay| {
                        (Some(relay.link), relay.ssrc) == (link, stream.ssrc)
                            && relay.encoding == encoding
                    })
                });
                if let Some(outlet) = sends {
                    return Some((from, outlet.from));
                }
            }
        }
        None
    }

    /// The nodes by which an encoding reaches a node, its own node last. `None` if it does not.
    pub fn way(&self, node: usize, ingest: IngestId, encoding: u8) -> Option<Vec<usize>> {
        let (mut at, mut source, mut way) = (node, SourceRef::Ingest(ingest), Vec::new());
        loop {
            let SourceRef::Ingest(ingest) = source else {
                return Some(way);
            };
            if ingest.serial == 900_000 {
                return Some(way);
            }
            let (from, of) = self.sender(at, ingest, encoding)?;
            assert!(!way.contains(&from) && from != node, "a circle: {way:?}");
            way.push(from);
            (at, source) = (from, of);
        }
    }

    /// The number of streams that a node sends.
    pub fn sent(&self, node: usize) -> usize {
        let outlets = self.nodes[node].media.requested().outlets;
        outlets.iter().filter(|it| it.options.enabled).count()
    }

    /// The number of streams that cross from a node to another one.
    pub fn crossing(&self, from: usize, to: usize) -> usize {
        let link = self.link(from, to);
        let outlets = self.nodes[from].media.requested().outlets;
        let relays = outlets.iter().filter(|it| it.options.enabled);
        let relays = relays.filter_map(|it| it.relay());
        relays.filter(|relay| Some(relay.link) == link).count()
    }
}
