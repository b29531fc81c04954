//! Starts the parts of the server, waits for a signal, and ends them.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use opentelemetry_otlp::ExporterBuildError;
use portunus_admin::{AdminOptions, Administration};
use portunus_api::{StartError, Transports, transport_infos};
use portunus_audio::AudioThreads;
use portunus_audiobridge::ClusterRooms;
use portunus_core::configuration::PrintError;
use portunus_core::events::{EventBus, EventHandlerError};
use portunus_core::record::Recorder;
use portunus_core::{
    Gateway, JwtError, JwtVerifier, PluginContext, PluginError, RequestTraces, ServerFacts,
    Services, publish_recordings,
};
use portunus_livekit::LiveKit;
use portunus_media::{MediaError, MediaPlane};
use portunus_metrics::MetricsSource;
use portunus_recordplay::Recordings;
use portunus_room::Rooms;
use portunus_streaming::Mountpoints;
use portunus_telephony::Telephony;
use portunus_textroom::TextRooms;
use portunus_turn::Turn;
use portunus_videocall::VideoCalls;

use crate::banner;
use crate::cluster::{self, ClusterNode};
use crate::config::{Config, ResolveError};
use crate::logging::Logging;
use crate::process_metrics::ProcessMetrics;
use crate::public_address::{Discovery, relayed_to};
use crate::reload::{NamedPlugin, Read, Reload};
use crate::signals::{EndSignal, Signals};
use crate::traces::Traces;
use crate::turn_client::TurnClients;
use crate::{livekit, reload, supervisor, watchdog};

/// How long calls and requests may take to end.
const SHUTDOWN_LIMIT: Duration = Duration::from_secs(5);

/// The reason why the server does not run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RunError {
    #[error("cannot start the runtime: {0}")]
    Runtime(io::Error),
    #[error("cannot handle signals: {0}")]
    Signals(io::Error),
    #[error("cannot start the watchdog: {0}")]
    Watchdog(io::Error),
    #[error(transparent)]
    Configuration(#[from] PrintError),
    #[error(transparent)]
    Announced(#[from] ResolveError),
    #[error(transparent)]
    Tokens(#[from] JwtError),
    #[error(transparent)]
    Media(#[from] MediaError),
    #[error(transparent)]
    Transport(#[from] StartError),
    #[error(transparent)]
    Cluster(#[from] cluster::ClusterError),
    #[error(transparent)]
    Turn(#[from] portunus_turn::StartError),
    #[error("media.turn_ca: {0}")]
    TurnClient(#[from] portunus_events::TlsError),
    #[error("traces.url: {0}")]
    Traces(#[from] ExporterBuildError),
    #[error(transparent)]
    Plugin(#[from] PluginError),
    #[error("livekit.save: {0}")]
    LiveKit(#[from] portunus_livekit::SavedError),
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
    log: &Logging,
    read: Read,
) -> Result<(), RunError> {
    let mut signals = Signals::new().map_err(RunError::Signals)?;
    let running = (config.sections()?, config.log.clone());
    config.resolve_announced().await?;
    let jwt = JwtVerifier::load(config.jwt.clone())?;
    let traces = Traces::start(&config.traces, &config.core.server_name)?;
    let (media, events) = MediaPlane::start(config.media.clone())?;
    let server = config.reached.stun_server.clone();
    let mut discovery = server.map(|server| Discovery::new(server, media.clone()));
    if let Some(discovery) = &mut discovery {
        discovery.first().await;
    }
    TurnClients::start(&config.turn_client, &media).await?;
    let recorder = Recorder::new(config.recording.clone());
    let audio = AudioThreads::new(config.audio.clone(), media.clone(), recorder.clone());
    let (rooms, telephony) = (Rooms::default(), Telephony::default());
    let (mountpoints, text_rooms) = (Mountpoints::default(), TextRooms::default());
    let video_calls = VideoCalls::default();
    let (audio_rooms, recordings) = (ClusterRooms::default(), Recordings::default());
    // It receives calls, so it is there before telephones start.
    let door = config.livekit.is_on().then(|| {
        let telephones = (audio.clone(), telephony.clone());
        livekit::door(&config, rooms.clone(), telephones)
    });
    let bus = EventBus::new(&config.core.server_name, config.core.string_ids);
    tokio::spawn(publish_recordings(recorder.clone(), bus.clone()));
    let started = async {
        let turn = turn(&config, &media)?;
        event_handlers(&mut config, &bus).await?;
        let context = PluginContext {
            media: media.clone(),
            recorder: recorder.clone(),
            outgoing: config.core.outgoing_networks.clone(),
            events: bus.clone(),
            services: Services::default()
                .with(audio.clone())
                .with(rooms.clone())
                .with(mountpoints.clone())
                .with(audio_rooms.clone())
                .with(text_rooms.clone())
                .with(video_calls.clone())
                .with(recordings.clone())
                .with(telephony),
        };
        let plugins = plugins(&mut config, &context).await?;
        let cluster = ClusterNode::start(&config.cluster, &media).await?;
        Ok::<_, RunError>((turn, plugins, cluster))
    };
    let (turn, plugins, cluster) = match started.await {
        Ok(started) => started,
        Err(error) => {
            media.shutdown();
            return Err(error);
        }
    };
    let known = plugins.iter().map(|(_, it)| it.plugin.clone());
    let gateway = Gateway::new(
        config.core.clone(),
        media.clone(),
        events,
        known.chain(door.as_ref().map(LiveKit::plugin)).collect(),
        ServerFacts {
            jwt,
            turn: turn.clone(),
            cluster: cluster.as_ref().map(ClusterNode::view),
            traces: traces
                .clone()
                .map(|it| Arc::new(it) as Arc<dyn RequestTraces>),
            ..facts(&config, &media, recorder.clone(), bus.clone())
        },
    );
    // Before any client can connect, so that this event is the first one.
    gateway.publish_start();
    let mut metrics = vec![
        Arc::new(audio.clone()) as Arc<dyn MetricsSource>,
        log.metrics(),
        Arc::new(ProcessMetrics(gateway.clone())),
    ];
    metrics.extend(cluster.iter().flat_map(ClusterNode::metrics));
    let counted = door
        .clone()
        .map(|door| Arc::new(door) as Arc<dyn MetricsSource>);
    metrics.extend(counted);
    let options = AdminOptions {
        config: config.admin.clone(),
        log: log.control(),
        audio: Some(audio),
    };
    let administration = Administration::new(gateway.clone(), options);
    let started = async {
        let doors = door.as_ref();
        let doors = doors.map(|door| livekit::server(&config, door, &gateway));
        let doors = doors.transpose()?.into_iter().collect();
        let api = config.api.clone();
        let started = Transports::start_with(api, administration, metrics, doors);
        Ok::<_, RunError>(started.await?)
    };
    let transports = match started.await {
        Ok(transports) => transports,
        Err(error) => {
            media.shutdown();
            return Err(error);
        }
    };
    let cluster = cluster.map(|node| {
        node.serve(cluster::Server {
            gateway: gateway.clone(),
            media: media.clone(),
            rooms,
            mountpoints,
            audio_rooms,
            text_rooms,
            video_calls,
            recordings,
        })
    });
    if let Some(discovery) = discovery {
        tokio::spawn(discovery.follow(turn.clone()));
    }
    reload::note_certificates(&gateway, &config);
    let reload = Arc::new(Reload::new(
        read,
        running,
        plugins,
        (gateway.clone(), media.clone()),
        (transports.reload().clone(), log.reload()),
        door,
    ));
    gateway.set_reloader(&reload);
    signals.reload_by(reload);
    // Its readers may start to send requests.
    banner::print(file, &config, &media, &transports, turn.as_ref());
    let watchdog = watchdog::start(media.clone(), gateway.clone()).map_err(RunError::Watchdog)?;
    supervisor::ready();
    let outcome = serve(&mut signals, &gateway, &media).await;
    supervisor::stopping();
    // Ended workers are not stuck.
    drop(watchdog);
    gateway.publish_end(outcome.as_ref().map_or(0, |signal| signal.number()));
    let end = async {
        if let Some(cluster) = cluster {
            cluster.leave().await;
        }
        gateway.shutdown().await;
        if let Some(turn) = &turn {
            turn.stop();
        }
        media.shutdown();
        media.ended().await;
        recorder.finished().await;
        transports.shutdown().await;
        bus.end().await;
        if let Some(traces) = traces {
            traces.end().await;
        }
    };
    tokio::select! {
        ended = tokio::time::timeout(SHUTDOWN_LIMIT, end) => match ended {
            Ok(()) => tracing::info!("ended"),
            Err(_) => tracing::warn!("some calls did not end within {SHUTDOWN_LIMIT:?}"),
        },
        signal = signals.end() => tracing::warn!(signal = signal.name(), "ended at once"),
    }
    outcome.map(drop)
}

/// Reports the progress of a drain to systemd. Never returns.
async fn report_drain(gateway: &Gateway) {
    loop {
        if let Some(status) = gateway.draining() {
            supervisor::draining(status.calls, status.left.unwrap_or_default());
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

/// Serves until calls have to end: by a signal, after a drain if that is SIGTERM, or by the loss of
/// a media worker.
async fn serve(
    signals: &mut Signals,
    gateway: &Gateway,
    media: &MediaPlane,
) -> Result<EndSignal, RunError> {
    let lost = || {
        tracing::error!("a media worker is lost: ending calls");
        RunError::WorkerLost
    };
    let signal = tokio::select! {
        signal = signals.end() => signal,
        () = media.worker_lost() => return Err(lost()),
    };
    let (calls, drain_timeout) = (gateway.calls(), gateway.drain_timeout());
    if signal == EndSignal::Terminate && !drain_timeout.is_zero() && calls > 0 {
        tracing::info!(
            signal = signal.name(),
            calls,
            limit = ?drain_timeout,
            "draining: nobody new is taken, and calls may go on; a second signal ends them"
        );
        tokio::select! {
            () = gateway.drain_before_end(drain_timeout) => {}
            () = report_drain(gateway) => {}
            signal = signals.end() => {
                tracing::warn!(signal = signal.name(), "the drain is cut short");
            }
            () = media.worker_lost() => return Err(lost()),
        }
    }
    let calls = gateway.calls();
    tracing::info!(signal = signal.name(), calls, "ending calls");
    Ok(signal)
}

/// Starts the TURN server, if it is enabled.
fn turn(config: &Config, media: &MediaPlane) -> Result<Option<Turn>, RunError> {
    if !config.turn.enabled {
        return Ok(None);
    }
    Ok(Some(Turn::start(&config.turn, relayed_to(media))?))
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
    context: &PluginContext,
) -> Result<Vec<NamedPlugin>, PluginError> {
    let mut plugins = Vec::new();
    for plugin in config.plugins.drain(..) {
        if plugin.is_enabled() {
            let (name, has_events) = (plugin.name(), plugin.has_events());
            let started = plugin.own.start(context.clone()).await?;
            let package = started.plugin.info().package;
            context.events.mute(package, !has_events);
            plugins.push((name, started));
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
        mdns: config.media.mdns,
        ice_tcp: config.media.ice_tcp,
        twcc_period_ms: config.media.twcc_period_ms,
        no_media_ms: config.media.no_media_ms,
        crypto: openssl::version::version().to_owned(),
        transports: transport_infos(&config.api),
        recorder,
        events,
        statistics: config.events.clone(),
        ..ServerFacts::default()
    }
}
