#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::*;

const A: SourceKey = SourceKey(1);
const B: SourceKey = SourceKey(2);

fn packet(seq: u64, timestamp: u32, arrival: Instant) -> Packet {
    let mut packet = Packet::empty(arrival);
    packet.seq = SeqNo(seq);
    packet.header.timestamp = timestamp;
    packet
}

fn forward(
    numbering: &mut Numbering,
    source: SourceKey,
    packet: &Packet,
    clock_rate: u32,
    marker: bool,
) -> Option<Sent> {
    let mut sent = Sent::default();
    numbering
        .forward(source, packet, clock_rate, marker, &mut sent)
        .then_some(sent)
}

#[test]
fn what_is_left_out_leaves_no_gap() {
    let now = Instant::now();
    let mut numbering = Numbering::starting_after(99);
    let mut out = Vec::new();
    for seq in 10..20 {
        let packet = packet(seq, 0, now);
        if seq % 3 == 0 {
            numbering.skip(A, &packet);
        } else {
            out.push(
                forward(&mut numbering, A, &packet, 90_000, false)
                    .unwrap()
                    .out
                    .0,
            );
        }
    }
    assert_eq!(out, (100..107).collect::<Vec<_>>());
}

#[test]
fn what_was_lost_keeps_its_number_and_may_come_late() {
    let now = Instant::now();
    let mut numbering = Numbering::starting_after(99);
    let mut send =
        |seq| forward(&mut numbering, A, &packet(seq, 0, now), 90_000, false).map(|s| s.out.0);
    assert_eq!(send(10), Some(100));
    assert_eq!(send(13), Some(103));
    assert_eq!(send(12), Some(102));
    assert_eq!(send(11), Some(101));
    assert_eq!(send(9), None, "it is from before the first");
}

#[test]
fn a_source_switch_continues_numbers_timestamps_and_picture_ids() {
    let start = Instant::now();
    let mut numbering = Numbering::starting_after(0);
    let mut first = packet(500, 1_000, start);
    first.vp8 = Some(Vp8Ids {
        picture: 0x7fff,
        tl0: 255,
    });
    let sent = forward(&mut numbering, A, &first, 90_000, false).unwrap();
    assert_eq!((sent.out.0, sent.timestamp_offset), (1, 0));
    let mut second = packet(7, 3_000_000, start + Duration::from_millis(100));
    second.vp8 = Some(Vp8Ids {
        picture: 12,
        tl0: 3,
    });
    let sent = forward(&mut numbering, B, &second, 90_000, false).unwrap();
    assert_eq!(sent.out.0, 2);
    assert_eq!(
        3_000_000u32.wrapping_add(sent.timestamp_offset),
        1_000 + 9_000
    );
    let ids = Vp8Ids {
        picture: 12,
        tl0: 3,
    }
    .plus(sent.ids_offset);
    assert_eq!(ids, Vp8Ids { picture: 0, tl0: 0 }, "15 and 8 bits wrap");
}

#[test]
fn a_left_out_vp8_frame_closes_the_picture_ids_once() {
    let now = Instant::now();
    let mut numbering = Numbering::starting_after(0);
    let vp8 = |seq, timestamp, picture| {
        let mut packet = packet(seq, timestamp, now);
        packet.vp8 = Some(Vp8Ids { picture, tl0: 0 });
        packet
    };
    forward(&mut numbering, A, &vp8(1, 0, 10), 90_000, false).unwrap();
    numbering.skip(A, &vp8(2, 3_000, 11));
    numbering.skip(A, &vp8(3, 3_000, 11));
    let sent = forward(&mut numbering, A, &vp8(4, 6_000, 12), 90_000, false).unwrap();
    assert_eq!(sent.out.0, 2);
    assert_eq!(
        Vp8Ids {
            picture: 12,
            tl0: 0
        }
        .plus(sent.ids_offset)
        .picture,
        11
    );
}

#[test]
fn only_what_was_sent_lately_is_remembered() {
    let now = Instant::now();
    let mut numbering = Numbering::starting_after(0);
    for seq in 0..2_000 {
        forward(&mut numbering, A, &packet(seq, 0, now), 90_000, false).unwrap();
    }
    assert!(numbering.sent(SeqNo(1)).is_none());
    assert_eq!(numbering.sent(SeqNo(2_000)).unwrap().seq, SeqNo(1_999));
    assert!(numbering.sent(SeqNo(2_001)).is_none());
}

#[test]
fn another_source_may_get_the_key_of_one_that_ended() {
    let now = Instant::now();
    let mut numbering = Numbering::starting_after(0);
    forward(&mut numbering, A, &packet(5_000, 0, now), 90_000, false).unwrap();
    numbering.forget(A);
    assert!(
        numbering.sent(SeqNo(1)).is_none(),
        "nothing of it is sent again"
    );
    let sent = forward(&mut numbering, A, &packet(3, 0, now), 90_000, false).unwrap();
    assert_eq!(sent.out, SeqNo(2), "the numbers go on");
}

proptest! {
    /// Whatever is lost, late, left out or switched: no number is given to two different packets.
    #[test]
    fn a_number_is_given_once(steps in prop::collection::vec((0u64..40, any::<bool>(), 0usize..2), 1..300)) {
        let now = Instant::now();
        let mut numbering = Numbering::starting_after(7);
        let mut given = std::collections::HashMap::new();
        let mut seen = std::collections::HashSet::new();
        let mut base = 100u64;
        for (delta, skip, source) in steps {
            base += 1;
            let (source, seq) = (SourceKey(source), base + delta - 20);
            if !seen.insert((source, seq)) {
                continue;
            }
            let packet = packet(seq, 0, now);
            if skip {
                numbering.skip(source, &packet);
            } else if let Some(sent) = forward(&mut numbering, source, &packet, 90_000, false) {
                prop_assert!(given.insert(sent.out, (source, seq)).is_none(), "{sent:?}");
            }
        }
    }
}
