//! A peer that deliberately speaks SCTP badly.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use portunus_sdp::negotiated::DtlsRole;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

use super::{
    Data, DataConfig, DataError, DataEvent, DataMessage, DataOptions, DataPayload, MAX_LABEL,
    Reliability,
};

const CONFIG: DataConfig = DataConfig {
    remote_port: 5_000,
    max_message_size: 0,
};

/// Sets the CRC32c of an SCTP packet (RFC 9260 appendix A), so that damaged packets pass the check.
fn set_checksum(packet: &mut [u8]) {
    if packet.len() < 12 {
        return;
    }
    packet[8..12].fill(0);
    let mut crc = u32::MAX;
    for byte in packet.iter() {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 {
                (crc >> 1) ^ 0x82F6_3B78
            } else {
                crc >> 1
            };
        }
    }
    packet[8..12].copy_from_slice(&(!crc).to_le_bytes());
}

/// Damages fields, lengths and chunk types, or joins chunks of different packets.
fn damage(rng: &mut StdRng, packet: &mut Vec<u8>, seen: &[Vec<u8>]) {
    match rng.random_range(0..6) {
        0 => packet.truncate(rng.random_range(0..=packet.len())),
        1 => {
            if let Some(other) = seen.choose(rng)
                && other.len() > 12
            {
                packet.extend_from_slice(&other[12..]);
            }
        }
        2 if packet.len() > 16 => {
            let kinds = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 14, 64, 130, 192, 194];
            packet[12] = *kinds.choose(rng).unwrap();
        }
        3 if packet.len() > 16 => {
            let len = rng.random_range(0..64_u16).to_be_bytes();
            packet[14..16].copy_from_slice(&len);
        }
        4 if packet.len() > 20 => {
            let at = rng.random_range(12..packet.len() - 4);
            let edge = [0, 1, u32::MAX, u32::MAX - 1, 1 << 31, 4]
                .choose(rng)
                .unwrap();
            packet[at..at + 4].copy_from_slice(&edge.to_be_bytes());
        }
        _ => {
            for _ in 0..rng.random_range(1..4) {
                let at = rng.random_range(0..packet.len().max(1));
                if let Some(byte) = packet.get_mut(at) {
                    *byte ^= 1 << rng.random_range(0..8);
                }
            }
        }
    }
    set_checksum(packet);
}

/// Returns how many messages arrived nevertheless.
fn torment(seed: u64) -> usize {
    let mut arrived = 0;
    let mut rng = StdRng::seed_from_u64(seed);
    let mut now = Instant::now();
    let mut sides = [
        Data::new(DtlsRole::Client, CONFIG),
        Data::new(DtlsRole::Server, CONFIG),
    ];
    let mut seen = Vec::new();
    let fast = DataOptions {
        ordered: false,
        reliability: Reliability::MaxRetransmits(1),
    };
    let timed = DataOptions {
        ordered: true,
        reliability: Reliability::MaxLifetime(Duration::from_millis(50)),
    };
    for round in 0..150 {
        now += Duration::from_millis(rng.random_range(1..300));
        for (from, to) in [(0, 1), (1, 0)] {
            if round % 7 == from {
                let options = *[DataOptions::default(), fast, timed]
                    .choose(&mut rng)
                    .unwrap();
                let label = format!("channel {}", rng.random_range(0..4));
                let bytes = vec![7; rng.random_range(0..5_000)];
                if sides[from].open(&label, "", options).is_ok() {
                    let _ = sides[from].send(&label, DataPayload::Binary(&bytes));
                }
                if rng.random_bool(0.1) {
                    let _ = sides[from].close(&label);
                }
            }
            sides[from].handle_timeout(now);
            let mut packets = Vec::new();
            sides[from].transmit(now, |packet| packets.push(packet.to_vec()));
            for mut packet in packets {
                if seen.len() < 50 || rng.random_bool(0.1) {
                    seen.push(packet.clone());
                }
                if rng.random_bool(0.3) {
                    let mut damaged = packet.clone();
                    damage(&mut rng, &mut damaged, &seen);
                    sides[to].receive(now, &damaged);
                }
                if rng.random_bool(0.1) {
                    damage(&mut rng, &mut packet, &seen);
                }
                if rng.random_bool(0.9) {
                    sides[to].receive(now, &packet);
                }
            }
            while let Some(event) = sides[to].poll_event() {
                arrived += usize::from(matches!(event, DataEvent::Message { .. }));
            }
        }
    }
    arrived
}

#[test]
fn a_hostile_peer_stops_nothing_but_itself() {
    let rounds = std::env::var("PORTUNUS_TORMENT")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(200_u64);
    let arrived: usize = (0..rounds).map(torment).sum();
    assert!(
        arrived as u64 > rounds,
        "{arrived} messages arrived in {rounds} rounds"
    );
}

/// Sends 1,000 small messages to a side that echoes each, over links that lose, delay and reorder
/// packets. Returns whether all came back within two minutes of virtual time.
fn echo(seed: u64) -> bool {
    const MESSAGES: usize = 1_000;
    let mut rng = StdRng::seed_from_u64(seed);
    let start = Instant::now();
    let mut now = start;
    let mut sides = [
        Data::new(DtlsRole::Client, CONFIG),
        Data::new(DtlsRole::Server, CONFIG),
    ];
    let lost = [0.0, 0.01, 0.1, 0.3][seed as usize % 4];
    let longest = [1, 20, 200][seed as usize / 4 % 3];
    let mut on_the_way: Vec<(Instant, usize, Vec<u8>)> = Vec::new();
    sides[0].open("echo", "", DataOptions::default()).unwrap();
    let (mut sent, mut back) = (0, Vec::new());
    let mut waiting = VecDeque::new();
    while now < start + Duration::from_secs(120) {
        let due = sides.iter().filter_map(Data::poll_timeout);
        let next = due.chain(on_the_way.iter().map(|(at, ..)| *at)).min();
        now = now.max(next.unwrap_or(now)) + Duration::from_micros(rng.random_range(1..2_000));
        on_the_way.sort_by_key(|(at, ..)| *at);
        let arrived = on_the_way.partition_point(|(at, ..)| *at <= now);
        for (_, to, packet) in on_the_way.drain(..arrived) {
            sides[to].receive(now, &packet);
        }
        for (side, data) in sides.iter_mut().enumerate() {
            data.handle_timeout(now);
            while let Some(event) = data.poll_event() {
                match event {
                    DataEvent::Open { .. } if side == 0 => {
                        while sent < MESSAGES {
                            let bytes = (sent as u32).to_be_bytes();
                            data.send("echo", DataPayload::Binary(&bytes)).unwrap();
                            sent += 1;
                        }
                    }
                    DataEvent::Message { message, .. } => match message {
                        DataMessage::Binary(bytes) if side == 1 => waiting.push_back(bytes),
                        DataMessage::Binary(bytes) => back.push(bytes),
                        DataMessage::Text(text) => panic!("{text}"),
                    },
                    _ => {}
                }
            }
        }
        while let Some(bytes) = waiting.pop_front() {
            sides[1].send("echo", DataPayload::Binary(&bytes)).unwrap();
        }
        for (side, data) in sides.iter_mut().enumerate() {
            let mut packets = Vec::new();
            data.transmit(now, |packet| packets.push(packet.to_vec()));
            for packet in packets {
                if !rng.random_bool(lost) {
                    let later = Duration::from_micros(rng.random_range(0..longest * 1_000));
                    on_the_way.push((now + later, 1 - side, packet));
                }
            }
        }
        if back.len() == MESSAGES {
            let order = (0..MESSAGES as u32).map(|n| n.to_be_bytes().to_vec());
            assert!(back.iter().cloned().eq(order));
            return true;
        }
    }
    false
}

#[test]
fn many_small_messages_come_back_over_bad_links() {
    for seed in 0..60 {
        assert!(echo(seed), "seed {seed}");
    }
}

#[test]
fn an_init_that_comes_late_ends_nothing() {
    let now = Instant::now();
    let mut sides = [
        Data::new(DtlsRole::Client, CONFIG),
        Data::new(DtlsRole::Server, CONFIG),
    ];
    let mut init = None;
    sides[0].open("chat", "", DataOptions::default()).unwrap();
    for _ in 0..4 {
        for (from, to) in [(0, 1), (1, 0)] {
            let mut packets = Vec::new();
            sides[from].transmit(now, |packet| packets.push(packet.to_vec()));
            for packet in packets {
                sides[to].receive(now, &packet);
                init.get_or_insert(packet);
            }
        }
    }
    sides[1].receive(now, &init.unwrap());
    let message = |data: &mut Data| {
        std::iter::from_fn(|| data.poll_event())
            .find(|event| matches!(event, DataEvent::Message { .. } | DataEvent::Closed { .. }))
    };
    sides[0]
        .send("chat", DataPayload::Text("still here?"))
        .unwrap();
    let mut packets = Vec::new();
    sides[0].transmit(now, |packet| packets.push(packet.to_vec()));
    packets
        .iter()
        .for_each(|packet| sides[1].receive(now, packet));
    assert!(matches!(
        message(&mut sides[1]),
        Some(DataEvent::Message { message: DataMessage::Text(text), .. }) if text == "still here?"
    ));
}

/// Exchanges packets until both sides are silent.
fn settle(sides: &mut [Data; 2], now: Instant) {
    for _ in 0..8 {
        for (from, to) in [(0, 1), (1, 0)] {
            let mut packets = Vec::new();
            sides[from].transmit(now, |packet| packets.push(packet.to_vec()));
            packets
                .iter()
                .for_each(|packet| sides[to].receive(now, packet));
        }
    }
}

#[test]
fn a_channel_opens_while_another_is_closed_by_the_peer() {
    let now = Instant::now();
    let mut sides = [
        Data::new(DtlsRole::Client, CONFIG),
        Data::new(DtlsRole::Server, CONFIG),
    ];
    settle(&mut sides, now);
    sides[1].open("first", "", DataOptions::default()).unwrap();
    sides[1].send("first", DataPayload::Text("1")).unwrap();
    settle(&mut sides, now);
    sides[0].close("first").unwrap();
    let is_closed = |data: &mut Data| {
        std::iter::from_fn(|| data.poll_event())
            .any(|event| matches!(event, DataEvent::Closed { label } if label == "first"))
    };
    // Step by step, to act before the exchange is complete.
    for (from, to) in [(0, 1), (1, 0), (0, 1), (1, 0)] {
        let mut packets = Vec::new();
        sides[from].transmit(now, |packet| packets.push(packet.to_vec()));
        packets
            .iter()
            .for_each(|packet| sides[to].receive(now, packet));
        if is_closed(&mut sides[1]) {
            break;
        }
    }
    // The stream is still being reset.
    sides[1].open("second", "", DataOptions::default()).unwrap();
    sides[1].send("second", DataPayload::Text("2")).unwrap();
    settle(&mut sides, now);
    sides[1].open("third", "", DataOptions::default()).unwrap();
    sides[1].send("third", DataPayload::Text("3")).unwrap();
    settle(&mut sides, now);
    let heard: Vec<(String, DataMessage)> = std::iter::from_fn(|| sides[0].poll_event())
        .filter_map(|event| match event {
            DataEvent::Message { label, message, .. } => Some((label, message)),
            _ => None,
        })
        .collect();
    let said = [("first", "1"), ("second", "2"), ("third", "3")];
    let said = said.map(|(label, text)| (label.to_owned(), DataMessage::Text(text.to_owned())));
    assert_eq!(heard, said);
}

#[test]
fn the_longest_label_gets_through() {
    let now = Instant::now();
    let mut sides = [
        Data::new(DtlsRole::Client, CONFIG),
        Data::new(DtlsRole::Server, CONFIG),
    ];
    settle(&mut sides, now);
    let longest = "l".repeat(MAX_LABEL);
    let long = format!("{longest}l");
    let options = DataOptions::default;
    assert_eq!(sides[1].open(&long, "", options()), Err(DataError::Name));
    sides[1].open(&longest, "", options()).unwrap();
    sides[1].send(&longest, DataPayload::Text("1")).unwrap();
    settle(&mut sides, now);
    let mut events = std::iter::from_fn(|| sides[0].poll_event());
    let is_heard = |event| matches!(event, DataEvent::Message { label, .. } if label == longest);
    assert!(events.any(is_heard));
}

#[test]
fn malformed_packets_are_counted_and_end_nothing() {
    let now = Instant::now();
    let mut sides = [
        Data::new(DtlsRole::Client, CONFIG),
        Data::new(DtlsRole::Server, CONFIG),
    ];
    sides[0].open("chat", "", DataOptions::default()).unwrap();
    let mut last = Vec::new();
    for _ in 0..8 {
        for (from, to) in [(0, 1), (1, 0)] {
            let mut packets = Vec::new();
            sides[from].transmit(now, |packet| packets.push(packet.to_vec()));
            for packet in packets {
                sides[to].receive(now, &packet);
                if from == 0 {
                    last = packet;
                }
            }
        }
    }
    assert!(!sides[1].take_malformed());
    // A SACK, a HEARTBEAT and a DATA chunk that are too short, for a known association and with the
    // right checksum.
    for chunk in [&[3, 0, 0, 4][..], &[4, 0, 0, 4], &[0, 3, 0, 8, 0, 0, 0, 1]] {
        let mut packet = [&last[..12], chunk].concat();
        set_checksum(&mut packet);
        for _ in 0..100 {
            sides[1].receive(now, &packet);
            assert!(sides[1].take_malformed(), "{chunk:?}");
        }
    }
    sides[0].send("chat", DataPayload::Text("hello")).unwrap();
    settle(&mut sides, now);
    let mut events = std::iter::from_fn(|| sides[1].poll_event());
    assert!(events.any(|event| matches!(event, DataEvent::Message { .. })));
}
