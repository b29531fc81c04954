//! How requests and answers are made.

use std::hash::{BuildHasher, Hash, Hasher};
use std::net::IpAddr;
use std::sync::Arc;

use rand::Rng;

use super::command::{Body, ExtraHeaders, Profile};
use super::extensions::SUPPORTED;
use super::{AccountId, Agent, Local};
use crate::flow::{Flow, Transport};
use crate::message::{
    Headers, Method, NameAddr, Request, Response, SipUri, StatusCode, Uri, is_token, same_name,
};
use crate::transaction::NewRequest;

/// Header fields that the agent itself writes.
const OWN_HEADERS: [&str; 22] = [
    "Via",
    "From",
    "To",
    "Call-ID",
    "CSeq",
    "Contact",
    "Route",
    "Record-Route",
    "Max-Forwards",
    "Content-Length",
    "Content-Type",
    "Allow",
    "Expires",
    "Event",
    "RSeq",
    "RAck",
    "Session-Expires",
    "Authorization",
    "Proxy-Authorization",
    "WWW-Authenticate",
    "Subscription-State",
    "SIP-If-Match",
];

/// Who speaks: what all requests and answers of an account, or in a stranger's call, have in common.
#[derive(Debug, Clone)]
pub(super) struct Speaker {
    pub(super) account: Option<AccountId>,
    pub(super) profile: Arc<Profile>,
    /// The user part of Contact.
    pub(super) user: Arc<str>,
}

/// What Contact a request has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Contact {
    No,
    Plain,
    /// Of REGISTER, with the seconds asked for.
    Register(u64),
}

impl Contact {
    /// Of requests that make dialogs or refresh their targets.
    pub(super) fn of(method: &Method) -> Self {
        match method {
            Method::Invite
            | Method::Subscribe
            | Method::Refer
            | Method::Update
            | Method::Notify => Self::Plain,
            _ => Self::No,
        }
    }
}

impl Agent {
    /// Letters and digits at random.
    pub(super) fn token(&mut self, length: usize) -> String {
        (0..length)
            .map(|_| char::from(self.random.sample(rand::distr::Alphanumeric)))
            .collect()
    }

    pub(super) fn tag(&mut self) -> String {
        self.token(16)
    }

    pub(super) fn new_call_id(&mut self) -> String {
        self.token(23)
    }

    /// A tag for an answer without a transaction: the same for the same request (RFC 3261 section 8.2.7).
    pub(super) fn stateless_tag(&self, request: &Request) -> String {
        let mut hasher = self.hash.build_hasher();
        for name in ["Via", "From", "Call-ID", "CSeq"] {
            request.headers.get(name).hash(&mut hasher);
        }
        format!("{:016x}", hasher.finish())
    }

    /// How a peer at `remote` reaches us over `transport`.
    pub(super) fn local(&self, transport: Transport, remote: IpAddr) -> Option<&Local> {
        let over = || {
            self.options
                .locals
                .iter()
                .filter(move |local| local.transport == transport)
        };
        let v4 = remote.to_canonical().is_ipv4();
        let same = |local: &&Local| match &local.host {
            crate::message::Host::Address(address) => address.to_canonical().is_ipv4() == v4,
            crate::message::Host::Name(_) => true,
        };
        over().find(same).or_else(|| over().next())
    }

    /// The methods that we take; without REFER where `profile` takes none.
    pub(super) fn allow(&self, profile: Option<&Profile>) -> String {
        let refers = profile.is_none_or(|profile| profile.refers);
        let mut methods = vec!["INVITE", "ACK", "BYE", "CANCEL", "OPTIONS"];
        methods.extend(refers.then_some("REFER"));
        methods.extend(["MESSAGE", "INFO", "NOTIFY", "PRACK"]);
        methods.extend(self.options.update.then_some("UPDATE"));
        methods.join(", ")
    }

    /// A request outside of dialogs. Via and Contact are added when its way is known.
    pub(super) fn request(
        &mut self,
        speaker: &Speaker,
        method: Method,
        uri: Uri,
        to: &NameAddr,
        id: (&str, &str, u32),
    ) -> Request {
        let (call_id, tag, number) = id;
        let profile = &speaker.profile;
        let from = NameAddr::new(profile.identity.clone())
            .with_display(&profile.display_name)
            .with_tag(tag);
        let mut request = Request::new(method, uri);
        request.headers.push("Max-Forwards", 70);
        request.headers.push("From", from);
        request.headers.push("To", to);
        request.headers.push("Call-ID", call_id);
        let method = request.method.clone();
        request
            .headers
            .push("CSeq", format_args!("{number} {method}"));
        if method != Method::Register
            && let Some(account) = speaker.account.and_then(|id| self.accounts.get(&id))
        {
            for route in &account.service_route {
                request.headers.push("Route", route);
            }
        }
        self.sign(speaker, &mut request.headers, "User-Agent");
        request
    }

    /// Adds our name.
    pub(super) fn sign(&self, speaker: &Speaker, headers: &mut Headers, header: &str) {
        let name = speaker
            .profile
            .user_agent
            .as_deref()
            .unwrap_or(&self.options.user_agent);
        if !name.is_empty() {
            headers.set(header, name);
        }
    }

    /// The URI at which `speaker` is reached over `transport` from `remote`.
    pub(super) fn contact(
        &self,
        speaker: &Speaker,
        transport: Transport,
        remote: IpAddr,
    ) -> Option<SipUri> {
        let local = self.local(transport, remote)?;
        let mut uri = SipUri::new(local.host.clone()).with_port(local.port);
        if !speaker.user.is_empty() {
            uri = uri.with_user(&speaker.user);
        }
        let public = speaker
            .account
            .and_then(|id| self.accounts.get(&id))
            .and_then(|account| account.public);
        if let Some((host, port)) = public.filter(|_| speaker.profile.behind_nat) {
            uri.host = host.into();
            uri.port = Some(port);
        }
        uri.params.set("transport", Some(transport.param()));
        for (name, value) in speaker
            .profile
            .contact_params
            .iter()
            .filter(|(name, _)| is_token(name))
        {
            let value = (!value.is_empty()).then_some(value.as_str());
            if value.is_none_or(is_token) {
                uri.params.set(name, value);
            }
        }
        Some(uri)
    }

    /// Contact with the display name of the account.
    pub(super) fn contact_header(
        &self,
        speaker: &Speaker,
        transport: Transport,
        remote: IpAddr,
    ) -> Option<NameAddr> {
        let uri = self.contact(speaker, transport, remote)?;
        Some(NameAddr::new(uri).with_display(&speaker.profile.display_name))
    }

    /// An answer with our tag and our name.
    pub(super) fn response(
        &self,
        speaker: &Speaker,
        request: &Request,
        code: u16,
        tag: &str,
    ) -> Response {
        let status = StatusCode::new(code).unwrap_or(StatusCode::SERVER_INTERNAL_ERROR);
        let mut response = Response::to(request, status);
        if status != StatusCode::TRYING {
            response.headers.set_to_tag(tag);
        }
        self.sign(speaker, &mut response.headers, "Server");
        response
    }

    /// An answer that makes or refreshes a dialog: with Record-Route, Contact, Allow and Supported.
    pub(super) fn dialog_response(
        &self,
        speaker: &Speaker,
        request: &Request,
        flow: &Flow,
        code: u16,
        tag: &str,
    ) -> Response {
        let mut response = self.response(speaker, request, code, tag);
        for route in request.headers.all("Record-Route") {
            response.headers.push("Record-Route", route);
        }
        if let Some(contact) = self.contact_header(speaker, flow.transport, flow.remote.ip()) {
            response.headers.push("Contact", contact);
        }
        let allow = self.allow(Some(&speaker.profile));
        response.headers.push("Allow", allow);
        response.headers.push("Supported", SUPPORTED);
        response
    }

    /// Answers without a transaction.
    pub(super) fn refuse(&mut self, new: &NewRequest, code: u16, more: &[(&str, &str)]) {
        if new.request.method == Method::Ack {
            return;
        }
        let tag = self.stateless_tag(&new.request);
        let status = StatusCode::new(code).unwrap_or(StatusCode::SERVER_INTERNAL_ERROR);
        let mut response = Response::to(&new.request, status);
        response.headers.set_to_tag(&tag);
        for (name, value) in more {
            response.headers.push(name, value);
        }
        if !self.options.user_agent.is_empty() {
            response.headers.push("Server", &self.options.user_agent);
        }
        self.transactions
            .respond_stateless(new.route.clone(), &response);
    }
}

/// Adds header fields of the owner. `allowed` are those of our own that it may write here.
pub(super) fn add_headers(headers: &mut Headers, extra: &ExtraHeaders, allowed: &[&str]) {
    for (name, value) in extra {
        let own = OWN_HEADERS.iter().any(|own| same_name(own, name))
            && !allowed.iter().any(|one| same_name(one, name));
        if is_token(name) && !own && !value.contains(['\r', '\n', '\0']) {
            headers.push(name, value);
        }
    }
}

/// Sets a body, if there is one.
pub(super) fn set_request_body(request: &mut Request, body: Option<&Body>) {
    if let Some(body) = body {
        request.set_body(&body.content_type, body.content.clone());
    }
}

/// Sets a body, if there is one.
pub(super) fn set_response_body(response: &mut Response, body: Option<&Body>) {
    if let Some(body) = body {
        response.set_body(&body.content_type, body.content.clone());
    }
}
