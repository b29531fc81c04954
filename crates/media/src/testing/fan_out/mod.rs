//! One publisher and many viewers on a worker without a network: the cost of relaying without
//! system calls.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test or benchmark that cannot be set up has failed"
)]

mod joining;
#[cfg(test)]
mod redirecting;
mod relaying;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use portunus_rtc::testing::Side;
use portunus_rtp::{Fields, Pt, SeqNo, Ssrc, write_header};
use portunus_sdp::negotiated::DtlsRole;
use tokio::sync::mpsc;

use super::bare::{Bare, bare};
use crate::RouteId;
use crate::command::{
    Command, IngestCommand, NewIngest, OutletCommand, RouteCommand, SourceCommand,
};
use crate::inbox::Inbox;
use crate::ingest::ParameterSets;
use crate::outlet::{NewOutlet, OutletEnd, channel};
use crate::worker::Worker;
use crate::{
    IngestId, IngestOptions, IngestStatus, KeyframeCache, PeerEvent, RouteOptions, SourceRef, Tap,
    TapOptions,
};
use joining::{client, track};

/// The time between two frames.
const FRAME: Duration = Duration::from_millis(33);

/// A worker with one publisher and its viewers.
pub struct FanOut {
    worker: Worker,
    inbox: Arc<Inbox>,
    local: SocketAddr,
    publisher: Side,
    now: Instant,
    next: SeqNo,
    timestamp: u32,
    ssrc: Ssrc,
    source: SourceRef,
    /// Everybody has an m-line of audio, too.
    has_audio: bool,
    taps: u64,
    // Events are not read, but the channel has to stay open.
    _events: mpsc::Receiver<PeerEvent>,
}

impl std::fmt::Debug for FanOut {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FanOut")
            .field("now", &self.now)
            .finish_non_exhaustive()
    }
}

impl FanOut {
    /// The size of the worker's send arena in bytes.
    pub const ARENA_BYTES: usize = crate::sys::ARENA_BYTES;

    /// Connects a publisher and `viewers` viewers.
    pub fn new(viewers: usize) -> Self {
        let mut this = Self::start();
        let mut publisher = this.connect(0, true);
        std::mem::swap(&mut this.publisher, &mut publisher);
        this.add_viewers(viewers, track(0).into());
        this
    }

    /// Connects `viewers` viewers of an ingest, which is fed by [`FanOut::take_in`].
    pub fn of_ingest(viewers: usize, options: IngestOptions, keep: Option<KeyframeCache>) -> Self {
        let mut this = Self::start();
        let id = IngestId {
            worker: 0,
            serial: 500_000,
        };
        let status = Arc::new(IngestStatus::new(this.now));
        let new = NewIngest {
            id,
            options,
            status,
        };
        this.inbox
            .send(Command::Ingest(IngestCommand::Add(Box::new(new))));
        let source = id.into();
        // Without a wish, the ingest keeps what its own options say.
        if keep.is_some() {
            let keep = SourceCommand::KeepKeyframe(keep);
            this.inbox.send(Command::Source(source, keep));
        }
        this.source = source;
        this.add_viewers(viewers, source);
        this
    }

    /// Adds several ingests without viewers.
    pub(crate) fn of_ingests<const N: usize>(
        options: [IngestOptions; N],
    ) -> (Self, [SourceRef; N]) {
        let this = Self::start();
        let mut serial = 500_000;
        let sources = options.map(|options| {
            serial += 1;
            let id = IngestId { worker: 0, serial };
            let status = Arc::new(IngestStatus::new(this.now));
            let new = NewIngest {
                id,
                options,
                status,
            };
            this.inbox
                .send(Command::Ingest(IngestCommand::Add(Box::new(new))));
            id.into()
        });
        (this, sources)
    }

    /// Taps the source.
    pub fn tap(&mut self, options: RouteOptions, tap: TapOptions) -> (RouteId, Tap) {
        self.tap_of(self.source, options, tap)
    }

    pub(crate) fn tap_of(
        &mut self,
        from: SourceRef,
        options: RouteOptions,
        tap: TapOptions,
    ) -> (RouteId, Tap) {
        self.taps += 1;
        let id = RouteId {
            worker: 0,
            serial: 2_000_000 + self.taps,
        };
        let (input, output) = channel(&tap);
        let new = NewOutlet {
            id,
            from,
            options,
            encodings: tap.encodings,
            end: OutletEnd::Tap(input),
        };
        self.inbox
            .send(Command::Outlet(OutletCommand::Add(Box::new(new))));
        self.settle();
        (id, output)
    }

    /// Takes a datagram as if it had come by a socket of ingests.
    pub(crate) fn take_by_port(&mut self, port: usize, from: SocketAddr, datagram: &mut [u8]) {
        self.now += FRAME;
        self.worker.take_by_port(port, (from, datagram), self.now);
        self.worker.relay_fresh(self.now);
        self.worker.flush();
    }

    /// Changes a route or an outlet.
    pub fn set_route(&mut self, route: RouteId, options: RouteOptions) {
        self.inbox
            .send(Command::Route(route, RouteCommand::Set(options)));
        self.settle();
    }

    /// Removes a route or an outlet.
    pub fn remove_route(&mut self, route: RouteId) {
        self.inbox.send(Command::Route(route, RouteCommand::Remove));
        self.settle();
    }

    /// Sets the ingest's parameter sets.
    pub fn set_parameter_sets(&mut self, sets: Option<ParameterSets>) {
        if let SourceRef::Ingest(ingest) = self.source {
            let command = Command::Ingest(IngestCommand::SetParameterSets { ingest, sets });
            self.inbox.send(command);
        }
        self.settle();
    }

    /// Removes the ingest.
    pub fn end_ingest(&mut self) {
        if let SourceRef::Ingest(ingest) = self.source {
            let (done, _) = tokio::sync::oneshot::channel();
            self.inbox
                .send(Command::Ingest(IngestCommand::Remove { ingest, done }));
        }
        self.settle();
    }

    fn start() -> Self {
        let now = Instant::now();
        let Bare {
            mut worker,
            inbox,
            local,
            events,
        } = bare(now);
        worker.keep_datagrams();
        let publisher = Side::new("publisher", client(0), true, DtlsRole::Client);
        Self {
            worker,
            inbox,
            local,
            publisher,
            now,
            next: SeqNo(1),
            timestamp: 0,
            ssrc: Ssrc(7_000),
            source: track(0).into(),
            has_audio: false,
            taps: 0,
            _events: events,
        }
    }

    /// Returns the datagrams of one frame for an ingest.
    pub fn plain_frame(&mut self, keyframe: bool, packets: usize, bytes: usize) -> Vec<Vec<u8>> {
        self.timestamp = self.timestamp.wrapping_add(3_000);
        let packet = |n: usize| {
            let mut datagram = vec![0; bytes + 12];
            let fields = Fields {
                marker: n + 1 == packets,
                padding: false,
                pt: Pt(96),
                sequence: self.next.wire(),
                timestamp: self.timestamp,
                ssrc: Ssrc(8_000),
            };
            let header = write_header(&mut datagram, &fields, []).expect("room");
            let start = &mut datagram[header..];
            match (n, keyframe) {
                (0, true) => {
                    start[..11].copy_from_slice(&[0x10, 0x10, 0, 0, 0x9d, 0x01, 0x2a, 16, 0, 16, 0])
                }
                (0, false) => start[..2].copy_from_slice(&[0x10, 0x11]),
                (_, _) => {}
            }
            self.next = SeqNo(self.next.0 + 1);
            datagram
        };
        (0..packets).map(packet).collect()
    }

    /// Takes datagrams of an ingest, and relays them.
    pub fn take_in(&mut self, datagrams: &mut [Vec<u8>]) {
        self.take_in_encoding(0, datagrams);
    }

    /// Takes datagrams of one encoding of an ingest, and relays them.
    pub fn take_in_encoding(&mut self, encoding: u8, datagrams: &mut [Vec<u8>]) {
        self.now += FRAME;
        for datagram in datagrams {
            self.worker.take_ingested(0, encoding, datagram, self.now);
        }
        self.worker.relay_fresh(self.now);
        self.worker.flush();
    }

    /// Takes a datagram of an ingest's RTCP port.
    pub fn take_in_rtcp(&mut self, datagram: &[u8]) {
        let from = client(0);
        self.worker.take_ingest_rtcp(0, (from, datagram), self.now);
    }

    /// Returns the datagrams of one frame of the publisher: `packets` of `bytes` payload bytes.
    pub fn frame(&mut self, packets: usize, bytes: usize) -> Vec<Vec<u8>> {
        self.timestamp = self.timestamp.wrapping_add(3_000);
        let seal = |n: usize| {
            let mut datagram = vec![0; bytes + 128];
            let fields = Fields {
                marker: n + 1 == packets,
                padding: false,
                pt: Pt(96),
                sequence: self.next.wire(),
                timestamp: self.timestamp,
                ssrc: self.ssrc,
            };
            let header = write_header(&mut datagram, &fields, [(1, &b"0"[..])]).expect("room");
            // The descriptor of a VP8 inter frame without picture id.
            datagram[header] = if n == 0 { 0x10 } else { 0 };
            datagram[header + 1] = 0x01;
            let sealed =
                self.publisher
                    .transport
                    .seal_rtp(self.next, header, header + bytes, &mut datagram);
            self.next = SeqNo(self.next.0 + 1);
            datagram.truncate(sealed.expect("keys"));
            datagram
        };
        (0..packets).map(seal).collect()
    }

    /// Continues the publisher with another SSRC, starting at sequence number `first` and
    /// `timestamp`.
    pub fn change_ssrc(&mut self, first: u16, timestamp: u32) {
        self.ssrc = Ssrc(self.ssrc.0 + 1);
        (self.next, self.timestamp) = (SeqNo(first.into()), timestamp);
    }

    /// Relays a frame: each datagram is decrypted once, and encrypted for each viewer.
    pub fn relay(&mut self, frame: &mut [Vec<u8>]) {
        self.now += FRAME;
        for datagram in frame {
            self.worker
                .take_datagram(self.now, self.local, client(0), datagram);
        }
        self.worker.relay_fresh(self.now);
        self.worker.flush();
    }

    /// Does what is due: reports, keep-alives.
    pub fn settle(&mut self) {
        self.worker.take_commands(self.now);
        self.worker.take_handshakes(self.now);
        self.worker.run_timers(self.now);
        self.worker.poll_touched(self.now);
        self.worker.flush();
    }

    /// The number of datagrams sent so far.
    pub fn sent(&self) -> u64 {
        self.worker.sent()
    }
}

#[cfg(test)]
mod tests {
    use super::joining::{audio_mid, peer};
    use super::*;
    use crate::TrackRef;
    use crate::command::PeerCommand;

    /// Viewers of a publisher's video and audio.
    fn with_audio(viewers: usize) -> FanOut {
        let mut rig = FanOut::start();
        rig.has_audio = true;
        rig.publisher = rig.connect(0, true);
        rig.add_viewers(viewers, track(0).into());
        let audio = |index| TrackRef {
            mid: audio_mid(),
            ..track(index)
        };
        // The first is that of the video, so that both are relayed together; the others are in
        // another order.
        for viewer in [1].into_iter().chain((2..=viewers).rev()) {
            let route = RouteId {
                worker: 0,
                serial: 3_000_000 + viewer as u64,
            };
            rig.inbox.send(Command::Route(
                route,
                RouteCommand::Add {
                    from: audio(0).into(),
                    to: audio(viewer),
                    options: RouteOptions::default(),
                },
            ));
        }
        rig.settle();
        rig.worker.keep_datagrams();
        rig
    }

    fn sound(rig: &mut FanOut, number: u64) -> Vec<u8> {
        let mut datagram = vec![0; 256];
        let fields = Fields {
            marker: false,
            padding: false,
            pt: Pt(111),
            sequence: number as u16,
            timestamp: number as u32 * 960,
            ssrc: Ssrc(9_000),
        };
        let header = write_header(&mut datagram, &fields, [(1, &b"1"[..])]).expect("room");
        let transport = &mut rig.publisher.transport;
        let sealed = transport.seal_rtp(SeqNo(number), header, header + 100, &mut datagram);
        datagram.truncate(sealed.expect("keys"));
        datagram
    }

    /// Who gets what, in the order in which it leaves: the viewer, payload type and sequence
    /// number.
    fn left(rig: &mut FanOut) -> Vec<(usize, u8, u16)> {
        let kept = rig.worker.take_kept().into_iter();
        let facts = kept.map(|(to, datagram)| {
            let sequence = u16::from_be_bytes([datagram[2], datagram[3]]);
            (
                usize::from(to.port()) - 20_000,
                datagram[1] & 0x7f,
                sequence,
            )
        });
        facts.filter(|(_, pt, _)| matches!(pt, 96 | 111)).collect()
    }

    fn kinds(left: &[(usize, u8, u16)]) -> Vec<u8> {
        left.iter().map(|(_, pt, _)| *pt).collect()
    }

    #[test]
    fn a_turns_audio_leaves_behind_the_video_for_the_same_viewer() {
        let mut rig = with_audio(1);
        let mut turn = vec![sound(&mut rig, 1)];
        turn.extend(rig.frame(3, 700));
        rig.relay(&mut turn);
        assert_eq!(kinds(&left(&mut rig)), [96, 96, 96, 111]);
        // What comes alone leaves alone.
        let mut turn = [sound(&mut rig, 2)];
        rig.relay(&mut turn);
        assert_eq!(kinds(&left(&mut rig)), [111]);
    }

    #[test]
    fn every_viewer_gets_a_turns_video_and_audio_once_and_in_order() {
        let mut rig = with_audio(11);
        for turn in 0..20 {
            let mut datagrams = vec![sound(&mut rig, 2 * turn), sound(&mut rig, 2 * turn + 1)];
            datagrams.extend(rig.frame(2, 700));
            rig.relay(&mut datagrams);
            let left = left(&mut rig);
            for viewer in 1..=11 {
                let its: Vec<_> = left
                    .iter()
                    .filter(|(to, ..)| *to == viewer)
                    .copied()
                    .collect();
                let mut sorted = its.clone();
                sorted.sort_unstable();
                assert_eq!(kinds(&sorted), [96, 96, 111, 111], "turn {turn}");
                for kind in [96, 111] {
                    let numbers = its.iter().filter(|(_, pt, _)| *pt == kind);
                    assert!(numbers.is_sorted_by_key(|(.., number)| number));
                }
            }
        }
    }

    #[test]
    fn what_is_held_and_forgotten_is_not_fed_twice_afterwards() {
        let mut rig = FanOut::new(3);
        let mut frame = rig.frame(4, 700);
        let mut rest = frame.split_off(2);
        rig.relay(&mut frame);
        for viewer in 1..=3 {
            rig.remove_route(RouteId {
                worker: 0,
                serial: 1_000_000 + viewer,
            });
        }
        // What was held is forgotten with the last route. The tap gets what comes next.
        let (_, mut tap) = rig.tap(RouteOptions::default(), TapOptions::default());
        let before = rig.now;
        rig.now -= FRAME;
        rig.relay(&mut rest);
        assert_eq!(rig.now, before, "in the same moment");
        let mut tapped = 0;
        while tap.try_recv().is_some() {
            tapped += 1;
        }
        assert_eq!(tapped, 2);
    }

    #[test]
    fn an_address_in_use_is_not_forgotten_for_others() {
        let mut rig = FanOut::new(1);
        let (publisher, mut buffer) = (client(0), vec![0; 2_048]);
        rig.now += Duration::from_secs(6);
        let (now, local) = (rig.now, rig.local);
        rig.publisher.transport.handle_timeout(now);
        let check = rig.publisher.transport.poll_transmit(&mut buffer);
        let len = check.expect("a check").len;
        assert_eq!(rig.worker.owner(publisher), Some(peer(0)));
        for port in 0..40 {
            let mut datagram = buffer[..len].to_vec();
            let from = SocketAddr::from(([127, 0, 0, 2], 1 + port));
            rig.worker.take_datagram(now, local, from, &mut datagram);
            rig.worker.poll_touched(now);
            assert_eq!(rig.worker.owner(from), Some(peer(0)));
            assert_eq!(rig.worker.owner(publisher), Some(peer(0)));
        }
    }

    #[test]
    fn a_forged_address_takes_no_peer_away() {
        let mut rig = FanOut::new(1);
        let mut side = rig.meet(2, false);
        rig.worker.take_commands(rig.now);
        let mut buffer = vec![0; 2_048];
        let check = side.transport.poll_transmit(&mut buffer).expect("a check");
        let (now, local) = (rig.now, rig.local);
        for (from, owner) in [(client(1), peer(1)), (client(2), peer(2))] {
            let mut datagram = buffer[..check.len].to_vec();
            rig.worker.take_datagram(now, local, from, &mut datagram);
            rig.worker.poll_touched(now);
            assert_eq!(rig.worker.owner(from), Some(owner));
        }
        // Once the first is gone the address may well be the second's.
        let first = peer(1);
        rig.inbox.send(Command::Peer(first, PeerCommand::Close));
        rig.worker.take_commands(now);
        let mut datagram = buffer[..check.len].to_vec();
        rig.worker
            .take_datagram(now, local, client(1), &mut datagram);
        assert_eq!(rig.worker.owner(client(1)), Some(peer(2)));
    }
}
