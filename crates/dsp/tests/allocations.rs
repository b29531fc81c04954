//! Playing and skipping a participant allocates nothing in steady state.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    unsafe_code,
    reason = "a test fails by a panic, and its allocator counts"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use portunus_dsp::{
    AudioCodec, Channels, Content, Format, IncomingPacket, Receiver, ReceiverOptions, SampleRate,
};

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

struct Counting;

// SAFETY: all calls are passed to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's guarantees hold for this call, too.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's guarantees hold for this call, too.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's guarantees hold for this call, too.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The payloads of a second of a tone.
fn payloads(codec: AudioCodec) -> Vec<Vec<u8>> {
    let mut encoder = opusic_c::Encoder::new(
        opusic_c::Channels::Mono,
        opusic_c::SampleRate::Hz48000,
        opusic_c::Application::Voip,
    )
    .unwrap();
    (0..50)
        .map(|packet| match codec {
            AudioCodec::Opus => {
                let samples: Vec<f32> = (0..960)
                    .map(|index| 0.3 * ((packet * 960 + index) as f32 * 0.02).sin())
                    .collect();
                let mut bytes = [0; 1_500];
                let len = encoder.encode_float_to_slice(&samples, &mut bytes).unwrap();
                bytes[..len].to_vec()
            }
            AudioCodec::Pcma | AudioCodec::Pcmu | AudioCodec::G722 => {
                (0..160).map(|index| (packet * 31 + index) as u8).collect()
            }
        })
        .collect()
}

/// With losses, with stalls that shorten the audio, and with drift that lengthens it.
#[test]
fn nothing_is_allocated_for_a_frame() {
    for codec in [AudioCodec::Opus, AudioCodec::Pcma, AudioCodec::G722] {
        for skipped in [false, true] {
            let payloads = payloads(codec);
            let format = Format {
                rate: SampleRate::Hz48000,
                channels: Channels::Stereo,
            };
            let mut receiver = Receiver::new(ReceiverOptions { codec, format });
            let mut frame = vec![0.0; format.frame_len()];
            let start = Instant::now();
            let mut before = 0;
            for tick in 0..5_000_u64 {
                if tick == 2_400 {
                    before = ALLOCATIONS.load(Ordering::Relaxed);
                }
                let now = start + Duration::from_micros(tick * 20_010);
                let stalled = tick % 500 > 490;
                let packets = match tick % 500 {
                    0 => tick.saturating_sub(9)..tick + 1,
                    _ => tick..tick + 1,
                };
                for packet in packets.filter(|packet| !stalled && packet % 23 != 0) {
                    receiver.push(&IncomingPacket {
                        seq: packet,
                        timestamp: packet as u32 * codec.clock_rate() / 50,
                        payload: &payloads[packet as usize % 50],
                        content: Content::Codec,
                        level: Some(30),
                        arrival: now,
                    });
                }
                receiver.due_level(now);
                if skipped {
                    receiver.skip(now);
                } else {
                    receiver.play(now, &mut frame);
                }
            }
            let allocations = ALLOCATIONS.load(Ordering::Relaxed) - before;
            let stats = receiver.stats();
            assert!(
                skipped || stats.shortened > 0 && stats.concealed > 0,
                "{stats:?}"
            );
            assert_eq!(allocations, 0, "{codec:?}, skipped: {skipped}");
        }
    }
}
