//! Reads the configuration again while the server runs: SIGHUP, and `reload` of the Admin API.
//!
//! The configuration and all files that it names are read before anything changes, so that a
//! mistake changes nothing.

use std::sync::Arc;

use portunus_api::{PreparedTransports, TransportsReload};
use portunus_core::configuration::Sections;
use portunus_core::{
    Gateway, JwtVerifier, PluginReloaded, Reloaded, Reloader, Reloading, StartedPlugin,
    certificate_expiry,
};
use portunus_livekit::LiveKit;
use portunus_media::{MediaIdentity, MediaPlane};
use tokio::sync::Mutex;

use crate::config::{Config, ConfigError, LogConfig};
use crate::logging::LogReload;
use crate::supervisor;

/// Reads the configuration as the command line says.
pub(crate) type Read = Arc<dyn Fn() -> Result<Config, ConfigError> + Send + Sync>;

/// Applies the configuration to the parts of a running server.
pub(crate) struct Reload {
    read: Read,
    gateway: Gateway,
    media: MediaPlane,
    transports: TransportsReload,
    log: LogReload,
    /// `None` without LiveKit's protocol.
    livekit: Option<LiveKit>,
    /// Serializes reloads.
    state: Mutex<State>,
}

/// A running plugin, with its name in the configuration.
pub(crate) type NamedPlugin = (&'static str, StartedPlugin);

struct State {
    /// The configuration in effect.
    running: Sections,
    log: LogConfig,
    plugins: Vec<NamedPlugin>,
}

/// Everything that was read.
struct Prepared {
    config: Config,
    sections: Sections,
    jwt: JwtVerifier,
    transports: PreparedTransports,
    /// `None` for a certificate that is made at each start.
    identity: Option<MediaIdentity>,
}

impl Reload {
    /// `running` is the configuration at the start.
    pub(crate) fn new(
        read: Read,
        (running, log): (Sections, LogConfig),
        plugins: Vec<NamedPlugin>,
        (gateway, media): (Gateway, MediaPlane),
        (transports, log_control): (TransportsReload, LogReload),
        livekit: Option<LiveKit>,
    ) -> Self {
        Reload {
            read,
            gateway,
            media,
            transports,
            log: log_control,
            livekit,
            state: Mutex::new(State {
                running,
                log,
                plugins,
            }),
        }
    }

    /// Applies the present configuration, and logs the outcome.
    pub(crate) async fn apply(&self) -> Result<Reloaded, String> {
        supervisor::reloading();
        let outcome = self.apply_all().await;
        supervisor::ready();
        match &outcome {
            Ok(reloaded) => {
                let Reloaded {
                    changed, restart, ..
                } = reloaded;
                tracing::info!(
                    changed = changed.join(", "),
                    "the configuration is reloaded"
                );
                if !restart.is_empty() {
                    let keys = restart.join(", ");
                    tracing::warn!(keys, "these changes need a restart");
                }
                for warning in &reloaded.warnings {
                    tracing::warn!("{warning}");
                }
            }
            Err(error) => tracing::error!(
                "the configuration is not reloaded, and everything is as it was: {error}"
            ),
        }
        outcome
    }

    async fn apply_all(&self) -> Result<Reloaded, String> {
        let mut state = self.state.lock().await;
        let prepared = tokio::task::block_in_place(|| self.prepare(&state))?;
        let Prepared {
            config,
            sections,
            jwt,
            transports,
            identity,
        } = prepared;
        let changes = state.running.changes(&sections);
        let mut reloaded = Reloaded {
            changed: changes.live,
            restart: changes.restart,
            warnings: Vec::new(),
        };
        let has_changed =
            |reloaded: &Reloaded, key: &str| reloaded.changed.iter().any(|it| it == key);
        tokio::task::block_in_place(|| note_certificates(&self.gateway, &config));
        self.gateway
            .configure(&config.core)
            .map_err(|error| error.to_string())?;
        self.gateway.set_jwt(jwt);
        self.log.apply(&state.log, &config.log);
        if has_changed(&reloaded, "media.no_media_ms") {
            self.gateway.set_no_media_ms(config.media.no_media_ms);
        }
        if has_changed(&reloaded, "media.slow_link_threshold") {
            let threshold = config.media.slow_link_threshold;
            self.media.set_slow_link_threshold(threshold);
        }
        if identity.is_some_and(|identity| self.media.set_identity(identity)) {
            reloaded
                .changed
                .push("media: another certificate".to_owned());
        }
        if self.transports.apply(transports) {
            reloaded.changed.push("tls: another certificate".to_owned());
        }
        if let Some(livekit) = &self.livekit {
            livekit.configure(&config.livekit);
        }
        for new in config.plugins {
            let name = new.name();
            let mut plugins = state.plugins.iter_mut();
            if let Some((_, plugin)) = plugins.find(|(known, _)| *known == name) {
                let PluginReloaded { changed, warnings } = plugin.reload(new.own).await;
                let named = |text: String| format!("{name}: {text}");
                reloaded.changed.extend(changed.into_iter().map(named));
                reloaded.warnings.extend(warnings.into_iter().map(named));
            }
        }
        state.running.take_live(&sections);
        state.log = config.log;
        Ok(reloaded)
    }

    /// Reads everything, and changes nothing. Blocks.
    fn prepare(&self, state: &State) -> Result<Prepared, String> {
        let config = (self.read)().map_err(|error| error.to_string())?;
        let sections = config.sections().map_err(|error| error.to_string())?;
        let jwt = JwtVerifier::load(config.jwt.clone()).map_err(|error| error.to_string())?;
        let transports = self.transports.prepare(&config.api);
        let transports = transports.map_err(|error| error.to_string())?;
        let has_certificate = config.media.certificate.is_some();
        let identity = has_certificate.then(|| config.media.identity());
        let identity = identity.transpose().map_err(|error| error.to_string())?;
        for new in &config.plugins {
            let mut plugins = state.plugins.iter();
            if let Some((_, plugin)) = plugins.find(|(name, _)| *name == new.name()) {
                let checked = plugin.check_reload(&new.own);
                checked.map_err(|error| error.to_string())?;
            }
        }
        Ok(Prepared {
            config,
            sections,
            jwt,
            transports,
            identity,
        })
    }
}

/// Sets the expiry of certificates for metrics. Blocks.
pub(crate) fn note_certificates(gateway: &Gateway, config: &Config) {
    for (name, file) in [
        ("tls", &config.api.tls.certificate),
        ("dtls", &config.media.certificate),
    ] {
        let expiry = file.as_deref().and_then(certificate_expiry);
        gateway.set_certificate_expiry(name, expiry);
    }
}

impl Reloader for Reload {
    fn reload(&self) -> Reloading<'_> {
        Box::pin(self.apply())
    }
}
