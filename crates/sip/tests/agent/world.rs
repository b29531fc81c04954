//! A simulated network in virtual time: messages are lost, doubled, delayed and reordered.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use portunus_sip::agent::{
    AccountId, Agent, AgentEvent, CallId, Command, Invite, Options, Output, Profile, ResolveError,
};
use portunus_sip::flow::{ConnectionId, Flow, Target, Transport};
use portunus_sip::message::{Message, Request, Response};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

pub use crate::events::{is_accepted, is_ended, is_incoming, short};
use crate::registrar::Registrar;
pub use crate::setup::*;

pub const SECOND: Duration = Duration::from_secs(1);
pub const MINUTE: Duration = Duration::from_secs(60);
/// The one account of each agent.
pub const ACCOUNT: AccountId = AccountId::new(1);

/// How bad the network is.
#[derive(Debug, Clone, Copy)]
pub struct Weather {
    pub loss: f64,
    pub doubled: f64,
    pub delay: (Duration, Duration),
}

impl Weather {
    pub const FAIR: Self = Self {
        loss: 0.0,
        doubled: 0.0,
        delay: (Duration::from_millis(10), Duration::from_millis(10)),
    };
    /// A third is lost, a tenth is doubled, and messages overtake each other.
    pub const FOUL: Self = Self {
        loss: 0.33,
        doubled: 0.1,
        delay: (Duration::from_millis(5), Duration::from_millis(300)),
    };
}

type Reaction = Box<dyn FnMut(&AgentEvent) -> Vec<Command>>;

enum Kind {
    Agent {
        agent: Box<Agent>,
        events: Vec<AgentEvent>,
        reaction: Reaction,
    },
    /// A peer played by the test itself.
    Hand(Vec<Message>),
    Registrar(Box<Registrar>),
}

struct Node {
    address: SocketAddr,
    kind: Kind,
}

struct Packet {
    from: SocketAddr,
    to: SocketAddr,
    transport: Transport,
    bytes: Vec<u8>,
}

pub struct World {
    pub now: Instant,
    pub weather: Weather,
    /// The transport of what hands send.
    pub by_hand: Transport,
    nodes: Vec<Node>,
    wire: BTreeMap<(Instant, u64), Packet>,
    count: u64,
    random: StdRng,
    /// Addresses where nobody answers, not even by ICMP.
    pub silent: Vec<SocketAddr>,
    /// Messages that are lost, by their numbers from now on, which are counted down.
    pub doomed: Vec<u64>,
    /// What is sent by TCP to these is refused.
    pub without_tcp: Vec<SocketAddr>,
    /// How often that was.
    pub refused: u64,
    /// How many messages are changed on their way.
    pub mangled: f64,
    /// Names in DNS.
    pub names: BTreeMap<String, Vec<SocketAddr>>,
}

/// The address of node `number`.
pub fn address(number: usize) -> SocketAddr {
    format!("192.0.2.{}:5060", number + 1).parse().unwrap()
}

impl World {
    pub fn new(weather: Weather, seed: u64) -> Self {
        let now = Instant::now();
        Self {
            now,
            weather,
            by_hand: Transport::Udp,
            nodes: Vec::new(),
            wire: BTreeMap::new(),
            count: 0,
            random: StdRng::seed_from_u64(seed),
            silent: Vec::new(),
            doomed: Vec::new(),
            without_tcp: Vec::new(),
            refused: 0,
            mangled: 0.0,
            names: BTreeMap::new(),
        }
    }

    /// An agent with one account, `sip:NAME@ADDRESS`.
    pub fn agent(
        &mut self,
        name: &str,
        reaction: impl FnMut(&AgentEvent) -> Vec<Command> + 'static,
    ) -> usize {
        self.agent_with(options(), reaction, |node| {
            profile(&format!("sip:{name}@{}", address(node).ip()))
        })
    }

    pub fn agent_with(
        &mut self,
        mut options: Options,
        reaction: impl FnMut(&AgentEvent) -> Vec<Command> + 'static,
        profile: impl FnOnce(usize) -> Profile,
    ) -> usize {
        let node = self.nodes.len();
        for local in &mut options.locals {
            local.host = address(node).ip().into();
        }
        let agent = Box::new(Agent::with_seed(options, self.now, self.random.random()));
        let kind = Kind::Agent {
            agent,
            events: Vec::new(),
            reaction: Box::new(reaction),
        };
        self.nodes.push(Node {
            address: address(node),
            kind,
        });
        self.command(
            node,
            Command::SetAccount {
                account: ACCOUNT,
                profile: Box::new(profile(node)),
            },
        );
        node
    }

    pub fn hand(&mut self) -> usize {
        let node = self.nodes.len();
        self.nodes.push(Node {
            address: address(node),
            kind: Kind::Hand(Vec::new()),
        });
        node
    }

    pub fn registrar(&mut self, registrar: Registrar) -> usize {
        let node = self.nodes.len();
        self.nodes.push(Node {
            address: address(node),
            kind: Kind::Registrar(Box::new(registrar)),
        });
        node
    }

    pub fn the_registrar(&mut self, node: usize) -> &mut Registrar {
        match &mut self.nodes[node].kind {
            Kind::Registrar(registrar) => registrar,
            _ => panic!("not a registrar"),
        }
    }

    pub fn the_agent(&mut self, node: usize) -> &mut Agent {
        match &mut self.nodes[node].kind {
            Kind::Agent { agent, .. } => agent,
            _ => panic!("not an agent"),
        }
    }

    pub fn command(&mut self, node: usize, command: Command) {
        let now = self.now;
        self.the_agent(node).command(now, command);
        self.drain(node);
    }

    pub fn invite(&mut self, node: usize, call: u64, invite: Invite) -> CallId {
        let call = CallId::new(call);
        self.command(
            node,
            Command::Invite {
                account: ACCOUNT,
                call,
                invite: Box::new(invite),
            },
        );
        call
    }

    pub fn hangup(&mut self, node: usize, call: CallId) {
        self.command(
            node,
            Command::Hangup {
                call,
                headers: Vec::new(),
            },
        );
    }

    /// Handles the outputs of an agent.
    pub fn drain(&mut self, node: usize) {
        loop {
            let Kind::Agent {
                agent,
                events,
                reaction,
            } = &mut self.nodes[node].kind
            else {
                return;
            };
            let Some(output) = agent.poll() else {
                return;
            };
            match output {
                Output::Transmit { route, bytes } => {
                    let (to, transport) = (route.remote(), route.transport());
                    self.transmit(node, to, transport, bytes.to_vec());
                }
                Output::Resolve { id, destination } => {
                    let host = destination.host.clone();
                    let transport = destination.transport.unwrap_or(Transport::Udp);
                    let targets: Vec<Target> = self
                        .names
                        .get(&host.to_string())
                        .into_iter()
                        .flatten()
                        .map(|&remote| Target {
                            transport,
                            remote,
                            host: host.clone(),
                        })
                        .collect();
                    let targets = if targets.is_empty() {
                        Err(ResolveError::Dns)
                    } else {
                        Ok(targets)
                    };
                    agent.resolved(self.now, id, targets);
                }
                Output::Event(event) => {
                    let commands = reaction(&event);
                    events.push(event);
                    for command in commands {
                        let Kind::Agent { agent, .. } = &mut self.nodes[node].kind else {
                            return;
                        };
                        agent.command(self.now, command);
                    }
                }
            }
        }
    }

    fn transmit(&mut self, node: usize, to: SocketAddr, transport: Transport, bytes: Vec<u8>) {
        let from = self.nodes[node].address;
        let lossy = transport == Transport::Udp;
        let is_lost = self.doomed.contains(&0);
        self.doomed.retain(|&number| number > 0);
        self.doomed.iter_mut().for_each(|number| *number -= 1);
        if is_lost {
            return;
        }
        let copies = 1 + usize::from(lossy && self.random.random_bool(self.weather.doubled));
        for _ in 0..copies {
            if lossy && self.random.random_bool(self.weather.loss) {
                continue;
            }
            let (least, most) = self.weather.delay;
            let delay = if lossy {
                self.random.random_range(least..=most)
            } else {
                least
            };
            self.count += 1;
            let mut bytes = bytes.clone();
            if self.mangled > 0.0 && self.random.random_bool(self.mangled) {
                crate::random::mangle(&mut self.random, &mut bytes);
            }
            let packet = Packet {
                from,
                to,
                transport,
                bytes,
            };
            self.wire.insert((self.now + delay, self.count), packet);
        }
    }

    /// Sends by hand.
    pub fn send(&mut self, from: usize, to: usize, message: impl Into<Message>) {
        let bytes = message.into().to_bytes();
        self.send_bytes(from, to, bytes);
    }

    pub fn send_bytes(&mut self, from: usize, to: usize, bytes: Vec<u8>) {
        let transport = self.by_hand;
        self.transmit(from, self.nodes[to].address, transport, bytes);
    }

    fn deliver(&mut self, packet: Packet) {
        let is_refused =
            packet.transport == Transport::Tcp && self.without_tcp.contains(&packet.to);
        self.refused += u64::from(is_refused);
        let node = self.nodes.iter().position(|node| node.address == packet.to);
        let Some(node) = node.filter(|_| !is_refused) else {
            if !self.silent.contains(&packet.to)
                && let Some(node) = self
                    .nodes
                    .iter()
                    .position(|node| node.address == packet.from)
                && matches!(self.nodes[node].kind, Kind::Agent { .. })
            {
                let now = self.now;
                self.the_agent(node)
                    .unreachable(now, packet.transport, packet.to);
                self.drain(node);
            }
            return;
        };
        if self.silent.contains(&packet.to) {
            return;
        }
        let connection = packet
            .transport
            .is_reliable()
            .then(|| connection_of(packet.from, packet.to));
        let flow = Flow {
            transport: packet.transport,
            local: packet.to,
            remote: packet.from,
            connection,
        };
        match &mut self.nodes[node].kind {
            Kind::Agent { agent, .. } => {
                agent.receive(self.now, &flow, &packet.bytes);
                self.drain(node);
            }
            Kind::Hand(inbox) => inbox.extend(Message::parse(&packet.bytes)),
            Kind::Registrar(registrar) => {
                if let Some(answer) = registrar.receive(self.now, &flow, &packet.bytes) {
                    self.transmit(node, packet.from, packet.transport, answer);
                }
            }
        }
    }

    /// Returns the time of the next event.
    fn next(&self) -> Option<Instant> {
        let deadlines = self.nodes.iter().filter_map(|node| match &node.kind {
            Kind::Agent { agent, .. } => agent.deadline(),
            _ => None,
        });
        deadlines
            .chain(self.wire.keys().next().map(|(at, _)| *at))
            .min()
    }

    fn step(&mut self, at: Instant) {
        self.now = self.now.max(at);
        while let Some(entry) = self
            .wire
            .first_entry()
            .filter(|entry| entry.key().0 <= self.now)
        {
            let packet = entry.remove();
            self.deliver(packet);
        }
        let now = self.now;
        for node in 0..self.nodes.len() {
            if let Kind::Agent { agent, .. } = &mut self.nodes[node].kind
                && agent.deadline().is_some_and(|at| at <= now)
            {
                agent.timeout(now);
                assert!(
                    agent.deadline().is_none_or(|at| at > now),
                    "a deadline that never passes"
                );
                self.drain(node);
            }
        }
    }

    /// Lets time pass.
    pub fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some(at) = self.next().filter(|&at| at <= end) {
            self.step(at);
        }
        self.now = end;
    }

    /// Lets time pass until an agent has an event, and returns it.
    pub fn until<T>(
        &mut self,
        node: usize,
        limit: Duration,
        mut found: impl FnMut(&AgentEvent) -> Option<T>,
    ) -> T {
        let end = self.now + limit;
        loop {
            let events = self.events(node);
            if let Some((at, value)) = events
                .iter()
                .enumerate()
                .find_map(|(at, event)| Some((at, found(event)?)))
            {
                events.drain(..=at);
                return value;
            }
            match self.next().filter(|&at| at <= end) {
                Some(at) => self.step(at),
                None => panic!("not told within {limit:?}; events: {:#?}", self.told(node)),
            }
        }
    }

    pub fn events(&mut self, node: usize) -> &mut Vec<AgentEvent> {
        match &mut self.nodes[node].kind {
            Kind::Agent { events, .. } => events,
            _ => panic!("not an agent"),
        }
    }

    /// Takes the events of an agent, in short form.
    pub fn told(&mut self, node: usize) -> Vec<String> {
        std::mem::take(self.events(node))
            .iter()
            .map(short)
            .collect()
    }

    /// Takes the messages that a hand has received.
    pub fn inbox(&mut self, node: usize) -> Vec<Message> {
        match &mut self.nodes[node].kind {
            Kind::Hand(inbox) => std::mem::take(inbox),
            _ => panic!("not a hand"),
        }
    }

    /// The requests that a hand has received, after some time.
    pub fn requests(&mut self, node: usize, time: Duration) -> Vec<Request> {
        self.pass(time);
        let requests = self
            .inbox(node)
            .into_iter()
            .filter_map(|message| match message {
                Message::Request(request) => Some(request),
                Message::Response(_) => None,
            });
        requests.collect()
    }

    /// The next request that a hand receives.
    pub fn next_request(&mut self, node: usize, limit: Duration) -> Request {
        let end = self.now + limit;
        loop {
            let Kind::Hand(inbox) = &mut self.nodes[node].kind else {
                panic!("not a hand");
            };
            if !inbox.is_empty() {
                match inbox.remove(0) {
                    Message::Request(request) => return request,
                    Message::Response(_) => continue,
                }
            }
            match self.next().filter(|&at| at <= end) {
                Some(at) => self.step(at),
                None => panic!("no request within {limit:?}"),
            }
        }
    }

    pub fn responses(&mut self, node: usize, time: Duration) -> Vec<Response> {
        self.pass(time);
        let responses = self
            .inbox(node)
            .into_iter()
            .filter_map(|message| match message {
                Message::Response(response) => Some(response),
                Message::Request(_) => None,
            });
        responses.collect()
    }

    /// Calls that have come in and have not been told to be over.
    pub fn left(&mut self, node: usize) -> Vec<CallId> {
        let events = self.events(node);
        events.iter().filter_map(is_incoming).collect()
    }

    /// Closes the connection between two nodes.
    pub fn close(&mut self, node: usize, other: usize) {
        let (local, remote) = (address(node), address(other));
        let connection = Some(connection_of(local, remote));
        let now = self.now;
        self.the_agent(node).closed(
            now,
            &Flow {
                transport: Transport::Tcp,
                local,
                remote,
                connection,
            },
        );
        self.drain(node);
    }

    /// Asserts that no call, transaction or timer is left.
    pub fn assert_idle(&mut self, node: usize) {
        let load = self.the_agent(node).load();
        assert_eq!(
            (
                load.calls,
                load.subscriptions,
                load.transactions,
                load.exchanges
            ),
            (0, 0, 0, 0),
            "{load:?}"
        );
    }
}

fn connection_of(one: SocketAddr, other: SocketAddr) -> ConnectionId {
    let number = |address: SocketAddr| match address.ip() {
        std::net::IpAddr::V4(ip) => u64::from(ip.to_bits()),
        std::net::IpAddr::V6(_) => 0,
    };
    ConnectionId(number(one.min(other)) << 32 | number(one.max(other)))
}
