//! The configuration of a NATS server.

use std::path::{Path, PathBuf};

use async_nats::ConnectOptions;
use portunus_config::{Probe, Secret, Section};
use serde::{Deserialize, Serialize};
use tokio::io::AsyncReadExt as _;

use crate::{BrokerTls, stream};

/// A NATS server or a cluster of them, and our login.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct NatsServer {
    /// Where it is.
    #[serde(flatten)]
    pub address: NatsAddress,
    /// Our login.
    #[serde(flatten)]
    pub login: NatsLogin,
}

/// The address of a NATS server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NatsAddress {
    /// `nats://HOST:PORT`. Several, with commas between, are servers of one cluster.
    pub url: String,
}

impl Default for NatsAddress {
    fn default() -> Self {
        NatsAddress {
            url: "nats://localhost:4222".to_owned(),
        }
    }
}

/// A login to NATS: a user with a password, a token, a file of credentials, or a key. Without any,
/// the server has to let anybody in, or know the certificate of TLS.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct NatsLogin {
    /// The user name, with `password`.
    #[serde(with = "portunus_config::optional")]
    pub username: Option<String>,
    /// The user's password.
    #[serde(with = "portunus_config::optional")]
    pub password: Option<Secret>,
    /// Instead: a token.
    #[serde(with = "portunus_config::optional")]
    pub token: Option<Secret>,
    /// Instead: a file with a user's JWT and the seed of its key, as `nsc` writes it (`.creds`).
    #[serde(with = "portunus_config::optional")]
    pub credentials: Option<PathBuf>,
    /// Instead: a file with the seed of an NKey (`SU…`).
    #[serde(with = "portunus_config::optional")]
    pub nkey: Option<PathBuf>,
}

impl NatsLogin {
    /// Takes its keys of a section.
    pub fn read(section: &mut Section<'_>) -> Self {
        let login: Self = section.keys();
        section.require(
            &["password", "username"],
            login.username.is_some() == login.password.is_some(),
            "username and password belong together",
        );
        let ways = [
            login.username.is_some(),
            login.token.is_some(),
            login.credentials.is_some(),
            login.nkey.is_some(),
        ];
        section.require(
            &["token", "username", "credentials", "nkey"],
            ways.into_iter().filter(|is_there| *is_there).count() <= 1,
            "expected only one of username, token, credentials and nkey",
        );
        login
    }

    /// Looks whether its files can be used.
    pub fn probe(&self, probe: &mut Probe) {
        if let Err(LoginError { key, path, reason }) = self.apply(ConnectOptions::new()) {
            probe.error(key, format!("cannot use {}: {reason}", path.display()));
        }
    }

    /// Adds the login to the options of a connection. Reads the files.
    pub(super) fn apply(&self, options: ConnectOptions) -> Result<ConnectOptions, LoginError> {
        if let (Some(username), Some(password)) = (&self.username, &self.password) {
            let password = password.clone().into_inner();
            return Ok(options.user_and_password(username.clone(), password));
        }
        if let Some(token) = &self.token {
            return Ok(options.token(token.clone().into_inner()));
        }
        let read = |key, path: &PathBuf| {
            std::fs::read_to_string(path).map_err(|error| LoginError::new(key, path, error))
        };
        if let Some(path) = &self.credentials {
            let options = options.credentials(&read("credentials", path)?);
            return options.map_err(|error| LoginError::new("credentials", path, error));
        }
        if let Some(path) = &self.nkey {
            let text = read("nkey", path)?;
            let seed = text
                .lines()
                .map(str::trim)
                .find(|line| line.starts_with("SU"));
            // The library would refuse another one with each connection only.
            let pair = seed.filter(|seed| nkeys::KeyPair::from_seed(seed).is_ok());
            let expected = "expected the seed of a user's NKey, which begins with SU";
            let seed = pair.ok_or_else(|| LoginError::new("nkey", path, expected))?;
            return Ok(options.nkey(seed.to_owned()));
        }
        Ok(options)
    }
}

/// A file of a login cannot be used. The text names the key.
#[derive(Debug, thiserror::Error)]
#[error("{key}: cannot use {}: {reason}", path.display())]
pub struct LoginError {
    key: &'static str,
    path: PathBuf,
    reason: String,
}

impl LoginError {
    fn new(key: &'static str, path: &Path, reason: impl std::fmt::Display) -> Self {
        LoginError {
            key,
            path: path.to_owned(),
            reason: reason.to_string(),
        }
    }
}

impl NatsServer {
    /// Takes its keys of a section.
    pub fn read(section: &mut Section<'_>) -> Self {
        let address: NatsAddress = section.keys();
        section.check(&["url"], addresses(&address.url).map(drop));
        NatsServer {
            address,
            login: NatsLogin::read(section),
        }
    }

    /// Checks its files and those of `tls`, and declares the address of each server.
    pub fn probe(&self, tls: &BrokerTls, probe: &mut Probe) {
        self.login.probe(probe);
        probe_servers("url", &self.address.url, tls, probe);
    }
}

/// Checks the files of `tls`, and declares the address of each server in the value of `key`.
pub fn probe_servers(key: &'static str, urls: &str, tls: &BrokerTls, probe: &mut Probe) {
    tls.probe(probe);
    // TLS begins after the server's first line, so its connection is plain until then.
    let plain = BrokerTls {
        tls_enable: false,
        ..tls.clone()
    };
    for address in addresses(urls).unwrap_or_default() {
        let (host, port) = (address.host().to_owned(), address.port());
        let plain = plain.clone();
        probe.connects(key, format!("{host}:{port}"), async move {
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

/// Returns the addresses of the servers in a configured value.
pub fn addresses(urls: &str) -> Result<Vec<async_nats::ServerAddr>, String> {
    let addresses = urls.split(',').map(|url| {
        let address = url.trim().parse::<async_nats::ServerAddr>();
        // The login has its own keys, because addresses are logged.
        let right = |address: &async_nats::ServerAddr| {
            !address.host().is_empty() && !address.has_user_pass()
        };
        let address = address.ok().filter(right);
        address
            .ok_or_else(|| format!("expected a URL such as \"nats://localhost:4222\", got {url:?}"))
    });
    addresses.collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;

    #[test]
    fn a_cluster_has_several_addresses() {
        let found = addresses("nats://a:1, nats://b").unwrap();
        let found: Vec<_> = found.iter().map(|at| (at.host(), at.port())).collect();
        assert_eq!(found, [("a", 1), ("b", 4222)]);
        for wrong in ["", "http://a", "nats://a,,nats://b", "nats://u:p@a"] {
            assert!(addresses(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn files_of_a_login_that_cannot_be_used_are_named_with_their_key() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let by = |credentials: bool| {
            let (yes, no) = (Some(path.clone()), None);
            let (credentials, nkey) = if credentials { (yes, no) } else { (no, yes) };
            let login = NatsLogin {
                credentials,
                nkey,
                ..NatsLogin::default()
            };
            login
                .apply(ConnectOptions::new())
                .map(drop)
                .map_err(|error| error.to_string())
        };
        assert!(by(true).unwrap_err().starts_with("credentials: cannot use"));
        std::fs::write(&path, "nothing of use").unwrap();
        assert!(by(true).unwrap_err().starts_with("credentials: cannot use"));
        assert!(by(false).unwrap_err().ends_with("which begins with SU"));
        std::fs::write(&path, "# a comment\nSUwrong\n").unwrap();
        assert!(by(false).is_err());
        let seed = nkeys::KeyPair::new_user().seed().unwrap();
        std::fs::write(&path, format!("# a comment\n{seed}\n")).unwrap();
        assert_eq!(by(false), Ok(()));
    }
}
