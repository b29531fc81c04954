//! Measuring the loop: its viewers, its duration, and the fastest way of sending.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::thread;
use std::time::Duration;

use super::plan::{Joining, Plan, sizes_differ};
use super::sender::{Batching, Sender, Sent};
use super::{CeilingError, Options};
use crate::machine::{Addresses, Link, Namespace, in_thread, pin, raise_descriptor_limit};
use crate::record::{BareLoad, BareLoop, Ceiling};
use crate::traffic::{Connections, Topology, Traffic};
use crate::viewer::{Arrived, BareViewers, Counted};

/// The batch sizes to try, in bytes.
const BATCHES: [usize; 6] = [
    32 << 10,
    64 << 10,
    128 << 10,
    192 << 10,
    256 << 10,
    512 << 10,
];
/// The duration of a trial of each way of sending.
const TRIAL: Duration = Duration::from_millis(300);
/// The streams of the first trial, which determines those of the others.
const FIRST_STREAMS: f64 = 1_000.0;
/// A number of streams within this share of the carried number counts as equal.
const CLOSE: f64 = 0.05;
/// The number of measurements that approach the carried number.
const APPROACHES: u32 = 3;

/// A way of sending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Way {
    joining: Joining,
    batching: Batching,
}

/// The setup of a measurement.
pub(super) struct Bench<'a> {
    options: &'a Options,
    link: Option<&'a Link>,
    traffic: &'a Traffic,
    topology: Topology,
}

impl<'a> Bench<'a> {
    pub(super) fn new(options: &'a Options, link: Option<&'a Link>) -> Self {
        // Without enough descriptors, there are fewer sockets, which is reported later.
        let _ = raise_descriptor_limit();
        Self {
            options,
            link,
            traffic: &options.traffic,
            topology: options.topology,
        }
    }

    /// Measures both ceilings.
    pub(super) fn ceiling(&self) -> Result<Ceiling, CeilingError> {
        let (in_time, way) = self.in_time()?;
        let at_all = self.at_all(&in_time, way)?;
        Ok(Ceiling {
            srtp_profile: self.options.profile.name().to_owned(),
            in_time,
            at_all: Some(at_all),
        })
    }

    /// Measures the loop with `participants`, sending each frame when it is due, in the fastest way
    /// of `in_time`.
    pub(super) fn load(
        &self,
        participants: u32,
        in_time: &BareLoop,
    ) -> Result<BareLoad, CeilingError> {
        let joining = Joining {
            padded: in_time.padded,
            ..Joining::NONE
        };
        let plan = Plan::new(self.traffic, 1, joining);
        let graph = self.topology.graph(participants);
        let batching = self.batching(in_time.batch_bytes as usize);
        let duration = Duration::from_secs_f64(self.options.duration);
        self.with_viewers(participants, |sender, arrived| {
            let warm_up = duration.min(TRIAL);
            sender.pace(self.traffic, &graph, &plan, batching, warm_up)?;
            settle(arrived);
            let before = arrived.so_far().packets;
            let sent = sender.pace(self.traffic, &graph, &plan, batching, duration)?;
            let packets = settle(arrived).packets - before;
            let cpu_s = sent.cpu.as_secs_f64();
            Ok(BareLoad {
                participants,
                cpu_ns_per_packet: cpu_s * 1e9 / sent.packets.max(1) as f64,
                cpu_cores: cpu_s / sent.took.as_secs_f64().max(1e-9),
                delivered_share: share(packets, &sent),
            })
        })
    }

    /// Measures with each frame leaving within its frame interval: the loop has as many viewers as
    /// it serves once per interval. Other packets for a viewer may leave together with it if that
    /// is faster, but no other frame of the same source.
    fn in_time(&self) -> Result<(BareLoop, Way), CeilingError> {
        let first = self.topology.whole_participants(FIRST_STREAMS);
        let way = self.way(Joining::NONE, self.options.batch.unwrap_or(192 << 10));
        // The first trial warms everything up.
        let (rate, _) = self.fastest(first, &[way])?;
        let mut participants = self.enough_for(rate);
        let batches = match self.options.batch {
            Some(batch) => vec![batch],
            None => BATCHES.to_vec(),
        };
        let joinings = self.joinings(1);
        let ways = joinings.iter().flat_map(|joining| {
            let way = |batch: &usize| self.way(*joining, *batch);
            batches.iter().map(way)
        });
        let (rate, way) = self.fastest(participants, &ways.collect::<Vec<_>>())?;
        participants = self.enough_for(rate);
        Ok((self.approached(participants, way)?, way))
    }

    /// Joins frames of a source as far as it pays. The result is at least that in time.
    fn at_all(&self, in_time: &BareLoop, way: Way) -> Result<BareLoop, CeilingError> {
        let participants = self.enough_for(in_time.delivered_pps);
        let tag_bytes = self.options.profile.tag_bytes();
        let mut ways = vec![way];
        if way.batching.gso {
            for frames in Joining::frames_to_try(self.traffic, tag_bytes) {
                let joinings = self.joinings(frames).into_iter();
                ways.extend(joinings.map(|joining| Way { joining, ..way }));
            }
        }
        let (rate, best) = self.fastest(participants, &ways)?;
        let larger = match self.options.batch {
            None if best != way => self.way(best.joining, 512 << 10),
            _ => best,
        };
        let (rate, best) = match larger == best {
            true => (rate, best),
            false => self.fastest(self.enough_for(rate), &[best, larger])?,
        };
        if best == way {
            return Ok(in_time.clone());
        }
        let at_all = self.approached(self.enough_for(rate), best)?;
        match at_all.delivered_pps > in_time.delivered_pps {
            true => Ok(at_all),
            false => Ok(in_time.clone()),
        }
    }

    /// Returns the ways to join `frames` frames of a source.
    fn joinings(&self, frames: u32) -> Vec<Joining> {
        let several =
            self.topology.connections(2).feeds > 1 || self.topology.connections(8).feeds > 1;
        let both = |differ: bool| {
            if differ {
                vec![false, true]
            } else {
                vec![false]
            }
        };
        let mut joinings = Vec::new();
        for padded in both(sizes_differ(self.traffic) || frames > 1 && self.sizes_vary()) {
            for sources in both(several) {
                joinings.push(Joining {
                    frames,
                    sources,
                    padded,
                });
            }
        }
        joinings
    }

    /// Returns whether frames differ in the sizes of their packets.
    fn sizes_vary(&self) -> bool {
        self.traffic.frame(0) != self.traffic.frame(1)
    }

    fn way(&self, joining: Joining, batch: usize) -> Way {
        Way {
            joining,
            batching: self.batching(batch),
        }
    }

    fn batching(&self, bytes: usize) -> Batching {
        Batching {
            bytes,
            gso: !self.options.no_gso,
        }
    }

    /// Returns the participants for which `pps` packets per second suffice.
    fn enough_for(&self, pps: f64) -> u32 {
        let streams = pps / self.traffic.packets_per_s();
        self.topology.whole_participants(streams)
    }

    /// Returns the fastest of some ways with `participants`, and its packets per second of CPU
    /// time, so that other work of the core does not count.
    fn fastest(&self, participants: u32, ways: &[Way]) -> Result<(f64, Way), CeilingError> {
        let feeds = self.topology.connections(participants).feeds;
        let trial = TRIAL.min(Duration::from_secs_f64(self.options.duration));
        self.with_viewers(participants, |sender, arrived| {
            let mut best: Option<(f64, Way)> = None;
            for way in ways {
                let plan = Plan::new(self.traffic, feeds, way.joining);
                let sent = sender.run(&plan, way.batching, trial)?;
                settle(arrived);
                let rate = sent.packets as f64 / sent.cpu.as_secs_f64().max(1e-6);
                if best.is_none_or(|(fastest, _)| rate > fastest) {
                    best = Some((rate, *way));
                }
            }
            best.ok_or(CeilingError::Thread)
        })
    }

    /// Measures with as many participants as the loop carries, starting with a guess.
    fn approached(&self, mut participants: u32, way: Way) -> Result<BareLoop, CeilingError> {
        let mut approach = 0;
        loop {
            approach += 1;
            let bare = self.whole(participants, way)?;
            let carried = self.enough_for(bare.delivered_pps);
            let close = (f64::from(carried) / f64::from(participants) - 1.0).abs() < CLOSE;
            if close || approach == APPROACHES {
                return Ok(bare);
            }
            participants = carried;
        }
    }

    fn whole(&self, participants: u32, way: Way) -> Result<BareLoop, CeilingError> {
        let Connections { count, feeds } = self.topology.connections(participants);
        let plan = Plan::new(self.traffic, feeds, way.joining);
        let duration = Duration::from_secs_f64(self.options.duration);
        self.with_viewers(participants, |sender, arrived| {
            sender.run(&plan, way.batching, TRIAL.min(duration))?;
            settle(arrived);
            let before = arrived.so_far();
            let sent = sender.run(&plan, way.batching, duration)?;
            let now = settle(arrived);
            let packets = now.packets - before.packets;
            let bytes = now.bytes - before.bytes;
            let seconds = sent.took.as_secs_f64().max(1e-9);
            let (sent_packets, sending) =
                (sent.packets.max(1) as f64, sent.took_sending.as_secs_f64());
            let delivered_pps = packets as f64 / seconds;
            let streams = delivered_pps / self.traffic.packets_per_s();
            Ok(BareLoop {
                delivered_bps: bytes as f64 * 8.0 / seconds,
                delivered_pps,
                delivered_share: share(packets, &sent),
                viewers: streams,
                participants: Some(self.topology.participants(streams)),
                addresses: count,
                frames_joined: way.joining.frames,
                sources_joined: way.joining.sources,
                padded: way.joining.padded,
                crypto_ns: (seconds - sending) * 1e9 / sent_packets,
                send_ns: sending * 1e9 / sent_packets,
                batch_bytes: way.batching.bytes as u64,
                cpu_share: Some(sent.cpu.as_secs_f64() / seconds),
            })
        })
    }

    /// Opens sockets for `participants` on the load's side, which are read there while `work` sends
    /// to them from the server's side.
    fn with_viewers<T: Send>(
        &self,
        participants: u32,
        work: impl FnOnce(&mut Sender, &Arrived) -> Result<T, CeilingError> + Send,
    ) -> Result<T, CeilingError> {
        let connections = self.topology.connections(participants).count;
        let mut viewers = in_thread(|| self.viewers(connections))?;
        let to = viewers.to().to_vec();
        let arrived = Arrived::default();
        thread::scope(|scope| {
            let reading = scope.spawn(|| {
                let pinned = pin(self.options.load_core);
                viewers.read(&arrived);
                pinned
            });
            let sending = scope.spawn(|| {
                let outcome = self
                    .sender(&to)
                    .and_then(|mut sender| work(&mut sender, &arrived));
                arrived.end();
                outcome
            });
            let sent = sending.join().map_err(|_| CeilingError::Thread)?;
            reading.join().map_err(|_| CeilingError::Thread)??;
            sent
        })
    }

    fn viewers(&self, count: u32) -> Result<BareViewers, CeilingError> {
        let namespace = self.link.map(|link| &link.load);
        let addresses = match (self.options.own_sockets, self.link) {
            (true, _) => None,
            (false, Some(_)) => Some(Addresses::LAB),
            (false, None) => Some(Addresses::LOOPBACK),
        };
        let ip = ip(namespace);
        let entered = namespace.map_or(Ok(()), Namespace::enter);
        let share = self.options.check_share;
        let open = || BareViewers::open(count, addresses, ip, share);
        entered
            .and_then(|()| open())
            .map_err(|source| CeilingError::Socket { ip, source })
    }

    /// Makes the sender on the calling thread, which is the server's from then on.
    fn sender(&self, to: &[SocketAddr]) -> Result<Sender, CeilingError> {
        pin(self.options.server_core)?;
        let namespace = self.link.map(|link| &link.server);
        let ip = ip(namespace);
        let entered = namespace.map_or(Ok(()), Namespace::enter);
        let socket = entered.and_then(|()| UdpSocket::bind((ip, 0)));
        let socket = socket.map_err(|source| CeilingError::Socket { ip, source })?;
        Sender::new(socket, to, self.options.profile)
    }
}

fn ip(namespace: Option<&Namespace>) -> IpAddr {
    namespace.map_or(Ipv4Addr::LOCALHOST.into(), |namespace| namespace.ip)
}

/// Returns the share of the sent packets that arrived.
fn share(packets: u64, sent: &Sent) -> f64 {
    packets as f64 / (sent.packets + sent.dropped).max(1) as f64
}

/// Waits until no packet is on its way. Returns the arrived packets.
fn settle(arrived: &Arrived) -> Counted {
    let mut before = None;
    loop {
        let now = arrived.so_far();
        if before == Some(now) {
            return now;
        }
        before = Some(now);
        thread::sleep(Duration::from_millis(20));
    }
}
