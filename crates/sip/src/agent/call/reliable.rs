//! Reliable provisional answers to calls of peers (RFC 3262).

use std::sync::Arc;
use std::time::{Duration, Instant};

use rand::Rng;

use super::incoming::Ringing;
use super::{Call, Phase};
use crate::agent::{Agent, Body, CallId, CallTimer, ExtraHeaders};
use crate::flow::Route;
use crate::message::{Method, Request};

/// Answers that wait for the one before to be acknowledged.
const MOST_WAITING: usize = 16;

/// A provisional answer to be given later.
pub(super) type Queued = (u16, ExtraHeaders, Option<Body>);

/// A reliable provisional answer, repeated until PRACK comes.
#[derive(Debug)]
pub(super) struct Unacknowledged {
    rseq: u32,
    route: Route,
    bytes: Arc<[u8]>,
    interval: Duration,
    until: Instant,
    pub(super) has_sdp: bool,
}

impl Ringing {
    pub(super) fn wait(&mut self, code: u16, headers: ExtraHeaders, body: Option<Body>) {
        if self.waiting.len() < MOST_WAITING {
            self.waiting.push_back((code, headers, body));
        }
    }
}

impl Agent {
    /// The first RSeq of a call (RFC 3262 section 3), small enough never to overflow.
    pub(super) fn first_rseq(&mut self) -> u32 {
        self.random.random_range(1..=0x3fff_ffff)
    }

    pub(super) fn keep_reliable(
        &mut self,
        now: Instant,
        id: CallId,
        rseq: u32,
        (route, bytes): (Route, Arc<[u8]>),
        has_sdp: bool,
    ) {
        let timers = self.options.timers;
        if let Some(Call {
            phase: Phase::Ringing(ringing),
            ..
        }) = self.calls.get_mut(&id)
        {
            let until = now + timers.timeout;
            ringing.unacknowledged = Some(Unacknowledged {
                rseq,
                route,
                bytes,
                interval: timers.t1,
                until,
                has_sdp,
            });
            self.set_timer(id, CallTimer::Reliable, now + timers.t1);
        }
    }

    pub(super) fn reliable_due(&mut self, now: Instant, id: CallId) {
        let Some(Call {
            phase: Phase::Ringing(ringing),
            ..
        }) = self.calls.get_mut(&id)
        else {
            return;
        };
        let Some(answer) = &mut ringing.unacknowledged else {
            return;
        };
        if now >= answer.until {
            self.reject(now, id, 504, None, &Vec::new());
            return;
        }
        answer.interval = answer.interval.saturating_mul(2);
        let next = (now + answer.interval).min(answer.until);
        let (route, bytes) = (answer.route.clone(), answer.bytes.clone());
        self.transactions.send(route, bytes);
        self.set_timer(id, CallTimer::Reliable, next);
    }

    /// Takes a PRACK. Whether it acknowledges something.
    pub(super) fn acknowledged_reliable(&mut self, id: CallId, request: &Request) -> bool {
        let Some(Call {
            phase: Phase::Ringing(ringing),
            ..
        }) = self.calls.get_mut(&id)
        else {
            return false;
        };
        let (Ok(Some(rack)), Ok(Some(invite))) =
            (request.headers.rack(), ringing.request.headers.cseq())
        else {
            return false;
        };
        let fits = rack.cseq.method == Method::Invite
            && rack.cseq.number == invite.number
            && ringing
                .unacknowledged
                .as_ref()
                .is_some_and(|answer| answer.rseq == rack.rseq);
        if fits {
            ringing.unacknowledged = None;
            self.clear_timer(id, CallTimer::Reliable);
        }
        fits
    }

    /// Goes on with what waited for a PRACK.
    pub(super) fn go_on(&mut self, now: Instant, id: CallId) {
        let Some(Call {
            phase: Phase::Ringing(ringing),
            ..
        }) = self.calls.get_mut(&id)
        else {
            return;
        };
        if let Some((headers, body)) = ringing.accept.take() {
            self.accept(now, id, headers, body);
        } else if let Some((code, headers, body)) = ringing.waiting.pop_front() {
            self.send_progress(now, id, code, &headers, body);
        }
    }
}
