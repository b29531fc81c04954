//! NATS, by `async-nats`.

mod config;
mod task;

pub use config::{LoginError, NatsAddress, NatsLogin, NatsServer, addresses, probe_servers};

use async_nats::ConnectOptions;
use bytes::Bytes;

use crate::backoff::Backoff;
use crate::{BrokerTls, Connection, TlsError};

/// A message that is published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outgoing {
    /// The subject.
    pub subject: String,
    /// The content.
    pub payload: Bytes,
}

/// The reason why a client cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// A file of TLS cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// A file of the login cannot be used.
    #[error(transparent)]
    Login(#[from] LoginError),
}

/// Returns the options of a client of the library, for users of more than messages: with our login
/// and TLS, and growing waits before each attempt.
pub fn options(login: &NatsLogin, tls: &BrokerTls) -> Result<ConnectOptions, ClientError> {
    let options = ConnectOptions::new()
        .name("portunus")
        .retry_on_initial_connect()
        .reconnect_delay_callback(Backoff::after);
    let options = login.apply(options)?;
    Ok(match tls.client()? {
        Some(tls) => options
            .require_tls(true)
            .tls_client_config(tls.as_ref().clone()),
        None => options,
    })
}

/// Connects to `server` and subscribes to `subjects`, on the running tokio runtime.
pub fn connect(
    server: &NatsServer,
    tls: &BrokerTls,
    subjects: Vec<String>,
) -> Result<Connection<Outgoing>, TlsError> {
    let plan = task::Plan {
        server: server.clone(),
        tls: tls.client()?,
        subjects,
    };
    Ok(Connection::start(|ends| task::run(plan, ends)))
}

/// The expectation of [`is_subject`], for people.
pub const SUBJECT: &str = "expected words with dots between, without the wildcards * and >";

/// Returns whether messages can be published there: words of visible characters with dots between,
/// and no wildcards.
pub fn is_subject(text: &str) -> bool {
    let word = |word: &str| {
        !word.is_empty()
            && word
                .chars()
                .all(|c| !c.is_whitespace() && !c.is_control() && !matches!(c, '*' | '>'))
    };
    text.split('.').all(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subjects_have_no_gaps_and_no_wildcards() {
        assert!(is_subject("janus") && is_subject("janus.events-1.core"));
        for wrong in ["", ".", "a..b", "a.", "a b", "a.*", "a.>", "a\tb"] {
            assert!(!is_subject(wrong), "{wrong:?}");
        }
    }
}
