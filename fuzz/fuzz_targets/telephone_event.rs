#![no_main]

use std::time::{Duration, Instant};

use libfuzzer_sys::fuzz_target;
use portunus_rtp::telephone_event::{Detector, TelephoneEvent};

// Packets of ten bytes: a pause in units of 10 ms, a marker, a timestamp, a payload.
fuzz_target!(|bytes: &[u8]| {
    if let Ok(event) = TelephoneEvent::parse(bytes) {
        assert_eq!(TelephoneEvent::parse(&event.to_bytes()), Ok(event));
    }
    let (mut detector, mut now) = (Detector::default(), Instant::now());
    let (mut told, mut packets) = (0, 0);
    for packet in bytes.chunks_exact(10) {
        now += Duration::from_millis(10) * u32::from(packet[0]);
        told += detector.timeout(now).iter().count();
        let timestamp = u32::from_be_bytes(packet[2..6].try_into().expect("four bytes"));
        if let Ok(event) = TelephoneEvent::parse(&packet[6..]) {
            packets += 1;
            told += detector
                .take(event, (timestamp, packet[1] & 1 == 1), now)
                .count();
        }
    }
    told += detector.restart().iter().count();
    assert!(told <= packets, "more keys than packets");
});
