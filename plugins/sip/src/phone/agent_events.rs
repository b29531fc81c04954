//! Events of the SIP stack.

use std::net::IpAddr;
use std::sync::Arc;

use portunus_sip::agent::{About, AgentEvent};
use portunus_sip::flow::Route;
use portunus_sip::message::Message;

use super::Phone;
use crate::events::named_event;
use crate::failure::Failure;
use crate::sip_message::SipMessage;

/// A forbidden address, and the request to it.
pub(super) struct Forbidden {
    about: About,
    address: IpAddr,
}

impl Phone {
    /// Handles an event of the SIP stack.
    pub(crate) fn agent_event(&mut self, event: AgentEvent) {
        match event {
            AgentEvent::Registered {
                account,
                expires,
                response,
            } => self.registered(account, expires, &SipMessage::from(&response)),
            AgentEvent::RegistrationFailed {
                account,
                code,
                reason,
                response,
                ..
            } => {
                let seen = response.as_ref().map(SipMessage::from);
                let why = self.why(About::Registration(account), &reason);
                self.registration_failed(account, code, &why, seen.as_ref());
            }
            AgentEvent::Unregistered { account, response } => {
                let seen = response.as_ref().map(SipMessage::from);
                self.unregistered(account, seen.as_ref());
            }
            AgentEvent::Incoming {
                call,
                account,
                dialog,
                request,
                ..
            } => {
                if let Some(account) = account {
                    self.incoming(call, account, &dialog, SipMessage::from(&request));
                }
            }
            AgentEvent::Provisional {
                call,
                dialog,
                response,
            } => self.call_progresses(call, &dialog, &SipMessage::from(&response)),
            AgentEvent::Accepted {
                call,
                dialog,
                response,
            } => self.call_is_accepted(call, &dialog, &SipMessage::from(&response)),
            AgentEvent::Acknowledged { call, request } => {
                self.acknowledged(call, &SipMessage::from(&request));
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
                self.call_ended(call, cause, code, &why, seen);
            }
            AgentEvent::Reinvite { call, request } => {
                self.peer_changes(call, SipMessage::from(&request));
            }
            AgentEvent::ReinviteCancelled { call } => self.peer_takes_back(call),
            AgentEvent::ReinviteAccepted { call, response } => {
                self.change_is_accepted(call, &SipMessage::from(&response));
            }
            AgentEvent::ReinviteRejected { call, .. } => self.change_is_rejected(call),
            AgentEvent::Request {
                account,
                call,
                request,
                ..
            } => self.peer_message(account, call, &SipMessage::from(&request)),
            AgentEvent::Refer {
                refer,
                account,
                call,
                request,
            } => self.referred(refer, account, call, &SipMessage::from(&request)),
            AgentEvent::ReferNotify { call, request } => {
                self.transfer_goes_on(call, &SipMessage::from(&request));
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
            } => self.subscribed(subscription, expires, &SipMessage::from(&response)),
            AgentEvent::SubscriptionFailed {
                subscription,
                code,
                reason,
                response,
            } => {
                let seen = response.as_ref().map(SipMessage::from);
                let why = self.why(About::Subscription(subscription), &reason);
                self.subscription_failed(subscription, code, &why, seen.as_ref());
            }
            AgentEvent::Notify {
                subscription,
                request,
            } => self.notified(subscription, &SipMessage::from(&request)),
            AgentEvent::SubscriptionEnded { subscription, .. } => {
                self.forget_subscription(subscription);
            }
            AgentEvent::Forbidden { about, address } => {
                self.forbidden = Some(Forbidden { about, address });
            }
            AgentEvent::Trace {
                account,
                call,
                sent,
                route,
                bytes,
            } => {
                let of_call = call.and_then(|call| self.calls.get(call));
                let page = match of_call {
                    Some(call) => call.pages.first().copied(),
                    None => self.accounts.masters(account).first().copied(),
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

fn seen(message: &Arc<Message>) -> SipMessage {
    match message.as_ref() {
        Message::Request(request) => SipMessage::Request(Arc::new(request.clone())),
        Message::Response(response) => SipMessage::Response(Arc::new(response.clone())),
    }
}

/// Returns the remote address of a message.
fn peer(route: &Route) -> String {
    match route {
        Route::Flow(flow) => flow.remote.to_string(),
        Route::Target(target) => target.remote.to_string(),
    }
}

impl Phone {
    /// Returns a failure with the reason `plain` of the SIP stack.
    pub(super) fn why<'a>(&mut self, about: About, plain: &'a str) -> Failure<'a> {
        let of_this = self.forbidden.take_if(|it| it.about == about);
        let forbidden = of_this.map(|it| it.address);
        Failure::new(plain, forbidden)
    }
}
