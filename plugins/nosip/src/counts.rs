//! The metrics of the plugin.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use portunus_call::CallError;
use portunus_core::{Count, PluginCounter};

use crate::request::Refusal;

/// The number of calls, their events, and the refusals.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// Calls with SDP of one side.
    calls: AtomicU64,
    /// Calls with an answered offer.
    answered: AtomicU64,
    begun: Count,
    lost: Count,
    descriptions: Count,
    addresses: Count,
    ports: Count,
    srtp: Count,
}

/// The stage of a call, for the gauges.
#[derive(Debug)]
pub(crate) enum Stage {
    Begun,
    Answered,
}

impl Counts {
    fn of(&self, stage: &Stage) -> &AtomicU64 {
        match stage {
            Stage::Begun => &self.calls,
            Stage::Answered => &self.answered,
        }
    }

    /// A call has reached this stage.
    pub(crate) fn enter(&self, stage: &Stage) {
        self.of(stage).fetch_add(1, Relaxed);
        if matches!(stage, Stage::Begun) {
            self.begun.add();
        }
    }

    /// A call of this stage has ended.
    pub(crate) fn leave(&self, stage: &Stage) {
        self.of(stage).fetch_sub(1, Relaxed);
    }

    /// A call has ended because its far end accepts no media.
    pub(crate) fn lose(&self) {
        self.lost.add();
    }

    /// Counts a refused request, if it was about a call or a far end.
    pub(crate) fn refuse(&self, refusal: &Refusal) {
        match refusal {
            Refusal::Parse(_) | Refusal::Unusable(_) => self.descriptions.add(),
            Refusal::Call(CallError::Network(_)) => self.addresses.add(),
            Refusal::Call(CallError::Ports(_)) => self.ports.add(),
            Refusal::TooStrict { .. } => self.srtp.add(),
            _ => {}
        }
    }

    /// Returns the counters.
    pub(crate) fn counters(&self) -> Vec<PluginCounter> {
        let counts = PluginCounter::of;
        vec![
            counts(
                "begun_calls",
                "NoSIP calls that a description was made or taken for",
                &self.begun,
            ),
            counts(
                "lost_calls",
                "NoSIP calls that ended because nobody took what was sent to the far end",
                &self.lost,
            ),
            counts(
                "refused_descriptions",
                "Descriptions of NoSIP calls that could not be read or used",
                &self.descriptions,
            ),
            counts(
                "refused_addresses",
                "Far ends of NoSIP calls that are not in server.outgoing_networks",
                &self.addresses,
            ),
            counts(
                "refused_ports",
                "NoSIP calls that no ports were free for",
                &self.ports,
            ),
            counts(
                "refused_srtp",
                "NoSIP calls that needed SRTP of far ends without a key that could be used",
                &self.srtp,
            ),
        ]
    }

    /// Returns the gauges.
    pub(crate) fn gauges(&self) -> Vec<PluginCounter> {
        let gauge = |name, help, value: &AtomicU64| PluginCounter {
            name,
            help,
            value: value.load(Relaxed),
        };
        vec![
            gauge(
                "calls",
                "NoSIP calls that there are, those without an answer included",
                &self.calls,
            ),
            gauge(
                "answered_calls",
                "NoSIP calls that there are and that were answered",
                &self.answered,
            ),
        ]
    }
}
