#![allow(clippy::unwrap_used, reason = "a failed test panics")]

use super::*;
use crate::Layers;

const FORWARD: Selection = Selection::Forward(Part {
    top: None,
    targets: 0,
});

fn simulcast(encoding: u8, keyframe: bool, at: Instant) -> Packet {
    let mut packet = Packet::empty(at);
    packet.encoding = encoding;
    packet.layers = Layers {
        keyframe,
        start: true,
        ..Layers::default()
    };
    packet
}

fn svc(spatial: u8, temporal: u8, keyframe: bool, at: Instant) -> Packet {
    let mut packet = Packet::empty(at);
    packet.layers = Layers {
        keyframe,
        spatial,
        temporal,
        svc: true,
        switching_point: true,
        start: true,
        end: true,
    };
    packet
}

fn options(substream: u8, spatial: u8, temporal: u8) -> RouteOptions {
    RouteOptions {
        substream,
        spatial,
        temporal,
        ..RouteOptions::default()
    }
}

#[test]
fn a_route_begins_with_any_keyframe_and_rises_at_one() {
    let now = Instant::now();
    let mut selector = Selector::default();
    let wanted = options(2, 2, 2);
    assert_eq!(
        selector.select(&simulcast(0, false, now), 3, &wanted),
        Selection::Other
    );
    assert_eq!(
        selector.select(&simulcast(0, true, now), 3, &wanted),
        FORWARD
    );
    assert_eq!(selector.take_change(3).unwrap().substream, Some(0));
    assert_eq!(
        selector.select(&simulcast(2, false, now), 3, &wanted),
        Selection::Other
    );
    assert_eq!(selector.keyframe_wanted(3, &wanted, now), Some(2));
    assert_eq!(
        selector.keyframe_wanted(3, &wanted, now),
        None,
        "not at once again"
    );
    assert_eq!(
        selector.select(&simulcast(2, true, now), 3, &wanted),
        FORWARD
    );
    assert_eq!(
        selector.select(&simulcast(0, true, now), 3, &wanted),
        Selection::Other
    );
    assert_eq!(selector.take_change(3).unwrap().substream, Some(2));
    assert_eq!(selector.take_change(3), None);
}

#[test]
fn a_slow_simulcast_is_not_taken_for_a_silent_one() {
    let start = Instant::now();
    let mut selector = Selector::default();
    let wanted = options(2, 2, 2);
    let mut asked = Vec::new();
    // Three frames a second, the lowest encoding first. A requested keyframe comes with the next
    // frame.
    for frame in 0..30_u64 {
        for encoding in 0..3_u8 {
            let at = start + Duration::from_millis(333 * frame + 5 * u64::from(encoding));
            let keyframe = frame == 0 || asked.contains(&encoding);
            asked.retain(|asked| *asked != encoding);
            let mut packet = simulcast(encoding, keyframe, at);
            packet.header.timestamp = frame as u32;
            // Of two packets.
            selector.select(&packet, 3, &wanted);
            let relayed = selector.select(&packet, 3, &wanted);
            let best = frame > 0 || encoding == 2;
            if best {
                assert_eq!(relayed == FORWARD, encoding == 2, "frame {frame}");
                assert_eq!(selector.keyframe_wanted(3, &wanted, at), None);
            }
            asked.extend(selector.keyframe_wanted(3, &wanted, at));
        }
    }
    // The highest ends, and is left after two frames of both others.
    let at = |frame: u64| start + Duration::from_millis(333 * frame);
    let mut left = None;
    for frame in 30..40_u64 {
        for encoding in 0..2 {
            let mut packet = simulcast(encoding, true, at(frame));
            packet.header.timestamp = frame as u32;
            if selector.select(&packet, 3, &wanted) == FORWARD {
                left = left.or(Some((frame, encoding)));
            }
        }
    }
    assert_eq!(left, Some((31, 1)));
}

#[test]
fn another_source_and_an_opened_gate_begin_with_a_keyframe_if_one_comes() {
    let start = Instant::now();
    let at = |ms| start + Duration::from_millis(ms);
    let wanted = options(2, 2, 2);
    let video = |keyframe, at| {
        let mut packet = simulcast(0, keyframe, at);
        packet.codec = portunus_sdp::negotiated::Codec::Vp8;
        packet
    };
    let mut selector = Selector::default();
    assert_eq!(
        selector.select(&video(false, start), 1, &wanted),
        FORWARD,
        "there is no picture that it could spoil"
    );
    selector.restart();
    assert_eq!(
        selector.select(&video(false, at(100)), 1, &wanted),
        Selection::Other
    );
    selector.restart();
    assert_eq!(
        selector.select(&video(false, at(200)), 1, &wanted),
        Selection::Other
    );
    assert_eq!(selector.select(&video(true, at(300)), 1, &wanted), FORWARD);
    assert_eq!(selector.select(&video(false, at(400)), 1, &wanted), FORWARD);
    let mut selector = Selector::default();
    selector.await_keyframe();
    let mut begun = (0..3_000).step_by(10).filter(|ms| {
        let packet = video(false, at(*ms));
        selector.select(&packet, 1, &wanted) == FORWARD
    });
    assert_eq!(begun.next(), None, "the picture stays");
    let mut selector = Selector::default();
    selector.await_keyframe();
    let mut asked = Vec::new();
    let mut begun = (0..20_000).step_by(10).filter(|ms| {
        let packet = video(false, at(*ms));
        let begins = selector.select(&packet, 1, &wanted) == FORWARD;
        asked.extend(selector.keyframe_wanted(1, &wanted, at(*ms)).map(|_| *ms));
        begins
    });
    assert_eq!(begun.next(), Some(10_000), "none comes");
    assert_eq!(begun.next(), Some(10_010));
    drop(begun);
    assert!(asked.starts_with(&[500, 1_000]), "again and again");
    assert!(
        asked.iter().all(|ms| *ms < 10_000),
        "it is not waited for any more"
    );
    let mut selector = Selector::default();
    selector.await_keyframe();
    let mut begun = (0..3_000).step_by(10).filter(|ms| {
        let mut packet = video(false, at(*ms));
        packet.is_opaque = true;
        selector.select(&packet, 1, &wanted) == FORWARD
    });
    assert_eq!(begun.next(), Some(700), "none can be told in the stream");
    let mut selector = Selector::default();
    selector.await_keyframe();
    let sound = Packet::empty(start);
    assert_eq!(selector.select(&sound, 1, &wanted), FORWARD, "no picture");
}

#[test]
fn a_silent_encoding_is_left_for_a_lower_one() {
    let start = Instant::now();
    let mut selector = Selector::default();
    let wanted = options(2, 2, 2);
    selector.select(&simulcast(2, true, start), 3, &wanted);
    let soon = start + Duration::from_millis(200);
    assert_eq!(
        selector.select(&simulcast(1, true, soon), 3, &wanted),
        Selection::Other
    );
    let late = start + Duration::from_millis(300);
    assert_eq!(
        selector.keyframe_wanted(3, &wanted, late),
        None,
        "all may be slow"
    );
    for frame in 1..4 {
        let mut packet = simulcast(1, false, late);
        packet.header.timestamp = frame;
        selector.select(&packet, 3, &wanted);
    }
    assert_eq!(selector.keyframe_wanted(3, &wanted, late), Some(1));
    assert_eq!(
        selector.select(&simulcast(1, true, late), 3, &wanted),
        FORWARD
    );
}

/// A frame of each of the encodings, one after the other. Returns the one that was relayed.
fn frame(
    selector: &mut Selector,
    encodings: &[u8],
    (number, keyframe): (u32, bool),
    options: &RouteOptions,
    at: Instant,
) -> Vec<u8> {
    let relayed = encodings.iter().filter(|encoding| {
        let mut packet = simulcast(**encoding, keyframe, at);
        packet.header.timestamp = number;
        selector.select(&packet, 3, options) == FORWARD
    });
    relayed.copied().collect()
}

#[test]
fn the_nearest_above_the_target_is_relayed_while_nothing_below_flows() {
    let start = Instant::now();
    let at = |number: u32| start + Duration::from_millis(33) * number;
    let low = options(0, 2, 2);
    let why = |selector: &Selector, number| {
        let reason = selector.reason(3, (&low, &low), None, at(number));
        reason.name()
    };
    let mut selector = Selector::default();
    let mut next = 0;
    let mut run = |selector: &mut Selector, encodings: &[u8], frames, keyframe| {
        let mut last = Vec::new();
        for _ in 0..frames {
            last = frame(selector, encodings, (next, keyframe), &low, at(next));
            next += 1;
        }
        (last, next)
    };
    let (relayed, _) = run(&mut selector, &[2, 1], 1, true);
    assert!(relayed.is_empty(), "the lowest may be late");
    let (_, now) = run(&mut selector, &[2, 1], 3, false);
    assert_eq!(selector.keyframe_wanted(3, &low, at(now)), Some(1));
    let (relayed, now) = run(&mut selector, &[2, 1], 1, true);
    assert_eq!(relayed, [1]);
    assert_eq!(selector.take_change(3).unwrap().substream, Some(1));
    assert_eq!(why(&selector, now), "silent");
    assert!(!selector.cut(3, &low, at(now)), "there is nothing less");
    // That one ends as well.
    let (_, now) = run(&mut selector, &[2], 20, false);
    assert_eq!(selector.keyframe_wanted(3, &low, at(now)), Some(2));
    assert_eq!(run(&mut selector, &[2], 1, true).0, [2]);
    // The lowest flows.
    let (relayed, now) = run(&mut selector, &[0, 2], 20, false);
    assert_eq!(relayed, [2]);
    assert_eq!(why(&selector, now), "keyframe");
    assert_eq!(selector.keyframe_wanted(3, &low, at(now)), Some(0));
    assert_eq!(run(&mut selector, &[0, 2], 1, true).0, [0]);
    assert_eq!(why(&selector, now), "client-bound");
    // It ends while it is relayed.
    let (_, now) = run(&mut selector, &[1, 2], 20, false);
    assert_eq!(selector.keyframe_wanted(3, &low, at(now)), Some(1));
    assert_eq!(run(&mut selector, &[1, 2], 1, true).0, [1]);
}

#[test]
fn a_lower_target_is_reached_at_its_keyframe() {
    let now = Instant::now();
    let mut selector = Selector::default();
    selector.select(&simulcast(2, true, now), 3, &options(2, 2, 2));
    let lower = options(0, 2, 2);
    assert_eq!(
        selector.select(&simulcast(2, false, now), 3, &lower),
        FORWARD
    );
    assert_eq!(
        selector.select(&simulcast(0, false, now), 3, &lower),
        Selection::Other
    );
    assert_eq!(selector.keyframe_wanted(3, &lower, now), Some(0));
    assert_eq!(
        selector.select(&simulcast(0, true, now), 3, &lower),
        FORWARD
    );
    assert_eq!(
        selector.select(&simulcast(2, true, now), 3, &lower),
        Selection::Other
    );
}

#[test]
fn spatial_layers_fall_at_once_and_rise_at_a_keyframe() {
    let now = Instant::now();
    let mut selector = Selector::default();
    let top = options(2, 2, 2);
    for spatial in 0..3 {
        assert!(matches!(
            selector.select(&svc(spatial, 0, spatial == 0, now), 1, &top),
            Selection::Forward(_)
        ));
    }
    let low = options(2, 0, 2);
    assert_eq!(
        selector.select(&svc(0, 0, false, now), 1, &low),
        Selection::Forward(Part {
            top: Some(0),
            targets: 0
        })
    );
    assert_eq!(
        selector.select(&svc(1, 0, false, now), 1, &low),
        Selection::Skip
    );
    assert_eq!(
        selector.select(&svc(0, 0, false, now), 1, &top),
        Selection::Forward(Part {
            top: Some(0),
            targets: 0
        })
    );
    assert_eq!(
        selector.select(&svc(1, 0, false, now), 1, &top),
        Selection::Skip
    );
    assert_eq!(selector.keyframe_wanted(1, &top, now), Some(0));
    selector.select(&svc(0, 0, true, now), 1, &top);
    assert!(matches!(
        selector.select(&svc(1, 0, false, now), 1, &top),
        Selection::Forward(_)
    ));
}

#[test]
fn temporal_layers_rise_at_a_switching_point() {
    let now = Instant::now();
    let mut selector = Selector::default();
    let frame = |temporal, switching_point| {
        let mut packet = simulcast(0, false, now);
        packet.layers.temporal = temporal;
        packet.layers.switching_point = switching_point;
        packet
    };
    let low = options(2, 2, 0);
    assert_eq!(selector.select(&frame(0, false), 1, &low), FORWARD);
    assert_eq!(selector.select(&frame(2, true), 1, &low), Selection::Skip);
    let high = options(2, 2, 2);
    assert_eq!(selector.select(&frame(2, false), 1, &high), Selection::Skip);
    assert_eq!(selector.select(&frame(2, true), 1, &high), FORWARD);
}

#[test]
fn it_says_why_no_more_is_relayed() {
    let start = Instant::now();
    let mut selector = Selector::default();
    let why = |selector: &Selector, options: &RouteOptions, wanted: &RouteOptions, at| {
        let chosen = (options != wanted).then_some(Reason::Bandwidth);
        selector.reason(3, (options, wanted), chosen, at).name()
    };
    let top = options(2, 2, 2);
    selector.select(&simulcast(0, true, start), 3, &top);
    assert_eq!(why(&selector, &top, &top, start), "silent");
    selector.select(&simulcast(2, false, start), 3, &top);
    assert_eq!(why(&selector, &top, &top, start), "keyframe");
    selector.select(&simulcast(2, true, start), 3, &top);
    assert_eq!(why(&selector, &top, &top, start), "best");
    let low = options(0, 2, 2);
    assert_eq!(why(&selector, &top, &low, start), "keyframe");
    selector.select(&simulcast(0, true, start), 3, &low);
    assert_eq!(why(&selector, &top, &low, start), "bandwidth");
    assert_eq!(why(&selector, &low, &low, start), "client-bound");
    let later = start + Duration::from_secs(1);
    for frame in 1..5 {
        let mut packet = simulcast(0, false, later);
        packet.header.timestamp = frame;
        selector.select(&packet, 3, &low);
    }
    assert_eq!(why(&selector, &top, &top, later), "silent");
}

#[test]
fn it_says_why_of_svc_too() {
    let now = Instant::now();
    let mut selector = Selector::default();
    let (top, low) = (options(2, 2, 2), options(2, 0, 2));
    let why = |selector: &Selector, options: &RouteOptions| {
        selector.reason(1, (options, options), None, now).name()
    };
    for spatial in 0..3 {
        selector.select(&svc(spatial, 2, spatial == 0, now), 1, &low);
    }
    assert_eq!(why(&selector, &low), "client-bound");
    assert_eq!(why(&selector, &top), "keyframe");
    for spatial in 0..3 {
        selector.select(&svc(spatial, 2, spatial == 0, now), 1, &top);
    }
    assert_eq!(why(&selector, &top), "best");
    assert_eq!(why(&selector, &options(2, 2, 1)), "client-bound");
}

#[test]
fn what_the_sender_says_of_its_layers_is_told_when_it_changes() {
    let now = Instant::now();
    let mut selector = Selector::default();
    let wanted = options(2, 2, 2);
    let says = |spatial, temporal| Some(SentLayers { spatial, temporal });
    let packet = |keyframe, sent_layers| Packet {
        sent_layers,
        ..simulcast(0, keyframe, now)
    };
    // Nothing is reported before anything is relayed.
    selector.select(&packet(false, says(1, 3)), 3, &wanted);
    assert_eq!(selector.take_change(3), None);
    selector.select(&packet(true, None), 3, &wanted);
    let told = selector.take_change(3).unwrap();
    assert_eq!((told.substream, told.sent), (Some(0), says(1, 3)));
    selector.select(&packet(false, says(1, 3)), 3, &wanted);
    assert_eq!(selector.take_change(3), None);
    selector.select(&packet(false, says(1, 2)), 3, &wanted);
    assert_eq!(selector.take_change(3).unwrap().sent, says(1, 2));
    // Nothing is reported of a stream without layers to choose from.
    let mut plain = Selector::default();
    plain.select(&packet(true, says(1, 3)), 1, &wanted);
    assert_eq!(plain.take_change(1), None);
}

#[test]
fn what_is_recorded_waits_for_a_keyframe_of_the_best_encoding_but_not_for_ever() {
    let start = Instant::now();
    let at = |ms| start + Duration::from_millis(ms);
    let wanted = options(2, 2, 2);
    let mut selector = Selector::starting_best();
    let mut begun = None;
    // The best one sends no keyframe, although it is requested.
    for n in 0..200_u32 {
        let now = at(u64::from(n) * 33);
        for encoding in 0..3 {
            let mut packet = simulcast(encoding, encoding < 2, now);
            packet.header.timestamp = n;
            if selector.select(&packet, 3, &wanted) == FORWARD {
                begun = begun.or(Some((encoding, now)));
            }
        }
        let asked = selector.keyframe_wanted(3, &wanted, now);
        assert!(asked.is_none_or(|asked| asked == 2), "{asked:?}");
    }
    let (encoding, when) = begun.unwrap();
    assert_eq!(encoding, 0);
    assert!((3_000..3_100).contains(&when.duration_since(start).as_millis()));
    // A viewer's stream starts immediately.
    let mut selector = Selector::default();
    let first = simulcast(0, true, start);
    assert_eq!(selector.select(&first, 3, &wanted), FORWARD);
}
