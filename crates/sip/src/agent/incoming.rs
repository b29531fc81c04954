//! Requests of peers: whose they are, and what is refused (RFC 3261 section 8.2).

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use rand::Rng;

use super::callee::Callee;
use super::command::Profile;
use super::compose::{SUPPORTED, Speaker};
use super::exchange::to_tag;
use super::{AccountId, Agent, AgentEvent, CallId, SubscriptionId};
use crate::message::{MediaType, Method, NameAddr, Request, Response, SipUri, StatusCode, Uri};
use crate::transaction::NewRequest;

/// What a dialog with a tag of ours is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Usage {
    Call(CallId),
    Subscription(SubscriptionId),
}

/// Extensions that a peer may require.
const KNOWN: [&str; 3] = ["replaces", "timer", "100rel"];
/// What is said to whom we have no room for.
const LATER: (&str, &str) = ("Retry-After", "5");

impl Agent {
    /// Takes a request that belongs to no transaction.
    pub(super) fn on_request(&mut self, now: Instant, new: NewRequest, bytes: &[u8]) {
        if new.request.method == Method::Cancel {
            self.on_cancel(now, &new, bytes);
            return;
        }
        let tag = to_tag(new.request.headers.to().ok().flatten());
        if !tag.is_empty() {
            match self.tags.get(&tag).copied() {
                Some(Usage::Call(id)) => self.on_within(now, &new, id, bytes),
                Some(Usage::Subscription(id)) => self.on_notify(now, &new, id, bytes),
                None if self.limits(now, &new) => {}
                None => self.refuse_unknown(&new),
            }
            return;
        }
        if !self.limits(now, &new) {
            self.on_stranger(now, &new, bytes);
        }
    }

    /// Whether a source has asked too often. Nothing is answered then: it would be as much work.
    fn limits(&mut self, now: Instant, new: &NewRequest) -> bool {
        let admitted = self.admits(now, new.flow.remote.ip());
        if !admitted {
            self.counters.limited = self.counters.limited.saturating_add(1);
        }
        !admitted
    }

    /// Whether what comes from `source` is to be looked at.
    pub(super) fn admits(&mut self, now: Instant, source: IpAddr) -> bool {
        let accounts = self.registrars.at(source).len();
        self.is_trusted(source) || self.guard.admits(now, source, accounts)
    }

    /// Takes a request outside of dialogs.
    fn on_stranger(&mut self, now: Instant, new: &NewRequest, bytes: &[u8]) {
        if self.transactions.merged(new) {
            self.refuse(new, 482, &[]);
            return;
        }
        let request = &new.request;
        match request.method {
            Method::Invite | Method::Message | Method::Options | Method::Refer => {}
            // They make sense within a dialog only, or to a notifier, which we are not.
            Method::Bye | Method::Info | Method::Prack | Method::Update | Method::Notify => {
                self.refuse_unknown(new);
                return;
            }
            _ => {
                self.refuse(new, 405, &[("Allow", self.allow())]);
                return;
            }
        }
        if request.uri.as_sip().is_none() {
            self.refuse(new, 416, &[]);
            return;
        }
        if self.refuses_extensions(new) {
            return;
        }
        let (account, entrances) = match self.callee(request, &new.flow) {
            Callee::Account(id) => (Some(id), Vec::new()),
            // What comes by an entrance may call, and nothing else.
            Callee::Entrance { all, named } if request.method == Method::Invite => (named, all),
            Callee::Entrance { .. } | Callee::Nobody => (None, Vec::new()),
            Callee::Gone => {
                self.refuse_nobody(new);
                return;
            }
        };
        let speaker = account.and_then(|id| self.speaker(id));
        match (&request.method, speaker) {
            (Method::Options, speaker) => self.on_options(new, speaker),
            (Method::Invite, Some(speaker)) => {
                self.on_invite(now, new, (speaker, entrances), bytes)
            }
            (Method::Invite, None) if self.options.strangers => {
                let speaker = stranger(request);
                self.on_invite(now, new, (speaker, entrances), bytes);
            }
            (Method::Message, Some(speaker)) => self.on_message(now, new, &speaker, bytes),
            (Method::Refer, Some(_)) => self.take_refer(now, new, None),
            _ => self.refuse_nobody(new),
        }
    }

    fn on_invite(
        &mut self,
        now: Instant,
        new: &NewRequest,
        callee: (Speaker, Vec<AccountId>),
        bytes: &[u8],
    ) {
        if !self.refuses_offer(new) {
            self.ring_in(now, new, callee, bytes);
        }
    }

    fn on_message(&mut self, now: Instant, new: &NewRequest, speaker: &Speaker, bytes: &[u8]) {
        if self.refuses_encoding(new) {
            return;
        }
        let trusted = self.is_known(new.flow.remote.ip());
        let Ok(server) = self.transactions.accept(now, new, trusted) else {
            self.refuse_full(new);
            return;
        };
        self.trace(speaker, None, false, &new.route, bytes);
        let tag = self.tag();
        let response = self.response(speaker, &new.request, 200, &tag);
        self.answer(now, None, speaker, server, &response);
        let (account, flow, request) = (speaker.account, new.flow, new.request.clone());
        self.tell(AgentEvent::Request {
            account,
            call: None,
            flow,
            request,
        });
    }

    /// OPTIONS is answered as an INVITE would be (RFC 3261 section 11.2).
    fn on_options(&mut self, new: &NewRequest, speaker: Option<Speaker>) {
        let for_nobody = new
            .request
            .uri
            .as_sip()
            .is_some_and(|uri| uri.user.is_some())
            && speaker.is_none();
        let code = if for_nobody && !self.options.strangers {
            404
        } else {
            200
        };
        let allow = self.allow();
        self.refuse(
            new,
            code,
            &[
                ("Allow", allow),
                ("Accept", "application/sdp"),
                ("Supported", SUPPORTED),
            ],
        );
    }

    fn on_cancel(&mut self, now: Instant, new: &NewRequest, bytes: &[u8]) {
        let Some(invite) = self.transactions.cancelled(new) else {
            if !self.limits(now, new) {
                self.refuse_unknown(new);
            }
            return;
        };
        let call = self.servers.get(&invite).copied();
        let call_and_tag = call.and_then(|id| {
            let call = self.calls.get(&id)?;
            Some((id, call.speaker.clone(), call.local_tag().to_owned()))
        });
        let Ok(server) = self.transactions.accept(now, new, true) else {
            self.refuse_full(new);
            return;
        };
        let mut response = Response::to(&new.request, StatusCode::OK);
        let Some((id, speaker, tag)) = call_and_tag else {
            // It has its answer already.
            let tag = self.stateless_tag(&new.request);
            response.headers.set_to_tag(&tag);
            self.transactions.respond(now, server, &response);
            return;
        };
        self.trace(&speaker, Some(id), false, &new.route, bytes);
        response.headers.set_to_tag(&tag);
        self.answer(now, Some(id), &speaker, server, &response);
        if self.is_ringing(id) {
            self.cancelled(now, id, &new.request);
        } else {
            self.reinvite_cancelled(now, id);
        }
    }

    /// Refuses a request that requires what we do not know.
    pub(super) fn refuses_extensions(&mut self, new: &NewRequest) -> bool {
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

    /// Refuses an INVITE or UPDATE whose body is no SDP, or whose session interval is too short.
    pub(super) fn refuses_offer(&mut self, new: &NewRequest) -> bool {
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
            // A body that may be ignored is (RFC 3261 section 20.11).
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

    /// Refuses a body that is compressed or the like.
    pub(super) fn refuses_encoding(&mut self, new: &NewRequest) -> bool {
        let encoding = new.request.headers.get("Content-Encoding");
        let refused = encoding.is_some_and(|encoding| {
            !encoding.is_empty() && !encoding.eq_ignore_ascii_case("identity")
        });
        if refused {
            self.refuse(new, 415, &[("Accept-Encoding", "identity")]);
        }
        refused
    }

    /// Refuses a request for somebody who is not there.
    fn refuse_nobody(&mut self, new: &NewRequest) {
        self.counters.unknown = self.counters.unknown.saturating_add(1);
        self.refuse(new, 404, &[]);
    }

    /// Refuses a request for a dialog that is not there.
    pub(super) fn refuse_unknown(&mut self, new: &NewRequest) {
        self.counters.unknown = self.counters.unknown.saturating_add(1);
        self.refuse(new, 481, &[]);
    }

    /// Refuses for lack of room.
    pub(super) fn refuse_full(&mut self, new: &NewRequest) {
        self.counters.full = self.counters.full.saturating_add(1);
        self.refuse(new, 503, &[LATER]);
    }

    /// Refuses an offer that crosses another one (RFC 3261 section 14.2).
    pub(super) fn refuse_for_now(&mut self, new: &NewRequest, code: u16) {
        let seconds = self.random.random_range(0..=10_u8).to_string();
        let later = [("Retry-After", seconds.as_str())];
        self.refuse(new, code, if code == 500 { &later } else { &[] });
    }
}

/// Whether a peer that takes this media type takes SDP.
fn admits_sdp(kind: &MediaType) -> bool {
    matches!(&*kind.essence, "application/sdp" | "application/*" | "*/*")
}

/// Who we are to a caller that calls none of our accounts: whom it called.
fn stranger(request: &Request) -> Speaker {
    let user = request
        .uri
        .as_sip()
        .and_then(SipUri::user_name)
        .unwrap_or_default()
        .into_owned();
    let identity = match request.headers.to() {
        Ok(Some(NameAddr {
            uri: Uri::Sip(uri), ..
        })) => Uri::Sip(uri),
        _ => request.uri.clone(),
    };
    let profile = Profile {
        identity,
        display_name: String::new(),
        credentials: None,
        registration: None,
        outbound_proxy: None,
        transport: None,
        user_agent: None,
        contact_params: Vec::new(),
        behind_nat: false,
        reliable: false,
        entrance: false,
        trace: false,
    };
    Speaker {
        account: None,
        profile: Arc::new(profile),
        user: user.into(),
    }
}
