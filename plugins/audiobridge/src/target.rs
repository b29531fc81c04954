//! Where requests say that media goes, and how it is protected.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use portunus_core::media::ingest::{IngestSrtp, SrtpSuite};
use portunus_core::{Fields, Networks};
use tokio::time::timeout;

use crate::refusal::Refusal;

/// How long it may take to ask for the address of a host.
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
    /// Reads the members that are called so; the first has to be there.
    pub(crate) fn read(fields: Fields<'_>, host: &str, family: &str) -> Result<Self, Refusal> {
        let name = fields.required_string(host)?.to_owned();
        let family = match fields.string(family)? {
            None => Family::Any,
            Some("ipv4") => Family::V4,
            Some("ipv6") => Family::V6,
            Some(_) => return Err(Refusal::value(family, "ipv4 or ipv6")),
        };
        Ok(Host { name, family })
    }

    /// As it was written.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The family that it has to be of, as it is written.
    pub(crate) const fn family(&self) -> Option<&'static str> {
        self.family.name()
    }

    /// Its address, if that is what it is.
    pub(crate) fn numeric(&self) -> Option<IpAddr> {
        let address: IpAddr = self.name.parse().ok()?;
        self.family.has(address).then_some(address)
    }

    /// Its address, asked for where it is a name.
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
    // No socket of ours sends to all of a network.
    if address == IpAddr::V4(Ipv4Addr::BROADCAST) {
        return Err(Refusal::Unknown(format!("nothing is sent to {address}")));
    }
    match networks.allow(address) {
        true => Ok(address),
        false => Err(Refusal::Destination(address)),
    }
}

/// A port that something can be sent to.
pub(crate) fn port(fields: Fields<'_>, name: &str) -> Result<u16, Refusal> {
    let port = u16::try_from(fields.required_positive(name)?).ok();
    let port = port.filter(|port| *port > 0);
    port.ok_or_else(|| Refusal::value(name, "1 to 65535"))
}

/// Reads the key of SRTP from the members that are called so; none unless both are there.
pub(crate) fn srtp(
    fields: Fields<'_>,
    suite_name: &str,
    crypto_name: &str,
) -> Result<Option<IngestSrtp>, Refusal> {
    let suite = fields.positive(suite_name)?;
    let crypto = fields.string(crypto_name)?;
    let Some((suite, crypto)) = suite.zip(crypto) else {
        return Ok(None);
    };
    let suite = match suite {
        32 => SrtpSuite::AesCm128HmacSha1_32,
        80 => SrtpSuite::AesCm128HmacSha1_80,
        _ => return Err(Refusal::value(suite_name, "32 or 80")),
    };
    let decoded = BASE64_STANDARD.decode(crypto.trim()).ok();
    let key_and_salt = decoded.and_then(|bytes| <[u8; 30]>::try_from(bytes).ok());
    let key_and_salt =
        key_and_salt.ok_or_else(|| Refusal::value(crypto_name, "30 bytes in base64"))?;
    Ok(Some(IngestSrtp {
        suite,
        key_and_salt,
    }))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{Value, json};

    use super::*;

    fn fields(members: &Value) -> Fields<'_> {
        Fields(members.as_object().unwrap())
    }

    #[test]
    fn an_address_is_of_its_family() {
        let host = |family: &str| {
            let members = json!({ "host": "127.0.0.1", "host_family": family });
            Host::read(fields(&members), "host", "host_family").map(|host| host.numeric())
        };
        assert_eq!(host("ipv4"), Ok(Some([127, 0, 0, 1].into())));
        assert_eq!(host("ipv6"), Ok(None));
        assert!(host("ipx").is_err());
    }

    #[test]
    fn keys_are_checked_where_there_are_both_members() {
        let read = |members: Value| srtp(fields(&members), "suite", "crypto");
        assert_eq!(read(json!({ "suite": 7 })), Ok(None));
        assert_eq!(read(json!({ "crypto": "x" })), Ok(None));
        let key = BASE64_STANDARD.encode([7; 30]);
        let srtp = read(json!({ "suite": 32, "crypto": key }))
            .unwrap()
            .unwrap();
        assert_eq!(srtp.suite, SrtpSuite::AesCm128HmacSha1_32);
        assert!(read(json!({ "suite": 33, "crypto": key })).is_err());
        assert!(read(json!({ "suite": 80, "crypto": "AAAA" })).is_err());
    }

    #[test]
    fn ports_are_numbers_of_16_bits_above_0() {
        let read = |port: Value| super::port(fields(&json!({ "port": port })), "port");
        assert_eq!(read(json!(65_535)), Ok(65_535));
        assert!(read(json!(0)).is_err());
        assert!(read(json!(65_536)).is_err());
    }
}
