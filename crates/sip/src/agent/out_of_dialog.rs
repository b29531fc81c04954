//! Requests of the owner outside of dialogs: MESSAGE, OPTIONS and others.

use super::stack::{FirstRequest, Owner, Sending, Stack, add_headers, set_request_body};
use super::{AccountId, Body, ExtraHeaders, RequestId};
use crate::message::{Method, NameAddr, SipUri, StatusCode, Uri};

/// A request outside of dialogs, as the owner wants it.
#[derive(Debug)]
pub(super) struct OutOfDialog {
    pub(super) account: AccountId,
    pub(super) id: RequestId,
    pub(super) method: Method,
    pub(super) uri: Uri,
    /// The Call-ID; `None` for a random one.
    pub(super) call_id: Option<String>,
    pub(super) headers: ExtraHeaders,
    pub(super) body: Option<Body>,
}

impl OutOfDialog {
    /// Sends the request. Its answer is a [`super::AgentEvent::Response`].
    pub(super) fn send(self, stack: &mut Stack) {
        let Self {
            account,
            id,
            method,
            uri,
            call_id,
            headers,
            body,
        } = self;
        let makes_dialogs = matches!(
            method,
            Method::Invite
                | Method::Ack
                | Method::Bye
                | Method::Cancel
                | Method::Prack
                | Method::Subscribe
                | Method::Register
        );
        if makes_dialogs {
            stack.report_unsent(id, 405, StatusCode::METHOD_NOT_ALLOWED.reason());
            return;
        }
        let Uri::Sip(uri) = uri else {
            stack.report_unsent(id, 416, StatusCode::UNSUPPORTED_URI_SCHEME.reason());
            return;
        };
        let Some(speaker) = stack.speaker(account) else {
            stack.report_unsent(id, 500, "No such account");
            return;
        };
        let uri = Uri::Sip(SipUri {
            headers: None,
            ..uri
        });
        let call_id = match call_id {
            Some(call_id) => call_id,
            None => stack.random.call_id(),
        };
        let tag = stack.random.tag();
        let to = NameAddr::new(uri.clone());
        let first = FirstRequest {
            method,
            uri,
            to: &to,
            call_id: &call_id,
            tag: &tag,
            number: 1,
        };
        let mut request = stack.request(&speaker, first);
        add_headers(&mut request.headers, &headers, &["Event", "Expires"]);
        set_request_body(&mut request, body.as_ref());
        stack.send(Sending::outside(
            Owner::OutOfDialog(id),
            speaker,
            request,
            None,
        ));
    }
}
