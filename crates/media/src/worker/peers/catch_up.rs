//! The state of catching up: what a peer has yet to get of the packets that sources keep, and its
//! pace.

use std::time::{Duration, Instant};

use portunus_graph::Cursor;
use portunus_rtc::bandwidth::DataRate;
use smallvec::SmallVec;

use super::pacing::Pacing;

/// The bytes that a peer gets at once at the start: a usual keyframe, and what the queues before
/// slow links hold.
const BURST: usize = 64 * 1_024;
/// The time in which a larger keyframe leaves.
const PICTURE: Duration = Duration::from_millis(200);
/// The rate above that of the source if nothing is known of the link, as a fraction: a link that
/// carries the source need not carry much more.
const SURPLUS: f64 = 0.33;
/// The minimum of that, once the peer has missed packets.
const LEAST_SURPLUS: f64 = 0.1;
/// How long missed packets count as one event, and the maximum time that they delay the rest, for
/// their retransmission and the queue that they did not fit into.
const MISSED: Duration = Duration::from_millis(500);
/// The first events probably mean a full queue on the way, so that retransmissions find room only
/// after some of it has drained: this many bytes for each packet, [`BURST`] per event. Later events
/// have other causes; a peer that waited each time would never catch up.
const ROOM: usize = 4 * 1_024;
const ROOMS: u8 = 2;
/// Packets missed within this time belong to the burst, whose queue drains by itself.
const BEGINNING: Duration = Duration::from_secs(1);
/// The minimum rate.
const LEAST_RATE: DataRate = DataRate::kbps(1_000);
/// If the link is known: the share of its spare bandwidth that is used, and the maximum rate as a
/// multiple of the source's.
const OF_SPARE: f64 = 0.95;
const MOST: f64 = 8.0;
/// Packets that are due within this time leave together.
const STEP: Duration = Duration::from_millis(20);
/// A delayed worker makes up for this time.
const LATEST: Duration = Duration::from_millis(50);
/// The maximum number of packets in the pacer, and that of packets of a keyframe, which should
/// leave soon.
pub(in crate::worker) const AHEAD: usize = 24;
pub(in crate::worker) const AHEAD_OF_KEYFRAME: usize = 512;

/// What a peer has yet to get of the packets that sources keep.
#[derive(Debug)]
pub(in crate::worker) struct CatchUp {
    /// The routes, by their slots, with their positions.
    pub(in crate::worker) routes: SmallVec<[(usize, Cursor); 1]>,
    /// Counts turns of routes.
    pub(in crate::worker) turn: usize,
    pub(in crate::worker) pace: Pace,
}

impl CatchUp {
    pub(in crate::worker) fn new(now: Instant) -> Self {
        Self {
            routes: SmallVec::new(),
            turn: 0,
            pace: Pace::new(now),
        }
    }

    /// Removes a route that has ended or starts over.
    pub(in crate::worker) fn forget(&mut self, route: usize) {
        self.routes.retain(|(slot, _)| *slot != route);
    }

    pub(in crate::worker) fn cursor(&self, route: usize) -> Option<&Cursor> {
        let mut routes = self.routes.iter();
        let found = routes.find(|(slot, _)| *slot == route);
        found.map(|(_, cursor)| cursor)
    }

    /// Notes that the peer missed a packet, and that `bytes` bytes were sent again.
    pub(in crate::worker) fn missed(&mut self, bytes: usize, now: Instant) {
        self.pace.missed(bytes, now);
    }

    /// When the next packets are due, if not when `pacer` has sent some.
    pub(in crate::worker) fn poll_timeout(&self, pacer: Option<&Pacing>) -> Option<Instant> {
        let has_room = pacer.is_none_or(|pacer| pacer.len() < AHEAD);
        (has_room && !self.routes.is_empty()).then_some(self.pace.passed)
    }
}

/// A budget, stored as the time at which all that was sent will have passed.
#[derive(Debug)]
pub(in crate::worker) struct Pace {
    passed: Instant,
    /// The bytes that may leave at once.
    burst: usize,
    surplus: f64,
    began: Instant,
    missed: Option<Instant>,
    /// The bytes that missed packets may wait for in this event, and for how many more events.
    room: usize,
    rooms: u8,
    /// The bitrate.
    rate: DataRate,
}

impl Pace {
    pub(in crate::worker) fn new(now: Instant) -> Self {
        Self {
            passed: now,
            burst: BURST,
            surplus: SURPLUS,
            began: now,
            missed: None,
            room: 0,
            rooms: ROOMS,
            rate: LEAST_RATE,
        }
    }

    /// Sets the bitrate by that of the sources and the spare bandwidth of the link.
    pub(in crate::worker) fn set_rate(&mut self, flows: DataRate, spare: Option<DataRate>) {
        let rate = match spare {
            Some(spare) => spare
                .times(OF_SPARE)
                .clamp(flows.times(1.0 + LEAST_SURPLUS), flows.times(MOST)),
            None => flows.times(1.0 + self.surplus),
        };
        self.rate = rate.max(LEAST_RATE);
    }

    pub(in crate::worker) fn is_due(&self, now: Instant) -> bool {
        self.passed <= now
    }

    pub(in crate::worker) fn has_room(&self, now: Instant) -> bool {
        self.passed <= now + STEP
    }

    /// Spends the budget for a packet, which may belong to a keyframe of `keyframe` bytes.
    pub(in crate::worker) fn spend(&mut self, bytes: usize, keyframe: Option<usize>, now: Instant) {
        let at_once = bytes.min(self.burst);
        self.burst -= at_once;
        let keyframe = keyframe.and_then(|bytes| DataRate::of(bytes as u64, PICTURE));
        let rate = self.rate.max(keyframe.unwrap_or_default());
        let late = now.checked_sub(LATEST).unwrap_or(now);
        self.passed = self.passed.max(late) + rate.time_for((bytes - at_once) as u64);
    }

    pub(in crate::worker) fn missed(&mut self, bytes: usize, now: Instant) {
        let same = |at: Instant| now.saturating_duration_since(at) < MISSED;
        if !self.missed.is_some_and(same) {
            self.missed = Some(now);
            self.burst = 0;
            self.surplus = (self.surplus / 2.0).max(LEAST_SURPLUS);
            self.room = 0;
            if now.saturating_duration_since(self.began) >= BEGINNING && self.rooms > 0 {
                self.rooms -= 1;
                self.room = BURST;
            }
        }
        let room = ROOM.min(self.room);
        self.room -= room;
        let passed = self.passed.max(now) + self.rate.time_for((bytes + room) as u64);
        self.passed = passed.min(now + MISSED);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLOWS: DataRate = DataRate::kbps(2_000);

    /// The packets of 1,000 bytes that leave up to so many milliseconds after `start`.
    fn leave(pace: &mut Pace, keyframe: Option<usize>, start: Instant, ms: u64) -> usize {
        let mut packets = 0;
        for ms in 0..=ms {
            let now = start + Duration::from_millis(ms);
            while pace.is_due(now) || packets > 0 && pace.has_room(now) {
                pace.spend(1_000, keyframe, now);
                packets += 1;
            }
        }
        packets
    }

    #[test]
    fn a_keyframe_of_usual_size_leaves_at_once_and_a_large_one_soon() {
        let start = Instant::now();
        let mut pace = Pace::new(start);
        pace.set_rate(FLOWS, None);
        let usual = leave(&mut pace, Some(60_000), start, 0);
        assert!((60..80).contains(&usual), "{usual}");
        let mut pace = Pace::new(start);
        pace.set_rate(FLOWS, None);
        let large = leave(&mut pace, Some(400_000), start, 200);
        assert!((400..520).contains(&large), "{large}");
    }

    #[test]
    fn what_follows_leaves_a_third_faster_than_it_comes_or_as_the_link_is_known_to_carry() {
        let start = Instant::now();
        for (spare, packets) in [(None, 332), (Some(4_000), 475), (Some(500), 275)] {
            let mut pace = Pace::new(start);
            pace.set_rate(FLOWS, spare.map(DataRate::kbps));
            pace.burst = 0;
            let left = leave(&mut pace, None, start, 1_000);
            assert!(left.abs_diff(packets) < 12, "{spare:?}: {left}");
        }
    }

    #[test]
    fn packets_that_are_missed_make_room_on_the_way_twice_but_not_in_the_beginning() {
        let start = Instant::now();
        let mut pace = Pace::new(start);
        pace.set_rate(FLOWS, None);
        let one = pace.rate.time_for(ROOM as u64);
        let all = pace.rate.time_for(BURST as u64);
        assert!(all > Duration::from_millis(190), "{all:?}");
        let mut pause = |packets, at| {
            (0..packets).for_each(|_| pace.missed(0, at));
            pace.passed.saturating_duration_since(at)
        };
        assert_eq!(pause(9, start), Duration::ZERO);
        let later = start + BEGINNING;
        assert_eq!(pause(1, later), one);
        assert!(pause(50, later).abs_diff(all) < MISSED / 1_000);
        let room = pause(50, later + MISSED);
        assert!(room.abs_diff(all) < MISSED / 1_000);
        for n in 2..9 {
            assert_eq!(
                pause(50, later + n * MISSED),
                Duration::ZERO,
                "it is no queue"
            );
        }
    }

    #[test]
    fn what_a_peer_misses_makes_it_slower_once_at_a_time() {
        let start = Instant::now();
        let mut pace = Pace::new(start);
        for _ in 0..100 {
            pace.missed(1_000, start);
        }
        assert_eq!(pace.surplus, SURPLUS / 2.0);
        assert_eq!(pace.burst, 0);
        assert_eq!(pace.passed, start + MISSED, "no more than for a moment");
        for n in 1..9 {
            pace.missed(1_000, start + n * MISSED);
        }
        assert_eq!(pace.surplus, LEAST_SURPLUS);
    }
}
