#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failed test panics"
)]

use std::time::{Duration, Instant};

use portunus_rtp::codec::PictureId;
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

fn long(picture: u16, tl0: u8) -> PictureIds {
    PictureIds::new(PictureId::Long(picture), Some(tl0))
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
fn the_numbers_close_over_all_that_was_never_relayed() {
    let now = Instant::now();
    let mut numbering = Numbering::starting_after(99);
    numbering.close_up(A, &packet(5, 0, now));
    for seq in 10..13 {
        forward(&mut numbering, A, &packet(seq, 0, now), 90_000).unwrap();
    }
    let keyframe = packet(500, 90_000, now);
    numbering.close_up(B, &keyframe);
    numbering.close_up(A, &keyframe);
    numbering.close_up(A, &keyframe);
    let sent = forward(&mut numbering, A, &keyframe, 90_000).unwrap();
    assert_eq!((sent.out.0, sent.timestamp_offset), (103, 0));
    let mut late = |seq| forward(&mut numbering, A, &packet(seq, 0, now), 90_000);
    assert_eq!(late(499), None, "it was left out");
    assert_eq!(late(501).map(|sent| sent.out.0), Some(104));
    // What was sent before can be resent.
    assert_eq!(numbering.sent(SeqNo(102)).map(|sent| sent.seq.0), Some(12));
}

#[test]
fn the_numbers_close_over_a_gap_that_is_beyond_repair() {
    let now = Instant::now();
    let mut numbering = Numbering::starting_after(99);
    // A receiver loses count of SRTP's roll-overs if more than half of the numbers are skipped.
    let mut out = |seq| {
        let sent = forward(&mut numbering, A, &packet(seq, 0, now), 90_000);
        sent.map(|sent| sent.out.0)
    };
    assert_eq!(out(10), Some(100));
    assert_eq!(out(10 + 1_024), Some(100 + 1_024));
    assert_eq!(out(100_000), Some(101 + 1_024));
    assert_eq!(out(99_999), None);
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
    first.ids = Some(long(0x7fff, 255));
    let sent = forward(&mut numbering, A, &first, 90_000).unwrap();
    assert_eq!((sent.out.0, sent.timestamp_offset), (1, 0));
    let mut second = packet(7, 3_000_000, start + Duration::from_millis(100));
    second.ids = Some(long(12, 3));
    let sent = forward(&mut numbering, B, &second, 90_000).unwrap();
    assert_eq!(sent.out.0, 2);
    assert_eq!(
        3_000_000u32.wrapping_add(sent.timestamp_offset),
        1_000 + 9_000
    );
    let ids = long(12, 3).plus(sent.ids_offset);
    assert_eq!(ids, long(0, 0), "15 and 8 bits wrap");
}

#[test]
fn a_source_switch_continues_av1_frame_numbers_and_gaps_stay() {
    let now = Instant::now();
    let mut numbering = Numbering::starting_after(0);
    let av1 = |seq, frame| {
        let mut packet = packet(seq, 0, now);
        packet.frame = Some(frame);
        (packet.layers.keyframe, packet.layers.start) = (true, true);
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
    let mut without_keyframe = av1(10, 30_000);
    without_keyframe.layers.keyframe = false;
    let first = out(B, &without_keyframe);
    assert_eq!(
        first,
        5 + 4_096 + 1,
        "it refers to nothing that was sent before"
    );
    without_keyframe.seq = SeqNo(11);
    without_keyframe.frame = Some(30_001);
    assert_eq!(out(B, &without_keyframe), first + 1);
}

#[test]
fn a_left_out_vp8_frame_closes_the_picture_ids_once() {
    let now = Instant::now();
    let mut numbering = Numbering::starting_after(0);
    let vp8 = |seq, timestamp, picture| {
        let mut packet = packet(seq, timestamp, now);
        packet.ids = Some(long(picture, 0));
        packet
    };
    forward(&mut numbering, A, &vp8(1, 0, 10), 90_000).unwrap();
    numbering.skip(A, &vp8(2, 3_000, 11));
    numbering.skip(A, &vp8(3, 3_000, 11));
    let sent = forward(&mut numbering, A, &vp8(4, 6_000, 12), 90_000).unwrap();
    assert_eq!(sent.out.0, 2);
    assert_eq!(long(12, 0).plus(sent.ids_offset), long(11, 0));
}

/// A packet of a VP9 picture.
fn vp9(seq: u64, ids: PictureIds, keyframe: bool) -> Packet {
    let mut packet = packet(seq, 0, Instant::now());
    (packet.codec, packet.ids) = (Codec::Vp9, Some(ids));
    (packet.layers.keyframe, packet.layers.start) = (keyframe, true);
    packet
}

/// The picture numbers with which a packet leaves.
fn ids_out(numbering: &mut Numbering, source: SourceKey, packet: &Packet) -> PictureIds {
    let sent = forward(numbering, source, packet, 90_000).unwrap();
    packet.ids.unwrap().plus(sent.ids_offset)
}

#[test]
fn a_left_out_vp9_picture_keeps_its_id_as_references_are_distances() {
    let mut numbering = Numbering::starting_after(0);
    let first = ids_out(&mut numbering, A, &vp9(1, long(700, 9), true));
    assert_eq!(first, long(700, 9), "the first stays as it is");
    assert_eq!(
        ids_out(&mut numbering, B, &vp9(50, long(10, 4), true)),
        long(701, 10)
    );
    numbering.skip(B, &vp9(51, long(11, 4), false));
    // It refers to the picture two before it, which is the receiver's 701.
    let third = forward(&mut numbering, B, &vp9(52, long(12, 5), false), 90_000).unwrap();
    assert_eq!(long(12, 5).plus(third.ids_offset), long(703, 11));
    assert_eq!(third.out, SeqNo(3));
}

/// RFC 9628 section 4.2: a picture id that becomes longer is extended by zeros, one that becomes
/// shorter is cut.
#[test]
fn picture_ids_of_both_widths_follow_each_other() {
    let short = |picture, tl0| PictureIds::new(PictureId::Short(picture), Some(tl0));
    let mut numbering = Numbering::starting_after(0);
    let mut out = |source, seq, ids| ids_out(&mut numbering, source, &vp9(seq, ids, true));
    assert_eq!(out(A, 1, long(0x1bbe, 1)), long(0x1bbe, 1));
    assert_eq!(out(B, 1, short(5, 77)), short(0x3f, 2));
    assert_eq!(out(B, 2, short(0x7f, 78)), short(0x39, 3));
    assert_eq!(out(B, 3, short(0, 79)), short(0x3a, 4), "7 bits wrap");
    assert_eq!(out(A, 5, long(0x7fff, 9)), long(0x3b, 5));
    assert_eq!(out(A, 6, long(0, 10)), long(0x3c, 6), "15 bits wrap");
}

#[test]
fn what_follows_without_a_keyframe_refers_to_nothing_that_was_sent_before() {
    let mut numbering = Numbering::starting_after(0);
    ids_out(&mut numbering, A, &vp9(1, long(0x7ff0, 9), true));
    let first = ids_out(&mut numbering, B, &vp9(50, long(10, 4), false));
    let farthest = first.picture.wrapping_sub(VP9_REACH) & 0x7fff;
    assert_eq!(farthest, 0x7ff1);
    assert_eq!(first.tl0, 10);
    assert_eq!(
        ids_out(&mut numbering, B, &vp9(51, long(11, 5), true)),
        first.after(1)
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

#[test]
fn timestamps_of_a_shared_clock_are_compared_for_a_minute_only() {
    let clock = SharedClock::new(std::num::NonZeroU64::MIN);
    let shared = |seq, timestamp, arrival| {
        let mut packet = packet(seq, timestamp, arrival);
        packet.clock = Some(clock);
        packet
    };
    let (now, hours) = (Instant::now(), Duration::from_secs(13 * 3_600));
    let mut numbering = Numbering::starting_after(99);
    forward(&mut numbering, A, &shared(1, 960, now), 48_000).unwrap();
    // The same frame, of another mix.
    let repeated = shared(1, 960, now + Duration::from_millis(1));
    assert_eq!(forward(&mut numbering, B, &repeated, 48_000), None);
    // After more than half of the time in which they wrap around.
    let passed = (hours.as_millis() * 48) as u32;
    let later = shared(2, 960_u32.wrapping_add(passed), now + hours);
    let sent = forward(&mut numbering, B, &later, 48_000).unwrap();
    assert_eq!((sent.out, sent.timestamp_offset), (SeqNo(101), 0));
}

proptest! {
    /// Every sent packet can be found by its number, as long as it is remembered.
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

    /// VP9 of two spatial layers from two sources, with switches at keyframes, dropped or lost
    /// pictures, and late packets: the receiver's pictures of a source are as far apart as there,
    /// all packets of a picture have one id, and the first picture of a source follows the last of
    /// the other.
    #[test]
    fn vp9_picture_numbers_go_on_and_keep_their_distances(
        starts in prop::collection::vec(0u16..0x8000, 2),
        is_short: bool,
        steps in prop::collection::vec(0u8..8, 1..300),
    ) {
        let number = |picture: u16, tl0| match is_short {
            true => PictureIds::new(PictureId::Short((picture & 0x7f) as u8), Some(tl0)),
            false => PictureIds::new(PictureId::Long(picture & 0x7fff), Some(tl0)),
        };
        let mut numbering = Numbering::starting_after(7);
        // For each source: the next packet, picture and TL0PICIDX.
        let mut next = [(100u64, starts[0], 250u8), (9_000, starts[1], 17)];
        let mut source = 0;
        // The picture id at the receiver for the source's first one.
        let mut base: Option<(PictureIds, PictureIds)> = None;
        let mut last: Option<PictureIds> = None;
        for step in steps {
            if step == 0 {
                (source, base) = (1 - source, None);
            }
            let (seq, picture, tl0) = &mut next[source];
            let is_upper = step >= 6;
            *tl0 = tl0.wrapping_add(u8::from(!is_upper));
            let ids = number(*picture, *tl0);
            let lower = vp9(*seq, ids, base.is_none());
            let upper = vp9(*seq + 1, ids, false);
            (*seq, *picture) = (*seq + 2, picture.wrapping_add(1));
            let key = SourceKey(source);
            let order = match step {
                // Lost.
                1 if base.is_some() => continue,
                // Dropped.
                6 if base.is_some() => {
                    numbering.skip(key, &lower);
                    numbering.skip(key, &upper);
                    continue;
                }
                // The lower layer's packet comes late.
                2 if base.is_some() => [&upper, &lower],
                _ => [&lower, &upper],
            };
            for packet in order {
                let sent = forward(&mut numbering, key, packet, 90_000).unwrap();
                prop_assert_eq!(numbering.sent(sent.out), Some(sent), "for repeats");
                let out = ids.plus(sent.ids_offset);
                let (first, first_out) = *base.get_or_insert_with(|| {
                    (ids, last.map_or(ids, |last| last.after(1)))
                });
                prop_assert_eq!(out, ids.plus(first_out.minus(first)));
                last = Some(out);
            }
        }
    }

    /// Whatever is lost, late, dropped or switched: no number is used for two different packets.
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
