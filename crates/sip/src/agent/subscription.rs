//! Subscriptions of ours (RFC 6665): made, refreshed, ended; what is told in them.

use std::time::{Duration, Instant};

use rand::Rng;

use super::compose::{Speaker, add_headers, set_request_body};
use super::exchange::{Answer, ExchangeId, Owner, Sending, to_tag};
use super::incoming::Usage;
use super::{AccountId, Agent, AgentEvent, Subscribe, SubscriptionId, Timer};
use crate::dialog::Dialog;
use crate::message::{Method, NameAddr, SipUri, StatusCode, Uri};
use crate::transaction::NewRequest;

/// A subscription.
#[derive(Debug)]
pub(super) struct Subscription {
    speaker: Speaker,
    subscribe: Subscribe,
    call_id: String,
    tag: String,
    /// The number of the SUBSCRIBE that was sent last without a dialog.
    cseq: u32,
    pub(super) dialog: Option<Dialog>,
    exchange: Option<ExchangeId>,
    /// For how long we ask; the notifier may want more.
    expires: Duration,
    /// Whether the notifier has made us ask for longer.
    corrected: bool,
    /// It is to be sent once more when the answer is there.
    again: bool,
    leaving: bool,
}

impl Agent {
    /// Subscribes, or subscribes again.
    pub(super) fn subscribe(
        &mut self,
        now: Instant,
        account: AccountId,
        id: SubscriptionId,
        subscribe: Subscribe,
    ) {
        if let Some(known) = self.subscriptions.get_mut(&id) {
            known.expires = subscribe.expires;
            known.subscribe = subscribe;
            known.leaving = false;
            known.corrected = false;
            self.send_subscribe(now, id);
            return;
        }
        let Some(speaker) = self.subscriber(account, id, &subscribe.uri) else {
            return;
        };
        let call_id = match &subscribe.call_id {
            Some(call_id) => call_id.clone(),
            None => self.new_call_id(),
        };
        let tag = self.tag();
        self.tags.insert(tag.clone(), Usage::Subscription(id));
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
        self.send_subscribe(now, id);
    }

    /// Who subscribes or publishes, if there is room for that; else it is told why not.
    pub(super) fn subscriber(
        &mut self,
        account: AccountId,
        id: SubscriptionId,
        uri: &Uri,
    ) -> Option<Speaker> {
        let Some(speaker) = self.speaker(account) else {
            self.subscription_never(id, 500, "No such account");
            return None;
        };
        if self.load().subscriptions >= self.options.limits.subscriptions {
            self.counters.full = self.counters.full.saturating_add(1);
            self.subscription_never(id, 503, "Too many subscriptions");
            return None;
        }
        if uri.as_sip().is_none() {
            self.subscription_never(id, 416, StatusCode::UNSUPPORTED_URI_SCHEME.reason());
            return None;
        }
        Some(speaker)
    }

    fn subscription_never(&mut self, subscription: SubscriptionId, code: u16, reason: &str) {
        let reason = reason.to_owned();
        self.tell(AgentEvent::SubscriptionFailed {
            subscription,
            code,
            reason,
            response: None,
        });
    }

    /// Sends SUBSCRIBE, unless one is under way: then after it.
    fn send_subscribe(&mut self, now: Instant, id: SubscriptionId) {
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
                    self.request(
                        &speaker,
                        Method::Subscribe,
                        uri,
                        &to,
                        (&call_id, &tag, cseq),
                    ),
                    true,
                )
            }
        };
        if !is_first {
            self.sign(&speaker, &mut request.headers, "User-Agent");
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
        self.deadlines.set(Timer::Subscription(id), None);
        let exchange = self.send(now, sending);
        if let Some(known) = self.subscriptions.get_mut(&id) {
            known.exchange = Some(exchange);
        }
    }

    /// Takes the answer to SUBSCRIBE.
    pub(super) fn subscribed(&mut self, now: Instant, id: SubscriptionId, answer: Answer) {
        let part = self.random.random_range(0.65..0.75);
        let patience = self.options.timers.timeout;
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
                self.send_subscribe(now, id);
                return;
            }
            self.drop_subscription(id);
            self.subscription_refused(id, answer);
            return;
        };
        let tag = to_tag(response.headers.to().ok().flatten());
        match &mut known.dialog {
            Some(dialog) if dialog.fits(&known.call_id, &tag) => {
                dialog.retarget(response.headers.contact().ok().flatten());
            }
            // Of several forks the one counts whose NOTIFY came first.
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
        // After the last SUBSCRIBE the last NOTIFY is waited for (RFC 6665 section 4.1.2.3).
        let wait = if asked.is_zero() || expires.is_zero() {
            known.leaving = true;
            patience
        } else {
            expires.max(Duration::from_secs(1)).mul_f64(part)
        };
        self.deadlines
            .set(Timer::Subscription(id), Some(now + wait));
        self.tell(AgentEvent::Subscribed {
            subscription: id,
            expires,
            response,
        });
        if again {
            self.send_subscribe(now, id);
        }
    }

    /// Ends a subscription.
    pub(super) fn unsubscribe(&mut self, now: Instant, id: SubscriptionId) {
        if let Some(known) = self
            .subscriptions
            .get_mut(&id)
            .filter(|known| !known.leaving)
        {
            known.leaving = true;
            self.send_subscribe(now, id);
        }
    }

    pub(super) fn subscription_due(&mut self, now: Instant, id: SubscriptionId) {
        match self.subscriptions.get(&id) {
            Some(known) if known.leaving => self.end_subscription(id, None),
            Some(_) => self.send_subscribe(now, id),
            None => {}
        }
    }

    /// Takes a request in the dialog of a subscription.
    pub(super) fn on_notify(
        &mut self,
        now: Instant,
        new: &NewRequest,
        id: SubscriptionId,
        bytes: &[u8],
    ) {
        let request = &new.request;
        if request.method != Method::Notify {
            self.refuse_method(new, None);
            return;
        }
        let Some(known) = self.subscriptions.get_mut(&id) else {
            self.refuse_unknown(new);
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
                    self.refuse(new, 500, &[]);
                    return;
                }
                None => {
                    self.refuse_unknown(new);
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
            self.refuse(new, 489, &[]);
            return;
        }
        let (speaker, our_tag, leaving) = (known.speaker.clone(), known.tag.clone(), known.leaving);
        if let (Some(dialog), Ok(contact)) = (&mut known.dialog, request.headers.contact()) {
            dialog.retarget(contact);
        }
        let Some(server) = self.open(now, new) else {
            return;
        };
        self.trace(&speaker, None, false, &new.route, bytes);
        let response = self.dialog_response(&speaker, request, &new.flow, 200, &our_tag);
        self.answer(now, None, &speaker, server, &response);
        self.tell(AgentEvent::Notify {
            subscription: id,
            request: request.clone(),
        });
        match request.headers.subscription_state() {
            Ok(Some(state)) if state.state == "terminated" => {
                let reason = state.params.get("reason").map(str::to_owned);
                self.end_subscription(id, reason);
            }
            Ok(Some(state)) if !leaving => {
                // The notifier may have shortened it.
                if let Some(expires) = state.expires() {
                    let at = now + expires.max(Duration::from_secs(1)).mul_f64(0.75);
                    self.deadlines.hasten(Timer::Subscription(id), at);
                }
            }
            _ => {}
        }
    }

    /// A subscription or publication was refused, and is gone.
    pub(super) fn subscription_refused(&mut self, subscription: SubscriptionId, answer: Answer) {
        let Answer {
            code,
            reason,
            response,
            ..
        } = answer;
        self.tell(AgentEvent::SubscriptionFailed {
            subscription,
            code,
            reason,
            response,
        });
    }

    fn end_subscription(&mut self, id: SubscriptionId, reason: Option<String>) {
        self.drop_subscription(id);
        self.subscription_over(id, reason);
    }

    /// A subscription or publication is over, as both sides know.
    pub(super) fn subscription_over(
        &mut self,
        subscription: SubscriptionId,
        reason: Option<String>,
    ) {
        self.tell(AgentEvent::SubscriptionEnded {
            subscription,
            reason,
        });
    }

    fn drop_subscription(&mut self, id: SubscriptionId) {
        if let Some(known) = self.subscriptions.remove(&id) {
            self.tags.remove(&known.tag);
            self.deadlines.set(Timer::Subscription(id), None);
            if let Some(exchange) = known.exchange {
                self.abandon(exchange);
            }
        }
    }
}
