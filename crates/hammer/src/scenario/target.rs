//! The server under load.

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs, UdpSocket};

use clap::Args;
use serde_json::Value;

use super::ScenarioError;
use crate::client::{Connection, Credentials, Trust};
use crate::traffic::Profile;

/// The server's URL and credentials.
#[derive(Debug, Clone, Args)]
pub struct Target {
    /// The server's Janus API over WebSocket, ws:// or wss://
    #[arg(long, value_name = "URL", default_value = "ws://127.0.0.1:8188")]
    pub janus: String,
    /// The API secret
    #[arg(long, value_name = "SECRET")]
    pub api_secret: Option<String>,
    /// A token
    #[arg(long)]
    pub token: Option<String>,
    /// Take any certificate from servers at wss:// and https://, such as a self-signed one
    #[arg(long)]
    pub insecure: bool,
    /// What reports call the server [default: what it calls itself]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// This machine's address towards the server [default: the one that the system would take]
    #[arg(long, value_name = "IP")]
    pub local: Option<IpAddr>,
    /// WebSocket connections that the participants share; a server may cut off one that is told of
    /// more than it keeps for a client
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub connections: u32,
    /// Accept only this protection of media, in place of all
    #[arg(long, value_enum)]
    pub profile: Option<Profile>,
}

/// The facts that the server reports.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Facts {
    pub(crate) name: Option<String>,
    pub(crate) version: Option<String>,
}

/// The addresses on both sides of the way to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Way {
    pub(crate) local: IpAddr,
    pub(crate) remote: IpAddr,
}

impl Target {
    /// Opens the connections.
    pub(crate) async fn connect(&self) -> Result<Vec<Connection>, ScenarioError> {
        let trust = self.trust();
        let mut connections = Vec::new();
        for _ in 0..self.connections {
            let credentials = Credentials {
                secret: self.api_secret.clone(),
                token: self.token.clone(),
            };
            connections.push(Connection::open(&self.janus, credentials, &trust).await?);
        }
        Ok(connections)
    }

    /// Returns the trusted certificates.
    pub(crate) fn trust(&self) -> Trust {
        match self.insecure {
            true => Trust::anybody(),
            false => Trust::system(),
        }
    }

    /// Returns the way to the server with this URL.
    pub(crate) fn way_to(&self, url: &str) -> Result<Way, ScenarioError> {
        Way::to(url, self.local).map_err(|source| ScenarioError::Host {
            url: url.to_owned(),
            source,
        })
    }

    /// Returns the SRTP profiles that participants accept. Empty means all.
    pub(crate) fn profiles(&self) -> &'static [portunus_srtp::Profile] {
        match self.profile {
            None => &[],
            Some(Profile::Gcm) => &[portunus_srtp::Profile::AeadAes128Gcm],
            Some(Profile::Cm) => &[portunus_srtp::Profile::Aes128CmSha1_80],
        }
    }
}

impl Facts {
    /// Requests the server's facts. A server that reports none has none.
    pub(crate) async fn of(connection: &Connection) -> Self {
        let Ok(info) = connection.info().await else {
            return Self::default();
        };
        let text = |name: &str| info.get(name).and_then(Value::as_str).map(str::to_owned);
        // Portunus reports the Janus version that it implements where Janus reports its own.
        match text("portunus-version") {
            Some(version) => Self {
                name: Some("Portunus".to_owned()),
                version: Some(version),
            },
            None => Self {
                name: text("name"),
                version: text("version_string"),
            },
        }
    }
}

impl Way {
    /// Returns the way from `local`, or from the address that the system chooses.
    fn to(url: &str, local: Option<IpAddr>) -> io::Result<Self> {
        let authority = url.split_once("://").map_or(url, |(_, rest)| rest);
        let authority = authority.split(['/', '?']).next().unwrap_or_default();
        let has_port = authority
            .rsplit_once(':')
            .is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        let address = match has_port {
            true => authority.to_owned(),
            false => format!("{authority}:80"),
        };
        let mut addresses = address.to_socket_addrs()?;
        let remote: SocketAddr = addresses.next().ok_or(io::ErrorKind::NotFound)?;
        let local = match local {
            Some(local) => local,
            None => {
                let any: IpAddr = match remote {
                    SocketAddr::V4(_) => [0, 0, 0, 0].into(),
                    SocketAddr::V6(_) => [0u16; 8].into(),
                };
                let socket = UdpSocket::bind((any, 0))?;
                // Nothing is sent. The system only looks up the route.
                socket.connect(remote)?;
                socket.local_addr()?.ip()
            }
        };
        Ok(Self {
            local,
            remote: remote.ip(),
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;

    #[test]
    fn the_way_is_found_from_the_url() {
        let lo: IpAddr = [127, 0, 0, 1].into();
        let loopback = Way {
            local: lo,
            remote: lo,
        };
        for url in ["ws://127.0.0.1:8188/janus", "ws://127.0.0.1"] {
            assert_eq!(Way::to(url, None).unwrap(), loopback);
        }
        let other: IpAddr = [127, 0, 0, 9].into();
        assert_eq!(Way::to("ws://[::1]:1", Some(other)).unwrap().local, other);
        assert!(Way::to("ws://", None).is_err());
    }
}
