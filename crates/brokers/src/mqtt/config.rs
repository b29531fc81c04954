//! The configuration of an MQTT broker.

use std::time::Duration;

use portunus_config::{Probe, Secret, Section};
use serde::{Deserialize, Serialize};
use url::Url;

use crate::{BrokerTls, stream};

/// An MQTT broker, and our login.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MqttServer {
    /// `tcp://HOST:PORT` or `mqtt://…`; with TLS `ssl://…` or `mqtts://…`.
    pub url: String,
    /// The version of the protocol.
    pub mqtt_version: MqttVersion,
    /// Our name. The broker permits one connection for each name.
    pub client_id: String,
    /// The user name, with `password`.
    #[serde(with = "portunus_config::optional")]
    pub username: Option<String>,
    /// The user's password.
    #[serde(with = "portunus_config::optional")]
    pub password: Option<Secret>,
    /// The silence after which a ping is sent. Zero means never.
    #[serde(with = "portunus_config::seconds")]
    pub keep_alive_interval: Duration,
    /// Whether the broker drops our session when the connection ends, or else keeps messages for
    /// us.
    pub cleansession: bool,
    /// The limit of messages without a confirmation by the broker.
    pub max_inflight: u16,
    /// The timeout for the last messages at the end, in ms.
    pub disconnect_timeout: u64,
}

/// A version of MQTT.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum MqttVersion {
    /// 3.1.1
    #[serde(rename = "3.1.1")]
    V3,
    /// 5
    #[serde(rename = "5")]
    V5,
}

/// The address of a broker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Address {
    /// Without brackets.
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) is_secure: bool,
}

impl MqttServer {
    /// Returns the defaults, with this name for us.
    pub fn named(client_id: &str) -> Self {
        MqttServer {
            client_id: client_id.to_owned(),
            ..MqttServer::default()
        }
    }

    /// Reads its keys of a section. `client_id` is our default name.
    pub fn read(section: &mut Section<'_>, client_id: &str) -> Self {
        let mut server: Self = section.keys();
        if server.client_id.is_empty() {
            server.client_id = client_id.to_owned();
        }
        section.check(&["url"], Address::parse(&server.url).map(drop));
        let seconds = server.keep_alive_interval.as_secs();
        section.range("keep_alive_interval", seconds, 0..=65_535);
        section.range("max_inflight", server.max_inflight, 1..=65_535);
        section.range("disconnect_timeout", server.disconnect_timeout, 0..=60_000);
        section.require(
            &["password", "username"],
            server.username.is_some() || server.password.is_none(),
            "password needs username",
        );
        section.range("client_id", server.client_id.len(), 1..=65_535);
        server
    }

    /// Checks the files of `tls`, and declares the broker's address.
    pub fn probe(&self, tls: &BrokerTls, probe: &mut Probe) {
        tls.probe(probe);
        let Address {
            host,
            port,
            is_secure,
        } = self.address();
        let tls = BrokerTls {
            tls_enable: tls.tls_enable || is_secure,
            ..tls.clone()
        };
        probe.connects("url", &self.url, async move {
            stream::attempt(&host, port, &tls).await.map(drop)
        });
    }

    pub(super) fn address(&self) -> Address {
        Address::parse(&self.url).unwrap_or(Address {
            host: "localhost".to_owned(),
            port: 1883,
            is_secure: false,
        })
    }
}

impl Default for MqttServer {
    fn default() -> Self {
        MqttServer {
            url: "tcp://localhost:1883".to_owned(),
            mqtt_version: MqttVersion::V3,
            client_id: String::new(),
            username: None,
            password: None,
            keep_alive_interval: Duration::from_secs(30),
            cleansession: false,
            max_inflight: 10,
            disconnect_timeout: 100,
        }
    }
}

impl Address {
    fn parse(url: &str) -> Result<Self, String> {
        let expected = || {
            format!("expected a URL such as \"tcp://localhost:1883\" or \"ssl://…\", got {url:?}")
        };
        let parsed = Url::parse(url).map_err(|_| expected())?;
        let is_secure = match parsed.scheme() {
            "tcp" | "mqtt" => false,
            "ssl" | "tls" | "mqtts" => true,
            _ => return Err(expected()),
        };
        let host = parsed.host_str().filter(|host| !host.is_empty());
        let host = host.ok_or_else(expected)?;
        if !matches!(parsed.path(), "" | "/") || !parsed.username().is_empty() {
            return Err(expected());
        }
        let default = if is_secure { 8883 } else { 1883 };
        Ok(Address {
            host: host.trim_matches(['[', ']']).to_owned(),
            port: parsed.port().unwrap_or(default),
            is_secure,
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;

    #[test]
    fn urls_are_read_as_paho_reads_them() {
        let read = |url| {
            let address = Address::parse(url).unwrap();
            (address.host, address.port, address.is_secure)
        };
        assert_eq!(read("tcp://localhost"), ("localhost".into(), 1883, false));
        assert_eq!(read("mqtts://a.b"), ("a.b".into(), 8883, true));
        assert_eq!(read("ssl://[::1]:1"), ("::1".into(), 1, true));
        for wrong in [
            "",
            "localhost:1883",
            "http://localhost",
            "tcp://",
            "tcp://a/b",
            "tcp://u@a",
        ] {
            assert!(Address::parse(wrong).is_err(), "{wrong}");
        }
    }
}
