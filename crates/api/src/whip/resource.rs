//! A publisher's or viewer's resource: candidates and restarts by PATCH, the end by DELETE.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, ETAG, HeaderName};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;
use portunus_core::equal_in_constant_time;
use portunus_core::sdp::{FragmentCandidate, IceCredentials, IceFragment};
use rand::Rng;
use serde_json::{Value, json};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::headers::Match;
use super::link::{Failure, Link};
use super::path::Kind;
use super::problem::Problem;
use super::registry::Registry;
use super::{FRAGMENT, SDP, Whip, headers, retry_after};
use crate::bodies::RequestBody;

/// The most changes of a resource that wait.
const MAX_WAITING: usize = 32;

/// A client of WHIP or WHEP.
#[derive(Debug)]
pub(super) struct Resource {
    kind: Kind,
    /// The plugin's name and the stream's id, for the log.
    stream: String,
    link: Link,
    /// The token that later requests must carry, too.
    token: Option<String>,
    /// Held during a change, so that changes come one after the other.
    turn: tokio::sync::Mutex<()>,
    /// Limits waiting changes, which continue even if the client leaves.
    waiting: Arc<Semaphore>,
    ice: Mutex<Ice>,
    offer: Mutex<Offer>,
    _place: OwnedSemaphorePermit,
}

/// The ICE session that the entity tag stands for.
#[derive(Debug)]
struct Ice {
    tag: String,
    /// The client's credentials, once they are known.
    remote: Option<IceCredentials>,
}

/// The state of the server's offer.
#[derive(Debug)]
enum Offer {
    /// There is none: the client has offered.
    None,
    /// The viewer has to answer it. This request goes to the plugin with the answer.
    Open(Value),
    /// It was answered by the description with this hash.
    Answered(u64),
}

impl Resource {
    pub(super) fn new(
        kind: Kind,
        stream: String,
        link: Link,
        token: Option<&str>,
        remote: Option<IceCredentials>,
        place: OwnedSemaphorePermit,
    ) -> Self {
        Resource {
            kind,
            stream,
            link,
            token: token.map(str::to_owned),
            turn: tokio::sync::Mutex::default(),
            waiting: Arc::new(Semaphore::new(MAX_WAITING)),
            ice: Mutex::new(Ice {
                tag: new_tag(),
                remote,
            }),
            offer: Mutex::new(Offer::None),
            _place: place,
        }
    }

    /// The viewer has to answer the server's offer. The answer goes to the plugin with `start`.
    pub(super) fn awaiting_answer(self, start: Value) -> Self {
        *self.offer() = Offer::Open(start);
        self
    }

    pub(super) fn kind(&self) -> Kind {
        self.kind
    }

    /// Returns the entity tag with its quotes.
    pub(super) fn etag(&self) -> String {
        self.ice().tag.clone()
    }

    /// Registers it, and returns its id. It ends with its PeerConnection, or if that is not up
    /// after `limit`.
    pub(super) fn register(self, registry: &Arc<Registry>, limit: Duration) -> String {
        let resource = Arc::new(self);
        let id = registry.add(resource.clone());
        let (registry, key) = (registry.clone(), id.clone());
        tokio::spawn(async move {
            if resource.link.is_up_within(limit).await {
                resource.log("connected");
                resource.link.ended().await;
                resource.log("gone");
            } else if !resource.link.has_ended() {
                resource.log("not connected in time");
            }
            registry.remove(&key);
        });
        id
    }

    /// Publishers are few and matter to many, viewers may be many. The resource's id is not logged,
    /// since it opens the resource.
    fn log(&self, what: &'static str) {
        let (stream, session) = (&self.stream, self.link.session());
        match self.kind {
            Kind::Whip => tracing::info!(stream, %session, "WHIP publisher {what}"),
            Kind::Whep => tracing::debug!(stream, %session, "WHEP viewer {what}"),
        }
    }

    /// Checks that a request carries the token that created the resource.
    fn check_token(&self, token: Option<&str>) -> Result<(), Problem> {
        let Some(known) = self.token.as_deref() else {
            return Ok(());
        };
        match token {
            Some(token) if equal_in_constant_time(known, token) => Ok(()),
            shown => Err(headers::unauthorized(
                "the token has to be the one that made this resource",
                shown.is_some(),
                StatusCode::UNAUTHORIZED,
            )),
        }
    }

    /// Takes the viewer's answer to the server's offer.
    async fn answer(&self, sdp: &str) -> Result<Response, Problem> {
        let start = match &*self.offer() {
            Offer::Open(start) => start.clone(),
            // The viewer may have missed the response.
            Offer::Answered(hash) if *hash == hash_of(sdp) => {
                return Ok(status(StatusCode::NO_CONTENT));
            }
            Offer::Answered(_) | Offer::None => {
                let detail = format!(
                    "there is no offer to answer: descriptions cannot be changed; candidates are {FRAGMENT}"
                );
                return Err(Problem::new(StatusCode::CONFLICT, detail));
            }
        };
        match self.link.ask(&start, Some(("answer", sdp))).await {
            Ok(_) => {
                *self.offer() = Offer::Answered(hash_of(sdp));
                self.ice().remote = credentials(sdp);
                Ok(status(StatusCode::NO_CONTENT))
            }
            Err(Failure::Core(465 | 469, text)) => {
                let detail = format!("the answer does not fit the offer: {text}");
                Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail))
            }
            // An answer cannot be undone, so the viewer has to start again.
            Err(Failure::Plugin(code, text)) => {
                self.link.close().await;
                let detail = format!("{text}; POST to the endpoint to make another");
                Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail).with_code(code))
            }
            Err(Failure::Silence) => {
                self.link.close().await;
                Err(gone())
            }
            Err(failure) => Err(self.lost(&failure)),
        }
    }

    /// Takes candidates, or restarts ICE.
    async fn fragment(&self, text: &str, headers: &HeaderMap) -> Result<Response, Problem> {
        let fragment = IceFragment::parse(text).map_err(|error| {
            let detail = format!("the body cannot be read as {FRAGMENT}: {error}");
            Problem::new(StatusCode::BAD_REQUEST, detail)
        })?;
        let tag = self.etag();
        match Match::of(headers, &tag) {
            Match::Yes => {}
            Match::Absent => {
                return Err(Problem::new(
                    StatusCode::PRECONDITION_REQUIRED,
                    "an If-Match header is needed: the ETag of the last answer, or * to restart ICE",
                ));
            }
            Match::No => {
                return Err(Problem::new(
                    StatusCode::PRECONDITION_FAILED,
                    "the If-Match header names another ICE session than the one that there is now",
                ));
            }
        }
        let restarts = {
            let ice = self.ice();
            ice.remote.is_some() && fragment.ice.is_some() && ice.remote != fragment.ice
        };
        match (restarts, fragment.ice.clone()) {
            (true, Some(remote)) => self.restart(remote, fragment).await,
            _ => {
                self.trickle(fragment).await?;
                Ok(status(StatusCode::NO_CONTENT))
            }
        }
    }

    async fn restart(
        &self,
        remote: IceCredentials,
        fragment: IceFragment,
    ) -> Result<Response, Problem> {
        let restarted = self.link.restart_ice(remote.clone()).await;
        let local = restarted.ok_or_else(|| self.lost(&Failure::Ended))?;
        let tag = new_tag();
        *self.ice() = Ice {
            tag: tag.clone(),
            remote: Some(remote),
        };
        let media = fragment.media.clone();
        self.trickle(fragment).await?;
        let mid = Some(local.mid.as_str().to_owned());
        let candidate = |text: String| FragmentCandidate {
            mid: mid.clone(),
            index: 0,
            text: match text.starts_with("candidate:") {
                true => text,
                false => format!("candidate:{text}"),
            },
        };
        let ours = IceFragment {
            ice: Some(local.ice),
            candidates: local.candidates.into_iter().map(candidate).collect(),
            complete: true,
            media,
            mid: mid.clone(),
        };
        let mut response = Response::new(Body::from(ours.to_string()));
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(FRAGMENT));
        if let Ok(tag) = HeaderValue::from_str(&tag) {
            headers.insert(ETAG, tag);
        }
        Ok(response)
    }

    async fn trickle(&self, fragment: IceFragment) -> Result<(), Problem> {
        if fragment.candidates.is_empty() {
            return Ok(());
        }
        let candidates = fragment.candidates.into_iter().map(|candidate| {
            json!({
                "sdpMid": candidate.mid,
                "sdpMLineIndex": candidate.index,
                "candidate": candidate.text,
            })
        });
        self.link
            .trickle(candidates.collect())
            .await
            .map_err(|failure| self.lost(&failure))
    }

    /// The problem of a request without a connection.
    fn lost(&self, failure: &Failure) -> Problem {
        tracing::debug!(?failure, "a request to a resource that cannot take it");
        if self.link.has_ended() {
            return gone();
        }
        let detail = "the connection is not set up yet, or is just ending; try again later, or POST to the endpoint to make another";
        Problem::new(StatusCode::CONFLICT, detail)
    }

    fn offer(&self) -> MutexGuard<'_, Offer> {
        self.offer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ice(&self) -> MutexGuard<'_, Ice> {
        self.ice.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Whip {
    /// Answers a PATCH.
    pub(super) async fn patch(
        &self,
        kind: Kind,
        id: &str,
        headers: &HeaderMap,
        body: RequestBody,
    ) -> Result<Response, Problem> {
        let resource = self.find(kind, id, headers)?;
        let declared = headers::content_type(headers);
        if declared != FRAGMENT && !(declared == SDP && kind == Kind::Whep) {
            let answer = match kind {
                Kind::Whip => String::new(),
                Kind::Whep => format!(", or {SDP} that answers an offer of ours"),
            };
            let detail =
                format!("the body has to be {FRAGMENT}{answer}, and the Content-Type to say so");
            let accept = HeaderName::from_static("accept-patch");
            return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail)
                .with_header(accept, HeaderValue::from_static(kind.accept_patch())));
        }
        let waiting = Arc::clone(&resource.waiting).try_acquire_owned();
        let place = waiting.map_err(|_| {
            let detail = format!(
                "{MAX_WAITING} wait for this resource already: try again later, or end it by DELETE, which does not wait"
            );
            let (name, value) = retry_after(1);
            Problem::new(StatusCode::TOO_MANY_REQUESTS, detail).with_header(name, value)
        })?;
        let (body, paid) = self.read(body).await?;
        let text = String::from_utf8(body.into())
            .map_err(|_| Problem::new(StatusCode::BAD_REQUEST, "the body is no text in UTF-8"))?;
        let (is_answer, headers) = (declared == SDP, headers.clone());
        // In a task of its own, so that a complete request is carried out even if the client
        // leaves.
        let done = tokio::spawn(async move {
            let (_place, _paid) = (place, paid);
            let _turn = resource.turn.lock().await;
            match is_answer {
                true => resource.answer(&text).await,
                false => resource.fragment(&text, &headers).await,
            }
        });
        // Fails only at the end of the runtime, which ends the resource, too.
        done.await.unwrap_or_else(|_| Err(gone()))
    }

    /// Answers a DELETE. Clients close their PeerConnection first, which ends the resource, so an
    /// ended resource is a success.
    pub(super) async fn delete(
        &self,
        kind: Kind,
        id: &str,
        headers: &HeaderMap,
    ) -> Result<Response, Problem> {
        let Some(resource) = self.registry.find(kind, id) else {
            return match self.registry.has_ended(kind, id) {
                true => Ok(status(StatusCode::OK)),
                false => Err(gone()),
            };
        };
        resource.check_token(headers::bearer(headers)?)?;
        self.registry.remove(id);
        // In a task of its own, so that it completes even if the client leaves.
        let closing = tokio::spawn(async move { resource.link.close().await });
        // Fails only at the end of the runtime, which ends the resource, too.
        let _ = closing.await;
        Ok(status(StatusCode::OK))
    }

    /// Returns the resource, if it exists and the request carries its token.
    fn find(&self, kind: Kind, id: &str, headers: &HeaderMap) -> Result<Arc<Resource>, Problem> {
        let resource = self.registry.find(kind, id);
        let alive = resource.filter(|resource| !resource.link.has_ended());
        let resource = alive.ok_or_else(gone)?;
        resource.check_token(headers::bearer(headers)?)?;
        Ok(resource)
    }
}

/// Returns the credentials of the transport that all m-lines of a description share.
pub(super) fn credentials(sdp: &str) -> Option<IceCredentials> {
    let value = |prefix: &str| {
        let mut values = sdp.lines().filter_map(|line| line.strip_prefix(prefix));
        values.next().map(|value| value.trim().to_owned())
    };
    let (ufrag, pwd) = (value("a=ice-ufrag:")?, value("a=ice-pwd:")?);
    Some(IceCredentials { ufrag, pwd })
}

fn gone() -> Problem {
    let detail = "this resource does not exist, or has ended; POST to the endpoint to make another";
    Problem::new(StatusCode::NOT_FOUND, detail)
}

fn hash_of(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

fn new_tag() -> String {
    format!("\"{:016x}\"", rand::rng().random::<u64>())
}

fn status(status: StatusCode) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}
