//! The acknowledged rate: how much arrives.

use std::collections::VecDeque;
use std::time::Duration;

use super::{DataRate, PacketResult};

/// Arrivals older than this do not count.
const WINDOW: Duration = Duration::from_millis(500);
/// The time within which the rate of a full link shows.
const RECENT: Duration = Duration::from_millis(200);
/// The time for which the link has to be full. Short bursts, such as a probe of another flow, then
/// take nothing for long.
const FULL_FOR: Duration = Duration::from_millis(120);
/// A packet with a longer delay has waited in a queue.
const QUEUED: Duration = Duration::from_millis(10);
/// A full link passes packets one after the other at its rate. If this many packets pass much
/// faster, the receiver or the sender stood still.
const RUN: usize = 6;
const RUSH: f64 = 3.0;
/// The least and the most packets that a rate is computed from.
const PACKETS: (usize, usize) = (8, 1_024);
/// Shorter times do not give a rate.
const MIN_TIME: Duration = Duration::from_millis(20);

/// The rate of recent arrivals.
#[derive(Debug, Default)]
pub(super) struct Acknowledged {
    arrived: VecDeque<Arrived>,
}

#[derive(Debug, Clone, Copy)]
struct Arrived {
    sent: Duration,
    at: Duration,
    bytes: u32,
    /// In microseconds.
    waited: u32,
}

impl Arrived {
    fn waited(&self) -> Duration {
        Duration::from_micros(self.waited.into())
    }
}

impl Acknowledged {
    /// Takes a packet in the order of arrival, with its waiting time.
    pub fn push(&mut self, packet: &PacketResult, waited: Duration) {
        let Some(at) = packet.arrival else { return };
        if self.arrived.back().is_some_and(|last| at < last.at) {
            // A packet that was reported late. Its bytes are few among so many.
            return;
        }
        if self.arrived.len() == PACKETS.1 {
            self.arrived.pop_front();
        }
        self.arrived.push_back(Arrived {
            sent: packet.sent,
            at,
            bytes: packet.bytes,
            waited: u32::try_from(waited.as_micros()).unwrap_or(u32::MAX),
        });
        while let Some(first) = self.arrived.front()
            && at.saturating_sub(first.at) > WINDOW
        {
            self.arrived.pop_front();
        }
    }

    /// Returns the rate of the last half second. It is at most the rate at which those packets were
    /// sent, since a queue that empties at once arrives faster than the link is.
    pub fn rate(&self) -> Option<DataRate> {
        self.rate_of(self.arrived.len())
    }

    /// Returns the rate at which the arrivals of the last half second were sent.
    pub fn sent_rate(&self) -> Option<DataRate> {
        let (first, last) = self.arrived.front().zip(self.arrived.back())?;
        if self.arrived.len() < PACKETS.0 {
            return None;
        }
        let sizes = self.arrived.iter().map(|packet| u64::from(packet.bytes));
        let bytes = sizes.sum::<u64>().saturating_sub(last.bytes.into());
        let time = last.sent.saturating_sub(first.sent);
        DataRate::of(bytes, time.max(MIN_TIME))
    }

    /// Returns the rate of the packets that waited, up to the last one. It is the rate of the link,
    /// which was not idle meanwhile. Returns `None` if the last packet did not wait, or too few
    /// did.
    pub fn rate_of_full_link(&self) -> Option<DataRate> {
        let count = self.waiting();
        let (last, first) = (self.arrived.back()?.at, self.first_of(count)?.at);
        if last.saturating_sub(first) < FULL_FOR || self.rushes() {
            return None;
        }
        self.rate_of(count)
    }

    /// Returns whether packets waited for a machine that stood still rather than for the link: they
    /// all began to wait at once, or a few came much faster than the others.
    pub fn rushes(&self) -> bool {
        let count = self.waiting();
        let Some((last, first)) = self.arrived.back().zip(self.first_of(count)) else {
            return false;
        };
        let time = last.at.saturating_sub(first.at);
        // A queue grows by at most a second per second.
        if time < last.waited().min(RECENT) / 2 {
            return true;
        }
        let recent = || self.arrived.iter().rev().take(count);
        let bytes = |count: usize| -> u64 {
            let counted = recent().take(count);
            counted.map(|packet| u64::from(packet.bytes)).sum()
        };
        let mean = DataRate::of(bytes(count).saturating_sub(first.bytes.into()), time);
        let most = mean.unwrap_or_default().times(RUSH);
        let mut run = bytes(RUN);
        recent().zip(recent().skip(RUN)).any(|(last, before)| {
            let rate = DataRate::of(run, last.at.saturating_sub(before.at));
            run = (run + u64::from(before.bytes)).saturating_sub(last.bytes.into());
            rate.is_none_or(|rate| rate > most)
        })
    }

    /// Returns how many of the recent packets waited, counted from the last one.
    fn waiting(&self) -> usize {
        let Some(last) = self.arrived.back() else {
            return 0;
        };
        let recent = self.arrived.iter().rev();
        recent
            .take_while(|p| p.waited() >= QUEUED && last.at.saturating_sub(p.at) <= RECENT)
            .count()
    }

    fn first_of(&self, count: usize) -> Option<Arrived> {
        self.arrived.iter().rev().take(count).next_back().copied()
    }

    /// Forgets everything before a pause.
    pub fn reset(&mut self) {
        self.arrived.clear();
    }

    fn rate_of(&self, count: usize) -> Option<DataRate> {
        let packets = || self.arrived.iter().rev().take(count);
        let (last, first) = (packets().next()?, packets().next_back()?);
        if count < PACKETS.0 || packets().count() < PACKETS.0 {
            return None;
        }
        let bytes: u64 = packets().map(|packet| u64::from(packet.bytes)).sum();
        // The bytes of the first packet arrived before the measured time, and those of the last
        // packet were sent after the sending time.
        let arrived = bytes.saturating_sub(first.bytes.into());
        let arrival_time = last.at.saturating_sub(first.at);
        let earliest = packets().map(|packet| packet.sent).min()?;
        let latest = packets().max_by_key(|packet| packet.sent)?;
        let sent = bytes.saturating_sub(latest.bytes.into());
        let send_time = latest.sent.saturating_sub(earliest);
        let arrived = DataRate::of(arrived, arrival_time.max(MIN_TIME))?;
        let sent = DataRate::of(sent, send_time.max(MIN_TIME))?;
        Some(arrived.min(sent))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]
    use super::*;

    fn push(acknowledged: &mut Acknowledged, sent_us: u64, at_us: u64) {
        let packet = PacketResult {
            sent: Duration::from_micros(sent_us),
            arrival: Some(Duration::from_micros(at_us)),
            bytes: 1_000,
            ..PacketResult::default()
        };
        let waited = Duration::from_micros(at_us - sent_us);
        acknowledged.push(&packet, waited);
    }

    #[test]
    fn it_is_the_rate_of_the_window() {
        let mut acknowledged = Acknowledged::default();
        assert_eq!(acknowledged.rate(), None);
        for n in 0..500 {
            push(&mut acknowledged, n * 10_000, n * 10_000 + 50_000);
        }
        assert_eq!(acknowledged.rate(), Some(DataRate::kbps(800)));
    }

    #[test]
    fn a_full_link_shows_soon() {
        let mut acknowledged = Acknowledged::default();
        for n in 0..100 {
            push(&mut acknowledged, n * 4_000, n * 4_000);
        }
        assert_eq!(acknowledged.rate_of_full_link(), None);
        for n in 0..12 {
            push(&mut acknowledged, 400_000 + n * 4_000, 410_000 + n * 20_000);
        }
        let whole = acknowledged.rate().unwrap();
        let full = acknowledged.rate_of_full_link();
        assert!(whole > DataRate::kbps(1_000), "{whole:?}");
        assert_eq!(full, Some(DataRate::kbps(400)));
    }

    #[test]
    fn a_queue_that_empties_at_once_is_not_a_fast_link() {
        let mut acknowledged = Acknowledged::default();
        for n in 0..50 {
            push(&mut acknowledged, n * 10_000, 600_000 + n * 10);
        }
        assert!(acknowledged.rate().unwrap() <= DataRate::kbps(850));
    }

    #[test]
    fn a_receiver_that_stood_still_is_not_a_slow_link() {
        let mut acknowledged = Acknowledged::default();
        for n in 0..50 {
            push(&mut acknowledged, n * 4_000, n * 4_000);
        }
        // The receiver reads for a moment, and then again after 130 ms.
        for n in 0..10 {
            push(&mut acknowledged, 200_000 + n * 2_000, 250_000 + n * 100);
        }
        for n in 0..40 {
            push(&mut acknowledged, 220_000 + n * 3_000, 380_000 + n * 100);
        }
        assert!(acknowledged.rushes());
        assert_eq!(acknowledged.rate_of_full_link(), None);
    }
}
