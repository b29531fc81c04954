//! The keys that match requests to transactions (RFC 3261 section 17.2.3).

use std::fmt::Write as _;

use crate::message::{Method, Request};

/// The key of a request. A repetition has the same, and so have the ACK and the CANCEL of an
/// INVITE.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct ServerKey(String);

impl ServerKey {
    /// Returns the key of a request, or that of the INVITE of an ACK. Returns `None` if a header
    /// field is missing.
    pub(super) fn of(request: &Request) -> Option<Self> {
        let method = if request.method == Method::Ack {
            &Method::Invite
        } else {
            &request.method
        };
        Self::with(request, method)
    }

    /// Returns the key of the INVITE that a CANCEL is for.
    pub(super) fn of_cancelled(request: &Request) -> Option<Self> {
        Self::with(request, &Method::Invite)
    }

    fn with(request: &Request, method: &Method) -> Option<Self> {
        let via = request.headers.via().ok()??;
        let mut key = String::with_capacity(96);
        // Writing to a String does not fail. Spaces keep the parts apart: none of them has one.
        if let Some(branch) = via.unique_branch() {
            let _ = write!(
                key,
                "{branch} {} {} {method}",
                via.host,
                via.port.unwrap_or(0)
            );
        } else {
            // RFC 2543: there is no unique branch. An ACK has the To tag of our response, so To is
            // left out.
            let from = request.headers.from().ok()??;
            let cseq = request.headers.cseq().ok()??;
            let _ = write!(
                key,
                "- {} {} {} {} {method} {} {} {}",
                request.uri,
                from.tag().unwrap_or("-"),
                request.headers.call_id()?,
                cseq.number,
                via.host,
                via.port.unwrap_or(0),
                via.branch().unwrap_or("-"),
            );
        }
        Some(Self(key))
    }
}

/// Returns the key that copies of a request share which came on different routes (RFC 3261 section
/// 8.2.2.2). Returns `None` within a dialog.
///
/// The key includes the Request-URI: a proxy that forks a call to two accounts here (a ring group)
/// sends requests that differ in nothing else.
pub(super) fn merge_key(request: &Request) -> Option<String> {
    if request.headers.to().ok()??.tag().is_some() || request.method == Method::Cancel {
        return None;
    }
    let from = request.headers.from().ok()??;
    let cseq = request.headers.cseq().ok()??;
    Some(format!(
        "{} {} {} {} {}",
        from.tag()?,
        request.headers.call_id()?,
        cseq.number,
        cseq.method,
        request.uri
    ))
}
