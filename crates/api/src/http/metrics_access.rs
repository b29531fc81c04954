//! Access to the metrics at the public ports.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use portunus_core::{Gateway, Network};

use crate::requester::Sender;

/// The response to other clients.
const REFUSED: &str = "The counters are for programs on the server's machine. The key http.metrics_networks of its configuration lets \
     others read them, and http.metrics_bind gives them an address of their own.\n";

/// Admits programs on this machine, and clients in the configured networks.
#[derive(Debug, Clone)]
pub(crate) struct MetricsAccess {
    networks: Arc<[Network]>,
    gateway: Gateway,
}

impl MetricsAccess {
    pub(crate) fn new(networks: &[Network], gateway: Gateway) -> Self {
        MetricsAccess {
            networks: networks.into(),
            gateway,
        }
    }

    fn allows(&self, sender: &Sender) -> bool {
        // A proxy that names no client may pass on requests of anybody.
        let is_named = !sender.is_hidden;
        let ip = sender.address.ip();
        (is_named && self.networks.iter().any(|it| it.contains(ip)))
            || self.gateway.trusts(sender.requester)
    }
}

/// Refuses the requests of other clients.
pub(crate) async fn guard(
    State(access): State<MetricsAccess>,
    Extension(sender): Extension<Sender>,
    request: Request,
    next: Next,
) -> Response {
    match access.allows(&sender) {
        true => next.run(request).await,
        false => (StatusCode::FORBIDDEN, REFUSED).into_response(),
    }
}
