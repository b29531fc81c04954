//! Candidates: how the peer's are read and how ours are announced (RFC 8839 section 5.1).

use std::net::{IpAddr, SocketAddr};

use is::{Candidate, CandidateKind, Protocol};

use crate::Carrier;
use crate::path::TransportAddress;

/// A host candidate of this side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LocalCandidate {
    /// What peers are told.
    pub address: SocketAddr,
    /// The bound socket's address; differs from `address` behind a 1:1 NAT.
    pub base: SocketAddr,
    /// By what it is reached.
    pub transport: CandidateTransport,
}

impl LocalCandidate {
    /// Of UDP.
    pub const fn udp(address: SocketAddr, base: SocketAddr) -> Self {
        Self {
            address,
            base,
            transport: CandidateTransport::Udp,
        }
    }

    /// What carries datagrams to and from it.
    pub const fn carrier(&self) -> Carrier {
        match self.transport {
            CandidateTransport::Udp => Carrier::Udp,
            CandidateTransport::TcpPassive | CandidateTransport::TcpActive => Carrier::Tcp,
        }
    }
}

/// By what a candidate is reached; with TCP, who connects (RFC 6544 section 4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CandidateTransport {
    /// UDP.
    Udp,
    /// TCP: the peer connects to it.
    TcpPassive,
    /// TCP: this side connects from it to passive candidates of the peer. Whoever has such a candidate makes the
    /// connection when there is something to send to one.
    TcpActive,
}

/// The port that active candidates name (RFC 6544 section 4.5): nothing connects to it.
const DISCARD_PORT: u16 = 9;
/// Type preferences of host candidates (RFC 8445 section 5.1.2.1); that of TCP is below all of UDP but those of relays
/// (RFC 6544 section 4.2).
const UDP_PREFERENCE: u32 = 126;
const TCP_PREFERENCE: u32 = 90;
/// Direction preferences (RFC 6544 section 4.2), which stand above 13 bits of other ones.
const PASSIVE: u32 = 4 << 13;
const ACTIVE: u32 = 6 << 13;

/// The texts (`candidate:…`) that tell a peer of `candidates`, most preferred first.
pub fn candidate_lines(candidates: &[LocalCandidate]) -> Vec<String> {
    let line = |(n, candidate): (usize, &LocalCandidate)| {
        let (ip, port) = (candidate.address.ip(), candidate.address.port());
        let among = |most: u32| most.saturating_sub(n as u32);
        let (preference, local_preference, port, tcptype) = match candidate.transport {
            CandidateTransport::Udp => (UDP_PREFERENCE, among(65_535), port, ""),
            CandidateTransport::TcpPassive => {
                let local = PASSIVE | among(8_191);
                (TCP_PREFERENCE, local, port, " tcptype passive")
            }
            CandidateTransport::TcpActive => {
                let local = ACTIVE | among(8_191);
                (TCP_PREFERENCE, local, DISCARD_PORT, " tcptype active")
            }
        };
        // Component 1 (RFC 8445 section 5.1.2.1).
        let priority = (preference << 24) | (local_preference << 8) | 255;
        let (n, carrier) = (n + 1, candidate.carrier().name());
        format!("candidate:{n} 1 {carrier} {priority} {ip} {port} typ host{tcptype}")
    };
    candidates.iter().enumerate().map(line).collect()
}

/// What the text of a remote candidate turned out to be.
#[derive(Debug)]
pub(crate) enum Parsed {
    /// A UDP candidate.
    Usable(Candidate),
    /// A passive TCP candidate: of use to those who connect.
    Passive(Candidate),
    /// An active TCP candidate: the peer connects to those who listen.
    Active,
    /// The end of candidates: nothing to add.
    End,
    /// Well-formed, but of no use here, and why.
    Ignored(Ignored),
}

/// Why a remote candidate is of no use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ignored {
    /// The address is a `.local` name (mDNS): the peer is found by its own checks.
    Mdns,
    /// The transport is not UDP, and nobody here connects to it.
    Tcp,
    /// No datagram can be sent to the address, or it is of a second component (RTCP).
    Address,
}

/// A candidate text that is not understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("malformed candidate: {0}")]
pub struct CandidateError(pub(crate) String);

/// Reads a candidate as it stands in SDP or comes by trickle: with or without `a=`.
pub(crate) fn parse(text: &str) -> Result<Parsed, CandidateError> {
    let text = text.trim();
    let text = text.strip_prefix("a=").unwrap_or(text);
    if text.is_empty() || text == "end-of-candidates" || text == "candidate:" {
        return Ok(Parsed::End);
    }
    let mut words = text.split_whitespace().skip(1);
    let (component, transport) = (words.next(), words.next());
    let address = words.nth(1).unwrap_or_default();
    if transport.is_some_and(|transport| !transport.eq_ignore_ascii_case("udp")) {
        return Ok(parse_tcp(text, component));
    }
    if address.to_ascii_lowercase().ends_with(".local") {
        return Ok(Parsed::Ignored(Ignored::Mdns));
    }
    if component.is_some_and(|component| component != "1") {
        return Ok(Parsed::Ignored(Ignored::Address));
    }
    let candidate =
        Candidate::from_sdp_string(text).map_err(|error| CandidateError(error.to_string()))?;
    if candidate.proto() != Protocol::Udp {
        return Ok(Parsed::Ignored(Ignored::Tcp));
    }
    if !is_reachable(candidate.addr()) {
        return Ok(Parsed::Ignored(Ignored::Address));
    }
    if candidate.kind() == CandidateKind::PeerReflexive {
        let at = TransportAddress {
            carrier: Carrier::Udp,
            address: candidate.addr(),
        };
        let mut same = peer_reflexive(at, candidate.prio());
        if let Some(ufrag) = candidate.ufrag() {
            same.set_ufrag(ufrag);
        }
        return Ok(Parsed::Usable(same));
    }
    Ok(Parsed::Usable(candidate))
}

/// A remote candidate that the peer's checks, and no signalling, tell of.
///
/// The agent takes the first of the candidates with the same address and kind for the one that is meant. By this
/// foundation it knows those that were not signalled, and puts one in the place of another at the same address: there is
/// never a second one.
pub(super) fn peer_reflexive(at: TransportAddress, priority: u32) -> Candidate {
    let (kind, foundation) = (CandidateKind::PeerReflexive, "tmp_prflx".into());
    Candidate::from_parts(
        foundation,
        1,
        at.carrier.into(),
        priority,
        at.address,
        kind,
        None,
        None,
        None,
    )
}

/// A candidate that is not of UDP. Those of TCP say who connects; the address of who does is of no use, and may be a name.
fn parse_tcp(text: &str, component: Option<&str>) -> Parsed {
    let ignored = Parsed::Ignored(Ignored::Tcp);
    let mut words = text.split_whitespace();
    let (transport, is_first) = (words.nth(2), component == Some("1"));
    if !is_first || !transport.is_some_and(|transport| transport.eq_ignore_ascii_case("tcp")) {
        return ignored;
    }
    match words.skip_while(|word| *word != "tcptype").nth(1) {
        Some("active") => Parsed::Active,
        Some("passive") => match Candidate::from_sdp_string(text) {
            Ok(candidate) if is_reachable(candidate.addr()) => Parsed::Passive(candidate),
            Ok(_) | Err(_) => ignored,
        },
        Some(_) | None => ignored,
    }
}

fn is_reachable(address: SocketAddr) -> bool {
    let ip = address.ip();
    let broadcast = matches!(ip, IpAddr::V4(ip) if ip.is_broadcast());
    address.port() != 0 && !ip.is_unspecified() && !ip.is_multicast() && !broadcast
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]
    use super::*;

    #[test]
    fn ours_are_read_back() {
        let address = "[2001:db8::1]:10000".parse().unwrap();
        let lines = candidate_lines(&[LocalCandidate::udp(address, address)]);
        match parse(&lines.concat()).unwrap() {
            Parsed::Usable(candidate) => assert_eq!(candidate.addr(), address),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn candidates_of_tcp_say_who_connects_and_come_after_all_of_udp() {
        let address: SocketAddr = "192.0.2.1:10000".parse().unwrap();
        let of = |transport| LocalCandidate {
            transport,
            ..LocalCandidate::udp(address, address)
        };
        let all = [
            of(CandidateTransport::TcpPassive),
            of(CandidateTransport::TcpActive),
            of(CandidateTransport::Udp),
        ];
        let lines = candidate_lines(&all);
        assert_eq!(
            lines[..2],
            [
                "candidate:1 1 tcp 1520435199 192.0.2.1 10000 typ host tcptype passive",
                "candidate:2 1 tcp 1524629247 192.0.2.1 9 typ host tcptype active",
            ]
        );
        let priority = |line: &String| line.split(' ').nth(3).unwrap().parse::<u32>().unwrap();
        assert!(priority(&lines[2]) > priority(&lines[1]));
        match parse(&lines[0]).unwrap() {
            Parsed::Passive(candidate) => assert_eq!(candidate.addr(), address),
            other => panic!("{other:?}"),
        }
        assert!(matches!(parse(&lines[1]), Ok(Parsed::Active)));
        for text in [
            "candidate:1 1 TCP 1518280447 0d7a4f3a-24c9-4c26-9b6b-8d6f3b8f3e9e.local 9 typ host tcptype active generation 0",
            "candidate:1 1 tcp 1 2001:db8::1 9 typ srflx raddr :: rport 9 generation 0 tcptype active ufrag x",
        ] {
            assert!(matches!(parse(text), Ok(Parsed::Active)), "{text}");
        }
    }

    #[test]
    fn what_is_of_no_use_is_told_from_what_is_malformed() {
        let ignored = |text| match parse(text) {
            Ok(Parsed::Ignored(why)) => Some(why),
            _ => None,
        };
        let name = "0d7a4f3a-24c9-4c26-9b6b-8d6f3b8f3e9e.local";
        let text = format!("candidate:1 1 udp 2113937151 {name} 51000 typ host generation 0");
        assert_eq!(ignored(&text), Some(Ignored::Mdns));
        for tcp in [
            "candidate:1 1 tcp 1520435199 192.0.2.1 9 typ host tcptype so",
            "candidate:1 1 tcp 1520435199 192.0.2.1 9 typ host",
            "candidate:1 1 tcp 1520435199 192.0.2.1 9 typ host tcptype",
            "candidate:1 1 tcp 1520435199 192.0.2.1 0 typ host tcptype passive",
            "candidate:1 2 tcp 1520435199 192.0.2.1 9 typ host tcptype active",
            "candidate:1 1 ssltcp 1520435199 192.0.2.1 9 typ host tcptype active",
        ] {
            assert_eq!(ignored(tcp), Some(Ignored::Tcp), "{tcp}");
        }
        let none = "a=candidate:1 1 UDP 1 0.0.0.0 9 typ host";
        assert_eq!(ignored(none), Some(Ignored::Address));
        assert_eq!(
            ignored("candidate:1 2 UDP 1 192.0.2.1 9 typ host"),
            Some(Ignored::Address)
        );
        assert!(matches!(parse(""), Ok(Parsed::End)));
        assert!(matches!(parse("a=end-of-candidates"), Ok(Parsed::End)));
        assert!(parse("candidate:1 1 udp x 192.0.2.1 9 typ host").is_err());
        assert!(parse("nonsense").is_err());
    }
}
