#![allow(
    clippy::unwrap_used,
    clippy::field_reassign_with_default,
    reason = "a failed test panics"
)]
use proptest::prelude::*;

use super::*;

fn header(ssrc: u32, sequence: u16, timestamp: u32) -> Header {
    let mut header = Header::default();
    header.ssrc = Ssrc(ssrc);
    header.sequence = sequence;
    header.timestamp = timestamp;
    header
}

struct Stream {
    continuity: Continuity,
    now: Instant,
}

impl Stream {
    fn new(collision_ms: u64) -> Self {
        Self {
            continuity: Continuity::new(90_000, Duration::from_millis(collision_ms)),
            now: Instant::now(),
        }
    }

    /// A packet `ms` after the one before.
    fn packet(&mut self, ms: u64, ssrc: u32, sequence: u16, ts: u32) -> Result<Place, Misplaced> {
        self.now += Duration::from_millis(ms);
        self.continuity
            .accept(&header(ssrc, sequence, ts), self.now)
    }
}

#[test]
fn numbers_go_on_over_the_wrap() {
    let mut stream = Stream::new(0);
    let first = stream.packet(0, 1, 65_534, 0).unwrap();
    for n in 1..10u16 {
        let place = stream.packet(10, 1, 65_534u16.wrapping_add(n), 0).unwrap();
        assert_eq!(place.seq.0, first.seq.0 + u64::from(n));
        assert!(place.newest && !place.restarted);
    }
    assert_eq!(stream.continuity.lost(), 0);
}

#[test]
fn another_sender_takes_over_without_a_jump() {
    let mut stream = Stream::new(0);
    stream.packet(0, 1, 100, 1_000).unwrap();
    let last = stream.packet(40, 1, 101, 4_600).unwrap();
    let next = stream.packet(40, 2, 60_000, 777_000).unwrap();
    assert!(next.restarted);
    assert_eq!(next.seq.0, last.seq.0 + 1);
    assert_eq!(next.timestamp, 4_600 + 3_600);
    // Late packets of the first sender do not change it back.
    assert_eq!(stream.packet(1, 1, 100, 1_000), Err(Misplaced::Late));
    let after = stream.packet(40, 2, 60_001, 780_600).unwrap();
    assert_eq!(
        (after.seq.0, after.timestamp),
        (last.seq.0 + 2, 4_600 + 7_200)
    );
    assert_eq!(stream.continuity.timestamp(777_000), 8_200);
}

#[test]
fn a_collision_is_refused_until_the_sender_is_silent() {
    let mut stream = Stream::new(1_000);
    stream.packet(0, 1, 1, 0).unwrap();
    assert_eq!(stream.packet(999, 2, 1, 0), Err(Misplaced::Foreign));
    stream.packet(0, 1, 2, 90_000).unwrap();
    assert_eq!(stream.packet(500, 2, 2, 0), Err(Misplaced::Foreign));
    assert!(stream.packet(500, 2, 3, 0).unwrap().restarted);
    assert_eq!(stream.continuity.ssrc(), Some(Ssrc(2)));
}

#[test]
fn a_sender_that_begins_anew_with_its_ssrc() {
    let mut stream = Stream::new(0);
    let last = stream.packet(0, 1, 5_000, 90_000).unwrap();
    // Immediately after silence.
    let next = stream.packet(2_000, 1, 40_000, 12).unwrap();
    assert!(next.restarted);
    assert_eq!(
        (next.seq.0, next.timestamp),
        (last.seq.0 + 1, 90_000 + 180_000)
    );
    // Without silence, a single packet is not enough.
    assert_eq!(stream.packet(10, 1, 9, 0), Err(Misplaced::Suspect));
    stream.packet(10, 1, 40_001, 3_000).unwrap();
    assert_eq!(stream.packet(10, 1, 20_000, 0), Err(Misplaced::Suspect));
    let again = stream.packet(10, 1, 20_001, 0).unwrap();
    assert!(again.restarted);
    assert_eq!(again.seq.0, next.seq.0 + 2);
}

/// Sends packets 0 to 300 with their timestamps, then the same again after `silence`. Returns how
/// many of the new ones are lost before the stream continues.
fn lost_of_a_restart(silence_ms: u64, first: u16, timestamp: u32) -> usize {
    let mut stream = Stream::new(0);
    let mut last = None;
    for n in 0..=300_u16 {
        last = stream.packet(20, 1, n, u32::from(n) * 1_800).ok();
    }
    let last = last.unwrap();
    let mut lost = 0;
    loop {
        let n = lost as u16;
        let wait = if lost == 0 { silence_ms } else { 20 };
        let ts = timestamp.wrapping_add(u32::from(n) * 1_800);
        match stream.packet(wait, 1, first + n, ts) {
            Ok(place) => {
                assert!(place.restarted && place.newest);
                assert_eq!(place.seq.0, last.seq.0 + 1);
                let since = place.timestamp.wrapping_sub(last.timestamp);
                let expected = (silence_ms + 20 * lost as u64) * 90;
                assert_eq!(u64::from(since), expected);
                // It continues from there.
                let next = stream.packet(20, 1, first + n + 1, ts.wrapping_add(1_800));
                assert_eq!(next.unwrap().seq.0, place.seq.0 + 1);
                return lost;
            }
            Err(_) => lost += 1,
        }
    }
}

#[test]
fn a_sender_that_begins_anew_a_little_back_is_taken_up_at_once_after_a_silence() {
    for (first, timestamp) in [(0, 0), (299, 0), (10, 777_000_000), (200, 0xffff_ff00)] {
        assert_eq!(lost_of_a_restart(2_000, first, timestamp), 0, "{first}");
    }
}

#[test]
fn a_sender_that_begins_anew_a_little_back_without_silence_is_taken_up_soon() {
    assert_eq!(lost_of_a_restart(300, 0, 0), 1);
    // 100 ms pass, and two packets prove it.
    assert_eq!(lost_of_a_restart(20, 0, 0), 5);
}

#[test]
fn packets_that_come_twice_are_no_new_sender() {
    let mut stream = Stream::new(0);
    for n in 0..200_u16 {
        stream.packet(20, 1, n, u32::from(n) * 1_800).unwrap();
        // By another way, 60 ms later.
        if let Some(again) = n.checked_sub(3) {
            let again = stream.packet(0, 1, again, u32::from(again) * 1_800);
            assert_eq!(again, Err(Misplaced::Repeated));
        }
    }
    // Packets are duplicated now and then while nothing else happens.
    for _ in 0..5 {
        assert_eq!(
            stream.packet(5_000, 1, 199, 199 * 1_800),
            Err(Misplaced::Repeated)
        );
    }
    let next = stream.packet(20, 1, 200, 200 * 1_800).unwrap();
    assert!(!next.restarted);
}

#[test]
fn a_sender_that_begins_anew_a_little_ahead_does_not_move_the_time() {
    let mut stream = Stream::new(0);
    let last = stream.packet(0, 1, 5_000, 90_000).unwrap();
    let next = stream.packet(2_000, 1, 6_000, 3_000_000_000).unwrap();
    assert!(next.restarted);
    assert_eq!(next.seq.0, last.seq.0 + 1);
    assert_eq!(next.timestamp, 90_000 + 180_000);
    // A paused stream continues.
    let next = stream.packet(5_000, 1, 6_001, 3_000_003_000).unwrap();
    assert!(!next.restarted);
}

#[test]
fn timestamps_that_go_on_by_themselves_are_left_alone() {
    let mut stream = Stream::new(0);
    stream.packet(0, 1, 5_000, 1_000).unwrap();
    let next = stream.packet(10_000, 1, 15_000, 1_000 + 900_700).unwrap();
    assert!(next.restarted);
    assert_eq!(next.timestamp, 901_700);
}

#[test]
fn late_packets_find_their_place_once() {
    let mut stream = Stream::new(0);
    let first = stream.packet(0, 1, 10, 0).unwrap().seq.0;
    stream.packet(1, 1, 14, 40).unwrap();
    assert_eq!(stream.continuity.lost(), 3);
    let late = stream.packet(1, 1, 12, 20).unwrap();
    assert_eq!((late.seq.0, late.newest), (first + 2, false));
    assert_eq!(stream.continuity.lost(), 2);
    assert_eq!(stream.packet(1, 1, 12, 20), Err(Misplaced::Repeated));
    assert_eq!(stream.packet(1, 1, 14, 40), Err(Misplaced::Repeated));
    // There is no place before the first one.
    assert_eq!(stream.packet(1, 1, 9, 0), Err(Misplaced::Late));
}

#[test]
fn inserted_and_left_out_packets_keep_the_numbers_whole() {
    let mut stream = Stream::new(0);
    let first = stream.packet(0, 1, 10, 0).unwrap().seq.0;
    let mut place = stream.packet(1, 1, 12, 0).unwrap();
    let inserted = stream.continuity.insert(&mut place);
    assert_eq!((inserted.0, place.seq.0), (first + 2, first + 3));
    // A packet from before the inserted one keeps its number.
    assert_eq!(stream.packet(1, 1, 11, 0).unwrap().seq.0, first + 1);
    assert_eq!(stream.packet(1, 1, 13, 0).unwrap().seq.0, first + 4);
    stream.packet(1, 1, 14, 0).unwrap();
    stream.continuity.leave_out();
    assert_eq!(stream.packet(1, 1, 15, 0).unwrap().seq.0, first + 5);
}

#[test]
fn what_was_left_out_on_purpose_leaves_no_gap() {
    let mut stream = Stream::new(0);
    let first = stream.packet(0, 1, 10, 0).unwrap();
    stream.continuity.resume();
    let next = stream.packet(1_000, 1, 40, 90_000).unwrap();
    assert_eq!(next.seq.0, first.seq.0 + 1);
    assert_eq!(next.timestamp, 90_000);
}

#[test]
fn a_shift_holds_from_the_newest_packet_on() {
    let mut stream = Stream::new(0);
    stream.packet(0, 1, 10, 0).unwrap();
    let mut place = stream.packet(10, 1, 12, 2_000).unwrap();
    stream.continuity.shift(&mut place, -100);
    assert_eq!(place.timestamp, 1_900);
    assert_eq!(stream.packet(1, 1, 11, 1_000).unwrap().timestamp, 1_000);
    assert_eq!(stream.packet(10, 1, 13, 3_000).unwrap().timestamp, 2_900);
}

proptest! {
    /// Whatever arrives, no number is used twice, and the highest never jumps by more than may be
    /// lost.
    #[test]
    fn no_number_is_given_twice(
        packets in proptest::collection::vec((0u64..300, 0u32..3, any::<u16>(), any::<bool>(), any::<u32>()), 1..400),
    ) {
        let mut stream = Stream::new(0);
        let mut given = std::collections::HashSet::new();
        let (mut highest, mut sequence) = (None::<u64>, 0u16);
        for (ms, ssrc, random, near, ts) in packets {
            sequence = if near { sequence.wrapping_add(random % 20).wrapping_sub(5) } else { random };
            let Ok(mut place) = stream.packet(ms, ssrc, sequence, ts) else { continue };
            if random % 7 == 0 && place.newest {
                prop_assert!(given.insert(stream.continuity.insert(&mut place)));
            }
            if random % 11 == 0 && place.newest {
                stream.continuity.leave_out();
                highest = highest.max(Some(place.seq.0 - 1));
                continue;
            }
            prop_assert!(given.insert(place.seq), "{place:?}");
            if let Some(before) = highest && place.newest {
                prop_assert!(place.seq.0 > before && place.seq.0 - before <= MAX_AHEAD as u64 + 1);
            }
            highest = highest.max(Some(place.seq.0));
        }
    }
}

/// A stream of a source that another node passes on.
fn relayed() -> Stream {
    Stream {
        continuity: Continuity::new(90_000, Duration::ZERO).relayed(),
        now: Instant::now(),
    }
}

#[test]
fn another_way_of_a_source_goes_on_where_the_one_before_ended() {
    let mut stream = relayed();
    stream.packet(0, 1, 100, 90_000).unwrap();
    let mut header = header(1, 101, 93_600);
    header.marker = true;
    stream.now += Duration::from_millis(40);
    let last = stream.continuity.accept(&header, stream.now).unwrap();
    // It begins with what its sender has kept.
    for (n, timestamp) in [86_400, 90_000, 93_600].into_iter().enumerate() {
        let repeated = stream.packet(1, 2, n as u16, timestamp);
        assert_eq!(repeated, Err(Misplaced::Repeated));
    }
    let next = stream.packet(1, 2, 3, 97_200).unwrap();
    assert_eq!((next.seq.0, next.timestamp), (last.seq.0 + 1, 97_200));
    assert!(!next.restarted, "nothing is missing");
    let next = stream.packet(1, 2, 4, 100_800).unwrap();
    assert_eq!((next.seq.0, next.timestamp), (last.seq.0 + 2, 100_800));
}

#[test]
fn another_way_of_a_source_after_a_gap_keeps_its_timestamps() {
    let mut stream = relayed();
    stream.packet(0, 1, 100, 90_000).unwrap();
    // 4 s later, with what came in the last 2 s.
    let next = stream.packet(4_000, 2, 7, 90_000 + 180_000).unwrap();
    assert_eq!(next.timestamp, 90_000 + 180_000);
    assert!(next.restarted, "pictures are missing");
}

#[test]
fn another_way_of_a_source_that_does_not_catch_up_is_taken_as_it_is() {
    let mut stream = relayed();
    stream.packet(0, 1, 100, 900_000).unwrap();
    assert!(stream.packet(10, 2, 1, 450_000).is_err());
    assert!(stream.packet(400, 2, 2, 450_900).is_err());
    let next = stream.packet(200, 2, 3, 451_800).unwrap();
    assert!(next.restarted);
    assert_eq!(next.timestamp, 900_000 + 610 * 90);
}
