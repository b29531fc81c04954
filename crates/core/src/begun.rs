//! A request whose reply is not there yet.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use serde_json::Value;
use tokio::sync::oneshot;

use crate::gateway::Unanswered;
use crate::{Client, Gateway};

/// A request of a pushed client that a handle has before it: it ends once the reply is in the client's queue. A handle that
/// ends without a reply is answered for, as long as somebody awaits this.
#[must_use = "somebody has to await it, for handles that end without a reply"]
pub struct Begun {
    pub(crate) gateway: Gateway,
    pub(crate) client: Client,
    pub(crate) request: Unanswered,
    pub(crate) reply: oneshot::Receiver<Option<Value>>,
}

impl Future for Begun {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let reply = ready!(Pin::new(&mut self.reply).poll(context));
        if let Some(reply) = self.gateway.reply_of(reply, self.request) {
            self.client.push(reply);
        }
        Poll::Ready(())
    }
}

impl fmt::Debug for Begun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Begun")
            .field("request", &self.request)
            .finish_non_exhaustive()
    }
}
