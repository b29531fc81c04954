//! `media.stun_server`: a server that reports the public address.

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

use portunus_core::configuration;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::announced::{Host, ResolveError, host_and_port};

/// The port of STUN (RFC 8489 section 14).
const PORT: u16 = 3478;

/// A STUN server: `HOST[:PORT]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StunServer {
    host: Host,
    port: Option<u16>,
}

impl StunServer {
    /// Returns its first address of a family.
    pub(crate) async fn resolve(&self, is_ipv4: bool) -> Result<SocketAddr, ResolveError> {
        let port = self.port.unwrap_or(PORT);
        let found = match &self.host {
            Host::Ip(ip) => vec![SocketAddr::new(*ip, port)],
            Host::Name(name) => {
                let found = tokio::net::lookup_host((name.as_str(), port)).await;
                let found = found.map_err(|error| self.unresolved(error.to_string()))?;
                found.collect()
            }
        };
        let mut fitting = found.into_iter().filter(|it| it.is_ipv4() == is_ipv4);
        let none = || self.unresolved("it has no address of this family".to_owned());
        fitting.next().ok_or_else(none)
    }

    fn unresolved(&self, reason: String) -> ResolveError {
        ResolveError::new(self.to_string(), "media.stun_server", reason)
    }
}

impl FromStr for StunServer {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (host, port) = host_and_port(text.trim())?;
        Ok(Self { host, port })
    }
}

impl fmt::Display for StunServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.host.write(self.port, f)
    }
}

impl<'de> Deserialize<'de> for StunServer {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        configuration::text(from, "\"HOST[:PORT]\"", str::parse)
    }
}

impl Serialize for StunServer {
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
            "stun.example.org",
            "stun.example.org:19302",
            "203.0.113.7",
            "203.0.113.7:3479",
            "[2001:db8::7]:3479",
        ] {
            assert_eq!(text.parse::<StunServer>().unwrap().to_string(), text);
        }
        for text in ["", "stun:stun.example.org", "a b", "stun.example.org:0"] {
            assert!(text.parse::<StunServer>().is_err(), "{text}");
        }
    }

    #[tokio::test]
    async fn it_is_asked_at_an_address_of_the_family_that_is_meant() {
        let server: StunServer = "127.0.0.1".parse().unwrap();
        let found = server.resolve(true).await.unwrap();
        assert_eq!(found.to_string(), "127.0.0.1:3478");
        let error = server.resolve(false).await.unwrap_err();
        assert!(error.to_string().contains("media.stun_server"), "{error}");
    }
}
