//! Why a PeerConnection is bad, in words.
//!
//! Nothing is measured here: what is known of a peer is looked at, and each cause that it shows is told with its figures and with
//! what to do. docs/admin.md has the table of causes.

mod connecting;
mod layers;
mod link;
mod media;
#[cfg(test)]
mod tests;

use std::time::Duration;

use portunus_media::{IceCause, MediaStats, PeerStats, Sample, WorkerStats};
use portunus_sdp::negotiated::Kind;

/// What is known of a PeerConnection.
#[derive(Debug, Clone, Copy)]
pub(super) struct Observed<'a> {
    /// Its peer.
    pub(super) stats: &'a PeerStats,
    /// Offer and answer have been exchanged.
    pub(super) negotiated: bool,
    /// The worker that the peer lives on, if known.
    pub(super) worker: Option<&'a WorkerStats>,
}

/// One reason why a PeerConnection is bad.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cause {
    /// A short code, which stays the same: docs/admin.md has all of them.
    pub(super) code: &'static str,
    /// What it is, with its figures, and what to do.
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

/// The samples of so many of the last seconds count: long enough for a share of packets, short enough to speak of now.
const LATELY: usize = 10;

/// Why the PeerConnection is bad, what matters most first; nothing if nothing is seen to be wrong.
pub(super) fn diagnose(observed: &Observed<'_>) -> Vec<Cause> {
    let mut causes = Vec::new();
    // Whatever else is wrong may come from this.
    causes.extend(observed.worker.and_then(link::late));
    if let Some(cause) = connecting::cause(observed) {
        // Nothing can flow: all else follows from that.
        causes.push(cause);
        return causes;
    }
    let stats = observed.stats;
    if stats.dtls.connected.is_none() {
        // It is on its way.
        return causes;
    }
    media::causes(stats, &mut causes);
    link::causes(stats, &mut causes);
    layers::causes(stats, &mut causes);
    causes
}

/// The samples of the last seconds.
fn lately(stats: &PeerStats) -> &[Sample] {
    let first = stats.series.len().saturating_sub(LATELY);
    stats.series.get(first..).unwrap_or_default()
}

/// How people find an m-line again.
fn name(media: &MediaStats) -> String {
    let kind = match media.kind {
        Kind::Audio => "sound",
        Kind::Video => "video",
        Kind::Data => "data",
    };
    format!("{kind} (mid {})", media.mid)
}

/// A share, 0.0 to 1.0.
fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// In bit/s.
fn bitrate(bits: u64) -> String {
    match bits {
        0..1_000_000 => format!("{} kbit/s", bits / 1_000),
        _ => format!("{:.1} Mbit/s", bits as f64 / 1e6),
    }
}

/// Tenths of seconds where they matter.
fn seconds(time: Duration) -> String {
    match time.as_secs() {
        0..3 => format!("{:.1} s", time.as_secs_f64()),
        whole => format!("{whole} s"),
    }
}

fn millis(time: Duration) -> String {
    format!("{} ms", time.as_millis())
}
