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
) -> Option<Sent> {
    numbering.forward(source, packet, clock_rate, Part::default())
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
            out.push(forward(&mut numbering, A, &packet, 90_000).unwrap().out.0);
        }
    }
    assert_eq!(out, (100..107).collect::<Vec<_>>());
}

#[test]
fn what_was_lost_keeps_its_number_and_may_come_late() {
    let now = Instant::now();
    let mut numbering = Numbering::starting_after(99);
    let mut send = |seq| forward(&mut numbering, A, &packet(seq, 0, now), 90_000).map(|s| s.out.0);
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
    let sent = forward(&mut numbering, A, &first, 90_000).unwrap();
    assert_eq!((sent.out.0, sent.timestamp_offset), (1, 0));
    let mut second = packet(7, 3_000_000, start + Duration::from_millis(100));
    second.vp8 = Some(Vp8Ids {
        picture: 12,
        tl0: 3,
    });
    let sent = forward(&mut numbering, B, &second, 90_000).unwrap();
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
fn a_source_switch_continues_av1_frame_numbers_and_gaps_stay() {
    let now = Instant::now();
    let mut numbering = Numbering::starting_after(0);
    let av1 = |seq, frame| {
        let mut packet = packet(seq, 0, now);
        packet.frame = Some(frame);
        packet
    };
    let mut out = |source, packet: &Packet| {
        let sent = forward(&mut numbering, source, packet, 90_000).unwrap();
        packet.frame.unwrap().wrapping_add(sent.frame_offset)
    };
    assert_eq!(out(A, &av1(1, 0xfffe)), 0xfffe, "the first stays as it is");
    assert_eq!(out(A, &av1(2, 1)), 1, "an upper layer was left out");
    assert_eq!(out(B, &av1(70, 40_000)), 2);
    assert_eq!(out(B, &av1(71, 40_002)), 4);
    assert_eq!(out(A, &av1(9, 7)), 5);
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
    forward(&mut numbering, A, &vp8(1, 0, 10), 90_000).unwrap();
    numbering.skip(A, &vp8(2, 3_000, 11));
    numbering.skip(A, &vp8(3, 3_000, 11));
    let sent = forward(&mut numbering, A, &vp8(4, 6_000, 12), 90_000).unwrap();
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
        forward(&mut numbering, A, &packet(seq, 0, now), 90_000).unwrap();
    }
    assert!(numbering.sent(SeqNo(1)).is_none());
    assert_eq!(numbering.sent(SeqNo(2_000)).unwrap().seq, SeqNo(1_999));
    assert!(numbering.sent(SeqNo(2_001)).is_none());
}

#[test]
fn another_source_may_get_the_key_of_one_that_ended() {
    let now = Instant::now();
    let mut numbering = Numbering::starting_after(0);
    forward(&mut numbering, A, &packet(5_000, 0, now), 90_000).unwrap();
    numbering.forget(A);
    assert!(
        numbering.sent(SeqNo(1)).is_none(),
        "nothing of it is sent again"
    );
    let sent = forward(&mut numbering, A, &packet(3, 0, now), 90_000).unwrap();
    assert_eq!(sent.out, SeqNo(2), "the numbers go on");
}

#[test]
fn what_is_not_sent_for_a_while_leaves_no_gap() {
    let start = Instant::now();
    let mut numbering = Numbering::starting_after(0);
    forward(&mut numbering, A, &packet(5, 900, start), 90_000).unwrap();
    numbering.interrupt();
    numbering.skip(A, &packet(40_000, 0, start));
    let resumed = packet(50_000, 90_900, start + Duration::from_secs(1));
    let sent = forward(&mut numbering, A, &resumed, 90_000).unwrap();
    assert_eq!((sent.out, sent.timestamp_offset), (SeqNo(2), 0));
    assert!(numbering.sent(SeqNo(1)).is_none());
}

#[test]
fn runs_are_bounded_and_found_again() {
    let now = Instant::now();
    let mut numbering = Numbering::starting_after(0);
    let mut given = Vec::new();
    for frame in 0..1_000u64 {
        for seq in [3 * frame, 3 * frame + 1] {
            let sent = forward(&mut numbering, A, &packet(seq + 10, 0, now), 90_000).unwrap();
            given.push(sent);
        }
        numbering.skip(A, &packet(3 * frame + 2 + 10, 0, now));
    }
    assert_eq!(numbering.ended.len(), MAX_RUNS);
    for sent in given.iter().rev().take(2 * MAX_RUNS - 2) {
        assert_eq!(numbering.sent(sent.out), Some(*sent));
    }
    assert!(numbering.sent(given[100].out).is_none());
}

fn part(top: u8) -> Part {
    Part {
        top: Some(top),
        targets: 0,
    }
}

#[test]
fn another_top_layer_keeps_the_numbers_and_is_remembered() {
    let now = Instant::now();
    let mut numbering = Numbering::starting_after(0);
    let first = numbering
        .forward(A, &packet(5, 0, now), 90_000, part(2))
        .unwrap();
    let second = numbering
        .forward(A, &packet(6, 0, now), 90_000, part(0))
        .unwrap();
    assert_eq!((first.out, second.out), (SeqNo(1), SeqNo(2)));
    assert_eq!(numbering.sent(SeqNo(1)), Some(first));
    assert_eq!(numbering.sent(SeqNo(2)), Some(second));
}

#[test]
fn what_was_sent_under_other_headers_is_not_sent_again() {
    let now = Instant::now();
    let mut numbering = Numbering::starting_after(0);
    forward(&mut numbering, A, &packet(5, 0, now), 90_000).unwrap();
    numbering.forget_sent();
    assert!(numbering.sent(SeqNo(1)).is_none());
    let sent = forward(&mut numbering, A, &packet(6, 0, now), 90_000).unwrap();
    assert_eq!(numbering.sent(SeqNo(2)), Some(sent));
}

proptest! {
    /// What is given is found again by its number, as long as it is remembered.
    #[test]
    fn what_was_sent_is_found(steps in prop::collection::vec((0u64..4, any::<bool>()), 1..200)) {
        let now = Instant::now();
        let mut numbering = Numbering::starting_after(7);
        let (mut seq, mut given) = (100, Vec::new());
        for (lost, skip) in steps {
            seq += 1 + lost;
            let packet = packet(seq, 0, now);
            if skip {
                numbering.skip(A, &packet);
            } else {
                given.extend(forward(&mut numbering, A, &packet, 90_000));
            }
        }
        for sent in given.iter().rev().take(MAX_RUNS) {
            prop_assert_eq!(numbering.sent(sent.out), Some(*sent));
        }
    }

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
            } else if let Some(sent) = forward(&mut numbering, source, &packet, 90_000) {
                prop_assert!(given.insert(sent.out, (source, seq)).is_none(), "{sent:?}");
            }
        }
    }
}
