//! WHIP and WHEP (RFC 9725): an offer by POST with the answer in its response, and the end by
//! DELETE.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1;
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, LOCATION};
use hyper::{Method, Request, Response, Uri};
use hyper_util::rt::TokioIo;
use tokio::time::timeout;

use super::{ClientError, Trust, tls};

const SDP: &str = "application/sdp";
/// The longest wait for an answer.
const PATIENCE: Duration = Duration::from_secs(20);
/// The longest body, in bytes.
const MAX_BODY: usize = 1 << 18;

/// A resource that the server made for an offer.
#[derive(Debug, Clone)]
pub struct Broadcast {
    resource: Uri,
    token: Option<String>,
    trust: Trust,
    /// The server's answer.
    pub answer: String,
}

impl Broadcast {
    /// Offers to the endpoint `url` (`http://…` or `https://…`).
    pub async fn offer(
        url: &str,
        token: Option<&str>,
        trust: &Trust,
        offer: String,
    ) -> Result<Self, ClientError> {
        let uri: Uri = url.parse().map_err(|_| ClientError::Url(url.to_owned()))?;
        let response = send(Method::POST, &uri, (token, trust), offer).await?;
        let missing = |missing| ClientError::Malformed {
            request: format!("POST {url}"),
            missing,
        };
        let location = response.headers().get(LOCATION);
        let location = location.and_then(|location| location.to_str().ok());
        let resource = resolve(&uri, location.ok_or(missing("Location"))?)
            .ok_or(missing("usable Location"))?;
        Ok(Self {
            resource,
            token: token.map(str::to_owned),
            trust: trust.clone(),
            answer: response.into_body(),
        })
    }

    /// Ends the broadcast.
    pub async fn end(&self) -> Result<(), ClientError> {
        let token = self.token.as_deref();
        let access = (token, &self.trust);
        send(Method::DELETE, &self.resource, access, String::new()).await?;
        Ok(())
    }
}

/// Sends a request on a new connection, like unrelated clients.
async fn send(
    method: Method,
    uri: &Uri,
    access: (Option<&str>, &Trust),
    body: String,
) -> Result<Response<String>, ClientError> {
    let request = format!("{method} {uri}");
    let reply = timeout(PATIENCE, exchange(method, uri, access, body));
    let response = reply.await.map_err(|_| ClientError::Timeout {
        request: request.clone(),
        after: PATIENCE,
    })??;
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    Err(ClientError::Refused {
        request,
        code: status.as_u16().into(),
        reason: response.into_body(),
    })
}

async fn exchange(
    method: Method,
    uri: &Uri,
    (token, trust): (Option<&str>, &Trust),
    body: String,
) -> Result<Response<String>, ClientError> {
    let authority = uri.authority();
    let authority = authority.ok_or_else(|| ClientError::Url(uri.to_string()))?;
    let failed = |reason: String| ClientError::Connect {
        url: uri.to_string(),
        reason,
    };
    let stream = tls::connect(uri, ["http", "https"], trust).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
        .await
        .map_err(|error| failed(error.to_string()))?;
    // It ends with the sender, where errors show.
    tokio::spawn(async move { drop(connection.await) });
    let mut request = Request::builder()
        .method(method)
        .uri(uri.path_and_query().map_or("/", |path| path.as_str()))
        .header(HOST, authority.as_str())
        .header(ACCEPT, SDP);
    if !body.is_empty() {
        request = request.header(CONTENT_TYPE, SDP);
    }
    if let Some(token) = token {
        request = request.header(AUTHORIZATION, format!("Bearer {token}"));
    }
    let request = request
        .body(Full::new(Bytes::from(body)))
        .map_err(|error| failed(error.to_string()))?;
    let response = sender.send_request(request).await;
    let (head, body) = response
        .map_err(|error| failed(error.to_string()))?
        .into_parts();
    let body = Limited::new(body, MAX_BODY).collect().await;
    let body = body.map_err(|error| failed(error.to_string()))?.to_bytes();
    let text = String::from_utf8_lossy(&body).into_owned();
    Ok(Response::from_parts(head, text))
}

/// Resolves a Location header against `base`.
fn resolve(base: &Uri, location: &str) -> Option<Uri> {
    if location.contains("://") {
        return location.parse().ok();
    }
    let path = match location.strip_prefix('/') {
        Some(_) => location.to_owned(),
        None => {
            let folder = base
                .path()
                .rsplit_once('/')
                .map_or("", |(folder, _)| folder);
            format!("{folder}/{location}")
        }
    };
    let (scheme, authority) = (base.scheme()?.clone(), base.authority()?.clone());
    let uri = Uri::builder().scheme(scheme).authority(authority);
    uri.path_and_query(path).build().ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;

    #[test]
    fn locations_are_relative_or_whole() {
        let base = "http://h:8/whep/7".parse().unwrap();
        let resolved = |location| resolve(&base, location).unwrap().to_string();
        assert_eq!(resolved("/whep/resource/a"), "http://h:8/whep/resource/a");
        assert_eq!(resolved("a?b"), "http://h:8/whep/a?b");
        assert_eq!(resolved("http://other/x"), "http://other/x");
        assert_eq!(resolve(&base, "/a b"), None);
    }

    #[tokio::test]
    async fn what_is_no_usable_url_is_told() {
        for url in ["", "h", "ws://h/", "http://"] {
            let offered = Broadcast::offer(url, None, &Trust::system(), "v=0".to_owned()).await;
            assert!(matches!(offered, Err(ClientError::Url(_))), "{url}");
        }
    }
}
