//! Problems on the way: loss, delay, and a late worker.

use std::time::Duration;

use portunus_media::{PeerStats, Sample, WorkerStats};

use super::{Cause, bitrate, lately, millis, percent, seconds};

/// Retransmission repairs less loss than this, and bandwidth estimators consider it normal.
const LOSS: f64 = 0.02;
/// Seconds with media needed to judge loss: one lost packet of a few means nothing.
const LOSS_SECONDS: usize = 3;
/// A delay of 150 ms one way disturbs no conversation (ITU-T G.114).
const ROUND_TRIP: Duration = Duration::from_millis(300);
/// Jitter buffers of browsers bear about two packets of audio without losing sound.
const LAG: Duration = Duration::from_millis(40);
/// A worker has a turn each second. After this time without one it is stuck.
const STUCK: Duration = Duration::from_secs(3);

/// Returns a cause if the worker is late or stuck.
pub(super) fn late(worker: &WorkerStats) -> Option<Cause> {
    let index = worker.index;
    if worker.silent >= STUCK {
        let text = format!(
            "Worker {index} has done nothing for {}: it is stuck, or the machine gives it no time. Please report it with the log.",
            seconds(worker.silent)
        );
        return Some(Cause::new("worker-stuck", text));
    }
    (worker.lag_max >= LAG).then(|| {
        let text = format!(
            "Worker {index} is up to {} late, with {} peers and {} of a core: packets leave late, or in bursts. Give the server more \
             cores, fewer peers, or a machine that others do not use.",
            millis(worker.lag_max),
            worker.peers,
            percent(worker.core_share)
        );
        Cause::new("worker-late", text)
    })
}

pub(super) fn causes(stats: &PeerStats, causes: &mut Vec<Cause>) {
    if let Some(lost) = lost(stats, |one| one.received, |one| one.received_lost) {
        let text = format!(
            "{} of the client's packets were lost on their way to the server in the last {} s: its uplink is bad, or carries less \
             than it sends. Have it send less (bitrate), or use a better network.",
            percent(lost),
            lately(stats).len()
        );
        causes.push(Cause::new("loss-from-client", text));
    }
    if let Some(lost) = lost(stats, |one| one.sent, |one| one.sent_lost) {
        causes.push(missed(stats, lost));
    }
    causes.extend(round_trip(stats).map(|time| {
        let queue = match stats.bandwidth.map(|known| known.queue) {
            Some(queue) if queue * 2 >= time => {
                format!(" {} of it are spent waiting in a queue, as the link is full.", millis(queue))
            }
            _ => String::new(),
        };
        let text = format!(
            "A packet takes {} to the client and back: people will talk at the same time.{queue} A server nearer to the client helps, or \
             a network without a full queue.",
            millis(time)
        );
        Cause::new("round-trip", text)
    }));
}

/// Describes the loss that the client reports. It includes loss on the way to the server, unless
/// transport-wide feedback separates the two.
fn missed(stats: &PeerStats, share: f64) -> Cause {
    let (share, over) = (percent(share), lately(stats).len());
    match stats.bandwidth {
        Some(link) if link.loss < LOSS / 2.0 => Cause::new(
            "loss-at-publisher",
            format!(
                "The client missed {share} of its packets in the last {over} s, but hardly any was lost on the way to it: who publishes \
                 lost them on the way to the server. Look at that PeerConnection."
            ),
        ),
        Some(link) => Cause::new(
            "loss-to-client",
            format!(
                "{share} of the packets to the client were lost on their way in the last {over} s: its downlink is bad, or carries less \
                 than it is sent. It is believed to carry {}. Have it ask for less (layers, bitrate), or use a better network.",
                bitrate(link.estimate)
            ),
        ),
        None => Cause::new(
            "loss-to-client",
            format!(
                "{share} of the packets to the client were lost in the last {over} s: its downlink is bad, or carries less than it is \
                 sent. Have it ask for less (layers, bitrate), or use a better network. If who publishes loses packets on the way to the \
                 server, these are missed here too: look at that PeerConnection."
            ),
        ),
    }
}

/// Returns the recent loss if it matters.
fn lost(stats: &PeerStats, rate: fn(&Sample) -> u64, lost: fn(&Sample) -> f64) -> Option<f64> {
    let with_media = lately(stats)
        .iter()
        .filter(|sample| rate(sample) > 0 || lost(sample) > 0.0);
    let count = with_media.clone().count();
    let share = with_media.map(lost).sum::<f64>() / count.max(1) as f64;
    (count >= LOSS_SECONDS && share >= LOSS).then_some(share)
}

/// Returns the mean round trip of the last seconds if it is long.
fn round_trip(stats: &PeerStats) -> Option<Duration> {
    let known = lately(stats).iter().filter_map(|sample| sample.round_trip);
    let count = u32::try_from(known.clone().count()).ok()?;
    let mean = known.sum::<Duration>().checked_div(count)?;
    (mean >= ROUND_TRIP).then_some(mean)
}
