//! Histograms of times, for metrics.

use std::time::Duration;

use portunus_metrics::{Histogram, HistogramSnapshot};

/// The verbs of the Janus API with histograms of their own. The last one is for all others.
const VERBS: [&str; 9] = [
    "create",
    "attach",
    "message",
    "trickle",
    "hangup",
    "detach",
    "destroy",
    "keepalive",
    "other",
];

/// The transports with histograms of their own, by the last parts of their packages. The last one
/// is for all others.
const TRANSPORTS: [&str; 8] = [
    "http",
    "websockets",
    "pfunix",
    "mqtt",
    "rabbitmq",
    "nats",
    "whip",
    "other",
];

/// Histograms since the start.
#[derive(Debug, Default)]
pub struct Times {
    /// From the first offer and answer of a PeerConnection until ICE was connected.
    pub ice: Histogram,
    /// From ICE until DTLS was done.
    pub dtls: Histogram,
    /// From DTLS until the first packet of a medium from the client.
    pub first_media: Histogram,
    /// The lateness of timers of the control plane.
    pub control_lag: Histogram,
    requests: [[Histogram; VERBS.len()]; TRANSPORTS.len()],
}

/// The times of requests of one verb by one transport.
#[derive(Debug, Clone, PartialEq)]
pub struct RequestTimes {
    /// The transport, such as `http`.
    pub transport: &'static str,
    /// The verb, such as `message`.
    pub verb: &'static str,
    /// The times from request to reply.
    pub times: HistogramSnapshot,
}

/// The histogram of a request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestKind {
    transport: usize,
    verb: usize,
}

impl RequestKind {
    /// Returns the histogram of a request with this verb, by a transport with this package.
    pub(crate) fn of(package: &str, verb: &str) -> Self {
        let name = package.rsplit('.').next().unwrap_or(package);
        let place = |names: &[&str], wanted: &str| {
            let found = names.iter().position(|name| *name == wanted);
            found.unwrap_or(names.len().saturating_sub(1))
        };
        RequestKind {
            transport: place(&TRANSPORTS, name),
            verb: place(&VERBS, verb),
        }
    }
}

impl Times {
    pub(crate) fn request(&self, kind: RequestKind, time: Duration) {
        let of_transport = self.requests.get(kind.transport);
        if let Some(times) = of_transport.and_then(|verbs| verbs.get(kind.verb)) {
            times.add(time);
        }
    }

    /// Returns the histograms of requests that are not empty.
    pub fn requests(&self) -> Vec<RequestTimes> {
        let mut all = Vec::new();
        for (transport, verbs) in TRANSPORTS.into_iter().zip(&self.requests) {
            for (verb, times) in VERBS.into_iter().zip(verbs) {
                let times = times.snapshot();
                if times.count() > 0 {
                    all.push(RequestTimes {
                        transport,
                        verb,
                        times,
                    });
                }
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_asked_the_kinds_are_few() {
        let times = Times::default();
        for (package, verb) in [
            ("janus.transport.http", "message"),
            ("janus.transport.http", "message"),
            ("portunus.transport.whip", "create"),
            ("anything", "at all"),
            ("something.else", "again"),
        ] {
            times.request(RequestKind::of(package, verb), Duration::from_millis(3));
        }
        let requests = times.requests();
        let told: Vec<_> = requests
            .iter()
            .map(|it| (it.transport, it.verb, it.times.count()))
            .collect();
        let expected = [
            ("http", "message", 2),
            ("whip", "create", 1),
            ("other", "other", 2),
        ];
        assert_eq!(told, expected);
    }
}
