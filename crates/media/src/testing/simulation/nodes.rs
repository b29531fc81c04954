//! The first two workers as nodes of a cluster, with a link between them.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a simulation that cannot be set up has failed"
)]

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use portunus_graph::{IngestId, RouteId, SourceRef, TrackRef};
use portunus_rtc::StreamConfig;
use portunus_rtc::testing::audio;
use portunus_rtp::{ExtensionMap, Mid, Ssrc};
use portunus_sdp::negotiated::Codec;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use super::{Simulation, video_line, video_of};
use crate::command::{
    Command, IngestCommand, NewIngest, NewNodeLink, NodeLinkCommand, OutletCommand, RouteCommand,
    SourceCommand,
};
use crate::ingest::RtpIngest;
use crate::node_link::{
    KeyChange, KeyUse, NodeLinkId, NodeLinkKey, NodeLinkOptions, NodeLinkStatus,
};
use crate::outlet::{LinkOutlet, NewOutlet, OutletEnd};
use crate::sys::MediaSocket;
use crate::{
    DemandReports, Encodings, IngestFeed, IngestMedia, IngestOptions, IngestStatus, KeyframeCache,
    NodeFeed, NodeLinkStats, RelayOptions, RelayedStream, RouteOptions,
};

/// The address of workers that do not take part.
const NOWHERE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 9);

/// The node that cameras are at, and the other one.
const NEAR: usize = 0;
const FAR: usize = 1;

/// The network between the nodes, in each direction.
#[derive(Debug, Clone, Copy)]
pub struct NodePath {
    /// The delay of a datagram.
    pub delay: Duration,
    /// What is added to it at most: datagrams overtake each other.
    pub jitter: Duration,
    /// The fraction of datagrams that get lost.
    pub loss: f64,
}

/// A camera at the other node.
#[derive(Debug, Clone, Copy)]
pub struct FarCamera {
    /// Its video there.
    pub video: IngestId,
    /// Its audio there.
    pub audio: IngestId,
    camera: usize,
    codec: Codec,
}

/// A stream that crosses the link.
#[derive(Debug, Clone, Copy)]
pub struct Crossing {
    stream: RelayedStream,
    route: RouteId,
}

/// A datagram on its way, ordered by its arrival.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct OnWay {
    at: Instant,
    order: u64,
    /// The node that it goes to.
    to: usize,
    datagram: Vec<u8>,
}

/// Two nodes.
pub(super) struct Nodes {
    path: NodePath,
    rng: SmallRng,
    link: NodeLinkId,
    addresses: [SocketAddr; 2],
    statuses: [Arc<NodeLinkStatus>; 2],
    demands: DemandReports,
    next_ssrc: u32,
    way: BinaryHeap<Reverse<OnWay>>,
    order: u64,
    /// The datagrams that left each node: when, and their bytes.
    left: [Vec<(Instant, usize)>; 2],
    /// The last datagrams to the other node, as they came.
    last: Vec<Vec<u8>>,
}

impl Simulation {
    /// Joins the first two workers by a link. Cameras are to be at worker 0.
    pub fn join_nodes(&mut self, path: NodePath) {
        let socket = || MediaSocket::bind(SocketAddr::from(([127, 0, 0, 1], 0)));
        let sockets = [socket().expect("a socket"), socket().expect("a socket")];
        let addresses = [sockets[NEAR].local(), sockets[FAR].local()];
        let link = NodeLinkId(1);
        let statuses: [Arc<NodeLinkStatus>; 2] = Default::default();
        let key = |n: usize| NodeLinkKey::from_bytes([n as u8; 28]);
        for (node, socket) in sockets.into_iter().enumerate() {
            let other = 1 - node;
            // Only the worker of that index is behind an address.
            let mut far = vec![NOWHERE; 2];
            far[other] = addresses[other];
            let new = NewNodeLink {
                id: link,
                options: NodeLinkOptions {
                    far,
                    send: key(node),
                    receive: key(other),
                },
                status: Arc::clone(&statuses[node]),
            };
            let bare = &mut self.workers[node];
            let open = NodeLinkCommand::Open(Box::new(socket));
            bare.inbox.send(Command::NodeLink(open));
            let add = NodeLinkCommand::Add(Box::new(new));
            bare.inbox.send(Command::NodeLink(add));
            bare.worker.take_commands(self.now);
            bare.worker.keep_for_nodes();
        }
        self.nodes = Some(Nodes {
            path,
            rng: SmallRng::seed_from_u64(self.seed),
            link,
            addresses,
            statuses,
            demands: DemandReports::default(),
            next_ssrc: 1,
            way: BinaryHeap::new(),
            order: 0,
            left: Default::default(),
            last: Vec::new(),
        });
    }

    fn nodes(&mut self) -> &mut Nodes {
        self.nodes.as_mut().expect("nodes that are joined")
    }

    /// Changes the network between the nodes.
    pub fn set_node_path(&mut self, path: NodePath) {
        self.nodes().path = path;
    }

    /// Makes a camera of the first node known at the other one. Nothing crosses yet.
    pub fn make_known(&mut self, camera: usize, encodings: u8) -> FarCamera {
        let codec = self.cameras[camera].codec;
        let reports = self.nodes().demands.clone();
        let mut add = |codec, clock_rate, encodings| {
            self.next_id += 1;
            let id = IngestId {
                worker: FAR as u16,
                serial: 5_000_000 + self.next_id,
            };
            let media = RtpIngest::of_node(codec, clock_rate, ExtensionMap::default());
            let reports = reports.clone();
            let options = IngestOptions {
                media: IngestMedia::Rtp(media),
                ..IngestOptions::rtp(codec, 1, IngestFeed::Node(NodeFeed { encodings, reports }))
            };
            let new = NewIngest {
                id,
                options,
                status: Arc::new(IngestStatus::new(self.now)),
            };
            let add = IngestCommand::Add(Box::new(new));
            self.order(FAR as u16, Command::Ingest(add));
            id
        };
        FarCamera {
            video: add(codec, 90_000, encodings),
            audio: add(Codec::Opus, 48_000, 1),
            camera,
            codec,
        }
    }

    /// Keeps keyframes of a camera at the other node for new viewers there.
    pub fn keep_far_keyframe(&mut self, of: FarCamera, keep: KeyframeCache) {
        let keep = SourceCommand::KeepKeyframe(Some(keep));
        self.order(FAR as u16, Command::Source(of.video.into(), keep));
    }

    /// Lets an encoding of the video cross the link, with the layers of `options`.
    pub fn open_video(&mut self, of: FarCamera, encoding: u8, options: RouteOptions) -> Crossing {
        let from = video_of(self.camera_peer(of.camera));
        self.open(from, of.video, encoding, options)
    }

    /// Lets the audio cross the link.
    pub fn open_audio(&mut self, of: FarCamera) -> Crossing {
        let mid = Mid::new("1").expect("a valid mid");
        let peer = self.camera_peer(of.camera);
        self.open(TrackRef { peer, mid }, of.audio, 0, RouteOptions::default())
    }

    fn open(
        &mut self,
        from: TrackRef,
        ingest: IngestId,
        encoding: u8,
        options: RouteOptions,
    ) -> Crossing {
        let nodes = self.nodes();
        let ssrc = Ssrc(nodes.next_ssrc);
        nodes.next_ssrc += 1;
        let stream = RelayedStream {
            link: nodes.link,
            far: NEAR as u16,
            ssrc,
            ingest,
            encoding,
            replaces: None,
        };
        let receive = NodeLinkCommand::Receive(stream);
        self.order(FAR as u16, Command::NodeLink(receive));
        self.next_id += 1;
        let route = RouteId {
            worker: NEAR as u16,
            serial: 6_000_000 + self.next_id,
        };
        let relay = RelayOptions {
            link: stream.link,
            far: FAR as u16,
            ssrc,
            encoding,
        };
        let new = NewOutlet {
            id: route,
            from: from.into(),
            options,
            encodings: Encodings::Layers(encoding),
            end: OutletEnd::Link(Box::new(LinkOutlet::new(relay, Arc::default()))),
        };
        let add = OutletCommand::Add(Box::new(new));
        self.order(NEAR as u16, Command::Outlet(add));
        Crossing { stream, route }
    }

    /// Changes the layers of an encoding that cross the link.
    pub fn set_crossing(&mut self, crossing: Crossing, options: RouteOptions) {
        let set = RouteCommand::Set(options);
        self.order(NEAR as u16, Command::Route(crossing.route, set));
    }

    /// Lets an encoding cross the link no longer.
    pub fn close(&mut self, crossing: Crossing) {
        let remove = Command::Route(crossing.route, RouteCommand::Remove);
        self.order(NEAR as u16, remove);
        let RelayedStream { link, ssrc, .. } = crossing.stream;
        let forget = NodeLinkCommand::Forget(link, ssrc);
        self.order(FAR as u16, Command::NodeLink(forget));
    }

    /// Adds a viewer at the other node, over a link of its own.
    pub fn watch_far(&mut self, of: FarCamera, link: usize) -> usize {
        let before = std::mem::replace(&mut self.worker, FAR as u16);
        let (peer, address) = self.next_client();
        let ssrc = 1_000 * peer.serial as u32;
        let lines = vec![video_line("0", ssrc, of.codec), audio("1", ssrc + 600)];
        let sources = vec![SourceRef::Ingest(of.video), SourceRef::Ingest(of.audio)];
        let streams = StreamConfig::default();
        let watcher = self.watch_sources((peer, address), lines, sources, link, streams, |_| {});
        self.worker = before;
        watcher
    }

    /// Changes what a viewer wants of the video.
    pub fn set_wish(&mut self, watcher: usize, options: RouteOptions) {
        let route = self.watchers[watcher].routes[0];
        let set = RouteCommand::Set(options);
        self.order(route.worker, Command::Route(route, set));
    }

    /// Returns the reported changes of what viewers at the other node can see.
    pub fn demands(&mut self) -> Vec<(IngestId, portunus_graph::Demand)> {
        let demands = self.nodes().demands.clone();
        std::iter::from_fn(move || demands.next()).collect()
    }

    /// Replaces the key of what the first node sends: there, or at the other node.
    pub fn change_key(&mut self, number: u32, at_receiver: bool) {
        let key = NodeLinkKey::from_bytes([100 + number as u8; 28]);
        let (worker, usage) = match at_receiver {
            true => (FAR, KeyUse::Receive),
            false => (NEAR, KeyUse::Send),
        };
        let change = Box::new(KeyChange { usage, number, key });
        let set = NodeLinkCommand::SetKey(self.nodes().link, change);
        self.order(worker as u16, Command::NodeLink(set));
    }

    /// What the first and the other node count of the link.
    pub fn node_link_stats(&mut self) -> [NodeLinkStats; 2] {
        let nodes = self.nodes();
        nodes.statuses.each_ref().map(|status| {
            let mut sum = NodeLinkStats::default();
            status.add_to(&mut sum);
            sum
        })
    }

    /// The datagrams that left a node for the other one between two times.
    pub fn crossed(&mut self, node: usize, from: f64, to: f64) -> usize {
        let start = self.start;
        let left = self.nodes().left[node].iter().filter(|(at, _)| {
            let at = at.saturating_duration_since(start).as_secs_f64();
            (from..to).contains(&at)
        });
        left.count()
    }

    /// The last datagrams that reached the other node.
    pub fn last_crossed(&mut self) -> Vec<Vec<u8>> {
        self.nodes().last.clone()
    }

    /// Hands the other node a datagram that seems to come from the first one, or from elsewhere.
    pub fn forge(&mut self, mut datagram: Vec<u8>, elsewhere: bool) {
        let near = self.nodes().addresses[NEAR];
        let from = match elsewhere {
            true => SocketAddr::from(([192, 0, 2, 7], 7)),
            false => near,
        };
        let now = self.now;
        let worker = &mut self.workers[FAR].worker;
        worker.take_node_link_datagram(from, &mut datagram, now);
    }

    /// Hands a node what has reached it.
    pub(super) fn deliver_to_node(&mut self, node: usize) {
        let now = self.now;
        let Some(nodes) = self.nodes.as_mut().filter(|_| node <= FAR) else {
            return;
        };
        let mut later = Vec::new();
        let mut came = Vec::new();
        while let Some(Reverse(next)) = nodes.way.peek()
            && next.at <= now
            && let Some(Reverse(next)) = nodes.way.pop()
        {
            match next.to == node {
                true => came.push(next.datagram),
                false => later.push(Reverse(next)),
            }
        }
        nodes.way.extend(later);
        let from = nodes.addresses[1 - node];
        for mut datagram in came {
            if node == FAR {
                let last = &mut nodes.last;
                last.push(datagram.clone());
                last.drain(..last.len().saturating_sub(100));
            }
            let worker = &mut self.workers[node].worker;
            (self.at_work)(true);
            worker.take_node_link_datagram(from, &mut datagram, now);
            (self.at_work)(false);
        }
    }

    /// Takes what a node sends to the other one.
    pub(super) fn take_of_node(&mut self, node: usize) {
        let now = self.now;
        let Some(nodes) = self.nodes.as_mut().filter(|_| node <= FAR) else {
            return;
        };
        let worker = &mut self.workers[node].worker;
        (self.at_work)(true);
        worker.run_for_nodes(now);
        (self.at_work)(false);
        for (to, datagram) in worker.take_kept_for_nodes() {
            if to == NOWHERE {
                // The first workers probe links.
                continue;
            }
            assert_eq!(to, nodes.addresses[1 - node]);
            nodes.left[node].push((now, datagram.len()));
            if nodes.rng.random_bool(nodes.path.loss) {
                continue;
            }
            let jitter = nodes.path.jitter.mul_f64(nodes.rng.random());
            nodes.order += 1;
            nodes.way.push(Reverse(OnWay {
                at: now + nodes.path.delay + jitter,
                order: nodes.order,
                to: 1 - node,
                datagram,
            }));
        }
    }
}
