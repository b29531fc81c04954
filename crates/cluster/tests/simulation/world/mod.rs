//! The nodes of a cluster, their links and their bus, in virtual time.

mod connections;
mod observations;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use bytes::Bytes;
use portunus_cluster::{
    Bucket, BusEvent, BusRequest, ConnId, Demand, Entry, Epoch, HomeKey, LinkEvent, Node, NodeId,
    NodeSettings, Outcome, Output, Place, Urls, VersionRange, WithoutBus,
};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::bus::Bus;

/// How long a request to a bus that is away takes to fail.
const BUS_TIMEOUT: Duration = Duration::from_secs(5);

/// Something that a node gets.
#[derive(Debug, Clone)]
enum Input {
    Bus(BusEvent),
    Link(LinkEvent),
}

/// Something that happens.
#[derive(Debug)]
enum Action {
    /// A node gets something, if it is the same run, and its subscription the same (of the bus).
    Give(usize, Epoch, Option<u64>, Input),
    /// A request arrives at the bus.
    Request(usize, Epoch, BusRequest),
    /// A node notices that the bus is away, or connects to it.
    LoseBus(usize, Epoch),
    FindBus(usize, Epoch),
    Expire,
    /// A connection attempt arrives.
    Connect(usize, Epoch, usize),
    /// The frames of one direction of a connection arrive.
    Arrive(ConnId),
}

/// One end of a connection.
#[derive(Debug)]
struct End {
    /// Whose end it is, and the other end.
    node: usize,
    other: ConnId,
    /// Whose end the other one is, or was.
    beyond: usize,
    /// What was sent from the other end, and has not arrived.
    under_way: VecDeque<Under>,
}

#[derive(Debug)]
enum Under {
    Frame(Bytes),
    Closed,
}

/// A node with its server.
#[derive(Debug)]
pub struct Host {
    pub id: NodeId,
    pub epoch: Epoch,
    /// `None` while the process does not run.
    pub node: Option<Node>,
    pub stalled_until: Option<Instant>,
    inbox: VecDeque<Input>,
    /// Whether it is cut off from the bus.
    pub no_bus: bool,
    has_bus: bool,
    subscription: u64,
    /// The last delivery from the bus, since these keep their order.
    delivered: Instant,
    /// What its server has open, with the value of its item.
    pub open: BTreeMap<HomeKey, Bytes>,
    pub places: BTreeMap<HomeKey, Place>,
    /// The items of others, as its server knows them.
    pub items: BTreeMap<(HomeKey, NodeId, String), Bytes>,
    pub versions: VersionRange,
    pub ended: u64,
    /// How many items of others have gone.
    pub gone: u64,
}

/// The world.
#[derive(Debug)]
pub struct World {
    pub now: Instant,
    pub start: Instant,
    pub random: StdRng,
    pub bus: Bus,
    pub hosts: Vec<Host>,
    /// Pairs between which nothing passes.
    pub cut: BTreeSet<(usize, usize)>,
    actions: BTreeMap<(Instant, u64), Action>,
    ends: BTreeMap<ConnId, End>,
    next: u64,
    without_bus: WithoutBus,
    /// When a process has died, and who has to be told of it.
    pub deaths: Vec<Death>,
    /// The items that have gone: at which node, of which room, whose.
    pub gone: Vec<(usize, HomeKey, NodeId)>,
    pub log: VecDeque<String>,
}

/// A process that has died.
#[derive(Debug)]
pub struct Death {
    pub node: NodeId,
    pub witness: usize,
    pub witness_epoch: Epoch,
    pub at: Instant,
}

impl World {
    pub fn new(seed: u64, hosts: usize, without_bus: WithoutBus) -> Self {
        let now = Instant::now();
        let mut world = World {
            now,
            start: now,
            random: StdRng::seed_from_u64(seed),
            bus: Bus::new(),
            hosts: Vec::new(),
            cut: BTreeSet::new(),
            actions: BTreeMap::new(),
            ends: BTreeMap::new(),
            next: 0,
            without_bus,
            deaths: Vec::new(),
            gone: Vec::new(),
            log: VecDeque::new(),
        };
        for index in 0..hosts {
            let id = NodeId::new(&format!("n{index}")).unwrap();
            world.hosts.push(Host {
                id,
                epoch: Epoch(0),
                node: None,
                stalled_until: None,
                inbox: VecDeque::new(),
                no_bus: false,
                has_bus: false,
                subscription: 0,
                delivered: now,
                open: BTreeMap::new(),
                places: BTreeMap::new(),
                items: BTreeMap::new(),
                versions: VersionRange::OURS,
                ended: 0,
                gone: 0,
            });
        }
        world.at(world.now + Duration::from_millis(500), Action::Expire);
        world
    }

    fn at(&mut self, at: Instant, action: Action) {
        self.next += 1;
        self.actions.insert((at, self.next), action);
    }

    fn soon(&mut self) -> Instant {
        self.now + Duration::from_micros(self.random.random_range(200..20_000))
    }

    pub fn note(&mut self, text: String) {
        let at = self.now.duration_since(self.start).as_secs_f64();
        self.log.push_back(format!("{at:9.3} {text}"));
        if self.log.len() > 400 {
            self.log.pop_front();
        }
    }

    pub fn index(&self, id: &NodeId) -> usize {
        self.hosts.iter().position(|host| host.id == *id).unwrap()
    }

    /// Starts a process.
    pub fn start(&mut self, index: usize) {
        self.next += 1;
        let epoch = Epoch(self.next);
        self.note(format!("n{index} starts, run {}", epoch.0));
        let now = self.now;
        let host = &mut self.hosts[index];
        assert!(host.node.is_none());
        let settings = NodeSettings {
            id: host.id.clone(),
            epoch,
            cluster: "test".to_owned(),
            versions: host.versions,
            region: String::new(),
            control: vec!["127.0.0.1:1".parse().unwrap()],
            relay: Vec::new(),
            urls: Urls {
                http: Some(format!("https://{}.example.org", host.id)),
                ..Urls::default()
            },
            fingerprint: String::new(),
            without_bus: self.without_bus,
        };
        host.node = Some(Node::new(settings, now));
        host.epoch = epoch;
        host.stalled_until = None;
        host.inbox.clear();
        host.open.clear();
        host.places.clear();
        host.items.clear();
        host.has_bus = false;
        let at = self.soon();
        self.at(at, Action::FindBus(index, epoch));
    }

    /// Kills a process. The kernel closes its connections.
    pub fn kill(&mut self, index: usize) {
        self.note(format!("n{index} is killed"));
        let id = self.hosts[index].id.clone();
        let witnesses: Vec<usize> = self
            .ends
            .values()
            .filter(|end| end.node == index && self.ends.contains_key(&end.other))
            .map(|end| end.beyond)
            .collect();
        for witness in witnesses {
            let host = &self.hosts[witness];
            let can_tell = host.stalled_until.is_none() && self.reaches(index, witness);
            let up = host.node.as_ref().is_some_and(|node| {
                let links = node.status(self.now).links;
                links
                    .iter()
                    .any(|link| link.node == id && link.state == "up")
            });
            if can_tell && up {
                self.deaths.push(Death {
                    node: id.clone(),
                    witness,
                    witness_epoch: self.hosts[witness].epoch,
                    at: self.now,
                });
            }
        }
        self.hosts[index].node = None;
        let ends: Vec<ConnId> = self
            .ends
            .iter()
            .filter(|(_, end)| end.node == index)
            .map(|(id, _)| *id)
            .collect();
        for end in ends {
            self.shut(end);
        }
    }

    /// Stops a process for a while, as SIGSTOP does.
    pub fn stall(&mut self, index: usize, time: Duration) {
        self.note(format!("n{index} is stopped for {time:?}"));
        self.hosts[index].stalled_until = Some(self.now + time);
        self.deaths.retain(|death| death.witness != index);
    }

    fn reaches(&self, a: usize, b: usize) -> bool {
        !self.cut.contains(&(a.min(b), a.max(b)))
    }

    fn bus_reaches(&self, index: usize) -> bool {
        self.bus.is_up && !self.hosts[index].no_bus
    }

    /// Applies a change of the bus's reachability.
    pub fn rewire_bus(&mut self) {
        for index in 0..self.hosts.len() {
            let host = &self.hosts[index];
            let (epoch, has) = (host.epoch, host.has_bus);
            if host.node.is_none() || has == self.bus_reaches(index) {
                continue;
            }
            let after = Duration::from_millis(self.random.random_range(10..3_000));
            let at = self.now + after;
            match has {
                true => self.at(at, Action::LoseBus(index, epoch)),
                false => self.at(at, Action::FindBus(index, epoch)),
            }
        }
    }

    pub fn demand(&mut self, index: usize, demand: Demand) {
        let now = self.now;
        let host = &mut self.hosts[index];
        if host.stalled_until.is_some() {
            return;
        }
        let Some(node) = &mut host.node else {
            return;
        };
        node.demand(demand, now).unwrap();
        self.serve(index);
    }

    /// The server of a node opens something, with one item.
    pub fn open(&mut self, index: usize, key: &HomeKey) {
        let host = &mut self.hosts[index];
        if host.node.is_none() || host.stalled_until.is_some() || host.open.contains_key(key) {
            return;
        }
        let value = Bytes::from(self.random.random::<u64>().to_string());
        self.hosts[index].open.insert(key.clone(), value.clone());
        self.note(format!("n{index} opens {key}"));
        self.demand(index, Demand::Open(key.clone()));
        let (key, item) = (key.clone(), "member".to_owned());
        self.demand(index, Demand::Set { key, item, value });
    }

    pub fn release(&mut self, index: usize, key: &HomeKey, ends: bool) {
        let host = &mut self.hosts[index];
        if host.node.is_none() || host.stalled_until.is_some() || host.open.remove(key).is_none() {
            return;
        }
        host.places.remove(key);
        host.items.retain(|(of, _, _), _| of != key);
        self.note(format!("n{index} releases {key}, ends: {ends}"));
        let key = key.clone();
        self.demand(
            index,
            if ends {
                Demand::End(key)
            } else {
                Demand::Release(key)
            },
        );
    }

    /// Runs until a moment.
    pub fn run(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some(at) = self.step(end) {
            self.now = at;
        }
        self.now = end;
    }

    /// Runs until a condition holds. Panics after `limit`.
    pub fn until(&mut self, limit: Duration, what: &str, holds: impl Fn(&Self) -> bool) {
        let end = self.now + limit;
        while !holds(self) {
            assert!(self.now < end, "within {limit:?}: {what}\n{}", self.story());
            self.run(Duration::from_millis(50));
        }
    }

    pub fn story(&self) -> String {
        let log: Vec<_> = self.log.iter().map(String::as_str).collect();
        let mut text = log.join("\n");
        for host in &self.hosts {
            if let Some(node) = &host.node {
                let status = node.status(self.now);
                let status =
                    serde_json::to_string(&(&status.homes, &status.links, &status.disagreements));
                text.push_str(&format!("\n{}: {}", host.id, status.unwrap()));
            }
        }
        text
    }

    /// Does the next thing before `end`, and returns its time.
    fn step(&mut self, end: Instant) -> Option<Instant> {
        let action = self.actions.keys().next().map(|(at, _)| *at);
        let ticks = self.hosts.iter().enumerate().filter_map(|(index, host)| {
            let deadline = host.node.as_ref()?.deadline();
            Some((host.stalled_until.map_or(deadline, |until| until), index))
        });
        let tick = ticks.min();
        let action_first = match (action, tick) {
            (Some(at), Some((tick, _))) => at <= tick,
            (Some(_), None) => true,
            (None, _) => false,
        };
        if action_first {
            let at = action.filter(|at| *at <= end)?;
            self.now = self.now.max(at);
            let (_, action) = self.actions.pop_first()?;
            self.act(action);
            return Some(self.now);
        }
        let (at, index) = tick.filter(|(at, _)| *at <= end)?;
        self.now = self.now.max(at);
        if self.hosts[index].stalled_until.take().is_some() {
            self.note(format!("n{index} goes on"));
            for input in std::mem::take(&mut self.hosts[index].inbox) {
                self.input(index, input);
            }
        }
        let now = self.now;
        if let Some(node) = &mut self.hosts[index].node {
            node.tick(now);
        }
        self.serve(index);
        Some(self.now)
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Give(index, epoch, subscription, input) => {
                let host = &self.hosts[index];
                let is_right = subscription.is_none_or(|it| it == host.subscription);
                if host.epoch == epoch && host.node.is_some() && is_right {
                    self.give(index, input);
                }
            }
            Action::Request(index, epoch, request) => self.arrived(index, epoch, &request),
            Action::LoseBus(index, epoch) => {
                let host = &mut self.hosts[index];
                if host.epoch == epoch && host.node.is_some() && host.has_bus {
                    host.has_bus = false;
                    host.subscription += 1;
                    self.note(format!("n{index} loses the bus"));
                    self.give(index, Input::Bus(BusEvent::Lost));
                    // It may be back already.
                    self.rewire_bus();
                }
            }
            Action::FindBus(index, epoch) => {
                let host = &self.hosts[index];
                if host.epoch == epoch
                    && host.node.is_some()
                    && !host.has_bus
                    && self.bus_reaches(index)
                {
                    self.subscribe(index);
                }
            }
            Action::Expire => {
                if self.bus.is_up {
                    for entry in self.bus.expire(self.now) {
                        self.publish(&entry);
                    }
                }
                self.at(self.now + Duration::from_millis(500), Action::Expire);
            }
            Action::Connect(from, epoch, to) => self.connect(from, epoch, to),
            Action::Arrive(conn) => self.arrive(conn),
        }
    }

    fn give(&mut self, index: usize, input: Input) {
        match self.hosts[index].stalled_until {
            Some(_) => self.hosts[index].inbox.push_back(input),
            None => {
                self.input(index, input);
                self.serve(index);
            }
        }
    }

    fn input(&mut self, index: usize, input: Input) {
        let now = self.now;
        if let Some(node) = &mut self.hosts[index].node {
            match input {
                Input::Bus(event) => node.bus_event(event, now),
                Input::Link(event) => node.link_event(event, now),
            }
        }
    }

    /// Connects a node to the bus: all entries, and changes from now on.
    fn subscribe(&mut self, index: usize) {
        self.note(format!("n{index} connects to the bus"));
        self.hosts[index].has_bus = true;
        self.hosts[index].subscription += 1;
        self.tell(index, BusEvent::Connected);
        for bucket in [Bucket::Nodes, Bucket::Homes] {
            let generation = self.bus.generation;
            self.tell(index, BusEvent::Snapshot { bucket, generation });
            for entry in self.bus.entries(bucket) {
                self.tell(index, BusEvent::Entry(entry));
            }
            self.tell(index, BusEvent::Current(bucket));
        }
    }

    /// Sends what comes from the subscription of a node, in its order.
    fn tell(&mut self, index: usize, event: BusEvent) {
        let at = self.soon().max(self.hosts[index].delivered);
        let host = &mut self.hosts[index];
        host.delivered = at;
        let (epoch, subscription) = (host.epoch, host.subscription);
        let input = Input::Bus(event);
        self.at(at, Action::Give(index, epoch, Some(subscription), input));
    }

    fn publish(&mut self, entry: &Entry) {
        for index in 0..self.hosts.len() {
            if self.hosts[index].has_bus && self.bus_reaches(index) {
                self.tell(index, BusEvent::Entry(entry.clone()));
            }
        }
    }

    fn arrived(&mut self, index: usize, epoch: Epoch, request: &BusRequest) {
        let id = request.id;
        let answer = |outcome| Input::Bus(BusEvent::Written { id, outcome });
        let timeout = self.now + BUS_TIMEOUT;
        if !self.bus_reaches(index) {
            let input = answer(Outcome::Unknown);
            return self.at(timeout, Action::Give(index, epoch, None, input));
        }
        let (outcome, changed) = self.bus.write(request, self.now);
        self.note(format!(
            "n{index} {:?} {} -> {outcome:?}",
            request.write_kind(),
            request.key
        ));
        if let Some(entry) = changed {
            self.publish(&entry);
        }
        // An answer may get lost.
        let is_lost = self.random.random_ratio(1, 50);
        let (at, outcome) = match is_lost {
            true => (timeout, Outcome::Unknown),
            false => (self.soon(), outcome),
        };
        self.at(at, Action::Give(index, epoch, None, answer(outcome)));
    }

    /// Does what a node wants, and takes its frames.
    fn serve(&mut self, index: usize) {
        let now = self.now;
        loop {
            let Some(node) = &mut self.hosts[index].node else {
                return;
            };
            let Some(output) = node.poll_output() else {
                break;
            };
            self.output(index, output);
        }
        let conns: Vec<ConnId> = self
            .ends
            .iter()
            .filter(|(_, end)| end.node == index)
            .map(|(id, _)| *id)
            .collect();
        for conn in conns {
            let other = self.ends[&conn].other;
            let mut frames = Vec::new();
            if let Some(node) = &mut self.hosts[index].node {
                while let Some(frame) = node.poll_frame(conn, now) {
                    frames.push(frame);
                }
            }
            if !frames.is_empty()
                && let Some(end) = self.ends.get_mut(&other)
            {
                end.under_way.extend(frames.into_iter().map(Under::Frame));
                let at = self.soon();
                self.at(at, Action::Arrive(other));
            }
        }
    }

    fn output(&mut self, index: usize, output: Output) {
        let epoch = self.hosts[index].epoch;
        match output {
            Output::Bus(request) => {
                // Some requests are under way for long.
                let late = self.random.random_ratio(1, 100);
                let most = if late { 4_000 } else { 20 };
                let time = Duration::from_millis(self.random.random_range(1..=most));
                self.at(self.now + time, Action::Request(index, epoch, request));
            }
            Output::Dial { node, .. } => {
                let to = self.index(&node);
                let at = self.soon();
                self.at(at, Action::Connect(index, epoch, to));
            }
            Output::Close { conn, .. } => self.shut(conn),
            Output::Event(event) => self.event(index, event),
        }
    }
}

/// What a request writes, for the story.
trait WriteKind {
    fn write_kind(&self) -> &'static str;
}

impl WriteKind for BusRequest {
    fn write_kind(&self) -> &'static str {
        match self.write {
            portunus_cluster::Write::Create(_) => "create",
            portunus_cluster::Write::Update(..) => "update",
            portunus_cluster::Write::Delete(_) => "delete",
        }
    }
}
