//! Files of plugins that everybody may have who knows their path.

use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderValue, Method};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use portunus_core::Gateway;
use tower::ServiceExt;
use tower_http::services::ServeFile;

/// Serves the files of plugins, and `rest` where there is none.
pub(crate) fn before<S: Clone + Send + Sync + 'static>(
    rest: Router<S>,
    gateway: Gateway,
) -> Router<S> {
    rest.layer(from_fn_with_state(gateway, serve))
}

async fn serve(State(gateway): State<Gateway>, request: Request, next: Next) -> Response {
    let reads = matches!(*request.method(), Method::GET | Method::HEAD);
    let path = request.uri().path();
    let file = if reads {
        gateway.public_file(path)
    } else {
        None
    };
    let Some(file) = file else {
        return next.run(request).await;
    };
    let mut response = match ServeFile::new(&file).oneshot(request).await {
        Ok(response) => response.into_response(),
        Err(never) => match never {},
    };
    let is_opus = file.extension().is_some_and(|it| it == "opus");
    let headers = response.headers_mut();
    // A file may still grow.
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if is_opus && headers.contains_key(CONTENT_TYPE) {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("audio/ogg"));
    }
    response
}
