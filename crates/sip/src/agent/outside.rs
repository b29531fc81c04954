//! Requests of the owner outside of dialogs: MESSAGE, OPTIONS and others.

use std::time::Instant;

use super::compose::{add_headers, set_request_body};
use super::exchange::{Answer, Owner, Sending};
use super::{AccountId, Agent, AgentEvent, Body, ExtraHeaders, RequestId};
use crate::message::{Method, NameAddr, SipUri, StatusCode, Uri};

impl Agent {
    /// Sends a request outside of dialogs.
    #[expect(clippy::too_many_arguments, reason = "the parts of a command")]
    pub(super) fn send_outside(
        &mut self,
        now: Instant,
        (account, id): (AccountId, RequestId),
        method: Method,
        uri: Uri,
        call_id: Option<String>,
        headers: &ExtraHeaders,
        body: Option<&Body>,
    ) {
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
            self.tell_response(id, 405, StatusCode::METHOD_NOT_ALLOWED.reason());
            return;
        }
        let Uri::Sip(uri) = uri else {
            self.tell_response(id, 416, StatusCode::UNSUPPORTED_URI_SCHEME.reason());
            return;
        };
        let Some(speaker) = self.speaker(account) else {
            self.tell_response(id, 500, "No such account");
            return;
        };
        let uri = Uri::Sip(SipUri {
            headers: None,
            ..uri
        });
        let call_id = match call_id {
            Some(call_id) => call_id,
            None => self.new_call_id(),
        };
        let tag = self.tag();
        let to = NameAddr::new(uri.clone());
        let mut request = self.request(&speaker, method, uri, &to, (&call_id, &tag, 1));
        add_headers(&mut request.headers, headers, &["Event", "Expires"]);
        set_request_body(&mut request, body);
        self.send(
            now,
            Sending::outside(Owner::Outside(id), speaker, request, None),
        );
    }

    pub(super) fn answered_outside(&mut self, request: RequestId, answer: Answer) {
        let Answer {
            code,
            reason,
            response,
            ..
        } = answer;
        self.tell(AgentEvent::Response {
            request,
            code,
            reason,
            response,
        });
    }

    /// A request that was not sent.
    pub(super) fn tell_response(&mut self, request: RequestId, code: u16, reason: &str) {
        self.tell(AgentEvent::Response {
            request,
            code,
            reason: reason.to_owned(),
            response: None,
        });
    }
}
