//! The candidates of a worker. They follow the public address of a NAT.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use portunus_rtc::{Carrier, LocalCandidate, candidate_lines};

/// A public address of this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PublicAddress {
    /// The bound address that it belongs to.
    pub bound: IpAddr,
    /// The address that the internet sees.
    pub public: IpAddr,
}

/// The candidates of a worker.
#[derive(Debug)]
pub(crate) struct Candidates {
    /// The bound addresses, as the configuration announces them.
    own: Vec<LocalCandidate>,
    /// Only the relayed address is offered.
    force_relay: bool,
    /// Locked by joins, for moments.
    all: RwLock<All>,
}

#[derive(Debug)]
struct All {
    public: Vec<PublicAddress>,
    /// The address at a TURN server.
    relayed: Option<SocketAddr>,
    /// The own candidates and those of public addresses.
    direct: Vec<LocalCandidate>,
    /// The candidates that peers are told, and the same as SDP lines.
    candidates: Vec<LocalCandidate>,
    lines: Arc<[String]>,
}

impl Candidates {
    pub(crate) fn new(own: Vec<LocalCandidate>, force_relay: bool) -> Self {
        let all = All {
            public: Vec::new(),
            relayed: None,
            direct: Vec::new(),
            candidates: Vec::new(),
            lines: Arc::default(),
        };
        let offered = Candidates {
            own,
            force_relay,
            all: RwLock::new(all),
        };
        offered.change(|_| {});
        offered
    }

    /// Returns the candidates of new peers.
    pub(crate) fn candidates(&self) -> Vec<LocalCandidate> {
        self.all().candidates.clone()
    }

    /// Returns the candidates as SDP lines.
    pub(crate) fn lines(&self) -> Arc<[String]> {
        Arc::clone(&self.all().lines)
    }

    /// Returns the UDP addresses, as announced and as bound.
    pub(crate) fn udp_addresses(&self) -> Vec<(SocketAddr, SocketAddr)> {
        let all = self.all();
        let udp = all.direct.iter().filter(|it| it.carrier() == Carrier::Udp);
        udp.map(|it| (it.address, it.base)).collect()
    }

    /// Returns the public addresses.
    pub(crate) fn public_ips(&self) -> Vec<IpAddr> {
        let all = self.all();
        let found = all.direct.iter().skip(self.own.len());
        let mut ips: Vec<_> = found.map(|it| it.address.ip()).collect();
        ips.dedup();
        ips
    }

    /// Adds candidates of public addresses. An address that is already announced differently stays
    /// as it is.
    pub(crate) fn set_public(&self, found: &[PublicAddress]) {
        self.change(|all| all.public = found.to_vec());
    }

    /// Sets or removes the address at a TURN server.
    pub(crate) fn set_relayed(&self, relayed: Option<SocketAddr>) {
        self.change(|all| all.relayed = relayed);
    }

    fn change(&self, change: impl FnOnce(&mut All)) {
        let mut all = self.all.write().unwrap_or_else(PoisonError::into_inner);
        change(&mut all);
        all.direct = self.direct(&all.public);
        all.candidates = match self.force_relay {
            true => Vec::new(),
            false => all.direct.clone(),
        };
        let relayed = all.relayed.map(LocalCandidate::relayed);
        all.candidates.extend(relayed);
        all.lines = candidate_lines(&all.candidates).into();
    }

    fn direct(&self, public: &[PublicAddress]) -> Vec<LocalCandidate> {
        let mut candidates = self.own.clone();
        for public in public {
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
        candidates
    }

    fn all(&self) -> RwLockReadGuard<'_, All> {
        self.all.read().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test panics")]
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

    fn offered() -> Candidates {
        Candidates::new(own(), false)
    }

    fn own() -> Vec<LocalCandidate> {
        let (bound, other) = (address("10.0.0.5:10000"), address("10.0.0.6:10000"));
        vec![
            LocalCandidate::udp(bound, bound),
            LocalCandidate::udp(address("198.51.100.7:20000"), other),
            LocalCandidate {
                transport: CandidateTransport::TcpPassive,
                ..LocalCandidate::udp(bound, bound)
            },
        ]
    }

    #[test]
    fn a_public_address_is_offered_beside_the_bound_one() {
        let offered = offered();
        offered.set_public(&[public("10.0.0.5", "203.0.113.7")]);
        assert_eq!(offered.candidates().len(), 5);
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
        offered.set_public(&[public("10.0.0.5", "203.0.113.8")]);
        assert_eq!(offered.candidates().len(), 5);
        assert!(!offered.lines().iter().any(|it| it.contains("203.0.113.7")));
        offered.set_public(&[]);
        assert_eq!(offered.candidates().len(), 3);
    }

    #[test]
    fn an_announced_address_is_not_replaced() {
        let offered = offered();
        for found in [
            public("10.0.0.6", "203.0.113.7"),
            public("10.0.0.5", "10.0.0.5"),
        ] {
            offered.set_public(&[found]);
            assert_eq!(offered.candidates().len(), 3, "{found:?}");
            assert_eq!(offered.public_ips(), [] as [IpAddr; 0]);
        }
    }

    #[test]
    fn a_relayed_address_comes_last_or_alone() {
        let relayed = address("203.0.113.9:40000");
        for force_relay in [false, true] {
            let offered = Candidates::new(own(), force_relay);
            offered.set_public(&[public("10.0.0.5", "203.0.113.7")]);
            let before = offered.candidates().len();
            offered.set_relayed(Some(relayed));
            let all = offered.candidates();
            assert_eq!(all.len(), before + 1);
            assert_eq!(all.last(), Some(&LocalCandidate::relayed(relayed)));
            let is_other = |it: &&String| it.contains("typ host");
            let lines = offered.lines();
            assert_eq!(lines.iter().filter(is_other).count(), before);
            assert_eq!(before == 0, force_relay, "{lines:?}");
            // What the TURN server inside relays to.
            assert_eq!(offered.udp_addresses().len(), 3);
            offered.set_relayed(None);
            assert_eq!(offered.candidates().len(), before);
        }
    }
}
