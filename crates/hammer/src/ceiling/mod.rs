//! What one core can do at most: a bare loop of encrypting and sending.
//!
//! The loop seals the same RTP packets for each of many viewers with the crypto library's bare calls, and
//! sends them by sendmmsg with UDP_SEGMENT. It has no protocol, no state of a stream and no timers: what a
//! server reaches of it is what its design leaves of the machine. Each viewer has an address of its own, as in a
//! lab: the kernel looks up the way to each, which is a part of what sending costs.

mod cipher;
mod receiver;
mod sender;

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use clap::Args;
use portunus_udp::{ask_receive_buffer, enable_gro};

pub use cipher::Profile;

use crate::doubts::NOT_OPTIMISED;
use crate::figures::{bits_per_s, percent};
use crate::namespace::{Link, Namespace, NamespaceError, in_thread, pin};
use crate::record::Ceiling;
use crate::traffic::{Traffic, TrafficError};
use crate::viewer::Addresses;
use receiver::Arrived;
use sender::{Sender, Sent};

/// Sizes of the batch that are tried, in bytes.
const BATCHES: [usize; 6] = [
    32 << 10,
    64 << 10,
    128 << 10,
    192 << 10,
    256 << 10,
    512 << 10,
];
/// How long each is tried.
const TRIAL: Duration = Duration::from_millis(300);
/// The share of the time that the loop has to have its core for, or something else ran there.
pub(crate) const UNDISTURBED: f64 = 0.97;
/// Asked of the kernel for each receiving socket.
const BUFFER_BYTES: usize = 32 << 20;

/// How to measure.
#[derive(Debug, Clone, Args)]
pub struct Options {
    /// What each viewer gets
    #[command(flatten)]
    pub traffic: Traffic,
    /// Viewers that are sealed for, each with a key of its own
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub viewers: u32,
    /// What packets are sealed with
    #[arg(long, value_enum, default_value_t)]
    pub profile: Profile,
    /// How long to measure, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 5.0, value_parser = seconds)]
    pub duration: f64,
    /// Bytes that are sealed between two system calls [default: the fastest of several]
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(2_048..=64 << 20))]
    pub batch: Option<u32>,
    /// Ports that the viewers are spread over; each has an address of its own
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub ports: u32,
    /// Send each packet by itself, without UDP_SEGMENT
    #[arg(long)]
    pub no_gso: bool,
    /// The core that sends: the server's
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub server_core: usize,
    /// The core that counts: the load's
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub load_core: usize,
    /// Send over the loopback interface instead of a veth pair between two namespaces; needs no rights
    #[arg(long)]
    pub loopback: bool,
    /// Write the result as JSON
    #[arg(long, value_name = "FILE.json")]
    pub json: Option<PathBuf>,
}

impl Options {
    /// The defaults, for `traffic`.
    pub fn of(traffic: Traffic) -> Self {
        Self {
            traffic,
            viewers: 1_000,
            profile: Profile::default(),
            duration: 5.0,
            batch: None,
            ports: 8,
            no_gso: false,
            server_core: 0,
            load_core: 1,
            loopback: false,
            json: None,
        }
    }
}

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CeilingError {
    /// The traffic cannot be made.
    #[error(transparent)]
    Traffic(#[from] TrafficError),
    /// No namespaces.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// A core that is not there, or may not be used.
    #[error("core {core} cannot be used: {source}")]
    Core {
        /// Which.
        core: usize,
        /// What the system says.
        source: io::Error,
    },
    /// A socket could not be made.
    #[error("no socket on {ip}: {source}")]
    Socket {
        /// Where.
        ip: IpAddr,
        /// What the system says.
        source: io::Error,
    },
    /// Sending failed.
    #[error("sending: {0}")]
    Send(io::Error),
    /// Receiving failed.
    #[error("receiving: {0}")]
    Receive(io::Error),
    /// The crypto library refused.
    #[error("the crypto library refused to seal")]
    Crypto,
    /// A thread ended unexpectedly.
    #[error("a measuring thread ended unexpectedly")]
    Thread,
    /// The result cannot be written.
    #[error("{path}: {source}")]
    Write {
        /// Which file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

/// Measures, prints and writes the result.
pub fn run(options: &Options) -> Result<(), CeilingError> {
    options.traffic.check()?;
    let ceiling = if options.loopback {
        measure(options, None)?
    } else {
        measure(options, Some(&Link::new()?))?
    };
    print(options, &ceiling);
    let Some(path) = &options.json else {
        return Ok(());
    };
    let text = serde_json::to_string_pretty(&ceiling).map_err(io::Error::from);
    let written = text.and_then(|text| std::fs::write(path, text + "\n"));
    written.map_err(|source| CeilingError::Write {
        path: path.clone(),
        source,
    })
}

/// Measures over `link`, or over the loopback interface.
pub fn measure(options: &Options, link: Option<&Link>) -> Result<Ceiling, CeilingError> {
    let sockets = in_thread(|| receivers(options, link))?;
    let to = destinations(options, link, &sockets)?;
    let arrived = Arrived::default();
    thread::scope(|scope| {
        let counting = scope.spawn(|| {
            pinned(options.load_core)?;
            receiver::count(&sockets, &arrived).map_err(CeilingError::Receive)
        });
        let sending = scope.spawn(|| {
            let outcome = send(options, link, &to, &arrived);
            arrived.ending.store(true, Ordering::Relaxed);
            outcome
        });
        let sent = sending.join().map_err(|_| CeilingError::Thread)?;
        counting.join().map_err(|_| CeilingError::Thread)??;
        let (before, sent, batch_bytes) = sent?;
        let packets = arrived.packets.load(Ordering::Relaxed) - before.packets;
        let bytes = arrived.bytes.load(Ordering::Relaxed) - before.bytes;
        Ok(figures(options, packets, bytes, sent, batch_bytes))
    })
}

fn figures(options: &Options, packets: u64, bytes: u64, sent: Sent, batch_bytes: usize) -> Ceiling {
    let seconds = sent.took.as_secs_f64();
    let (sent_packets, sending) = (sent.packets.max(1) as f64, sent.took_sending.as_secs_f64());
    let delivered_pps = packets as f64 / seconds;
    Ceiling {
        srtp_profile: options.profile.name().to_owned(),
        delivered_bps: bytes as f64 * 8.0 / seconds,
        delivered_pps,
        delivered_share: packets as f64 / (sent.packets + sent.dropped).max(1) as f64,
        viewers: delivered_pps / options.traffic.packets_per_s(),
        crypto_ns: (seconds - sending) * 1e9 / sent_packets,
        send_ns: sending * 1e9 / sent_packets,
        batch_bytes: batch_bytes as u64,
        cpu_share: Some(sent.cpu.as_secs_f64() / seconds),
    }
}

/// What had arrived before the measurement.
struct Before {
    packets: u64,
    bytes: u64,
}

fn send(
    options: &Options,
    link: Option<&Link>,
    to: &[SocketAddr],
    arrived: &Arrived,
) -> Result<(Before, Sent, usize), CeilingError> {
    pinned(options.server_core)?;
    let server = link.map(|link| &link.server);
    let ip = server.map_or(IpAddr::V4(Ipv4Addr::LOCALHOST), |server| server.ip);
    let socket = bind(server, ip)?;
    let mut sender = Sender::new(socket, to, options.profile, &options.traffic)?;
    let joined = !options.no_gso;
    let mut best = (0.0, 0);
    let fixed = options.batch.map(|bytes| bytes as usize);
    // The first trial warms everything up, and is made again.
    let warm_up = BATCHES.into_iter().take(1);
    for batch in warm_up.chain(BATCHES).filter(|_| fixed.is_none()) {
        let sent = sender.run(batch, joined, TRIAL)?;
        // By CPU time: what else the core did meanwhile is no fault of the size.
        let rate = sent.packets as f64 / sent.cpu.as_secs_f64().max(1e-6);
        if rate > best.0 {
            best = (rate, batch);
        }
    }
    let batch = fixed.unwrap_or(best.1);
    settle(arrived);
    let before = Before {
        packets: arrived.packets.load(Ordering::Relaxed),
        bytes: arrived.bytes.load(Ordering::Relaxed),
    };
    let sent = sender.run(batch, joined, Duration::from_secs_f64(options.duration))?;
    Ok((before, sent, batch))
}

/// Waits until nothing of the trials is on its way any more.
fn settle(arrived: &Arrived) {
    let mut before = u64::MAX;
    loop {
        let now = arrived.packets.load(Ordering::Relaxed);
        if now == before {
            return;
        }
        before = now;
        thread::sleep(Duration::from_millis(50));
    }
}

fn receivers(options: &Options, link: Option<&Link>) -> Result<Vec<UdpSocket>, CeilingError> {
    let receiver = |_| {
        let all = Ipv4Addr::UNSPECIFIED.into();
        let socket = bind(link.map(|link| &link.load), all)?;
        ask_receive_buffer(&socket, BUFFER_BYTES);
        enable_gro(&socket);
        Ok(socket)
    };
    (0..options.ports.min(options.viewers))
        .map(receiver)
        .collect()
}

/// Where each viewer is: an address of its own, and one of the receivers' ports.
fn destinations(
    options: &Options,
    link: Option<&Link>,
    receivers: &[UdpSocket],
) -> Result<Vec<SocketAddr>, CeilingError> {
    let network = link.map_or(Addresses::LOOPBACK, |_| Addresses::LAB);
    let ports: Result<Vec<u16>, _> = receivers
        .iter()
        .map(|socket| Ok(socket.local_addr()?.port()))
        .collect();
    let ports = ports.map_err(CeilingError::Receive)?;
    let viewers = (0..options.viewers).zip(ports.iter().cycle());
    let to = viewers.map(|(n, port)| SocketAddr::from((network.nth(n.into()), *port)));
    Ok(to.collect())
}

/// A socket for `ip` in the namespace, which the calling thread then stays in.
fn bind(namespace: Option<&Namespace>, ip: IpAddr) -> Result<UdpSocket, CeilingError> {
    let entered = namespace.map_or(Ok(()), Namespace::enter);
    let socket = entered.and_then(|()| UdpSocket::bind((ip, 0)));
    socket.map_err(|source| CeilingError::Socket { ip, source })
}

/// Keeps the calling thread on `core`.
pub(crate) fn pinned(core: usize) -> Result<(), CeilingError> {
    pin(core).map_err(|source| CeilingError::Core { core, source })
}

/// A duration of at least 10 ms, or 0.
pub(crate) fn seconds_or_none(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(0.0) => Ok(0.0),
        _ => seconds(text),
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.01..=86_400.0).contains(&seconds) => Ok(seconds),
        _ => Err("a number of seconds from 0.01 to 86400 is expected".to_owned()),
    }
}

fn print(options: &Options, ceiling: &Ceiling) {
    let Ceiling {
        srtp_profile,
        delivered_bps,
        delivered_pps,
        delivered_share,
        viewers,
        crypto_ns,
        send_ns,
        batch_bytes,
        cpu_share,
    } = ceiling;
    println!(
        "ceiling of core {} with {srtp_profile}",
        options.server_core
    );
    println!(
        "  delivered     {:.2} Gbit/s, {:.0} packets/s: enough for {viewers:.0} viewers",
        delivered_bps / 1e9,
        delivered_pps
    );
    println!("  of sent       {:.2} %", delivered_share * 100.0);
    println!(
        "  a packet      {:.0} ns: {crypto_ns:.0} crypto and header, {send_ns:.0} sending",
        crypto_ns + send_ns
    );
    println!("  batch         {} KiB", batch_bytes >> 10);
    if *delivered_share < crate::record::DELIVERED_AT_LEAST {
        println!(
            "  WARNING: core {} could not count all that was sent",
            options.load_core
        );
    }
    if cfg!(debug_assertions) {
        println!("  WARNING: {NOT_OPTIMISED}");
    }
    if let Some(share) = cpu_share.filter(|share| *share < UNDISTURBED) {
        println!(
            "  WARNING: something else had core {} for {} of the time; by CPU time it is {}",
            options.server_core,
            percent(1.0 - share),
            bits_per_s(delivered_bps / share)
        );
    }
}
