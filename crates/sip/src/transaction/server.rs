//! One server transaction (RFC 3261 section 17.2, with the Accepted state of RFC 6026 and the rules
//! of RFC 4320).

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::key::ServerKey;
use super::{NewRequest, Timers};
use crate::flow::{Flow, Route};
use crate::message::{Method, Request, StatusCode};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// No final response. Proceeding of INVITE; Trying of others.
    Proceeding,
    /// A final response was sent; for INVITE, one other than 2xx.
    Completed,
    /// INVITE only: ACK came.
    Confirmed,
    /// INVITE only: 2xx was sent.
    Accepted,
}

/// The action on a deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    Nothing,
    Resend,
    End,
}

#[derive(Debug)]
pub(super) struct Server {
    pub(super) key: ServerKey,
    pub(super) merge: Option<String>,
    pub(super) flow: Flow,
    pub(super) route: Route,
    pub(super) request: Arc<Request>,
    /// Octets of the request.
    pub(super) size: usize,
    /// The latest response.
    pub(super) last: Option<Arc<[u8]>>,
    state: State,
    interval: Duration,
    resend: Option<Instant>,
    dead: Option<Instant>,
}

impl Server {
    pub(super) fn new(
        now: Instant,
        timers: &Timers,
        new: &NewRequest,
        merge: Option<String>,
    ) -> Self {
        // The sender of another request than INVITE has stopped waiting by then, and must not get a
        // response (RFC 4320).
        let dead = (new.request.method != Method::Invite).then(|| now + timers.timeout);
        Self {
            key: new.key.clone(),
            merge,
            flow: new.flow,
            route: new.route.clone(),
            request: new.request.clone(),
            size: new.size,
            last: None,
            state: State::Proceeding,
            interval: timers.t1,
            resend: None,
            dead,
        }
    }

    pub(super) fn is_invite(&self) -> bool {
        self.request.method == Method::Invite
    }

    /// Whether the final response is still to come.
    pub(super) fn is_pending(&self) -> bool {
        self.state == State::Proceeding
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        [self.resend, self.dead].into_iter().flatten().min()
    }

    pub(super) fn timeout(&mut self, now: Instant, timers: &Timers) -> Due {
        if self.dead.is_some_and(|dead| dead <= now) {
            return Due::End;
        }
        if self.resend.is_none_or(|resend| resend > now) {
            return Due::Nothing;
        }
        self.interval = self.interval.saturating_mul(2).min(timers.t2);
        self.resend = Some(now + self.interval);
        Due::Resend
    }

    /// Notes a response. Returns whether it may be sent.
    pub(super) fn respond(&mut self, now: Instant, timers: &Timers, status: StatusCode) -> bool {
        let reliable = self.flow.transport.is_reliable();
        match self.state {
            State::Proceeding if status.is_provisional() => {
                self.is_invite() || status == StatusCode::TRYING
            }
            State::Proceeding if !self.is_invite() => {
                self.state = State::Completed;
                self.dead = Some(if reliable { now } else { now + timers.timeout });
                true
            }
            State::Proceeding if status.is_success() => {
                self.state = State::Accepted;
                self.dead = Some(now + timers.timeout);
                true
            }
            State::Proceeding => {
                self.state = State::Completed;
                self.resend = (!reliable).then(|| now + timers.t1);
                self.dead = Some(now + timers.timeout);
                true
            }
            State::Accepted => status.is_success(),
            State::Completed | State::Confirmed => false,
        }
    }

    /// Whether the latest response is to be sent again for a repeated request.
    pub(super) fn repeated(&self) -> bool {
        matches!(self.state, State::Proceeding | State::Completed)
    }

    /// Takes an ACK. Returns whether it was for this transaction; otherwise it is for the 2xx.
    pub(super) fn acknowledged(&mut self, now: Instant, timers: &Timers) -> bool {
        match self.state {
            State::Completed if self.is_invite() => {
                self.state = State::Confirmed;
                self.resend = None;
                self.dead = Some(if self.flow.transport.is_reliable() {
                    now
                } else {
                    now + timers.t4
                });
                true
            }
            State::Confirmed => true,
            _ => false,
        }
    }
}
