#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by a panic"
)]
use super::*;
use crate::bandwidth::{LayerRates, Layering, Limit};

const USUAL: [u64; 3] = [150, 500, 1_800];
const LOW: Target = Target {
    encoding: 0,
    ..Target::ALL
};
const MIDDLE: Target = Target {
    encoding: 1,
    ..Target::ALL
};

/// A viewer, its tracks and the time.
struct Viewer {
    allocator: Allocator,
    tracks: Vec<Track>,
    now: Instant,
}

fn estimate(kbps: u64) -> Estimate {
    let rate = DataRate::kbps(kbps);
    Estimate {
        rate,
        budget: rate,
        queue: Duration::ZERO,
        loss: 0.0,
        round_trip: Duration::from_millis(50),
        limit: Limit::Delay,
        is_probing: false,
    }
}

fn rates(layering: Layering, kbps: [u64; 3]) -> LayerRates {
    let rate = |kbps| [(kbps > 0).then(|| DataRate::kbps(kbps)), None, None];
    LayerRates {
        layering,
        rates: kbps.map(rate),
    }
}

fn video(media: usize, kbps: [u64; 3]) -> Track {
    Track {
        media,
        kind: TrackKind::Video,
        priority: 0,
        rates: rates(Layering::Encodings, kbps),
        most: Target::ALL,
        wanted: true,
        pausable: false,
        asked: false,
    }
}

fn pausable(media: usize, priority: u8) -> Track {
    Track {
        priority,
        pausable: true,
        ..video(media, USUAL)
    }
}

fn audio(media: usize, kbps: u64) -> Track {
    let rates = LayerRates::single(DataRate::kbps(kbps));
    Track {
        kind: TrackKind::Audio,
        rates,
        ..video(media, USUAL)
    }
}

impl Viewer {
    fn new(tracks: &[Track]) -> Self {
        Self {
            allocator: Allocator::default(),
            tracks: tracks.to_vec(),
            now: Instant::now(),
        }
    }

    /// Lets time pass with an estimate. Returns how often a target changed.
    fn run(&mut self, seconds: u64, estimate: &Estimate) -> usize {
        let mut changes = 0;
        for _ in 0..seconds * 4 {
            let before: Vec<Option<Target>> = self.targets();
            self.now += Duration::from_millis(250);
            self.allocator.update(estimate, &self.tracks, self.now);
            let after = self.targets();
            changes += before.iter().zip(&after).filter(|(a, b)| a != b).count();
        }
        changes
    }

    fn targets(&self) -> Vec<Option<Target>> {
        self.allocator
            .decisions()
            .iter()
            .map(|decision| decision.target)
            .collect()
    }

    fn reasons(&self) -> Vec<Reason> {
        self.allocator
            .decisions()
            .iter()
            .map(|decision| decision.reason)
            .collect()
    }

    fn target(&self) -> Target {
        self.targets()[0].unwrap()
    }
}

#[test]
fn a_viewer_gets_what_fits_and_audio_comes_first() {
    let mut viewer = Viewer::new(&[video(0, USUAL), audio(1, 40)]);
    viewer.run(1, &estimate(600));
    assert_eq!(viewer.targets(), [Some(MIDDLE), Some(Target::ALL)]);
    assert_eq!(viewer.reasons(), [Reason::Bandwidth, Reason::Audio]);
    viewer.tracks[1] = audio(1, 200);
    viewer.run(4, &estimate(600));
    assert_eq!(viewer.target(), LOW);
}

#[test]
fn the_lowest_layer_flows_whatever_the_link_carries() {
    let mut viewer = Viewer::new(&[video(0, USUAL), video(1, USUAL)]);
    viewer.run(20, &estimate(30));
    assert_eq!(viewer.targets(), [Some(LOW), Some(LOW)]);
    assert_eq!(viewer.reasons(), [Reason::Least, Reason::Least]);
}

#[test]
fn only_the_client_makes_a_track_black() {
    let mut viewer = Viewer::new(&[video(0, USUAL), video(1, USUAL)]);
    viewer.run(1, &estimate(1_300));
    assert_eq!(viewer.targets(), [Some(MIDDLE), Some(MIDDLE)]);
    viewer.tracks[1].wanted = false;
    viewer.run(10, &estimate(2_400));
    assert_eq!(viewer.targets(), [Some(Target::ALL), None]);
    assert_eq!(viewer.reasons(), [Reason::Best, Reason::NotWanted]);
}

#[test]
fn what_the_link_does_not_carry_pauses_by_priority_if_the_client_permits_it() {
    let tracks = [pausable(0, 0), pausable(1, 3), pausable(2, 0)];
    let mut viewer = Viewer::new(&tracks);
    let start = Estimate {
        limit: Limit::Start,
        ..estimate(200)
    };
    viewer.run(1, &start);
    assert_eq!(viewer.targets(), [Some(LOW); 3], "the link is not known");
    viewer.run(4, &estimate(400));
    assert_eq!(viewer.targets(), [Some(LOW), Some(LOW), None]);
    assert_eq!(viewer.reasons()[2], Reason::Paused);
    viewer.run(4, &estimate(200));
    assert_eq!(viewer.targets(), [None, Some(LOW), None]);
    viewer.run(4, &estimate(100));
    assert_eq!(viewer.targets(), [None; 3]);
    viewer.run(60, &estimate(600));
    assert_eq!(viewer.targets(), [Some(LOW); 3]);
}

#[test]
fn which_track_pauses_does_not_alternate() {
    let mut viewer = Viewer::new(&[pausable(0, 0), pausable(1, 0)]);
    viewer.run(4, &estimate(250));
    assert_eq!(viewer.targets(), [Some(LOW), None]);
    viewer.tracks[0].wanted = false;
    viewer.run(10, &estimate(250));
    assert_eq!(viewer.targets(), [None, Some(LOW)]);
    viewer.tracks[0].wanted = true;
    assert_eq!(viewer.run(60, &estimate(250)), 0);
    assert_eq!(viewer.reasons(), [Reason::Paused, Reason::Bandwidth]);
}

#[test]
fn a_queue_alone_pauses_nothing() {
    let mut viewer = Viewer::new(&[pausable(0, 0)]);
    viewer.run(2, &estimate(600));
    let mut queue = estimate(600);
    queue.queue = Duration::from_millis(300);
    queue.budget = DataRate::kbps(100);
    viewer.run(2, &queue);
    assert!(viewer.targets()[0].is_some());
}

#[test]
fn a_client_that_wants_more_is_not_kept_waiting() {
    let mut viewer = Viewer::new(&[video(0, USUAL)]);
    viewer.tracks[0].most = LOW;
    viewer.run(1, &estimate(3_000));
    assert_eq!(
        (viewer.target(), viewer.reasons()[0]),
        (LOW, Reason::ClientBound)
    );
    viewer.tracks[0].most = Target::ALL;
    viewer.run(1, &estimate(3_000));
    assert_eq!(
        (viewer.target(), viewer.reasons()[0]),
        (Target::ALL, Reason::Best)
    );
}

#[test]
fn nothing_rises_within_five_seconds_of_a_change() {
    let mut viewer = Viewer::new(&[video(0, USUAL)]);
    viewer.run(1, &estimate(300));
    viewer.run(1, &estimate(800));
    assert_eq!(viewer.target(), MIDDLE);
    viewer.run(3, &estimate(3_000));
    assert_eq!(
        (viewer.target(), viewer.reasons()[0]),
        (MIDDLE, Reason::Holding)
    );
    viewer.run(2, &estimate(3_000));
    assert_eq!(viewer.target(), Target::ALL);
}

#[test]
fn an_estimate_that_swings_around_a_layer_does_not_make_it_flap() {
    let mut viewer = Viewer::new(&[video(0, USUAL)]);
    viewer.run(1, &estimate(700));
    let mut changes = 0;
    for _ in 0..60 {
        changes += viewer.run(1, &estimate(510)) + viewer.run(1, &estimate(640));
    }
    assert_eq!(changes, 0);
}

#[test]
fn a_queue_lowers_at_once_and_is_emptied_below_the_estimate() {
    let mut viewer = Viewer::new(&[video(0, USUAL)]);
    viewer.run(6, &estimate(3_000));
    let queue = Duration::from_millis(400);
    let congested = Estimate {
        queue,
        budget: DataRate::kbps(200),
        ..estimate(700)
    };
    viewer.now += Duration::from_millis(50);
    viewer
        .allocator
        .update(&congested, &viewer.tracks, viewer.now);
    let decision = viewer.allocator.decisions()[0];
    assert_eq!(decision.target, Some(LOW));
    assert_eq!(
        (decision.reason, decision.cut),
        (Reason::EmptyingQueue, true)
    );
    viewer.run(1, &estimate(700));
    assert_eq!(
        (viewer.target(), viewer.reasons()[0]),
        (MIDDLE, Reason::Bandwidth)
    );
}

#[test]
fn a_decrease_without_a_queue_is_borne_for_a_while() {
    let mut viewer = Viewer::new(&[video(0, USUAL)]);
    viewer.run(6, &estimate(3_000));
    viewer.run(2, &estimate(1_600));
    assert_eq!(viewer.target(), Target::ALL);
    viewer.run(2, &estimate(1_600));
    assert_eq!(viewer.target(), MIDDLE);
}

#[test]
fn a_raise_that_fails_is_not_tried_again_soon() {
    let mut viewer = Viewer::new(&[video(0, USUAL)]);
    viewer.run(1, &estimate(600));
    let queue = Duration::from_millis(200);
    let congested = Estimate {
        queue,
        ..estimate(700)
    };
    let mut raises = 0;
    for _ in 0..120 {
        viewer.run(1, &estimate(2_500));
        if viewer.target() == Target::ALL {
            raises += 1;
            viewer.run(1, &congested);
            assert_eq!(viewer.target(), MIDDLE, "it does not end any lower");
        }
    }
    assert!((3..=6).contains(&raises), "{raises}");
}

#[test]
fn a_layer_that_vanishes_is_replaced_and_comes_back_like_any_raise() {
    for layering in [Layering::Encodings, Layering::Spatial] {
        let mut viewer = Viewer::new(&[video(0, [150, 500, 1_200])]);
        viewer.tracks[0].rates = rates(layering, [150, 500, 1_200]);
        viewer.run(6, &estimate(4_000));
        assert_eq!(viewer.target(), Target::ALL);
        viewer.tracks[0].rates = rates(layering, [150, 500, 0]);
        viewer.run(30, &estimate(4_000));
        let expected = match layering {
            Layering::Encodings => MIDDLE,
            Layering::Spatial => Target {
                spatial: 1,
                ..Target::ALL
            },
        };
        assert_eq!(
            (viewer.target().encoding, viewer.target().spatial),
            (expected.encoding, expected.spatial)
        );
        assert_eq!(viewer.reasons()[0], Reason::Best, "it is all that is sent");
        viewer.tracks[0].rates = rates(layering, [150, 500, 1_200]);
        viewer.run(1, &estimate(900));
        assert_eq!(viewer.reasons()[0], Reason::Bandwidth);
        viewer.run(6, &estimate(4_000));
        assert_eq!(
            (viewer.target(), viewer.reasons()[0]),
            (Target::ALL, Reason::Best)
        );
    }
}

#[test]
fn what_is_not_measured_yet_begins_with_the_least() {
    let mut viewer = Viewer::new(&[video(0, [0; 3])]);
    viewer.run(1, &estimate(3_000));
    assert_eq!(
        (viewer.target().encoding, viewer.reasons()[0]),
        (0, Reason::Unmeasured)
    );
    assert!(
        viewer.allocator.wanted() > DataRate::kbps(1_000),
        "probes need an aim"
    );
    assert!(viewer.allocator.poll_timeout().is_some());
}

#[test]
fn probes_look_for_no_more_than_the_tracks_can_use() {
    let mut viewer = Viewer::new(&[video(0, USUAL), audio(1, 40)]);
    viewer.run(1, &estimate(600));
    assert!(viewer.allocator.wanted() > DataRate::kbps(2_100));
    viewer.run(
        10,
        &Estimate {
            rate: viewer.allocator.wanted(),
            ..estimate(9_000)
        },
    );
    assert_eq!(viewer.reasons()[0], Reason::Best);
    assert!(viewer.allocator.wanted() < DataRate::kbps(2_100));
    assert_eq!(viewer.allocator.poll_timeout(), None, "nothing is pending");
}

#[test]
fn publishers_of_a_single_layer_share_what_layers_leave() {
    let mut viewer = Viewer::new(&[video(0, [700, 0, 0]), video(1, [700, 0, 0])]);
    viewer.run(4, &estimate(1_000));
    let shares = |viewer: &Viewer| -> Vec<Option<DataRate>> {
        viewer
            .allocator
            .decisions()
            .iter()
            .map(|decision| decision.share)
            .collect()
    };
    assert_eq!(shares(&viewer), [Some(DataRate::kbps(475)); 2]);
    viewer.tracks[1] = video(1, USUAL);
    viewer.run(10, &estimate(1_400));
    assert_eq!(shares(&viewer), [Some(DataRate::kbps(830)), None]);
    viewer.run(10, &estimate(50));
    assert_eq!(shares(&viewer), [Some(LEAST_SHARE), None]);
    viewer.run(20, &estimate(9_000));
    assert_eq!(shares(&viewer), [None, None], "nobody is asked for less");
}

#[test]
fn what_flowed_before_is_given_again_to_a_client_that_asks_though_the_estimate_is_small() {
    let mut viewer = Viewer::new(&[video(0, USUAL)]);
    viewer.run(10, &estimate(3_000));
    viewer.tracks[0].most = LOW;
    viewer.run(20, &estimate(200));
    viewer.tracks[0].most = Target::ALL;
    let probed = Estimate {
        is_probing: true,
        ..estimate(200)
    };
    viewer.run(1, &probed);
    assert_eq!(viewer.target(), Target::ALL);
    viewer.run(10, &estimate(200));
    assert_eq!(viewer.target(), LOW, "it has not shown again");
}

#[test]
fn a_full_link_says_more_than_what_flowed_before() {
    let mut viewer = Viewer::new(&[video(0, USUAL)]);
    viewer.run(10, &estimate(3_000));
    viewer.tracks[0].most = LOW;
    let congested = Estimate {
        queue: Duration::from_millis(200),
        ..estimate(200)
    };
    viewer.run(1, &congested);
    viewer.tracks[0].most = Target::ALL;
    viewer.run(1, &estimate(200));
    assert_eq!(viewer.target(), LOW);
}

#[test]
fn a_viewer_follows_the_estimate_if_all_its_publishers_are_asked_and_we_measure() {
    let asked = Track {
        asked: true,
        ..video(0, USUAL)
    };
    let free = video(1, USUAL);
    let receiver = Estimate {
        limit: Limit::Receiver,
        ..estimate(600)
    };
    for (tracks, estimate, follows) in [
        (vec![asked, audio(2, 40)], estimate(600), true),
        (vec![asked], receiver, false),
        (vec![asked, free], estimate(600), false),
        (vec![free], estimate(600), false),
        (vec![audio(2, 40)], estimate(600), false),
    ] {
        let mut viewer = Viewer::new(&tracks);
        viewer.run(1, &estimate);
        assert_eq!(viewer.allocator.follows(), follows, "{tracks:?}");
    }
}

#[test]
fn a_change_of_priorities_waits_for_nothing_and_is_told() {
    // There is room for one top layer, or for two middle ones.
    const KBPS: [u64; 3] = [150, 900, 1_500];
    let mut viewer = Viewer::new(&[video(0, KBPS), video(1, KBPS)]);
    viewer.run(20, &estimate(2_450));
    assert_eq!(viewer.targets(), [Some(MIDDLE); 2]);
    assert_eq!(viewer.reasons(), [Reason::Bandwidth; 2]);
    for (first, other) in [(0, 1), (1, 0)] {
        viewer.tracks[first].priority = 2;
        viewer.tracks[other].priority = 1;
        viewer.run(1, &estimate(2_450));
        assert_eq!(viewer.targets()[first], Some(Target::ALL));
        assert_eq!(viewer.targets()[other], Some(LOW));
        assert_eq!(viewer.reasons()[other], Reason::Priority);
    }
    // Without the other track, the result would be the same.
    viewer.tracks[1].priority = 0;
    viewer.run(20, &estimate(400));
    assert_eq!(viewer.reasons(), [Reason::Bandwidth; 2]);
}
