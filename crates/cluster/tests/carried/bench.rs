//! One node, and others that the test plays.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use bytes::Bytes;
use portunus_cluster::{
    Bucket, BusEvent, CloseReason, ConnId, Entry, Epoch, Event, Frame, LinkEvent, Load, Node,
    NodeId, NodeRecord, NodeSettings, NodeState, Output, Urls, VersionRange, WithoutBus,
};

pub fn id(name: &str) -> NodeId {
    NodeId::new(name).unwrap()
}

pub struct Bench {
    pub node: Node,
    pub events: Vec<Event>,
    now: Instant,
    conns: BTreeMap<String, ConnId>,
    closed: Vec<(NodeId, CloseReason)>,
    name: NodeId,
    sequence: u64,
}

impl Bench {
    pub fn new(name: &str) -> Self {
        let now = Instant::now();
        let settings = NodeSettings {
            id: id(name),
            epoch: Epoch(1),
            cluster: "test".to_owned(),
            versions: VersionRange::OURS,
            region: String::new(),
            control: vec!["127.0.0.1:1".parse().unwrap()],
            relay: Vec::new(),
            urls: Urls::default(),
            fingerprint: String::new(),
            without_bus: WithoutBus::Refuse,
        };
        Bench {
            node: Node::new(settings, now),
            events: Vec::new(),
            now,
            conns: BTreeMap::new(),
            closed: Vec::new(),
            name: id(name),
            sequence: 0,
        }
    }

    /// Another node connects, and names itself.
    pub fn link(&mut self, name: &str, versions: VersionRange) {
        let conn = ConnId(self.conns.len() as u64 + 1);
        self.conns.insert(name.to_owned(), conn);
        let opened = LinkEvent::Opened {
            conn,
            node: id(name),
            is_dialled: self.name < id(name),
        };
        self.node.link_event(opened, self.now);
        let hello = Frame::Hello {
            node: id(name),
            epoch: Epoch(5),
            cluster: "test".to_owned(),
            versions,
        };
        self.send(name, hello);
        self.frames(name);
    }

    /// The bus has these nodes.
    pub fn know(&mut self, names: &[&str]) {
        let (bucket, generation) = (Bucket::Nodes, 1);
        self.node.bus_event(BusEvent::Connected, self.now);
        let snapshot = BusEvent::Snapshot { bucket, generation };
        self.node.bus_event(snapshot, self.now);
        for name in names {
            self.sequence += 1;
            let record = NodeRecord {
                epoch: Epoch(5),
                state: NodeState::Serving,
                versions: VersionRange::OURS,
                control: vec!["127.0.0.1:1".parse().unwrap()],
                relay: Vec::new(),
                fingerprint: String::new(),
                region: String::new(),
                url: None,
                websocket_url: None,
                livekit_url: None,
                load: Load::default(),
            };
            let entry = Entry {
                bucket,
                key: (*name).to_owned(),
                sequence: self.sequence,
                value: Some(Bytes::from(record.to_value())),
            };
            self.node.bus_event(BusEvent::Entry(entry), self.now);
        }
        self.node.bus_event(BusEvent::Current(bucket), self.now);
        self.take();
    }

    /// Another node sends a frame.
    pub fn send(&mut self, from: &str, frame: Frame) {
        let (conn, bytes) = (self.conns[from], frame.encode());
        let event = LinkEvent::Frame { conn, bytes };
        self.node.link_event(event, self.now);
        self.take();
    }

    pub fn tick(&mut self, time: Duration) {
        self.now += time;
        self.node.tick(self.now);
        self.take();
    }

    /// Returns what another node gets now.
    pub fn all_frames(&mut self, to: &str) -> Vec<Frame> {
        let conn = self.conns[to];
        let frames = std::iter::from_fn(|| self.node.poll_frame(conn, self.now));
        let frames = frames.filter_map(|bytes| Frame::decode(bytes).unwrap());
        frames.collect()
    }

    /// The same without pings and the word of who is heard.
    pub fn frames(&mut self, to: &str) -> Vec<Frame> {
        let mut frames = self.all_frames(to);
        frames.retain(|frame| !matches!(frame, Frame::Ping { .. } | Frame::Hears { .. }));
        frames
    }

    /// Returns whose connections the node has closed.
    pub fn closed(&self) -> Vec<(NodeId, CloseReason)> {
        self.closed.clone()
    }

    /// Returns by which way there is a link to a node: directly, or through another one.
    pub fn way(&self, node: &str) -> Option<Option<NodeId>> {
        let links = self.node.status(self.now).links.into_iter();
        let mut up = links.filter(|link| link.node == id(node) && link.state == "up");
        up.next().map(|link| link.through)
    }

    fn take(&mut self) {
        while let Some(output) = self.node.poll_output() {
            match output {
                Output::Event(event) => self.events.push(event),
                Output::Close { conn, reason } => {
                    let mut all = self.conns.iter();
                    let (name, _) = all.find(|(_, it)| **it == conn).unwrap();
                    self.closed.push((id(name), reason));
                }
                Output::Bus(_) | Output::Dial { .. } => {}
            }
        }
    }
}
