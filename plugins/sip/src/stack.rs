//! What the SIP stack is told of accounts, and what it tells.

use std::sync::Arc;

use portunus_sip::agent::{About, AgentEvent, Profile, Registration};
use portunus_sip::digest::Credentials;
use portunus_sip::flow::{Route, Transport};
use portunus_sip::message::Message;

use crate::account::{AccountSpec, Secret};
use crate::config::SipConfig;
use crate::page::named_event;
use crate::phones::Phones;
use crate::seen::Seen;

/// An account as the stack knows it.
pub(crate) fn profile(spec: &AccountSpec, config: &SipConfig) -> Profile {
    let keepalive = config.keepalive_interval;
    let registration = spec.registers.then(|| Registration {
        registrar: spec.proxy.clone(),
        expires: spec.ttl,
        headers: spec.headers.clone(),
        keepalive: (!keepalive.is_zero()).then_some(keepalive),
        // Clients are told of a failure, and try again.
        retry: false,
    });
    let credentials = spec.secret.as_ref();
    Profile {
        identity: spec.identity.clone(),
        display_name: spec.display_name.clone().unwrap_or_default(),
        credentials: credentials.and_then(|secret| credentials_of(spec, secret, None)),
        registration,
        outbound_proxy: spec.outbound_proxy.clone(),
        transport: spec.transport(),
        user_agent: spec.user_agent.clone(),
        contact_params: spec.contact_params.clone(),
        behind_nat: config.behind_nat,
        refers: true,
        entrance: false,
        trace: config.events,
    }
}

/// What answers challenges to an account, or to one call of it; none if the secret is no hash that is known.
pub(crate) fn credentials_of(
    spec: &AccountSpec,
    secret: &Secret,
    authuser: Option<&str>,
) -> Option<Credentials> {
    let user = authuser.or(spec.authuser.as_deref()).unwrap_or(&spec.user);
    match secret {
        Secret::Password(password) => Some(Credentials::password(user, password)),
        Secret::Ha1(ha1) => Credentials::ha1(user, ha1),
    }
}

impl AccountSpec {
    /// The transport that was asked for.
    fn transport(&self) -> Option<Transport> {
        match (self.tcp, self.udp) {
            (true, _) => Some(Transport::Tcp),
            (false, true) => Some(Transport::Udp),
            (false, false) => None,
        }
    }
}

impl Phones {
    /// Something happened at the SIP stack.
    pub(crate) fn agent_event(&mut self, event: AgentEvent) {
        match event {
            AgentEvent::Registered {
                account,
                expires,
                response,
            } => self.registered(account, expires, &Seen::from(&response)),
            AgentEvent::RegistrationFailed {
                account,
                code,
                reason,
                response,
                ..
            } => {
                let seen = response.as_ref().map(Seen::from);
                let why = self.why(About::Registration(account), &reason);
                self.registration_failed(account, code, &why, seen.as_ref());
            }
            AgentEvent::Unregistered { account, response } => {
                let seen = response.as_ref().map(Seen::from);
                self.unregistered(account, seen.as_ref());
            }
            AgentEvent::Incoming {
                call,
                account,
                dialog,
                request,
                ..
            } => self.incoming(call, account, &dialog, Seen::from(&request)),
            AgentEvent::Provisional {
                call,
                dialog,
                response,
            } => self.call_progresses(call, &dialog, &Seen::from(&response)),
            AgentEvent::Accepted {
                call,
                dialog,
                response,
            } => self.call_is_accepted(call, &dialog, &Seen::from(&response)),
            AgentEvent::Acknowledged { call, request } => {
                self.acknowledged(call, &Seen::from(&request));
            }
            AgentEvent::Ended {
                call,
                cause,
                code,
                reason,
                message,
            } => {
                let seen = message.map(|message| seen(&message));
                let why = self.why(About::Call(call), &reason);
                self.call_ended(call, cause, (code, &why), seen);
            }
            AgentEvent::Reinvite { call, request } => {
                self.peer_changes(call, Seen::from(&request));
            }
            AgentEvent::ReinviteCancelled { call } => self.peer_takes_back(call),
            AgentEvent::ReinviteAccepted { call, response } => {
                self.change_is_accepted(call, &Seen::from(&response));
            }
            AgentEvent::ReinviteRejected { call, .. } => self.change_is_rejected(call),
            AgentEvent::Request {
                account,
                call,
                request,
                ..
            } => self.told(account, call, &Seen::from(&request)),
            AgentEvent::Refer {
                refer,
                account,
                call,
                request,
            } => self.referred(refer, account, call, &Seen::from(&request)),
            AgentEvent::ReferNotify { call, request } => {
                self.transfer_goes_on(call, &Seen::from(&request));
            }
            AgentEvent::Response {
                request,
                code,
                reason,
                ..
            } => {
                let why = self.why(About::Request(request), &reason);
                self.answered(request, code, &why);
            }
            AgentEvent::Subscribed {
                subscription,
                expires,
                response,
            } => self.subscribed(subscription, expires, &Seen::from(&response)),
            AgentEvent::SubscriptionFailed {
                subscription,
                code,
                reason,
                response,
            } => {
                let seen = response.as_ref().map(Seen::from);
                let why = self.why(About::Subscription(subscription), &reason);
                self.subscription_failed(subscription, code, &why, seen.as_ref());
            }
            AgentEvent::Notify {
                subscription,
                request,
            } => self.notified(subscription, &Seen::from(&request)),
            AgentEvent::SubscriptionEnded { subscription, .. } => {
                self.forget_subscription(subscription);
            }
            AgentEvent::Forbidden { about, address } => self.forbidden(about, address),
            AgentEvent::Trace {
                account,
                call,
                sent,
                route,
                bytes,
            } => {
                let of_call = call.and_then(|call| self.calls.get(&call));
                let page = match of_call {
                    Some(call) => call.pages.first().copied(),
                    None => self.masters_of(account).first().copied(),
                };
                if let Some(page) = page {
                    self.notify_of(page, || {
                        named_event(if sent { "sip-out" } else { "sip-in" })
                            .with("sip", String::from_utf8_lossy(&bytes))
                            .with("peer", peer(&route))
                    });
                }
            }
        }
    }
}

fn seen(message: &Arc<Message>) -> Seen {
    match message.as_ref() {
        Message::Request(request) => Seen::Request(Arc::new(request.clone())),
        Message::Response(response) => Seen::Response(Arc::new(response.clone())),
    }
}

/// The other end of a message's way.
fn peer(route: &Route) -> String {
    match route {
        Route::Flow(flow) => flow.remote.to_string(),
        Route::Target(target) => target.remote.to_string(),
    }
}
