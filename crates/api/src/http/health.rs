//! Health checks: `/livez` for supervisors, `/readyz` and `/where` for load balancers.

use axum::Router;
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, LOCATION};
use axum::http::{HeaderValue, StatusCode};
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
        .route("/where", get(least_loaded))
        .with_state(gateway)
}

/// Whether this process works. Each stuck part is a line. Load does not count, since a restart
/// would not help.
async fn live(State(gateway): State<Gateway>) -> Response {
    judge(gateway.stuck())
}

/// Whether new clients are accepted. Each reason against it is a line. A node without its cluster
/// accepts them, and says so in a second line.
async fn ready(State(gateway): State<Gateway>) -> Response {
    let reasons = gateway.not_ready().into_iter();
    let mut all: Vec<_> = reasons.map(|reason| reason.to_string()).collect();
    all.extend(gateway.stuck());
    let degraded = gateway.cluster().and_then(|cluster| cluster.degraded());
    match degraded.filter(|_| all.is_empty()) {
        Some(degraded) => answer(StatusCode::OK, format!("{OK}{degraded}\n")),
        None => judge(all),
    }
}

/// Redirects to the node of the cluster with the least load. Without a known one the reply is empty.
async fn least_loaded(State(gateway): State<Gateway>) -> Response {
    let url = gateway.cluster().and_then(|cluster| cluster.least_loaded());
    match url.and_then(|url| HeaderValue::try_from(url).ok()) {
        Some(url) => {
            let headers = [
                (CACHE_CONTROL, HeaderValue::from_static("no-store")),
                (LOCATION, url),
            ];
            (StatusCode::TEMPORARY_REDIRECT, headers).into_response()
        }
        None => (StatusCode::NO_CONTENT, [(CACHE_CONTROL, "no-store")]).into_response(),
    }
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
