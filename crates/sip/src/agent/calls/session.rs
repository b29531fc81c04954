//! Session timers (RFC 4028), which end calls whose peer has vanished.

use std::time::{Duration, Instant};

use super::reinvite::Reinvite;
use super::{Calls, EXPIRED, Phase};
use crate::agent::CallId;
use crate::agent::stack::{Answer, Owner, Stack};
use crate::agent::timers::CallTimer;
use crate::message::{Method, Refresher, Request, Response, SessionExpires};

/// The name of the header field.
pub(super) const SESSION_EXPIRES: &str = "Session-Expires";

/// The shortest wait before a refused refresh is tried again.
const LEAST_WAIT: Duration = Duration::from_secs(5);

/// The maximum number of longer intervals that one request gets. Each proxy may want a longer one
/// than the proxy before it (RFC 4028 section 8.1).
pub(super) const MOST_LONGER: u8 = 8;

/// The session timer of a call.
#[derive(Debug, Clone, Copy)]
pub(super) struct Session {
    interval: Duration,
    /// The number of times that the interval was too short, since it was agreed on.
    longer: u8,
    /// Whether we refresh.
    ours: bool,
    /// The time when it expires without a refresh.
    until: Instant,
}

/// Returns the shortest interval that a response accepts: 422 to a request with a shorter one.
pub(super) fn too_small(request: &Request, response: &Response) -> Option<Duration> {
    let asked = request.headers.session_expires().ok()??.interval;
    let least = response.headers.min_se().ok()??;
    (response.status.code() == 422 && least > asked && least <= Duration::from_secs(86_400))
        .then_some(least)
}

impl Calls {
    /// Sets the session timer as a request asks. `response` is its 2xx.
    pub(super) fn session_of_request(
        &mut self,
        stack: &mut Stack,
        id: CallId,
        request: &Request,
        response: &mut Response,
    ) {
        let Ok(Some(SessionExpires {
            interval,
            refresher,
        })) = request.headers.session_expires()
        else {
            // A request without one ends the session timer (RFC 4028 section 9).
            self.set_session(stack, id, None);
            return;
        };
        let peer_can = request.headers.has_token("Supported", "timer");
        let ours = !peer_can || refresher == Some(Refresher::Uas);
        let who = if ours { "uas" } else { "uac" };
        response.headers.set(
            SESSION_EXPIRES,
            format_args!("{};refresher={who}", interval.as_secs()),
        );
        if peer_can {
            response.headers.push("Require", "timer");
        }
        self.set_session(stack, id, Some(Session::new(stack.now, interval, ours)));
    }

    /// Sets the session timer as the response to a request of ours says.
    pub(super) fn session_of_answer(
        &mut self,
        stack: &mut Stack,
        id: CallId,
        request: &Request,
        response: &Response,
    ) {
        let session = match response.headers.session_expires() {
            Ok(Some(session)) => {
                let interval = session.interval.max(stack.options.session.min);
                let ours = session.refresher != Some(Refresher::Uas);
                Some(Session::new(stack.now, interval, ours))
            }
            // The peer has no session timers, but we may refresh for our own sake.
            _ => match request.headers.session_expires() {
                Ok(Some(session)) => Some(Session::new(stack.now, session.interval, true)),
                _ => None,
            },
        };
        self.set_session(stack, id, session);
    }

    fn set_session(&mut self, stack: &mut Stack, id: CallId, session: Option<Session>) {
        let Some(call) = self.calls.get_mut(&id) else {
            return;
        };
        call.session = session;
        match session {
            None => stack.clear_call_timer(id, CallTimer::Session),
            Some(Session {
                interval,
                ours: true,
                ..
            }) => stack.set_call_timer(id, CallTimer::Session, stack.now + interval / 2),
            Some(Session {
                interval,
                ours: false,
                ..
            }) => {
                let margin = (interval / 3).min(Duration::from_secs(32));
                stack.set_call_timer(
                    id,
                    CallTimer::Session,
                    stack.now + interval.saturating_sub(margin),
                );
            }
        }
    }

    /// Adds the session timer of the call to a request that refreshes it.
    pub(super) fn add_session(&self, stack: &mut Stack, id: CallId, request: &mut Request) {
        if let Some(session) = self.calls.get(&id).and_then(|call| call.session) {
            let who = if session.ours { "uac" } else { "uas" };
            request.headers.push(
                SESSION_EXPIRES,
                format_args!("{};refresher={who}", session.interval.as_secs()),
            );
            request
                .headers
                .push("Min-SE", stack.options.session.min.as_secs());
        }
    }

    pub(super) fn session_due(&mut self, stack: &mut Stack, id: CallId) {
        let Some(call) = self
            .calls
            .get_mut(&id)
            .filter(|call| matches!(call.phase, Phase::Up))
        else {
            return;
        };
        let Some(session) = call.session else {
            return;
        };
        if !session.ours || stack.now >= session.until {
            let headers = vec![(
                "Reason".to_owned(),
                "SIP;cause=408;text=\"Session Expired\"".to_owned(),
            )];
            self.leave(stack, id, EXPIRED, headers);
            return;
        }
        // The response sets it anew.
        let rest = session.interval.saturating_sub(session.interval / 2);
        let busy = call.reinvite.is_some()
            || call.theirs.is_some()
            || call.unacked.is_some()
            || call.owed.is_some();
        if busy {
            stack.set_call_timer(id, CallTimer::Session, stack.now + rest / 4);
            return;
        }
        stack.set_call_timer(
            id,
            CallTimer::Session,
            (stack.now + rest).min(session.until),
        );
        self.refresh(stack, id);
    }

    /// Postpones a refused refresh of a call that the peer still knows.
    pub(super) fn refresh_later(&mut self, stack: &mut Stack, id: CallId) {
        let session = self.calls.get(&id).and_then(|call| call.session);
        if let Some(Session { until, .. }) = session {
            let left = until.saturating_duration_since(stack.now);
            let wait = (left / 4).max(LEAST_WAIT).min(left);
            stack.set_call_timer(id, CallTimer::Session, stack.now + wait);
        }
    }

    fn refresh(&mut self, stack: &mut Stack, id: CallId) {
        let Some(call) = self.up(id) else {
            return;
        };
        if !call.peer_updates {
            let body = call.sdp.clone();
            call.reinvite = Some(Reinvite::new(Vec::new(), body, true));
            self.send_reinvite(stack, id);
            return;
        }
        if let Some(mut request) = self.request_within(stack, id, Method::Update) {
            self.add_session(stack, id, &mut request);
            self.send_in(stack, id, Owner::Refresh(id), request);
        }
    }

    /// Takes the response to an UPDATE that refreshed the session.
    pub(in crate::agent) fn refreshed(&mut self, stack: &mut Stack, id: CallId, answer: &Answer) {
        let Some(call) = self.up(id) else {
            return;
        };
        let response = answer.response.as_ref();
        let least = response.and_then(|response| too_small(&answer.request, response));
        if let (Some(least), Some(session)) = (least, &mut call.session)
            && session.lengthen(least)
        {
            return self.refresh(stack, id);
        }
        match (&answer.response, answer.code) {
            (Some(response), 200..300) => {
                if let (Some(dialog), Ok(contact)) = (&mut call.dialog, response.headers.contact())
                {
                    dialog.retarget(contact);
                }
                self.session_of_answer(stack, id, &answer.request, response);
            }
            (_, 405 | 501) => {
                call.peer_updates = false;
                self.refresh(stack, id);
            }
            (_, 408 | 481) => self.leave(stack, id, EXPIRED, Vec::new()),
            _ => self.refresh_later(stack, id),
        }
    }
}

impl Session {
    fn new(now: Instant, interval: Duration, ours: bool) -> Self {
        Self {
            interval,
            longer: 0,
            ours,
            until: now + interval,
        }
    }

    /// Takes a longer interval after 422. Returns whether the request is to be sent again: not
    /// after too many times.
    pub(super) fn lengthen(&mut self, least: Duration) -> bool {
        let may = self.longer < MOST_LONGER;
        if may {
            self.longer = self.longer.saturating_add(1);
            self.interval = self.interval.max(least);
        }
        may
    }
}
