//! Addresses for participants, one for each.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::str::FromStr;

/// A network whose addresses all belong to this machine, as after `ip route add local 10.64.0.0/12
/// dev lo`.
///
/// With it, participants need no sockets of their own: one socket receives for all of them, in
/// large batches, and the addresses identify them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Addresses {
    network: Ipv4Addr,
    prefix: u32,
}

impl Addresses {
    /// The network of a lab's load side: 10.64.0.0/12.
    pub const LAB: Self = Self {
        network: Ipv4Addr::new(10, 64, 0, 0),
        prefix: 12,
    };

    /// A network within that of the loopback interface, apart from its usual addresses:
    /// 127.64.0.0/12.
    pub const LOOPBACK: Self = Self {
        network: Ipv4Addr::new(127, 64, 0, 0),
        prefix: 12,
    };

    /// Returns the number of addresses, without that of the network.
    fn len(self) -> u32 {
        (1u32 << (32 - self.prefix)) - 1
    }

    /// Returns the `n`-th address. They repeat after the last one.
    pub(crate) fn nth(self, n: u64) -> Ipv4Addr {
        let place = n.checked_rem(self.len().into()).unwrap_or(0);
        Ipv4Addr::from(u32::from(self.network) + 1 + place as u32)
    }

    /// Returns the `n`-th address of the half for participants that read all data, or of the other.
    pub(crate) fn nth_of(self, reads_all: bool, n: u64) -> Ipv4Addr {
        let half = self.half();
        let place = n.checked_rem(half.into()).unwrap_or(0);
        self.nth(place + if reads_all { half.into() } else { 0 })
    }

    /// Returns the half of an address, and its index there.
    #[inline]
    pub(crate) fn place(self, address: IpAddr) -> Option<(bool, usize)> {
        let IpAddr::V4(address) = address else {
            return None;
        };
        let place = u32::from(address).checked_sub(u32::from(self.network) + 1)?;
        let (len, half) = (self.len(), self.half());
        let reads_all = place >= half;
        let of_half = if reads_all { place - half } else { place };
        (place < len).then_some((reads_all, of_half as usize))
    }

    /// Returns whether it is in the half for participants that read all data.
    #[inline]
    pub(crate) fn reads_all(self, address: IpAddr) -> bool {
        self.place(address).is_some_and(|(reads_all, _)| reads_all)
    }

    fn half(self) -> u32 {
        self.len() / 2
    }
}

impl FromStr for Addresses {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || "a network such as 10.64.0.0/12 is expected, /8 to /30".to_owned();
        let (network, prefix) = text.split_once('/').ok_or_else(wrong)?;
        let network: Ipv4Addr = network.parse().map_err(|_| wrong())?;
        let prefix: u32 = prefix.parse().map_err(|_| wrong())?;
        if !(8..=30).contains(&prefix) || u32::from(network) << prefix != 0 {
            return Err(wrong());
        }
        Ok(Self { network, prefix })
    }
}

impl fmt::Display for Addresses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.network, self.prefix)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;

    #[test]
    fn each_address_knows_its_place() {
        let addresses: Addresses = "10.64.0.0/12".parse().unwrap();
        assert_eq!(addresses.nth(0), Ipv4Addr::new(10, 64, 0, 1));
        assert_eq!(addresses.nth(300), Ipv4Addr::new(10, 64, 1, 45));
        assert_eq!(addresses.nth((1 << 20) - 1), addresses.nth(0));
        for n in [0, 1, 77_777, (1 << 19) - 2] {
            for reads_all in [false, true] {
                let address = addresses.nth_of(reads_all, n).into();
                assert_eq!(addresses.place(address), Some((reads_all, n as usize)));
                assert_eq!(addresses.reads_all(address), reads_all);
            }
        }
        assert_eq!(
            addresses.nth_of(true, (1 << 19) - 1),
            addresses.nth_of(true, 0)
        );
        for foreign in ["10.64.0.0", "10.80.0.0", "10.63.255.255", "::1"] {
            assert_eq!(addresses.place(foreign.parse().unwrap()), None, "{foreign}");
        }
        assert_eq!(addresses.to_string(), "10.64.0.0/12");
    }

    #[test]
    fn the_fixed_ones_are_networks() {
        for (fixed, text) in [
            (Addresses::LAB, "10.64.0.0/12"),
            (Addresses::LOOPBACK, "127.64.0.0/12"),
        ] {
            assert_eq!(text.parse(), Ok(fixed));
        }
    }

    #[test]
    fn what_is_no_network_is_refused() {
        for wrong in [
            "10.0.0.0",
            "10.0.0.0/7",
            "10.0.0.0/31",
            "10.0.0.1/24",
            "::/64",
            "/8",
        ] {
            assert!(wrong.parse::<Addresses>().is_err(), "{wrong}");
        }
    }
}
