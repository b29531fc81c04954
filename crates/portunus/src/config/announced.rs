//! `media.announced`: the addresses that replace bound ones for clients.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use portunus_core::configuration;
use portunus_media::AnnouncedAddress;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// An entry: `[BOUND=>]ADDRESS[:PORT]`. ADDRESS is an IP address or a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Announced {
    bound: Option<IpAddr>,
    host: Host,
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Host {
    Ip(IpAddr),
    Name(String),
}

impl Host {
    /// Formats it as in the configuration.
    pub(super) fn write(&self, port: Option<u16>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self, port) {
            (Host::Ip(ip), None) => write!(f, "{ip}"),
            (Host::Ip(ip), Some(port)) => write!(f, "{}", SocketAddr::new(*ip, port)),
            (Host::Name(name), None) => write!(f, "{name}"),
            (Host::Name(name), Some(port)) => write!(f, "{name}:{port}"),
        }
    }
}

/// A name in the configuration that has no address.
#[derive(Debug, thiserror::Error)]
#[error("cannot resolve {name:?} (set {key}): {reason}")]
pub(crate) struct ResolveError {
    name: String,
    key: &'static str,
    reason: String,
}

impl ResolveError {
    pub(super) fn new(name: String, key: &'static str, reason: String) -> Self {
        ResolveError { name, key, reason }
    }
}

impl Announced {
    /// Resolves it. A name may have several addresses; those of the bound address's family count.
    pub(crate) async fn resolve(&self) -> Result<Vec<AnnouncedAddress>, ResolveError> {
        let entry = |ip| AnnouncedAddress {
            bound: self.bound,
            ip,
            port: self.port,
        };
        let name = match &self.host {
            Host::Ip(ip) => return Ok(vec![entry(*ip)]),
            Host::Name(name) => name,
        };
        let failed = |reason| ResolveError::new(name.clone(), "media.announced", reason);
        let found = tokio::net::lookup_host((name.as_str(), 0)).await;
        let mut addresses: Vec<_> = found
            .map_err(|error| failed(error.to_string()))?
            .map(|address| address.ip())
            .filter(|ip| {
                self.bound
                    .is_none_or(|bound| bound.is_ipv4() == ip.is_ipv4())
            })
            .collect();
        addresses.sort_unstable();
        addresses.dedup();
        if addresses.is_empty() {
            return Err(failed(
                "no address of the bound address's family".to_owned(),
            ));
        }
        Ok(addresses.into_iter().map(entry).collect())
    }
}

impl FromStr for Announced {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (bound, announced) = match text.split_once("=>") {
            Some((bound, announced)) => {
                let bound = bound.trim();
                let ip: IpAddr = bound
                    .parse()
                    .map_err(|_| format!("{bound:?} before => is no IP address"))?;
                (Some(ip), announced.trim())
            }
            None => (None, text.trim()),
        };
        let (host, port) = host_and_port(announced)?;
        if let (Some(bound), Host::Ip(ip)) = (bound, &host)
            && bound.is_ipv4() != ip.is_ipv4()
        {
            return Err(format!("{bound} and {ip} are of different families"));
        }
        Ok(Self { bound, host, port })
    }
}

pub(super) fn host_and_port(text: &str) -> Result<(Host, Option<u16>), String> {
    if let Ok(ip) = text.parse() {
        return Ok((Host::Ip(ip), None));
    }
    if let Ok(address) = text.parse::<SocketAddr>() {
        return match address.port() {
            0 => Err("port 0 cannot be announced".into()),
            port => Ok((Host::Ip(address.ip()), Some(port))),
        };
    }
    let (name, port) = match text.rsplit_once(':') {
        Some((name, port)) => {
            let number = port.parse::<u16>().ok().filter(|port| *port > 0);
            (name, Some(number.ok_or(format!("{port:?} is no port"))?))
        }
        None => (text, None),
    };
    // RFC 1123 section 2.1. A name of digits and dots only is a mistyped address.
    let label = |label: &str| {
        !label.is_empty()
            && label.len() <= 63
            && label
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'-')
    };
    let name = name.trim_end_matches('.');
    let numeric = name.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    if numeric || name.len() > 253 || !name.split('.').all(label) {
        return Err(format!("{text:?} is neither an IP address nor a name"));
    }
    Ok((Host::Name(name.to_owned()), port))
}

impl fmt::Display for Announced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(bound) = self.bound {
            write!(f, "{bound}=>")?;
        }
        self.host.write(self.port, f)
    }
}

impl<'de> Deserialize<'de> for Announced {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        configuration::text(from, "\"[BOUND=>]ADDRESS[:PORT]\"", str::parse)
    }
}

impl Serialize for Announced {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;

    #[test]
    fn accepted_forms_print_as_they_were_written() {
        for text in [
            "203.0.113.7",
            "203.0.113.7:20000",
            "10.0.0.5=>203.0.113.7",
            "10.0.0.5=>203.0.113.7:20000",
            "2001:db8::1",
            "[2001:db8::1]:20000",
            "fd00::1=>2001:db8::1",
            "media.example.org",
            "10.0.0.5=>media.example.org:20000",
        ] {
            assert_eq!(text.parse::<Announced>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for text in [
            "",
            "=>",
            "=>1.2.3.4",
            "1.2.3",
            "1.2.3.4:0",
            "1.2.3.4:99999",
            "a b",
            "-=>1.2.3.4",
            "x=>1.2.3.4",
            "1.2.3.4=>::1",
            "host:port",
            "ex..ample",
            "[::1]",
        ] {
            assert!(text.parse::<Announced>().is_err(), "{text:?}");
        }
    }

    #[tokio::test]
    async fn names_are_resolved_to_the_family_of_the_bound_address() {
        let entry: Announced = "10.0.0.5=>localhost:20000".parse().unwrap();
        let resolved = entry.resolve().await.unwrap();
        assert!(
            resolved
                .iter()
                .all(|a| a.ip.is_ipv4() && a.port == Some(20000))
        );
        assert_eq!(resolved.len(), 1);
    }
}
