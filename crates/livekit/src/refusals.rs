//! Counters of bad input.

use std::sync::atomic::{AtomicU64, Ordering};

use portunus_metrics::{MetricKind, MetricsPage};

/// A kind of input that is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BadInput {
    /// A join: its token, its parameters, or its room.
    Join,
    /// A frame of signalling that is no message.
    Frame,
    /// A message of a data channel that is too long, is no packet, or may not be sent.
    Data,
    /// An offer or an answer.
    Description,
    /// Another request.
    Request,
}

impl BadInput {
    const ALL: [BadInput; 5] = [
        BadInput::Join,
        BadInput::Frame,
        BadInput::Data,
        BadInput::Description,
        BadInput::Request,
    ];

    const fn name(self) -> &'static str {
        match self {
            BadInput::Join => "join",
            BadInput::Frame => "frame",
            BadInput::Data => "data",
            BadInput::Description => "description",
            BadInput::Request => "request",
        }
    }
}

/// Counts bad input by its kind.
#[derive(Debug, Default)]
pub(crate) struct Refusals([AtomicU64; BadInput::ALL.len()]);

impl Refusals {
    /// Counts an input.
    pub(crate) fn count(&self, kind: BadInput) {
        if let Some(counter) = self.0.get(kind as usize) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Adds the counters to the page.
    pub(crate) fn write(&self, page: &mut MetricsPage) {
        page.labelled(
            MetricKind::Counter,
            "livekit_refused_total",
            "Input by LiveKit's protocol that was refused",
            "what",
            self.values(),
        );
    }

    fn values(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let counters = BadInput::ALL.into_iter().zip(&self.0);
        counters.map(|(kind, counter)| (kind.name(), counter.load(Ordering::Relaxed)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_its_counter() {
        let refusals = Refusals::default();
        refusals.count(BadInput::Data);
        refusals.count(BadInput::Request);
        refusals.count(BadInput::Request);
        let values: Vec<_> = refusals.values().collect();
        assert_eq!(
            values,
            [
                ("join", 0),
                ("frame", 0),
                ("data", 1),
                ("description", 0),
                ("request", 2)
            ]
        );
    }
}
