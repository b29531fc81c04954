//! One client transaction (RFC 3261 section 17.1, with the Accepted state of RFC 6026).

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Timers;
use crate::flow::Route;
use crate::message::{Message, Method, Request, Response, Via};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Sent; no response yet. Calling of INVITE, Trying of others.
    Calling,
    /// A provisional response came.
    Proceeding,
    /// A final response came; for INVITE, one other than 2xx.
    Completed,
    /// INVITE only: a 2xx came, and more may.
    Accepted,
}

/// The action on a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Deliver it.
    Deliver,
    /// It is a repetition.
    Absorb,
    /// Send the ACK again, for a repetition.
    AckAgain,
    /// Send the ACK, and deliver it.
    AckAndDeliver,
}

/// The action on a deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    Nothing,
    Resend,
    TimedOut,
    End,
}

#[derive(Debug)]
pub(super) struct Client {
    pub(super) route: Route,
    pub(super) branch: Arc<str>,
    /// The request as sent.
    pub(super) bytes: Arc<[u8]>,
    /// INVITE only, for its ACK and CANCEL.
    pub(super) invite: Option<Box<Request>>,
    /// The ACK to a response other than 2xx.
    pub(super) ack: Option<Arc<[u8]>>,
    method: Method,
    state: State,
    /// The interval to the repetition after the next.
    interval: Duration,
    resend: Option<Instant>,
    dead: Option<Instant>,
    /// The time when the transaction ends in any case.
    ends: Option<Instant>,
}

impl Client {
    pub(super) fn new(
        now: Instant,
        timers: &Timers,
        request: Request,
        branch: Arc<str>,
        route: Route,
    ) -> Self {
        let method = request.method.clone();
        let message = Message::Request(request);
        let bytes = message.to_bytes().into();
        let invite = match message {
            Message::Request(request) if method == Method::Invite => Some(Box::new(request)),
            _ => None,
        };
        Self {
            resend: (!route.transport().is_reliable()).then(|| now + timers.t1),
            route,
            branch,
            bytes,
            invite,
            ack: None,
            method,
            state: State::Calling,
            interval: timers.t1,
            dead: Some(now + timers.timeout),
            ends: None,
        }
    }

    pub(super) fn is_invite(&self) -> bool {
        self.invite.is_some()
    }

    pub(super) fn method(&self) -> &Method {
        &self.method
    }

    /// Whether there is no response yet.
    pub(super) fn is_unanswered(&self) -> bool {
        self.state == State::Calling
    }

    /// Whether the final response is still to come.
    pub(super) fn is_pending(&self) -> bool {
        matches!(self.state, State::Calling | State::Proceeding)
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        [self.resend, self.dead].into_iter().flatten().min()
    }

    pub(super) fn timeout(&mut self, now: Instant, timers: &Timers) -> Due {
        if self.dead.is_some_and(|dead| dead <= now) {
            return if self.is_pending() {
                Due::TimedOut
            } else {
                Due::End
            };
        }
        if self.resend.is_none_or(|resend| resend > now) {
            return Due::Nothing;
        }
        self.interval = match (self.is_invite(), self.state) {
            (true, _) => self.interval.saturating_mul(2),
            (false, State::Proceeding) => timers.t2,
            (false, _) => self.interval.saturating_mul(2).min(timers.t2),
        };
        self.resend = Some(now + self.interval);
        Due::Resend
    }

    /// Ends the wait at `at`, in any state (RFC 3261 section 9.1: a CANCEL without effect).
    pub(super) fn end_by(&mut self, at: Instant) {
        if self.is_pending() {
            self.ends = Some(at);
            self.dead = Some(self.dead.map_or(at, |dead| dead.min(at)));
        }
    }

    pub(super) fn response(&mut self, now: Instant, timers: &Timers, response: &Response) -> Step {
        let status = response.status;
        let reliable = self.route.transport().is_reliable();
        match (self.is_invite(), self.state) {
            (true, State::Calling | State::Proceeding) if status.is_provisional() => {
                // From now on the transaction lasts as long as the phone rings, unless it is
                // cancelled.
                self.dead = self.ends;
                self.state = State::Proceeding;
                self.resend = None;
                Step::Deliver
            }
            (true, State::Calling | State::Proceeding) if status.is_success() => {
                self.state = State::Accepted;
                self.resend = None;
                self.dead = Some(now + timers.timeout);
                Step::Deliver
            }
            (true, State::Calling | State::Proceeding) => {
                self.state = State::Completed;
                self.resend = None;
                self.dead = Some(if reliable {
                    now
                } else {
                    now + timers.completed()
                });
                Step::AckAndDeliver
            }
            (true, State::Accepted) if status.is_success() => Step::Deliver,
            (true, State::Completed) if status.is_final() && !status.is_success() => Step::AckAgain,
            (false, State::Calling | State::Proceeding) if status.is_provisional() => {
                self.state = State::Proceeding;
                Step::Deliver
            }
            (false, State::Calling | State::Proceeding) => {
                self.state = State::Completed;
                self.resend = None;
                self.dead = Some(if reliable { now } else { now + timers.t4 });
                Step::Deliver
            }
            _ => Step::Absorb,
        }
    }

    /// Makes the ACK to `response`, which is not 2xx (RFC 3261 section 17.1.1.3).
    pub(super) fn acknowledge(&self, response: &Response) -> Option<Request> {
        let mut ack = self.sibling(Method::Ack)?;
        ack.headers.set("To", response.headers.get("To")?);
        Some(ack)
    }

    /// Makes the CANCEL of this INVITE (RFC 3261 section 9.1).
    pub(super) fn cancel(&self) -> Option<Request> {
        self.sibling(Method::Cancel)
    }

    /// Makes a request that belongs to this INVITE hop by hop.
    fn sibling(&self, method: Method) -> Option<Request> {
        let invite = self.invite.as_deref()?;
        let mut request = Request::new(method, invite.uri.clone());
        let via: Via = invite.headers.via().ok()??;
        request.headers.push("Via", via);
        for name in ["Route", "Max-Forwards", "From", "To", "Call-ID"] {
            for value in invite.headers.all(name) {
                request.headers.push(name, value);
            }
        }
        let cseq = invite.headers.cseq().ok()??;
        request.headers.push(
            "CSeq",
            format_args!("{} {}", cseq.number, request.method.as_str()),
        );
        Some(request)
    }
}
