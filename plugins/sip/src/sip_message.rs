//! Received SIP messages, as clients get them.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use portunus_core::Object;
use portunus_sip::message::{Headers, Host, Method, Request, Response, Uri};

use crate::ending::Ending;
use crate::events::named_event;
use crate::headers::Prefixes;

/// The media type of session descriptions.
const SDP: &str = "application/sdp";

/// A received SIP message.
#[derive(Clone)]
pub(crate) enum SipMessage {
    Request(Arc<Request>),
    Response(Arc<Response>),
}

impl From<&Arc<Request>> for SipMessage {
    fn from(request: &Arc<Request>) -> Self {
        SipMessage::Request(request.clone())
    }
}

impl From<&Arc<Response>> for SipMessage {
    fn from(response: &Arc<Response>) -> Self {
        SipMessage::Response(response.clone())
    }
}

impl fmt::Debug for SipMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SipMessage")
    }
}

impl SipMessage {
    pub(crate) fn headers(&self) -> &Headers {
        match self {
            SipMessage::Request(request) => &request.headers,
            SipMessage::Response(response) => &response.headers,
        }
    }

    /// Returns the status; 0 for a request.
    pub(crate) fn code(&self) -> u16 {
        match self {
            SipMessage::Request(_) => 0,
            SipMessage::Response(response) => response.status.code(),
        }
    }

    /// Returns the reason phrase, or the usual one if it is empty.
    pub(crate) fn phrase(&self) -> &str {
        match self {
            SipMessage::Request(_) => "",
            SipMessage::Response(response) if response.reason.is_empty() => {
                response.status.reason()
            }
            SipMessage::Response(response) => &response.reason,
        }
    }

    /// Returns the method of a request.
    pub(crate) fn method(&self) -> Option<&Method> {
        match self {
            SipMessage::Request(request) => Some(&request.method),
            SipMessage::Response(_) => None,
        }
    }

    /// Returns the state of Subscription-State.
    pub(crate) fn substate(&self) -> Option<String> {
        let state = self.headers().subscription_state().ok().flatten();
        state.map(|state| state.state)
    }

    /// Returns the first header field of a name.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers().get(name)
    }

    /// Returns the body as text, or `None` if it is empty.
    pub(crate) fn body(&self) -> Option<String> {
        let body = match self {
            SipMessage::Request(request) => &request.body,
            SipMessage::Response(response) => &response.body,
        };
        (!body.is_empty()).then(|| String::from_utf8_lossy(body).into_owned())
    }

    /// Returns the session description, or `None` if the body has none. It may be a part of the
    /// body: gateways also send signalling of the telephone network (RFC 5621).
    pub(crate) fn sdp(&self) -> Option<String> {
        let body = self.body()?;
        let Ok(Some(kind)) = self.headers().content_type() else {
            return self.header("Content-Type").is_none().then_some(body);
        };
        match kind.essence.as_str() {
            SDP => Some(body),
            multipart if multipart.starts_with("multipart/") => {
                let boundary = kind.params.get("boundary")?;
                part_of(&body, boundary.trim_matches('"'), SDP)
            }
            _ => None,
        }
    }

    /// Returns Content-Type without its parameters, as clients get it.
    pub(crate) fn content_type(&self) -> Option<&str> {
        let value = self.header("Content-Type")?;
        Some(value.split(';').next().unwrap_or_default().trim())
    }

    /// Returns the member `headers` of an event for a page with these prefixes, or `None` without
    /// prefixes.
    pub(crate) fn shown_headers(&self, prefixes: &Prefixes) -> Option<serde_json::Value> {
        let headers = self.headers().iter();
        prefixes.pick(headers.map(|header| (header.name(), header.value())))
    }

    /// Whether the sender is a conference (RFC 4579).
    pub(crate) fn is_focus(&self) -> bool {
        let contact = self.header("Contact").unwrap_or_default();
        let params = NameAddr::read(contact).params;
        let mut params = params.split(';');
        params.any(|param| param.trim().eq_ignore_ascii_case("isfocus"))
    }

    /// Returns the Call-ID in Replaces.
    pub(crate) fn replaces(&self) -> Option<String> {
        let value = self.header("Replaces")?;
        let call_id = value.split(';').next().unwrap_or_default().trim();
        Some(call_id.to_owned())
    }

    /// Returns the address of Contact, or `None` if its host is a name.
    pub(crate) fn contact_address(&self) -> Option<IpAddr> {
        let contact = self.headers().contact().ok().flatten()?;
        host_address(&contact.uri)
    }

    /// Returns From, as clients get it.
    pub(crate) fn sender(&self) -> NameAddr<'_> {
        NameAddr::read(self.header("From").unwrap_or_default())
    }

    /// Returns To, as clients get it.
    pub(crate) fn recipient(&self) -> NameAddr<'_> {
        NameAddr::read(self.header("To").unwrap_or_default())
    }

    /// Returns how a call has ended that another telephone of the account has taken or declined for
    /// all, if this CANCEL says so (RFC 3326). The words are those for pages of one server.
    pub(crate) fn ended_elsewhere(&self) -> Option<Ending> {
        let reasons = self.headers().reasons().unwrap_or_default();
        let reason = reasons
            .iter()
            .find(|reason| reason.protocol.eq_ignore_ascii_case("SIP"))?;
        match reason.cause()? {
            200 => Some(Ending::new(200, "Accepted elsewhere")),
            code @ 600..=699 => Some(Ending::new(code, "Declined elsewhere")),
            _ => None,
        }
    }

    /// Returns the members of an event that Reason (RFC 3326) gives.
    pub(crate) fn reason(&self) -> Object {
        let reasons = self.headers().reasons().unwrap_or_default();
        let Some(reason) = reasons.first() else {
            return Object::new();
        };
        Object::new()
            .with_some("reason_header", reason.text())
            .with("reason_header_protocol", reason.protocol.as_str())
            .with_some(
                "reason_header_cause",
                reason.cause().map(|cause| cause.to_string()),
            )
    }
}

/// Returns the address of a URI, or `None` if its host is a name.
pub(crate) fn host_address(uri: &Uri) -> Option<IpAddr> {
    match uri.as_sip()?.host {
        Host::Address(address) => Some(address.to_canonical()),
        Host::Name(_) => None,
    }
}

/// Returns the first part of a multipart body (RFC 2046 section 5.1) with this media type.
fn part_of(body: &str, boundary: &str, wanted: &str) -> Option<String> {
    let delimiter = format!("--{boundary}");
    // The text before the first delimiter is no part.
    let mut parts = body.split(delimiter.as_str()).skip(1);
    parts.find_map(|part| {
        let part = part.trim_start_matches([' ', '\t']);
        let part = part.strip_prefix("\r\n").or(part.strip_prefix('\n'))?;
        let (head, text) = part.split_once("\r\n\r\n").or(part.split_once("\n\n"))?;
        let is_wanted = head.lines().any(|line| {
            let (name, value) = line.split_once(':').unwrap_or_default();
            let kind = value.split(';').next().unwrap_or_default();
            name.trim().eq_ignore_ascii_case("Content-Type")
                && kind.trim().eq_ignore_ascii_case(wanted)
        });
        is_wanted.then(|| text.to_owned())
    })
}

/// The parts of From, To, Contact or the like, as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NameAddr<'a> {
    /// With its quotes.
    pub(crate) display: &'a str,
    pub(crate) uri: &'a str,
    /// The parameters, after their semicolon.
    pub(crate) params: &'a str,
}

impl<'a> NameAddr<'a> {
    pub(crate) fn read(value: &'a str) -> Self {
        let value = value.trim();
        // An angle bracket within quotes does not begin a URI.
        let mut quoted = false;
        let mut escaped = false;
        let start = value.char_indices().find(|(_, letter)| {
            match letter {
                _ if escaped => escaped = false,
                '\\' if quoted => escaped = true,
                '"' => quoted = !quoted,
                '<' if !quoted => return true,
                _ => {}
            }
            false
        });
        match start.map(|(at, _)| value.split_at(at)) {
            Some((display, rest)) => {
                let rest = rest.strip_prefix('<').unwrap_or(rest);
                let (uri, params) = rest.split_once('>').unwrap_or((rest, ""));
                NameAddr {
                    display: display.trim(),
                    uri,
                    params: params.trim_start().trim_start_matches(';'),
                }
            }
            None => {
                let (uri, params) = value.split_once(';').unwrap_or((value, ""));
                NameAddr {
                    display: "",
                    uri: uri.trim(),
                    params,
                }
            }
        }
    }
}

/// The caller, as clients see it.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    pub(crate) invite: SipMessage,
    /// `sdes_mandatory` or `sdes_optional`.
    pub(crate) srtp: Option<&'static str>,
}

impl Caller {
    /// Returns the members of `incomingcall` and `updatingcall` that are the same for all pages.
    pub(crate) fn members(&self, event: &str, call_id: &str) -> Object {
        let (from, to) = (self.invite.sender(), self.invite.recipient());
        named_event(event)
            .with("username", from.uri)
            .with("call_id", call_id)
            .with("displayname", from.display)
            .with("callee", to.uri)
            .with_some("referred_by", self.invite.header("Referred-By"))
            .with_some("replaces", self.invite.replaces())
            .with_some("srtp", self.srtp)
            .with_some("isfocus", self.invite.is_focus().then_some(true))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_their_quotes() {
        for (value, display, uri, params) in [
            (
                "\"A <b>\" <sip:a@h;x=1>;tag=7",
                "\"A <b>\"",
                "sip:a@h;x=1",
                "tag=7",
            ),
            ("\"A \\\" <b\" <sip:a@h>", "\"A \\\" <b\"", "sip:a@h", ""),
            ("Alice <sip:a@h>", "Alice", "sip:a@h", ""),
            ("sip:a@h;tag=7", "", "sip:a@h", "tag=7"),
            ("<sip:a@h", "", "sip:a@h", ""),
            ("", "", "", ""),
        ] {
            let read = NameAddr::read(value);
            assert_eq!(
                (read.display, read.uri, read.params),
                (display, uri, params)
            );
        }
    }

    #[test]
    fn a_description_may_be_a_part_of_the_body() {
        let of = |boundary: &str, body: &str| part_of(body, boundary, SDP);
        let body = "ignored\r\n--b\r\nContent-Type: application/isup;version=x\r\n\r\n\u{fffd}\r\n\
                    --b \r\ncontent-type:Application/SDP\r\nContent-Disposition: session\r\n\r\nv=0\r\ns=-\r\n\r\n--b--\r\n";
        assert_eq!(of("b", body).as_deref(), Some("v=0\r\ns=-\r\n\r\n"));
        assert_eq!(of("c", body), None);
        let lines = "--b\nContent-Type: application/sdp\n\nv=0\n--b--";
        assert_eq!(of("b", lines).as_deref(), Some("v=0\n"));
        for none in [
            "",
            "--b",
            "--b--",
            "--b\r\n",
            "--b\r\nContent-Type: application/sdp\r\n",
        ] {
            assert_eq!(of("b", none), None, "{none}");
        }
    }
}
