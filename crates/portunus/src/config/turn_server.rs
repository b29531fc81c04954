//! `media.turn_server`: a TURN server at which this server has a relayed address.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use portunus_core::configuration;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::announced::{Host, ResolveError, host_and_port};

/// The ports of TURN, and of TURN by TLS (RFC 8656 section 3).
const PORT: u16 = 3478;
const TLS_PORT: u16 = 5349;

/// A TURN server, as a URI (RFC 7065): `turn:HOST[:PORT][?transport=udp|tcp]` or
/// `turns:HOST[:PORT]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TurnUri {
    host: Host,
    port: Option<u16>,
    pub(crate) transport: TurnTransport,
}

/// The transport to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TurnTransport {
    Udp,
    Tcp,
    Tls,
}

impl TurnUri {
    /// Returns its addresses, IPv4 first.
    pub(crate) async fn resolve(&self) -> Result<Vec<SocketAddr>, ResolveError> {
        let port = self.port.unwrap_or(match self.transport {
            TurnTransport::Udp | TurnTransport::Tcp => PORT,
            TurnTransport::Tls => TLS_PORT,
        });
        let mut found: Vec<SocketAddr> = match &self.host {
            Host::Ip(ip) => vec![SocketAddr::new(*ip, port)],
            Host::Name(name) => {
                let found = tokio::net::lookup_host((name.as_str(), port)).await;
                found
                    .map_err(|error| self.unresolved(error.to_string()))?
                    .collect()
            }
        };
        found.sort_by_key(SocketAddr::is_ipv6);
        match found.is_empty() {
            true => Err(self.unresolved("it has no address".to_owned())),
            false => Ok(found),
        }
    }

    /// Returns the name or address that its certificate must have.
    pub(crate) fn name(&self) -> String {
        match &self.host {
            Host::Ip(ip) => ip.to_string(),
            Host::Name(name) => name.clone(),
        }
    }

    fn unresolved(&self, reason: String) -> ResolveError {
        ResolveError::new(self.to_string(), "media.turn_server", reason)
    }
}

impl FromStr for TurnUri {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let (scheme, rest) = text
            .split_once(':')
            .ok_or("expected turn: or turns: before the host")?;
        let (authority, query) = match rest.split_once('?') {
            Some((authority, query)) => (authority, Some(query)),
            None => (rest, None),
        };
        let transport = match query {
            None => None,
            Some("transport=udp") => Some(TurnTransport::Udp),
            Some("transport=tcp") => Some(TurnTransport::Tcp),
            Some(query) => {
                return Err(format!(
                    "{query:?} is neither transport=udp nor transport=tcp"
                ));
            }
        };
        let transport = match (scheme, transport) {
            ("turn", transport) => transport.unwrap_or(TurnTransport::Udp),
            ("turns", None | Some(TurnTransport::Tcp)) => TurnTransport::Tls,
            ("turns", _) => {
                return Err("TURN by DTLS is not supported: leave ?transport=udp out".into());
            }
            (scheme, _) => return Err(format!("{scheme:?} is neither turn nor turns")),
        };
        let bracketed = authority
            .strip_prefix('[')
            .and_then(|it| it.strip_suffix(']'));
        let (host, port) = match bracketed.map(str::parse::<IpAddr>) {
            Some(Ok(ip)) => (Host::Ip(ip), None),
            _ => host_and_port(authority)?,
        };
        Ok(TurnUri {
            host,
            port,
            transport,
        })
    }
}

impl fmt::Display for TurnUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.transport {
            TurnTransport::Udp | TurnTransport::Tcp => "turn:",
            TurnTransport::Tls => "turns:",
        })?;
        match (&self.host, self.port) {
            (Host::Ip(IpAddr::V6(ip)), None) => write!(f, "[{ip}]")?,
            (host, port) => host.write(port, f)?,
        }
        match self.transport {
            TurnTransport::Tcp => f.write_str("?transport=tcp"),
            TurnTransport::Udp | TurnTransport::Tls => Ok(()),
        }
    }
}

impl<'de> Deserialize<'de> for TurnUri {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let form = "\"turn:HOST[:PORT][?transport=udp|tcp]\" or \"turns:HOST[:PORT]\"";
        configuration::text(from, form, str::parse)
    }
}

impl Serialize for TurnUri {
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
            "turn:turn.example.org",
            "turn:turn.example.org:3479",
            "turn:203.0.113.7?transport=tcp",
            "turn:[2001:db8::7]:3479",
            "turn:[2001:db8::7]",
            "turns:turn.example.org:443",
        ] {
            assert_eq!(text.parse::<TurnUri>().unwrap().to_string(), text);
        }
        for (text, transport) in [
            ("turn:a.example?transport=udp", TurnTransport::Udp),
            ("turns:a.example?transport=tcp", TurnTransport::Tls),
        ] {
            assert_eq!(text.parse::<TurnUri>().unwrap().transport, transport);
        }
        for text in [
            "",
            "turn.example.org",
            "stun:turn.example.org",
            "turn:",
            "turn://turn.example.org",
            "turn:a.example?transport=sctp",
            "turns:a.example?transport=udp",
            "turn:user@a.example",
        ] {
            assert!(text.parse::<TurnUri>().is_err(), "{text}");
        }
    }

    #[tokio::test]
    async fn the_port_follows_from_the_scheme() {
        for (text, port) in [
            ("turn:127.0.0.1", 3478),
            ("turns:127.0.0.1", 5349),
            ("turns:127.0.0.1:443", 443),
        ] {
            let found = text.parse::<TurnUri>().unwrap().resolve().await.unwrap();
            assert_eq!(found, [SocketAddr::from(([127, 0, 0, 1], port))]);
        }
    }
}
