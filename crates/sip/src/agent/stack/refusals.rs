//! Refusals of requests (RFC 3261 section 8.2).

use super::Stack;
use crate::agent::accounts::Speaker;
use crate::agent::extensions::KNOWN;
use crate::message::{MediaType, Request};
use crate::transaction::NewRequest;

/// The header field for those refused for lack of room.
const LATER: (&str, &str) = ("Retry-After", "5");

impl Stack {
    /// Refuses a request that requires unknown extensions. Returns whether it did.
    pub(in crate::agent) fn refuses_extensions(&mut self, new: &NewRequest) -> bool {
        let Ok(required) = new.request.headers.tokens("Require") else {
            self.refuse(new, 400, &[]);
            return true;
        };
        let unknown: Vec<String> = required
            .into_iter()
            .filter(|one| !KNOWN.iter().any(|known| known.eq_ignore_ascii_case(one)))
            .collect();
        if unknown.is_empty() {
            return false;
        }
        self.refuse(new, 420, &[("Unsupported", &unknown.join(", "))]);
        true
    }

    /// Refuses an INVITE or UPDATE with a body other than SDP, or with a short session interval.
    /// Returns whether it did.
    pub(in crate::agent) fn refuses_offer(&mut self, new: &NewRequest) -> bool {
        if self.refuses_encoding(new) {
            return true;
        }
        let headers = &new.request.headers;
        if !new.request.body.is_empty() {
            let known = match headers.content_type() {
                Ok(Some(kind)) => {
                    kind.essence == "application/sdp" || kind.essence.starts_with("multipart/")
                }
                _ => false,
            };
            // An optional body is ignored (RFC 3261 section 20.11).
            let optional = headers
                .get("Content-Disposition")
                .is_some_and(|text| text.contains("handling=optional"));
            if !known && !optional {
                self.refuse(new, 415, &[("Accept", "application/sdp")]);
                return true;
            }
        }
        if headers.has("Accept")
            && !headers
                .accept()
                .is_ok_and(|kinds| kinds.iter().any(admits_sdp))
        {
            self.refuse(new, 406, &[]);
            return true;
        }
        if self.is_too_short(&new.request) {
            let least = self.options.session.min.as_secs().to_string();
            self.refuse(new, 422, &[("Min-SE", &least)]);
            return true;
        }
        false
    }

    /// Refuses a body with an encoding. Returns whether it did.
    pub(in crate::agent) fn refuses_encoding(&mut self, new: &NewRequest) -> bool {
        let encoding = new.request.headers.get("Content-Encoding");
        let refused = encoding.is_some_and(|encoding| {
            !encoding.is_empty() && !encoding.eq_ignore_ascii_case("identity")
        });
        if refused {
            self.refuse(new, 415, &[("Accept-Encoding", "identity")]);
        }
        refused
    }

    /// Refuses a method that the agent, or this account, does not accept.
    pub(in crate::agent) fn refuse_method(&mut self, new: &NewRequest, speaker: Option<&Speaker>) {
        let allow = self.allow(speaker.map(|speaker| &*speaker.profile));
        self.refuse(new, 405, &[("Allow", &allow)]);
    }

    /// Refuses a request for an unknown account.
    pub(in crate::agent) fn refuse_nobody(&mut self, new: &NewRequest) {
        self.counters.unknown = self.counters.unknown.saturating_add(1);
        self.refuse(new, 404, &[]);
    }

    /// Refuses a request for an unknown dialog.
    pub(in crate::agent) fn refuse_unknown(&mut self, new: &NewRequest) {
        self.counters.unknown = self.counters.unknown.saturating_add(1);
        self.refuse(new, 481, &[]);
    }

    /// Refuses for lack of room.
    pub(in crate::agent) fn refuse_full(&mut self, new: &NewRequest) {
        self.count_full();
        self.refuse(new, 503, &[LATER]);
    }

    /// Refuses an offer that crosses another one (RFC 3261 section 14.2).
    pub(in crate::agent) fn refuse_for_now(&mut self, new: &NewRequest, code: u16) {
        let seconds = self.random.range(0..=10_u8).to_string();
        let later = [("Retry-After", seconds.as_str())];
        self.refuse(new, code, if code == 500 { &later } else { &[] });
    }

    /// Whether the session interval that a peer asks for is too short (422).
    fn is_too_short(&self, request: &Request) -> bool {
        let least = self.options.session.min;
        matches!(request.headers.session_expires(), Ok(Some(session)) if session.interval < least)
    }
}

/// Whether a peer that accepts this media type accepts SDP.
fn admits_sdp(kind: &MediaType) -> bool {
    matches!(&*kind.essence, "application/sdp" | "application/*" | "*/*")
}
