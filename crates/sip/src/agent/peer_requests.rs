//! Requests of peers: the accounts that they are for, and refusals (RFC 3261 section 8.2).

use std::sync::Arc;

use super::accounts::{Callee, Speaker};
use super::extensions::SUPPORTED;
use super::stack::to_tag;
use super::{AccountId, Agent, AgentEvent, CallId, Profile};
use crate::message::{Method, NameAddr, Request, Uri};
use crate::transaction::NewRequest;

impl Agent {
    /// Takes a request that belongs to no transaction.
    pub(super) fn on_request(&mut self, new: NewRequest, bytes: &[u8]) {
        if new.request.method == Method::Cancel {
            self.on_cancel(&new, bytes);
            return;
        }
        let tag = to_tag(new.request.headers.to().ok().flatten());
        if !tag.is_empty() {
            self.on_request_in_dialog(&new, &tag, bytes);
            return;
        }
        if !self.stack.limits(&new) {
            self.on_stranger(&new, bytes);
        }
    }

    /// Takes a request in a dialog with this tag of ours.
    fn on_request_in_dialog(&mut self, new: &NewRequest, tag: &str, bytes: &[u8]) {
        if let Some(call) = self.calls.of_tag(tag) {
            if let Some(refer) = self.calls.take_request(&mut self.stack, new, call, bytes) {
                self.take_refer(new, Some(refer));
            }
        } else if let Some(subscription) = self.subscriptions.of_tag(tag) {
            self.subscriptions
                .take_request(&mut self.stack, new, subscription, bytes);
        } else if !self.stack.limits(new) {
            self.stack.refuse_unknown(new);
        }
    }

    fn take_refer(&mut self, new: &NewRequest, call: Option<CallId>) {
        self.release_dialogs();
        let others = self
            .subscriptions
            .len()
            .saturating_add(self.publications.len());
        self.refers
            .take(&mut self.stack, &mut self.calls, new, call, others);
    }

    /// Takes a request outside of dialogs.
    fn on_stranger(&mut self, new: &NewRequest, bytes: &[u8]) {
        if self.stack.transactions.merged(new) {
            self.stack.refuse(new, 482, &[]);
            return;
        }
        let request = &new.request;
        match request.method {
            Method::Invite | Method::Message | Method::Options | Method::Refer => {}
            // They belong to a dialog, or to a notifier, which this agent is not.
            Method::Bye | Method::Info | Method::Prack | Method::Update | Method::Notify => {
                self.stack.refuse_unknown(new);
                return;
            }
            _ => {
                self.stack.refuse_method(new, None);
                return;
            }
        }
        if request.uri.as_sip().is_none() {
            self.stack.refuse(new, 416, &[]);
            return;
        }
        if self.stack.refuses_extensions(new) {
            return;
        }
        let (account, entrances) = match self.stack.callee(request, &new.flow) {
            Callee::Account(id) => (Some(id), Vec::new()),
            // Only INVITE is accepted by an entrance.
            Callee::Entrance { all, named } if request.method == Method::Invite => (named, all),
            Callee::Entrance { .. } | Callee::Nobody => (None, Vec::new()),
            Callee::Gone => {
                self.stack.refuse_nobody(new);
                return;
            }
        };
        let speaker = account.and_then(|id| self.stack.speaker(id));
        match (&request.method, speaker) {
            (Method::Options, speaker) => self.on_options(new, speaker),
            (Method::Invite, Some(speaker)) => self.on_invite(new, (speaker, entrances), bytes),
            (Method::Invite, None) if self.stack.options.strangers => {
                let speaker = stranger(request);
                self.on_invite(new, (speaker, entrances), bytes);
            }
            (Method::Message, Some(speaker)) => self.on_message(new, &speaker, bytes),
            (Method::Refer, Some(speaker)) if !speaker.profile.refers => {
                self.stack.refuse_method(new, Some(&speaker));
            }
            (Method::Refer, Some(_)) => self.take_refer(new, None),
            _ => self.stack.refuse_nobody(new),
        }
    }

    fn on_invite(&mut self, new: &NewRequest, callee: (Speaker, Vec<AccountId>), bytes: &[u8]) {
        if !self.stack.refuses_offer(new) {
            self.calls.ring(&mut self.stack, new, callee, bytes);
        }
    }

    fn on_message(&mut self, new: &NewRequest, speaker: &Speaker, bytes: &[u8]) {
        if self.stack.refuses_encoding(new) {
            return;
        }
        let Some(server) = self.stack.open_new(new) else {
            return;
        };
        self.stack.trace(speaker, None, false, &new.route, bytes);
        let tag = self.stack.random.tag();
        let response = self.stack.response(speaker, &new.request, 200, &tag);
        self.stack.answer(None, speaker, server, &response);
        let (account, flow, request) = (speaker.account, new.flow, new.request.clone());
        self.stack.report(AgentEvent::Request {
            account,
            call: None,
            flow,
            request,
        });
    }

    /// Answers OPTIONS as an INVITE (RFC 3261 section 11.2).
    fn on_options(&mut self, new: &NewRequest, speaker: Option<Speaker>) {
        let for_nobody = new
            .request
            .uri
            .as_sip()
            .is_some_and(|uri| uri.user.is_some())
            && speaker.is_none();
        let code = if for_nobody && !self.stack.options.strangers {
            404
        } else {
            200
        };
        let allow = self
            .stack
            .allow(speaker.as_ref().map(|speaker| &*speaker.profile));
        self.stack.refuse(
            new,
            code,
            &[
                ("Allow", &allow),
                ("Accept", "application/sdp"),
                ("Supported", SUPPORTED),
            ],
        );
    }

    fn on_cancel(&mut self, new: &NewRequest, bytes: &[u8]) {
        match self.stack.transactions.cancelled(new) {
            Some(invite) => self.calls.take_cancel(&mut self.stack, new, invite, bytes),
            None if self.stack.limits(new) => {}
            None => self.stack.refuse_unknown(new),
        }
    }
}

/// Returns the speaker for a caller that calls no account: the callee as the caller named it.
fn stranger(request: &Request) -> Speaker {
    let user = request.uri.subscriber().unwrap_or_default().into_owned();
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
        refers: false,
        entrance: false,
        trace: false,
    };
    Speaker {
        account: None,
        profile: Arc::new(profile),
        user: user.into(),
    }
}
