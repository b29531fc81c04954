//! The HTTP server: the Janus API by long polling, WHIP and WHEP, the web pages, health checks and
//! metrics.

pub(crate) mod cors;
mod disk;
pub(crate) mod exchange;
mod files;
mod health;
mod janus;
pub(crate) mod metrics;
mod metrics_access;
pub(crate) mod pages;

use std::sync::Arc;

use axum::Router;
use axum::http::StatusCode;
use axum::middleware::from_fn_with_state;
use axum::routing::{any, get};
use portunus_core::{Client, Gateway};

use metrics::Sources;
use metrics_access::MetricsAccess;
use pages::Site;

use crate::packages::HTTP;
use crate::{Counters, HttpConfig, WhipConfig, websocket, whip};

/// The state that the handlers of requests share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) config: HttpConfig,
    pub(crate) gateway: Gateway,
    /// The gateway's client for all of HTTP. Events wait in the sessions.
    pub(crate) client: Client,
    pub(crate) counters: Arc<Counters>,
    /// A WebSocket may be opened at the base path, so that one port suffices.
    pub(crate) websocket: Arc<websocket::Shared>,
}

impl Shared {
    pub(crate) fn new(
        config: HttpConfig,
        gateway: Gateway,
        counters: Arc<Counters>,
        websocket: Arc<websocket::Shared>,
    ) -> Self {
        Self {
            config,
            gateway,
            client: Client::polled(HTTP),
            counters,
            websocket,
        }
    }
}

/// Returns the router of the HTTP ports.
pub(crate) fn router(
    config: &HttpConfig,
    whip: &WhipConfig,
    websocket: Arc<websocket::Shared>,
    gateway: Gateway,
    counters: Arc<Counters>,
    sources: Sources,
) -> Router {
    let base = &config.base_path;
    let mut router = Router::new()
        .route(base, any(janus::entry))
        .route(&format!("{base}/"), any(janus::entry))
        .route(&format!("{base}/{{*rest}}"), any(janus::entry))
        .merge(health::router(gateway.clone()));
    if config.metrics && config.metrics_bind.is_none() {
        let access = MetricsAccess::new(&config.metrics_networks, gateway.clone());
        let metrics = metrics(sources);
        router = router.merge(metrics.layer(from_fn_with_state(access, metrics_access::guard)));
    }
    if whip.enabled {
        let whip = whip::router(whip, config, gateway.clone(), counters.clone());
        router = router.merge(whip);
    }
    let pages = match config.pages {
        true => pages::router(Site::calls(base, &config.frame_ancestors)),
        false => Router::new().fallback(async || StatusCode::NOT_FOUND),
    };
    router = router.merge(files::before(pages, gateway.clone()));
    let shared = Shared::new(config.clone(), gateway, counters, websocket);
    router.with_state(Arc::new(shared))
}

/// Returns the router of the metrics port.
pub(crate) fn metrics_router(gateway: Gateway, sources: Sources) -> Router {
    metrics(sources).merge(health::router(gateway))
}

fn metrics<S: Clone + Send + Sync + 'static>(sources: Sources) -> Router<S> {
    Router::new().route("/metrics", get(metrics::serve).with_state(sources))
}
