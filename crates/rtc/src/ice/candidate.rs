//! Candidates: reading the peer's and announcing ours (RFC 8839 section 5.1).

use std::net::{IpAddr, SocketAddr};

use is::{Candidate, CandidateKind, Protocol};

use crate::Carrier;
use crate::path::TransportAddress;

use super::candidate_text::CandidateText;
use super::mdns::is_mdns;

/// A candidate of this side: a host candidate, or a relayed one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LocalCandidate {
    /// The address announced to peers.
    pub address: SocketAddr,
    /// The address of the bound socket. It differs from `address` behind a 1:1 NAT. For a relayed
    /// candidate, it is the same.
    pub base: SocketAddr,
    /// The transport to reach it.
    pub transport: CandidateTransport,
}

impl LocalCandidate {
    /// Makes a host candidate for UDP.
    pub const fn udp(address: SocketAddr, base: SocketAddr) -> Self {
        Self {
            address,
            base,
            transport: CandidateTransport::Udp,
        }
    }

    /// Makes a candidate at a TURN server that relays UDP.
    pub const fn relayed(address: SocketAddr) -> Self {
        Self {
            address,
            base: address,
            transport: CandidateTransport::Relayed,
        }
    }

    /// Returns the type: `host` or `relay`.
    pub const fn kind(&self) -> &'static str {
        match self.transport {
            CandidateTransport::Relayed => "relay",
            CandidateTransport::Udp
            | CandidateTransport::TcpPassive
            | CandidateTransport::TcpActive => "host",
        }
    }

    /// Converts it for the ICE agent.
    pub(super) fn to_agent(self) -> Option<Candidate> {
        let carrier = self.carrier().name();
        let candidate = match self.transport {
            CandidateTransport::Relayed => Candidate::relayed(self.address, self.address, carrier),
            _ => Candidate::host(self.address, carrier),
        };
        candidate.ok()
    }

    /// Returns the carrier of datagrams to and from it.
    pub const fn carrier(&self) -> Carrier {
        match self.transport {
            CandidateTransport::Udp | CandidateTransport::Relayed => Carrier::Udp,
            CandidateTransport::TcpPassive | CandidateTransport::TcpActive => Carrier::Tcp,
        }
    }
}

/// The transport of a candidate. With TCP, it says which side connects (RFC 6544 section 4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CandidateTransport {
    /// UDP.
    Udp,
    /// TCP: the peer connects to it.
    TcpPassive,
    /// TCP: this side connects from it to passive candidates of the peer. The owner of the socket
    /// makes the connection when there is a datagram to send to one.
    TcpActive,
    /// UDP through a TURN server (RFC 8656).
    Relayed,
}

/// The port in active candidates (RFC 6544 section 4.5), to which nothing connects.
const DISCARD_PORT: u16 = 9;
/// Type preferences of host candidates (RFC 8445 section 5.1.2.1). TCP is below UDP, but above
/// relays (RFC 6544 section 4.2).
const UDP_PREFERENCE: u32 = 126;
const TCP_PREFERENCE: u32 = 90;
const RELAY_PREFERENCE: u32 = 0;
/// Direction preferences (RFC 6544 section 4.2), above 13 bits of other preferences.
const PASSIVE: u32 = 4 << 13;
const ACTIVE: u32 = 6 << 13;

/// Returns the address and carrier of a candidate.
pub(super) fn address(candidate: &Candidate) -> TransportAddress {
    TransportAddress {
        carrier: carrier(candidate.proto()),
        address: candidate.addr(),
    }
}

/// Returns the carrier for a protocol of the agent.
pub(super) fn carrier(protocol: Protocol) -> Carrier {
    match protocol {
        Protocol::Udp => Carrier::Udp,
        Protocol::Tcp | Protocol::SslTcp | Protocol::Tls => Carrier::Tcp,
    }
}

/// Returns the lines (`candidate:…`) that announce `candidates` to a peer, the most preferred
/// first.
pub fn candidate_lines(candidates: &[LocalCandidate]) -> Vec<String> {
    let line = |(n, candidate): (usize, &LocalCandidate)| {
        let (ip, port) = (candidate.address.ip(), candidate.address.port());
        let among = |most: u32| most.saturating_sub(n as u32);
        let (preference, local_preference, port, extension) = match candidate.transport {
            CandidateTransport::Udp => (UDP_PREFERENCE, among(65_535), port, ""),
            // The related address is for diagnosis and mandatory (RFC 8839 section 5.1). It reveals
            // nothing here.
            CandidateTransport::Relayed => {
                let related = match ip {
                    IpAddr::V4(_) => " raddr 0.0.0.0 rport 9",
                    IpAddr::V6(_) => " raddr :: rport 9",
                };
                (RELAY_PREFERENCE, among(65_535), port, related)
            }
            CandidateTransport::TcpPassive => {
                let local = PASSIVE | among(8_191);
                (TCP_PREFERENCE, local, port, " tcptype passive")
            }
            CandidateTransport::TcpActive => {
                let local = ACTIVE | among(8_191);
                (TCP_PREFERENCE, local, DISCARD_PORT, " tcptype active")
            }
        };
        // The component is 1 (RFC 8445 section 5.1.2.1).
        let priority = (preference << 24) | (local_preference << 8) | 255;
        let (n, carrier, kind) = (n + 1, candidate.carrier().name(), candidate.kind());
        format!("candidate:{n} 1 {carrier} {priority} {ip} {port} typ {kind}{extension}")
    };
    candidates.iter().enumerate().map(line).collect()
}

/// The content of a remote candidate's text.
#[derive(Debug)]
pub(crate) enum Parsed {
    /// A UDP candidate.
    Usable(Candidate),
    /// A passive TCP candidate, for sides that connect.
    Passive(Candidate),
    /// An active TCP candidate: the peer connects to listening sides.
    Active,
    /// The end of candidates.
    End,
    /// A well-formed candidate that cannot be used, with the reason.
    Ignored(Ignored),
}

/// The reason why a remote candidate cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ignored {
    /// The address is a `.local` name (mDNS) that was not resolved. The peer is found by its own
    /// checks.
    Mdns,
    /// The transport is not UDP, and this side does not connect to it.
    Tcp,
    /// The address cannot be sent to, or it belongs to a second component (RTCP).
    Address,
}

/// A malformed candidate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("malformed candidate: {0}")]
pub struct CandidateError(pub(crate) String);

/// Reads a candidate from SDP or trickle.
pub(crate) fn parse(text: &str) -> Result<Parsed, CandidateError> {
    let malformed = |why: &str| CandidateError(format!("{text}: {why}"));
    let value = match CandidateText::read(text) {
        Some(CandidateText::Candidate(value)) => value,
        Some(CandidateText::End) => return Ok(Parsed::End),
        None => return Err(malformed("missing 'candidate:'")),
    };
    let mut words = value.split_whitespace();
    let mut word = |what: &str| words.next().ok_or_else(|| malformed(what));
    let foundation = word("missing foundation")?;
    let component = word("missing component")?;
    let transport = word("missing transport")?;
    let is_tcp = transport.eq_ignore_ascii_case("tcp");
    if !is_tcp && !transport.eq_ignore_ascii_case("udp") {
        return Ok(Parsed::Ignored(Ignored::Tcp));
    }
    let priority = word("missing priority")?;
    let (address, port) = (word("missing address")?, word("missing port")?);
    if !word("missing type")?.eq_ignore_ascii_case("typ") {
        return Err(malformed("missing 'typ'"));
    }
    let kind = word("missing type")?.to_ascii_lowercase();
    let kind = match kind.as_str() {
        "host" => CandidateKind::Host,
        "srflx" => CandidateKind::ServerReflexive,
        "prflx" => CandidateKind::PeerReflexive,
        "relay" => CandidateKind::Relayed,
        _ => return Err(malformed("unknown type")),
    };
    let priority = priority.parse().map_err(|_| malformed("bad priority"))?;
    let port: u16 = port.parse().map_err(|_| malformed("bad port"))?;
    let extensions = Extensions::read(words);
    if component != "1" {
        return Ok(Parsed::Ignored(match is_tcp {
            true => Ignored::Tcp,
            false => Ignored::Address,
        }));
    }
    let who_connects = extensions.tcptype.map(str::to_ascii_lowercase);
    match who_connects.as_deref() {
        // The address of the connecting side is not used, and may be a name.
        Some("active") if is_tcp => return Ok(Parsed::Active),
        Some("passive") if is_tcp => {}
        _ if is_tcp => return Ok(Parsed::Ignored(Ignored::Tcp)),
        _ => {}
    }
    let useless = match is_mdns(address) {
        _ if is_tcp => Ignored::Tcp,
        true => Ignored::Mdns,
        false => Ignored::Address,
    };
    // Other texts are names, or addresses with the name of an interface.
    let address = address.parse().map(|ip| SocketAddr::new(ip, port)).ok();
    let Some(address) = address.filter(|address| is_reachable(*address)) else {
        return Ok(Parsed::Ignored(useless));
    };
    let carrier = match is_tcp {
        true => Carrier::Tcp,
        false => Carrier::Udp,
    };
    let mut candidate = match kind {
        CandidateKind::PeerReflexive => {
            peer_reflexive(TransportAddress { carrier, address }, priority)
        }
        CandidateKind::Host | CandidateKind::ServerReflexive | CandidateKind::Relayed => {
            let (foundation, carrier) = (foundation.to_owned(), carrier.into());
            let related = extensions.related();
            Candidate::from_parts(
                foundation, 1, carrier, priority, address, kind, related, None, None,
            )
        }
    };
    if let Some(ufrag) = extensions.ufrag {
        candidate.set_ufrag(ufrag);
    }
    Ok(match is_tcp {
        true => Parsed::Passive(candidate),
        false => Parsed::Usable(candidate),
    })
}

/// The used extensions after a candidate's type. RFC 8839 has pairs of names and values, but some
/// peers omit a value.
#[derive(Default)]
struct Extensions<'a> {
    raddr: Option<&'a str>,
    rport: Option<&'a str>,
    tcptype: Option<&'a str>,
    ufrag: Option<&'a str>,
}

impl<'a> Extensions<'a> {
    fn read(mut words: impl Iterator<Item = &'a str>) -> Self {
        let mut extensions = Extensions::default();
        while let Some(name) = words.next() {
            match name.to_ascii_lowercase().as_str() {
                "raddr" => extensions.raddr = words.next(),
                "rport" => extensions.rport = words.next(),
                "tcptype" => extensions.tcptype = words.next(),
                "ufrag" => extensions.ufrag = words.next(),
                _ => {}
            }
        }
        extensions
    }

    /// Returns the related address. It is only informative, so a malformed one counts as absent.
    fn related(&self) -> Option<SocketAddr> {
        Some(SocketAddr::new(
            self.raddr?.parse().ok()?,
            self.rport?.parse().ok()?,
        ))
    }
}

/// Makes a remote candidate that is known from the peer's checks, not from signalling.
///
/// The agent identifies candidates by address and type, and uses the first match. It recognizes
/// unsignalled ones by this foundation, and replaces one at the same address, so there is never a
/// second one.
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

fn is_reachable(address: SocketAddr) -> bool {
    let ip = address.ip();
    let broadcast = matches!(ip, IpAddr::V4(ip) if ip.is_broadcast());
    address.port() != 0 && !ip.is_unspecified() && !ip.is_multicast() && !broadcast
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::panic,
        clippy::indexing_slicing,
        reason = "a test fails by a panic"
    )]
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
    fn a_relayed_address_is_told_as_such_and_comes_last() {
        let address: SocketAddr = "203.0.113.7:40000".parse().unwrap();
        let lines = candidate_lines(&[LocalCandidate::relayed(address)]);
        assert_eq!(
            lines,
            ["candidate:1 1 udp 16777215 203.0.113.7 40000 typ relay raddr 0.0.0.0 rport 9"]
        );
        match parse(&lines.concat()).unwrap() {
            Parsed::Usable(candidate) => {
                assert_eq!(
                    (candidate.addr(), candidate.kind()),
                    (address, CandidateKind::Relayed)
                );
            }
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
    fn candidates_are_taken_in_every_form_that_clients_write() {
        let address: SocketAddr = "192.0.2.1:4000".parse().unwrap();
        let bare = "842163049 1 udp 1677729535 192.0.2.1 4000 typ srflx";
        for text in [
            bare.to_owned(),
            format!("candidate:{bare}"),
            format!("a=candidate:{bare}"),
            format!("a=candidate:{bare}\r\n"),
            format!(" candidate: {bare} \n"),
            format!("Candidate:{bare}"),
            format!("{bare}\r\na=candidate:2 1 udp 1 198.51.100.1 1 typ host"),
            bare.replace("udp", "UDP"),
            bare.replace(
                "srflx",
                "SRFLX raddr 10.0.0.1 rport 4000 generation 0 ufrag abcd",
            ),
            format!("{bare} raddr a.local rport 0 generation 0 network-cost 999"),
            format!("{bare} raddr rport generation"),
            bare.replace("srflx", "relay raddr fe80::1%en0 rport 9"),
            bare.replace("srflx", "prflx"),
        ] {
            match parse(&text) {
                Ok(Parsed::Usable(candidate)) => assert_eq!(candidate.addr(), address, "{text}"),
                other => panic!("{text}: {other:?}"),
            }
        }
        for end in [
            "",
            "\r\n",
            "candidate:",
            "a=candidate:",
            "end-of-candidates",
            "a=end-of-candidates\r\n",
        ] {
            assert!(matches!(parse(end), Ok(Parsed::End)), "{end:?}");
        }
        let ufrag = format!("{bare} generation 0 ufrag abcd network-id 1");
        let Ok(Parsed::Usable(candidate)) = parse(&ufrag) else {
            panic!("{ufrag}");
        };
        assert_eq!(candidate.ufrag(), Some("abcd"));
    }

    #[test]
    fn what_is_of_no_use_is_told_from_what_is_malformed() {
        let ignored = |text: &str| match parse(text) {
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
        for name in ["turn.example.org", "fe80::1%en0"] {
            let text = format!("candidate:1 1 udp 1 {name} 9 typ host");
            assert_eq!(ignored(&text), Some(Ignored::Address), "{text}");
        }
        for malformed in [
            "candidate:1 1 udp x 192.0.2.1 9 typ host",
            "candidate:1 1 udp 1 192.0.2.1 65536 typ host",
            "candidate:1 1 udp 1 192.0.2.1 9 typ hosts",
            "candidate:1 1 udp 1 192.0.2.1 9 host",
            "candidate:1 1 udp",
            "1 1 udp 1 192.0.2.1 9 host",
            "nonsense",
        ] {
            assert!(parse(malformed).is_err(), "{malformed}");
        }
    }
}
