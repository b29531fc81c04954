//! Limits on the requests of strangers.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::time::{Duration, Instant};

use super::options::Limits;

/// The maximum number of addresses with an allowance of their own. All others share one.
const MOST_SOURCES: usize = 8192;
/// The cost of one request, in parts of the allowance.
const COST: u64 = 1_000_000;
/// Requests that an account adds to the allowance of its registrar: in a burst, and each second.
const OF_ACCOUNT: (u64, u64) = (4, 1);

/// An allowance for each source address.
#[derive(Debug)]
pub(super) struct Guard {
    burst: u64,
    /// Parts of the allowance that are restored each microsecond.
    rate: u64,
    always: Vec<(IpAddr, u8)>,
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
            sources: HashMap::new(),
            others: Allowance {
                left: burst,
                at: now,
            },
            swept: None,
        }
    }

    /// Whether a request from `source` is within its allowance. `accounts` is the number of
    /// accounts registered there.
    pub(super) fn admits(&mut self, now: Instant, source: IpAddr, accounts: usize) -> bool {
        let source = source.to_canonical();
        let key = network(source);
        let accounts = u64::try_from(accounts).unwrap_or(u64::MAX);
        let more = OF_ACCOUNT.0.saturating_mul(COST).saturating_mul(accounts);
        let burst = self.burst.saturating_add(more);
        let rate = self
            .rate
            .saturating_add(OF_ACCOUNT.1.saturating_mul(accounts));
        if self.sources.len() >= MOST_SOURCES && !self.sources.contains_key(&key) {
            self.sweep(now);
        }
        let full = Allowance {
            left: burst,
            at: now,
        };
        let room = self.sources.len() < MOST_SOURCES;
        let allowance = match self.sources.get_mut(&key) {
            Some(allowance) => allowance,
            None if room => self.sources.entry(key).or_insert(full),
            None => &mut self.others,
        };
        allowance.refill(now, rate, burst);
        match allowance.left.checked_sub(COST) {
            Some(left) => {
                allowance.left = left;
                true
            }
            None => false,
        }
    }

    /// Whether the configuration sets no limit for `source`, as for those who call without an
    /// account.
    pub(super) fn has_entrance(&self, source: IpAddr) -> bool {
        let source = source.to_canonical();
        self.always
            .iter()
            .any(|&(network, bits)| covers(network, bits, source))
    }

    /// Removes sources with a full allowance; at most once a second, since it visits all.
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

/// Returns the part of an address that shares an allowance: an IPv4 address, or the network of an
/// IPv6 host.
pub(super) fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(address) => {
            Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into()
        }
    }
}

/// Whether an address is in a network.
pub(super) fn covers(network: IpAddr, bits: u8, address: IpAddr) -> bool {
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
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

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
            .filter(|_| guard.admits(now, source.parse().unwrap(), 0))
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
    fn networks_have_an_entrance() {
        let (guard, _) = guard(&[("10.0.0.0", 8), ("2001:db8::", 32)]);
        let has = |source: &str| guard.has_entrance(source.parse().unwrap());
        assert!(has("10.9.9.9") && has("::ffff:10.0.0.1") && has("2001:db8:9::1"));
        assert!(!has("11.0.0.1") && !has("2001:db9::1"));
    }

    #[test]
    fn a_registrar_may_send_more_with_each_account_but_not_what_it_likes() {
        let (mut guard, now) = guard(&[]);
        let source = "192.0.2.9".parse().unwrap();
        let mut admitted = |at, accounts| {
            let all = (0..1000).filter(|_| guard.admits(at, source, accounts));
            all.count()
        };
        assert_eq!(admitted(now, 5), 10 + 5 * 4);
        assert_eq!(admitted(now + Duration::from_secs(3), 5), 3 * (2 + 5));
        // Without them it has the allowance of all others.
        assert_eq!(admitted(now + Duration::from_secs(900), 0), 10);
    }

    #[test]
    fn a_flood_from_many_addresses_is_bounded() {
        let (mut guard, now) = guard(&[]);
        let mut admitted = 0;
        for number in 0..100_000_u32 {
            admitted += usize::from(guard.admits(
                now,
                std::net::Ipv4Addr::from_bits(number << 4).into(),
                0,
            ));
        }
        assert!(guard.sources.len() <= MOST_SOURCES);
        assert!(admitted <= MOST_SOURCES + 10);
        // Later there is room again.
        let later = now + Duration::from_secs(60);
        assert!(guard.admits(later, "192.0.2.1".parse().unwrap(), 0));
        assert_eq!(guard.sources.len(), 1);
    }
}
