//! Candidates: how the peer's are read and how ours are announced (RFC 8839 section 5.1).

use std::net::{IpAddr, SocketAddr};

use is::{Candidate, CandidateKind, Protocol};

/// A host candidate of this side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LocalCandidate {
    /// What peers are told.
    pub address: SocketAddr,
    /// The bound socket's address; differs from `address` behind a 1:1 NAT.
    pub base: SocketAddr,
}

/// The texts (`candidate:…`) that tell a peer of `candidates`, most preferred first.
pub fn candidate_lines(candidates: &[LocalCandidate]) -> Vec<String> {
    let line = |(n, candidate): (usize, &LocalCandidate)| {
        // Host candidates (type preference 126), component 1 (RFC 8445 section 5.1.2.1).
        let local_preference = 65_535_u32.saturating_sub(n as u32);
        let priority = (126 << 24) | (local_preference << 8) | 255;
        let (ip, port) = (candidate.address.ip(), candidate.address.port());
        format!("candidate:{} 1 udp {priority} {ip} {port} typ host", n + 1)
    };
    candidates.iter().enumerate().map(line).collect()
}

/// What the text of a remote candidate turned out to be.
#[derive(Debug)]
pub(crate) enum Parsed {
    /// A UDP candidate.
    Usable(Candidate),
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
    /// The transport is not UDP.
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
        return Ok(Parsed::Ignored(Ignored::Tcp));
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
        let mut same = peer_reflexive(candidate.addr(), candidate.prio());
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
pub(super) fn peer_reflexive(address: SocketAddr, priority: u32) -> Candidate {
    let (kind, foundation) = (CandidateKind::PeerReflexive, "tmp_prflx".into());
    Candidate::from_parts(
        foundation,
        1,
        Protocol::Udp,
        priority,
        address,
        kind,
        None,
        None,
        None,
    )
}

fn is_reachable(address: SocketAddr) -> bool {
    let ip = address.ip();
    let broadcast = matches!(ip, IpAddr::V4(ip) if ip.is_broadcast());
    address.port() != 0 && !ip.is_unspecified() && !ip.is_multicast() && !broadcast
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;

    #[test]
    fn ours_are_read_back() {
        let address = "[2001:db8::1]:10000".parse().unwrap();
        let lines = candidate_lines(&[LocalCandidate {
            address,
            base: address,
        }]);
        match parse(&lines.concat()).unwrap() {
            Parsed::Usable(candidate) => assert_eq!(candidate.addr(), address),
            other => panic!("{other:?}"),
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
        let tcp = "candidate:1 1 tcp 1518280447 192.0.2.1 9 typ host tcptype active";
        assert_eq!(ignored(tcp), Some(Ignored::Tcp));
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
