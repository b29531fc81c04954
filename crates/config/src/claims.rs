//! The ports on which the sections of a file listen. No two sections may share one.

use std::fmt;
use std::net::IpAddr;
use std::ops::{Range, RangeInclusive};

use crate::PortRange;

/// The protocol of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// TCP, with any protocol above it.
    Tcp,
    /// UDP.
    Udp,
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Protocol::Tcp => "TCP",
            Protocol::Udp => "UDP",
        })
    }
}

/// Ports that the server listens on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listener {
    /// The key that claims them, with its section: `http.port`.
    pub key: String,
    /// The protocol.
    pub protocol: Protocol,
    /// The addresses. Empty means all.
    pub addresses: Vec<IpAddr>,
    /// The ports, without 0.
    pub ports: RangeInclusive<u16>,
}

/// Ports that a key of a section claims.
#[derive(Debug)]
pub(crate) struct Claim {
    /// With its section, as in `http.port`.
    pub(crate) key: String,
    /// The place of the key in the file. `None` means that it has its default.
    pub(crate) span: Option<Range<usize>>,
    pub(crate) protocol: Protocol,
    /// Empty: all.
    pub(crate) addresses: Vec<IpAddr>,
    pub(crate) ports: RangeInclusive<u16>,
}

/// UDP ports that a key of a section claims in pairs: an even one and the next one.
#[derive(Debug)]
pub(crate) struct Pairs {
    pub(crate) key: String,
    pub(crate) span: Option<Range<usize>>,
    pub(crate) range: PortRange,
}

impl Claim {
    /// Returns what a program may know of it.
    pub(crate) fn listener(&self) -> Listener {
        Listener {
            key: self.key.clone(),
            protocol: self.protocol,
            addresses: self.addresses.clone(),
            ports: self.ports.clone(),
        }
    }

    /// Returns the first port that both claim.
    fn meets(&self, other: &Claim) -> Option<u16> {
        let first = *self.ports.start().max(other.ports.start());
        let last = *self.ports.end().min(other.ports.end());
        let is_shared = self.protocol == other.protocol && first <= last;
        (is_shared && share_an_address(&self.addresses, &other.addresses)).then_some(first)
    }
}

fn share_an_address(some: &[IpAddr], others: &[IpAddr]) -> bool {
    // A socket of IPv6 on all addresses takes IPv4, too.
    let is_all = |address: &IpAddr, other: &IpAddr| {
        address.is_unspecified() && (address.is_ipv6() || other.is_ipv4())
    };
    let same = |one: &IpAddr| {
        others.iter().any(|other| {
            one.to_canonical() == other.to_canonical() || is_all(one, other) || is_all(other, one)
        })
    };
    some.is_empty() || others.is_empty() || some.iter().any(same)
}

/// Returns the conflicts between claims, with their places in the file.
pub(crate) fn mistakes(claims: &[Claim], pairs: &[Pairs]) -> Vec<(Option<Range<usize>>, String)> {
    let mut found = Vec::new();
    for (n, claim) in claims.iter().enumerate() {
        for earlier in claims.iter().take(n) {
            let Some(port) = claim.meets(earlier) else {
                continue;
            };
            // The mistake is the key that is written in the file.
            let (wrong, other) = match claim.span.is_none() && earlier.span.is_some() {
                true => (earlier, claim),
                false => (claim, earlier),
            };
            let protocol = claim.protocol;
            let text = match wrong.key == other.key {
                true => format!("{}: {protocol} port {port} is there twice", wrong.key),
                false => format!(
                    "{}: {protocol} port {port} is that of {}, too",
                    wrong.key, other.key
                ),
            };
            found.push((wrong.span.clone(), text));
        }
    }
    for Pairs { key, span, range } in pairs {
        // Calls leave out ports that are taken, so that some of them may be.
        let taken = |port: u16| {
            let listens = |it: &&Claim| it.protocol == Protocol::Udp && it.ports.contains(&port);
            claims.iter().find(listens)
        };
        let mut evens = (range.first()..=range.last()).step_by(2);
        let is_free = |port: u16| match port.checked_add(1) {
            Some(next) => next <= range.last() && taken(port).is_none() && taken(next).is_none(),
            None => false,
        };
        let listener = (range.first()..=range.last()).find_map(taken);
        if let Some(listener) = listener.filter(|_| !evens.any(is_free)) {
            let text = format!(
                "{key}: {} leaves no pair of UDP ports in {}-{}",
                listener.key,
                range.first(),
                range.last()
            );
            found.push((span.clone(), text));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;
    use crate::{Section, read};

    fn told(text: &str, sections: impl FnOnce(&mut Section<'_>)) -> Vec<String> {
        let mistakes = read(text, sections).err().unwrap_or_default();
        mistakes.iter().map(ToString::to_string).collect()
    }

    fn on(addresses: &[&str]) -> Vec<IpAddr> {
        let addresses = addresses.iter();
        addresses.map(|address| address.parse().unwrap()).collect()
    }

    fn claim(section: &mut Section<'_>, protocol: Protocol, addresses: &[&str], default: u16) {
        let port = section.key("port").unwrap_or(default);
        section.listens("port", protocol, &on(addresses), port..=port);
    }

    /// Reads two sections that each listen on a port, 8088 and 8188 by default.
    fn two(text: &str, protocols: [Protocol; 2], addresses: [&[&str]; 2]) -> Vec<String> {
        told(text, |file| {
            let [one, other] = protocols;
            file.section("http", |it| claim(it, one, addresses[0], 8088));
            file.section("websocket", |it| claim(it, other, addresses[1], 8188));
        })
    }

    #[test]
    fn a_port_that_is_given_twice_is_a_mistake_of_what_is_written() {
        let tcp = [Protocol::Tcp; 2];
        assert!(two("", tcp, [&[], &[]]).is_empty());
        let both = "[http]\nport = 80\n[websocket]\nport = 80";
        let twice = ["line 4: websocket.port: TCP port 80 is that of http.port, too"];
        assert_eq!(two(both, tcp, [&[], &[]]), twice);
        let first = ["line 2: http.port: TCP port 8188 is that of websocket.port, too"];
        assert_eq!(two("[http]\nport = 8188", tcp, [&[], &[]]), first);
        // The kernel chooses.
        let none = "[http]\nport = 0\n[websocket]\nport = 0";
        assert!(two(none, tcp, [&[], &[]]).is_empty());
        assert!(two(both, [Protocol::Tcp, Protocol::Udp], [&[], &[]]).is_empty());
    }

    #[test]
    fn ports_of_different_addresses_are_different() {
        let both = "[http]\nport = 80\n[websocket]\nport = 80";
        for (one, other, is_shared) in [
            (&["127.0.0.1"][..], &["127.0.0.2"][..], false),
            (&["127.0.0.1", "::1"], &["10.0.0.1", "::1"], true),
            (&["127.0.0.1"], &["::ffff:127.0.0.1"], true),
            (&["0.0.0.0"], &["10.0.0.1"], true),
            (&["0.0.0.0"], &["::1"], false),
            (&["10.0.0.1"], &["::"], true),
            (&["10.0.0.1"], &[], true),
        ] {
            let told = two(both, [Protocol::Tcp; 2], [one, other]);
            assert_eq!(told.len(), usize::from(is_shared), "{one:?} {other:?}");
        }
    }

    #[test]
    fn ranges_meet_and_one_key_may_have_a_port_twice() {
        let told = told("", |file| {
            file.section("media", |media| {
                media.listens("port", Protocol::Udp, &[], 10_000..=10_003);
            });
            file.section("sip", |sip| {
                for port in [9_999, 10_002, 10_004, 10_004] {
                    sip.listens("listen", Protocol::Udp, &[], port..=port);
                }
            });
        });
        assert_eq!(
            told,
            [
                "line 1: sip.listen: UDP port 10002 is that of media.port, too",
                "line 1: sip.listen: UDP port 10004 is there twice",
            ]
        );
    }

    #[test]
    fn listeners_are_those_of_sections_that_are_on() {
        let listeners = crate::defaults(|file| {
            file.section("http", |it| claim(it, Protocol::Tcp, &["127.0.0.1"], 8088));
            file.section("websocket", |it| claim(it, Protocol::Tcp, &[], 0));
            file.section("sip", |it| claim(it, Protocol::Udp, &[], 5060));
            file.listens_nowhere("sip");
            file.listeners()
        });
        let http = Listener {
            key: "http.port".to_owned(),
            protocol: Protocol::Tcp,
            addresses: on(&["127.0.0.1"]),
            ports: 8088..=8088,
        };
        assert_eq!(listeners, [http]);
    }

    #[test]
    fn a_range_of_pairs_has_to_have_one_that_is_free() {
        let told = |range: &str| {
            told("", |file| {
                file.section("media", |media| {
                    media.listens("port", Protocol::Udp, &[], 10_000..=10_003);
                    media.listens("tcp", Protocol::Tcp, &[], 20_000..=20_003);
                });
                file.section("sip", |sip| {
                    sip.takes_pairs("ports", PortRange::parse(range).unwrap());
                });
            })
        };
        let none = ["line 1: sip.ports: media.port leaves no pair of UDP ports in 10000-10003"];
        assert_eq!(told("10000-10003"), none);
        for range in ["10000-10005", "10000-60000", "20000-20001", "65534-65535"] {
            assert!(told(range).is_empty(), "{range}");
        }
        let odd = ["line 1: sip.ports: media.port leaves no pair of UDP ports in 10002-10004"];
        assert_eq!(told("10002-10004"), odd);
    }
}
