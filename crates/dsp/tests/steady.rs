//! A room in steady state allocates nothing, and a listener takes little.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    missing_docs,
    unsafe_code
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
use rig::{ENCODING, MONO_16, encoder, participant, speech};

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    static BYTES: Cell<i64> = const { Cell::new(0) };
}

/// Counts what this thread allocates.
struct Counting;

fn count(allocations: u64, bytes: i64) {
    // A thread that ends has no counters any more.
    let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + allocations));
    let _ = BYTES.try_with(|count| count.set(count.get() + bytes));
}

// SAFETY: every call is handed on to the system's allocator as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(1, layout.size() as i64);
        // SAFETY: the caller's promises are handed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(0, -(layout.size() as i64));
        // SAFETY: the caller's promises are handed on.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(1, size as i64 - layout.size() as i64);
        // SAFETY: the caller's promises are handed on.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Takes everything, keeps nothing.
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
    // 1 to 4 speak, of which one is a noisy one and one shouts; telephones and others listen.
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
    // Lists keep the room that they once needed.
    let more = BYTES.get() - before;
    assert!(more < 20_000, "{more} bytes more");
}
