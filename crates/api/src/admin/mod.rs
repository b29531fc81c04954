//! The transports of the Admin API: HTTP with the dashboard, WebSocket and Unix socket, on ports
//! and paths of their own.

mod config;
mod http;

use std::sync::Arc;

use axum::http::StatusCode;
use axum::routing::any;
use axum::{Extension, Router};
use portunus_admin::Administration;

pub use config::AdminApiConfig;
pub(crate) use config::Reach;

use crate::http::Shared;
use crate::http::pages::{self, Site};
use crate::{ApiConfig, Counters, HttpConfig, websocket};

/// Returns the router for the Admin API's HTTP ports. Limits are those of the Janus API over HTTP.
pub(crate) fn router(
    config: &ApiConfig,
    websocket: Arc<websocket::Shared>,
    administration: Administration,
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
    let gateway = administration.gateway().clone();
    let shared = Shared::new(http, gateway, counters, websocket);
    router
        .layer(Extension(administration))
        .with_state(Arc::new(shared))
}
