//! WHIP (RFC 9725) and WHEP (draft-ietf-wish-whep): media in and out by plain HTTP requests.
//!
//! A POST to an endpoint makes a session and a handle of the Janus API inside the server, and sends
//! the offer to the plugin with the request from [`portunus_core::Broadcast`]. The response has the
//! plugin's answer and the path of a resource. The client sends candidates and restarts there by
//! PATCH. A DELETE, or the end of the PeerConnection, ends everything.

mod endpoint;
mod headers;
mod link;
mod path;
mod problem;
mod registry;
mod resource;

use std::sync::Arc;

use axum::Router;
use axum::extract::{Extension, Request, State};
use axum::http::header::{ALLOW, CACHE_CONTROL, LOCATION, RETRY_AFTER};
use axum::http::{HeaderValue, Method, StatusCode, Uri};
use axum::response::Response;
use axum::routing::any;
use bytes::Bytes;
use portunus_core::{
    ApiError, Credentials, DRAIN_RETRY_SECONDS, Gateway, OtherNode, Purse, Requester, Share,
};

use crate::bodies::{BodyError, RequestBody};
use crate::{Counters, HttpConfig, WhipConfig, listener};
use headers::{Cors, Link};
use path::{Kind, Target};
use problem::Problem;
use registry::Registry;

/// The media type of descriptions.
const SDP: &str = "application/sdp";
/// The media type of fragments (RFC 8840).
const FRAGMENT: &str = "application/trickle-ice-sdpfrag";

/// The state that the handlers of requests share.
#[derive(Debug)]
struct Whip {
    config: WhipConfig,
    /// The Link headers of responses.
    ice_servers: Vec<HeaderValue>,
    request_timeout: std::time::Duration,
    gateway: Gateway,
    counters: Arc<Counters>,
    registry: Arc<Registry>,
}

/// Returns the router for `/whip` and `/whep`.
pub(crate) fn router<S: Clone + Send + Sync + 'static>(
    config: &WhipConfig,
    http: &HttpConfig,
    gateway: Gateway,
    counters: Arc<Counters>,
) -> Router<S> {
    let whip = Whip {
        config: config.clone(),
        ice_servers: config.ice_servers.iter().filter_map(Link::value).collect(),
        request_timeout: http.request_timeout,
        gateway,
        counters,
        registry: Arc::new(Registry::new(config.max_sessions)),
    };
    let mut router = Router::new();
    for kind in [Kind::Whip, Kind::Whep] {
        let base = kind.base();
        router = router
            .route(base, any(entry))
            .route(&format!("{base}/"), any(entry))
            .route(&format!("{base}/{{*rest}}"), any(entry));
    }
    router.with_state(Arc::new(whip))
}

/// Answers any request.
async fn entry(
    State(whip): State<Arc<Whip>>,
    connection: Option<Extension<listener::Client>>,
    Extension(requester): Extension<Requester>,
    request: Request,
) -> Response {
    let cors = Cors::of(
        &whip.config.allow_origins,
        request.method(),
        request.headers(),
    );
    let purse = listener::purse(connection.as_ref());
    let mut response = match whip.answer(&cors, requester, purse, request).await {
        Ok(response) => response,
        Err(problem) => {
            whip.counters.whip_refused.add(1);
            tracing::debug!(%problem, "refused a request of WHIP or WHEP");
            problem.into_response()
        }
    };
    cors.add_headers(response.headers_mut());
    response
        .headers_mut()
        .insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

impl Whip {
    async fn answer(
        &self,
        cors: &Cors,
        requester: Requester,
        purse: Purse,
        request: Request,
    ) -> Result<Response, Problem> {
        let (head, body) = request.into_parts();
        let body = RequestBody::new(body, purse);
        let (kind, target) = Target::parse(head.uri.path()).ok_or_else(|| {
            Problem::new(
                StatusCode::NOT_FOUND,
                "there is nothing at this path; an endpoint is /whip/ID, /whip/PLUGIN/ID, /whip/PLUGIN/ID/PART, or the same with /whep",
            )
        })?;
        if head.method == Method::OPTIONS {
            return Ok(target.options(kind));
        }
        if cors.is_refused() {
            let detail = "pages of this origin may not use the server; its operator can add the origin to whip.allow_origins";
            return Err(Problem::new(StatusCode::FORBIDDEN, detail));
        }
        let token = headers::bearer(&head.headers).ok().flatten();
        let shown = shown(token);
        if let Err(error) = self.gateway.count_request(requester, shown) {
            let (name, value) = retry_after(1);
            let problem = Problem::new(StatusCode::TOO_MANY_REQUESTS, error.to_string());
            return Err(problem.with_header(name, value));
        }
        match (target, head.method) {
            (Target::Endpoint(endpoint), Method::POST) => {
                self.check_drain(&head.uri)?;
                self.relieve(&head.uri)?;
                let query = path::parameters(head.uri.query());
                self.post(kind, &endpoint, requester, &query, &head.headers, body)
                    .await
            }
            (Target::Resource(id), Method::PATCH) => {
                self.patch(kind, &id, &head.headers, body).await
            }
            (Target::Resource(id), Method::DELETE) => self.delete(kind, &id, &head.headers).await,
            (target, method) => {
                let allow = target.allow();
                let detail = format!("{method} means nothing here; allowed are {allow}");
                Err(Problem::new(StatusCode::METHOD_NOT_ALLOWED, detail)
                    .with_header(ALLOW, HeaderValue::from_static(allow)))
            }
        }
    }

    /// Sends a new client to another node during a drain, if the cluster has one. Otherwise it may
    /// come again later.
    fn check_drain(&self, uri: &Uri) -> Result<(), Problem> {
        let Err(error) = self.gateway.check_drain() else {
            return Ok(());
        };
        let node = match &error {
            ApiError::Draining(node) => node.as_deref(),
            _ => None,
        };
        Err(match node.and_then(|node| at(node, uri)) {
            Some(place) => Problem::new(StatusCode::TEMPORARY_REDIRECT, error.to_string())
                .with_header(LOCATION, place),
            None => full(&error),
        })
    }

    /// Sends a new client to a node of the cluster that is less busy than this one. It need not know
    /// on which node a stream is: all have it.
    fn relieve(&self, uri: &Uri) -> Result<(), Problem> {
        let node = self.gateway.cluster().and_then(|cluster| cluster.relief());
        let Some(place) = node.as_ref().and_then(|node| at(node, uri)) else {
            return Ok(());
        };
        let detail = "this node of the cluster is busy; another one is not";
        Err(Problem::new(StatusCode::TEMPORARY_REDIRECT, detail).with_header(LOCATION, place))
    }

    /// Reads the whole body with its payment, if it arrives in time and is not too large.
    async fn read(&self, body: RequestBody) -> Result<(Bytes, Share), Problem> {
        let max = self.config.max_body;
        match tokio::time::timeout(self.request_timeout, body.read(max)).await {
            Ok(Ok(body)) => Ok(body),
            Ok(Err(BodyError::OverBudget(error))) => Err(busy(&error.to_string())),
            Ok(Err(BodyError::Broken)) => Err(Problem::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                format!("the body is larger than {max} bytes, or broke off"),
            )),
            Err(_) => Err(Problem::new(
                StatusCode::REQUEST_TIMEOUT,
                "the body did not come in time",
            )),
        }
    }
}

/// Returns the same endpoint at another node, if that has a URL.
fn at(node: &OtherNode, uri: &Uri) -> Option<HeaderValue> {
    let url = node.url.as_deref()?.trim_end_matches('/');
    let path = uri.path_and_query().map_or("", |path| path.as_str());
    HeaderValue::try_from(format!("{url}{path}")).ok()
}

/// Returns credentials with a bearer token as API secret or token, whichever is valid.
fn shown(token: Option<&str>) -> Credentials<'_> {
    Credentials {
        api_secret: token,
        token,
    }
}

/// The response if the server cannot serve the request now.
fn busy(detail: &str) -> Problem {
    let (name, value) = retry_after(2);
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail).with_header(name, value)
}

/// The response during a drain.
fn full(why: &dyn std::fmt::Display) -> Problem {
    let (name, value) = retry_after(DRAIN_RETRY_SECONDS);
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, why.to_string()).with_header(name, value)
}

/// Seconds after which a client may try again.
fn retry_after(seconds: u16) -> (axum::http::HeaderName, HeaderValue) {
    (RETRY_AFTER, HeaderValue::from(seconds))
}
