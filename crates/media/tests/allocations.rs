//! Relaying allocates nothing in steady state.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    unsafe_code,
    reason = "the counting allocator is unsafe, and a failed test panics"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use portunus_media::testing::{FanOut, NodePath, Simulation};
use portunus_media::{IngestFeed, IngestOptions, KeyframeCache, RouteOptions, packet_feed};
use portunus_rtc::StreamConfig;
use portunus_rtc::bandwidth::{DataRate, Layering};
use portunus_rtc::testing::{BottleneckLink, without_feedback};
use portunus_sdp::negotiated::Codec;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

/// Allocations while a simulated worker runs.
static AT_WORK: AtomicU64 = AtomicU64::new(0);
static IS_AT_WORK: AtomicBool = AtomicBool::new(false);

fn count() {
    ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
    if IS_AT_WORK.load(Ordering::Relaxed) {
        AT_WORK.fetch_add(1, Ordering::Relaxed);
    }
}

struct Counting;

// SAFETY: every call is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: the caller's promises are passed on.
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
    // A keyframe every 1.5 seconds: longer than the history, shorter than the cache.
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

fn link(kbps: u64) -> BottleneckLink {
    BottleneckLink::of(DataRate::kbps(kbps))
}

/// Viewers of a simulcast publisher, two with the top layer and two with lower ones, with
/// recording, pacing, feedback every 100 ms, and decisions. All of that is counted, and so are the
/// publisher's reports, RTCP and timers. Only ICE's consent checks, one in five seconds a peer, are
/// not.
fn adapting(workers: usize, codec: Codec) {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let mut simulation = Simulation::of_workers(workers, 1);
    simulation.at_work = |works| IS_AT_WORK.store(works, Ordering::Relaxed);
    let camera = simulation.publish_as(codec, Layering::Encodings, &[150, 500, 1_700]);
    for (n, kbps) in [3_000, 3_000, 900, 400].into_iter().enumerate() {
        simulation.worker = (n % workers) as u16;
        let down = simulation.link(link(kbps));
        simulation.watch(camera, down);
    }
    // Until histories, logs and queues have their size.
    simulation.run(30.0);
    let before = AT_WORK.load(Ordering::Relaxed);
    let mut waited = [0; 4];
    for _ in 0..2_000 {
        simulation.run(0.01);
        for (n, waited) in waited.iter_mut().enumerate() {
            *waited = simulation.waiting(n).unwrap_or(0).max(*waited);
        }
    }
    let allocations = AT_WORK.load(Ordering::Relaxed) - before;
    assert!(waited.iter().all(|waited| *waited > 0), "{waited:?}");
    let received: Vec<u64> = (0..4)
        .map(|n| simulation.received(n, 30.0, 50.0).as_bps() / 1_000)
        .collect();
    assert!(received[0] > 1_500 && received[3] > 150, "{received:?}");
    assert_eq!(allocations, 0);
}

#[test]
fn nothing_is_allocated_for_a_packet_where_links_are_adapted_to() {
    adapting(1, Codec::Vp8);
}

#[test]
fn nothing_is_allocated_for_a_packet_that_another_worker_adapts() {
    adapting(2, Codec::Vp8);
}

/// The viewers' streams started with a lower encoding, so picture numbers are rewritten.
#[test]
fn nothing_is_allocated_for_a_vp9_packet_whose_numbers_are_rewritten() {
    adapting(1, Codec::Vp9);
}

/// A stream of 4 Mbit/s with a keyframe every three seconds, and a viewer that starts with a
/// keyframe and the two seconds after it.
#[test]
fn nothing_is_allocated_for_a_packet_of_what_is_kept() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let mut simulation = Simulation::new(1);
    simulation.at_work = |works| IS_AT_WORK.store(works, Ordering::Relaxed);
    let camera = simulation.publish(Layering::Encodings, &[4_000]);
    let keep = KeyframeCache {
        max_age: Duration::ZERO,
        max_bytes: 0,
    };
    simulation.keep_keyframe(camera, keep);
    let group = |simulation: &mut Simulation| {
        let now = simulation.now;
        simulation.cameras[camera]
            .publisher
            .request_keyframe(0, now);
        simulation.run(3.0);
    };
    // Until history and spare buffers have their size, which the first viewer requires.
    let down = simulation.link(link(50_000));
    simulation.watch(camera, down);
    for _ in 0..6 {
        group(&mut simulation);
    }
    let now = simulation.now;
    simulation.cameras[camera]
        .publisher
        .request_keyframe(0, now);
    simulation.run(2.0);
    let down = simulation.link(link(20_000));
    let streams = StreamConfig::default();
    let viewer = simulation.watch_as(camera, down, streams, without_feedback);
    simulation.run(0.4);
    let (before, seen) = (
        AT_WORK.load(Ordering::Relaxed),
        simulation.watchers[viewer].packets.len(),
    );
    simulation.run(0.6);
    let allocations = AT_WORK.load(Ordering::Relaxed) - before;
    let packets = simulation.watchers[viewer].packets.len() - seen;
    assert!(packets > 300, "{packets} packets: it catches up");
    assert_eq!(allocations, 0);
}

/// A stream that crosses to another node, and is watched there, over a link that loses one packet
/// in twenty: sealing, opening, requests, answers and reports.
#[test]
fn nothing_is_allocated_for_a_packet_that_crosses_to_another_node() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let mut simulation = Simulation::of_workers(2, 1);
    simulation.at_work = |works| IS_AT_WORK.store(works, Ordering::Relaxed);
    simulation.join_nodes(NodePath {
        delay: Duration::from_millis(10),
        jitter: Duration::ZERO,
        loss: 0.05,
    });
    let camera = simulation.publish(Layering::Encodings, &[1_500]);
    let far = simulation.make_known(camera, 1);
    simulation.open_video(far, 0, RouteOptions::default());
    simulation.open_audio(far);
    let down = simulation.link(link(50_000));
    let viewer = simulation.watch_far(far, down);
    simulation.run(30.0);
    let (before, seen) = (
        AT_WORK.load(Ordering::Relaxed),
        simulation.watchers[viewer].packets.len(),
    );
    simulation.run(10.0);
    let allocations = AT_WORK.load(Ordering::Relaxed) - before;
    let packets = simulation.watchers[viewer].packets.len() - seen;
    assert!(packets > 1_000, "{packets}");
    let [near, _] = simulation.node_link_stats();
    assert!(near.retransmitted_packets > 100, "{near:?}");
    assert_eq!(allocations, 0);
}
