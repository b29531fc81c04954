//! The configuration of a NATS server.

use portunus_config::{Probe, Secret, Section};
use serde::{Deserialize, Serialize};
use tokio::io::AsyncReadExt as _;

use crate::{BrokerTls, stream};

/// A NATS server or a cluster of them, and our login.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NatsServer {
    /// `nats://HOST:PORT`. Several, with commas between, are servers of one cluster.
    pub url: String,
    /// The user name, with `password`.
    #[serde(with = "portunus_config::optional")]
    pub username: Option<String>,
    /// The user's password.
    #[serde(with = "portunus_config::optional")]
    pub password: Option<Secret>,
    /// Instead: a token.
    #[serde(with = "portunus_config::optional")]
    pub token: Option<Secret>,
}

impl Default for NatsServer {
    fn default() -> Self {
        NatsServer {
            url: "nats://localhost:4222".to_owned(),
            username: None,
            password: None,
            token: None,
        }
    }
}

impl NatsServer {
    /// Takes its keys of a section.
    pub fn read(section: &mut Section<'_>) -> Self {
        let server: Self = section.keys();
        section.check(&["url"], server.addresses().map(drop));
        section.require(
            &["password", "username"],
            server.username.is_some() == server.password.is_some(),
            "username and password belong together",
        );
        section.require(
            &["token", "username"],
            server.token.is_none() || server.username.is_none(),
            "expected either token or username and password",
        );
        server
    }

    /// Checks the files of `tls`, and declares the address of each server.
    pub fn probe(&self, tls: &BrokerTls, probe: &mut Probe) {
        tls.probe(probe);
        // TLS begins after the server's first line, so its connection is plain until then.
        let plain = BrokerTls {
            tls_enable: false,
            ..tls.clone()
        };
        for address in self.addresses().unwrap_or_default() {
            let (host, port) = (address.host().to_owned(), address.port());
            let plain = plain.clone();
            probe.connects("url", format!("{host}:{port}"), async move {
                let mut stream = stream::attempt(&host, port, &plain).await?;
                let mut greeting = [0; 5];
                let read = stream.read_exact(&mut greeting).await;
                match read.is_ok() && &greeting == b"INFO " {
                    true => Ok(()),
                    false => Err("what answers is no NATS server".to_owned()),
                }
            });
        }
    }

    /// Returns the addresses of the servers.
    pub(super) fn addresses(&self) -> Result<Vec<async_nats::ServerAddr>, String> {
        let addresses = self.url.split(',').map(|url| {
            let address = url.trim().parse::<async_nats::ServerAddr>();
            // The login has its own keys, because addresses are logged.
            let right = |address: &async_nats::ServerAddr| {
                !address.host().is_empty() && !address.has_user_pass()
            };
            let address = address.ok().filter(right);
            address.ok_or_else(|| {
                format!("expected a URL such as \"nats://localhost:4222\", got {url:?}")
            })
        });
        addresses.collect()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;

    #[test]
    fn a_cluster_has_several_addresses() {
        let server = |url: &str| NatsServer {
            url: url.to_owned(),
            ..NatsServer::default()
        };
        let found = server("nats://a:1, nats://b").addresses().unwrap();
        let found: Vec<_> = found.iter().map(|at| (at.host(), at.port())).collect();
        assert_eq!(found, [("a", 1), ("b", 4222)]);
        for wrong in ["", "http://a", "nats://a,,nats://b", "nats://u:p@a"] {
            assert!(server(wrong).addresses().is_err(), "{wrong:?}");
        }
    }
}
