//! Networks that the server may send to on request.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::public_address::is_public;

/// The networks that requests may make the server send media to, or connect to. Empty means all
/// public addresses.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Networks(pub Vec<Network>);

impl Networks {
    /// Whether an address is in one of them. If the list is empty: whether it is a public address.
    pub fn allow(&self, address: IpAddr) -> bool {
        match self.0.as_slice() {
            [] => is_public(address),
            networks => networks.iter().any(|network| network.contains(address)),
        }
    }
}

/// An IP network such as `192.0.2.0/24`. A single address is a network, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    prefix: u8,
}

impl Network {
    /// All IPv4 addresses.
    pub const ALL_IPV4: Network = Network {
        address: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        prefix: 0,
    };
    /// All IPv6 addresses.
    pub const ALL_IPV6: Network = Network {
        address: IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        prefix: 0,
    };

    /// The IPv4 addresses of this machine.
    pub const LOOPBACK_IPV4: Network = Network {
        address: IpAddr::V4(Ipv4Addr::new(127, 0, 0, 0)),
        prefix: 8,
    };
    /// The IPv6 address of this machine.
    pub const LOOPBACK_IPV6: Network = Network {
        address: IpAddr::V6(Ipv6Addr::LOCALHOST),
        prefix: 128,
    };

    /// Returns its first address, and the length of its prefix in bits.
    pub const fn parts(&self) -> (IpAddr, u8) {
        (self.address, self.prefix)
    }

    /// Whether an address is in it. IPv4 addresses mapped to IPv6 count as IPv4.
    pub fn contains(&self, address: IpAddr) -> bool {
        masked(address.to_canonical(), self.prefix) == Some(self.address)
    }
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("expected a network such as 192.0.2.0/24, got {text:?}");
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let bits = if address.is_ipv4() { 32 } else { 128 };
        let prefix = match prefix {
            Some(prefix) => prefix.parse().map_err(|_| wrong())?,
            None => bits,
        };
        let first = masked(address, prefix).ok_or_else(wrong)?;
        if first != address {
            return Err(format!("expected {first}/{prefix}, got {text:?}"));
        }
        Ok(Network { address, prefix })
    }
}

impl<'de> Deserialize<'de> for Network {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let form = "a network in quotes such as \"192.0.2.0/24\"";
        portunus_config::text(from, form, str::parse)
    }
}

impl Serialize for Network {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

/// Returns the first address of the network with this prefix length, or `None` if the length is
/// invalid.
fn masked(address: IpAddr, prefix: u8) -> Option<IpAddr> {
    let prefix = u32::from(prefix);
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32_u32.checked_sub(prefix)?);
            Some(IpAddr::V4((address.to_bits() & mask.unwrap_or(0)).into()))
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128_u32.checked_sub(prefix)?);
            Some(IpAddr::V6((address.to_bits() & mask.unwrap_or(0)).into()))
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;

    #[test]
    fn networks_are_read_and_written() {
        for (text, shown) in [
            ("192.0.2.0/24", "192.0.2.0/24"),
            ("0.0.0.0/0", "0.0.0.0/0"),
            ("192.0.2.7", "192.0.2.7/32"),
            ("2001:db8::/32", "2001:db8::/32"),
            ("::/0", "::/0"),
            ("::1", "::1/128"),
        ] {
            assert_eq!(text.parse::<Network>().unwrap().to_string(), shown);
        }
        for text in [
            "",
            "/",
            "192.0.2.0/33",
            "192.0.2/24",
            "::/129",
            "::/-1",
            "a.example.org",
        ] {
            assert!(text.parse::<Network>().is_err(), "{text:?}");
        }
        let error = "192.0.2.7/24".parse::<Network>().unwrap_err();
        assert!(error.contains("192.0.2.0/24"), "{error}");
    }

    #[test]
    fn addresses_are_in_networks_of_their_family() {
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        assert!(Networks::default().allow(address("1.1.1.1")));
        assert!(!Networks::default().allow(address("10.1.1.1")));
        let networks = ["192.0.2.0/25", "2001:db8::/33", "198.51.100.7"];
        let networks = Networks(networks.map(|text| text.parse().unwrap()).into());
        for (text, allowed) in [
            ("192.0.2.127", true),
            ("192.0.2.128", false),
            ("::ffff:192.0.2.1", true),
            ("198.51.100.7", true),
            ("198.51.100.8", false),
            ("2001:db8:7fff::1", true),
            ("2001:db8:8000::1", false),
            ("::192.0.2.1", false),
        ] {
            assert_eq!(networks.allow(address(text)), allowed, "{text}");
        }
    }
}
