//! Starts the parts of the server, waits for a signal, and ends them.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use portunus_api::{StartError, Transports, transport_infos, turn_acceptor};
use portunus_core::audio::AudioThreads;
use portunus_core::events::{EventBus, EventHandlerError};
use portunus_core::record::Recorder;
use portunus_core::{
    Doors, Gateway, JwtError, JwtVerifier, LogControl, Plugin, PluginContext, PluginError,
    ServerFacts, tell_of_recordings,
};
use portunus_media::{MediaError, MediaPlane};
use portunus_turn::{MediaAddress, MediaAddresses, Turn};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::banner;
use crate::config::{Config, ResolveError};

/// How long calls and requests may take to end.
const SHUTDOWN_LIMIT: Duration = Duration::from_secs(5);

/// Why the server does not run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RunError {
    #[error("cannot start the runtime: {0}")]
    Runtime(io::Error),
    #[error("cannot handle signals: {0}")]
    Signals(io::Error),
    #[error(transparent)]
    Announced(#[from] ResolveError),
    #[error(transparent)]
    Tokens(#[from] JwtError),
    #[error(transparent)]
    Media(#[from] MediaError),
    #[error(transparent)]
    Transport(#[from] StartError),
    #[error(transparent)]
    Turn(#[from] portunus_turn::StartError),
    #[error(transparent)]
    Plugin(#[from] PluginError),
    #[error(transparent)]
    EventHandler(#[from] EventHandlerError),
    #[error(
        "a media worker has ended by a fault, which the log names; the server has to be started anew"
    )]
    WorkerLost,
}

/// Runs the server until a signal ends it.
pub(crate) async fn run(
    mut config: Config,
    file: Option<&Path>,
    log: Arc<dyn LogControl>,
) -> Result<(), RunError> {
    let mut signals = Signals::new().map_err(RunError::Signals)?;
    config.resolve_announced().await?;
    let jwt = JwtVerifier::load(config.jwt.clone())?;
    let (media, events) = MediaPlane::start(config.media.clone())?;
    let recorder = Recorder::new(config.recording.clone());
    let audio = AudioThreads::new(config.audio.clone(), media.clone(), recorder.clone());
    let bus = EventBus::new(&config.core.server_name, config.core.string_ids);
    tokio::spawn(tell_of_recordings(recorder.clone(), bus.clone()));
    let started = async {
        let turn = turn(&config, &media)?;
        event_handlers(&mut config, &bus).await?;
        let plugins = plugins(&mut config, (&media, &audio, &recorder), &bus).await?;
        Ok::<_, RunError>((turn, plugins))
    };
    let (turn, plugins) = match started.await {
        Ok(started) => started,
        Err(error) => {
            media.shutdown();
            return Err(error);
        }
    };
    let gateway = Gateway::new(
        config.core.clone(),
        media.clone(),
        events,
        plugins,
        ServerFacts {
            log,
            jwt,
            audio: Some(audio),
            turn: turn.clone(),
            ..facts(&config, &media, recorder.clone(), bus.clone())
        },
    );
    // Before any client can come: what clients do is told after that.
    gateway.tell_start();
    let transports = match Transports::start(config.api.clone(), gateway.clone()).await {
        Ok(transports) => transports,
        Err(error) => {
            media.shutdown();
            return Err(error.into());
        }
    };
    banner::print(file, &config, &media, &transports, turn.as_ref());

    let outcome = tokio::select! {
        signal = signals.end() => {
            tracing::info!(signal = name(signal), "ending calls");
            gateway.tell_end(signal.as_raw_value());
            Ok(())
        }
        () = media.worker_lost() => {
            tracing::error!("a media worker is lost: ending calls");
            gateway.tell_end(0);
            Err(RunError::WorkerLost)
        }
    };
    let end = async {
        gateway.shutdown().await;
        if let Some(turn) = &turn {
            turn.stop();
        }
        media.shutdown();
        media.ended().await;
        recorder.finished().await;
        transports.shutdown().await;
        bus.end().await;
    };
    tokio::select! {
        ended = tokio::time::timeout(SHUTDOWN_LIMIT, end) => match ended {
            Ok(()) => tracing::info!("ended"),
            Err(_) => tracing::warn!("some calls did not end within {SHUTDOWN_LIMIT:?}"),
        },
        signal = signals.end() => tracing::warn!(signal = name(signal), "ended at once"),
    }
    outcome
}

/// Starts the TURN server, if it is on.
fn turn(config: &Config, media: &MediaPlane) -> Result<Option<Turn>, RunError> {
    if !config.turn.enabled {
        return Ok(None);
    }
    let tls = match config.turn.tls {
        true => Some(turn_acceptor(&config.api.tls)?),
        false => None,
    };
    let address = |(announced, bound)| MediaAddress { announced, bound };
    let addresses = MediaAddresses::new(media.addresses().map(address));
    Ok(Some(Turn::start(&config.turn, tls, addresses)?))
}

async fn event_handlers(config: &mut Config, bus: &EventBus) -> Result<(), EventHandlerError> {
    for handler in config.event_handlers.drain(..) {
        if handler.is_enabled() {
            handler.start(bus).await?;
        }
    }
    Ok(())
}

async fn plugins(
    config: &mut Config,
    (media, audio, recorder): (&MediaPlane, &AudioThreads, &Recorder),
    bus: &EventBus,
) -> Result<Vec<Arc<dyn Plugin>>, PluginError> {
    let context = PluginContext {
        media: media.clone(),
        recorder: recorder.clone(),
        audio: audio.clone(),
        outgoing: config.core.outgoing_networks.clone(),
        events: bus.clone(),
        doors: Doors::default(),
    };
    let mut plugins = Vec::new();
    for plugin in config.plugins.drain(..) {
        if plugin.is_enabled() {
            let has_events = plugin.has_events();
            let started = plugin.own.start(context.clone()).await?;
            bus.mute(started.info().package, !has_events);
            plugins.push(started);
        }
    }
    Ok(plugins)
}

fn facts(config: &Config, media: &MediaPlane, recorder: Recorder, events: EventBus) -> ServerFacts {
    ServerFacts {
        commit: option_env!("PORTUNUS_COMMIT").unwrap_or("unknown"),
        build_time: option_env!("PORTUNUS_BUILD_TIME").unwrap_or("unknown"),
        local_ip: Some(media.address()),
        public_ips: config.media.announced.iter().map(|a| a.ip).collect(),
        ipv6: config.media.ipv6,
        ice_lite: config.media.ice_lite,
        ice_tcp: config.media.ice_tcp,
        twcc_period_ms: config.media.twcc_period_ms,
        no_media_ms: config.media.no_media_ms,
        crypto: openssl::version::version().to_owned(),
        transports: transport_infos(&config.api),
        recorder,
        events,
        admin: config.admin.clone(),
        statistics: config.events.clone(),
        ..ServerFacts::default()
    }
}

/// The signals that the server knows.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
}

impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    /// Waits for a signal that ends the server.
    async fn end(&mut self) -> SignalKind {
        loop {
            tokio::select! {
                _ = self.terminate.recv() => return SignalKind::terminate(),
                _ = self.interrupt.recv() => return SignalKind::interrupt(),
                _ = self.hangup.recv() => {
                    tracing::info!("SIGHUP is ignored: the configuration is read at start only");
                }
            }
        }
    }
}

/// The name of a signal that ends the server.
fn name(signal: SignalKind) -> &'static str {
    match signal == SignalKind::interrupt() {
        true => "SIGINT",
        false => "SIGTERM",
    }
}
