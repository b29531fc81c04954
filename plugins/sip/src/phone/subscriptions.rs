//! `subscribe`, `unsubscribe`, `publish` and `unpublish`, and their results.

use std::collections::BTreeMap;
use std::time::Duration;

use portunus_core::{Fields, Message, Object};
use portunus_sip::agent::{Command, Publish, Subscribe, SubscriptionId};
use portunus_sip::message::Uri;
use serde::Deserialize;

use super::messages::body;
use super::registrations::shown_or_empty;
use super::{Phone, Subscription};
use crate::directory::Key;
use crate::events::named_event;
use crate::failure::Failure;
use crate::headers;
use crate::page::Page;
use crate::refusal::Refusal;
use crate::register_request::called;
use crate::sip_message::SipMessage;
use crate::status::PageId;

/// The maximum number of subscriptions, and of publications, of one page.
const MAX_SUBSCRIPTIONS: usize = 100;

/// The maximum length of an event's name.
const MAX_EVENT: usize = 128;

/// The default interval.
const USUAL_TTL: Duration = Duration::from_secs(3_600);

/// The members of `subscribe`.
#[derive(Deserialize)]
struct SubscribeMembers<'a> {
    event: &'a str,
    to: Option<&'a str>,
    accept: Option<&'a str>,
    /// In s.
    subscribe_ttl: Option<i64>,
    call_id: Option<&'a str>,
    #[serde(default, deserialize_with = "headers::member")]
    headers: Vec<(String, String)>,
    content: Option<&'a str>,
    content_type: Option<&'a str>,
}

/// The members of `publish`.
#[derive(Deserialize)]
struct PublishMembers<'a> {
    event: &'a str,
    to: Option<&'a str>,
    /// In s.
    publish_ttl: Option<i64>,
    #[serde(default, deserialize_with = "headers::member")]
    headers: Vec<(String, String)>,
    content: &'a str,
    content_type: &'a str,
}

/// The members of `unsubscribe`.
#[derive(Deserialize)]
struct Unsubscribe<'a> {
    event: &'a str,
    #[serde(rename = "to")]
    _to: Option<&'a str>,
}

impl Phone {
    /// `subscribe`.
    pub(super) fn subscribe(&mut self, me: PageId, message: &Message) -> Result<(), Refusal> {
        self.check_may_call(me)?;
        let SubscribeMembers {
            event,
            to,
            accept,
            subscribe_ttl,
            call_id,
            headers,
            content,
            content_type,
        } = Fields(&message.body).read()?;
        check_event(event)?;
        let body = match (content, content_type) {
            (None, None) => None,
            (Some(content), Some(content_type)) => Some(body(content_type, content)?),
            (None, Some(_)) => return Err(Refusal::MissingOneOf("content")),
            (Some(_), None) => return Err(Refusal::MissingOneOf("content_type")),
        };
        let uri = self.addressed(me, to)?;
        let accept = accept.filter(|accept| !accept.contains(['\r', '\n']));
        let known = self.page(me).and_then(|page| page.subscriptions.get(event));
        let known = known.copied();
        if known.is_none() {
            if let Some(call_id) = call_id {
                self.check_call_id(call_id)?;
            }
            self.check_room(me, |page| &page.subscriptions)?;
        }
        self.spend(message)?;
        let Some(account) = self.account_of(me).map(|account| account.id) else {
            return Ok(());
        };
        let subscription = known.unwrap_or_else(|| SubscriptionId::new(self.common.number()));
        self.remember(subscription, me, event, call_id, false);
        let subscribing = named_event("subscribing").with_some("call_id", call_id);
        self.answer_with(me, message, subscribing);
        self.command(Command::Subscribe {
            account,
            subscription,
            subscribe: Box::new(Subscribe {
                uri,
                event: event.to_owned(),
                accept: accept.map(str::to_owned),
                expires: ttl(subscribe_ttl),
                call_id: call_id.map(str::to_owned),
                headers,
                body,
            }),
        });
        Ok(())
    }

    /// `publish`: publishes the account's own state (RFC 3903).
    pub(super) fn publish(&mut self, me: PageId, message: &Message) -> Result<(), Refusal> {
        self.check_may_call(me)?;
        let PublishMembers {
            event,
            to,
            publish_ttl,
            headers,
            content,
            content_type,
        } = Fields(&message.body).read()?;
        check_event(event)?;
        let body = body(content_type, content)?;
        let uri = self.addressed(me, to)?;
        let known = self.page(me).and_then(|page| page.publications.get(event));
        let known = known.copied();
        if known.is_none() {
            self.check_room(me, |page| &page.publications)?;
        }
        self.spend(message)?;
        let Some(account) = self.account_of(me).map(|account| account.id) else {
            return Ok(());
        };
        let publication = known.unwrap_or_else(|| SubscriptionId::new(self.common.number()));
        self.remember(publication, me, event, None, true);
        self.answer(me, message, "publishing");
        self.command(Command::Publish {
            account,
            publication,
            publish: Box::new(Publish {
                uri,
                event: event.to_owned(),
                expires: ttl(publish_ttl),
                headers,
                body,
            }),
        });
        Ok(())
    }

    /// `unsubscribe`.
    pub(super) fn unsubscribe(&mut self, me: PageId, message: &Message) -> Result<(), Refusal> {
        let Unsubscribe { event, .. } = Fields(&message.body).read()?;
        check_event(event)?;
        let known = self.page(me).and_then(|page| page.subscriptions.get(event));
        let not_there = Refusal::State("not subscribed to this event");
        let subscription = *known.ok_or(not_there)?;
        self.answer(me, message, "unsubscribing");
        self.command(Command::Unsubscribe { subscription });
        Ok(())
    }

    /// `unpublish`.
    pub(super) fn unpublish(&mut self, me: PageId, message: &Message) -> Result<(), Refusal> {
        let event = Fields(&message.body).required("event")?;
        check_event(event)?;
        let known = self.page(me).and_then(|page| page.publications.get(event));
        let not_there = Refusal::State("nothing published of this event");
        let publication = *known.ok_or(not_there)?;
        self.answer(me, message, "unpublishing");
        self.command(Command::Unpublish { publication });
        Ok(())
    }

    /// Returns the target of a request: the account itself by default.
    fn addressed(&self, me: PageId, to: Option<&str>) -> Result<Uri, Refusal> {
        match to {
            Some(to) => called(to).map(Uri::Sip),
            None => {
                let account = self.account_of(me);
                let account = account.ok_or(Refusal::State("register first"))?;
                Ok(account.spec.identity.clone())
            }
        }
    }

    fn check_room(
        &self,
        me: PageId,
        of: impl FnOnce(&Page) -> &BTreeMap<String, SubscriptionId>,
    ) -> Result<(), Refusal> {
        match self
            .page(me)
            .is_some_and(|page| of(page).len() >= MAX_SUBSCRIPTIONS)
        {
            true => Err(Refusal::TooMany("too many subscriptions of this handle")),
            false => Ok(()),
        }
    }

    fn remember(
        &mut self,
        id: SubscriptionId,
        me: PageId,
        event: &str,
        call_id: Option<&str>,
        publishes: bool,
    ) {
        let directory = &self.common.directory;
        directory.enter(Key::Subscription(id), self.id);
        self.subscriptions
            .entry(id)
            .or_insert_with(|| Subscription {
                page: me,
                event: event.to_owned(),
                call_id: call_id.map(str::to_owned),
                publishes,
            });
        if let Some(page) = self.page_mut(me) {
            let of = match publishes {
                true => &mut page.publications,
                false => &mut page.subscriptions,
            };
            of.insert(event.to_owned(), id);
        }
    }

    /// A server has accepted a subscription or a publication.
    pub(super) fn subscribed(
        &mut self,
        id: SubscriptionId,
        expires: Duration,
        message: &SipMessage,
    ) {
        let Some(subscription) = self.subscriptions.get_mut(&id) else {
            return;
        };
        if subscription.call_id.is_none() {
            subscription.call_id = message.header("Call-ID").map(str::to_owned);
        }
        let subscription = subscription.clone();
        let Some(page) = self.page(subscription.page) else {
            return;
        };
        let (name, phrase) = match subscription.publishes {
            true => ("publish_succeeded", "OK"),
            false => ("subscribe_succeeded", message.phrase()),
        };
        let succeeded = named_event(name)
            .with("code", message.code())
            .with_some("headers", message.shown_headers(&page.prefixes))
            .with("expires", expires.as_secs())
            .with("reason", phrase)
            .with_some(
                "published",
                subscription
                    .publishes
                    .then_some(subscription.event.as_str()),
            );
        notify_subscriber(page, &subscription, succeeded);
    }

    /// A server has refused a subscription or a publication.
    pub(super) fn subscription_failed(
        &mut self,
        id: SubscriptionId,
        code: u16,
        reason: &Failure<'_>,
        message: Option<&SipMessage>,
    ) {
        let Some(subscription) = self.forget_subscription(id) else {
            return;
        };
        let Some(page) = self.page(subscription.page) else {
            return;
        };
        let name = match subscription.publishes {
            true => "publish_failed",
            false => "subscribe_failed",
        };
        let failed = named_event(name)
            .with("code", code)
            .with("reason", reason.to(Some(page)))
            .with_some("headers", shown_or_empty(page, message))
            .with_some(
                "published",
                subscription
                    .publishes
                    .then_some(subscription.event.as_str()),
            );
        notify_subscriber(page, &subscription, failed);
    }

    /// A notification of a subscription has come.
    pub(super) fn notified(&mut self, id: SubscriptionId, message: &SipMessage) {
        let Some(subscription) = self.subscriptions.get_mut(&id) else {
            return;
        };
        if subscription.call_id.is_none() {
            subscription.call_id = message.header("Call-ID").map(str::to_owned);
        }
        let subscription = subscription.clone();
        let (Some(page), Some(content)) = (self.page(subscription.page), message.body()) else {
            return;
        };
        let event = message.header("Event").unwrap_or(&subscription.event);
        let event = event.split(';').next().unwrap_or_default().trim();
        let notify = named_event("notify")
            .with("notify", event)
            .with_some("substate", message.substate())
            .with("content-type", message.content_type().unwrap_or_default())
            .with("content", content)
            .with_some("headers", message.shown_headers(&page.prefixes));
        notify_subscriber(page, &subscription, notify);
    }

    /// A subscription or publication is over.
    pub(super) fn forget_subscription(&mut self, id: SubscriptionId) -> Option<Subscription> {
        self.common.directory.leave(Key::Subscription(id));
        let subscription = self.subscriptions.remove(&id)?;
        if let Some(page) = self.page_mut(subscription.page) {
            page.subscriptions.retain(|_, known| *known != id);
            page.publications.retain(|_, known| *known != id);
        }
        Some(subscription)
    }
}

fn notify_subscriber(page: &Page, subscription: &Subscription, event: Object) {
    let data = Object::new()
        .with("sip", "event")
        .with_some("call_id", subscription.call_id.as_deref())
        .with("result", event);
    page.send_data(data, None);
}

fn check_event(event: &str) -> Result<(), Refusal> {
    let is_visible = event.bytes().all(|byte| byte.is_ascii_graphic());
    match is_visible && !event.is_empty() && event.len() <= MAX_EVENT {
        true => Ok(()),
        false => Err(Refusal::Value("event")),
    }
}

/// Returns the interval of a member in s, at most a year.
fn ttl(seconds: Option<i64>) -> Duration {
    match seconds.map(u64::try_from) {
        Some(Ok(seconds @ 1..=31_622_400)) => Duration::from_secs(seconds),
        _ => USUAL_TTL,
    }
}
