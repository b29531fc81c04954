//! The page of metrics.

use std::sync::Arc;

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use portunus_metrics::{MetricsPage, MetricsSource};

/// The parts of the server that have metrics.
pub(crate) type Sources = Arc<[Arc<dyn MetricsSource>]>;

/// Answers `/metrics`.
pub(crate) async fn serve(State(sources): State<Sources>) -> impl IntoResponse {
    let kind = [(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
    // Some sources read files.
    let text = tokio::task::spawn_blocking(move || {
        let mut page = MetricsPage::default();
        sources.iter().for_each(|source| source.write(&mut page));
        page.into_text()
    });
    (kind, text.await.unwrap_or_default())
}
