//! The transports of the Admin API: HTTP with the dashboard, WebSocket and Unix socket, on ports and paths of their own.

mod config;
mod http;

use std::sync::Arc;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::any;
use portunus_core::Gateway;

pub use config::AdminApiConfig;
pub(crate) use config::Reach;

use crate::http::Shared;
use crate::http::pages::{self, Site};
use crate::{ApiConfig, Counters, HttpConfig, websocket};

/// Everything that is served on the Admin API's HTTP ports. Limits are those of the Janus API over HTTP.
pub(crate) fn router(
    config: &ApiConfig,
    websocket: Arc<websocket::Shared>,
    gateway: Gateway,
    counters: Arc<Counters>,
) -> Router {
    let base = &config.admin.base_path;
    let router = Router::new()
        .route(base, any(http::entry))
        .route(&format!("{base}/"), any(http::entry))
        .route(&format!("{base}/{{*rest}}"), any(http::entry));
    let router = match config.admin.pages {
        true => router.merge(pages::router(Site::dashboard(base))),
        false => router.fallback(async || StatusCode::NOT_FOUND),
    };
    let http = HttpConfig {
        base_path: base.clone(),
        ..config.http.clone()
    };
    router.with_state(Arc::new(Shared::new(http, gateway, counters, websocket)))
}
