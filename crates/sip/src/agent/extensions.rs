//! Extensions of SIP: those that our requests list as supported, and requests that a peer wants
//! with more or fewer of them (RFC 3261 sections 8.1.1.9, 8.1.3.5 and 21.4.15).

use crate::message::{Method, Request, Response};

/// Extensions that a peer may require.
pub(super) const KNOWN: [&str; 3] = ["replaces", "timer", "100rel"];
/// The same, for Supported.
pub(super) const SUPPORTED: &str = "replaces, timer, 100rel";

/// Header fields that only the session timer needs.
const TIMER_HEADERS: [&str; 2] = ["Session-Expires", "Min-SE"];

/// Returns the extensions that a peer may use in its responses to a request. Empty if the method
/// has no Supported.
fn supported(request: &Request) -> &'static str {
    let is_within = |request: &Request| {
        let to = request.headers.to().ok().flatten();
        to.is_some_and(|to| to.tag().is_some())
    };
    match request.method {
        Method::Ack | Method::Cancel => "",
        Method::Register => "path",
        // Here PRACK has no answer to an offer, and acknowledges nothing in a re-INVITE.
        Method::Invite if request.body.is_empty() || is_within(request) => "replaces, timer",
        _ => SUPPORTED,
    }
}

/// Adds Supported to a request that has its body. Option tags of the owner stay.
pub(super) fn add_supported(request: &mut Request) {
    let supported = supported(request);
    if supported.is_empty() {
        return;
    }
    let said = request.headers.tokens("Supported").unwrap_or_default();
    let ours = supported.split(", ").map(str::to_owned);
    let new: Vec<String> = ours.filter(|one| !has(&said, one)).collect();
    if !new.is_empty() {
        request.headers.push("Supported", new.join(", "));
    }
}

/// Changes a refused request: 421 names extensions to require, 420 names extensions to leave out.
/// Returns whether it changed, and is to be sent again.
pub(super) fn adapt(request: &mut Request, response: &Response) -> bool {
    match response.status.code() {
        421 => require(request, response),
        420 => leave_out(request, response),
        _ => false,
    }
}

fn require(request: &mut Request, response: &Response) -> bool {
    let wanted = response.headers.tokens("Require").unwrap_or_default();
    let ours: Vec<&str> = supported(request).split(", ").collect();
    let required = request.headers.tokens("Require").unwrap_or_default();
    let new: Vec<&str> = wanted
        .iter()
        .filter(|one| !has(&required, one))
        .map(String::as_str)
        .collect();
    if new.is_empty() || !wanted.iter().all(|one| has(&ours, one)) {
        return false;
    }
    request.headers.push("Require", new.join(", "));
    true
}

fn leave_out(request: &mut Request, response: &Response) -> bool {
    let unsupported = response.headers.tokens("Unsupported").unwrap_or_default();
    // Extensions that the owner requires stay.
    let ours: Vec<&str> = supported(request).split(", ").collect();
    if !unsupported.iter().all(|one| has(&ours, one)) {
        return false;
    }
    let mut is_changed = false;
    for name in ["Require", "Proxy-Require", "Supported"] {
        let said = request.headers.tokens(name).unwrap_or_default();
        let kept: Vec<&str> = said
            .iter()
            .filter(|one| !has(&unsupported, one))
            .map(String::as_str)
            .collect();
        if kept.len() == said.len() {
            continue;
        }
        is_changed = true;
        match kept.is_empty() {
            true => request.headers.remove(name),
            false => request.headers.set(name, kept.join(", ")),
        }
    }
    if is_changed && has(&unsupported, "timer") {
        for name in TIMER_HEADERS {
            request.headers.remove(name);
        }
    }
    is_changed
}

/// Whether an option tag is among these, whatever its case.
fn has<T: AsRef<str>>(tags: &[T], tag: &str) -> bool {
    tags.iter()
        .any(|one| one.as_ref().eq_ignore_ascii_case(tag))
}
