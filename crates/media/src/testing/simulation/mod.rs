//! Publishers and viewers of workers behind changing links, in virtual time. All of the server is
//! real except its socket, and so are the connections of viewers.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a simulation that cannot be set up has failed"
)]

mod camera;
mod figures;
mod nodes;
mod picture;
mod requests;
mod run;
mod watcher;

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use portunus_rtc::bandwidth::{DataRate, Layering};
use portunus_rtc::streams::NtpClock;
use portunus_rtc::testing::{
    Bottleneck, BottleneckLink, Publisher, Side, audio, credentials, mirrored, video,
};
use portunus_rtc::{Connection, LocalCandidate, StreamConfig, candidate_lines};
use portunus_rtp::{ExtensionKind, Mid};
use portunus_sdp::negotiated::{
    Codec, DtlsRole, Negotiated, NegotiatedMedia, RemoteSsrc, RemoteTransport,
};

use super::bare::{Bare, together};
use crate::command::{Command, PeerCommand, RouteCommand, SourceCommand};
use crate::{Event, KeyframeCache, RouteOptions, SourceRef, TrackRef};
use crate::{PeerId, RouteId};
use nodes::Nodes;

pub use camera::Camera;
pub use nodes::{Crossing, FarCamera, NodePath};
pub use watcher::{Seen, Watcher};

const TICK: Duration = Duration::from_millis(1);
/// The delay from a client to the server.
const UP: Duration = Duration::from_millis(20);

/// The number of ports for the clients of one worker.
const PORTS: u16 = 10_000;

/// Workers, their clients, and the links between them.
pub struct Simulation {
    /// The start.
    pub start: Instant,
    /// The virtual time.
    pub now: Instant,
    /// The publishers.
    pub cameras: Vec<Camera>,
    /// The viewers.
    pub watchers: Vec<Watcher>,
    /// Reported starts and ends of media, slow links, and pauses.
    pub heard: Vec<(Instant, Event)>,
    /// New clients belong to this worker.
    pub worker: u16,
    /// Called with true before a worker runs and with false after that, to tell the server's work
    /// from the simulation's. ICE checks are not included.
    pub at_work: fn(bool),
    workers: Vec<Bare>,
    links: Vec<DownLink>,
    clients: HashMap<SocketAddr, Client>,
    up: VecDeque<(Instant, SocketAddr, Vec<u8>)>,
    /// The datagrams that arrive in this turn.
    due: Vec<(SocketAddr, Vec<u8>)>,
    /// The link between two nodes, if the first workers are nodes.
    nodes: Option<Nodes>,
    seed: u64,
    next_id: u64,
}

/// A client, and the link to it.
#[derive(Debug, Clone, Copy)]
struct Client {
    who: Who,
    link: usize,
}

#[derive(Debug, Clone, Copy)]
enum Who {
    Camera(usize),
    Watcher(usize),
}

/// The link to some clients.
#[derive(Debug)]
struct DownLink {
    bottleneck: Bottleneck<(SocketAddr, Vec<u8>)>,
    /// The queueing delay at each tick.
    queue: Vec<(Instant, Duration)>,
}

impl std::fmt::Debug for Simulation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Simulation")
            .field("seed", &self.seed)
            .field("now", &self.now)
            .finish_non_exhaustive()
    }
}

impl Simulation {
    /// Returns a simulation without clients. The same `seed` gives the same simulation, except for
    /// encrypted bytes.
    pub fn new(seed: u64) -> Self {
        Self::of_workers(1, seed)
    }

    /// The same with several workers.
    pub fn of_workers(count: usize, seed: u64) -> Self {
        let now = Instant::now();
        let mut workers = together(count, now);
        for bare in &mut workers {
            bare.worker.keep_datagrams();
            bare.worker.take_time_for_handshakes();
        }
        let mut this = Self {
            start: now,
            now,
            cameras: Vec::new(),
            watchers: Vec::new(),
            heard: Vec::new(),
            worker: 0,
            at_work: |_| {},
            workers,
            links: Vec::new(),
            clients: HashMap::new(),
            up: VecDeque::new(),
            due: Vec::new(),
            nodes: None,
            seed,
            next_id: 0,
        };
        // Publishers have an unlimited link.
        this.link(BottleneckLink::of(DataRate::kbps(1_000_000)));
        this
    }

    /// Adds a link that viewers may share.
    pub fn link(&mut self, link: BottleneckLink) -> usize {
        let seed = self.seed * 100 + self.links.len() as u64;
        self.links.push(DownLink {
            bottleneck: Bottleneck::new(seed, link, self.now),
            queue: Vec::new(),
        });
        self.links.len() - 1
    }

    /// Changes a link.
    pub fn set_link(&mut self, link: usize, to: BottleneckLink) {
        self.links[link].bottleneck.set_link(to, self.now);
    }

    /// Adds a publisher of video with these layers, in kbit/s, and audio.
    pub fn publish(&mut self, layering: Layering, kbps: &[u64]) -> usize {
        let codec = match layering {
            Layering::Encodings => Codec::Vp8,
            Layering::Spatial => Codec::Vp9,
        };
        self.publish_as(codec, layering, kbps)
    }

    /// The same with a codec: VP8 or VP9.
    pub fn publish_as(&mut self, codec: Codec, layering: Layering, kbps: &[u64]) -> usize {
        let (peer, address) = self.next_client();
        let ssrc = 1_000 * peer.serial as u32;
        let mut line = video_line("0", ssrc + 500, codec);
        (line.send, line.recv) = (false, true);
        let encodings = match layering {
            Layering::Encodings => kbps.len(),
            Layering::Spatial => 1,
        };
        let declared = |n| RemoteSsrc {
            ssrc: Camera::ssrc(ssrc, n),
            rtx: None,
        };
        line.remote_ssrcs = (0..encodings).map(declared).collect();
        let mut sound = audio("1", ssrc + 600);
        (sound.send, sound.recv) = (false, true);
        sound.remote_ssrcs = vec![RemoteSsrc {
            ssrc: Camera::audio_ssrc(ssrc),
            rtx: None,
        }];
        let mut side = Side::new(&peer.serial.to_string(), address, true, DtlsRole::Client);
        let server = self.create_peer(peer, &side, vec![line, sound]);
        let told = side.transport.set_remote(&server, self.now);
        told.expect("a valid description");
        let index = self.cameras.len();
        let client = Client {
            who: Who::Camera(index),
            link: 0,
        };
        self.clients.insert(address, client);
        let seed = self.seed * 100 + index as u64;
        let publisher = Publisher::new(seed, layering, kbps, self.now);
        self.cameras
            .push(Camera::new(side, codec, publisher, ssrc, self.now));
        index
    }

    /// Adds a viewer of a camera over a link.
    pub fn watch(&mut self, camera: usize, link: usize) -> usize {
        self.watch_as(camera, link, StreamConfig::default(), |_| {})
    }

    /// The same with changed m-lines, and a client that reports as `streams` says.
    pub fn watch_as(
        &mut self,
        camera: usize,
        link: usize,
        streams: StreamConfig,
        change: impl Fn(&mut NegotiatedMedia),
    ) -> usize {
        self.watch_lines((camera, &[]), link, streams, change)
    }

    fn watch_lines(
        &mut self,
        (camera, further): (usize, &[usize]),
        link: usize,
        streams: StreamConfig,
        change: impl Fn(&mut NegotiatedMedia),
    ) -> usize {
        let (peer, address) = self.next_client();
        let ssrc = 1_000 * peer.serial as u32;
        let codec = self.cameras[camera].codec;
        let mut lines = vec![video_line("0", ssrc, codec), audio("1", ssrc + 600)];
        let mut sources = vec![self.track(camera, "0"), self.track(camera, "1")];
        for (number, camera) in (2..).zip(further) {
            let codec = self.cameras[*camera].codec;
            lines.push(video_line(&number.to_string(), ssrc + 20 * number, codec));
            sources.push(self.track(*camera, "0"));
        }
        self.watch_sources((peer, address), lines, sources, link, streams, change)
    }

    /// The source of an m-line of a camera.
    fn track(&self, camera: usize, mid: &str) -> SourceRef {
        let peer = self.camera_peer(camera);
        let mid = Mid::new(mid).expect("a valid mid");
        TrackRef { peer, mid }.into()
    }

    fn watch_sources(
        &mut self,
        (peer, address): (PeerId, SocketAddr),
        mut lines: Vec<NegotiatedMedia>,
        sources: Vec<SourceRef>,
        link: usize,
        streams: StreamConfig,
        change: impl Fn(&mut NegotiatedMedia),
    ) -> usize {
        for line in &mut lines {
            (line.send, line.recv) = (true, false);
            change(line);
        }
        let side = Side::new(&peer.serial.to_string(), address, true, DtlsRole::Client);
        let server = self.create_peer(peer, &side, lines.clone());
        let clock = NtpClock::new(self.now, Duration::from_secs(1_700_000_000));
        let mut connection = Connection::new(side.config, streams, clock, self.now);
        let negotiated = Negotiated {
            transport: server,
            media: lines.iter().map(mirrored).collect(),
        };
        let told = connection.negotiate(&negotiated, self.now);
        told.expect("a valid description");
        let routes = lines.iter().zip(sources).map(|(line, from)| {
            self.next_id += 1;
            let route = RouteId {
                worker: peer.worker,
                serial: 1_000_000 + self.next_id,
            };
            let to = TrackRef {
                peer,
                mid: line.mid,
            };
            let added = Command::Route(
                route,
                RouteCommand::Add {
                    from,
                    to,
                    options: RouteOptions::default(),
                },
            );
            self.workers[usize::from(peer.worker)].inbox.send(added);
            route
        });
        let routes: Vec<RouteId> = routes.collect();
        let index = self.watchers.len();
        let client = Client {
            who: Who::Watcher(index),
            link,
        };
        self.clients.insert(address, client);
        let watcher = Watcher::new(connection, address, routes);
        self.watchers.push(watcher);
        index
    }

    /// Keeps keyframes of a camera for new viewers.
    pub fn keep_keyframe(&mut self, camera: usize, keep: KeyframeCache) {
        let peer = self.camera_peer(camera);
        let source = video_of(peer).into();
        let keep = Some(keep);
        self.order(
            peer.worker,
            Command::Source(source, SourceCommand::KeepKeyframe(keep)),
        );
    }

    /// Switches a viewer to another camera.
    pub fn switch(&mut self, watcher: usize, camera: usize) {
        let route = self.watchers[watcher].routes[0];
        self.order(route.worker, Command::Route(route, RouteCommand::Remove));
        self.next_id += 1;
        let serial = 1_000_000 + self.next_id;
        let route = RouteId { serial, ..route };
        self.watchers[watcher].routes[0] = route;
        let added = Command::Route(
            route,
            RouteCommand::Add {
                from: video_of(self.camera_peer(camera)).into(),
                to: video_of(self.peer_at(self.watchers[watcher].address)),
                options: RouteOptions::default(),
            },
        );
        self.order(route.worker, added);
    }

    /// Adds a viewer of several cameras. Further pictures are on the m-lines from the third on.
    pub fn watch_all(&mut self, cameras: &[usize], link: usize) -> usize {
        self.watch_lines(
            (cameras[0], &cameras[1..]),
            link,
            StreamConfig::default(),
            |_| {},
        )
    }

    fn order(&self, worker: u16, command: Command) {
        self.workers[usize::from(worker)].inbox.send(command);
    }

    fn next_client(&mut self) -> (PeerId, SocketAddr) {
        self.next_id += 1;
        let port = PORTS * (self.worker + 1) + self.next_id as u16;
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        (self.peer_at(address), address)
    }

    fn peer_at(&self, address: SocketAddr) -> PeerId {
        PeerId {
            worker: worker_of(address) as u16,
            serial: u64::from(address.port() % PORTS),
        }
    }

    fn camera_peer(&self, camera: usize) -> PeerId {
        self.peer_at(self.cameras[camera].side.config.candidates[0].base)
    }

    /// Creates a peer for a client. Returns the server's description.
    fn create_peer(
        &mut self,
        peer: PeerId,
        side: &Side,
        media: Vec<NegotiatedMedia>,
    ) -> RemoteTransport {
        let ice = credentials(&format!("server{}", peer.serial), 1);
        let created = Command::Peer(
            peer,
            PeerCommand::Create {
                ice: ice.clone(),
                controlling: false,
            },
        );
        self.order(peer.worker, created);
        let transport = side.describe();
        let fingerprints = transport.fingerprints.clone();
        let negotiated = Box::new(Negotiated { transport, media });
        self.order(
            peer.worker,
            Command::Peer(peer, PeerCommand::Negotiate(negotiated)),
        );
        let local = self.workers[usize::from(peer.worker)].local;
        RemoteTransport {
            ice,
            ice_lite: true,
            fingerprints,
            dtls_role: DtlsRole::Client,
            candidates: candidate_lines(&[LocalCandidate::udp(local, local)]),
        }
    }
}

/// The worker that a client belongs to.
fn worker_of(client: SocketAddr) -> usize {
    usize::from(client.port() / PORTS) - 1
}

/// The first m-line of a peer.
fn video_of(peer: PeerId) -> TrackRef {
    let mid = Mid::new("0").expect("a valid mid");
    TrackRef { peer, mid }
}

fn video_line(mid: &str, ssrc: u32, codec: Codec) -> NegotiatedMedia {
    let mut line = video(mid, ssrc);
    line.extensions.set(ExtensionKind::AbsSendTime, 9);
    for payload in &mut line.payloads {
        payload.codec = codec;
    }
    line
}
