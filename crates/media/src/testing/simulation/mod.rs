//! Publishers and viewers of workers behind links that change, in virtual time: everything of the
//! server is real but its socket, and so are the connections of the viewers.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a simulation that cannot be set up has failed"
)]

mod camera;
mod figures;
mod picture;
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
use tokio::sync::oneshot;

use super::bare::{Bare, together};
use crate::command::Command;
use crate::plane::{PeerId, RouteId};
use crate::{
    Event, KeyframeCache, KeyframeInterval, LineStats, MediaSettings, PeerStats, RouteOptions,
    TrackRef,
};

pub use camera::Camera;
pub use watcher::{Seen, Watcher};

const TICK: Duration = Duration::from_millis(1);
/// From a client to the server.
const UP: Duration = Duration::from_millis(20);

/// The ports of the clients of one worker.
const PORTS: u16 = 10_000;

/// Workers with whom they serve, and what lies between.
pub struct Simulation {
    /// When it began.
    pub start: Instant,
    /// The virtual time.
    pub now: Instant,
    /// Who publishes.
    pub cameras: Vec<Camera>,
    /// Who watches.
    pub watchers: Vec<Watcher>,
    /// What the server told of media that comes or ceases, and of slow links.
    pub heard: Vec<(Instant, Event)>,
    /// Who comes next is a client of this worker.
    pub worker: u16,
    /// Told true before a worker works, and false after it: what lies between is the server's doing, and
    /// nothing of the simulation's. But ICE's checks are taken in between.
    pub at_work: fn(bool),
    workers: Vec<Bare>,
    links: Vec<DownLink>,
    clients: HashMap<SocketAddr, Client>,
    up: VecDeque<(Instant, SocketAddr, Vec<u8>)>,
    /// What arrives in this turn.
    due: Vec<(SocketAddr, Vec<u8>)>,
    seed: u64,
    next_id: u64,
}

/// Whose address it is, and by which link datagrams come to it.
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

/// The way to some clients.
#[derive(Debug)]
struct DownLink {
    bottleneck: Bottleneck<(SocketAddr, Vec<u8>)>,
    /// How long datagrams waited at each tick.
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
    /// Nobody is there yet. The same `seed` makes the same simulation, to the bit but for what is encrypted.
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
            seed,
            next_id: 0,
        };
        // Publishers have one that hinders nothing.
        this.link(BottleneckLink::of(DataRate::kbps(1_000_000)));
        this
    }

    /// A link that viewers may have in common.
    pub fn link(&mut self, link: BottleneckLink) -> usize {
        let seed = self.seed * 100 + self.links.len() as u64;
        self.links.push(DownLink {
            bottleneck: Bottleneck::new(seed, link, self.now),
            queue: Vec::new(),
        });
        self.links.len() - 1
    }

    /// A link becomes another.
    pub fn set_link(&mut self, link: usize, to: BottleneckLink) {
        self.links[link].bottleneck.set_link(to, self.now);
    }

    /// Somebody publishes video of these layers, in kbit/s, and audio.
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

    /// Somebody watches a camera over a link.
    pub fn watch(&mut self, camera: usize, link: usize) -> usize {
        self.watch_as(camera, link, StreamConfig::default(), |_| {})
    }

    /// The same, with other lines than usual, and a client that reports as `streams` says.
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
        let mut sources = vec![(camera, "0"), (camera, "1")];
        for (number, camera) in (2..).zip(further) {
            let codec = self.cameras[*camera].codec;
            lines.push(video_line(&number.to_string(), ssrc + 20 * number, codec));
            sources.push((*camera, "0"));
        }
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
        let routes = lines.iter().zip(sources).map(|(line, (camera, mid))| {
            self.next_id += 1;
            let route = RouteId {
                worker: peer.worker,
                serial: 1_000_000 + self.next_id,
            };
            let from = TrackRef {
                peer: self.camera_peer(camera),
                mid: Mid::new(mid).expect("a valid mid"),
            };
            let to = TrackRef {
                peer,
                mid: line.mid,
            };
            let added = Command::AddRoute {
                route,
                from: from.into(),
                to,
                options: RouteOptions::default(),
            };
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

    /// What a camera sent since its last keyframe is kept for new viewers.
    pub fn keep_keyframe(&mut self, camera: usize, keep: KeyframeCache) {
        let peer = self.camera_peer(camera);
        let source = video_of(peer).into();
        let keep = Some(keep);
        self.order(peer.worker, Command::KeepKeyframe { source, keep });
    }

    /// A viewer watches another camera instead.
    pub fn switch(&mut self, watcher: usize, camera: usize) {
        let route = self.watchers[watcher].routes[0];
        self.order(route.worker, Command::RemoveRoute { route });
        self.next_id += 1;
        let serial = 1_000_000 + self.next_id;
        let route = RouteId { serial, ..route };
        self.watchers[watcher].routes[0] = route;
        let added = Command::AddRoute {
            route,
            from: video_of(self.camera_peer(camera)).into(),
            to: video_of(self.peer_at(self.watchers[watcher].address)),
            options: RouteOptions::default(),
        };
        self.order(route.worker, added);
    }

    /// Somebody watches further cameras as well; their pictures are on the m-lines from the third on.
    pub fn watch_all(&mut self, cameras: &[usize], link: usize) -> usize {
        self.watch_lines(
            (cameras[0], &cameras[1..]),
            link,
            StreamConfig::default(),
            |_| {},
        )
    }

    /// A viewer asks for something else of the video.
    pub fn set_options(&mut self, watcher: usize, options: RouteOptions) {
        self.set_options_of(watcher, 0, options);
    }

    /// The same of what it has on another m-line than the first.
    pub fn set_options_of(&mut self, watcher: usize, line: usize, options: RouteOptions) {
        let route = self.watchers[watcher].routes[line];
        self.order(route.worker, Command::SetRoute { route, options });
    }

    /// A publisher is asked for keyframes when none has come for a time; none: no more.
    pub fn ask_keyframes(&mut self, camera: usize, interval: Option<KeyframeInterval>) {
        let peer = self.camera_peer(camera);
        let mid = Mid::new("0").expect("a valid mid");
        let source = TrackRef { peer, mid }.into();
        self.order(peer.worker, Command::KeyframeInterval { source, interval });
    }

    /// What a publisher sends is encrypted end to end, but for the first `clear` bytes of each payload.
    pub fn encrypt(&mut self, camera: usize, clear: usize) {
        self.cameras[camera].encrypted_after = Some(clear);
        let peer = self.camera_peer(camera);
        self.order(peer.worker, Command::SetOpaque { peer });
    }

    /// A keyframe of a publisher is needed.
    pub fn request_keyframe(&mut self, camera: usize) {
        let peer = self.camera_peer(camera);
        self.order(peer.worker, Command::RequestKeyframe { peer });
    }

    /// What a publisher may send at most, in bit/s.
    pub fn set_bitrate(&mut self, camera: usize, bitrate: Option<u64>) {
        let peer = self.camera_peer(camera);
        self.order(peer.worker, Command::SetBitrate { peer, bitrate });
    }

    /// A viewer says by REMB what its link carries, in bit/s.
    pub fn set_receiver_estimate(&mut self, watcher: usize, bitrate: u64) {
        let connection = &mut self.watchers[watcher].connection;
        connection.limit_bitrate(Some(bitrate), self.now);
    }

    /// The server's figures of a viewer.
    pub fn stats(&mut self, watcher: usize) -> PeerStats {
        self.stats_of(self.peer_at(self.watchers[watcher].address))
    }

    /// The server's figures of a publisher.
    pub fn camera_stats(&mut self, camera: usize) -> PeerStats {
        self.stats_of(self.camera_peer(camera))
    }

    /// What m-lines of a viewer and a publisher carry, asked for at once, with a peer that there is not.
    pub fn line_stats(&mut self, watcher: usize, camera: usize) -> [LineStats; 2] {
        let viewer = self.peer_at(self.watchers[watcher].address);
        let publisher = self.camera_peer(camera);
        assert_eq!(viewer.worker, publisher.worker, "one worker is asked");
        let nobody = PeerId {
            serial: u64::MAX,
            ..viewer
        };
        let (reply, mut stats) = oneshot::channel();
        let peers = vec![viewer, nobody, publisher];
        self.order(viewer.worker, Command::LineStats { peers, reply });
        let bare = &mut self.workers[usize::from(viewer.worker)];
        bare.worker.take_commands(self.now);
        let stats = stats.try_recv().expect("the worker answers");
        let (peers, stats): (Vec<_>, Vec<_>) = stats.into_iter().unzip();
        assert_eq!(peers, [viewer, publisher]);
        stats.try_into().expect("two of them")
    }

    /// Administrators change what all workers do.
    pub fn configure(&mut self, settings: MediaSettings) {
        for bare in &self.workers {
            bare.inbox.send(Command::Configure(settings));
        }
    }

    fn stats_of(&mut self, peer: PeerId) -> PeerStats {
        let (reply, mut stats) = oneshot::channel();
        self.order(peer.worker, Command::Stats { peer, reply });
        let bare = &mut self.workers[usize::from(peer.worker)];
        bare.worker.take_commands(self.now);
        stats.try_recv().expect("the peer is there")
    }

    /// Packets that wait in a viewer's pacer; none: it has no pacer, or the viewer is gone.
    pub fn waiting(&self, watcher: usize) -> Option<usize> {
        let peer = self.peer_at(self.watchers[watcher].address);
        self.workers[usize::from(peer.worker)].worker.waiting(peer)
    }

    /// Lets time go by.
    pub fn run(&mut self, seconds: f64) {
        let end = self.now + Duration::from_secs_f64(seconds);
        while self.now < end {
            self.now += TICK;
            self.deliver_down();
            self.serve_clients();
            for index in 0..self.workers.len() {
                self.turn(index);
            }
            self.hear_events();
            for link in &mut self.links {
                let delay = link.bottleneck.queue_delay(self.now);
                link.queue.push((self.now, delay));
            }
        }
    }

    /// A turn of a worker.
    fn turn(&mut self, index: usize) {
        self.collect_up(index);
        let Bare { worker, local, .. } = &mut self.workers[index];
        let now = self.now;
        (self.at_work)(true);
        let passed = worker.count_passed();
        worker.take_commands(now);
        let _ = worker.take_passed(&passed, now);
        worker.take_handshakes(now);
        (self.at_work)(false);
        for (from, datagram) in self.due.iter_mut().filter(|(_, data)| is_check(data)) {
            worker.take_datagram(now, *local, *from, datagram);
        }
        (self.at_work)(true);
        for (from, datagram) in self.due.iter_mut().filter(|(_, data)| !is_check(data)) {
            worker.take_datagram(now, *local, *from, datagram);
        }
        worker.relay_fresh(now);
        worker.run_timers(now);
        worker.poll_touched(now);
        (self.at_work)(false);
        for (to, datagram) in worker.take_kept() {
            if let Some(client) = self.clients.get(&to) {
                let link = &mut self.links[client.link];
                let bytes = bytes_on_link(&datagram);
                link.bottleneck.send(now, bytes, (to, datagram));
            }
        }
    }

    fn deliver_down(&mut self) {
        for link in &mut self.links {
            while let Some((to, mut datagram)) = link.bottleneck.receive(self.now) {
                let server = self.workers[worker_of(to)].local;
                match self.clients.get(&to).map(|client| client.who) {
                    Some(Who::Camera(index)) => {
                        self.cameras[index].receive(self.now, server, &mut datagram);
                    }
                    Some(Who::Watcher(index)) => {
                        self.watchers[index].receive(self.now, server, &mut datagram);
                    }
                    None => {}
                }
            }
        }
    }

    fn serve_clients(&mut self) {
        let (now, arrives) = (self.now, self.now + UP);
        let mut buf = [0; 2_048];
        for camera in &mut self.cameras {
            let address = camera.side.config.candidates[0].base;
            let transport = &mut camera.side.transport;
            if transport.poll_timeout().is_some_and(|at| at <= now) {
                transport.handle_timeout(now);
            }
            while let Some(transmit) = transport.poll_transmit(&mut buf) {
                let datagram = buf[..transmit.len].to_vec();
                self.up.push_back((arrives, address, datagram));
            }
            while transport.poll_event().is_some() {}
            if transport.is_connected() {
                let filmed = camera.film(now);
                self.up
                    .extend(filmed.into_iter().map(|d| (arrives, address, d)));
            }
        }
        for watcher in &mut self.watchers {
            let connection = &mut watcher.connection;
            if connection.poll_timeout().is_some_and(|at| at <= now) {
                connection.handle_timeout(now);
            }
            while let Some(transmit) = connection.poll_transmit(now, &mut buf) {
                if !watcher.mute {
                    let datagram = buf[..transmit.len].to_vec();
                    self.up.push_back((arrives, watcher.address, datagram));
                }
            }
            while connection.poll_feedback().is_some() {}
            while connection.transport.poll_event().is_some() {}
        }
    }

    /// Collects what has arrived for a worker.
    fn collect_up(&mut self, index: usize) {
        self.due.clear();
        let arrived = self.up.partition_point(|(at, ..)| *at <= self.now);
        self.up.make_contiguous()[..arrived].sort_by_key(|(_, from, _)| worker_of(*from) != index);
        while let Some((at, from, _)) = self.up.front()
            && *at <= self.now
            && worker_of(*from) == index
            && let Some((_, from, datagram)) = self.up.pop_front()
        {
            self.due.push((from, datagram));
        }
    }

    fn hear_events(&mut self) {
        for bare in &mut self.workers {
            while let Ok(event) = bare.events.try_recv() {
                let (route, layer) = match event.event {
                    Event::Layer { route, layer, .. } => (route, layer),
                    Event::Media { .. } | Event::SlowLink { .. } => {
                        self.heard.push((self.now, event.event));
                        continue;
                    }
                    _ => continue,
                };
                let watcher = self.watchers.iter_mut();
                for watcher in watcher.filter(|w| w.routes[0] == route) {
                    watcher.told.push((self.now, layer));
                }
            }
        }
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

    /// Makes a peer for a client; returns what the client is told of the server.
    fn create_peer(
        &mut self,
        peer: PeerId,
        side: &Side,
        media: Vec<NegotiatedMedia>,
    ) -> RemoteTransport {
        let ice = credentials(&format!("server{}", peer.serial), 1);
        let created = Command::CreatePeer {
            peer,
            ice: ice.clone(),
            controlling: false,
        };
        self.order(peer.worker, created);
        let transport = side.describe();
        let fingerprints = transport.fingerprints.clone();
        let negotiated = Box::new(Negotiated { transport, media });
        self.order(peer.worker, Command::Negotiate { peer, negotiated });
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

/// Whether a datagram is a check of ICE: the first byte tells (RFC 7983).
fn is_check(datagram: &[u8]) -> bool {
    datagram.first().is_some_and(|first| *first < 4)
}

/// What a datagram takes on a link. Signatures are not of the same length in each run: handshakes of DTLS
/// take as much as the longest datagram of one, so that the same seed makes the same simulation.
fn bytes_on_link(datagram: &[u8]) -> usize {
    const HANDSHAKE: usize = 1_000;
    let is_dtls = datagram
        .first()
        .is_some_and(|first| (20..64).contains(first));
    if is_dtls { HANDSHAKE } else { datagram.len() }
}

/// The worker that a client belongs to.
fn worker_of(client: SocketAddr) -> usize {
    usize::from(client.port() / PORTS) - 1
}

/// Everybody's first line.
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
