//! The state of an attempt to connect by ICE, in one line for the log.

use std::fmt;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use is::CandidateKind;

use super::candidate::address;
use super::{Ice, LocalCandidate};
use crate::Carrier;
use crate::path::TransportAddress;

/// The most candidates of a kind that are listed.
const NAMED: usize = 8;

/// The state of an ICE attempt that has not succeeded yet, or of a broken connection.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IceAttempt {
    /// The time since the attempt started, or since the peer last consented (RFC 7675).
    pub time: Duration,
    /// Whether a pair has worked before, so that the peer is gone rather than out of reach.
    pub was_connected: bool,
    /// This side's candidates.
    pub locals: Vec<LocalCandidate>,
    /// The peer's candidates: the usable ones that it sent, and those found by its checks.
    pub remotes: Vec<RemoteCandidate>,
    /// Candidates of the peer with mDNS names that were not resolved.
    pub ignored_mdns: u32,
    /// TCP candidates of the peer that are not used.
    pub ignored_tcp: u32,
    /// Whether the peer announced that it connects by TCP, and this side listens.
    pub may_connect: bool,
    /// Connectivity checks that this side sent.
    pub checks_sent: u64,
    /// Responses to these checks.
    pub checks_answered: u64,
    /// Connectivity checks received from the peer.
    pub checks_received: u64,
    /// Whether this side nominates a pair.
    pub controlling: bool,
    /// Whether this side makes no checks.
    pub lite: bool,
}

/// A candidate of the peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemoteCandidate {
    /// The address.
    pub address: SocketAddr,
    /// The carrier of datagrams to it.
    pub carrier: Carrier,
    /// `host`, `srflx`, `prflx` or `relay`.
    pub kind: &'static str,
}

impl Ice {
    /// Returns the state of the current attempt. Returns `None` while a pair works, before the
    /// remote side is known, and after failure.
    pub(crate) fn attempt(&self, now: Instant) -> Option<IceAttempt> {
        let alive = self.alive?;
        let works = self.selected.is_some() && self.agent.state().is_connected();
        (!works).then(|| self.attempt_of(now.saturating_duration_since(alive)))
    }

    pub(super) fn attempt_of(&self, time: Duration) -> IceAttempt {
        let stats = self.agent.stats();
        let remotes = self.agent.remote_candidates();
        IceAttempt {
            time,
            was_connected: self.was_connected || self.selected.is_some(),
            locals: self.locals.clone(),
            remotes: remotes
                .map(|c| {
                    let TransportAddress { carrier, address } = address(&c);
                    let kind = kind_name(c.kind());
                    RemoteCandidate {
                        address,
                        carrier,
                        kind,
                    }
                })
                .collect(),
            ignored_mdns: self.ignored_mdns,
            ignored_tcp: self.ignored_tcp,
            may_connect: self.may_connect,
            checks_sent: stats.bind_request_sent,
            checks_answered: stats.bind_success_recv,
            checks_received: stats.bind_request_recv,
            controlling: self.agent.controlling(),
            lite: self.agent.ice_lite(),
        }
    }
}

impl fmt::Display for IceAttempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = if self.was_connected {
            "no consent"
        } else {
            "no working pair"
        };
        write!(f, "{what} for {} s; local", self.time.as_secs())?;
        let locals = self.locals.iter();
        list(
            f,
            locals.map(|it| describe(it.address, it.kind(), it.carrier())),
        )?;
        f.write_str("; remote")?;
        let remotes = self.remotes.iter();
        list(
            f,
            remotes.map(|it| describe(it.address, it.kind, it.carrier)),
        )?;
        write!(
            f,
            "; {} checks sent, {} answered, {} received; ignored {} mDNS and {} TCP candidates; \
             likely cause: {}",
            self.checks_sent,
            self.checks_answered,
            self.checks_received,
            self.ignored_mdns,
            self.ignored_tcp,
            self.cause().text
        )
    }
}

fn list(
    f: &mut fmt::Formatter<'_>,
    candidates: impl ExactSizeIterator<Item = String>,
) -> fmt::Result {
    let more = candidates.len().saturating_sub(NAMED);
    if candidates.len() == 0 {
        return f.write_str(" none");
    }
    for (n, candidate) in candidates.take(NAMED).enumerate() {
        let comma = if n == 0 { "" } else { "," };
        write!(f, "{comma} {candidate}")?;
    }
    if more > 0 {
        write!(f, " and {more} more")
    } else {
        Ok(())
    }
}

fn describe(address: SocketAddr, kind: &str, carrier: Carrier) -> String {
    let carrier = match carrier {
        Carrier::Udp => "",
        Carrier::Tcp => ", tcp",
    };
    format!("{address} ({kind}{carrier})")
}

/// Returns the name of a candidate type in the API.
pub(crate) const fn kind_name(kind: CandidateKind) -> &'static str {
    match kind {
        CandidateKind::Host => "host",
        CandidateKind::PeerReflexive => "prflx",
        CandidateKind::ServerReflexive => "srflx",
        CandidateKind::Relayed => "relay",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn candidates_of_tcp_are_marked() {
        let by = |carrier, kind| RemoteCandidate {
            address: ([192, 0, 2, 1], 2).into(),
            carrier,
            kind,
        };
        let tried = IceAttempt {
            remotes: vec![by(Carrier::Udp, "host"), by(Carrier::Tcp, "prflx")],
            ..IceAttempt::default()
        };
        let text = tried.to_string();
        let remote = "local none; remote 192.0.2.1:2 (host), 192.0.2.1:2 (prflx, tcp);";
        assert!(text.contains(remote), "{text}");
    }
}
