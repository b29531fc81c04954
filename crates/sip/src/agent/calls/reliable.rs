//! Reliable provisional responses to calls of peers (RFC 3262).

use std::time::{Duration, Instant};

use super::incoming::Ringing;
use super::{Call, Calls, Phase};
use crate::agent::stack::{SentResponse, Stack};
use crate::agent::timers::CallTimer;
use crate::agent::{Body, CallId, ExtraHeaders};
use crate::message::{Method, Request};

/// The maximum number of responses that wait for a PRACK.
const MOST_WAITING: usize = 16;

/// A provisional response that waits.
#[derive(Debug)]
pub(super) struct Provisional {
    pub(super) code: u16,
    pub(super) headers: ExtraHeaders,
    pub(super) body: Option<Body>,
}

/// A reliable provisional response, repeated until PRACK comes.
#[derive(Debug)]
pub(super) struct Unacknowledged {
    rseq: u32,
    sent: SentResponse,
    interval: Duration,
    until: Instant,
    pub(super) has_sdp: bool,
}

impl Ringing {
    pub(super) fn wait(&mut self, code: u16, headers: ExtraHeaders, body: Option<Body>) {
        if self.waiting.len() < MOST_WAITING {
            self.waiting.push_back(Provisional {
                code,
                headers,
                body,
            });
        }
    }
}

impl Calls {
    /// Draws the first RSeq of a call (RFC 3262 section 3), small enough never to overflow.
    pub(super) fn first_rseq(&mut self, stack: &mut Stack) -> u32 {
        stack.random.range(1..=0x3fff_ffff)
    }

    pub(super) fn keep_reliable(
        &mut self,
        stack: &mut Stack,
        id: CallId,
        rseq: u32,
        sent: SentResponse,
        has_sdp: bool,
    ) {
        let timers = stack.options.timers;
        if let Some(Call {
            phase: Phase::Ringing(ringing),
            ..
        }) = self.calls.get_mut(&id)
        {
            let until = stack.now + timers.timeout;
            ringing.unacknowledged = Some(Unacknowledged {
                rseq,
                sent,
                interval: timers.t1,
                until,
                has_sdp,
            });
            stack.set_call_timer(id, CallTimer::Reliable, stack.now + timers.t1);
        }
    }

    pub(super) fn reliable_due(&mut self, stack: &mut Stack, id: CallId) {
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
        if stack.now >= answer.until {
            self.reject(stack, id, 504, None, &Vec::new());
            return;
        }
        answer.interval = answer.interval.saturating_mul(2);
        let next = (stack.now + answer.interval).min(answer.until);
        stack.repeat(answer.sent.clone());
        stack.set_call_timer(id, CallTimer::Reliable, next);
    }

    /// Takes a PRACK. Returns whether it acknowledges a response.
    pub(super) fn acknowledged_reliable(
        &mut self,
        stack: &mut Stack,
        id: CallId,
        request: &Request,
    ) -> bool {
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
            stack.clear_call_timer(id, CallTimer::Reliable);
        }
        fits
    }

    /// Sends the next response that waited for a PRACK.
    pub(super) fn go_on(&mut self, stack: &mut Stack, id: CallId) {
        let Some(Call {
            phase: Phase::Ringing(ringing),
            ..
        }) = self.calls.get_mut(&id)
        else {
            return;
        };
        if let Some((headers, body)) = ringing.accept.take() {
            self.accept(stack, id, headers, body);
        } else if let Some(next) = ringing.waiting.pop_front() {
            let Provisional {
                code,
                headers,
                body,
            } = next;
            self.send_progress(stack, id, code, &headers, body);
        }
    }
}
