//! New sinks catch up: what their sources have kept since the last keyframe leaves paced, and what comes meanwhile has
//! its turn after it. A sink is a place in what the source keeps for all of them; nothing is copied or queued for it.

use std::slice;
use std::sync::Arc;
use std::time::{Duration, Instant};

use portunus_rtc::bandwidth::DataRate;
use portunus_rtc::streams::Burst;
use smallvec::SmallVec;

use super::{Pacing, Relay, Relaying};
use crate::graph::{Cursor, Next, Packet};
use crate::worker::graph::RouteState;
use crate::worker::network::Way;
use crate::worker::peers::Peer;

/// Bytes that leave a peer at once in the beginning: a keyframe of usual size, and no more than queues in front of slow links
/// hold.
const BURST: usize = 64 * 1_024;
/// A larger keyframe leaves in this time.
const PICTURE: Duration = Duration::from_millis(200);
/// So much more than what comes leaves, where nothing is known of the link: a link that carries what comes need not carry much
/// more.
const SURPLUS: f64 = 0.33;
/// The same once the peer has missed packets, at least.
const LEAST_SURPLUS: f64 = 0.1;
/// How long packets that are missed count as one time, and how long they hold up the rest at most: what leaves again for
/// them, and the queue that they did not fit into.
const MISSED: Duration = Duration::from_millis(500);
/// The first times that packets are missed, a queue on the way is full, probably, and what leaves again finds room in it only
/// once some of it has passed: so many bytes for each packet, [`BURST`] each time. Later on packets are lost for another reason, and
/// who waited each time would fall behind for ever.
const ROOM: usize = 4 * 1_024;
const ROOMS: u8 = 2;
/// What is missed so soon is of the burst, whose queue is gone by itself.
const BEGINNING: Duration = Duration::from_secs(1);
/// No link is taken to be slower.
const LEAST_RATE: DataRate = DataRate::kbps(1_000);
/// Where the link is known: the share of what it carries that is not taken by others, and no more than so many times what
/// comes.
const OF_SPARE: f64 = 0.95;
const MOST: f64 = 8.0;
/// What is due in this time leaves together.
const STEP: Duration = Duration::from_millis(20);
/// A machine that looks too late at what waits makes up for so much time.
const LATEST: Duration = Duration::from_millis(50);
/// What another worker has kept is older than this.
const COMES: Duration = Duration::from_millis(100);
/// What follows is kept for so long after a sink took a part.
const HELD: Duration = Duration::from_secs(1);
/// Packets that a pacer is given ahead; of a keyframe, which is to leave soon, it gets more.
const AHEAD: usize = 24;
const AHEAD_OF_KEYFRAME: usize = 512;
/// Packets of a route before it is the turn of the next one of the peer.
const TURN: usize = 8;

/// What a peer has yet to get of what sources have kept.
#[derive(Debug)]
pub(in crate::worker) struct CatchUp {
    /// The routes, by their slots, and where each is.
    routes: SmallVec<[(usize, Cursor); 1]>,
    /// Counts whose turn it is.
    turn: usize,
    pace: Pace,
}

impl CatchUp {
    fn new(now: Instant) -> Self {
        Self {
            routes: SmallVec::new(),
            turn: 0,
            pace: Pace::new(now),
        }
    }

    /// A route ended, or begins anew.
    fn forget(&mut self, route: usize) {
        self.routes.retain(|(slot, _)| *slot != route);
    }

    fn cursor(&self, route: usize) -> Option<&Cursor> {
        let mut routes = self.routes.iter();
        let found = routes.find(|(slot, _)| *slot == route);
        found.map(|(_, cursor)| cursor)
    }

    /// The peer missed a packet, and so many bytes left again.
    pub(in crate::worker) fn missed(&mut self, bytes: usize, now: Instant) {
        self.pace.missed(bytes, now);
    }

    /// When the next packets are to leave, if not when the `pacer` has sent some.
    pub(in crate::worker) fn poll_timeout(&self, pacer: Option<&Pacing>) -> Option<Instant> {
        let has_room = pacer.is_none_or(|pacer| pacer.len() < AHEAD);
        (has_room && !self.routes.is_empty()).then_some(self.pace.passed)
    }
}

/// A budget, kept as the time at which all that left would have passed.
#[derive(Debug)]
struct Pace {
    passed: Instant,
    /// Bytes that may leave at once.
    burst: usize,
    surplus: f64,
    began: Instant,
    missed: Option<Instant>,
    /// Bytes for which packets that are missed make room this time, and how many more times they do.
    room: usize,
    rooms: u8,
    /// What leaves in a second.
    rate: DataRate,
}

impl Pace {
    fn new(now: Instant) -> Self {
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

    /// What comes at present, and what the link is known to have for it.
    fn set_rate(&mut self, flows: DataRate, spare: Option<DataRate>) {
        let rate = match spare {
            Some(spare) => spare
                .times(OF_SPARE)
                .clamp(flows.times(1.0 + LEAST_SURPLUS), flows.times(MOST)),
            None => flows.times(1.0 + self.surplus),
        };
        self.rate = rate.max(LEAST_RATE);
    }

    fn is_due(&self, now: Instant) -> bool {
        self.passed <= now
    }

    fn has_room(&self, now: Instant) -> bool {
        self.passed <= now + STEP
    }

    /// A packet leaves, of a keyframe of so many bytes if it is of one.
    fn spend(&mut self, bytes: usize, keyframe: Option<usize>, now: Instant) {
        let at_once = bytes.min(self.burst);
        self.burst -= at_once;
        let keyframe = keyframe.and_then(|bytes| DataRate::of(bytes as u64, PICTURE));
        let rate = self.rate.max(keyframe.unwrap_or_default());
        let late = now.checked_sub(LATEST).unwrap_or(now);
        self.passed = self.passed.max(late) + rate.time_for((bytes - at_once) as u64);
    }

    fn missed(&mut self, bytes: usize, now: Instant) {
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

/// What became of a route's turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    /// There is more.
    More,
    /// It has to wait for others.
    Waits,
    /// It has caught up.
    Over,
}

impl Peer {
    /// Nothing of what waits for a route is to leave.
    pub(in crate::worker) fn forget_waiting(&mut self, route: usize) {
        if let Some(pacer) = &mut self.pacer {
            pacer.retain(|queued| queued.route != route);
        }
        if let Some(catch_up) = &mut self.catch_up {
            catch_up.forget(route);
        }
    }
}

impl Relaying<'_> {
    /// Sends what is due of what a peer has yet to get.
    pub(in crate::worker) fn catch_up(&mut self, slot: usize, now: Instant) {
        let Some(peer) = self.peers.get_mut(slot) else {
            return;
        };
        let is_due = |catch_up: &mut Box<CatchUp>| catch_up.pace.is_due(now);
        let Some(mut catch_up) = peer.catch_up.take_if(is_due) else {
            return;
        };
        self.set_pace(slot, &mut catch_up, now);
        let mut waiting = 0;
        while waiting < catch_up.routes.len() && catch_up.pace.has_room(now) {
            let index = catch_up.turn % catch_up.routes.len();
            let Some((route, cursor)) = catch_up.routes.get_mut(index) else {
                break;
            };
            match self.take_turn(slot, *route, cursor, &mut catch_up.pace, now) {
                Turn::Over => {
                    catch_up.routes.remove(index);
                }
                Turn::Waits => (waiting, catch_up.turn) = (waiting + 1, index + 1),
                Turn::More => (waiting, catch_up.turn) = (0, index + 1),
            }
        }
        if let Some(peer) = self.peers.get_mut(slot)
            && !catch_up.routes.is_empty()
        {
            peer.catch_up = Some(catch_up);
        }
    }

    /// Sets the pace by what comes, and has that kept.
    fn set_pace(&mut self, slot: usize, catch_up: &mut CatchUp, now: Instant) {
        let mut flows = DataRate::ZERO;
        for (route, cursor) in &catch_up.routes {
            let key = self.graph.route(*route).map(|route| route.source);
            if let Some(source) = key.and_then(|key| self.graph.source_mut(key)) {
                if cursor.is_whole() {
                    source.hold(now + HELD);
                }
                flows = flows + source.rate();
            }
        }
        let is_one = |route| catch_up.cursor(route).is_some();
        let peer = self.peers.get(slot);
        let spare = peer.and_then(|peer| peer.spare_bandwidth(is_one));
        catch_up.pace.set_rate(flows, spare);
    }

    fn take_turn(
        &mut self,
        slot: usize,
        route: usize,
        cursor: &mut Cursor,
        pace: &mut Pace,
        now: Instant,
    ) -> Turn {
        let found = self.graph.route(route).filter(|route| {
            let to = route.sink.map(|(peer, _)| peer);
            to == Some(slot) && route.state == RouteState::CatchingUp
        });
        let Some(key) = found.map(|route| route.source) else {
            return Turn::Over;
        };
        let (mut turn, send_time) = (Turn::Over, self.network.send_time(now));
        let mut gap = !cursor.is_whole();
        self.relay_with(route, key, (now, send_time), |relay| {
            turn = relay.catch_up(cursor, pace);
            gap = cursor.leaves_gap(relay.source);
            // The peer is polled as it is.
            false
        });
        if turn == Turn::Over && gap {
            self.graph.want_keyframes(key);
        }
        turn
    }
}

impl Relay<'_> {
    /// What is left for a route that is not live yet: what comes is left to be taken from what the source keeps, but for
    /// what is late. Says whether the peer has something to wait for, too.
    #[cold]
    pub(super) fn keep_back<'p>(
        &mut self,
        packets: &'p [Arc<Packet>],
        way: Option<&Way>,
        burst: &mut Burst,
    ) -> (&'p [Arc<Packet>], bool) {
        let place = self.peer.catch_up.as_ref();
        let place = place.and_then(|catch_up| catch_up.cursor(self.slot).copied());
        if let Some(cursor) = place.filter(|_| self.route.state == RouteState::CatchingUp) {
            for packet in packets.iter().filter(|packet| cursor.has_passed(packet)) {
                self.send_each(slice::from_ref(packet), way, burst);
            }
            return (&[], true);
        }
        if self.route.state == RouteState::CatchingUp {
            self.start_over();
        }
        if way.is_none() {
            return (packets, false);
        }
        let Some((first, cursor)) = self.source.cached().first().zip(Cursor::new(self.source))
        else {
            if !packets.is_empty() {
                self.route.state = RouteState::Live;
            }
            return (packets, false);
        };
        // Whoever waited for the keyframe gets it as those who are live do.
        let age = self.now.saturating_duration_since(first.arrival);
        let at = packets.iter().position(|packet| packet.seq == first.seq);
        if let Some(at) = at.filter(|_| age < COMES) {
            self.route.state = RouteState::Live;
            return (packets.get(at..).unwrap_or_default(), false);
        }
        self.route.state = RouteState::CatchingUp;
        let now = self.now;
        let catch_up = &mut self.peer.catch_up;
        let catch_up = catch_up.get_or_insert_with(|| Box::new(CatchUp::new(now)));
        catch_up.forget(self.slot);
        catch_up.routes.push((self.slot, cursor));
        (&[], true)
    }

    /// The route begins anew. No number may be used twice.
    fn start_over(&mut self) {
        self.route.state = RouteState::New;
        self.peer.forget_waiting(self.slot);
        let track = self.peer.tracks.get_mut(self.media);
        if let Some(sink) = track.and_then(|track| track.sink.as_mut()) {
            sink.numbering.forget(self.key);
        }
    }

    fn catch_up(&mut self, cursor: &mut Cursor, pace: &mut Pace) -> Turn {
        let Some(way) = self.way() else {
            self.start_over();
            return Turn::Over;
        };
        let (source, now) = (self.source, self.now);
        let (mut burst, mut turn) = (Burst::default(), Turn::More);
        for _ in 0..TURN {
            if !pace.has_room(now) {
                break;
            }
            let (packet, jumps) = match cursor.next(source) {
                Next::Packet(packet) => (packet, false),
                Next::Keyframe(packet) => (packet, true),
                Next::Wait => {
                    turn = Turn::Waits;
                    break;
                }
                Next::Live => {
                    self.route.state = RouteState::Live;
                    if cursor.leaves_gap(source) {
                        // What lies between was not kept.
                        self.route.selector.await_keyframe();
                    }
                    turn = Turn::Over;
                    break;
                }
            };
            let keyframe = source.keyframe_with(packet);
            let most = keyframe.map_or(AHEAD, |_| AHEAD_OF_KEYFRAME);
            let pacer = self.peer.pacer.as_ref();
            if !jumps && pacer.is_some_and(|pacer| pacer.len() >= most) {
                turn = Turn::Waits;
                break;
            }
            if jumps {
                self.jump_to(packet);
            }
            cursor.pass(packet, jumps);
            self.send_each(slice::from_ref(packet), Some(&way), &mut burst);
            pace.spend(packet.data.len(), keyframe, now);
        }
        self.peer.connection.sent(self.media, &burst, now);
        turn
    }

    /// What the sink has not got before this packet is left out, without a gap.
    fn jump_to(&mut self, packet: &Packet) {
        let slot = self.slot;
        if let Some(pacer) = &mut self.peer.pacer {
            pacer.retain(|queued| queued.route != slot);
        }
        let track = self.peer.tracks.get_mut(self.media);
        if let Some(sink) = track.and_then(|track| track.sink.as_mut()) {
            sink.numbering.close_up(self.key, packet);
        }
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
