//! The candidates that a worker's peers are told, which follow the public address of a NAT.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, PoisonError, RwLock};

use portunus_rtc::{Carrier, LocalCandidate, candidate_lines};

/// A public address of this machine that was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PublicAddress {
    /// The bound address that it stands for.
    pub bound: IpAddr,
    /// What the internet sees.
    pub public: IpAddr,
}

/// How peers reach a worker.
#[derive(Debug)]
pub(crate) struct Offered {
    /// As bound, and as the configuration announces them.
    own: Vec<LocalCandidate>,
    /// The same with public addresses that were found. Locked for moments, by joins.
    all: RwLock<All>,
}

#[derive(Debug)]
struct All {
    candidates: Vec<LocalCandidate>,
    lines: Arc<[String]>,
}

impl All {
    fn new(candidates: Vec<LocalCandidate>) -> Self {
        let lines = candidate_lines(&candidates).into();
        All { candidates, lines }
    }
}

impl Offered {
    pub(crate) fn new(own: Vec<LocalCandidate>) -> Self {
        let all = RwLock::new(All::new(own.clone()));
        Offered { own, all }
    }

    /// The candidates as SDP has them.
    pub(crate) fn lines(&self) -> Arc<[String]> {
        let all = self.all.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&all.lines)
    }

    /// The addresses of UDP: as peers are told, and as bound.
    pub(crate) fn udp_addresses(&self) -> Vec<(SocketAddr, SocketAddr)> {
        let all = self.all.read().unwrap_or_else(PoisonError::into_inner);
        let udp = all
            .candidates
            .iter()
            .filter(|it| it.carrier() == Carrier::Udp);
        udp.map(|it| (it.address, it.base)).collect()
    }

    /// The public addresses that were found.
    pub(crate) fn public_ips(&self) -> Vec<IpAddr> {
        let all = self.all.read().unwrap_or_else(PoisonError::into_inner);
        let found = all.candidates.iter().skip(self.own.len());
        let mut ips: Vec<_> = found.map(|it| it.address.ip()).collect();
        ips.dedup();
        ips
    }

    /// Adds candidates of the public addresses to its own. An address that is announced as another already stays as it is.
    /// Returns all candidates.
    pub(crate) fn set_public(&self, found: &[PublicAddress]) -> Vec<LocalCandidate> {
        let mut candidates = self.own.clone();
        for public in found {
            let of_it =
                |it: &&LocalCandidate| it.base.ip() == public.bound && it.address == it.base;
            for own in self.own.iter().filter(of_it) {
                let address = SocketAddr::new(public.public, own.address.port());
                let candidate = LocalCandidate { address, ..*own };
                if !candidates.contains(&candidate) {
                    candidates.push(candidate);
                }
            }
        }
        let all = All::new(candidates.clone());
        *self.all.write().unwrap_or_else(PoisonError::into_inner) = all;
        candidates
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use portunus_rtc::CandidateTransport;

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    fn public(bound: &str, public: &str) -> PublicAddress {
        PublicAddress {
            bound: bound.parse().unwrap(),
            public: public.parse().unwrap(),
        }
    }

    fn offered() -> Offered {
        let (bound, other) = (address("10.0.0.5:10000"), address("10.0.0.6:10000"));
        Offered::new(vec![
            LocalCandidate::udp(bound, bound),
            LocalCandidate::udp(address("198.51.100.7:20000"), other),
            LocalCandidate {
                transport: CandidateTransport::TcpPassive,
                ..LocalCandidate::udp(bound, bound)
            },
        ])
    }

    #[test]
    fn a_public_address_is_offered_beside_the_bound_one() {
        let offered = offered();
        let all = offered.set_public(&[public("10.0.0.5", "203.0.113.7")]);
        assert_eq!(all.len(), 5);
        let lines = offered.lines();
        for part in ["udp", "tcp"] {
            let is_it = |it: &&String| it.contains("203.0.113.7 10000") && it.contains(part);
            assert_eq!(lines.iter().filter(is_it).count(), 1, "{lines:?}");
        }
        assert_eq!(offered.public_ips(), [address("203.0.113.7:1").ip()]);
        let udp = offered.udp_addresses();
        assert_eq!(udp.len(), 3);
        assert_eq!(
            udp.last(),
            Some(&(address("203.0.113.7:10000"), address("10.0.0.5:10000")))
        );
        // Another one takes its place.
        let all = offered.set_public(&[public("10.0.0.5", "203.0.113.8")]);
        assert_eq!(all.len(), 5);
        assert!(!offered.lines().iter().any(|it| it.contains("203.0.113.7")));
        assert_eq!(offered.set_public(&[]).len(), 3);
    }

    #[test]
    fn an_announced_address_is_not_replaced() {
        let offered = offered();
        for found in [
            public("10.0.0.6", "203.0.113.7"),
            public("10.0.0.5", "10.0.0.5"),
        ] {
            assert_eq!(offered.set_public(&[found]).len(), 3, "{found:?}");
            assert_eq!(offered.public_ips(), [] as [IpAddr; 0]);
        }
    }
}
