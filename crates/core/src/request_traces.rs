//! Traces of requests: how long each took, for a collector of traces.

use std::fmt::Debug;
use std::time::{Duration, Instant, SystemTime};

use crate::request::{Address, Request};
use crate::{Client, HandleId, SessionId};

/// Receives the trace of each answered request.
pub trait RequestTraces: Debug + Send + Sync {
    /// Takes the trace of a request. It must not block: the reply waits for it.
    fn answered(&self, trace: RequestTrace);
}

/// A request with its times.
#[derive(Debug, Clone)]
pub struct RequestTrace {
    /// The verb of the Janus API, in lower case, such as `message`.
    pub verb: String,
    /// The plugin's request of a `message`, such as `join`.
    pub plugin_request: Option<String>,
    /// The package of the transport, such as `janus.transport.http`.
    pub transport: &'static str,
    /// The session, unless the request is for the server.
    pub session: Option<SessionId>,
    /// The handle, if the request is for one.
    pub handle: Option<HandleId>,
    /// The client's name for the request.
    pub transaction: String,
    /// The client's span, as `00-TRACE-SPAN-FLAGS` (W3C Trace Context, section 3.2).
    pub parent: Option<String>,
    /// When the request arrived.
    pub began: SystemTime,
    /// The time until its reply was known.
    pub duration: Duration,
    /// The code and the text of the error that answers it.
    pub error: Option<(u16, String)>,
}

/// A request that has no reply yet, with what its trace will say.
#[derive(Debug)]
pub(crate) struct OpenTrace {
    trace: RequestTrace,
    began: Instant,
}

impl OpenTrace {
    /// Notes a request that has just arrived.
    pub(crate) fn new(client: &Client, request: &Request) -> Self {
        let handle = match request.address {
            Address::Handle(_, handle) => Some(handle),
            Address::Server | Address::Session(_) => None,
        };
        let body = request
            .members
            .get("body")
            .filter(|_| request.verb == "message");
        let plugin_request = body.and_then(|body| body.get("request")?.as_str());
        Self {
            trace: RequestTrace {
                verb: request.verb.clone(),
                plugin_request: plugin_request.map(str::to_owned),
                transport: client.transport(),
                session: request.session(),
                handle,
                transaction: request.transaction.clone(),
                parent: request.text("traceparent").map(str::to_owned),
                began: SystemTime::now(),
                duration: Duration::ZERO,
                error: None,
            },
            began: Instant::now(),
        }
    }

    /// Completes the trace; `error` is the error that answers the request.
    pub(crate) fn end(self, error: Option<(u16, String)>) -> RequestTrace {
        RequestTrace {
            duration: self.began.elapsed(),
            error,
            ..self.trace
        }
    }
}
