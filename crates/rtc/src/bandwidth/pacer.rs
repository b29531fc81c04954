//! Spreads packets over time, so that a keyframe does not fill the queue of the link at once.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::DataRate;

/// Packets of this time may leave at once: timers are not more exact, and packets that leave
/// together are cheaper.
const BURST: Duration = Duration::from_millis(5);
/// The longest wait. A longer queue leaves faster than the rate.
const LONGEST_WAIT: Duration = Duration::from_millis(250);
/// The most time that a machine that polls too late catches up for.
const LATEST: Duration = Duration::from_millis(50);
/// The most packets that wait, and the number above which droppable ones should be dropped.
const MAX_PACKETS: usize = 2_048;
const MANY_PACKETS: usize = 1_024;

/// The priority of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Lane {
    /// Audio never waits. Its bytes reduce the budget of the rest.
    Audio,
    /// Everything else, in order.
    Video,
}

/// Packets to send, by a budget that is kept as one deadline: the time at which all packets so far
/// would have passed at the rate.
///
/// Connections that need no pacing have no pacer.
#[derive(Debug)]
pub struct Pacer<T> {
    rate: DataRate,
    passed: Instant,
    audio: VecDeque<Waiting<T>>,
    video: VecDeque<Waiting<T>>,
    video_bytes: u64,
}

#[derive(Debug)]
struct Waiting<T> {
    since: Instant,
    bytes: usize,
    packet: T,
}

impl<T> Pacer<T> {
    /// The pacing rate as a factor of the estimate: more than the link carries, so that frames
    /// arrive in time, but not so much that the link has to queue them all.
    pub const OF_ESTIMATE: f64 = 1.5;

    /// Makes an empty pacer with this rate.
    pub fn new(rate: DataRate, now: Instant) -> Self {
        Self {
            rate,
            passed: now,
            audio: VecDeque::new(),
            video: VecDeque::new(),
            video_bytes: 0,
        }
    }

    /// Returns whether a packet may leave now without waiting.
    #[inline]
    pub fn is_clear(&self, now: Instant) -> bool {
        self.is_empty() && self.passed <= now + BURST
    }

    /// Charges the budget with `bytes` that left without waiting.
    #[inline]
    pub fn spent(&mut self, bytes: usize, now: Instant) {
        self.spend(bytes, self.rate, now, now);
    }

    /// Drops the waiting packets for which `keep` returns false.
    pub fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        self.audio.retain(|waiting| keep(&waiting.packet));
        self.video.retain(|waiting| keep(&waiting.packet));
        let bytes = self.video.iter().map(|waiting| waiting.bytes as u64);
        self.video_bytes = bytes.sum();
    }

    /// Sets the rate.
    pub fn set_rate(&mut self, rate: DataRate) {
        self.rate = rate;
    }

    /// Returns the rate, or `None` if nothing is held back any more.
    pub fn limit(&self) -> Option<DataRate> {
        Some(self.rate).filter(|rate| *rate < DataRate::bps(u64::MAX))
    }

    /// Takes a packet of `bytes`. Returns it if too many wait.
    pub fn push(&mut self, lane: Lane, bytes: usize, packet: T, now: Instant) -> Result<(), T> {
        if self.audio.len() + self.video.len() >= MAX_PACKETS {
            return Err(packet);
        }
        let waiting = Waiting {
            since: now,
            bytes,
            packet,
        };
        match lane {
            Lane::Audio => self.audio.push_back(waiting),
            Lane::Video => {
                self.video_bytes += bytes as u64;
                self.video.push_back(waiting);
            }
        }
        Ok(())
    }

    /// Returns the next packet to send now. Poll until it returns `None`.
    pub fn pop(&mut self, now: Instant) -> Option<T> {
        if let Some(audio) = self.audio.pop_front() {
            self.spend(audio.bytes, self.rate, now, now);
            return Some(audio.packet);
        }
        if self.passed > now + BURST {
            return None;
        }
        let rate = self.present_rate();
        let video = self.video.pop_front()?;
        self.video_bytes = self.video_bytes.saturating_sub(video.bytes as u64);
        // Late packets leave as if polled in time.
        let late = now.checked_sub(LATEST).unwrap_or(now);
        self.spend(video.bytes, rate, video.since.max(late).min(now), now);
        Some(video.packet)
    }

    /// Returns when the next packet is due.
    pub fn poll_timeout(&self) -> Option<Instant> {
        if let Some(audio) = self.audio.front() {
            return Some(audio.since);
        }
        let video = self.video.front()?;
        Some(
            self.passed
                .checked_sub(BURST)
                .map_or(video.since, |at| at.max(video.since)),
        )
    }

    /// Returns whether so many packets wait that droppable ones should be dropped.
    #[inline]
    pub fn is_crowded(&self) -> bool {
        self.len() >= MANY_PACKETS
    }

    /// Returns the number of waiting packets.
    pub fn len(&self) -> usize {
        self.audio.len() + self.video.len()
    }

    /// Returns the bytes of waiting video. Audio does not wait.
    pub fn bytes(&self) -> u64 {
        self.video_bytes
    }

    /// Returns whether no packet waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Charges `bytes` at `rate`, starting at `from` at the earliest.
    fn spend(&mut self, bytes: usize, rate: DataRate, from: Instant, now: Instant) {
        let passed = self.passed.max(from) + rate.time_for(bytes as u64);
        // Audio alone may exceed the rate. The rest still has to leave.
        self.passed = passed.min(now + LONGEST_WAIT);
    }

    fn present_rate(&self) -> DataRate {
        let least = DataRate::of(self.video_bytes, LONGEST_WAIT).unwrap_or_default();
        self.rate.max(least)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// Returns when each packet leaves, in ms.
    fn departures(pacer: &mut Pacer<u32>, start: Instant) -> Vec<(u32, u128)> {
        let (mut now, mut departures) = (start, Vec::new());
        while let Some(at) = pacer.poll_timeout() {
            now = now.max(at);
            let packet = pacer.pop(now).unwrap();
            departures.push((packet, (now - start).as_millis()));
        }
        departures
    }

    #[test]
    fn a_frame_leaves_at_the_rate() {
        let start = Instant::now();
        let mut pacer = Pacer::new(DataRate::kbps(800), start);
        for n in 0..5 {
            pacer.push(Lane::Video, 1_000, n, start).unwrap();
        }
        assert_eq!(
            departures(&mut pacer, start),
            [(0, 0), (1, 5), (2, 15), (3, 25), (4, 35)]
        );
        assert!(pacer.is_empty());
        let later = start + 500 * MS;
        pacer.push(Lane::Video, 1_000, 9, later).unwrap();
        assert_eq!(
            pacer.poll_timeout(),
            Some(later),
            "a pause saves nothing, but nothing is owed"
        );
    }

    #[test]
    fn audio_overtakes_and_is_paid_for() {
        let start = Instant::now();
        let mut pacer = Pacer::new(DataRate::kbps(800), start);
        for n in 0..3 {
            pacer.push(Lane::Video, 1_000, n, start).unwrap();
        }
        pacer.push(Lane::Audio, 500, 7, start).unwrap();
        assert_eq!(
            departures(&mut pacer, start),
            [(7, 0), (0, 0), (1, 10), (2, 20)]
        );
    }

    #[test]
    fn nothing_waits_longer_than_a_quarter_of_a_second() {
        let start = Instant::now();
        let mut pacer = Pacer::new(DataRate::kbps(100), start);
        for n in 0..100 {
            pacer.push(Lane::Video, 1_000, n, start).unwrap();
        }
        // The rate falls with the backlog, so the last packets wait longest.
        let half = departures(&mut pacer, start)
            .into_iter()
            .filter(|(_, at)| *at <= 250)
            .count();
        assert!(half > 60, "{half}");
    }

    #[test]
    fn what_does_not_wait_is_paid_for_by_what_follows() {
        let start = Instant::now();
        let mut pacer = Pacer::new(DataRate::kbps(800), start);
        assert!(pacer.is_clear(start));
        pacer.spent(1_000, start);
        assert!(!pacer.is_clear(start));
        pacer.push(Lane::Video, 1_000, 1, start).unwrap();
        pacer.push(Lane::Video, 1_000, 2, start).unwrap();
        pacer.retain(|n| *n != 1);
        assert_eq!(departures(&mut pacer, start), [(2, 5)]);
        assert!(pacer.is_clear(start + 15 * MS));
    }

    #[test]
    fn who_looks_late_is_not_slower() {
        let start = Instant::now();
        let mut pacer = Pacer::new(DataRate::kbps(800), start);
        for n in 0..9 {
            pacer.push(Lane::Video, 1_000, n, start).unwrap();
        }
        let mut left = Vec::new();
        for at in [40 * MS, 80 * MS, 120 * MS] {
            while pacer.pop(start + at).is_some() {}
            left.push(pacer.len());
        }
        assert_eq!(left, [4, 0, 0]);
    }

    #[test]
    fn what_does_not_wait_never_holds_up_the_rest_for_long() {
        let start = Instant::now();
        let mut pacer = Pacer::new(DataRate::kbps(40), start);
        for _ in 0..50 {
            pacer.spent(1_000, start);
        }
        pacer.push(Lane::Video, 1_000, 1, start).unwrap();
        assert!(pacer.poll_timeout() <= Some(start + LONGEST_WAIT));
    }

    #[test]
    fn too_many_are_given_back() {
        let start = Instant::now();
        let mut pacer = Pacer::new(DataRate::kbps(100), start);
        let refused = (0..3_000).filter(|n| pacer.push(Lane::Video, 100, *n, start).is_err());
        assert_eq!(refused.count(), 3_000 - MAX_PACKETS);
        assert!(pacer.is_crowded());
        assert_eq!(pacer.len(), MAX_PACKETS);
    }
}
