//! The destinations of media in requests, and their SRTP keys.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use portunus_core::Networks;
use portunus_core::media::ingest::{IngestSrtp, SrtpSuite};
use tokio::time::timeout;

use crate::refusal::Refusal;

/// The time limit for resolving a host.
const PATIENCE: Duration = Duration::from_secs(5);

/// The members `host` and `host_family` of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Host {
    name: String,
    family: Family,
}

/// A host with a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) host: Host,
    pub(crate) port: u16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Family {
    Any,
    V4,
    V6,
}

impl Family {
    const fn has(self, address: IpAddr) -> bool {
        match self {
            Family::Any => true,
            Family::V4 => address.is_ipv4(),
            Family::V6 => address.is_ipv6(),
        }
    }

    const fn name(self) -> Option<&'static str> {
        match self {
            Family::Any => None,
            Family::V4 => Some("ipv4"),
            Family::V6 => Some("ipv6"),
        }
    }
}

impl Host {
    /// Returns the host of these members.
    pub(crate) fn new(name: &str, family: Option<&str>) -> Result<Self, Refusal> {
        let family = match family {
            None => Family::Any,
            Some("ipv4") => Family::V4,
            Some("ipv6") => Family::V6,
            Some(_) => return Err(Refusal::value("host_family", "ipv4 or ipv6")),
        };
        let name = name.to_owned();
        Ok(Host { name, family })
    }

    /// The name as it was written.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The required family as it was written, if any.
    pub(crate) const fn family(&self) -> Option<&'static str> {
        self.family.name()
    }

    /// Returns the address if the name is one.
    pub(crate) fn numeric(&self) -> Option<IpAddr> {
        let address: IpAddr = self.name.parse().ok()?;
        self.family.has(address).then_some(address)
    }

    /// Returns the address. A name is resolved.
    pub(crate) async fn resolve(&self) -> Result<IpAddr, Refusal> {
        if let Some(address) = self.numeric() {
            return Ok(address);
        }
        let unknown = || Refusal::Host(self.name.clone());
        let lookup = timeout(PATIENCE, tokio::net::lookup_host((self.name.as_str(), 0))).await;
        let found = lookup.map_err(|_| unknown())?.map_err(|_| unknown())?;
        let mut addresses = found.map(|address| address.ip());
        addresses
            .find(|address| self.family.has(*address))
            .ok_or_else(unknown)
    }
}

/// Checks that media may be sent to an address.
pub(crate) fn check(address: IpAddr, networks: &Networks) -> Result<IpAddr, Refusal> {
    // Sockets do not broadcast.
    if address == IpAddr::V4(Ipv4Addr::BROADCAST) {
        return Err(Refusal::Unknown(format!("nothing is sent to {address}")));
    }
    match networks.allow(address) {
        true => Ok(address),
        false => Err(Refusal::Destination(address)),
    }
}

/// Checks that a port can be sent to.
pub(crate) fn port(port: u64) -> Result<u16, Refusal> {
    let port = u16::try_from(port).ok().filter(|port| *port > 0);
    port.ok_or_else(|| Refusal::value("port", "1 to 65535"))
}

/// Returns the SRTP key of the members `srtp_suite` and `srtp_crypto`, or `None` unless both are
/// present.
pub(crate) fn srtp(
    suite: Option<u64>,
    crypto: Option<&str>,
) -> Result<Option<IngestSrtp>, Refusal> {
    let Some((suite, crypto)) = suite.zip(crypto) else {
        return Ok(None);
    };
    let suite = match suite {
        32 => SrtpSuite::AesCm128HmacSha1_32,
        80 => SrtpSuite::AesCm128HmacSha1_80,
        _ => return Err(Refusal::value("srtp_suite", "32 or 80")),
    };
    let decoded = BASE64_STANDARD.decode(crypto.trim()).ok();
    let key_and_salt = decoded.and_then(|bytes| <[u8; 30]>::try_from(bytes).ok());
    let wrong = || Refusal::value("srtp_crypto", "30 bytes in base64");
    let key_and_salt = key_and_salt.ok_or_else(wrong)?;
    Ok(Some(IngestSrtp {
        suite,
        key_and_salt,
    }))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;

    #[test]
    fn an_address_is_of_its_family() {
        let host = |family| Host::new("127.0.0.1", Some(family)).map(|host| host.numeric());
        assert_eq!(host("ipv4"), Ok(Some([127, 0, 0, 1].into())));
        assert_eq!(host("ipv6"), Ok(None));
        assert!(host("ipx").is_err());
    }

    #[test]
    fn keys_are_checked_where_there_are_both_members() {
        assert_eq!(srtp(Some(7), None), Ok(None));
        assert_eq!(srtp(None, Some("x")), Ok(None));
        let key = BASE64_STANDARD.encode([7; 30]);
        let read = srtp(Some(32), Some(&key)).unwrap().unwrap();
        assert_eq!(read.suite, SrtpSuite::AesCm128HmacSha1_32);
        assert!(srtp(Some(33), Some(&key)).is_err());
        assert!(srtp(Some(80), Some("AAAA")).is_err());
    }

    #[test]
    fn ports_are_numbers_of_16_bits_above_0() {
        assert_eq!(port(65_535), Ok(65_535));
        assert!(port(0).is_err());
        assert!(port(65_536).is_err());
    }
}
