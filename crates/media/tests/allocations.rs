//! Relaying allocates nothing in steady state.
#![allow(clippy::expect_used, unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use portunus_media::testing::FanOut;
use portunus_media::{IngestFeed, IngestOptions, KeyframeCache, packet_feed};
use portunus_sdp::negotiated::Codec;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

struct Counting;

// SAFETY: every call is handed on to the system's allocator as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promises are handed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are handed on.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promises are handed on.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Allocations are counted for the whole process: one test at a time.
static TURN: Mutex<()> = Mutex::new(());

#[test]
fn nothing_is_allocated_for_a_relayed_packet() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let mut rig = FanOut::new(50);
    // Three seconds: histories have grown to their window, and buffers to their packets.
    for _ in 0..90 {
        let mut frame = rig.frame(7, 1_100);
        rig.relay(&mut frame);
    }
    rig.settle();
    let frames: Vec<_> = (0..60).map(|_| rig.frame(7, 1_100)).collect();
    let (sent, before) = (rig.sent(), ALLOCATIONS.load(Ordering::Relaxed));
    for mut frame in frames {
        rig.relay(&mut frame);
    }
    let allocations = ALLOCATIONS.load(Ordering::Relaxed) - before;
    assert_eq!(
        rig.sent() - sent,
        60 * 7 * 50,
        "every viewer got every packet"
    );
    assert_eq!(allocations, 0);
}

#[test]
fn nothing_is_allocated_for_a_packet_of_an_ingest_that_keeps_its_keyframe() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let (_feed, packets) = packet_feed(1);
    let options = IngestOptions::rtp(Codec::Vp8, 90_000, IngestFeed::Packets(packets));
    let keep = KeyframeCache {
        max_age: Duration::from_secs(5),
        max_bytes: 0,
    };
    let mut rig = FanOut::of_ingest(50, options, Some(keep));
    // A keyframe each second and a half: longer than the history, shorter than what is kept.
    let frame = |rig: &mut FanOut, n: usize| rig.plain_frame(n.is_multiple_of(45), 7, 1_100);
    for n in 0..225 {
        let mut datagrams = frame(&mut rig, n);
        rig.take_in(&mut datagrams);
    }
    rig.settle();
    let frames: Vec<_> = (0..90).map(|n| frame(&mut rig, n)).collect();
    let (sent, before) = (rig.sent(), ALLOCATIONS.load(Ordering::Relaxed));
    for mut datagrams in frames {
        rig.take_in(&mut datagrams);
    }
    let allocations = ALLOCATIONS.load(Ordering::Relaxed) - before;
    assert_eq!(rig.sent() - sent, 90 * 7 * 50);
    assert_eq!(allocations, 0);
}
