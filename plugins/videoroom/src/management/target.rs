//! Destinations of media in requests, and their keys.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use portunus_core::media::ingest::{IngestSrtp, SrtpSuite};
use portunus_core::media::{ForwardRtcp, IngestError};
use portunus_core::{FieldError, Fields};
use portunus_room as room;
use serde::Deserialize;

use crate::refusal::Refusal;

/// The timeout for the addresses of all hosts of a request.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// The members `host` and `host_family` of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Host {
    name: String,
    /// Whether an address has to be of IPv6, or else of IPv4. `None` means any.
    is_v6: Option<bool>,
}

#[derive(Deserialize)]
struct HostMembers<'a> {
    host_family: Option<&'a str>,
    host: Option<String>,
}

#[derive(Deserialize)]
struct SrtpMembers<'a> {
    srtp_suite: Option<u64>,
    srtp_crypto: Option<&'a str>,
}

impl Host {
    /// Reads the host. Returns `None` if there is no `host`.
    pub(super) fn read(fields: Fields<'_>) -> Result<Option<Self>, Refusal> {
        let HostMembers { host_family, host } = fields.read()?;
        let is_v6 = match host_family {
            None => None,
            Some("ipv4") => Some(false),
            Some("ipv6") => Some(true),
            Some(_) => return Err(Refusal::value("host_family", "ipv4 or ipv6")),
        };
        Ok(host.map(|name| Host { name, is_v6 }))
    }

    fn fits(&self, address: IpAddr) -> bool {
        self.is_v6.is_none_or(|is_v6| address.is_ipv6() == is_v6)
    }

    /// Reads it where it has to be there.
    pub(super) fn required(fields: Fields<'_>) -> Result<Self, Refusal> {
        let host = Host::read(fields)?;
        host.ok_or_else(|| FieldError::Missing("host".to_owned()).into())
    }

    /// Returns the address, if the host is one.
    pub(super) fn numeric(&self) -> Option<IpAddr> {
        let address = self.name.parse().ok();
        address.filter(|address| self.fits(*address))
    }

    /// Returns the address, and resolves a name.
    pub(super) async fn resolve(&self) -> Result<IpAddr, Refusal> {
        if let Some(address) = self.numeric() {
            return Ok(address);
        }
        let lookup = tokio::net::lookup_host((self.name.as_str(), 0)).await;
        let found = lookup.map_err(|_| Self::unknown())?;
        let mut addresses = found.map(|address| address.ip());
        addresses
            .find(|address| self.fits(*address))
            .ok_or_else(Self::unknown)
    }

    /// Returns the refusal of a host without an address, or that did not resolve in time.
    pub(super) fn unknown() -> Refusal {
        Refusal::value("host", "cannot be resolved")
    }
}

/// Reads a port. 0 counts as absent.
pub(super) fn port(fields: Fields<'_>, name: &str) -> Result<Option<u16>, Refusal> {
    let port = fields.member::<u64>(name)?;
    let port = port.map(u16::try_from).transpose();
    let port = port.map_err(|_| Refusal::value(name, "a port is at most 65535"))?;
    Ok(port.filter(|port| *port > 0))
}

/// Reads a port that has to be there.
pub(super) fn required_port(fields: Fields<'_>, name: &str) -> Result<u16, Refusal> {
    if !fields.has(name) {
        return Err(FieldError::Missing(name.to_owned()).into());
    }
    port(fields, name)?.ok_or_else(|| Refusal::value(name, "0 is no port to send to"))
}

/// Reads the key of SRTP. Returns `None` unless both members are there.
pub(super) fn srtp(fields: Fields<'_>) -> Result<Option<IngestSrtp>, Refusal> {
    let SrtpMembers {
        srtp_suite,
        srtp_crypto,
    } = fields.read()?;
    let suite = match srtp_suite {
        None => None,
        Some(32) => Some(SrtpSuite::AesCm128HmacSha1_32),
        Some(80) => Some(SrtpSuite::AesCm128HmacSha1_80),
        Some(_) => return Err(Refusal::value("srtp_suite", "32 or 80")),
    };
    let Some((suite, crypto)) = suite.zip(srtp_crypto) else {
        return Ok(None);
    };
    let decoded = BASE64_STANDARD.decode(crypto.trim()).ok();
    let key_and_salt = decoded.and_then(|bytes| <[u8; 30]>::try_from(bytes).ok());
    let key_and_salt =
        key_and_salt.ok_or_else(|| Refusal::value("srtp_crypto", "expected 30 bytes in base64"))?;
    Ok(Some(IngestSrtp {
        suite,
        key_and_salt,
    }))
}

/// Returns the destination at one of the resolved addresses.
pub(super) fn address(addresses: &[IpAddr], host: usize, port: u16) -> Result<SocketAddr, Refusal> {
    let address = addresses.get(host).copied();
    let address = address.ok_or_else(Host::unknown)?;
    Ok(SocketAddr::new(address, port))
}

/// Opens a socket for RTCP with one of the resolved addresses, if there is a port.
pub(super) fn rtcp(
    addresses: &[IpAddr],
    host: usize,
    port: Option<u16>,
) -> Result<Option<ForwardRtcp>, Refusal> {
    let Some(port) = port else { return Ok(None) };
    let socket = ForwardRtcp::bind(address(addresses, host, port)?);
    let failed = |error: IngestError| room::Refusal::Socket(error.to_string());
    Ok(Some(socket.map_err(failed)?))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use serde_json::{Value, json};

    use super::*;

    fn with<T>(
        value: Value,
        read: impl FnOnce(Fields<'_>) -> Result<T, Refusal>,
    ) -> Result<T, u16> {
        let members = value.as_object().unwrap().clone();
        read(Fields(&members)).map_err(|refusal| refusal.code())
    }

    #[tokio::test]
    async fn hosts_are_addresses_or_names_of_a_family() {
        let host = |value| with(value, Host::required);
        assert_eq!(host(json!({})), Err(429));
        assert_eq!(host(json!({ "host": 1 })), Err(430));
        let wrong = json!({ "host": "::1", "host_family": "ipv5" });
        assert_eq!(host(wrong), Err(430));
        for (name, family, expected) in [
            ("192.0.2.1", None, Some("192.0.2.1")),
            ("::1", Some("ipv6"), Some("::1")),
            ("::1", Some("ipv4"), None),
            ("localhost", Some("ipv4"), Some("127.0.0.1")),
            ("no-such-host.invalid", None, None),
        ] {
            let value = match family {
                Some(family) => json!({ "host": name, "host_family": family }),
                None => json!({ "host": name }),
            };
            let address = host(value).unwrap().resolve().await.ok();
            assert_eq!(
                address,
                expected.map(|text| text.parse().unwrap()),
                "{name}"
            );
        }
    }

    #[test]
    fn keys_are_whole_or_none() {
        let key = BASE64_STANDARD.encode([7; 30]);
        for (value, expected) in [
            (json!({}), Ok(false)),
            (json!({ "srtp_suite": 80 }), Ok(false)),
            (json!({ "srtp_crypto": key }), Ok(false)),
            (json!({ "srtp_suite": 80, "srtp_crypto": key }), Ok(true)),
            (json!({ "srtp_suite": 32, "srtp_crypto": key }), Ok(true)),
            (json!({ "srtp_suite": 64, "srtp_crypto": key }), Err(430)),
            (json!({ "srtp_suite": 80, "srtp_crypto": "AAAA" }), Err(430)),
            (json!({ "srtp_suite": 80, "srtp_crypto": "%" }), Err(430)),
            (json!({ "srtp_suite": "80" }), Err(430)),
        ] {
            let read = with(value.clone(), srtp).map(|key| key.is_some());
            assert_eq!(read, expected, "{value}");
        }
    }

    #[test]
    fn ports_are_ports() {
        let needed = |value| with(value, |fields| required_port(fields, "port"));
        assert_eq!(needed(json!({ "port": 5_004 })), Ok(5_004));
        assert_eq!(needed(json!({})), Err(429));
        for wrong in [json!(0), json!(65_536), json!(-1), json!("5004")] {
            assert_eq!(needed(json!({ "port": wrong })), Err(430));
        }
        assert_eq!(with(json!({ "port": 0 }), |f| port(f, "port")), Ok(None));
    }
}
