//! Catching up of new sinks: they get the packets that their source has kept since the last
//! keyframe, paced, and then what has arrived since. A sink is a position in the source's cache;
//! nothing is copied or queued for it.

use std::slice;
use std::sync::Arc;
use std::time::{Duration, Instant};

use portunus_graph::{Cursor, Next, Packet};
use portunus_rtc::bandwidth::DataRate;
use portunus_rtc::streams::Burst;

use super::{Relay, Relaying};
use crate::worker::graph::RouteState;
use crate::worker::network::Way;
use crate::worker::peers::{AHEAD, AHEAD_OF_KEYFRAME, CatchUp, Pace};

/// A cached keyframe that is younger counts as arriving now, unless another worker has kept it.
const COMES: Duration = Duration::from_millis(100);
/// How long the source keeps packets after a sink took some.
const HELD: Duration = Duration::from_secs(1);
/// The number of packets of a route before another route of the peer has its turn.
const TURN: usize = 8;

/// The outcome of a route's turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    /// There is more to send.
    More,
    /// It has to wait for other routes.
    Waits,
    /// It has caught up.
    Over,
}

impl Relaying<'_> {
    /// Sends what is due of the kept packets to a peer.
    pub(in crate::worker) fn catch_up(&mut self, slot: usize, now: Instant) {
        let Some(peer) = self.peers.get_mut(slot) else {
            return;
        };
        let Some(mut catch_up) = peer.sending.take_due_catch_up(now) else {
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
            peer.sending.put_catch_up(catch_up);
        }
    }

    /// Sets the pace by what arrives, and makes sources keep it.
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
            // The peer is polled already.
            false
        });
        if turn == Turn::Over && gap {
            self.graph.want_keyframes(key);
        }
        turn
    }
}

impl Relay<'_> {
    /// Keeps packets back from a route that is not live: it takes them from the cache later, except
    /// for late ones. Also returns whether the peer has to be polled.
    #[cold]
    pub(super) fn keep_back<'p>(
        &mut self,
        packets: &'p [Arc<Packet>],
        way: Option<&Way>,
        burst: &mut Burst,
    ) -> (&'p [Arc<Packet>], bool) {
        let place = self.peer.sending.catch_up();
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
        // A route that waited for this keyframe gets it like live routes.
        let age = self.now.saturating_duration_since(first.arrival);
        let at = packets.iter().position(|packet| packet.seq == first.seq);
        if let Some(at) = at.filter(|_| age < COMES) {
            self.route.state = RouteState::Live;
            return (packets.get(at..).unwrap_or_default(), false);
        }
        self.route.state = RouteState::CatchingUp;
        let now = self.now;
        let catch_up = self.peer.sending.start_catching_up(now);
        catch_up.forget(self.slot);
        catch_up.routes.push((self.slot, cursor));
        (&[], true)
    }

    /// Starts over. No sequence number may be used twice.
    fn start_over(&mut self) {
        self.route.state = RouteState::New;
        self.peer.sending.forget_waiting(self.slot);
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
                        // The packets in between were not kept.
                        self.route.selector.await_keyframe();
                    }
                    turn = Turn::Over;
                    break;
                }
            };
            let keyframe = source.keyframe_with(packet);
            let most = keyframe.map_or(AHEAD, |_| AHEAD_OF_KEYFRAME);
            let pacer = self.peer.sending.pacer();
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

    /// Skips what the sink has not got before this packet, without a gap.
    fn jump_to(&mut self, packet: &Packet) {
        let slot = self.slot;
        if let Some(pacer) = self.peer.sending.pacer_mut() {
            pacer.retain(|queued| queued.route != slot);
        }
        let track = self.peer.tracks.get_mut(self.media);
        if let Some(sink) = track.and_then(|track| track.sink.as_mut()) {
            sink.numbering.close_up(self.key, packet);
        }
    }
}
