//! The bodies of HTTP requests and responses. A connection pays for a body as long as the body is
//! in memory.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes};
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use futures_util::StreamExt;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use portunus_core::{ApiError, OverBudget, Purse, Share};

/// Why a body was not read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BodyError {
    /// It is larger than allowed, or the client went away.
    #[error("the body is larger than allowed, or broke off")]
    Broken,
    /// There is no memory for it.
    #[error(transparent)]
    OverBudget(#[from] OverBudget),
}

/// The body of a request that has not been read yet, and the purse that pays for it.
#[derive(Debug)]
pub(crate) struct RequestBody {
    body: Body,
    purse: Purse,
}

impl RequestBody {
    pub(crate) fn new(body: Body, purse: Purse) -> Self {
        Self { body, purse }
    }

    /// Reads the whole body, of `max` bytes at most. The share pays for it.
    pub(crate) async fn read(self, max: usize) -> Result<(Bytes, Share), BodyError> {
        let mut share = self.purse.empty_share();
        let mut whole = Vec::new();
        let mut pieces = self.body.into_data_stream();
        while let Some(piece) = pieces.next().await {
            let piece = piece.map_err(|_| BodyError::Broken)?;
            if whole.len().saturating_add(piece.len()) > max {
                return Err(BodyError::Broken);
            }
            share.grow(piece.len())?;
            whole.extend_from_slice(&piece);
        }
        Ok((whole.into(), share))
    }
}

/// Lets the body of a response be paid for until it is written. Returns a refusal instead if there
/// is no memory for the body.
pub(crate) fn paid(mut response: Response, purse: Purse) -> Response {
    let size = response.body().size_hint().exact();
    let size = size.map(|size| usize::try_from(size).unwrap_or(usize::MAX));
    match size.map(|size| purse.take(size)).transpose() {
        Ok(ahead) => response.map(|body| Body::new(PaidBody { body, purse, ahead })),
        Err(error) => {
            *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
            let headers = response.headers_mut();
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            headers.insert(RETRY_AFTER, HeaderValue::from_static("2"));
            let reply = ApiError::from(error).reply(None, None);
            response.map(|_| Body::from(reply.to_string()))
        }
    }
}

struct PaidBody {
    body: Body,
    purse: Purse,
    /// Pays for the whole body if its size was known.
    ahead: Option<Share>,
}

/// Bytes and the share that pays for them.
struct PaidBytes {
    bytes: Bytes,
    _share: Share,
}

impl AsRef<[u8]> for PaidBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl HttpBody for PaidBody {
    type Data = Bytes;
    type Error = axum::BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let Some(frame) = ready!(Pin::new(&mut self.body).poll_frame(context)) else {
            return Poll::Ready(None);
        };
        let bytes = match frame?.into_data() {
            Ok(bytes) => bytes,
            Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
        };
        let share = match self.ahead.take() {
            Some(share) => share,
            None => self.purse.take(bytes.len())?,
        };
        let bytes = Bytes::from_owner(PaidBytes {
            bytes,
            _share: share,
        });
        Poll::Ready(Some(Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use axum::body::to_bytes;
    use portunus_core::{Budget, BudgetKeys, BudgetLimits};

    use super::*;

    fn budget(whole: usize) -> Budget {
        let limits = BudgetLimits {
            whole,
            address: whole,
            reserve: 0,
        };
        let keys = BudgetKeys {
            whole: "whole",
            address: "address",
        };
        Budget::new(limits, &[], keys)
    }

    #[tokio::test]
    async fn a_body_is_paid_for_until_its_share_goes() {
        let budget = budget(100);
        let purse = budget.trusted();
        let body = |size| RequestBody::new(Body::from("x".repeat(size)), purse.clone());
        let (first, share) = body(60).read(80).await.unwrap();
        assert_eq!((first.len(), budget.totals().used), (60, 60));
        let second = body(60).read(80).await;
        assert!(matches!(second, Err(BodyError::OverBudget(_))));
        assert_eq!(budget.totals().used, 60);
        drop(share);
        let long = body(81).read(80).await;
        assert!(matches!(long, Err(BodyError::Broken)));
        assert_eq!(budget.totals().used, 0);
    }

    #[tokio::test]
    async fn a_response_is_paid_for_until_it_is_written() {
        let budget = budget(100);
        let response = || paid(Response::new(Body::from("x".repeat(60))), budget.trusted());
        let first = response();
        assert_eq!(budget.totals().used, 60);
        let refused = response();
        assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
        let mut frames = first.into_body().into_data_stream();
        let bytes = frames.next().await.unwrap().unwrap();
        assert!(frames.next().await.is_none());
        drop(frames);
        assert_eq!((bytes.len(), budget.totals().used), (60, 60));
        drop(bytes);
        assert_eq!(budget.totals().used, 0);
        let refusal = to_bytes(refused.into_body(), 1_000).await.unwrap();
        assert!(std::str::from_utf8(&refusal).unwrap().contains("450"));
    }
}
