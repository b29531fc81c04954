//! The keys of `[media]` about the TURN server that this server uses.

use std::path::PathBuf;
use std::time::Duration;

use portunus_core::configuration::{self, Probe, Secret, Section};
use portunus_media::MediaConfig;
use serde::{Deserialize, Serialize};

use super::HttpUrl;
use super::turn_server::TurnUri;

/// The TURN server and its credentials. Disabled without a server and without an API that names
/// one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct TurnClientConfig {
    #[serde(with = "configuration::optional")]
    pub(crate) turn_server: Option<TurnUri>,
    pub(crate) turn_user: String,
    pub(crate) turn_password: Secret,
    /// A PEM file with the authorities for `turns:` servers and the API. `None` means those of the
    /// system.
    #[serde(with = "configuration::optional")]
    pub(crate) turn_ca: Option<PathBuf>,
    /// The URL of a REST API for TURN services, which names servers and credentials.
    #[serde(with = "configuration::optional")]
    pub(crate) turn_rest_api: Option<HttpUrl>,
    pub(crate) turn_rest_api_key: Secret,
    pub(crate) turn_rest_api_method: RestMethod,
    /// The time limit of an answer of the API.
    #[serde(with = "configuration::seconds")]
    pub(crate) turn_rest_api_timeout: Duration,
}

/// The method of requests to the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub(crate) enum RestMethod {
    #[default]
    Get,
    Post,
}

impl Default for TurnClientConfig {
    fn default() -> Self {
        TurnClientConfig {
            turn_server: None,
            turn_user: String::new(),
            turn_password: Secret::default(),
            turn_ca: None,
            turn_rest_api: None,
            turn_rest_api_key: Secret::default(),
            turn_rest_api_method: RestMethod::Get,
            turn_rest_api_timeout: Duration::from_secs(10),
        }
    }
}

impl TurnClientConfig {
    /// Reads its keys of `[media]`.
    pub(crate) fn read(section: &mut Section<'_>) -> Self {
        let turn: Self = section.keys();
        let (server, rest) = (turn.turn_server.is_some(), turn.turn_rest_api.is_some());
        section.require(
            &["turn_rest_api", "turn_server"],
            !(server && rest),
            "names the server: leave media.turn_server out",
        );
        section.require(
            &["turn_user", "turn_server"],
            server || turn.turn_user.is_empty(),
            "needs media.turn_server",
        );
        section.require(
            &["turn_password", "turn_user"],
            !turn.turn_user.is_empty() || turn.turn_password.is_empty(),
            "needs media.turn_user",
        );
        section.require(
            &["turn_server", "turn_user"],
            !server || !turn.turn_user.is_empty(),
            "needs media.turn_user and media.turn_password",
        );
        section.require(
            &["turn_rest_api_key", "turn_rest_api"],
            rest || turn.turn_rest_api_key.is_empty(),
            "needs media.turn_rest_api",
        );
        section.range(
            "turn_rest_api_timeout",
            turn.turn_rest_api_timeout.as_secs(),
            1..=300,
        );
        turn
    }

    /// Checks it against other keys of `[media]`.
    pub(crate) fn fit(&self, media: &MediaConfig, section: &mut Section<'_>) {
        let text = "needs media.turn_server or media.turn_rest_api";
        let holds = self.is_on() || !media.force_relay;
        section.require(&["force_relay", "turn_server"], holds, text);
        // RFC 8445 section 2.5.
        let text = "cannot be used with media.ice_lite, which offers addresses of the host only";
        let fits = !(media.ice_lite && self.is_on());
        section.require(&["turn_server", "turn_rest_api", "ice_lite"], fits, text);
    }

    /// Whether it is enabled.
    pub(crate) fn is_on(&self) -> bool {
        self.turn_server.is_some() || self.turn_rest_api.is_some()
    }

    pub(crate) fn probe(&self, probe: &mut Probe) {
        if self.turn_ca.is_some()
            && let Err(error) = portunus_events::tls_client(self.turn_ca.as_deref())
        {
            probe.error("turn_ca", error);
        }
    }
}
