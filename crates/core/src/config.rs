//! The configuration of the core.

use std::time::Duration;

use portunus_config::{Configuration, Probe, Secret, Section};
use portunus_tokens::{MAX_TOKEN, StoredToken, TokensConfig};
use serde::{Deserialize, Serialize};

use crate::budget::{Budget, BudgetKeys, BudgetLimits};
use crate::machine_memory::machine_memory;
use crate::{Network, Networks};

/// The largest budget of memory, in MiB.
const MAX_MEMORY: usize = 1 << 30;

/// The reserve for trusted clients is the memory for clients divided by this. The Admin API has as
/// much in addition.
const TRUSTED_PART: usize = 8;

const MEMORY_KEYS: BudgetKeys = BudgetKeys {
    whole: "server.client_memory_mb",
    address: "server.client_memory_per_address_mb",
};

/// The configuration of the core. Every key has a default.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CoreConfig {
    /// The server's name in `info`.
    pub server_name: String,
    /// The product name in `info`.
    pub info_name: InfoName,
    /// Seconds without a request after which a session ends. 0 disables it.
    pub session_timeout: u32,
    /// Seconds for which a session without a connection can be claimed. 0 disables it.
    pub reclaim_session_timeout: u32,
    /// Seconds for which candidates are kept that came before their description.
    pub candidates_timeout: u32,
    /// The secret that requests carry as `apisecret`. It gives all rights.
    #[serde(with = "portunus_config::optional")]
    pub api_secret: Option<Secret>,
    /// Whether requests must carry a valid `token`, or the API secret if there is one.
    pub token_auth: bool,
    /// The stored tokens. Their rights are valid without `token_auth`, too.
    pub tokens: Vec<StoredToken>,
    /// The secret of signed tokens.
    #[serde(with = "portunus_config::optional")]
    pub token_auth_secret: Option<Secret>,
    /// Whether clients on this machine have all rights. Pages of other origins in a browser on it
    /// have none.
    pub trust_loopback: bool,
    /// Proxies whose `X-Forwarded-For` or `Forwarded` names the client of an HTTP request.
    pub trusted_proxies: Vec<Network>,
    /// Requests per second of a client without the right to administer. 0 means no limit.
    pub request_rate: u32,
    /// Requests that such a client may make at once.
    pub request_burst: u32,
    /// The longest text in a request of such a client, in bytes. Session descriptions (SDP) are
    /// exempt.
    pub max_text: usize,
    /// Memory for all clients together, in MiB. 0 means a third of the machine's memory.
    pub client_memory_mb: usize,
    /// Memory for the clients at one address, in MiB. 0 means a quarter of `client_memory_mb`.
    pub client_memory_per_address_mb: usize,
    /// Addresses that many clients share, such as those of proxies. They have no limit of their
    /// own.
    pub shared_addresses: Vec<Network>,
    /// Whether ids of sessions and handles are strings in JSON.
    pub string_ids: bool,
    /// The pause in ms between an ack and the event that answers the same request, on transports
    /// that push both. 0 disables it.
    pub ack_pause_ms: u32,
    /// Whether the server sends its candidates one by one as events instead of in the description.
    pub full_trickle: bool,
    /// The order of offered rids, unless the offer has its own `rid_order`.
    pub rid_order: RidOrder,
    /// Whether replies and events of a handle carry its opaque id.
    pub opaqueid_in_api: bool,
    /// Whether new sessions are accepted; see also [`crate::Gateway::accept_new_sessions`].
    pub accept_new_sessions: bool,
    /// How long calls may go on after SIGTERM. 0 ends them immediately.
    #[serde(with = "portunus_config::seconds")]
    pub drain_timeout: Duration,
    /// The most sessions. 0 means no limit.
    pub max_sessions: usize,
    /// The most sessions of a WebSocket or Unix connection. 0 means no limit.
    pub max_sessions_per_connection: usize,
    /// The most handles of a session. 0 means no limit.
    pub max_handles_per_session: usize,
    /// The networks that requests may make the server send media to, or connect to.
    pub outgoing_networks: Networks,
}

impl Default for CoreConfig {
    fn default() -> Self {
        Self {
            server_name: "Portunus".to_owned(),
            info_name: InfoName::default(),
            session_timeout: 60,
            reclaim_session_timeout: 0,
            candidates_timeout: 45,
            api_secret: None,
            token_auth: false,
            tokens: Vec::new(),
            token_auth_secret: None,
            trust_loopback: true,
            trusted_proxies: Vec::new(),
            request_rate: 1_000,
            request_burst: 5_000,
            max_text: 4_096,
            client_memory_mb: 0,
            client_memory_per_address_mb: 0,
            shared_addresses: vec![Network::LOOPBACK_IPV4, Network::LOOPBACK_IPV6],
            string_ids: false,
            ack_pause_ms: 1,
            full_trickle: false,
            rid_order: RidOrder::default(),
            opaqueid_in_api: false,
            accept_new_sessions: true,
            drain_timeout: Duration::from_secs(60),
            max_sessions: 100_000,
            max_sessions_per_connection: 0,
            max_handles_per_session: 20_000,
            outgoing_networks: Networks::default(),
        }
    }
}

impl Configuration for CoreConfig {
    const LIVE: &'static [&'static str] = &[
        "session_timeout",
        "reclaim_session_timeout",
        "candidates_timeout",
        "request_rate",
        "request_burst",
        "max_text",
        "client_memory_mb",
        "client_memory_per_address_mb",
        "ack_pause_ms",
        "full_trickle",
        "rid_order",
        "accept_new_sessions",
        "drain_timeout",
        "max_sessions",
        "max_sessions_per_connection",
        "max_handles_per_session",
    ];

    fn read(section: &mut Section<'_>) -> Self {
        let core: Self = section.keys();
        section.range("candidates_timeout", core.candidates_timeout, 1..=3_600);
        let named = core.tokens.iter().all(|stored| !stored.token.is_empty());
        section.require(
            &["tokens"],
            named,
            "expected text in quotes for token, got \"\"",
        );
        let short = |stored: &StoredToken| stored.token.len() <= MAX_TOKEN;
        let text = "expected 4096 bytes at most for token";
        section.require(&["tokens"], core.tokens.iter().all(short), text);
        section.range("request_burst", core.request_burst, 1..=1_000_000);
        section.range("max_text", core.max_text, 64..=64 << 20);
        section.range("client_memory_mb", core.client_memory_mb, 0..=MAX_MEMORY);
        let per_address = core.client_memory_per_address_mb;
        section.range("client_memory_per_address_mb", per_address, 0..=MAX_MEMORY);
        section.range("drain_timeout", core.drain_timeout.as_secs(), 0..=86_400);
        section.range("ack_pause_ms", core.ack_pause_ms, 0..=1_000);
        core
    }

    fn probe(&self, probe: &mut Probe) {
        let is_all = |network: &Network| network.parts().1 == 0;
        if self.trusted_proxies.iter().any(is_all) {
            probe.warning(
                "trusted_proxies",
                "everybody is a proxy, and may name any address as that of the client: name the proxies alone",
            );
        }
    }
}

impl CoreConfig {
    /// The configuration of tokens.
    pub(crate) fn tokens(&self) -> TokensConfig {
        TokensConfig {
            api_secret: self.api_secret.clone(),
            token_auth: self.token_auth,
            trust_loopback: self.trust_loopback,
            stored: self.tokens.clone(),
            signed_secret: self.token_auth_secret.clone(),
        }
    }

    /// Returns the budget of memory for clients.
    pub(crate) fn client_memory(&self) -> Budget {
        // Many clients are behind a proxy, even if it names them.
        let shared = [self.shared_addresses.as_slice(), &self.trusted_proxies].concat();
        Budget::new(self.client_memory_limits(), &shared, MEMORY_KEYS)
    }

    /// Returns how much memory clients may hold.
    pub(crate) fn client_memory_limits(&self) -> BudgetLimits {
        let mib = |mib: usize| mib.saturating_mul(1 << 20);
        let whole = match self.client_memory_mb {
            0 => usize::try_from(machine_memory() / 3).unwrap_or(usize::MAX),
            whole => mib(whole),
        };
        let address = match self.client_memory_per_address_mb {
            0 => whole / 4,
            address => mib(address),
        };
        BudgetLimits {
            whole,
            address,
            reserve: whole / TRUSTED_PART,
        }
    }

    /// Returns the budget of memory for clients of the Admin API. It is separate, so that operators
    /// get in whatever other clients hold.
    pub(crate) fn admin_memory(&self, clients: &Budget) -> Budget {
        clients.with_limits(self.admin_memory_limits(), MEMORY_KEYS)
    }

    /// Returns how much memory clients of the Admin API may hold.
    pub(crate) fn admin_memory_limits(&self) -> BudgetLimits {
        let clients = self.client_memory_limits();
        BudgetLimits {
            whole: clients.whole / TRUSTED_PART,
            address: clients.address / TRUSTED_PART,
            reserve: clients.reserve / TRUSTED_PART,
        }
    }

    pub(crate) fn ack_pause(&self) -> Duration {
        Duration::from_millis(self.ack_pause_ms.into())
    }

    pub(crate) fn reclaim_session_timeout(&self) -> Duration {
        Duration::from_secs(self.reclaim_session_timeout.into())
    }

    pub(crate) fn candidates_timeout(&self) -> Duration {
        Duration::from_secs(self.candidates_timeout.into())
    }
}

/// The member `name` of `info`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum InfoName {
    /// The name of this server.
    #[default]
    Portunus,
    /// The name of Janus, for clients that require it.
    Janus,
}

impl InfoName {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            InfoName::Portunus => "Portunus",
            InfoName::Janus => "Janus WebRTC Server",
        }
    }
}

/// The order of the rids of a simulcast offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RidOrder {
    /// High, medium, low: the first is the best.
    #[default]
    Hml,
    /// Low, medium, high: the last is the best.
    Lmh,
}

impl RidOrder {
    /// Returns the order with this name in a `jsep`.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        match name.to_ascii_lowercase().as_str() {
            "hml" => Some(RidOrder::Hml),
            "lmh" => Some(RidOrder::Lmh),
            _ => None,
        }
    }
}

impl From<RidOrder> for portunus_sdp::RidOrder {
    fn from(order: RidOrder) -> Self {
        match order {
            RidOrder::Hml => portunus_sdp::RidOrder::HighestFirst,
            RidOrder::Lmh => portunus_sdp::RidOrder::LowestFirst,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;

    #[test]
    fn an_empty_table_gives_the_defaults() {
        assert_eq!(
            toml::from_str::<CoreConfig>("").unwrap(),
            CoreConfig::default()
        );
    }

    #[test]
    fn a_proxy_has_no_limit_of_memory_of_its_own() {
        let config = CoreConfig {
            client_memory_mb: 8,
            shared_addresses: vec!["192.0.2.1".parse().unwrap()],
            trusted_proxies: vec!["192.0.2.2".parse().unwrap()],
            ..CoreConfig::default()
        };
        let budget = config.client_memory();
        for (address, has_limit) in [
            ("192.0.2.1", false),
            ("192.0.2.2", false),
            ("192.0.2.3", true),
        ] {
            let address: std::net::IpAddr = address.parse().unwrap();
            let taken = budget.purse(address.into()).take(4 << 20);
            assert_eq!(taken.is_err(), has_limit, "{address}");
        }
    }

    #[test]
    fn a_misspelt_key_is_refused() {
        let error = toml::from_str::<CoreConfig>("sesion_timeout = 3").unwrap_err();
        assert!(error.to_string().contains("sesion_timeout"), "{error}");
    }
}
