//! The one line that says why ICE failed.

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use is::CandidateKind;

use super::LocalCandidate;
use crate::Carrier;

/// How many candidates of a kind are named.
const NAMED: usize = 8;

/// What was tried in vain, and the likely cause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IceFailure {
    pub(crate) after: Duration,
    pub(crate) was_connected: bool,
    pub(crate) locals: Vec<LocalCandidate>,
    pub(crate) remotes: Vec<(SocketAddr, &'static str)>,
    pub(crate) ignored_mdns: u32,
    pub(crate) ignored_tcp: u32,
    /// The peer said that it connects by TCP, to where this side listens.
    pub(crate) may_connect: bool,
    /// Binding requests that this side sent, and the answers to them.
    pub(crate) requests_sent: u64,
    pub(crate) responses: u64,
    /// Binding requests of the peer.
    pub(crate) requests_received: u64,
    pub(crate) controlling: bool,
    pub(crate) lite: bool,
}

impl IceFailure {
    fn likely_cause(&self) -> &'static str {
        if self.was_connected {
            return "the peer went away without a word, or its network changed";
        }
        let heard = self.requests_received > 0;
        let same_family = |remote: &SocketAddr| {
            self.locals
                .iter()
                .any(|local| local.address.is_ipv4() == remote.is_ipv4())
        };
        if self.locals.is_empty() {
            "this server has no usable address"
        } else if self.remotes.is_empty() && self.ignored_mdns > 0 {
            "the peer hides its addresses (mDNS) and its own checks do not reach us: a firewall \
             blocks our UDP port, or the announced address is wrong"
        } else if self.remotes.is_empty() && self.may_connect {
            "the peer offers TCP only and does not connect to us: a firewall blocks our TCP port, or the \
             announced address is wrong"
        } else if self.remotes.is_empty() && self.ignored_tcp > 0 {
            "the peer offers TCP only"
        } else if self.remotes.is_empty() {
            "the peer sent no candidate and its checks do not reach us"
        } else if !self.remotes.iter().any(|(remote, _)| same_family(remote)) {
            "the peer's addresses and ours are of different IP versions"
        } else if self.lite && !heard {
            "the peer's checks do not reach us: a firewall blocks our UDP port, or the announced \
             address is wrong"
        } else if !heard && self.responses == 0 {
            "UDP does not get through: a firewall blocks it, or the announced address is wrong"
        } else if heard && self.responses == 0 && !self.lite {
            "the peer's packets reach us but ours do not reach it"
        } else if !self.controlling {
            "pairs work but the peer nominated none"
        } else {
            "pairs worked for a while only: a lossy or changing network"
        }
    }
}

impl fmt::Display for IceFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = if self.was_connected {
            "no consent"
        } else {
            "no working pair"
        };
        write!(f, "{what} for {} s; local", self.after.as_secs())?;
        let kind = |local: &LocalCandidate| match local.carrier() {
            Carrier::Udp => "host",
            Carrier::Tcp => "host, tcp",
        };
        list(
            f,
            self.locals.iter().map(|local| (local.address, kind(local))),
        )?;
        f.write_str("; remote")?;
        list(f, self.remotes.iter().copied())?;
        write!(
            f,
            "; {} checks sent, {} answered, {} received; ignored {} mDNS and {} TCP candidates; \
             likely cause: {}",
            self.requests_sent,
            self.responses,
            self.requests_received,
            self.ignored_mdns,
            self.ignored_tcp,
            self.likely_cause()
        )
    }
}

fn list(
    f: &mut fmt::Formatter<'_>,
    candidates: impl ExactSizeIterator<Item = (SocketAddr, &'static str)>,
) -> fmt::Result {
    let more = candidates.len().saturating_sub(NAMED);
    if candidates.len() == 0 {
        return f.write_str(" none");
    }
    for (n, (address, kind)) in candidates.take(NAMED).enumerate() {
        let comma = if n == 0 { "" } else { "," };
        write!(f, "{comma} {address} ({kind})")?;
    }
    if more > 0 {
        write!(f, " and {more} more")
    } else {
        Ok(())
    }
}

/// A candidate's kind as the API shows it.
pub(crate) const fn kind_name(kind: CandidateKind) -> &'static str {
    match kind {
        CandidateKind::Host => "host",
        CandidateKind::PeerReflexive => "prflx",
        CandidateKind::ServerReflexive => "srflx",
        CandidateKind::Relayed => "relay",
    }
}
