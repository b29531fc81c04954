//! Limits per client address and in all.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};

/// Places for all clients.
#[derive(Debug)]
pub(crate) struct Places {
    all: usize,
    each: usize,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    of: HashMap<IpAddr, usize>,
}

/// The reason why there is no place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Full {
    /// This address has too many.
    Address,
    /// All addresses together have too many.
    All,
}

/// A place that is taken until it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    places: Arc<Places>,
    address: IpAddr,
}

impl Places {
    pub(crate) fn new(all: usize, each: usize) -> Arc<Self> {
        let taken = Mutex::default();
        Arc::new(Places { all, each, taken })
    }

    /// Takes a place for a client. An IPv6 network of 64 bits counts as one address.
    pub(crate) fn take(self: &Arc<Self>, client: IpAddr) -> Result<Place, Full> {
        let address = network(client);
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let of_it = taken.of.get(&address).copied().unwrap_or(0);
        if of_it >= self.each {
            return Err(Full::Address);
        }
        if taken.all >= self.all {
            return Err(Full::All);
        }
        taken.all = taken.all.saturating_add(1);
        taken.of.insert(address, of_it.saturating_add(1));
        Ok(Place {
            places: self.clone(),
            address,
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let taken = self.places.taken.lock();
        let mut taken = taken.unwrap_or_else(PoisonError::into_inner);
        taken.all = taken.all.saturating_sub(1);
        if let Some(of_it) = taken.of.get_mut(&self.address) {
            *of_it = of_it.saturating_sub(1);
            if *of_it == 0 {
                taken.of.remove(&self.address);
            }
        }
    }
}

/// Returns the address or network that counts as one address.
pub(crate) fn network(ip: IpAddr) -> IpAddr {
    match ip.to_canonical() {
        IpAddr::V4(ip) => ip.into(),
        IpAddr::V6(ip) => Ipv6Addr::from_bits(ip.to_bits() & !u128::from(u64::MAX)).into(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn places_are_limited_for_each_address_and_for_all() {
        let places = Places::new(3, 2);
        let first = places.take(ip("192.0.2.1")).unwrap();
        let _second = places.take(ip("192.0.2.1")).unwrap();
        assert_eq!(places.take(ip("192.0.2.1")).unwrap_err(), Full::Address);
        let _third = places.take(ip("192.0.2.2")).unwrap();
        assert_eq!(places.take(ip("192.0.2.3")).unwrap_err(), Full::All);
        drop(first);
        let _fourth = places.take(ip("192.0.2.3")).unwrap();
    }

    #[test]
    fn a_network_of_ipv6_counts_as_one_and_is_forgotten_with_its_last_place() {
        let places = Places::new(9, 1);
        let place = places.take(ip("2001:db8:0:1::1")).unwrap();
        assert_eq!(
            places.take(ip("2001:db8:0:1::2")).unwrap_err(),
            Full::Address
        );
        let _other = places.take(ip("2001:db8:0:2::1")).unwrap();
        drop(place);
        assert_eq!(places.taken.lock().unwrap().of.len(), 1);
    }
}
