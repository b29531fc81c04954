//! Session timers (RFC 4028): a call whose peer is gone without a word is ended.

use std::time::{Duration, Instant};

use super::reinvite::Reinvite;
use super::{EXPIRED, Phase};
use crate::agent::exchange::{Answer, Owner};
use crate::agent::{Agent, CallId, CallTimer};
use crate::message::{Method, Refresher, Request, Response, SessionExpires};

/// The header field.
pub(super) const SESSION_EXPIRES: &str = "Session-Expires";

/// Before a refresh that was refused is tried again.
const LEAST_WAIT: Duration = Duration::from_secs(5);

/// Each proxy on the way may want a longer interval than the one before it (RFC 4028 section 8.1): so often one request is sent again for that.
pub(super) const MOST_LONGER: u8 = 8;

/// The session timer of a call.
#[derive(Debug, Clone, Copy)]
pub(super) struct Session {
    interval: Duration,
    /// How often the interval was too short, since it was agreed on.
    longer: u8,
    /// Whether we refresh.
    ours: bool,
    /// When it is over, if it is not refreshed.
    until: Instant,
}

/// The interval that an answer wants at least: 422 to a request with a shorter one.
pub(super) fn too_small(request: &Request, response: &Response) -> Option<Duration> {
    let asked = request.headers.session_expires().ok()??.interval;
    let least = response.headers.min_se().ok()??;
    (response.status.code() == 422 && least > asked && least <= Duration::from_secs(86_400))
        .then_some(least)
}

impl Agent {
    /// Whether the session interval that a peer asks for is too short: then it is answered with 422.
    pub(in crate::agent) fn is_too_short(&self, request: &Request) -> bool {
        matches!(request.headers.session_expires(), Ok(Some(session)) if session.interval < self.options.session.min)
    }

    /// Takes part in the session timer that a request asks for; `response` is its 2xx.
    pub(super) fn session_of_request(
        &mut self,
        now: Instant,
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
            self.set_session(now, id, None);
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
        self.set_session(now, id, Some(Session::new(now, interval, ours)));
    }

    /// Takes what the answer to a request of ours says of the session timer.
    pub(super) fn session_of_answer(
        &mut self,
        now: Instant,
        id: CallId,
        request: &Request,
        response: &Response,
    ) {
        let session = match response.headers.session_expires() {
            Ok(Some(session)) => {
                let interval = session.interval.max(self.options.session.min);
                let ours = session.refresher != Some(Refresher::Uas);
                Some(Session::new(now, interval, ours))
            }
            // The peer does not know session timers, but we may refresh for our own sake.
            _ => match request.headers.session_expires() {
                Ok(Some(session)) => Some(Session::new(now, session.interval, true)),
                _ => None,
            },
        };
        self.set_session(now, id, session);
    }

    fn set_session(&mut self, now: Instant, id: CallId, session: Option<Session>) {
        let Some(call) = self.calls.get_mut(&id) else {
            return;
        };
        call.session = session;
        match session {
            None => self.clear_timer(id, CallTimer::Session),
            Some(Session {
                interval,
                ours: true,
                ..
            }) => self.set_timer(id, CallTimer::Session, now + interval / 2),
            Some(Session {
                interval,
                ours: false,
                ..
            }) => {
                let margin = (interval / 3).min(Duration::from_secs(32));
                self.set_timer(
                    id,
                    CallTimer::Session,
                    now + interval.saturating_sub(margin),
                );
            }
        }
    }

    /// Adds the session timer of the call to a request that refreshes it.
    pub(super) fn add_session(&self, id: CallId, request: &mut Request) {
        if let Some(session) = self.calls.get(&id).and_then(|call| call.session) {
            let who = if session.ours { "uac" } else { "uas" };
            request.headers.push(
                SESSION_EXPIRES,
                format_args!("{};refresher={who}", session.interval.as_secs()),
            );
            request
                .headers
                .push("Min-SE", self.options.session.min.as_secs());
        }
    }

    pub(super) fn session_due(&mut self, now: Instant, id: CallId) {
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
        if !session.ours || now >= session.until {
            let headers = vec![(
                "Reason".to_owned(),
                "SIP;cause=408;text=\"Session Expired\"".to_owned(),
            )];
            self.leave(now, id, EXPIRED, headers);
            return;
        }
        // Until the answer comes; then it is set anew.
        let rest = session.interval.saturating_sub(session.interval / 2);
        let busy = call.reinvite.is_some()
            || call.theirs.is_some()
            || call.unacked.is_some()
            || call.owed.is_some();
        if busy {
            self.set_timer(id, CallTimer::Session, now + rest / 4);
            return;
        }
        self.set_timer(id, CallTimer::Session, (now + rest).min(session.until));
        self.refresh(now, id);
    }

    /// A refresh was refused, but not because there is no such call: it is tried again in time.
    pub(super) fn refresh_later(&mut self, now: Instant, id: CallId) {
        let session = self.calls.get(&id).and_then(|call| call.session);
        if let Some(Session { until, .. }) = session {
            let left = until.saturating_duration_since(now);
            let wait = (left / 4).max(LEAST_WAIT).min(left);
            self.set_timer(id, CallTimer::Session, now + wait);
        }
    }

    fn refresh(&mut self, now: Instant, id: CallId) {
        let Some(call) = self.up(id) else {
            return;
        };
        if !call.peer_updates {
            let body = call.sdp.clone();
            call.reinvite = Some(Reinvite::new(Vec::new(), body, true));
            self.send_reinvite(now, id);
            return;
        }
        if let Some(mut request) = self.request_within(id, Method::Update) {
            self.add_session(id, &mut request);
            self.send_in(now, id, Owner::Refresh(id), request);
        }
    }

    /// Takes the answer to an UPDATE that refreshed the session.
    pub(in crate::agent) fn refreshed(&mut self, now: Instant, id: CallId, answer: &Answer) {
        let Some(call) = self.up(id) else {
            return;
        };
        let response = answer.response.as_ref();
        let least = response.and_then(|response| too_small(&answer.request, response));
        if let (Some(least), Some(session)) = (least, &mut call.session)
            && session.lengthen(least)
        {
            return self.refresh(now, id);
        }
        match (&answer.response, answer.code) {
            (Some(response), 200..300) => {
                if let (Some(dialog), Ok(contact)) = (&mut call.dialog, response.headers.contact())
                {
                    dialog.retarget(contact);
                }
                self.session_of_answer(now, id, &answer.request, response);
            }
            (_, 405 | 501) => {
                call.peer_updates = false;
                self.refresh(now, id);
            }
            (_, 408 | 481) => self.leave(now, id, EXPIRED, Vec::new()),
            _ => self.refresh_later(now, id),
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

    /// The interval was too short (422): the request is to be sent again with this one, unless that was done too often.
    pub(super) fn lengthen(&mut self, least: Duration) -> bool {
        let may = self.longer < MOST_LONGER;
        if may {
            self.longer = self.longer.saturating_add(1);
            self.interval = self.interval.max(least);
        }
        may
    }
}
