use std::time::Duration;

use super::{MEDIA, SENDER, only, written};
use crate::rtcp::{Packet, Twcc, TwccStatus, TwccWriter};
use proptest::prelude::*;

const ENOUGH: usize = 1200;

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn feedback(base: u16, arrivals: &[(u16, Duration)]) -> Vec<u8> {
    let (writer, rest) = TwccWriter::new((SENDER, MEDIA), 3, base, arrivals, ENOUGH).unwrap();
    assert!(rest.is_empty());
    written(&writer)
}

fn view(bytes: &[u8]) -> Twcc<'_> {
    match only(bytes) {
        Packet::Twcc(view) => view,
        other => panic!("{other:?}"),
    }
}

fn arrived(bytes: &[u8]) -> Vec<(u16, Duration)> {
    view(bytes)
        .statuses()
        .filter_map(|s| Some((s.sequence, s.arrival?)))
        .collect()
}

#[test]
fn a_run_of_neighbours_is_one_chunk() {
    let arrivals: Vec<_> = (0..20)
        .map(|i| (65_530u16.wrapping_add(i), ms(640 + u64::from(i))))
        .collect();
    let bytes = feedback(65_530, &arrivals);
    assert_eq!(bytes[..4], [0x8f, 205, 0, 10]);
    assert_eq!(
        bytes[12..24],
        [0xff, 0xfa, 0, 20, 0, 0, 10, 3, 0x20, 20, 0, 4]
    );
    let view = view(&bytes);
    assert_eq!((view.sender, view.media), (SENDER, MEDIA));
    assert_eq!(
        (view.base, view.count, view.reference_time),
        (65_530, 20, 10)
    );
    assert_eq!(arrived(&bytes), arrivals);
}

#[test]
fn losses_and_reordering_take_vectors() {
    // One bit each, since there are no large deltas.
    let arrivals = [(10, ms(64)), (12, ms(65)), (18, ms(66))];
    let bytes = feedback(9, &arrivals);
    assert_eq!(bytes[20..22], [0b1001_0100, 0b0001_0000]);
    assert_eq!(arrived(&bytes), arrivals);
    assert_eq!(view(&bytes).statuses().count(), 10);
    let first = TwccStatus {
        sequence: 9,
        arrival: None,
    };
    assert_eq!(view(&bytes).statuses().next(), Some(first));

    // Two bits each: one arrived before its predecessor, one long after.
    let arrivals = [(0, ms(100)), (1, ms(99)), (3, ms(1_000))];
    let bytes = feedback(0, &arrivals);
    assert_eq!(bytes[20..22], [0b1101_1000, 0b1000_0000]);
    assert_eq!(bytes[22..24], [(100 - 64) * 4, 0xff]);
    assert_eq!(arrived(&bytes), arrivals);
}

#[test]
fn what_does_not_fit_is_given_back() {
    let arrivals = [(0, ms(0)), (1, ms(8_191)), (2, ms(16_383)), (3, ms(16_384))];
    let (writer, rest) = TwccWriter::new((SENDER, MEDIA), 0, 0, &arrivals, ENOUGH).unwrap();
    assert_eq!(rest, &arrivals[2..]);
    assert_eq!(writer.next_base(), 2);
    assert_eq!(arrived(&written(&writer)), arrivals[..2]);

    let arrivals: Vec<_> = (0..500).map(|i| (i, ms(u64::from(i)))).collect();
    let (writer, rest) = TwccWriter::new((SENDER, MEDIA), 0, 0, &arrivals, 100).unwrap();
    assert_eq!(written(&writer).len(), 100);
    assert_eq!(rest.len(), 500 - 78);
    assert!(TwccWriter::new((SENDER, MEDIA), 0, 0, &arrivals, 20).is_none());
    assert!(TwccWriter::new((SENDER, MEDIA), 0, 0, &[], ENOUGH).is_none());
}

#[test]
fn numbers_that_do_not_ascend_are_left_out() {
    let arrivals = [
        (4, ms(9)),
        (5, ms(10)),
        (5, ms(11)),
        (3, ms(12)),
        (7, ms(13)),
    ];
    assert_eq!(arrived(&feedback(5, &arrivals)), [(5, ms(10)), (7, ms(13))]);
}

#[test]
fn reserved_symbols_and_missing_deltas() {
    let head = [0, 0, 0, 1, 0, 0, 0, 2, 0, 7, 0, 3, 0, 0, 1, 0];
    let mut bytes = vec![0x8f, 205, 0, 5];
    bytes.extend(head);
    // Three packets: small, reserved, small; only one delta.
    bytes.extend([0b1101_1101, 0, 4, 0]);
    assert_eq!(arrived(&bytes), [(7, ms(65)), (9, ms(65))]);
    bytes[20..24].copy_from_slice(&[0b1110_1010, 0, 0, 4]);
    assert_eq!(arrived(&bytes), [(7, ms(65))]);
    // Fewer symbols than packets.
    bytes[20..24].copy_from_slice(&[0x20, 1, 0x20, 1]);
    assert!(crate::rtcp::Compound::new(&bytes).next().unwrap().is_err());
}

proptest! {
    #[test]
    fn arrivals_round_trip(
        base: u16,
        start in 0u64..10_000_000,
        steps in proptest::collection::vec(
            (prop_oneof![5 => Just(0u16), 2 => 0u16..30, 1 => 0u16..900],
             prop_oneof![5 => 0i64..250, 1 => -4000i64..4000]), 1..300),
        max_size in 40usize..1200,
    ) {
        let mut arrivals = vec![];
        let (mut sequence, mut ticks) = (base, start as i64 + 4000);
        for (gap, delta) in steps {
            ticks = (ticks + delta).max(0);
            sequence = sequence.wrapping_add(gap);
            arrivals.push((sequence, Duration::from_micros(ticks as u64 * 250)));
            sequence = sequence.wrapping_add(1);
            if sequence.wrapping_sub(base) > 30_000 {
                break;
            }
        }
        let (mut rest, mut base, mut seen) = (&arrivals[..], base, vec![]);
        while let Some((writer, after)) = TwccWriter::new((SENDER, MEDIA), 0, base, rest, max_size) {
            let bytes = written(&writer);
            prop_assert!(bytes.len() <= max_size);
            seen.extend(arrived(&bytes));
            (rest, base) = (after, writer.next_base());
        }
        prop_assert_eq!(rest.len(), 0);
        prop_assert_eq!(seen, arrivals);
    }
}
