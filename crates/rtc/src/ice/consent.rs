//! Consent to send (RFC 7675), and the end of an attempt.

use std::time::Instant;

use super::{Ice, IceEvent, PATIENCE};

impl Ice {
    /// Updates consent, and fails without it. Only a response to our check on the selected pair
    /// renews it (RFC 7675). A lite agent makes no checks and goes by those of the peer, which the
    /// agent's state reflects.
    pub(super) fn check_consent(&mut self, now: Instant) {
        let Some(alive) = self.alive else { return };
        if self.agent.ice_lite() {
            if self.agent.state().is_connected() {
                self.alive = Some(now);
                return;
            }
        } else {
            let answers = self.agent.nominated_pair_responses_received().unwrap_or(0);
            if answers != self.answers {
                self.answers = answers;
                if answers > 0 {
                    self.alive = Some(now);
                    return;
                }
            }
        }
        let alive = self.media_heard.map_or(alive, |heard| heard.max(alive));
        if now < alive + PATIENCE {
            self.alive = Some(alive);
        } else {
            self.alive = None;
            let attempt = self.attempt_of(now.saturating_duration_since(alive));
            self.events.push_back(IceEvent::Failed(attempt));
        }
    }
}
