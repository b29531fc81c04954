//! A request without a reply yet.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use serde_json::Value;
use tokio::sync::oneshot;

use super::Gateway;
use super::requests::Unanswered;
use crate::Client;

/// A request of a pushed client that a handle is answering. Awaiting it puts the reply into the
/// client's queue. If the handle ends without a reply, an error is put there instead.
#[must_use = "somebody has to await it, for handles that end without a reply"]
pub struct PendingReply {
    pub(super) gateway: Gateway,
    pub(super) client: Client,
    pub(super) request: Unanswered,
    pub(super) reply: oneshot::Receiver<Option<Value>>,
}

impl Future for PendingReply {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let pending = &mut *self;
        let reply = ready!(Pin::new(&mut pending.reply).poll(context));
        if let Some(reply) = pending.gateway.reply_of(reply, &mut pending.request) {
            pending.client.push(reply);
        }
        Poll::Ready(())
    }
}

impl fmt::Debug for PendingReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingReply")
            .field("request", &self.request)
            .finish_non_exhaustive()
    }
}
