//! Publications of ours (RFC 3903): made, refreshed, changed, taken back.

use std::time::{Duration, Instant};

use rand::Rng;

use super::compose::{Speaker, add_headers, set_request_body};
use super::exchange::{Answer, Owner, Sending};
use super::{AccountId, Agent, AgentEvent, Publish, SubscriptionId, Timer};
use crate::message::{Method, NameAddr};

/// A state that we publish.
#[derive(Debug)]
pub(super) struct Publication {
    speaker: Speaker,
    publish: Publish,
    call_id: String,
    tag: String,
    cseq: u32,
    /// What the state is called at the server.
    etag: Option<String>,
    /// For how long we ask.
    expires: Duration,
    /// The server has the newest state.
    known: bool,
    /// A PUBLISH is under way.
    busy: bool,
    /// Something is to be sent after it.
    again: bool,
    leaving: bool,
    /// Corrections by the server in a row: 412, 423.
    corrections: u8,
}

impl Agent {
    /// Publishes a state, or changes it.
    pub(super) fn publish(
        &mut self,
        now: Instant,
        account: AccountId,
        id: SubscriptionId,
        publish: Publish,
    ) {
        if let Some(publication) = self.publications.get_mut(&id) {
            publication.expires = publish.expires;
            publication.publish = publish;
            publication.known = false;
            publication.leaving = false;
            publication.corrections = 0;
            self.send_publish(now, id);
            return;
        }
        let Some(speaker) = self.subscriber(account, id, &publish.uri) else {
            return;
        };
        let publication = Publication {
            speaker,
            expires: publish.expires,
            publish,
            call_id: self.new_call_id(),
            tag: self.tag(),
            cseq: 0,
            etag: None,
            known: false,
            busy: false,
            again: false,
            leaving: false,
            corrections: 0,
        };
        self.publications.insert(id, publication);
        self.send_publish(now, id);
    }

    /// Sends PUBLISH, unless one is under way: then after it.
    fn send_publish(&mut self, now: Instant, id: SubscriptionId) {
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
        // Without a body: the state lasts longer, or is taken back.
        let has_body = etag.is_none() || !(publication.known || publication.leaving);
        let to = NameAddr::new(publish.uri.clone());
        let mut request = self.request(
            &speaker,
            Method::Publish,
            publish.uri,
            &to,
            (&call_id, &tag, cseq),
        );
        request.headers.push("Event", &publish.event);
        request.headers.push("Expires", seconds);
        if let Some(etag) = etag {
            request.headers.push("SIP-If-Match", etag);
        }
        add_headers(&mut request.headers, &publish.headers, &[]);
        set_request_body(&mut request, has_body.then_some(&publish.body));
        self.deadlines.set(Timer::Publication(id), None);
        self.send(
            now,
            Sending::outside(Owner::Publish(id), speaker, request, None),
        );
    }

    /// Takes the answer to PUBLISH.
    pub(super) fn published(&mut self, now: Instant, id: SubscriptionId, answer: Answer) {
        let part = self.random.random_range(0.65..0.75);
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
                    self.drop_publication(id);
                    self.subscription_over(id, None);
                    return;
                }
                let wait = expires.max(Duration::from_secs(1)).mul_f64(part);
                self.deadlines.set(Timer::Publication(id), Some(now + wait));
                self.tell(AgentEvent::Subscribed {
                    subscription: id,
                    expires,
                    response,
                });
                if again {
                    self.send_publish(now, id);
                }
            }
            // The server has forgotten it (RFC 3903 section 4.4), or wants it for longer.
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
                self.send_publish(now, id);
            }
            _ if publication.leaving => {
                self.drop_publication(id);
                self.subscription_over(id, None);
            }
            _ => {
                self.drop_publication(id);
                self.subscription_refused(id, answer);
            }
        }
    }

    /// Takes a state back.
    pub(super) fn unpublish(&mut self, now: Instant, id: SubscriptionId) {
        if let Some(publication) = self
            .publications
            .get_mut(&id)
            .filter(|publication| !publication.leaving)
        {
            publication.leaving = true;
            self.send_publish(now, id);
        }
    }

    pub(super) fn publication_due(&mut self, now: Instant, id: SubscriptionId) {
        self.send_publish(now, id);
    }

    fn drop_publication(&mut self, id: SubscriptionId) {
        self.publications.remove(&id);
        self.deadlines.set(Timer::Publication(id), None);
    }
}
