//! How long things take, and how late they are.

use std::time::Duration;

use portunus_core::media::WorkerStats;
use portunus_core::{Gateway, HistogramSnapshot};

use super::line;

/// Adds all histograms, and the lags of media workers.
pub(super) fn write(out: &mut String, gateway: &Gateway) {
    let times = &gateway.counters().times;
    for (name, help, times) in [
        (
            "ice_seconds",
            "Time from the first offer and answer of a PeerConnection until ICE was connected",
            &times.ice,
        ),
        (
            "dtls_seconds",
            "Time from there until DTLS was done",
            &times.dtls,
        ),
        (
            "first_media_seconds",
            "Time from there until the first packet of a medium came from the client",
            &times.first_media,
        ),
        (
            "control_lag_seconds",
            "By how much timers of the control plane were late",
            &times.control_lag,
        ),
    ] {
        head(out, name, help, "histogram");
        histogram(out, name, "", &times.snapshot());
    }
    let name = "request_seconds";
    let help = "Time from a request of the Janus API to its reply";
    head(out, name, help, "histogram");
    for kind in times.requests() {
        let labels = format!("transport=\"{}\",verb=\"{}\"", kind.transport, kind.verb);
        histogram(out, name, &labels, &kind.times);
    }
    workers(out, &gateway.worker_stats());
    for (name, help, holds) in [
        (
            "ready",
            "Whether new clients are taken: 1 or 0",
            gateway.not_ready().is_empty() && gateway.stuck().is_empty(),
        ),
        (
            "draining",
            "Whether the server is being drained: 1 or 0",
            gateway.check_drain().is_err(),
        ),
    ] {
        head(out, name, help, "gauge");
        line(out, format_args!("portunus_{name} {}", u8::from(holds)));
    }
}

fn workers(out: &mut String, workers: &[WorkerStats]) {
    let seconds = |time: Duration| time.as_secs_f64();
    type Read<'a> = &'a dyn Fn(&WorkerStats) -> f64;
    let all: [(&str, &str, Read<'_>); 4] = [
        (
            "media_worker_lag_seconds",
            "By how much the latest turn of a media worker in the last seconds was late",
            &|it| seconds(it.lag_max),
        ),
        (
            "media_worker_silent_seconds",
            "How long ago the last turn of a media worker ended; much more than a second: it is stuck",
            &|it| seconds(it.silent),
        ),
        (
            "media_worker_core_ratio",
            "The share of a core that a media worker used in the last second",
            &|it| it.core_share,
        ),
        ("media_worker_peers", "Peers of a media worker", &|it| {
            it.peers as f64
        }),
    ];
    for (name, help, read) in all {
        head(out, name, help, "gauge");
        for worker in workers {
            let (index, value) = (worker.index, read(worker));
            line(
                out,
                format_args!("portunus_{name}{{worker=\"{index}\"}} {value}"),
            );
        }
    }
}

fn head(out: &mut String, name: &str, help: &str, kind: &str) {
    line(out, format_args!("# HELP portunus_{name} {help}"));
    line(out, format_args!("# TYPE portunus_{name} {kind}"));
}

/// A histogram; `labels` are those beside the bounds of buckets.
fn histogram(out: &mut String, name: &str, labels: &str, times: &HistogramSnapshot) {
    let comma = if labels.is_empty() { "" } else { "," };
    for (bound, count) in &times.buckets {
        let bound = bound.map_or("+Inf".to_owned(), |bound| bound.to_string());
        line(
            out,
            format_args!("portunus_{name}_bucket{{{labels}{comma}le=\"{bound}\"}} {count}"),
        );
    }
    let braces = match labels {
        "" => String::new(),
        labels => format!("{{{labels}}}"),
    };
    let (sum, count) = (times.sum, times.count());
    line(out, format_args!("portunus_{name}_sum{braces} {sum}"));
    line(out, format_args!("portunus_{name}_count{braces} {count}"));
}
