//! Health checks: `/livez` for supervisors, `/readyz` for load balancers.

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CACHE_CONTROL;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use portunus_core::Gateway;

const OK: &str = "ok\n";

/// Returns the router of all health checks. `/healthz` is the former name of `/livez`.
pub(super) fn router<S: Clone + Send + Sync + 'static>(gateway: Gateway) -> Router<S> {
    Router::new()
        .route("/livez", get(live))
        .route("/healthz", get(live))
        .route("/readyz", get(ready))
        .with_state(gateway)
}

/// Whether this process works. Each stuck part is a line. Load does not count, since a restart
/// would not help.
async fn live(State(gateway): State<Gateway>) -> Response {
    judge(gateway.stuck())
}

/// Whether new clients are accepted. Each reason against it is a line.
async fn ready(State(gateway): State<Gateway>) -> Response {
    let reasons = gateway.not_ready().into_iter();
    let mut all: Vec<_> = reasons.map(|reason| reason.to_string()).collect();
    all.extend(gateway.stuck());
    judge(all)
}

fn judge(reasons: Vec<String>) -> Response {
    if reasons.is_empty() {
        return answer(StatusCode::OK, OK.to_owned());
    }
    let text = reasons.join("\n") + "\n";
    answer(StatusCode::SERVICE_UNAVAILABLE, text)
}

fn answer(status: StatusCode, text: String) -> Response {
    (status, [(CACHE_CONTROL, "no-store")], text).into_response()
}
