//! Attacks on a server on this machine: `attacker KIND --http ADDRESS …` attacks for some seconds,
//! and prints its figures as a line of JSON. `scripts/attacks` starts it beside viewers and
//! talkers.
//!
//! Attackers have addresses of 127.66.0.0/16, so that the server's limits per address apply to
//! them, and not to others.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "an attack that cannot be made has failed"
)]

mod call;
mod connections;
mod flood;
mod http;
mod media;
mod rtcp;
mod sessions;
mod sip;
mod stun;
mod turn;

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use clap::{Parser, ValueEnum};
use serde_json::json;

/// The number of attackers' addresses.
const ADDRESSES: usize = 16;

/// Attacks a server on this machine.
#[derive(Debug, Parser)]
struct Options {
    /// The kind of attack.
    kind: Kind,
    /// The duration in seconds.
    #[arg(long, default_value_t = 10.0)]
    seconds: f64,
    /// Datagrams per second of floods by UDP.
    #[arg(long, default_value_t = 50_000)]
    rate: u32,
    /// Sessions to create and leave alone.
    #[arg(long, default_value_t = 50_000)]
    sessions: usize,
    /// Connections to open and hold.
    #[arg(long, default_value_t = 2_000)]
    connections: usize,
    /// The server's HTTP address.
    #[arg(long)]
    http: SocketAddr,
    /// Its WebSocket address.
    #[arg(long)]
    websocket: SocketAddr,
    /// The media address of its first worker.
    #[arg(long)]
    media: SocketAddr,
    /// Its SIP address for UDP and TCP.
    #[arg(long)]
    sip: SocketAddr,
    /// Its TURN address for UDP.
    #[arg(long)]
    turn: SocketAddr,
}

impl Options {
    fn time(&self) -> Duration {
        Duration::from_secs_f64(self.seconds)
    }
}

/// The kinds of attacks.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Kind {
    /// STUN checks of strangers: with wrong user fragments, with wrong passwords, truncated.
    Stun,
    /// Valid checks of one PeerConnection from many addresses.
    Checks,
    /// ClientHello from addresses that ICE has not verified.
    ClientHello,
    /// Callers whose ClientHello is preceded by a forged one.
    ForgedHello,
    /// SRTP that is repeated, damaged, or comes from another address.
    Srtp,
    /// RTCP of a caller: requests for keyframes and packets, rates, ends, random bytes.
    Rtcp,
    /// HTTP connections that are silent, slow, too long, or request without end.
    Http,
    /// WebSockets that are silent, send pings, or messages that are too long.
    Websocket,
    /// Clients that send requests and do not read the answers.
    SlowReaders,
    /// SIP requests by UDP and TCP.
    Sip,
    /// TURN requests without credentials, with wrong ones, with valid ones.
    Turn,
    /// Sessions that are created and left alone.
    Sessions,
    /// PeerConnections that offer and never check.
    Peers,
}

/// The figures of an attack.
#[derive(Debug, Default)]
struct Tally {
    /// Datagrams, requests or connections.
    sent: u64,
    /// Bytes of datagrams to the server.
    sent_bytes: u64,
    /// Bytes of datagrams from the server to addresses that it has not verified.
    received_bytes: u64,
    /// Connections, sessions, allocations or calls that the server granted.
    held: u64,
    /// Those that it refused.
    refused: u64,
}

/// Returns the `n`th address of attackers.
fn address(n: usize) -> Ipv4Addr {
    let last = u8::try_from(n % ADDRESSES).unwrap();
    Ipv4Addr::new(127, 66, 0, last + 1)
}

#[tokio::main]
async fn main() {
    let options = Options::parse();
    let tally = match options.kind {
        Kind::Stun => media::stun(&options).await,
        Kind::Checks => media::checks(&options).await,
        Kind::ClientHello => media::client_hello(&options),
        Kind::ForgedHello => media::forged_hello(&options).await,
        Kind::Srtp => media::srtp(&options).await,
        Kind::Rtcp => rtcp::storm(&options).await,
        Kind::Http => connections::http(&options).await,
        Kind::Websocket => connections::websocket(&options).await,
        Kind::SlowReaders => connections::slow_readers(&options).await,
        Kind::Sip => sip::flood(&options).await,
        Kind::Turn => turn::flood(&options).await,
        Kind::Sessions => sessions::sessions(&options).await,
        Kind::Peers => sessions::peers(&options).await,
    };
    let told = json!({
        "sent": tally.sent, "sent_bytes": tally.sent_bytes, "received_bytes": tally.received_bytes,
        "held": tally.held, "refused": tally.refused,
    });
    println!("{told}");
}
