//! What a request is matched by (RFC 3261 section 17.2.3).

use std::fmt::Write as _;

use crate::message::{Method, Request};

/// What makes two requests the same, or an ACK or CANCEL belong to an INVITE.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct ServerKey(String);

impl ServerKey {
    /// The key of a request, or of the INVITE that an ACK belongs to. `None` if a header is missing.
    pub(super) fn of(request: &Request) -> Option<Self> {
        let method = if request.method == Method::Ack {
            &Method::Invite
        } else {
            &request.method
        };
        Self::with(request, method)
    }

    /// The key of the INVITE that a CANCEL belongs to.
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
            // As in RFC 2543: there is no unique branch. An ACK has the To tag of our answer, so To is left out.
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

/// What is equal in copies of a request that came on different ways (RFC 3261 section 8.2.2.2). `None` within a dialog.
///
/// That has the Request-URI: who is here twice is two user agents, and a proxy that forks a call to both (a ring group) sends the same
/// request but for that.
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
