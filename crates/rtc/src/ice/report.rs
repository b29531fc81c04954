//! The one line that says why ICE failed.

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use is::CandidateKind;

use super::{Ice, LocalCandidate, address};
use crate::Carrier;
use crate::path::TransportAddress;

/// How many candidates of a kind are named.
const NAMED: usize = 8;

/// What was tried in vain, and the likely cause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IceFailure {
    pub(crate) after: Duration,
    pub(crate) was_connected: bool,
    pub(crate) locals: Vec<LocalCandidate>,
    pub(crate) remotes: Vec<(TransportAddress, &'static str)>,
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

impl Ice {
    /// Why nothing has worked for `after`.
    pub(super) fn failure(&self, after: Duration) -> IceFailure {
        let stats = self.agent.stats();
        let remotes = self.agent.remote_candidates();
        IceFailure {
            after,
            was_connected: self.was_connected || self.selected.is_some(),
            locals: self.locals.clone(),
            remotes: remotes
                .map(|c| (address(&c), kind_name(c.kind())))
                .collect(),
            ignored_mdns: self.ignored_mdns,
            ignored_tcp: self.ignored_tcp,
            may_connect: self.may_connect,
            requests_sent: stats.bind_request_sent,
            responses: stats.bind_success_recv,
            requests_received: stats.bind_request_recv,
            controlling: self.agent.controlling(),
            lite: self.agent.ice_lite(),
        }
    }
}

impl IceFailure {
    /// Whether a pair has worked before: the peer is gone, rather than out of reach.
    pub fn was_connected(&self) -> bool {
        self.was_connected
    }

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
        let is_silent = !heard && self.responses == 0;
        if self.locals.is_empty() {
            "this server has no usable address"
        } else if self.remotes.is_empty() && self.ignored_mdns > 0 && self.may_connect {
            "the peer hides its addresses (mDNS) and its own checks reach us neither by UDP nor by TCP: a \
             firewall blocks our ports, or the announced address is wrong"
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
        } else if !self
            .remotes
            .iter()
            .any(|(remote, _)| same_family(&remote.address))
        {
            "the peer's addresses and ours are of different IP versions"
        } else if is_silent && self.may_connect {
            "the peer reaches us neither by UDP nor by TCP: a firewall blocks our ports, or the announced \
             address is wrong"
        } else if self.lite && !heard {
            "the peer's checks do not reach us: a firewall blocks our UDP port, or the announced \
             address is wrong"
        } else if is_silent {
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
        let locals = self.locals.iter();
        list(
            f,
            locals.map(|local| (local.address, "host", local.carrier())),
        )?;
        f.write_str("; remote")?;
        let remotes = self.remotes.iter();
        list(f, remotes.map(|(at, kind)| (at.address, *kind, at.carrier)))?;
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
    candidates: impl ExactSizeIterator<Item = (SocketAddr, &'static str, Carrier)>,
) -> fmt::Result {
    let more = candidates.len().saturating_sub(NAMED);
    if candidates.len() == 0 {
        return f.write_str(" none");
    }
    for (n, (address, kind, carrier)) in candidates.take(NAMED).enumerate() {
        let comma = if n == 0 { "" } else { "," };
        let carrier = match carrier {
            Carrier::Udp => "",
            Carrier::Tcp => ", tcp",
        };
        write!(f, "{comma} {address} ({kind}{carrier})")?;
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A peer that connects by TCP, none of whose checks came.
    fn unheard(remotes: Vec<(TransportAddress, &'static str)>) -> IceFailure {
        IceFailure {
            after: Duration::from_secs(30),
            was_connected: false,
            locals: vec![LocalCandidate::udp(at(1), at(1))],
            remotes,
            ignored_mdns: 0,
            ignored_tcp: 0,
            may_connect: true,
            requests_sent: 21,
            responses: 0,
            requests_received: 0,
            controlling: false,
            lite: false,
        }
    }

    fn at(port: u16) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, 1], port))
    }

    fn by(carrier: Carrier) -> TransportAddress {
        TransportAddress {
            carrier,
            address: at(2),
        }
    }

    #[test]
    fn where_tcp_was_possible_too_it_is_blamed_too() {
        let named = unheard(vec![(by(Carrier::Udp), "host")]);
        let lite = IceFailure {
            lite: true,
            ..named.clone()
        };
        let hidden = IceFailure {
            ignored_mdns: 1,
            ..unheard(Vec::new())
        };
        for failure in [named, lite, hidden] {
            let cause = failure.likely_cause();
            assert!(cause.contains("neither by UDP nor by TCP"), "{cause}");
            let by_udp = IceFailure {
                may_connect: false,
                ..failure
            };
            let cause = by_udp.likely_cause();
            assert!(cause.contains("UDP") && !cause.contains("TCP"), "{cause}");
        }
        let cause = unheard(Vec::new()).likely_cause();
        assert!(cause.starts_with("the peer offers TCP only"), "{cause}");
    }

    #[test]
    fn what_was_tried_by_tcp_is_told_from_udp() {
        let tried = unheard(vec![
            (by(Carrier::Udp), "host"),
            (by(Carrier::Tcp), "prflx"),
        ]);
        let text = tried.to_string();
        let remote = "remote 192.0.2.1:2 (host), 192.0.2.1:2 (prflx, tcp);";
        assert!(text.contains(remote), "{text}");
    }
}
