//! Signs of life: `/livez` for supervisors, `/readyz` for load balancers.

use std::fmt::Write;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CACHE_CONTROL;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use portunus_core::Gateway;

const OK: &str = "ok\n";

/// All signs of life. `/healthz` is the former name of `/livez`.
pub(super) fn router<S: Clone + Send + Sync + 'static>(gateway: Gateway) -> Router<S> {
    Router::new()
        .route("/livez", get(live))
        .route("/healthz", get(live))
        .route("/readyz", get(ready))
        .with_state(gateway)
}

/// Whether this process works. It is not about load: a restart would help nobody.
async fn live() -> Response {
    answer(StatusCode::OK, OK.to_owned())
}

/// Whether new clients are taken: each reason against it is a line.
async fn ready(State(gateway): State<Gateway>) -> Response {
    let reasons = gateway.not_ready();
    if reasons.is_empty() {
        return answer(StatusCode::OK, OK.to_owned());
    }
    let mut text = String::new();
    for reason in reasons {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{reason}");
    }
    answer(StatusCode::SERVICE_UNAVAILABLE, text)
}

fn answer(status: StatusCode, text: String) -> Response {
    (status, [(CACHE_CONTROL, "no-store")], text).into_response()
}
