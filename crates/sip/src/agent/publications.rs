//! Publications (RFC 3903) and their refreshes.

use std::collections::HashMap;
use std::time::Duration;

use super::accounts::Speaker;
use super::stack::{Answer, FirstRequest, Owner, Sending, Stack, add_headers, set_request_body};
use super::timers::Timer;
use super::{AccountId, AgentEvent, Publish, SubscriptionId};
use crate::message::{Method, NameAddr};

/// A published state.
#[derive(Debug)]
struct Publication {
    speaker: Speaker,
    publish: Publish,
    call_id: String,
    tag: String,
    cseq: u32,
    /// The name of the state at the server.
    etag: Option<String>,
    /// The interval to ask for.
    expires: Duration,
    /// The server has the newest state.
    known: bool,
    /// A PUBLISH is under way.
    busy: bool,
    /// Another PUBLISH follows it.
    again: bool,
    leaving: bool,
    /// Corrections by the server in a row: 412, 423.
    corrections: u8,
}

/// All publications.
#[derive(Debug, Default)]
pub(super) struct Publications {
    publications: HashMap<SubscriptionId, Publication>,
}

impl Publications {
    pub(super) fn len(&self) -> usize {
        self.publications.len()
    }

    /// Publishes a state, or changes it. `others` is the number of subscriptions and REFERs.
    pub(super) fn publish(
        &mut self,
        stack: &mut Stack,
        account: AccountId,
        id: SubscriptionId,
        publish: Publish,
        others: usize,
    ) {
        if let Some(publication) = self.publications.get_mut(&id) {
            publication.expires = publish.expires;
            publication.publish = publish;
            publication.known = false;
            publication.leaving = false;
            publication.corrections = 0;
            self.send_publish(stack, id);
            return;
        }
        let count = self.len().saturating_add(others);
        let Some(speaker) = stack.subscriber(account, id, &publish.uri, count) else {
            return;
        };
        let publication = Publication {
            speaker,
            expires: publish.expires,
            publish,
            call_id: stack.random.call_id(),
            tag: stack.random.tag(),
            cseq: 0,
            etag: None,
            known: false,
            busy: false,
            again: false,
            leaving: false,
            corrections: 0,
        };
        self.publications.insert(id, publication);
        self.send_publish(stack, id);
    }

    /// Sends PUBLISH. If one is under way, the new one follows its response.
    fn send_publish(&mut self, stack: &mut Stack, id: SubscriptionId) {
        let Some(publication) = self.publications.get_mut(&id) else {
            return;
        };
        if publication.busy {
            publication.again = true;
            return;
        }
        publication.busy = true;
        publication.again = false;
        publication.cseq = publication.cseq.wrapping_add(1) & 0x7fff_ffff;
        let seconds = if publication.leaving {
            0
        } else {
            publication.expires.as_secs()
        };
        let (speaker, publish) = (publication.speaker.clone(), publication.publish.clone());
        let (call_id, tag, cseq) = (
            publication.call_id.clone(),
            publication.tag.clone(),
            publication.cseq,
        );
        let etag = publication.etag.clone();
        // PUBLISH without a body refreshes or removes the state.
        let has_body = etag.is_none() || !(publication.known || publication.leaving);
        let to = NameAddr::new(publish.uri.clone());
        let first = FirstRequest {
            method: Method::Publish,
            uri: publish.uri,
            to: &to,
            call_id: &call_id,
            tag: &tag,
            number: cseq,
        };
        let mut request = stack.request(&speaker, first);
        request.headers.push("Event", &publish.event);
        request.headers.push("Expires", seconds);
        if let Some(etag) = etag {
            request.headers.push("SIP-If-Match", etag);
        }
        add_headers(&mut request.headers, &publish.headers, &[]);
        set_request_body(&mut request, has_body.then_some(&publish.body));
        stack.deadlines.set(Timer::Publication(id), None);
        stack.send(Sending::outside(Owner::Publish(id), speaker, request, None));
    }

    /// Takes the response to PUBLISH.
    pub(super) fn answered(&mut self, stack: &mut Stack, id: SubscriptionId, answer: Answer) {
        let part = stack.random.range(0.65..0.75);
        let Some(publication) = self.publications.get_mut(&id) else {
            return;
        };
        publication.busy = false;
        publication.cseq = publication.cseq.max(answer.number());
        let asked = answer.asked();
        match answer.response.clone() {
            Some(response) if answer.is_success() => {
                publication.corrections = 0;
                publication.known |= !answer.request.body.is_empty() && !publication.again;
                if let Some(etag) = response.headers.get("SIP-ETag") {
                    publication.etag = Some(etag.to_owned());
                }
                let again = publication.again || (publication.leaving && !asked.is_zero());
                let expires = response.headers.expires().ok().flatten().unwrap_or(asked);
                if publication.leaving && asked.is_zero() {
                    self.drop_publication(stack, id);
                    stack.report_ended(id, None);
                    return;
                }
                let wait = expires.max(Duration::from_secs(1)).mul_f64(part);
                stack
                    .deadlines
                    .set(Timer::Publication(id), Some(stack.now + wait));
                stack.report(AgentEvent::Subscribed {
                    subscription: id,
                    expires,
                    response,
                });
                if again {
                    self.send_publish(stack, id);
                }
            }
            // The server has lost the state (RFC 3903 section 4.4), or wants a longer interval.
            Some(response)
                if matches!(answer.code, 412 | 423)
                    && publication.corrections < 2
                    && !publication.leaving =>
            {
                publication.corrections = publication.corrections.saturating_add(1);
                if answer.code == 412 {
                    publication.etag = None;
                } else if let Ok(Some(least)) = response.headers.min_expires() {
                    publication.expires = publication.expires.max(least);
                }
                self.send_publish(stack, id);
            }
            _ if publication.leaving => {
                self.drop_publication(stack, id);
                stack.report_ended(id, None);
            }
            _ => {
                self.drop_publication(stack, id);
                stack.report_refused(id, answer);
            }
        }
    }

    /// Removes a state.
    pub(super) fn unpublish(&mut self, stack: &mut Stack, id: SubscriptionId) {
        if let Some(publication) = self
            .publications
            .get_mut(&id)
            .filter(|publication| !publication.leaving)
        {
            publication.leaving = true;
            self.send_publish(stack, id);
        }
    }

    pub(super) fn timer_due(&mut self, stack: &mut Stack, id: SubscriptionId) {
        self.send_publish(stack, id);
    }

    fn drop_publication(&mut self, stack: &mut Stack, id: SubscriptionId) {
        self.publications.remove(&id);
        stack.deadlines.set(Timer::Publication(id), None);
    }
}
