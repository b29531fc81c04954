//! Reasons for problems of a PeerConnection, in words.
//!
//! Nothing is measured here. Each cause is found in the statistics of a peer, and is described with
//! its figures and a remedy. docs/admin.md has the table of causes.

mod connecting;
mod layers;
mod link;
mod media;
#[cfg(test)]
mod tests;

use std::time::Duration;

use portunus_media::{IceCause, MediaStats, PeerStats, Sample, WorkerStats};
use portunus_sdp::negotiated::Kind;

/// The known state of a PeerConnection.
#[derive(Debug, Clone, Copy)]
pub(super) struct Observed<'a> {
    /// Its peer.
    pub(super) stats: &'a PeerStats,
    /// Offer and answer have been exchanged.
    pub(super) negotiated: bool,
    /// The worker that the peer lives on, if known.
    pub(super) worker: Option<&'a WorkerStats>,
}

/// One reason for a problem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cause {
    /// A short code that never changes. docs/admin.md lists all codes.
    pub(super) code: &'static str,
    /// The description with its figures, and a remedy.
    pub(super) text: String,
}

impl From<IceCause> for Cause {
    fn from(IceCause { code, text }: IceCause) -> Self {
        Cause { code, text }
    }
}

impl Cause {
    fn new(code: &'static str, text: impl Into<String>) -> Self {
        let text = text.into();
        Cause { code, text }
    }
}

/// The number of recent samples that count: enough for a share of packets, few enough for the
/// present.
const LATELY: usize = 10;

/// Returns the causes of problems, the most important first. Empty if there is none.
pub(super) fn diagnose(observed: &Observed<'_>) -> Vec<Cause> {
    let mut causes = Vec::new();
    // First, since a late worker may cause all other problems.
    causes.extend(observed.worker.and_then(link::late));
    if let Some(cause) = connecting::cause(observed) {
        // Nothing can flow, so all other problems follow from this one.
        causes.push(cause);
        return causes;
    }
    let stats = observed.stats;
    if stats.dtls.connected.is_none() {
        // The connection is on its way.
        return causes;
    }
    media::causes(stats, &mut causes);
    link::causes(stats, &mut causes);
    layers::causes(stats, &mut causes);
    causes
}

/// Returns the samples of the last seconds.
fn lately(stats: &PeerStats) -> &[Sample] {
    let first = stats.series.len().saturating_sub(LATELY);
    stats.series.get(first..).unwrap_or_default()
}

/// Names an m-line for people.
fn name(media: &MediaStats) -> String {
    let kind = match media.kind {
        Kind::Audio => "sound",
        Kind::Video => "video",
        Kind::Data => "data",
    };
    format!("{kind} (mid {})", media.mid)
}

/// Formats a share, 0.0 to 1.0.
fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// Formats a rate in bit/s.
fn bitrate(bits: u64) -> String {
    match bits {
        0..1_000_000 => format!("{} kbit/s", bits / 1_000),
        _ => format!("{:.1} Mbit/s", bits as f64 / 1e6),
    }
}

/// Formats a time, with tenths of a second if it is short.
fn seconds(time: Duration) -> String {
    match time.as_secs() {
        0..3 => format!("{:.1} s", time.as_secs_f64()),
        whole => format!("{whole} s"),
    }
}

fn millis(time: Duration) -> String {
    format!("{} ms", time.as_millis())
}
