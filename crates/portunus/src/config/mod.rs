//! The configuration: one optional TOML file in which every key has a default. Its sections are
//! here; their keys are beside what they configure.

mod announced;
mod http_url;
mod log;
mod plugins;
mod probe;
mod stun_server;
mod traces;
mod turn_client;
mod turn_server;

use std::io;
use std::path::{Path, PathBuf};

use portunus_admin::AdminConfig;
use portunus_api::{
    AdminApiConfig, ApiConfig, HttpConfig, MqttConfig, NatsConfig, RabbitConfig, TlsConfig,
    UnixConfig, WebSocketConfig, WhipConfig,
};
use portunus_audio::AudioConfig;
use portunus_cluster::ClusterConfig;
use portunus_core::configuration::{
    self, Configuration, Listener, Mistake, PrintError, Section, Sections, keys_of,
};
use portunus_core::events::{EventHandlerConfig, EventHandlerRegistration, EventsConfig};
use portunus_core::record::RecorderConfig;
use portunus_core::{CoreConfig, JwtConfig};
use portunus_livekit::{KeysError, LiveKitConfig};
use portunus_media::MediaConfig;
use portunus_turn::TurnConfig;
use serde::{Deserialize, Serialize};

pub(crate) use announced::{Announced, ResolveError};
pub(crate) use http_url::HttpUrl;
pub(crate) use log::{LogConfig, LogFormat, filter};
use plugins::PluginSettings;
pub(crate) use stun_server::StunServer;
pub(crate) use traces::TracesConfig;
pub(crate) use turn_client::{RestMethod, TurnClientConfig};
pub(crate) use turn_server::{TurnTransport, TurnUri};

use crate::event_handlers::EVENT_HANDLERS;

/// The default path of the file.
pub(crate) const DEFAULT_FILE: &str = "/etc/portunus/portunus.toml";

/// Overrides `log.filter` for one run.
const VARIABLE: &str = "PORTUNUS_LOG";

/// Adds API keys to `livekit.keys`, as `livekit-server` reads it.
const LIVEKIT_KEYS: &str = "LIVEKIT_KEYS";

/// The whole configuration.
#[derive(Debug)]
pub(crate) struct Config {
    pub(crate) core: CoreConfig,
    pub(crate) jwt: JwtConfig,
    /// Its `announced` stays empty until [`Config::resolve_announced`].
    pub(crate) media: MediaConfig,
    pub(crate) reached: Reached,
    pub(crate) turn_client: TurnClientConfig,
    pub(crate) turn: TurnConfig,
    pub(crate) audio: AudioConfig,
    pub(crate) api: ApiConfig,
    pub(crate) admin: AdminConfig,
    pub(crate) livekit: LiveKitConfig,
    pub(crate) cluster: ClusterConfig,
    pub(crate) log: LogConfig,
    pub(crate) traces: TracesConfig,
    pub(crate) recording: RecorderConfig,
    pub(crate) events: EventsConfig,
    pub(crate) event_handlers: Vec<EventHandlerConfig>,
    pub(crate) plugins: Vec<PluginSettings>,
    /// All configured ports, except those that the kernel chooses.
    pub(crate) listeners: Vec<Listener>,
}

/// The keys of `[media]` with host names.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Reached {
    pub(crate) announced: Vec<Announced>,
    /// The server that reports the public address, if configured.
    #[serde(with = "configuration::optional")]
    pub(crate) stun_server: Option<StunServer>,
}

/// The reason why there is no configuration.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    #[error("cannot read the configuration {}: {error}", path.display())]
    Read { path: PathBuf, error: io::Error },
    #[error("{VARIABLE} in the environment: {0}")]
    Filter(String),
    #[error("{LIVEKIT_KEYS} in the environment: {0}")]
    LiveKitKeys(#[from] KeysError),
    #[error("{}", lines(path, mistakes))]
    Mistakes {
        path: PathBuf,
        mistakes: Vec<Mistake>,
    },
}

fn lines(path: &Path, mistakes: &[Mistake]) -> String {
    let line = |m: &Mistake| format!("{}:{}: {}", path.display(), m.line, m.text);
    mistakes.iter().map(line).collect::<Vec<_>>().join("\n")
}

impl Default for Config {
    fn default() -> Self {
        configuration::defaults(Self::read)
    }
}

impl Config {
    /// Reads a file.
    pub(crate) fn load(path: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path).map_err(|error| ConfigError::Read {
            path: path.to_owned(),
            error,
        })?;
        Self::parse(&text).map_err(|mistakes| ConfigError::Mistakes {
            path: path.to_owned(),
            mistakes,
        })
    }

    /// Applies environment variables, which take precedence over the file.
    pub(crate) fn read_environment(&mut self) -> Result<(), ConfigError> {
        if let Some(text) = std::env::var_os(VARIABLE).filter(|text| !text.is_empty()) {
            let text = text.to_string_lossy().into_owned();
            filter(&text).map_err(ConfigError::Filter)?;
            self.log.filter = text;
        }
        if let Some(text) = std::env::var_os(LIVEKIT_KEYS) {
            self.livekit.add_keys(&text.to_string_lossy())?;
        }
        Ok(())
    }

    /// Parses a file's text.
    pub(crate) fn parse(text: &str) -> Result<Self, Vec<Mistake>> {
        configuration::read(text, Self::read)
    }

    /// Reads all sections.
    fn read(file: &mut Section<'_>) -> Self {
        let core = file.section("server", CoreConfig::read);
        let jwt = file.section("jwt", JwtConfig::read);
        let (reached, turn_client, media) = file.section("media", |section| {
            let reached: Reached = section.keys();
            let turn_client = TurnClientConfig::read(section);
            let media = MediaConfig::read(section);
            turn_client.fit(&media, section);
            (reached, turn_client, media)
        });
        let turn = file.section("turn", TurnConfig::read);
        let audio = file.section("audio", AudioConfig::read);
        let (event_handlers, events) = file.section("events", |section| {
            let read = |handler: &EventHandlerRegistration| handler.read(section);
            let handlers: Vec<_> = EVENT_HANDLERS.iter().map(read).collect();
            (handlers, EventsConfig::read(section))
        });
        let http = file.section("http", HttpConfig::read);
        let whip = file.section("whip", WhipConfig::read);
        let websocket = file.section("websocket", WebSocketConfig::read);
        let unix = file.section("unix", UnixConfig::read);
        let (admin, admin_api) = file.section("admin", |section| {
            let (access, api) = (AdminConfig::read(section), AdminApiConfig::read(section));
            api.listen(access.secret.is_some(), section);
            (access, api)
        });
        let (mqtt, rabbitmq, nats) = (
            file.section("mqtt", MqttConfig::read),
            file.section("rabbitmq", RabbitConfig::read),
            file.section("nats", NatsConfig::read),
        );
        let livekit = file.section("livekit", LiveKitConfig::read);
        let cluster = file.section("cluster", ClusterConfig::read);
        let tls = file.section("tls", TlsConfig::read);
        for (on, key) in [
            (http.https, "http.https"),
            (websocket.wss, "websocket.wss"),
            (admin_api.https, "admin.https"),
            (admin_api.wss, "admin.wss"),
            (turn.tls, "turn.tls"),
            (livekit.tls && livekit.is_on(), "livekit.tls"),
        ] {
            // One without the other is a separate mistake.
            let has_certificate = tls.certificate.is_some() || tls.key.is_some();
            let keys = &[key, "tls.certificate", "tls.key"];
            let text = "needs tls.certificate and tls.key";
            file.require_within(keys, !on || has_certificate, text);
        }
        let log = file.section("log", LogConfig::read);
        let traces = file.section("traces", TracesConfig::read);
        let recording = file.section("recording", RecorderConfig::read);
        let plugins = PluginSettings::read_all(file);
        Config {
            core,
            jwt,
            media,
            reached,
            turn_client,
            turn,
            audio,
            api: ApiConfig {
                http,
                whip,
                websocket,
                unix,
                mqtt,
                rabbitmq,
                nats,
                admin: admin_api,
                tls,
            },
            admin,
            livekit,
            cluster,
            log,
            traces,
            recording,
            events,
            event_handlers,
            plugins,
            listeners: file.listeners(),
        }
    }

    /// Returns the configuration as a file.
    pub(crate) fn to_toml(&self) -> Result<String, PrintError> {
        self.sections()?.into_text()
    }

    /// Returns all sections with their values, and which keys can change while the server runs.
    pub(crate) fn sections(&self) -> Result<Sections, PrintError> {
        let mut sections = Sections::default();
        sections.add_part("server", &self.core)?;
        sections.add_part("jwt", &self.jwt)?;
        sections.add("media", keys_of(&self.reached)?, &[]);
        sections.add("media", keys_of(&self.turn_client)?, &[]);
        sections.add_part("media", &self.media)?;
        sections.add_part("turn", &self.turn)?;
        sections.add_part("audio", &self.audio)?;
        sections.add_part("http", &self.api.http)?;
        sections.add_part("whip", &self.api.whip)?;
        sections.add_part("websocket", &self.api.websocket)?;
        sections.add_part("unix", &self.api.unix)?;
        sections.add_part("mqtt", &self.api.mqtt)?;
        sections.add_part("rabbitmq", &self.api.rabbitmq)?;
        sections.add_part("nats", &self.api.nats)?;
        sections.add_part("admin", &self.admin)?;
        sections.add_part("admin", &self.api.admin)?;
        sections.add_part("livekit", &self.livekit)?;
        sections.add_part("cluster", &self.cluster)?;
        sections.add_part("tls", &self.api.tls)?;
        sections.add_part("log", &self.log)?;
        sections.add_part("traces", &self.traces)?;
        sections.add_part("recording", &self.recording)?;
        sections.add_part("events", &self.events)?;
        for handler in &self.event_handlers {
            let name = format!("events.{}", handler.name());
            sections.add(&name, handler.keys()?, handler.live());
        }
        PluginSettings::add_all(&self.plugins, &mut sections)?;
        Ok(sections)
    }

    /// Updates the number of media ports in the listeners, since the command line may have changed
    /// it.
    pub(crate) fn count_media_ports(&mut self) {
        let more = u16::try_from(self.media.port_count().saturating_sub(1)).unwrap_or(u16::MAX);
        let of_media = |it: &&mut Listener| it.key.starts_with("media.");
        for listener in self.listeners.iter_mut().filter(of_media) {
            let first = *listener.ports.start();
            listener.ports = first..=first.saturating_add(more);
        }
    }

    /// Resolves the announced addresses, and sets them in the media plane's configuration.
    pub(crate) async fn resolve_announced(&mut self) -> Result<(), ResolveError> {
        for entry in &self.reached.announced {
            self.media.announced.extend(entry.resolve().await?);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
