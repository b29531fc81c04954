//! Opens the sockets and starts the workers.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::time::{Duration, Instant, SystemTime};

use mio::net::TcpListener;
use mio::{Poll, Waker};
use portunus_rtc::streams::NtpClock;
use portunus_rtc::{CandidateTransport, LocalCandidate, StreamConfig};
use portunus_sdp::negotiated::Fingerprint;
use rustix::process::{Resource, getrlimit};
use socket2::{Domain, Socket, Type};
use tokio::sync::{mpsc, watch};

use super::WorkerPort;
use crate::addresses::{self, Reachable};
use crate::backlog::Backlog;
use crate::candidates::Candidates;
use crate::inbox::Inbox;
use crate::sys::{MediaSocket, pin_to_core, run_first};
use crate::turn::TurnStatus;
use crate::worker::{Counters, INBOX, Links, Rings, SharedLoad, Worker, WorkerParts, most_pipes};
use crate::{MediaConfig, MediaError, MediaIdentity, MediaSettings, PeerEvent};

/// A smaller receive buffer causes a warning: it holds some ten milliseconds of a worker's load.
const LITTLE_BUFFER: usize = 1 << 20;

/// A smaller number of TCP connections of a worker causes a warning.
const FEW_PIPES: usize = 1_000;

/// The maximum number of events on their way to the control plane. Workers keep further ones.
const EVENTS: usize = 16_384;

/// The started media plane.
pub(super) struct Started {
    pub(super) workers: Vec<WorkerPort>,
    pub(super) fingerprint: Fingerprint,
    pub(super) address: IpAddr,
    pub(super) one_port: bool,
    pub(super) events: mpsc::Receiver<PeerEvent>,
    /// Closed when all workers have ended.
    pub(super) running: watch::Receiver<()>,
    /// True once a worker has ended by a fault.
    pub(super) lost: watch::Receiver<bool>,
    /// See [`crate::MediaPlane::want_last_stats`].
    pub(super) last_stats: Arc<AtomicBool>,
}

pub(super) fn start(config: MediaConfig) -> Result<Started, MediaError> {
    let count = config.worker_count();
    let MediaIdentity(identity) = config.identity()?;
    let reachable = addresses::reachable(&config)?;
    let (events_in, events) = mpsc::channel(EVENTS);
    let (held, running) = watch::channel(());
    let (told, lost) = watch::channel(false);
    let last_stats = Arc::<AtomicBool>::default();
    let since_epoch = SystemTime::UNIX_EPOCH.elapsed().unwrap_or(Duration::ZERO);
    let clock = NtpClock::new(Instant::now(), since_epoch);

    let most_pipes = most_pipes(getrlimit(Resource::Nofile).current, count);
    if config.ice_tcp && most_pipes < FEW_PIPES {
        tracing::warn!(
            "the limit of open files leaves each worker {most_pipes} TCP connections at a time, more are refused. \
             Allow more: ulimit -n, or LimitNOFILE= of systemd"
        );
    }

    let mut ports = Vec::with_capacity(count);
    let mut parts = Vec::with_capacity(count);
    let sockets = bind_all(&config, &reachable)?;
    let links = match config.one_port {
        true => Links::connect(count),
        false => (0..count).map(|_| None).collect(),
    };
    let mut shared_listening = None;
    let links = Rings::connect(count).into_iter().zip(links);
    for (index, ((rings, links), socket)) in links.zip(sockets).enumerate() {
        let poll = Poll::new().map_err(MediaError::Thread)?;
        let waker = Waker::new(poll.registry(), INBOX).map_err(MediaError::Thread)?;
        let inbox = Arc::new(Inbox::new(waker));
        let place = match config.one_port {
            true => 0,
            false => index,
        };
        // With one port, the first worker accepts for all.
        let listener = match place == index {
            true => listen(&config, socket.local(), index)?,
            false => None,
        };
        let mut candidates = candidates(&reachable, socket.local(), place);
        let listening = listener.as_ref().and_then(|l| l.local_addr().ok());
        if config.one_port && listening.is_some() {
            shared_listening = listening;
        }
        if let Some(listening) = listening.or(shared_listening) {
            let ports = (socket.local().port(), listening.port());
            let by_tcp = tcp_candidates(&candidates, ports);
            candidates.extend(by_tcp);
        }
        let offered = Arc::new(Candidates::new(candidates, config.force_relay));
        let turn = Arc::<TurnStatus>::default();
        let peers = Arc::new(AtomicUsize::new(0));
        let totals = Arc::new(Counters::totals());
        let load = Arc::new(SharedLoad::new());
        let ingests = Arc::new(AtomicUsize::new(0));
        ports.push(WorkerPort {
            inbox,
            candidates: Arc::clone(&offered),
            turn: Arc::clone(&turn),
            peers: Arc::clone(&peers),
            totals: Arc::clone(&totals),
            load: Arc::clone(&load),
            ingests: Arc::clone(&ingests),
            messages: Backlog::default(),
            local: socket.local(),
            listening,
        });
        let counts = (peers, ingests, totals, load);
        parts.push((
            (socket, listener),
            poll,
            (rings, links),
            (offered, turn),
            counts,
        ));
    }
    let inboxes: Vec<Arc<Inbox>> = ports.iter().map(|port| Arc::clone(&port.inbox)).collect();
    for (index, (sockets, poll, rings, (offered, turn), counts)) in parts.into_iter().enumerate() {
        let (socket, listener) = sockets;
        let (rings, links) = rings;
        let (peer_count, ingest_count, totals, load) = counts;
        let worker = WorkerParts {
            index: index as u16,
            socket,
            listener,
            most_pipes: config.ice_tcp.then_some(most_pipes),
            poll,
            inboxes: inboxes.clone(),
            rings,
            links,
            events: events_in.clone(),
            last_stats: Arc::clone(&last_stats),
            identity: Arc::clone(&identity),
            offered,
            turn,
            ice_lite: config.ice_lite,
            bandwidth_adaptation: config.bandwidth_adaptation,
            busy_poll: Duration::from_micros(u64::from(config.busy_poll_us)),
            streams: streams(&config),
            clock,
            peer_count,
            totals,
            load,
            ingest_count,
        };
        spawn(worker, &config, held.clone(), Loss(Some(told.clone())))?;
    }
    let address = reachable
        .first()
        .map_or(IpAddr::V4(Ipv4Addr::LOCALHOST), |r| r.announced);
    Ok(Started {
        workers: ports,
        fingerprint: identity.fingerprint().clone(),
        address,
        one_port: config.one_port,
        events,
        running,
        lost,
        last_stats,
    })
}

/// Reports a lost worker when it is dropped with a sender, as by a panic of the thread.
struct Loss(Option<watch::Sender<bool>>);

impl Loss {
    fn averted(&mut self) {
        self.0 = None;
    }
}

impl Drop for Loss {
    fn drop(&mut self) {
        if let Some(told) = &self.0 {
            told.send_replace(true);
        }
    }
}

/// Starts the thread of a worker. `held` is dropped when the worker has ended.
fn spawn(
    parts: WorkerParts,
    config: &MediaConfig,
    held: watch::Sender<()>,
    mut loss: Loss,
) -> Result<(), MediaError> {
    let index = parts.index;
    let (pin, real_time) = (config.pin, config.real_time);
    let run = move || {
        if pin && let Err(error) = pin_to_core(usize::from(index)) {
            tracing::warn!(worker = index, %error, "cannot pin the media worker to a core");
        }
        go_first(index, real_time);
        let _held = held;
        match Worker::new(parts).run() {
            Ok(()) => loss.averted(),
            Err(error) => {
                tracing::error!(worker = index, %error, "the media worker cannot go on");
            }
        }
    };
    let builder = std::thread::Builder::new().name(format!("media-{index}"));
    builder.spawn(run).map(drop).map_err(MediaError::Thread)
}

/// The real-time priority of a worker: above ordinary threads, below other real-time threads.
const PRIORITY: u8 = 1;
/// The nice value of a worker, which requires CAP_SYS_NICE.
const NICE: i32 = -10;

/// Raises the priority of the calling thread: a delay of a worker delays all its peers.
fn go_first(worker: u16, real_time: bool) {
    match real_time.then(|| run_first(PRIORITY)) {
        None => {}
        Some(Ok(())) => return,
        Some(Err(error)) => tracing::warn!(
            worker, %error,
            "the media worker cannot run in real time: that takes CAP_SYS_NICE, or a limit of real-time priority \
             (systemd: AmbientCapabilities=CAP_SYS_NICE or LimitRTPRIO=1; Docker: --cap-add SYS_NICE)"
        ),
    }
    if let Err(error) = rustix::process::setpriority_process(None, NICE) {
        tracing::debug!(worker, %error, "the media worker has no precedence over other threads");
    }
}

fn streams(config: &MediaConfig) -> StreamConfig {
    let settings = MediaSettings::new(config);
    StreamConfig {
        twcc_period: Duration::from_millis(config.twcc_period_ms.max(10).into()),
        no_media: Some(settings.silence()),
        slow_link_threshold: settings.slow_link_threshold,
    }
}

/// Binds the sockets of all workers.
fn bind_all(config: &MediaConfig, reachable: &[Reachable]) -> Result<Vec<MediaSocket>, MediaError> {
    let count = config.worker_count();
    if config.one_port {
        return bind(config, reachable, (0, count));
    }
    let mut all = Vec::with_capacity(count);
    for index in 0..count {
        all.extend(bind(config, reachable, (index, 1))?);
    }
    Ok(all)
}

/// Binds `count` sockets to port number `index`, to a single address or to the unspecified one.
fn bind(
    config: &MediaConfig,
    reachable: &[Reachable],
    (index, count): (usize, usize),
) -> Result<Vec<MediaSocket>, MediaError> {
    let port = match config.port {
        0 => 0,
        port => u16::try_from(usize::from(port) + index)
            .map_err(|_| MediaError::Port { port, index })?,
    };
    let only_v4 = SocketAddr::from((Ipv4Addr::UNSPECIFIED, port));
    let address = match config.bind.as_slice() {
        [one] => SocketAddr::new(*one, port),
        _ if config.ipv6 => SocketAddr::from((Ipv6Addr::UNSPECIFIED, port)),
        _ => only_v4,
    };
    let group = |address| MediaSocket::bind_group(address, count);
    let bound = group(address).or_else(|error| match error.raw_os_error() {
        // The kernel has no IPv6.
        Some(libc::EAFNOSUPPORT | libc::EADDRNOTAVAIL) if config.bind.is_empty() => group(only_v4),
        _ => Err(error),
    });
    let mut sockets = bound.map_err(|error| MediaError::Socket { address, error })?;
    let addresses = reachable.iter().map(|r| r.bound);
    let apart = MediaSocket::send_group_apart(&mut sockets, addresses);
    let first = sockets.first();
    let buffer = first.map_or(0, MediaSocket::receive_buffer);
    let local = first.map(MediaSocket::local);
    tracing::debug!(?local, count, apart, buffer, "media socket");
    if index == 0 && buffer < LITTLE_BUFFER {
        tracing::warn!(
            "the kernel holds only {} KiB of what comes to a media socket: bursts are lost under load. \
             Allow more: sysctl -w net.core.rmem_max=8388608",
            buffer >> 10
        );
    }
    Ok(sockets)
}

/// The number of connections that wait to be accepted.
const BACKLOG: i32 = 1_024;

/// Returns the TCP listener of a worker whose UDP socket is bound to `udp`, if it has one.
fn listen(
    config: &MediaConfig,
    udp: SocketAddr,
    index: usize,
) -> Result<Option<TcpListener>, MediaError> {
    if !config.ice_tcp {
        return Ok(None);
    }
    let port = match config.ice_tcp_port {
        0 => udp.port(),
        port => u16::try_from(usize::from(port) + index)
            .map_err(|_| MediaError::TcpPort { port, index })?,
    };
    let address = SocketAddr::new(udp.ip(), port);
    let listener = listener(address).or_else(|error| match error.kind() {
        // The kernel chose a UDP port whose number is in use for TCP.
        io::ErrorKind::AddrInUse if config.port == 0 && config.ice_tcp_port == 0 => {
            listener(SocketAddr::new(udp.ip(), 0))
        }
        _ => Err(error),
    });
    let listener = listener.map_err(|error| MediaError::Listener { address, error })?;
    tracing::debug!(local = ?listener.local_addr(), "media listener");
    Ok(Some(listener))
}

fn listener(address: SocketAddr) -> io::Result<TcpListener> {
    let kind = (Type::STREAM, Some(socket2::Protocol::TCP));
    let socket = Socket::new(Domain::for_address(address), kind.0, kind.1)?;
    socket.set_nonblocking(true)?;
    // Old connections of a server that has ended must not prevent listening.
    socket.set_reuse_address(true)?;
    if address.is_ipv6() {
        socket.set_only_v6(!address.ip().is_unspecified())?;
    }
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(TcpListener::from_std(socket.into()))
}

/// Returns TCP candidates with the same addresses. If TCP has the number of the UDP port, the
/// announced port applies to it, too.
fn tcp_candidates(udp: &[LocalCandidate], (udp_port, port): (u16, u16)) -> Vec<LocalCandidate> {
    let by_tcp = |candidate: &LocalCandidate| {
        let mut by_tcp = LocalCandidate {
            transport: CandidateTransport::TcpPassive,
            ..*candidate
        };
        by_tcp.base.set_port(port);
        if port != udp_port {
            by_tcp.address.set_port(port);
        }
        by_tcp
    };
    udp.iter().map(by_tcp).collect()
}

fn candidates(reachable: &[Reachable], local: SocketAddr, index: usize) -> Vec<LocalCandidate> {
    let candidate = |r: &Reachable| {
        let port = r
            .port
            .map_or(local.port(), |port| port.saturating_add(index as u16));
        let address = SocketAddr::new(r.announced, port);
        LocalCandidate::udp(address, SocketAddr::new(r.bound, local.port()))
    };
    let fits = |r: &&Reachable| r.bound.is_ipv4() || local.is_ipv6();
    reachable.iter().filter(fits).map(candidate).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "a failed test panics")]
    use super::*;

    #[test]
    fn silence_is_always_watched_for() {
        for (configured, limit) in [(0, 1_000), (300, 300), (60_000, 60_000)] {
            let config = MediaConfig {
                no_media_ms: configured,
                ..MediaConfig::default()
            };
            let limit = Duration::from_millis(limit);
            assert_eq!(streams(&config).no_media, Some(limit));
        }
    }

    #[test]
    fn a_worker_that_panics_is_lost_and_one_that_ends_is_not() {
        for (panics, is_lost) in [(true, true), (false, false)] {
            let (told, lost) = watch::channel(false);
            let mut loss = Loss(Some(told));
            let thread = std::thread::spawn(move || {
                assert!(!panics, "a fault");
                loss.averted();
            });
            assert_eq!(thread.join().is_err(), panics);
            assert_eq!(*lost.borrow(), is_lost);
        }
    }

    #[test]
    fn tcp_is_announced_as_udp_is_unless_it_has_a_port_of_its_own() {
        let announced: SocketAddr = "203.0.113.7:20000".parse().unwrap();
        let bound: SocketAddr = "10.0.0.5:10000".parse().unwrap();
        let udp = [LocalCandidate::udp(announced, bound)];
        let of = |ports| {
            let by_tcp = tcp_candidates(&udp, ports).remove(0);
            assert_eq!(by_tcp.transport, CandidateTransport::TcpPassive);
            (by_tcp.address.to_string(), by_tcp.base.to_string())
        };
        let same = ("203.0.113.7:20000".to_owned(), "10.0.0.5:10000".to_owned());
        assert_eq!(of((10_000, 10_000)), same);
        let own = ("203.0.113.7:443".to_owned(), "10.0.0.5:443".to_owned());
        assert_eq!(of((10_000, 443)), own);
    }

    #[test]
    fn a_tcp_port_that_is_taken_is_named() {
        let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = taken.local_addr().unwrap().port();
        let config = MediaConfig {
            ice_tcp: true,
            ice_tcp_port: port,
            ..MediaConfig::default()
        };
        let udp = "127.0.0.1:0".parse().unwrap();
        let error = listen(&config, udp, 0).unwrap_err().to_string();
        assert!(error.contains(&format!("127.0.0.1:{port}/tcp")), "{error}");
        assert!(error.contains("media.ice_tcp_port"), "{error}");
        assert!(matches!(
            listen(&config, udp, 65_535),
            Err(MediaError::TcpPort { .. })
        ));
        assert!(listen(&MediaConfig::default(), udp, 0).unwrap().is_none());
    }
}
