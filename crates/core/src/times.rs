//! How long things take, for metrics.

use std::time::Duration;

use crate::{Histogram, HistogramSnapshot};

/// The verbs of the Janus API that are told apart. The last one stands for all others.
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

/// The transports that are told apart, by the last parts of their packages. The last one stands for all others.
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

/// How long things took since the start.
#[derive(Debug, Default)]
pub struct Times {
    /// From the first offer and answer of a PeerConnection until ICE was connected.
    pub ice: Histogram,
    /// From there until DTLS was done.
    pub dtls: Histogram,
    /// From there until the first packet of a medium came from the client.
    pub first_media: Histogram,
    /// By how much the timers of the control plane were late.
    pub control_lag: Histogram,
    requests: [[Histogram; VERBS.len()]; TRANSPORTS.len()],
}

/// How long requests of one verb took that came by one transport.
#[derive(Debug, Clone, PartialEq)]
pub struct RequestTimes {
    /// Such as `http`.
    pub transport: &'static str,
    /// Such as `message`.
    pub verb: &'static str,
    /// The times from a request to its reply.
    pub times: HistogramSnapshot,
}

/// What a request counts as.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestKind {
    transport: usize,
    verb: usize,
}

impl RequestKind {
    /// A request with this verb, by a transport with this package.
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

    /// Returns how long requests took. Kinds of which there was none are left out.
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
