//! The addresses at which peers can reach the workers.

use std::net::IpAddr;

use crate::{AnnouncedAddress, MediaConfig, MediaError};

/// An address to offer to peers. Behind a 1:1 NAT, peers know it by another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reachable {
    /// The address that sockets are bound to, or that of the interface if they are bound to all.
    pub bound: IpAddr,
    /// The address that peers are told.
    pub announced: IpAddr,
    /// The announced port of worker 0, if it differs.
    pub port: Option<u16>,
}

/// Returns the addresses to offer, most preferred first: routable ones, IPv4 before IPv6, loopback
/// last.
pub fn reachable(config: &MediaConfig) -> Result<Vec<Reachable>, MediaError> {
    let named: Vec<IpAddr> = config
        .bind
        .iter()
        .copied()
        .filter(|ip| !ip.is_unspecified())
        .collect();
    let mut bound = if named.is_empty() {
        discover(config)
    } else {
        named
    };
    // The configuration says how peers reach us, so any address will do.
    if bound.is_empty() {
        bound.extend(
            config
                .announced
                .iter()
                .map(|announced| announced.bound.unwrap_or(announced.ip)),
        );
    }
    bound.sort_by_key(|ip| (ip.is_loopback(), ip.is_ipv6()));
    let mut reachable: Vec<Reachable> = Vec::new();
    for ip in bound {
        let mut announced = config
            .announced
            .iter()
            .filter(|a| stands_for(a, ip))
            .peekable();
        if announced.peek().is_none() {
            reachable.push(Reachable {
                bound: ip,
                announced: ip,
                port: None,
            });
        }
        for address in announced {
            let entry = Reachable {
                bound: ip,
                announced: address.ip,
                port: address.port,
            };
            if !reachable
                .iter()
                .any(|r| (r.announced, r.port) == (entry.announced, entry.port))
            {
                reachable.push(entry);
            }
        }
    }
    if reachable.is_empty() {
        Err(MediaError::NoAddress)
    } else {
        Ok(reachable)
    }
}

fn stands_for(announced: &AnnouncedAddress, ip: IpAddr) -> bool {
    match announced.bound {
        Some(bound) => bound == ip,
        None => announced.ip.is_ipv4() == ip.is_ipv4() && !ip.is_loopback(),
    }
}

fn discover(config: &MediaConfig) -> Vec<IpAddr> {
    let interfaces = if_addrs::get_if_addrs().unwrap_or_else(|error| {
        tracing::warn!(%error, "cannot list the network interfaces: set media.bind or media.announced");
        Vec::new()
    });
    let mut found = Vec::new();
    for ip in interfaces.iter().map(|interface| interface.ip()) {
        let usable = match ip {
            IpAddr::V4(v4) => !v4.is_link_local(),
            // Link-local addresses need a zone, which candidates cannot carry.
            IpAddr::V6(v6) => config.ipv6 && !v6.is_unicast_link_local(),
        };
        if usable && (config.loopback || !ip.is_loopback()) && !found.contains(&ip) {
            found.push(ip);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test panics")]
    use super::*;

    fn config(bind: &[&str], announced: &[(Option<&str>, &str)]) -> MediaConfig {
        let ip = |text: &str| text.parse().unwrap();
        MediaConfig {
            bind: bind.iter().map(|text| ip(text)).collect(),
            announced: announced
                .iter()
                .map(|(bound, text)| AnnouncedAddress {
                    bound: bound.map(ip),
                    ip: ip(text),
                    port: None,
                })
                .collect(),
            ..MediaConfig::default()
        }
    }

    #[test]
    fn a_one_to_one_nat_replaces_the_bound_address() {
        let config = config(&["192.0.2.1", "127.0.0.1"], &[(None, "203.0.113.9")]);
        let found: Vec<_> = reachable(&config)
            .unwrap()
            .iter()
            .map(|r| r.announced.to_string())
            .collect();
        assert_eq!(found, ["203.0.113.9", "127.0.0.1"]);
    }

    #[test]
    fn an_announced_address_may_stand_for_one_bound_address_only() {
        let config = config(
            &["192.0.2.1", "192.0.2.2"],
            &[(Some("192.0.2.2"), "203.0.113.9")],
        );
        let found: Vec<_> = reachable(&config)
            .unwrap()
            .iter()
            .map(|r| r.announced.to_string())
            .collect();
        assert_eq!(found, ["192.0.2.1", "203.0.113.9"]);
    }

    #[test]
    fn this_machine_has_an_address() {
        assert!(!reachable(&MediaConfig::default()).unwrap().is_empty());
    }
}
