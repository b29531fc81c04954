//! Wires media plane, core, plugins and transports together.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use portunus_api::{Transports, transport_infos};
use portunus_core::{Gateway, Plugin, ServerFacts};
use portunus_echotest::EchoTest;
use portunus_media::{MediaConfig, MediaPlane};
use portunus_videocall::VideoCall;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::banner;
use crate::config::Config;

/// How long the end may take before the process ends anyway.
const END_LIMIT: Duration = Duration::from_secs(8);

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Runs until SIGTERM or SIGINT.
pub(crate) fn run(config: Config, file: Option<&Path>) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let outcome = runtime.block_on(serve(config, file));
    runtime.shutdown_timeout(Duration::from_secs(1));
    outcome
}

async fn serve(mut config: Config, file: Option<&Path>) -> Result<(), Failure> {
    config.resolve_announced().await?;
    let (media, events) = MediaPlane::start(config.media.clone())?;
    let facts = facts(&config, &media);
    let base_path = config.api.http.base_path.clone();
    let plugins = plugins(&config);
    let gateway = Gateway::new(config.core, media.clone(), events, plugins, facts);
    let transports = Transports::start(config.api, gateway.clone()).await?;
    println!("{}", banner::text(&transports, &media, &base_path, file));
    tracing::info!(workers = media.workers(), "started");

    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    stop_signal(&mut terminate, &mut interrupt).await;
    tracing::info!("stopping: calls are ended");
    let end = async {
        gateway.accept_new_sessions(false);
        gateway.shutdown().await;
        transports.shutdown().await;
        media.shutdown();
    };
    tokio::select! {
        ended = tokio::time::timeout(END_LIMIT, end) => {
            if ended.is_err() {
                tracing::warn!("not everything ended in time");
            }
        }
        () = stop_signal(&mut terminate, &mut interrupt) => tracing::warn!("stopped at once"),
    }
    tracing::info!("stopped");
    Ok(())
}

async fn stop_signal(terminate: &mut Signal, interrupt: &mut Signal) {
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
}

fn plugins(config: &Config) -> Vec<Arc<dyn Plugin>> {
    let mut plugins: Vec<Arc<dyn Plugin>> = Vec::new();
    if config.echotest.enabled {
        plugins.push(Arc::new(EchoTest));
    }
    if config.videocall.enabled {
        plugins.push(Arc::new(VideoCall::default()));
    }
    plugins
}

fn facts(config: &Config, media: &MediaPlane) -> ServerFacts {
    let MediaConfig {
        announced,
        ipv6,
        ice_lite,
        twcc_period_ms,
        no_media_ms,
        ..
    } = &config.media;
    ServerFacts {
        commit: option_env!("PORTUNUS_COMMIT").unwrap_or("unknown"),
        build_time: option_env!("PORTUNUS_BUILD_TIME").unwrap_or("unknown"),
        local_ip: Some(media.address()),
        public_ips: announced.iter().map(|address| address.ip).collect(),
        ipv6: *ipv6,
        ice_lite: *ice_lite,
        twcc_period_ms: *twcc_period_ms,
        no_media_ms: *no_media_ms,
        crypto: "OpenSSL (DTLS), AWS-LC (SRTP)".into(),
        transports: transport_infos(&config.api),
    }
}
