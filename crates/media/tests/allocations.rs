//! Relaying allocates nothing in steady state.
#![allow(clippy::expect_used, unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

use portunus_media::testing::FanOut;

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

#[test]
fn nothing_is_allocated_for_a_relayed_packet() {
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
