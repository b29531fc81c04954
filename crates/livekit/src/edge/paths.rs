//! Paths with several slashes at the start, which some clients make of a URL with one at its end.

use axum::Router;
use axum::extract::Request;
use axum::http::Uri;
use tower::ServiceExt;

/// Returns the router for paths with any number of slashes at the start.
pub(crate) fn tolerant(router: Router) -> Router {
    Router::new().fallback(async move |mut request: Request| {
        if let Some(uri) = with_one_slash(request.uri()) {
            *request.uri_mut() = uri;
        }
        router.clone().oneshot(request).await
    })
}

/// Returns a URI with one slash at the start, or `None` if it is so.
fn with_one_slash(uri: &Uri) -> Option<Uri> {
    let whole = uri.path_and_query()?.as_str();
    let rest = whole.trim_start_matches('/');
    (whole.len() > rest.len() + 1).then(|| format!("/{rest}").parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slashes_at_the_start_are_one() {
        let of = |text: &str| {
            let uri = text.parse::<Uri>().ok()?;
            with_one_slash(&uri).map(|uri| uri.to_string())
        };
        assert_eq!(
            of("//rtc/validate?a=//"),
            Some("/rtc/validate?a=//".to_owned())
        );
        assert_eq!(of("///"), Some("/".to_owned()));
        assert_eq!(of("/rtc"), None);
        assert_eq!(of("/"), None);
    }
}
