//! The configuration: one optional TOML file, every key of which has a default.

mod announced;
mod entry;
mod keys;
mod printer;
mod reader;
mod value;

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use portunus_api::ApiConfig;
use portunus_core::record::RecorderConfig;
use portunus_core::{CoreConfig, Networks};
use portunus_media::MediaConfig;
use portunus_streaming::{ConfiguredMountpoint, StreamingConfig};
use portunus_videoroom::{ConfiguredRoom, VideoRoomConfig};
use tracing_subscriber::EnvFilter;

use announced::Announced;
pub(crate) use announced::ResolveError;
use keys::{EntryMistake, Keys};
use printer::Printer;
use reader::Mistake;
pub(crate) use value::LogFormat;

/// Where the file is looked for when none is named.
pub(crate) const DEFAULT_FILE: &str = "/etc/portunus/portunus.toml";

/// Everything that can be configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Config {
    pub(crate) core: CoreConfig,
    /// Where requests may have the server send media to.
    pub(crate) outgoing: Networks,
    /// Its `announced` stays empty until [`Config::resolve_announced`].
    pub(crate) media: MediaConfig,
    pub(crate) announced: Vec<Announced>,
    pub(crate) api: ApiConfig,
    pub(crate) log: LogConfig,
    pub(crate) recording: RecorderConfig,
    pub(crate) echotest: PluginConfig,
    pub(crate) videocall: PluginConfig,
    pub(crate) streaming_plugin: PluginConfig,
    pub(crate) streaming: StreamingConfig,
    pub(crate) videoroom_plugin: PluginConfig,
    pub(crate) videoroom: VideoRoomConfig,
}

/// How the server logs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LogConfig {
    /// Levels by module, as the crate tracing-subscriber reads them.
    pub(crate) filter: String,
    pub(crate) format: LogFormat,
}

/// What is the same for all plugins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PluginConfig {
    pub(crate) enabled: bool,
}

/// Why there is no configuration.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    #[error("cannot read the configuration {}: {error}", path.display())]
    Read { path: PathBuf, error: io::Error },
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
        Self {
            core: CoreConfig::default(),
            outgoing: Networks::default(),
            media: MediaConfig::default(),
            announced: Vec::new(),
            api: ApiConfig::default(),
            log: LogConfig {
                filter: "info".into(),
                format: LogFormat::Text,
            },
            recording: RecorderConfig::default(),
            echotest: PluginConfig { enabled: true },
            videocall: PluginConfig { enabled: true },
            streaming_plugin: PluginConfig { enabled: true },
            streaming: StreamingConfig::default(),
            videoroom_plugin: PluginConfig { enabled: true },
            videoroom: VideoRoomConfig::default(),
        }
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

    /// Reads a file's text.
    pub(crate) fn parse(text: &str) -> Result<Self, Vec<Mistake>> {
        let mut config = Self::default();
        reader::read(text, |keys| config.visit(keys))?;
        Ok(config)
    }

    /// The configuration as a file.
    pub(crate) fn to_toml(&self) -> String {
        let mut printer = Printer::default();
        self.clone().visit(&mut printer);
        printer.into_text()
    }

    /// Puts the announced addresses into the media plane's configuration; names are looked up.
    pub(crate) async fn resolve_announced(&mut self) -> Result<(), ResolveError> {
        for entry in &self.announced {
            self.media.announced.extend(entry.resolve().await?);
        }
        Ok(())
    }

    /// Goes over all keys: this is where they are named.
    fn visit(&mut self, keys: &mut impl Keys) {
        let Self {
            core,
            outgoing,
            media,
            announced,
            api,
            log,
            recording,
            echotest,
            videocall,
            streaming_plugin,
            streaming,
            videoroom_plugin,
            videoroom,
        } = self;
        keys.section("server", |keys| {
            visit_core(core, keys);
            keys.key("outgoing_networks", &mut outgoing.0);
        });
        keys.section("media", |keys| visit_media(media, announced, keys));
        keys.section("http", |keys| visit_http(api, keys));
        keys.section("whip", |keys| visit_whip(api, keys));
        keys.section("websocket", |keys| visit_websocket(api, keys));
        keys.section("unix", |keys| visit_unix(api, keys));
        keys.section("tls", |keys| {
            keys.key("certificate", &mut api.tls.certificate);
            keys.key("key", &mut api.tls.key);
        });
        keys.section("log", |keys| {
            keys.checked("filter", &mut log.filter, |filter| {
                let parsed = EnvFilter::try_new(filter);
                parsed.map(drop).map_err(|error| error.to_string())
            });
            keys.key("format", &mut log.format);
        });
        keys.section("recording", |keys| visit_recording(recording, keys));
        keys.section("plugins", |keys| {
            keys.section("echotest", |keys| visit_plugin(echotest, keys));
            keys.section("videocall", |keys| visit_plugin(videocall, keys));
            keys.section("streaming", |keys| visit_plugin(streaming_plugin, keys));
            keys.section("videoroom", |keys| visit_plugin(videoroom_plugin, keys));
        });
        keys.section("streaming", |keys| visit_streaming(streaming, keys));
        keys.section("videoroom", |keys| visit_videoroom(videoroom, keys));
    }
}

fn visit_core(core: &mut CoreConfig, keys: &mut impl Keys) {
    keys.key("server_name", &mut core.server_name);
    keys.key("session_timeout", &mut core.session_timeout);
    keys.key("reclaim_session_timeout", &mut core.reclaim_session_timeout);
    keys.ranged(
        "candidates_timeout",
        &mut core.candidates_timeout,
        1..=3_600,
    );
    keys.key("api_secret", &mut core.api_secret);
    keys.key("token_auth", &mut core.token_auth);
    keys.key("tokens", &mut core.tokens);
    keys.key("token_auth_secret", &mut core.token_auth_secret);
    keys.key("string_ids", &mut core.string_ids);
    keys.key("full_trickle", &mut core.full_trickle);
    keys.key("rid_order", &mut core.rid_order);
    keys.key("opaqueid_in_api", &mut core.opaqueid_in_api);
    keys.key("accept_new_sessions", &mut core.accept_new_sessions);
    keys.key("max_sessions", &mut core.max_sessions);
    keys.key(
        "max_sessions_per_connection",
        &mut core.max_sessions_per_connection,
    );
    keys.key("max_handles_per_session", &mut core.max_handles_per_session);
}

fn visit_media(media: &mut MediaConfig, announced: &mut Vec<Announced>, keys: &mut impl Keys) {
    keys.ranged("workers", &mut media.workers, 0..=1_024);
    keys.key("pin", &mut media.pin);
    keys.key("port", &mut media.port);
    keys.key("bind", &mut media.bind);
    keys.key("announced", announced);
    keys.key("loopback", &mut media.loopback);
    keys.key("ipv6", &mut media.ipv6);
    keys.key("ice_lite", &mut media.ice_lite);
    keys.key("ice_tcp", &mut media.ice_tcp);
    let ice_tcp = media.ice_tcp;
    keys.checked("ice_tcp_port", &mut media.ice_tcp_port, |port| {
        match *port == 0 || ice_tcp {
            true => Ok(()),
            false => Err("needs media.ice_tcp = true".into()),
        }
    });
    let (mut certificate, mut key) = media.certificate.clone().unzip();
    let has_key = keys.gives("key");
    let checked = |file: &Option<PathBuf>| match file.is_none() || has_key {
        true => Ok(()),
        false => Err("needs media.key".into()),
    };
    keys.checked("certificate", &mut certificate, checked);
    keys.checked("key", &mut key, |key: &Option<PathBuf>| {
        match key.is_some() == certificate.is_some() {
            true => Ok(()),
            false => Err("needs media.certificate, and the other way round".into()),
        }
    });
    media.certificate = certificate.zip(key);
    keys.key("bandwidth_adaptation", &mut media.bandwidth_adaptation);
    keys.ranged("busy_poll_us", &mut media.busy_poll_us, 0..=1_000_000);
    keys.key("real_time", &mut media.real_time);
    keys.ranged("twcc_period_ms", &mut media.twcc_period_ms, 10..=1_000);
    keys.key("no_media_ms", &mut media.no_media_ms);
    keys.key("slow_link_threshold", &mut media.slow_link_threshold);
}

fn visit_http(api: &mut ApiConfig, keys: &mut impl Keys) {
    let http = &mut api.http;
    keys.key("enabled", &mut http.enabled);
    keys.key("bind", &mut http.bind);
    keys.key("port", &mut http.port);
    keys.key("https", &mut http.https);
    keys.key("https_port", &mut http.https_port);
    keys.checked("base_path", &mut http.base_path, |path| base_path(path));
    keys.key("pages", &mut http.pages);
    keys.key("metrics", &mut http.metrics);
    keys.key("metrics_bind", &mut http.metrics_bind);
    keys.checked("allow_origin", &mut http.allow_origin, |origin| {
        let visible = !origin.is_empty() && origin.bytes().all(|b| b.is_ascii_graphic());
        visible
            .then_some(())
            .ok_or("expected * or an origin such as https://example.org".into())
    });
    keys.key("enforce_origin", &mut http.enforce_origin);
    keys.ranged("max_body", &mut http.max_body, 1_024..=64 << 20);
    keys.ranged("max_connections", &mut http.max_connections, 1..=1_000_000);
    keys.ranged(
        "request_timeout",
        &mut http.request_timeout,
        seconds(1)..=seconds(600),
    );
    keys.ranged("long_poll", &mut http.long_poll, seconds(1)..=seconds(600));
}

fn visit_whip(api: &mut ApiConfig, keys: &mut impl Keys) {
    let whip = &mut api.whip;
    keys.key("enabled", &mut whip.enabled);
    keys.key("authorization", &mut whip.authorization);
    keys.key("ice_servers", &mut whip.ice_servers);
    keys.checked("allow_origins", &mut whip.allow_origins, |origins| {
        let wrong = |origin: &&String| {
            let visible = !origin.is_empty() && origin.bytes().all(|b| b.is_ascii_graphic());
            !visible || origin.ends_with('/')
        };
        match origins.iter().find(wrong) {
            None => Ok(()),
            Some(origin) => Err(format!(
                "expected \"*\" or origins such as \"https://example.org\" (no slash at the end), got {origin:?}"
            )),
        }
    });
    keys.ranged("max_sessions", &mut whip.max_sessions, 1..=10_000_000);
    keys.ranged("max_body", &mut whip.max_body, 1_024..=1 << 20);
    keys.ranged(
        "connect_timeout",
        &mut whip.connect_timeout,
        seconds(1)..=seconds(600),
    );
}

fn base_path(path: &str) -> Result<(), String> {
    let segment = |s: &str| {
        !s.is_empty()
            && s.bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"-_.~".contains(&b))
    };
    match path.strip_prefix('/') {
        // These paths are the server's own.
        Some("whip" | "whep" | "healthz" | "metrics") => Err(format!("{path:?} is taken")),
        Some(rest) if rest.split('/').all(segment) => Ok(()),
        _ => Err(format!(
            "expected a path such as \"/janus\" (no slash at its end), got {path:?}"
        )),
    }
}

fn visit_websocket(api: &mut ApiConfig, keys: &mut impl Keys) {
    let websocket = &mut api.websocket;
    keys.key("enabled", &mut websocket.enabled);
    keys.key("bind", &mut websocket.bind);
    keys.key("port", &mut websocket.port);
    keys.key("wss", &mut websocket.wss);
    keys.key("wss_port", &mut websocket.wss_port);
    keys.key("ping_interval", &mut websocket.ping_interval);
    keys.ranged(
        "ping_timeout",
        &mut websocket.ping_timeout,
        seconds(1)..=seconds(600),
    );
    keys.ranged("max_message", &mut websocket.max_message, 1_024..=64 << 20);
    keys.ranged(
        "write_timeout",
        &mut websocket.write_timeout,
        seconds(1)..=seconds(600),
    );
    keys.ranged(
        "max_connections",
        &mut websocket.max_connections,
        1..=1_000_000,
    );
}

fn visit_unix(api: &mut ApiConfig, keys: &mut impl Keys) {
    let unix = &mut api.unix;
    keys.key("path", &mut unix.path);
    keys.key("kind", &mut unix.kind);
    keys.key("mode", &mut unix.mode);
    keys.ranged("max_message", &mut unix.max_message, 1_024..=1 << 20);
    keys.ranged("max_connections", &mut unix.max_connections, 1..=1_000_000);
}

fn visit_recording(recording: &mut RecorderConfig, keys: &mut impl Keys) {
    keys.key("enabled", &mut recording.enabled);
    keys.key("dir", &mut recording.dir);
    keys.key("folders", &mut recording.folders);
    keys.checked("temporary", &mut recording.temporary, |suffix| {
        let plain = suffix.len() <= 16 && suffix.bytes().all(|b| b.is_ascii_alphanumeric());
        plain
            .then_some(())
            .ok_or("expected letters and digits, 16 at most".into())
    });
    keys.key("overwrite", &mut recording.overwrite);
    keys.key("max_file_bytes", &mut recording.max_file_bytes);
    keys.key("keep_free_mb", &mut recording.keep_free_mb);
}

fn visit_plugin(plugin: &mut PluginConfig, keys: &mut impl Keys) {
    keys.key("enabled", &mut plugin.enabled);
}

fn visit_streaming(streaming: &mut StreamingConfig, keys: &mut impl Keys) {
    keys.key("admin_key", &mut streaming.admin_key);
    keys.key("rtp_port_range", &mut streaming.rtp_port_range);
    keys.key("string_ids", &mut streaming.string_ids);
    keys.key("save", &mut streaming.save);
    let string_ids = streaming.string_ids;
    keys.sections(
        "mountpoint",
        &mut streaming.mountpoints,
        |members, former| {
            let mountpoint = ConfiguredMountpoint::read(members, string_ids);
            let mountpoint = mountpoint.map_err(|problem| EntryMistake {
                within: problem.media.map(|index| ("media", index)),
                text: problem.to_string(),
                key: problem.key,
            })?;
            let twice = |key: &str| EntryMistake {
                within: None,
                key: key.to_owned(),
                text: format!("another mountpoint has this {key}"),
            };
            for other in former {
                if other.name() == mountpoint.name() {
                    return Err(twice("name"));
                }
                if other.id().is_some() && other.id() == mountpoint.id() {
                    return Err(twice("id"));
                }
            }
            Ok(mountpoint)
        },
        ConfiguredMountpoint::to_members,
    );
}

fn visit_videoroom(videoroom: &mut VideoRoomConfig, keys: &mut impl Keys) {
    keys.key("admin_key", &mut videoroom.admin_key);
    keys.key("lock_rtp_forward", &mut videoroom.lock_rtp_forward);
    keys.key("string_ids", &mut videoroom.string_ids);
    keys.key("save", &mut videoroom.save);
    let string_ids = videoroom.string_ids;
    let mistake = |key: &str, text: String| EntryMistake {
        within: None,
        key: key.to_owned(),
        text,
    };
    keys.sections(
        "room",
        &mut videoroom.rooms,
        |members, former| {
            let room = ConfiguredRoom::read(members, string_ids);
            let room = room.map_err(|problem| mistake(&problem.key, problem.to_string()))?;
            match former.iter().any(|other| other.id() == room.id()) {
                true => Err(mistake("room", "another room has this id".to_owned())),
                false => Ok(room),
            }
        },
        ConfiguredRoom::to_members,
    );
}

const fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

#[cfg(test)]
mod tests;
