//! POST to an endpoint, which creates a resource.

use std::sync::Arc;

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, ETAG, HeaderName, LINK, LOCATION};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;
use portunus_core::sdp::{RemoteDescription, SdpType, with_transport_everywhere};
use portunus_core::{
    ApiError, Broadcast, Client, Plugin, Refusal, Requester, Rights, Share, Stream,
};
use serde_json::Value;
use tokio::sync::OwnedSemaphorePermit;

use super::link::{Failure, Link};
use super::path::{Endpoint, Kind};
use super::problem::Problem;
use super::resource::Resource;
use super::{SDP, Whip, busy, full, headers, retry_after, shown};
use crate::WhipAuthorization;
use crate::bodies::RequestBody;

/// The opaque id of WHIP and WHEP clients, for operators.
const TRANSPORT: &str = "portunus.transport.whip";

/// A request to an endpoint that may be served.
struct Asked<'a> {
    kind: Kind,
    plugin: Arc<dyn Plugin>,
    /// The plugin's request to publish or watch.
    body: Value,
    token: Option<&'a str>,
    requester: Requester,
    rights: Rights,
    /// The plugin's name and the stream's id, for the log.
    stream: String,
}

impl Whip {
    /// Answers a POST.
    pub(super) async fn post(
        &self,
        kind: Kind,
        endpoint: &Endpoint,
        requester: Requester,
        query: &[(String, String)],
        headers: &HeaderMap,
        body: RequestBody,
    ) -> Result<Response, Problem> {
        let token = headers::bearer(headers)?;
        let asked = self.asked(kind, endpoint, requester, query, token)?;
        if !headers::accepts_sdp(headers) {
            let detail = format!("the answer is {SDP}: the Accept header has to allow it");
            return Err(Problem::new(StatusCode::NOT_ACCEPTABLE, detail));
        }
        let (sdp, _paid) = self.offer(kind, headers, body).await?;
        let place = self
            .registry
            .place()
            .ok_or_else(|| busy("there are too many publishers and viewers; try again later"))?;
        match sdp {
            Some(offer) => self.answer_offer(&asked, &offer, place).await,
            None => self.make_offer(&asked, place, StatusCode::CREATED).await,
        }
    }

    /// Checks that the endpoint exists, and that the client may use it.
    fn asked<'a>(
        &self,
        kind: Kind,
        endpoint: &Endpoint,
        requester: Requester,
        query: &[(String, String)],
        token: Option<&'a str>,
    ) -> Result<Asked<'a>, Problem> {
        let Endpoint {
            plugin: name,
            id: called,
            part,
        } = endpoint;
        let missing = |detail| Problem::new(StatusCode::NOT_FOUND, detail);
        let plugin = self.gateway.broadcaster(name).ok_or_else(|| {
            missing(format!(
                "no plugin {name:?} publishes or plays streams here; see the list of plugins in the answer to `info`"
            ))
        })?;
        let package = plugin.info().package;
        self.admit(token, package)?;
        let broadcast = plugin.broadcast();
        let id = broadcast.and_then(|broadcast| broadcast.id_of(called));
        let id = id.ok_or_else(|| {
            missing(format!(
                "{name} has no stream with the id or name {called:?}, or several of that name: ask for one by its id"
            ))
        })?;
        let stream = Stream {
            id: &id,
            part: part.as_deref(),
            query,
            token,
        };
        let body = broadcast.and_then(|broadcast| match kind {
            Kind::Whip => broadcast.publish(&stream),
            Kind::Whep => broadcast.watch(&stream),
        });
        let body = body.ok_or_else(|| {
            let what = match kind {
                Kind::Whip => "published by WHIP",
                Kind::Whep => "watched by WHEP",
            };
            let what = match part {
                Some(_) => format!("{what} in parts"),
                None => what.to_owned(),
            };
            missing(format!("streams of {name} cannot be {what}"))
        })?;
        Ok(Asked {
            kind,
            plugin,
            body,
            token,
            requester,
            rights: self.gateway.rights(requester, shown(token), package),
            stream: match part {
                Some(part) => format!("{name}/{id}/{part}"),
                None => format!("{name}/{id}"),
            },
        })
    }

    /// Where the API needs credentials, the token must open it, unless only the plugin decides.
    fn admit(&self, token: Option<&str>, package: &str) -> Result<(), Problem> {
        if self.config.authorization == WhipAuthorization::Plugin {
            return Ok(());
        }
        match self.gateway.admits(shown(token), package) {
            Ok(()) => Ok(()),
            Err(ApiError::UnauthorizedPlugin(_)) => Err(headers::unauthorized(
                "this token does not open this plugin; ask the server's operator",
                true,
                StatusCode::FORBIDDEN,
            )),
            Err(_) => Err(wrong_token(token)),
        }
    }

    /// Reads the offer in a body, with its payment. Returns `None` if the client wants an offer of
    /// the server.
    async fn offer(
        &self,
        kind: Kind,
        headers: &HeaderMap,
        body: RequestBody,
    ) -> Result<(Option<String>, Share), Problem> {
        let declared = headers::content_type(headers);
        if !declared.is_empty() && declared != SDP {
            let detail = format!("the body has to be {SDP}, not {declared}");
            let accept = HeaderName::from_static("accept-post");
            return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail)
                .with_header(accept, HeaderValue::from_static(SDP)));
        }
        let (body, share) = self.read(body).await?;
        if body.is_empty() && kind == Kind::Whep {
            return Ok((None, share));
        }
        if declared.is_empty() {
            let detail = format!("the Content-Type header has to say {SDP}");
            return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail));
        }
        let text = std::str::from_utf8(&body).ok();
        match text.filter(|text| text.starts_with("v=")) {
            Some(text) => Ok((Some(text.to_owned()), share)),
            None => Err(Problem::new(
                StatusCode::BAD_REQUEST,
                "the body is no SDP: it has to be the text of an offer, which starts with v=0",
            )),
        }
    }

    /// Lets the plugin answer the client's offer.
    async fn answer_offer(
        &self,
        asked: &Asked<'_>,
        offer: &str,
        place: OwnedSemaphorePermit,
    ) -> Result<Response, Problem> {
        if let Some(line) = RemoteDescription::parse(offer, SdpType::Offer, &[])
            .ok()
            .and_then(|offer| offer.unbundled)
        {
            return Err(not_bundled(line));
        }
        let outcome = async {
            let link = self.link(asked).await?;
            let answer = link.ask(&asked.body, Some(("offer", offer))).await?;
            Ok((link, answer.sdp.as_deref().map(with_transport_everywhere)))
        };
        match outcome.await {
            Ok((link, Some(answer))) if carries(&answer, asked.kind) => {
                let remote = super::resource::credentials(offer);
                let resource = Resource::new(
                    asked.kind,
                    asked.stream.clone(),
                    link,
                    asked.token,
                    remote,
                    place,
                );
                Ok(self.created(resource, &answer, StatusCode::CREATED))
            }
            Ok((link, Some(_))) => {
                link.close().await;
                self.nothing_in_common(asked, place).await
            }
            Ok((_, None)) => Err(internal("the plugin has not answered the offer")),
            Err(Failure::Plugin(code, text)) => match asked.refusal(code) {
                Refusal::Unusable if asked.kind == Kind::Whep => {
                    self.nothing_in_common(asked, place).await
                }
                refusal => Err(asked.problem(refusal, code, &text)),
            },
            Err(failure) => Err(asked.failed(failure, Some(offer))),
        }
    }

    /// Answers a viewer with an unusable offer by an offer of the server, which the viewer may
    /// answer.
    async fn nothing_in_common(
        &self,
        asked: &Asked<'_>,
        place: OwnedSemaphorePermit,
    ) -> Result<Response, Problem> {
        match asked.kind {
            Kind::Whep => {
                self.make_offer(asked, place, StatusCode::NOT_ACCEPTABLE)
                    .await
            }
            Kind::Whip => Err(Problem::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                "nothing in the offer can be published here: see which media and codecs the stream takes, and offer those to be sent",
            )),
        }
    }

    /// Requests an offer to a viewer from the plugin.
    async fn make_offer(
        &self,
        asked: &Asked<'_>,
        place: OwnedSemaphorePermit,
        status: StatusCode,
    ) -> Result<Response, Problem> {
        let outcome = async {
            let link = self.link(asked).await?;
            let offer = link.ask(&asked.body, None).await?;
            Ok((link, offer.sdp))
        };
        match outcome.await {
            Ok((link, Some(offer))) => {
                let start = asked.plugin.broadcast().map(Broadcast::start);
                let resource = Resource::new(
                    asked.kind,
                    asked.stream.clone(),
                    link,
                    asked.token,
                    None,
                    place,
                )
                .awaiting_answer(start.unwrap_or_default());
                Ok(self.created(resource, &offer, status))
            }
            Ok((_, None)) => Err(internal("the plugin has made no offer")),
            Err(Failure::Plugin(code, text)) if asked.refusal(code) == Refusal::Unusable => {
                // The stream has no media now, but a publisher may come.
                Err(asked.problem(Refusal::Conflict, code, &text))
            }
            Err(failure) => Err(asked.failed(failure, None)),
        }
    }

    async fn link(&self, asked: &Asked<'_>) -> Result<Link, Failure> {
        let (client, messages) = Client::internal(TRANSPORT, asked.requester, asked.rights);
        let package = asked.plugin.info().package;
        let scope = self.gateway.scope(shown(asked.token), package);
        let client = (client.confined_to(scope), messages);
        Link::open(&self.gateway, client, package).await
    }

    /// Registers a resource, and returns the response.
    fn created(&self, resource: Resource, sdp: &str, status: StatusCode) -> Response {
        let kind = resource.kind();
        let etag = resource.etag();
        let counter = match kind {
            Kind::Whip => &self.counters.whip_sessions,
            Kind::Whep => &self.counters.whep_sessions,
        };
        counter.add(1);
        let limit = self.config.connect_timeout;
        let id = resource.register(&self.registry, limit);
        let mut response = Response::new(Body::from(sdp.to_owned()));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(SDP));
        let accept_patch = HeaderName::from_static("accept-patch");
        headers.insert(accept_patch, HeaderValue::from_static(kind.accept_patch()));
        for (name, text) in [(LOCATION, kind.location(&id)), (ETAG, etag)] {
            if let Ok(value) = HeaderValue::from_str(&text) {
                headers.insert(name, value);
            }
        }
        for server in &self.ice_servers {
            headers.append(LINK, server.clone());
        }
        for server in self
            .gateway
            .turn()
            .into_iter()
            .flat_map(headers::Link::values)
        {
            headers.append(LINK, server);
        }
        response
    }
}

impl Asked<'_> {
    fn refusal(&self, code: u64) -> Refusal {
        let broadcast = self.plugin.broadcast();
        broadcast.map_or(Refusal::Internal, |broadcast| broadcast.refusal(code))
    }

    /// Returns the problem for a failure. `offer` is the client's offer.
    fn failed(&self, failure: Failure, offer: Option<&str>) -> Problem {
        match failure {
            Failure::Plugin(code, text) => self.problem(self.refusal(code), code, &text),
            Failure::Core(465, text) => bad_offer(offer, &text),
            Failure::Core(472, text) => full(&text),
            Failure::Core(450, text) => busy(&text),
            // A token, an id or a parameter is longer than allowed.
            Failure::Core(code @ (456 | 467), text) => {
                Problem::new(StatusCode::BAD_REQUEST, text).with_code(code)
            }
            Failure::Core(code, text) => internal(&text).with_code(code),
            Failure::Silence => busy("the plugin did not answer in time; try again later"),
            Failure::Ended => busy("the session ended at once: the server may be stopping"),
        }
    }

    fn problem(&self, refusal: Refusal, code: u64, text: &str) -> Problem {
        let (status, advice) = match refusal {
            Refusal::NotFound => (
                StatusCode::NOT_FOUND,
                "see the list of streams, and the id in the path",
            ),
            Refusal::Unauthorized => return wrong_token(self.token).with_code(code),
            Refusal::Conflict => (
                StatusCode::CONFLICT,
                "try again later, or use another stream",
            ),
            Refusal::Malformed => (StatusCode::BAD_REQUEST, "see the offer that was sent"),
            Refusal::Parameter => (
                StatusCode::BAD_REQUEST,
                "see the ids in the path and the values in the query",
            ),
            Refusal::Unusable => (
                StatusCode::UNPROCESSABLE_ENTITY,
                "see which media and codecs the stream has",
            ),
            Refusal::Unavailable => (StatusCode::SERVICE_UNAVAILABLE, "try again later"),
            Refusal::Internal => (
                StatusCode::INTERNAL_SERVER_ERROR,
                "the server's log may say more",
            ),
        };
        let problem = Problem::new(status, format!("{text}; {advice}")).with_code(code);
        match refusal {
            Refusal::Conflict | Refusal::Unavailable => {
                let (name, value) = retry_after(2);
                problem.with_header(name, value)
            }
            _ => problem,
        }
    }
}

/// Whether an answer lets media flow in the client's direction.
fn carries(answer: &str, kind: Kind) -> bool {
    let wanted = match kind {
        Kind::Whip => "a=recvonly",
        Kind::Whep => "a=sendonly",
    };
    let mut accepted = false;
    answer.lines().any(|line| {
        if let Some(media) = line.strip_prefix("m=") {
            let mut fields = media.split(' ');
            let kind = fields.next();
            accepted = fields.next().is_some_and(|port| port != "0");
            return accepted && kind == Some("application");
        }
        accepted && (line == wanted || line == "a=sendrecv")
    })
}

/// Finds the cause of a bad offer by parsing it, since the core has one text for several causes.
fn bad_offer(offer: Option<&str>, text: &str) -> Problem {
    use portunus_core::sdp::SdpError as E;
    let cause = offer.and_then(|sdp| RemoteDescription::parse(sdp, SdpType::Offer, &[]).err());
    let (status, detail) = match cause {
        Some(E::NoIceCredentials) => (
            StatusCode::UNPROCESSABLE_ENTITY,
            "the offer has no usable a=ice-ufrag and a=ice-pwd: it has to be one of WebRTC".into(),
        ),
        Some(E::NoFingerprint) => (
            StatusCode::UNPROCESSABLE_ENTITY,
            "the offer has no a=fingerprint that can be used (sha-256 or sha-1): DTLS is needed"
                .into(),
        ),
        Some(E::MalformedMid(line)) => (
            StatusCode::UNPROCESSABLE_ENTITY,
            format!("the a=mid of m-line {line} of the offer is not 1 to 16 visible characters"),
        ),
        Some(E::NotBundled(line)) => return not_bundled(line),
        Some(E::TooManyMedia(lines)) => (
            StatusCode::UNPROCESSABLE_ENTITY,
            format!("the offer has {lines} m-lines, which are too many"),
        ),
        Some(cause) => {
            let said = cause.to_string();
            let detail = match said.as_str() {
                "" | "Error processing SDP" => format!("the offer cannot be read: {cause:?}"),
                _ => format!("the offer cannot be read: {said}"),
            };
            (StatusCode::BAD_REQUEST, detail)
        }
        None => (
            StatusCode::UNPROCESSABLE_ENTITY,
            format!("the offer cannot be answered: {text}"),
        ),
    };
    Problem::new(status, detail)
}

/// An m-line outside of the bundle would need a transport of its own.
fn not_bundled(line: usize) -> Problem {
    let detail = format!(
        "m-line {line} of the offer is not bundled with the first one: all have to be in one a=group:BUNDLE \
         (RFC 9725 section 4.4); most clients have a bundle policy, which has to be max-bundle"
    );
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail)
}

fn wrong_token(token: Option<&str>) -> Problem {
    let detail = match token {
        None => "a token is needed: send the header `Authorization: Bearer TOKEN`",
        Some(_) => "this token is not the right one; ask for the one of this stream",
    };
    headers::unauthorized(detail, token.is_some(), StatusCode::UNAUTHORIZED)
}

fn internal(detail: &str) -> Problem {
    Problem::new(StatusCode::INTERNAL_SERVER_ERROR, detail)
}
