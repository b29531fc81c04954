//! The metrics of the plugin.

use portunus_core::{Count, PluginCounter};
use portunus_sip::agent::AgentEvent;
use portunus_sip::net::Status;

/// The counters of the plugin itself.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// Incoming calls.
    incoming: Count,
    /// Outgoing calls that were accepted.
    answered: Count,
    /// Registrations that failed.
    unregistered: Count,
}

impl Counts {
    /// Counts an event of the SIP stack.
    pub(crate) fn note(&self, event: &AgentEvent) {
        match event {
            AgentEvent::Incoming { .. } => self.incoming.add(),
            AgentEvent::Accepted { .. } => self.answered.add(),
            AgentEvent::RegistrationFailed { .. } => self.unregistered.add(),
            _ => {}
        }
    }

    /// Returns the counters.
    pub(crate) fn counters(&self, status: &Status) -> Vec<PluginCounter> {
        let counter = |name, help, value| PluginCounter { name, help, value };
        let (counts, counted) = (PluginCounter::of, &status.counters);
        vec![
            counts(
                "incoming_calls",
                "Calls that came in for accounts and trunks",
                &self.incoming,
            ),
            counts(
                "answered_calls",
                "Calls of clients and rooms that were answered",
                &self.answered,
            ),
            counts(
                "failed_registrations",
                "Registrations at SIP servers that failed",
                &self.unregistered,
            ),
            counter(
                "received_messages",
                "SIP messages received",
                counted.received,
            ),
            counter(
                "malformed_messages",
                "SIP messages that could not be read",
                counted.malformed,
            ),
            counter(
                "limited_requests",
                "SIP requests that were refused because their sender sent too many",
                counted.limited,
            ),
            counter(
                "full_requests",
                "SIP requests that were refused for want of room for calls, accounts or transactions",
                counted.full,
            ),
            counter(
                "unknown_requests",
                "SIP requests for nobody and for no call that there is (404, 481)",
                counted.unknown,
            ),
            counter(
                "stray_answers",
                "SIP answers that belonged to no request",
                counted.stray,
            ),
            counter(
                "refused_connections",
                "SIP connections that were refused or closed for want of room",
                status.refused_connections,
            ),
        ]
    }
}

/// Returns the gauges.
pub(crate) fn gauges(status: &Status, unregistered_trunks: usize) -> Vec<PluginCounter> {
    let gauge = |name, help, value: usize| PluginCounter {
        name,
        help,
        value: u64::try_from(value).unwrap_or(u64::MAX),
    };
    let load = &status.load;
    vec![
        gauge("accounts", "SIP accounts that there are", load.accounts),
        gauge(
            "calls",
            "SIP calls that there are, ringing ones included",
            load.calls,
        ),
        gauge(
            "subscriptions",
            "Subscriptions, publications and transfers under way by SIP",
            load.subscriptions,
        ),
        gauge(
            "connections",
            "TCP, TLS and WebSocket connections of SIP",
            status.connections,
        ),
        gauge(
            "unregistered_trunks",
            "Trunks that are to be registered, and are not",
            unregistered_trunks,
        ),
    ]
}
