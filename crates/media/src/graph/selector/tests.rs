#![allow(clippy::unwrap_used)]

use super::*;
use crate::graph::Layers;

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
    assert_eq!(selector.keyframe_wanted(3, &wanted, late), Some(1));
    assert_eq!(
        selector.select(&simulcast(1, true, late), 3, &wanted),
        FORWARD
    );
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
