//! Requests and responses.

use std::net::IpAddr;

use super::Stack;
use crate::agent::accounts::Speaker;
use crate::agent::extensions::SUPPORTED;
use crate::agent::{Body, ExtraHeaders, Local, Profile};
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

/// The Contact of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::agent) enum Contact {
    No,
    Plain,
    /// That of REGISTER, with the interval in s.
    Register(u64),
}

/// A request outside of dialogs.
#[derive(Debug)]
pub(in crate::agent) struct FirstRequest<'a> {
    pub(in crate::agent) method: Method,
    pub(in crate::agent) uri: Uri,
    pub(in crate::agent) to: &'a NameAddr,
    pub(in crate::agent) call_id: &'a str,
    /// The tag of From.
    pub(in crate::agent) tag: &'a str,
    /// The number of CSeq.
    pub(in crate::agent) number: u32,
}

impl Contact {
    /// Returns the Contact of a method: plain if it makes dialogs or refreshes targets.
    pub(in crate::agent) fn of(method: &Method) -> Self {
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

impl Stack {
    /// Returns our address for a peer at `remote` over `transport`.
    pub(in crate::agent) fn local(&self, transport: Transport, remote: IpAddr) -> Option<&Local> {
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

    /// Returns the methods for Allow; without REFER where `profile` refuses it.
    pub(in crate::agent) fn allow(&self, profile: Option<&Profile>) -> String {
        let refers = profile.is_none_or(|profile| profile.refers);
        let mut methods = vec!["INVITE", "ACK", "BYE", "CANCEL", "OPTIONS"];
        methods.extend(refers.then_some("REFER"));
        methods.extend(["MESSAGE", "INFO", "NOTIFY", "PRACK"]);
        methods.extend(self.options.update.then_some("UPDATE"));
        methods.join(", ")
    }

    /// Makes a request outside of dialogs. Via and Contact are added with its route.
    pub(in crate::agent) fn request(&self, speaker: &Speaker, first: FirstRequest<'_>) -> Request {
        let FirstRequest {
            method,
            uri,
            to,
            call_id,
            tag,
            number,
        } = first;
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
            && let Some(account) = speaker.account.and_then(|id| self.accounts.get(id))
        {
            for route in &account.service_route {
                request.headers.push("Route", route);
            }
        }
        self.sign(speaker, &mut request.headers, "User-Agent");
        request
    }

    /// Adds User-Agent or Server.
    pub(in crate::agent) fn sign(&self, speaker: &Speaker, headers: &mut Headers, header: &str) {
        let name = speaker
            .profile
            .user_agent
            .as_deref()
            .unwrap_or(&self.options.user_agent);
        if !name.is_empty() {
            headers.set(header, name);
        }
    }

    /// Returns the URI of `speaker` for peers at `remote` over `transport`.
    pub(in crate::agent) fn contact(
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
            .and_then(|id| self.accounts.get(id))
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

    /// Returns Contact with the display name of the account.
    pub(in crate::agent) fn contact_header(
        &self,
        speaker: &Speaker,
        transport: Transport,
        remote: IpAddr,
    ) -> Option<NameAddr> {
        let uri = self.contact(speaker, transport, remote)?;
        Some(NameAddr::new(uri).with_display(&speaker.profile.display_name))
    }

    /// Makes a response with our tag and our name.
    pub(in crate::agent) fn response(
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

    /// Makes a response that makes or refreshes a dialog: with Record-Route, Contact, Allow and
    /// Supported.
    pub(in crate::agent) fn dialog_response(
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

    /// Responds without a transaction.
    pub(in crate::agent) fn refuse(&mut self, new: &NewRequest, code: u16, more: &[(&str, &str)]) {
        if new.request.method == Method::Ack {
            return;
        }
        let tag = self.random.stateless_tag(&new.request);
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

/// Adds header fields of the owner. `allowed` are those of the agent that it may write here.
pub(in crate::agent) fn add_headers(headers: &mut Headers, extra: &ExtraHeaders, allowed: &[&str]) {
    for (name, value) in extra {
        let own = OWN_HEADERS.iter().any(|own| same_name(own, name))
            && !allowed.iter().any(|one| same_name(one, name));
        if is_token(name) && !own && !value.contains(['\r', '\n', '\0']) {
            headers.push(name, value);
        }
    }
}

/// Sets a body, if there is one.
pub(in crate::agent) fn set_request_body(request: &mut Request, body: Option<&Body>) {
    if let Some(body) = body {
        request.set_body(&body.content_type, body.content.clone());
    }
}

/// Sets a body, if there is one.
pub(in crate::agent) fn set_response_body(response: &mut Response, body: Option<&Body>) {
    if let Some(body) = body {
        response.set_body(&body.content_type, body.content.clone());
    }
}
