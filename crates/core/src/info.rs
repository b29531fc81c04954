//! The reply to `info`.

use std::net::IpAddr;
use std::sync::Arc;

use portunus_media::{MediaConfig, MediaSettings};
use portunus_record::Recorder;
use portunus_rtc::DTLS_MTU;
use portunus_turn::Turn;
use serde_json::{Map, Value, json};

use crate::events::{EventBus, EventsConfig};
use crate::{ClusterView, CoreConfig, JwtVerifier, Object, PluginInfo, RequestTraces};

/// Facts known at the start of the program, for `info` and for the core.
#[derive(Debug, Clone)]
pub struct ServerFacts {
    /// The commit of the build.
    pub commit: &'static str,
    /// The time of the build.
    pub build_time: &'static str,
    /// The address of media as the server sees it.
    pub local_ip: Option<IpAddr>,
    /// The addresses that clients get, if they differ.
    pub public_ips: Vec<IpAddr>,
    /// Whether IPv6 candidates are offered.
    pub ipv6: bool,
    /// Whether the ICE agent only answers checks.
    pub ice_lite: bool,
    /// Whether mDNS names in clients' candidates are resolved.
    pub mdns: bool,
    /// Whether clients may connect by TCP.
    pub ice_tcp: bool,
    /// The period of transport-wide feedback, in ms.
    pub twcc_period_ms: u32,
    /// How long a medium may be silent before clients are notified, in ms. 0 disables it for
    /// clients; plugins are still notified.
    pub no_media_ms: u32,
    /// The library for DTLS and SRTP, with its version.
    pub crypto: String,
    /// The enabled transports.
    pub transports: Vec<TransportInfo>,
    /// The recorder of plugins.
    pub recorder: Recorder,
    /// The TURN server, if it is on.
    pub turn: Option<Turn>,
    /// The bus of the server's events.
    pub events: EventBus,
    /// The configuration of statistics events.
    pub statistics: EventsConfig,
    /// Receives traces of requests, if they are collected.
    pub traces: Option<Arc<dyn RequestTraces>>,
    /// The verifier of JSON Web Tokens.
    pub jwt: JwtVerifier,
    /// The cluster, if the server is a node of one.
    pub cluster: Option<Arc<dyn ClusterView>>,
}

/// The defaults of the configuration.
impl Default for ServerFacts {
    fn default() -> Self {
        let media = MediaConfig::default();
        ServerFacts {
            commit: "",
            build_time: "",
            local_ip: None,
            public_ips: Vec::new(),
            ipv6: false,
            ice_lite: false,
            mdns: media.mdns,
            ice_tcp: false,
            twcc_period_ms: media.twcc_period_ms,
            no_media_ms: media.no_media_ms,
            crypto: String::new(),
            transports: Vec::new(),
            recorder: Recorder::default(),
            turn: None,
            events: EventBus::default(),
            statistics: EventsConfig::default(),
            traces: None,
            jwt: JwtVerifier::default(),
            cluster: None,
        }
    }
}

/// A transport in `info`.
#[derive(Debug, Clone)]
pub struct TransportInfo {
    /// Its package, for example `janus.transport.http`.
    pub package: &'static str,
    /// A name for people.
    pub name: &'static str,
    /// A description in one sentence.
    pub description: &'static str,
}

const AUTHOR: &str = "The Portunus authors";
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The version of Janus whose API is spoken. Clients derive the supported requests from it.
const JANUS_VERSION: u64 = 1402;
const JANUS_VERSION_STRING: &str = "1.4.2";

/// Returns the version as a number: 1.2.3 is 1203.
fn version_number() -> u64 {
    let number = |part: &str| part.parse::<u64>().unwrap_or(0);
    let major = number(env!("CARGO_PKG_VERSION_MAJOR"));
    let minor = number(env!("CARGO_PKG_VERSION_MINOR"));
    let patch = number(env!("CARGO_PKG_VERSION_PATCH"));
    major * 1000 + minor * 100 + patch
}

/// The state of the server that `info` shows.
#[derive(Debug)]
pub(crate) struct ServerState<'a> {
    pub(crate) config: &'a CoreConfig,
    pub(crate) facts: &'a ServerFacts,
    pub(crate) media: MediaSettings,
    /// The public addresses that were found at run time.
    pub(crate) found_ips: Vec<IpAddr>,
    pub(crate) session_timeout: u32,
    /// Whether new sessions are accepted.
    pub(crate) accepting: bool,
    pub(crate) plugins: Vec<PluginInfo>,
}

/// Returns the `server_info` object.
pub(crate) fn server_info(state: &ServerState<'_>, transaction: Option<&str>) -> Value {
    let ServerState {
        config,
        facts,
        media,
        found_ips,
        session_timeout,
        accepting,
        plugins,
    } = state;
    let members = json!({
        "name": config.info_name.name(),
        "version": JANUS_VERSION,
        "version_string": JANUS_VERSION_STRING,
        "portunus-version": VERSION,
        "author": AUTHOR,
        "commit-hash": facts.commit,
        "compile-time": facts.build_time,
        "log-to-stdout": true,
        "log-to-file": false,
        "data_channels": true,
        "accepting-new-sessions": accepting,
        "session-timeout": session_timeout,
        "reclaim-session-timeout": config.reclaim_session_timeout,
        "candidates-timeout": config.candidates_timeout,
        "server-name": config.server_name,
        "local-ip": facts.local_ip.map(|ip| ip.to_string()).unwrap_or_default(),
        "ipv6": facts.ipv6,
        "ice-lite": facts.ice_lite,
        "ice-tcp": facts.ice_tcp,
        "ice-nomination": "regular",
        "ice-consent-freshness": true,
        "ice-keepalive-conncheck": true,
        "hangup-on-failed": true,
        "full-trickle": config.full_trickle,
        "mdns-enabled": facts.mdns,
        "min-nack-queue": media.nack_queue.as_millis() as u64,
        "nack-optimizations": media.nack_optimizations,
        "twcc-period": facts.twcc_period_ms,
        "dtls-mtu": DTLS_MTU,
        "static-event-loops": 0,
        "api_secret": config.api_secret.is_some(),
        "auth_token": config.token_auth,
        "event_handlers": !facts.events.handlers().is_empty(),
        "opaqueid_in_api": config.opaqueid_in_api,
        "string_ids": config.string_ids,
        "dependencies": { "crypto": facts.crypto },
    });
    let public_ips = facts.public_ips.iter().chain(found_ips);
    let public_ips: Vec<String> = public_ips.map(|ip| ip.to_string()).collect();
    let transports = facts.transports.iter();
    let transports: Map<_, _> = transports
        .map(|t| entry(t.package, t.name, t.description, VERSION, version_number()))
        .collect();
    let events = facts.events.handlers().into_iter();
    let events: Map<_, _> = events
        .map(|h| {
            entry(
                h.package,
                h.name,
                h.description,
                h.version_string,
                h.version.into(),
            )
        })
        .collect();
    let plugins: Map<_, _> = plugins
        .iter()
        .map(|p| {
            entry(
                p.package,
                p.name,
                p.description,
                p.version_string,
                p.version.into(),
            )
        })
        .collect();
    Object::new()
        .with("janus", "server_info")
        .with_some("transaction", transaction)
        .with_all(members)
        .with_some("ipv6-link-local", facts.ipv6.then_some(false))
        .with_some("public-ip", public_ips.first().cloned())
        .with_some("public-ips", (public_ips.len() > 1).then_some(public_ips))
        .with("transports", transports)
        .with("events", events)
        .with("loggers", json!({}))
        .with("plugins", plugins)
        .into()
}

fn entry(
    package: &str,
    name: &str,
    description: &str,
    version_string: &str,
    version: u64,
) -> (String, Value) {
    let value = json!({
        "name": name,
        "author": AUTHOR,
        "description": description,
        "version_string": version_string,
        "version": version,
    });
    (package.to_owned(), value)
}
