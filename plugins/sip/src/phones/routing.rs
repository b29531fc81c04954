//! The phones of events of the SIP stack.

use std::sync::atomic::Ordering::Relaxed;

use portunus_sip::agent::{About, AgentEvent};

use super::Phones;
use crate::directory::Key;
use crate::failure;
use crate::headers;

impl Phones {
    /// Handles an event of the SIP stack. Events come one after the other, so that each finds what
    /// the one before has left; one for a phone that is busy waits for it.
    pub(crate) fn agent_event(&self, event: AgentEvent) {
        match event {
            AgentEvent::Incoming { call, .. } if self.common.draining.load(Relaxed) => {
                let later = vec![headers::retry_after_drain()];
                return self.common.reject(call, 503, later);
            }
            AgentEvent::Forbidden { address, .. } => {
                if let Some(before) = self.common.forbidden_log.open() {
                    tracing::warn!(suppressed = before, "{}", failure::forbidden(address));
                }
            }
            _ => {}
        }
        let keys = keys(&event);
        let mut keys = keys.into_iter().flatten();
        let key = keys.find(|key| self.directory().find(*key).is_some());
        let unclaimed = Unclaimed::of(&event);
        let is_taken = key.and_then(|key| self.with(key, |phone| phone.agent_event(event)));
        if is_taken.is_none() {
            self.refuse(unclaimed);
        }
    }

    /// Refuses what no phone has taken.
    fn refuse(&self, unclaimed: Unclaimed) {
        match unclaimed {
            Unclaimed::Call(call) => self.common.reject(call, 404, Vec::new()),
            Unclaimed::Transfer(refer) => self.common.decline_refer(refer),
            Unclaimed::Nothing => {}
        }
    }
}

/// An event that has to be answered even if no phone takes it.
#[derive(Debug, Clone, Copy)]
enum Unclaimed {
    Call(portunus_sip::agent::CallId),
    Transfer(portunus_sip::agent::ReferId),
    Nothing,
}

impl Unclaimed {
    fn of(event: &AgentEvent) -> Self {
        match event {
            AgentEvent::Incoming { call, .. } => Unclaimed::Call(*call),
            AgentEvent::Refer { refer, .. } => Unclaimed::Transfer(*refer),
            _ => Unclaimed::Nothing,
        }
    }
}

/// Returns what an event is about: the first that is known decides.
fn keys(event: &AgentEvent) -> [Option<Key>; 2] {
    match event {
        AgentEvent::Registered { account, .. }
        | AgentEvent::RegistrationFailed { account, .. }
        | AgentEvent::Unregistered { account, .. } => [Some(Key::Account(*account)), None],
        AgentEvent::Incoming { account, .. } => [account.map(Key::Account), None],
        AgentEvent::Provisional { call, .. }
        | AgentEvent::Accepted { call, .. }
        | AgentEvent::Acknowledged { call, .. }
        | AgentEvent::Ended { call, .. }
        | AgentEvent::Reinvite { call, .. }
        | AgentEvent::ReinviteCancelled { call }
        | AgentEvent::ReinviteAccepted { call, .. }
        | AgentEvent::ReinviteRejected { call, .. }
        | AgentEvent::ReferNotify { call, .. } => [Some(Key::Call(*call)), None],
        AgentEvent::Request { account, call, .. } | AgentEvent::Refer { account, call, .. } => {
            [call.map(Key::Call), account.map(Key::Account)]
        }
        AgentEvent::Trace { account, call, .. } => {
            [call.map(Key::Call), Some(Key::Account(*account))]
        }
        AgentEvent::Response { request, .. } => [Some(Key::Request(*request)), None],
        AgentEvent::Subscribed { subscription, .. }
        | AgentEvent::SubscriptionFailed { subscription, .. }
        | AgentEvent::Notify { subscription, .. }
        | AgentEvent::SubscriptionEnded { subscription, .. } => {
            [Some(Key::Subscription(*subscription)), None]
        }
        AgentEvent::Forbidden { about, .. } => [about_key(about), None],
    }
}

fn about_key(about: &About) -> Option<Key> {
    match about {
        About::Registration(account) => Some(Key::Account(*account)),
        About::Call(call) => Some(Key::Call(*call)),
        About::Request(request) => Some(Key::Request(*request)),
        About::Subscription(subscription) => Some(Key::Subscription(*subscription)),
        About::Nothing => None,
    }
}
