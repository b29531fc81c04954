//! The section `[whip]`.

use std::time::Duration;

use portunus_config::{Configuration, Section};
use serde::{Deserialize, Serialize};

use super::values::visible;

/// WHIP (RFC 9725) and WHEP.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WhipConfig {
    /// Whether `/whip` and `/whep` are served.
    pub enabled: bool,
    /// Who checks a client's token.
    pub authorization: WhipAuthorization,
    /// STUN and TURN servers for clients.
    pub ice_servers: Vec<IceServer>,
    /// The origins whose pages may use it. `*` means all.
    pub allow_origins: Vec<String>,
    /// The most publishers and viewers.
    pub max_sessions: usize,
    /// The largest offer, answer or fragment in bytes.
    pub max_body: usize,
    /// The time limit from the answer until media can flow.
    #[serde(with = "portunus_config::seconds")]
    pub connect_timeout: Duration,
}

impl Default for WhipConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            authorization: WhipAuthorization::Api,
            ice_servers: Vec::new(),
            allow_origins: vec!["*".into()],
            max_sessions: 100_000,
            // A browser that watches 50 speakers of a room offers about 250 KiB.
            max_body: 1 << 20,
            connect_timeout: Duration::from_secs(30),
        }
    }
}

impl Configuration for WhipConfig {
    fn read(section: &mut Section<'_>) -> Self {
        let whip: Self = section.keys();
        let servers = whip.ice_servers.iter().try_for_each(IceServer::check);
        section.check(&["ice_servers"], servers);
        let origins = whip
            .allow_origins
            .iter()
            .try_for_each(|origin| origin_or_any(origin));
        section.check(&["allow_origins"], origins);
        section.range("max_sessions", whip.max_sessions, 1..=10_000_000);
        section.range("max_body", whip.max_body, 1_024..=1 << 20);
        section.range("connect_timeout", whip.connect_timeout.as_secs(), 1..=600);
        whip
    }
}

fn origin_or_any(origin: &str) -> Result<(), String> {
    if visible(origin) && !origin.ends_with('/') {
        return Ok(());
    }
    Err(format!(
        "expected \"*\" or origins such as \"https://example.org\" (no slash at the end), got {origin:?}"
    ))
}

/// Who checks the bearer tokens of WHIP and WHEP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WhipAuthorization {
    /// The core by the API secret and tokens of the Janus API, if it has any; then the plugin.
    Api,
    /// Only the plugin. A stream without a token of its own is open to everybody.
    Plugin,
}

/// A STUN or TURN server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    deny_unknown_fields,
    expecting = "{ url = \"turn:…\", username = \"…\", credential = \"…\" }"
)]
pub struct IceServer {
    /// Its URL (RFC 7064, RFC 7065), such as `turn:turn.example.org:3478?transport=udp`.
    pub url: String,
    /// The user name for TURN.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub username: Option<String>,
    /// The credential for TURN.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential: Option<String>,
}

impl IceServer {
    /// Refuses what cannot be sent in a header.
    fn check(&self) -> Result<(), String> {
        let given = [
            Some(&self.url),
            self.username.as_ref(),
            self.credential.as_ref(),
        ];
        let wrong = |text: &&String| !visible(text) || text.contains(['<', '>']);
        if let Some(text) = given.into_iter().flatten().find(wrong) {
            return Err(format!(
                "expected visible ASCII characters without < and >, got {text:?}"
            ));
        }
        let turn = match self.url.split_once(':').map(|(scheme, _)| scheme) {
            Some("stun" | "stuns") => false,
            Some("turn" | "turns") => true,
            _ => {
                return Err(format!(
                    "expected a URL that starts with stun:, stuns:, turn: or turns:, got {:?}",
                    self.url
                ));
            }
        };
        match (turn, self.username.is_some(), self.credential.is_some()) {
            (true, true, true) | (false, false, false) => Ok(()),
            (true, ..) => Err("a TURN server needs a username and a credential".into()),
            (false, ..) => Err("a STUN server has no username and no credential".into()),
        }
    }
}
