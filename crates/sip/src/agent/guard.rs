//! How much strangers may ask.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::time::{Duration, Instant};

use super::options::Limits;

/// Addresses of which each has an allowance of its own; the others share one.
const MOST_SOURCES: usize = 8192;
/// What one request costs, in parts of the allowance.
const COST: u64 = 1_000_000;

/// An allowance for each source address.
#[derive(Debug)]
pub(super) struct Guard {
    burst: u64,
    /// Parts of the allowance that come back each microsecond.
    rate: u64,
    always: Vec<(IpAddr, u8)>,
    /// Registrars, with the number of accounts that they serve.
    registrars: HashMap<IpAddr, usize>,
    sources: HashMap<IpAddr, Allowance>,
    others: Allowance,
    swept: Option<Instant>,
}

#[derive(Debug, Clone, Copy)]
struct Allowance {
    left: u64,
    at: Instant,
}

impl Guard {
    pub(super) fn new(limits: &Limits, now: Instant) -> Self {
        let burst = u64::from(limits.burst).saturating_mul(COST);
        Self {
            burst,
            rate: u64::from(limits.rate),
            always: limits.trusted.clone(),
            registrars: HashMap::new(),
            sources: HashMap::new(),
            others: Allowance {
                left: burst,
                at: now,
            },
            swept: None,
        }
    }

    /// Whether a request from `source` is to be looked at.
    pub(super) fn admits(&mut self, now: Instant, source: IpAddr) -> bool {
        let source = source.to_canonical();
        if self.trusts(source) {
            return true;
        }
        let key = network(source);
        if self.sources.len() >= MOST_SOURCES && !self.sources.contains_key(&key) {
            self.sweep(now);
        }
        let full = Allowance {
            left: self.burst,
            at: now,
        };
        let room = self.sources.len() < MOST_SOURCES;
        let allowance = match self.sources.get_mut(&key) {
            Some(allowance) => allowance,
            None if room => self.sources.entry(key).or_insert(full),
            None => &mut self.others,
        };
        allowance.refill(now, self.rate, self.burst);
        match allowance.left.checked_sub(COST) {
            Some(left) => {
                allowance.left = left;
                true
            }
            None => false,
        }
    }

    /// Whether `source` may send what it likes.
    pub(super) fn trusts(&self, source: IpAddr) -> bool {
        let source = source.to_canonical();
        self.registrars.contains_key(&source) || self.has_entrance(source)
    }

    /// Whether `source` may so by configuration, as those who call without an account.
    pub(super) fn has_entrance(&self, source: IpAddr) -> bool {
        let source = source.to_canonical();
        self.always
            .iter()
            .any(|&(network, bits)| covers(network, bits, source))
    }

    /// How many accounts are registered at `source`.
    pub(super) fn serves(&self, source: IpAddr) -> usize {
        self.registrars
            .get(&source.to_canonical())
            .copied()
            .unwrap_or(0)
    }

    /// A registrar has taken a registration of ours.
    pub(super) fn trust(&mut self, registrar: IpAddr) {
        let count = self.registrars.entry(registrar.to_canonical()).or_insert(0);
        *count = count.saturating_add(1);
    }

    /// A registration is over.
    pub(super) fn distrust(&mut self, registrar: IpAddr) {
        let registrar = registrar.to_canonical();
        if let Some(count) = self.registrars.get_mut(&registrar) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.registrars.remove(&registrar);
            }
        }
    }

    /// Forgets who has its whole allowance; at most once a second, since it looks at all.
    fn sweep(&mut self, now: Instant) {
        if self
            .swept
            .is_some_and(|at| now.saturating_duration_since(at) < Duration::from_secs(1))
        {
            return;
        }
        self.swept = Some(now);
        let (rate, burst) = (self.rate, self.burst);
        self.sources.retain(|_, allowance| {
            allowance.refill(now, rate, burst);
            allowance.left < burst
        });
    }
}

impl Allowance {
    fn refill(&mut self, now: Instant, rate: u64, burst: u64) {
        let passed =
            u64::try_from(now.saturating_duration_since(self.at).as_micros()).unwrap_or(u64::MAX);
        self.left = self
            .left
            .saturating_add(passed.saturating_mul(rate))
            .min(burst);
        self.at = now;
    }
}

/// What shares an allowance: an IPv4 address, or the network of an IPv6 host.
pub(super) fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(address) => {
            Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into()
        }
    }
}

fn covers(network: IpAddr, bits: u8, address: IpAddr) -> bool {
    let same = |one: u128, other: u128, width: u32| {
        let rest = width.saturating_sub(bits.into());
        rest >= 128 || (one ^ other).checked_shr(rest).unwrap_or(0) == 0
    };
    match (network, address) {
        (IpAddr::V4(one), IpAddr::V4(other)) => {
            same(one.to_bits().into(), other.to_bits().into(), 32)
        }
        (IpAddr::V6(one), IpAddr::V6(other)) => same(one.to_bits(), other.to_bits(), 128),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn guard(trusted: &[(&str, u8)]) -> (Guard, Instant) {
        let trusted = trusted
            .iter()
            .map(|&(network, bits)| (network.parse().unwrap(), bits))
            .collect();
        let now = Instant::now();
        (
            Guard::new(
                &Limits {
                    burst: 10,
                    rate: 2,
                    trusted,
                    ..Limits::default()
                },
                now,
            ),
            now,
        )
    }

    fn admitted(guard: &mut Guard, now: Instant, source: &str, times: usize) -> usize {
        (0..times)
            .filter(|_| guard.admits(now, source.parse().unwrap()))
            .count()
    }

    #[test]
    fn a_source_has_a_burst_and_a_rate() {
        let (mut guard, now) = guard(&[]);
        assert_eq!(admitted(&mut guard, now, "192.0.2.1", 100), 10);
        assert_eq!(admitted(&mut guard, now, "::ffff:192.0.2.1", 100), 0);
        assert_eq!(admitted(&mut guard, now, "192.0.2.2", 100), 10);
        assert_eq!(
            admitted(&mut guard, now + Duration::from_secs(3), "192.0.2.1", 100),
            6
        );
        assert_eq!(
            admitted(&mut guard, now + Duration::from_secs(900), "192.0.2.1", 100),
            10
        );
    }

    #[test]
    fn a_network_of_ipv6_is_one_source() {
        let (mut guard, now) = guard(&[]);
        assert_eq!(admitted(&mut guard, now, "2001:db8::1", 100), 10);
        assert_eq!(admitted(&mut guard, now, "2001:db8::2", 100), 0);
        assert_eq!(admitted(&mut guard, now, "2001:db8:0:1::1", 100), 10);
    }

    #[test]
    fn who_is_trusted_may_all() {
        let (mut guard, now) = guard(&[("10.0.0.0", 8), ("2001:db8::", 32)]);
        assert_eq!(admitted(&mut guard, now, "10.9.9.9", 100), 100);
        assert_eq!(admitted(&mut guard, now, "2001:db8:9::1", 100), 100);
        assert_eq!(admitted(&mut guard, now, "11.0.0.1", 100), 10);
        guard.trust("192.0.2.9".parse().unwrap());
        assert_eq!(admitted(&mut guard, now, "192.0.2.9", 100), 100);
        guard.distrust("192.0.2.9".parse().unwrap());
        assert_eq!(admitted(&mut guard, now, "192.0.2.9", 100), 10);
    }

    #[test]
    fn a_flood_from_many_addresses_is_bounded() {
        let (mut guard, now) = guard(&[]);
        let mut admitted = 0;
        for number in 0..100_000_u32 {
            admitted +=
                usize::from(guard.admits(now, std::net::Ipv4Addr::from_bits(number << 4).into()));
        }
        assert!(guard.sources.len() <= MOST_SOURCES);
        assert!(admitted <= MOST_SOURCES + 10);
        // Later there is room again.
        assert!(guard.admits(now + Duration::from_secs(60), "192.0.2.1".parse().unwrap()));
        assert_eq!(guard.sources.len(), 1);
    }
}
