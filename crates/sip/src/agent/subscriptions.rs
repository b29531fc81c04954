//! Subscriptions (RFC 6665), their refreshes and notifications.

use std::collections::HashMap;
use std::time::Duration;

use super::accounts::Speaker;
use super::stack::{
    Answer, ExchangeId, FirstRequest, Owner, Sending, Stack, add_headers, set_request_body, to_tag,
};
use super::timers::Timer;
use super::{AccountId, AgentEvent, Subscribe, SubscriptionId};
use crate::dialog::Dialog;
use crate::message::{Method, NameAddr, SipUri, Uri};
use crate::transaction::NewRequest;

/// A subscription.
#[derive(Debug)]
struct Subscription {
    speaker: Speaker,
    subscribe: Subscribe,
    call_id: String,
    tag: String,
    /// The number of the last SUBSCRIBE without a dialog.
    cseq: u32,
    dialog: Option<Dialog>,
    exchange: Option<ExchangeId>,
    /// The interval to ask for; the notifier may want a longer one.
    expires: Duration,
    /// Whether the notifier has asked for a longer interval.
    corrected: bool,
    /// Another SUBSCRIBE follows the response.
    again: bool,
    leaving: bool,
}

/// All subscriptions.
#[derive(Debug, Default)]
pub(super) struct Subscriptions {
    subscriptions: HashMap<SubscriptionId, Subscription>,
    /// Subscriptions by our tag of their dialog.
    tags: HashMap<String, SubscriptionId>,
}

impl Subscriptions {
    pub(super) fn len(&self) -> usize {
        self.subscriptions.len()
    }

    /// The subscription whose dialog has this tag of ours.
    pub(super) fn of_tag(&self, tag: &str) -> Option<SubscriptionId> {
        self.tags.get(tag).copied()
    }

    pub(super) fn dialog(&mut self, id: SubscriptionId) -> Option<&mut Dialog> {
        self.subscriptions.get_mut(&id)?.dialog.as_mut()
    }

    /// Subscribes, or subscribes again. `others` is the number of publications and REFERs.
    pub(super) fn subscribe(
        &mut self,
        stack: &mut Stack,
        account: AccountId,
        id: SubscriptionId,
        subscribe: Subscribe,
        others: usize,
    ) {
        if let Some(known) = self.subscriptions.get_mut(&id) {
            known.expires = subscribe.expires;
            known.subscribe = subscribe;
            known.leaving = false;
            known.corrected = false;
            self.send_subscribe(stack, id);
            return;
        }
        let count = self.len().saturating_add(others);
        let Some(speaker) = stack.subscriber(account, id, &subscribe.uri, count) else {
            return;
        };
        let call_id = match &subscribe.call_id {
            Some(call_id) => call_id.clone(),
            None => stack.random.call_id(),
        };
        let tag = stack.random.tag();
        self.tags.insert(tag.clone(), id);
        let subscription = Subscription {
            speaker,
            expires: subscribe.expires,
            subscribe,
            call_id,
            tag,
            cseq: 0,
            dialog: None,
            exchange: None,
            corrected: false,
            again: false,
            leaving: false,
        };
        self.subscriptions.insert(id, subscription);
        self.send_subscribe(stack, id);
    }

    /// Sends SUBSCRIBE. If one is under way, the new one follows its response.
    fn send_subscribe(&mut self, stack: &mut Stack, id: SubscriptionId) {
        let Some(known) = self.subscriptions.get_mut(&id) else {
            return;
        };
        if known.exchange.is_some() {
            known.again = true;
            return;
        }
        known.again = false;
        let speaker = known.speaker.clone();
        let subscribe = known.subscribe.clone();
        let seconds = if known.leaving {
            0
        } else {
            known.expires.as_secs()
        };
        let (mut request, is_first) = match &mut known.dialog {
            Some(dialog) => (dialog.request(Method::Subscribe), false),
            None => {
                known.cseq = known.cseq.wrapping_add(1) & 0x7fff_ffff;
                let (call_id, tag, cseq) = (known.call_id.clone(), known.tag.clone(), known.cseq);
                let uri = match subscribe.uri {
                    Uri::Sip(uri) => Uri::Sip(SipUri {
                        headers: None,
                        ..uri
                    }),
                    other => other,
                };
                let to = NameAddr::new(uri.clone());
                (
                    stack.request(
                        &speaker,
                        FirstRequest {
                            method: Method::Subscribe,
                            uri,
                            to: &to,
                            call_id: &call_id,
                            tag: &tag,
                            number: cseq,
                        },
                    ),
                    true,
                )
            }
        };
        if !is_first {
            stack.sign(&speaker, &mut request.headers, "User-Agent");
        }
        request.headers.push("Event", &subscribe.event);
        request.headers.push("Expires", seconds);
        if let Some(accept) = &subscribe.accept {
            request.headers.push("Accept", accept);
        }
        add_headers(&mut request.headers, &subscribe.headers, &[]);
        set_request_body(&mut request, subscribe.body.as_ref());
        let owner = Owner::Subscribe(id);
        let sending = if is_first {
            Sending::outside(owner, speaker, request, None)
        } else {
            Sending::within(owner, speaker, request, None)
        };
        stack.deadlines.set(Timer::Subscription(id), None);
        let exchange = stack.send(sending);
        if let Some(known) = self.subscriptions.get_mut(&id) {
            known.exchange = Some(exchange);
        }
    }

    /// Takes the response to SUBSCRIBE.
    pub(super) fn answered(&mut self, stack: &mut Stack, id: SubscriptionId, answer: Answer) {
        let part = stack.random.range(0.65..0.75);
        let patience = stack.options.timers.timeout;
        let Some(known) = self.subscriptions.get_mut(&id) else {
            return;
        };
        known.exchange = None;
        let number = answer.number();
        known.cseq = known.cseq.max(number);
        let asked = answer.asked();
        let Some(response) = answer.response.clone().filter(|_| answer.is_success()) else {
            let least = answer
                .response
                .as_ref()
                .and_then(|response| response.headers.min_expires().ok().flatten());
            if let Some(least) =
                least.filter(|least| answer.code == 423 && *least > asked && !known.corrected)
            {
                known.corrected = true;
                known.expires = least;
                self.send_subscribe(stack, id);
                return;
            }
            self.drop_subscription(stack, id);
            stack.report_refused(id, answer);
            return;
        };
        let tag = to_tag(response.headers.to().ok().flatten());
        match &mut known.dialog {
            Some(dialog) if dialog.fits(&known.call_id, &tag) => {
                dialog.retarget(response.headers.contact().ok().flatten());
            }
            // The first fork that sends NOTIFY counts.
            Some(_) => {}
            None => known.dialog = Dialog::of_response(&answer.request, &response).ok(),
        }
        if let Some(dialog) = &mut known.dialog {
            dialog.count_from(number);
        }
        let expires = response
            .headers
            .expires()
            .ok()
            .flatten()
            .unwrap_or(asked)
            .min(asked.max(Duration::from_secs(1)));
        let again = known.again || (known.leaving && !asked.is_zero());
        // The last NOTIFY follows the last SUBSCRIBE (RFC 6665 section 4.1.2.3).
        let wait = if asked.is_zero() || expires.is_zero() {
            known.leaving = true;
            patience
        } else {
            expires.max(Duration::from_secs(1)).mul_f64(part)
        };
        stack
            .deadlines
            .set(Timer::Subscription(id), Some(stack.now + wait));
        stack.report(AgentEvent::Subscribed {
            subscription: id,
            expires,
            response,
        });
        if again {
            self.send_subscribe(stack, id);
        }
    }

    /// Ends a subscription.
    pub(super) fn unsubscribe(&mut self, stack: &mut Stack, id: SubscriptionId) {
        if let Some(known) = self
            .subscriptions
            .get_mut(&id)
            .filter(|known| !known.leaving)
        {
            known.leaving = true;
            self.send_subscribe(stack, id);
        }
    }

    pub(super) fn timer_due(&mut self, stack: &mut Stack, id: SubscriptionId) {
        match self.subscriptions.get(&id) {
            Some(known) if known.leaving => self.end_subscription(stack, id, None),
            Some(_) => self.send_subscribe(stack, id),
            None => {}
        }
    }

    /// Takes a request in the dialog of a subscription.
    pub(super) fn take_request(
        &mut self,
        stack: &mut Stack,
        new: &NewRequest,
        id: SubscriptionId,
        bytes: &[u8],
    ) {
        let request = &new.request;
        if request.method != Method::Notify {
            stack.refuse_method(new, None);
            return;
        }
        let Some(known) = self.subscriptions.get_mut(&id) else {
            stack.refuse_unknown(new);
            return;
        };
        let tag = to_tag(request.headers.from().ok().flatten());
        let is_ours = request.headers.call_id() == Some(&*known.call_id);
        if known.dialog.is_none() && is_ours {
            known.dialog = Dialog::of_request(request, &known.tag).ok();
            if let Some(dialog) = &mut known.dialog {
                dialog.count_from(known.cseq);
            }
        } else {
            let order = known
                .dialog
                .as_mut()
                .filter(|dialog| is_ours && dialog.fits(&known.call_id, &tag));
            match order.map(|dialog| dialog.order(request)) {
                Some(Ok(())) => {}
                Some(Err(_)) => {
                    stack.refuse(new, 500, &[]);
                    return;
                }
                None => {
                    stack.refuse_unknown(new);
                    return;
                }
            }
        }
        let package = |text: &str| {
            text.split(';')
                .next()
                .unwrap_or_default()
                .trim()
                .to_ascii_lowercase()
        };
        if request.headers.get("Event").map(package) != Some(package(&known.subscribe.event)) {
            stack.refuse(new, 489, &[]);
            return;
        }
        let (speaker, our_tag, leaving) = (known.speaker.clone(), known.tag.clone(), known.leaving);
        if let (Some(dialog), Ok(contact)) = (&mut known.dialog, request.headers.contact()) {
            dialog.retarget(contact);
        }
        let Some(server) = stack.open(new) else {
            return;
        };
        stack.trace(&speaker, None, false, &new.route, bytes);
        let response = stack.dialog_response(&speaker, request, &new.flow, 200, &our_tag);
        stack.answer(None, &speaker, server, &response);
        stack.report(AgentEvent::Notify {
            subscription: id,
            request: request.clone(),
        });
        match request.headers.subscription_state() {
            Ok(Some(state)) if state.state == "terminated" => {
                let reason = state.params.get("reason").map(str::to_owned);
                self.end_subscription(stack, id, reason);
            }
            Ok(Some(state)) if !leaving => {
                // The notifier may shorten the interval.
                if let Some(expires) = state.expires() {
                    let at = stack.now + expires.max(Duration::from_secs(1)).mul_f64(0.75);
                    stack.deadlines.hasten(Timer::Subscription(id), at);
                }
            }
            _ => {}
        }
    }

    fn end_subscription(&mut self, stack: &mut Stack, id: SubscriptionId, reason: Option<String>) {
        self.drop_subscription(stack, id);
        stack.report_ended(id, reason);
    }

    fn drop_subscription(&mut self, stack: &mut Stack, id: SubscriptionId) {
        if let Some(known) = self.subscriptions.remove(&id) {
            self.tags.remove(&known.tag);
            stack.deadlines.set(Timer::Subscription(id), None);
            if let Some(exchange) = known.exchange {
                stack.abandon(exchange);
            }
        }
    }
}
