//! Listeners that change from one mix to another get one stream.
#![allow(
    clippy::unwrap_used,
    clippy::needless_range_loop,
    reason = "a simulation that cannot be set up has failed"
)]

use std::num::NonZeroU64;
use std::ops::Range;

use portunus_sdp::negotiated::Codec;

use super::joining::{audio_mid, track};
use super::*;
use crate::ingest::{IngestMedia, RtpIngest, SharedClock, ThreadFeed, thread_feed};
use crate::outlet::{CollectInput, Collector};
use crate::{Encodings, IngestFeed, TrackRef};

/// The interval of mixes, and the duration of a packet.
const TICK: Duration = Duration::from_millis(20);
const TICKS: u32 = 960;
/// The payload size of the common mix. Payloads of other mixes are longer by their number.
const SIZE: usize = 60;

/// A room's thread and its worker, with several listeners.
struct Room {
    rig: FanOut,
    feed: ThreadFeed,
    clock: SharedClock,
    timestamp: u32,
}

fn mix(number: u64) -> IngestId {
    IngestId {
        worker: 0,
        serial: 600_000 + number,
    }
}

fn route(listener: usize) -> RouteId {
    RouteId {
        worker: 0,
        serial: 3_000_000 + listener as u64,
    }
}

impl Room {
    fn new(listeners: Range<usize>) -> Self {
        let mut rig = FanOut::start();
        rig.has_audio = true;
        for listener in listeners.clone() {
            rig.connect(listener, false);
        }
        let (feed, end) = thread_feed(Some(Arc::clone(rig.inbox.wakeup())));
        rig.inbox
            .send(Command::Ingest(IngestCommand::AddThreadFeed(end)));
        let mut room = Self {
            rig,
            feed,
            clock: SharedClock::new(NonZeroU64::MIN),
            // It wraps around during the test.
            timestamp: u32::MAX - 50 * TICKS,
        };
        room.open(0);
        for listener in listeners {
            let to = TrackRef {
                mid: audio_mid(),
                ..track(listener)
            };
            room.rig.inbox.send(Command::Route(
                route(listener),
                RouteCommand::Add {
                    from: mix(0).into(),
                    to,
                    options: RouteOptions::default(),
                },
            ));
        }
        room.rig.settle();
        room.rig.worker.take_kept();
        room
    }

    fn open(&mut self, number: u64) {
        let media = IngestMedia::Rtp(RtpIngest {
            clock: Some(self.clock),
            ..RtpIngest::new(Codec::Opus, 48_000)
        });
        let options = IngestOptions {
            media,
            ..IngestOptions::rtp(Codec::Opus, 48_000, IngestFeed::Thread)
        };
        self.rig
            .inbox
            .send(Command::Ingest(IngestCommand::Add(Box::new(NewIngest {
                id: mix(number),
                options,
                status: Arc::new(IngestStatus::new(self.rig.now)),
            }))));
    }

    /// Feeds one tick of each of these mixes, with its next sequence number.
    fn tick(&mut self, mixes: &mut [(u64, u16)]) {
        self.timestamp = self.timestamp.wrapping_add(TICKS);
        for (number, next) in mixes {
            let mut packet = vec![0; 12 + SIZE + *number as usize];
            let fields = Fields {
                marker: false,
                padding: false,
                pt: Pt(100),
                sequence: *next,
                timestamp: self.timestamp,
                ssrc: Ssrc(*number as u32 + 1),
            };
            write_header(&mut packet, &fields, []).unwrap();
            self.feed.send(mix(*number), &packet).unwrap();
            *next = next.wrapping_add(1);
        }
        self.feed.deliver();
    }

    /// Runs a turn of the worker. Returns the listener, sequence number, timestamp and mix of each
    /// packet that has left.
    fn turn(&mut self) -> Vec<(usize, u16, u32, u64)> {
        let worker = &mut self.rig.worker;
        let delivered = worker.count_delivered();
        worker.take_commands(self.rig.now);
        worker.take_delivered(&delivered, self.rig.now);
        worker.relay_fresh(self.rig.now);
        worker.flush();
        self.rig.now += TICK;
        let kept = worker.take_kept().into_iter();
        let sound = kept.filter(|(_, datagram)| datagram[1] & 0x7f == 111);
        let facts = sound.map(|(to, datagram)| {
            let timestamp = u32::from_be_bytes(datagram[4..8].try_into().unwrap());
            // A header with extensions, and a tag.
            let header = 16 + 4 * usize::from(u16::from_be_bytes([datagram[14], datagram[15]]));
            (
                usize::from(to.port()) - 20_000,
                u16::from_be_bytes([datagram[2], datagram[3]]),
                timestamp,
                (datagram.len() - header - 16 - SIZE) as u64,
            )
        });
        facts.collect()
    }
}

#[test]
fn a_listener_that_goes_from_mix_to_mix_gets_one_stream_without_gap_or_repetition() {
    let mut room = Room::new(1..4);
    let mut mixes = vec![(0, 7)];
    let mut hears = [0; 4];
    let mut last: [Option<(u16, u32)>; 4] = [None; 4];
    let mut heard = [0; 4];
    let (mut opened, mut expected, mut changes) = (0, [0; 4], 0);
    for _ in 0..3_000 {
        // The first listener begins and ceases to talk, others seldom; now and then within a turn
        // of the worker.
        for listener in 1..4 {
            if rand::random_range(0..(8 * listener)) > 0 {
                continue;
            }
            changes += 1;
            if hears[listener] == 0 {
                opened += 1;
                hears[listener] = opened;
                room.open(opened);
                mixes.push((opened, rand::random()));
                room.feed.redirect(route(listener), mix(opened)).unwrap();
            } else {
                let own = std::mem::take(&mut hears[listener]);
                room.feed.redirect(route(listener), mix(0)).unwrap();
                mixes.retain(|(number, _)| *number != own);
                room.feed.remove(mix(own)).unwrap();
            }
        }
        room.tick(&mut mixes);
        for listener in 1..4 {
            expected[listener] += 1;
        }
        // The worker is late now and then.
        if rand::random_range(0..4) > 0 {
            let left = room.turn();
            check(left, &mut last, &mut heard);
        }
    }
    check(room.turn(), &mut last, &mut heard);
    assert!(changes > 100);
    assert_eq!(heard[1..], expected[1..]);
}

/// One packet follows another.
fn check(
    left: Vec<(usize, u16, u32, u64)>,
    last: &mut [Option<(u16, u32)>; 4],
    heard: &mut [usize; 4],
) {
    for (to, sequence, timestamp, _) in left {
        if let Some(last) = last[to] {
            let next = (last.0.wrapping_add(1), last.1.wrapping_add(TICKS));
            assert_eq!((sequence, timestamp), next, "listener {to}");
        }
        last[to] = Some((sequence, timestamp));
        heard[to] += 1;
    }
}

#[test]
fn what_is_heard_after_a_change_is_the_other_mix() {
    let mut room = Room::new(1..2);
    room.open(1);
    let mut mixes = [(0, 0), (1, 500)];
    let mut heard = Vec::new();
    for n in 0..6 {
        match n {
            2 => room.feed.redirect(route(1), mix(1)).unwrap(),
            4 => room.feed.redirect(route(1), mix(0)).unwrap(),
            _ => {}
        }
        room.tick(&mut mixes);
        // Two ticks of which one is before the change, in one turn.
        if n != 1 {
            heard.extend(room.turn().into_iter().map(|(.., of)| of));
        }
    }
    assert_eq!(heard, [0, 0, 1, 1, 0, 0]);
}

#[test]
fn a_change_that_is_overtaken_by_that_of_another_thread_changes_nothing() {
    let mut room = Room::new(1..2);
    room.open(1);
    let mut mixes = [(0, 0), (1, 500)];
    room.tick(&mut mixes);
    room.turn();
    // As if the other thread's came first.
    room.feed.redirect(route(1), mix(1)).unwrap();
    room.feed.redirect_from(route(1), mix(0), mix(0)).unwrap();
    room.tick(&mut mixes);
    let heard: Vec<_> = room.turn().into_iter().map(|(.., of)| of).collect();
    assert_eq!(heard, [1]);
    room.feed.redirect_from(route(1), mix(1), mix(0)).unwrap();
    room.tick(&mut mixes);
    let heard: Vec<_> = room.turn().into_iter().map(|(.., of)| of).collect();
    assert_eq!(heard, [0]);
}

#[test]
fn who_was_sent_the_frame_already_does_not_get_it_again() {
    let mut room = Room::new(1..2);
    room.open(1);
    room.tick(&mut [(0, 0)]);
    let before = room.turn();
    // The same frame once more, of the other mix: the change comes behind the frame.
    room.feed.redirect(route(1), mix(1)).unwrap();
    room.timestamp = room.timestamp.wrapping_sub(TICKS);
    let mut own = [(1, 0)];
    room.tick(&mut own);
    assert_eq!(room.turn(), []);
    room.tick(&mut own);
    let after = room.turn();
    let ((.., sequence, timestamp, _), (.., next, later, _)) = (before[0], after[0]);
    assert_eq!((next, later), (sequence + 1, timestamp.wrapping_add(TICKS)));
}

#[test]
fn a_forwarder_goes_from_mix_to_mix_as_a_listener_does() {
    let mut room = Room::new(1..1);
    room.open(1);
    let collector = Collector::new(64);
    let id = RouteId {
        worker: 0,
        serial: 9,
    };
    room.rig
        .inbox
        .send(Command::Outlet(OutletCommand::Add(Box::new(NewOutlet {
            id,
            from: mix(0).into(),
            options: RouteOptions::default(),
            encodings: Encodings::Best,
            end: OutletEnd::Collect(CollectInput::new(&collector, 5)),
        }))));
    let mut mixes = [(0, 0), (1, 500)];
    for n in 0..40 {
        if n % 3 == 0 {
            room.feed.redirect(id, mix(n / 3 % 2)).unwrap();
        }
        room.tick(&mut mixes);
        room.turn();
    }
    let taken: Vec<_> = std::iter::from_fn(|| collector.take()).collect();
    assert_eq!(taken.len(), 40);
    for pair in taken.windows(2) {
        let [before, after] = [&pair[0].packet, &pair[1].packet];
        assert_eq!(after.seq().0, before.seq().0 + 1);
        assert_eq!(after.timestamp(), before.timestamp().wrapping_add(TICKS));
        assert_eq!((after.ssrc(), pair[1].key), (before.ssrc(), 5));
    }
    let lengths: Vec<_> = taken
        .iter()
        .take(7)
        .map(|it| it.packet.payload().len() - SIZE)
        .collect();
    assert_eq!(lengths, [0, 0, 0, 1, 1, 1, 0]);
}
