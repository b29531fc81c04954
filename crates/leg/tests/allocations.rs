//! A packet that passes from one leg to another allocates nothing in steady state.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::expect_used,
    unsafe_code,
    reason = "a test fails by a panic"
)]

mod rig;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

use portunus_leg::Profile;
use portunus_rtp::Pt;

use rig::{PCMU, Phone, Rig};

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
fn nothing_is_allocated_for_a_packet() {
    let rig = Rig::new(1);
    let (mut alice, one) = (Phone::secure(Profile::AeadAes128Gcm), rig.leg(|_| {}));
    let (bob, other) = (Phone::secure(Profile::Aes128CmSha1_80), rig.leg(|_| {}));
    one.set_remote(alice.remote(&[PCMU]));
    other.set_remote(bob.remote(&[PCMU]));
    other.route_from(Some(one.source()));
    let mut buffer = [0; 2_048];
    let mut pass = |count: usize| {
        let packets: Vec<Vec<u8>> = (0..count)
            .map(|n| alice.packet(Pt(0), &[n as u8; 160]))
            .collect();
        let before = ALLOCATIONS.load(Ordering::Relaxed);
        for packet in &packets {
            alice.send_as_it_is(&one, packet);
            bob.rtp.recv(&mut buffer).expect("it comes");
        }
        ALLOCATIONS.load(Ordering::Relaxed) - before
    };
    // As many as are remembered for those who ask again, and more.
    pass(3_000);
    assert_eq!(pass(1_000), 0);
}
