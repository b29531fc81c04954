//! A room in steady state allocates nothing, and a listener takes little memory.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    missing_docs,
    unsafe_code,
    reason = "a test fails by a panic, and its allocator counts"
)]

#[path = "rig/mod.rs"]
mod rig;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::time::Instant;

use portunus_dsp::{
    AnnouncementId, AnnouncementState, AudioCodec, Content, Encoding, FRAME, IncomingPacket, MixId,
    Mixture, Output, ParticipantId, ParticipantOptions, Room, RoomOptions, TalkOptions, level,
};
use rig::{ENCODING, MONO_16, caller, encoder, participant, speech};

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    static BYTES: Cell<i64> = const { Cell::new(0) };
}

/// Counts the allocations of this thread.
struct Counting;

fn count(allocations: u64, bytes: i64) {
    // A thread that ends has no counters any more.
    let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + allocations));
    let _ = BYTES.try_with(|count| count.set(count.get() + bytes));
}

// SAFETY: all calls are passed to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(1, layout.size() as i64);
        // SAFETY: the caller's guarantees hold for this call, too.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(0, -(layout.size() as i64));
        // SAFETY: the caller's guarantees hold for this call, too.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(1, size as i64 - layout.size() as i64);
        // SAFETY: the caller's guarantees hold for this call, too.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Receives everything, and keeps nothing.
#[derive(Default)]
struct Nowhere {
    packets: u64,
}

impl Output for Nowhere {
    fn opened(&mut self, _: MixId, _: Encoding) {}
    fn closed(&mut self, _: MixId) {}
    fn hears(&mut self, _: ParticipantId, _: Option<MixId>) {}
    fn packet(&mut self, _: MixId, _: u32, _: bool, _: &[u8]) {
        self.packets += 1;
    }
    fn talking(&mut self, _: ParticipantId, _: bool) {}
    fn sound(&mut self, _: Option<usize>, _: &[f32]) {}
    fn announcement(&mut self, _: AnnouncementId, _: AnnouncementState) {}
}

#[test]
fn nothing_is_allocated_for_a_frame() {
    let mut room = Room::new(RoomOptions {
        format: MONO_16,
        loudest: 8,
        groups: 1,
    });
    // 1 to 4 speak, one of them with noise and one loudly. The others listen, partly by telephone.
    for id in 1..=50 {
        let codec = if id % 5 == 0 {
            AudioCodec::Pcma
        } else {
            AudioCodec::Opus
        };
        let options = ParticipantOptions {
            denoise: id == 2,
            gain: if id == 3 { 8.0 } else { 1.0 },
            group: Some(0),
            talk: Some(TalkOptions {
                packets: 20,
                level: 25,
            }),
            encoding: Encoding { codec, ..ENCODING },
            ..participant()
        };
        room.join(ParticipantId(id), options).expect("a place");
        room.connect(ParticipantId(id), true);
    }
    room.listen(None, true).expect("all are heard");
    room.subscribe(Mixture::Group(0), ENCODING, false)
        .expect("a group");
    let mut senders: Vec<_> = (1..=4).map(|_| encoder(MONO_16)).collect();
    let mut payload = vec![0; 1_276];
    let mut now = Instant::now();
    let mut out = Nowhere::default();
    let mut jobs = Vec::new();
    let mut allocations = 0;
    for frame in 0..400 {
        now += FRAME;
        for (id, encoder) in (1..).zip(&mut senders) {
            let sound = speech(MONO_16, id, 0.7, frame);
            let length = encoder
                .encode_float_to_slice(&sound, &mut payload)
                .expect("a packet");
            let packet = IncomingPacket {
                seq: frame,
                timestamp: frame as u32 * 960,
                payload: &payload[..length],
                content: Content::Codec,
                level: Some(level::level(&sound)),
                arrival: now,
            };
            room.push(ParticipantId(id), &packet);
        }
        let before = ALLOCATIONS.get();
        room.mix(now, &mut out);
        room.take_jobs(&mut jobs);
        for mut job in jobs.drain(..) {
            job.run();
            room.put_back(job);
        }
        room.emit(&mut out);
        if frame >= 200 {
            allocations += ALLOCATIONS.get() - before;
        }
    }
    assert!(room.stats().decoded > 1_000);
    assert!(out.packets > 2_000);
    assert_eq!(allocations, 0);
}

/// A packet of redundant audio (RFC 2198): a payload and the one before it.
fn red(before: &[u8], payload: &[u8], packet: &mut Vec<u8>) {
    packet.clear();
    if !before.is_empty() {
        let header = (960 << 10) | before.len() as u32;
        packet.extend([
            0x80 | 111,
            (header >> 16) as u8,
            (header >> 8) as u8,
            header as u8,
        ]);
    }
    packet.push(111);
    packet.extend_from_slice(before);
    packet.extend_from_slice(payload);
}

/// Turns of two seconds: one talks alone and is relayed, then another interrupts. Losses are
/// recovered by RED and in-band FEC.
#[test]
fn nothing_is_allocated_where_talkers_take_turns() {
    const TURN: u64 = 100;
    const TURNS: u64 = 24;
    let mut room = Room::new(RoomOptions {
        format: MONO_16,
        loudest: 8,
        groups: 0,
    });
    for id in 0..20 {
        room.join(ParticipantId(id), participant())
            .expect("a place");
        room.connect(ParticipantId(id), true);
    }
    // One sends RED, the other in-band FEC.
    let mut senders: Vec<_> = (0..2)
        .map(|id| {
            let mut encoder = caller(MONO_16, 24_000);
            if id == 1 {
                encoder
                    .set_inband_fec(opusic_c::InbandFec::Mode1)
                    .expect("FEC");
                encoder.set_packet_loss(20).expect("a loss");
            }
            (encoder, vec![0; 1_276], Vec::new(), Vec::new())
        })
        .collect();
    let mut now = Instant::now();
    let mut out = Nowhere::default();
    let mut allocations = 0;
    let mut stats = room.stats();
    for frame in 0..TURNS * TURN {
        now += FRAME;
        let turn = frame / TURN;
        let counted = turn >= TURNS / 2;
        if frame == TURNS / 2 * TURN {
            stats = room.stats();
        }
        for (id, (encoder, payload, before, packet)) in (0..).zip(&mut senders) {
            let talks = turn % 2 == id || frame % TURN > TURN * 3 / 4;
            let sound = if talks {
                speech(MONO_16, id, 0.7, frame)
            } else {
                vec![0.0; MONO_16.frame_len()]
            };
            let length = encoder
                .encode_float_to_slice(&sound, payload)
                .expect("a packet");
            let payload = &payload[..length];
            red(before, payload, packet);
            before.clear();
            before.extend_from_slice(payload);
            if frame % 17 == id {
                continue;
            }
            let is_red = id == 0;
            let packet = IncomingPacket {
                seq: frame,
                timestamp: frame as u32 * 960,
                payload: if is_red { packet } else { payload },
                content: if is_red { Content::Red } else { Content::Codec },
                level: Some(level::level(&sound)),
                arrival: now,
            };
            let count = ALLOCATIONS.get();
            room.push(ParticipantId(id), &packet);
            if counted {
                allocations += ALLOCATIONS.get() - count;
            }
        }
        let count = ALLOCATIONS.get();
        room.tick(now, &mut out);
        if counted {
            allocations += ALLOCATIONS.get() - count;
        }
    }
    let after = room.stats();
    assert!(after.relayed - stats.relayed > 200, "{after:?}");
    assert!(after.decoded - stats.decoded > 200, "{after:?}");
    assert!(after.warmed > stats.warmed);
    for id in 0..2 {
        let state = room.participant(ParticipantId(id)).expect("there");
        let receiver = state.receiver.expect("it sends");
        assert!(receiver.recovered > 0, "{id}: {receiver:?}");
    }
    assert_eq!(allocations, 0);
}

#[test]
fn a_listener_takes_less_than_a_kibibyte() {
    let mut room = Room::new(RoomOptions {
        format: MONO_16,
        loudest: 8,
        groups: 0,
    });
    let mut out = Nowhere::default();
    let before = BYTES.get();
    for id in 0..5_000 {
        room.join(ParticipantId(id), participant())
            .expect("a place");
        room.connect(ParticipantId(id), true);
    }
    let mut now = Instant::now();
    for _ in 0..10 {
        now += FRAME;
        room.tick(now, &mut out);
    }
    let each = (BYTES.get() - before) / 5_000;
    assert!(each < 1_024, "{each} bytes");
}

#[test]
fn what_a_talker_took_is_given_back() {
    let mut room = Room::new(RoomOptions {
        format: MONO_16,
        loudest: 8,
        groups: 0,
    });
    let mut out = Nowhere::default();
    let mut now = Instant::now();
    let mut tick = |room: &mut Room| {
        now += FRAME;
        room.tick(now, &mut out);
        now
    };
    for id in 0..20 {
        room.join(ParticipantId(id), participant())
            .expect("a place");
        room.connect(ParticipantId(id), true);
    }
    for _ in 0..20 {
        tick(&mut room);
    }
    let mut sender = encoder(MONO_16);
    let mut payload = vec![0; 1_276];
    let before = BYTES.get();
    for frame in 0..20 {
        let length = sender
            .encode_float_to_slice(&speech(MONO_16, 1, 0.7, frame), &mut payload)
            .expect("a packet");
        let now = tick(&mut room);
        for id in 0..20 {
            let packet = IncomingPacket {
                seq: frame,
                timestamp: frame as u32 * 960,
                payload: &payload[..length],
                content: Content::Codec,
                level: Some(20),
                arrival: now,
            };
            room.push(ParticipantId(id), &packet);
        }
    }
    for _ in 0..1_100 {
        tick(&mut room);
    }
    // Lists keep their greatest capacity.
    let more = BYTES.get() - before;
    assert!(more < 20_000, "{more} bytes more");
}
