//! WHIP and WHEP without sockets.

use std::sync::Arc;

use axum::Router;
use portunus_core::Gateway;

use crate::{Counters, HttpConfig, WhipConfig, whip};

/// What answers the requests below `/whip` and `/whep`.
pub fn whip_router(gateway: Gateway) -> Router {
    let (config, http) = (WhipConfig::default(), HttpConfig::default());
    whip::router(&config, &http, gateway, Arc::new(Counters::default()))
}
