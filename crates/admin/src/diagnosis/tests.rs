#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by a panic"
)]

use std::time::Duration;

use portunus_media::{
    BandwidthStats, Carrier, DtlsState, DtlsStats, IceAttempt, IceState, IceStats, LayerStats,
    RemoteCandidate, StreamStats,
};
use portunus_rtc::LocalCandidate;
use portunus_rtp::{Mid, Rid};

use super::*;

const SECOND: Duration = Duration::from_secs(1);

/// A call of a minute, with video both ways, in which all is well.
fn healthy() -> PeerStats {
    let flowing = StreamStats {
        packets: 10_000,
        last_packet_age: Some(Duration::from_millis(20)),
        keyframe_age: Some(SECOND),
        ..StreamStats::default()
    };
    let video = MediaStats {
        mid: Mid::new("1").unwrap(),
        index: 0,
        kind: Kind::Video,
        send: true,
        receive: true,
        payloads: Vec::new(),
        nacks: true,
        nack_queue: SECOND,
        rids: Vec::new(),
        received: vec![flowing.clone()],
        sent: flowing,
        layers: None,
        messages: None,
    };
    let sample = Sample {
        received: 1_000_000,
        sent: 1_000_000,
        round_trip: Some(Duration::from_millis(30)),
        ..Sample::default()
    };
    PeerStats {
        age: 60 * SECOND,
        ice: IceStats {
            state: Some(IceState::Ready),
            connected: Some(Duration::from_millis(200)),
            ..IceStats::default()
        },
        dtls: DtlsStats {
            state: Some(DtlsState::Connected),
            connected: Some(Duration::from_millis(300)),
            ..DtlsStats::default()
        },
        media: vec![video],
        series: vec![sample; 60],
        ..PeerStats::default()
    }
}

/// The same before ICE has connected, after so long: the client has named an address, and nothing
/// came from there.
fn connecting(age: Duration) -> PeerStats {
    let address = ([203, 0, 113, 7], 10_000).into();
    let client = RemoteCandidate {
        address: ([198, 51, 100, 9], 61_234).into(),
        carrier: Carrier::Udp,
        kind: "host",
    };
    PeerStats {
        age,
        ice: IceStats {
            state: Some(IceState::Connecting),
            connected: None,
            attempt: Some(IceAttempt {
                time: age,
                locals: vec![LocalCandidate::udp(address, address)],
                remotes: vec![client],
                ..IceAttempt::default()
            }),
            ..healthy().ice
        },
        dtls: DtlsStats::default(),
        series: Vec::new(),
        ..healthy()
    }
}

fn causes_of(stats: &PeerStats) -> Vec<Cause> {
    diagnose(&Observed {
        stats,
        negotiated: true,
        worker: None,
    })
}

/// Checks that a healthy call changed by `change` has this cause only, with these words.
#[track_caller]
fn tells(code: &str, words: &[&str], change: impl FnOnce(&mut PeerStats)) {
    let mut stats = healthy();
    change(&mut stats);
    told(code, words, &causes_of(&stats));
}

#[track_caller]
fn told(code: &str, words: &[&str], causes: &[Cause]) {
    let codes: Vec<_> = causes.iter().map(|cause| cause.code).collect();
    assert_eq!(codes, [code], "{causes:?}");
    for word in words {
        let text = &causes[0].text;
        assert!(text.contains(word), "{word}: {text}");
    }
}

#[test]
fn nothing_is_said_of_a_healthy_call_nor_of_one_that_has_just_begun() {
    assert_eq!(causes_of(&healthy()), []);
    assert_eq!(causes_of(&connecting(2 * SECOND)), []);
    let new = PeerStats {
        age: SECOND,
        ..PeerStats::default()
    };
    for negotiated in [false, true] {
        let stats = &new;
        assert_eq!(
            diagnose(&Observed {
                stats,
                negotiated,
                worker: None
            }),
            []
        );
    }
}

#[test]
fn a_description_that_is_not_answered() {
    let stats = connecting(6 * SECOND);
    let causes = diagnose(&Observed {
        stats: &stats,
        negotiated: false,
        worker: None,
    });
    told("no-answer", &["6 s"], &causes);
}

#[test]
fn ice_that_does_not_succeed_is_told_of_after_a_while() {
    let after = |time, remotes: bool| {
        let mut stats = connecting(time);
        let attempt = stats.ice.attempt.as_mut().unwrap();
        attempt.remotes.truncate(usize::from(remotes));
        causes_of(&stats)
    };
    assert_eq!(after(2 * SECOND, false), []);
    told("no-candidates", &["3 s"], &after(3 * SECOND, false));
    assert_eq!(after(4 * SECOND, true), []);
    told("unreachable", &["5 s"], &after(5 * SECOND, true));
}

#[test]
fn a_client_that_went_away() {
    tells("connection-lost", &["12 s"], |stats| {
        stats.ice.state = Some(IceState::Disconnected);
        stats.ice.attempt = Some(IceAttempt {
            time: 12 * SECOND,
            was_connected: true,
            ..IceAttempt::default()
        });
    });
}

#[test]
fn a_handshake_that_is_not_done() {
    tells(
        "dtls-unfinished",
        &["4 s", "3 datagrams", "2 times"],
        |stats| {
            stats.age = Duration::from_millis(4_200);
            stats.dtls = DtlsStats {
                state: Some(DtlsState::Trying),
                retransmissions: 2,
                ..DtlsStats::default()
            };
            stats.dtls.received.packets = 3;
        },
    );
    tells("dtls-failed", &["fingerprint"], |stats| {
        stats.dtls.state = Some(DtlsState::Failed);
    });
}

#[test]
fn media_that_do_not_come() {
    tells(
        "no-media-from-client",
        &["video (mid 1)", "7 s", "muted"],
        |stats| {
            stats.media[0].received[0].last_packet_age = Some(7 * SECOND);
        },
    );
    tells("no-media-from-client", &["no track"], |stats| {
        stats.media[0].received.clear();
    });
    tells("no-media-to-client", &["7 s"], |stats| {
        stats.media[0].sent.last_packet_age = Some(7 * SECOND);
    });
    tells("no-media-to-client", &["nobody sends it"], |stats| {
        stats.media[0].sent.last_packet_age = None;
    });
}

#[test]
fn media_that_were_not_agreed_on_are_not_missed() {
    let mut stats = healthy();
    let video = &mut stats.media[0];
    (video.send, video.receive) = (false, false);
    video.received.clear();
    video.sent = StreamStats::default();
    assert_eq!(causes_of(&stats), []);
}

#[test]
fn keyframes_that_do_not_come() {
    let asks = |stats: &mut PeerStats, ours: u8, theirs: u8| {
        for sample in stats.series.iter_mut().rev().take(3) {
            (sample.keyframes_asked, sample.keyframes_wanted) = (ours, theirs);
        }
    };
    tells(
        "no-keyframe-from-client",
        &["6 times", "for 5 s"],
        |stats| {
            let received = &mut stats.media[0].received[0];
            (received.keyframe_requests, received.keyframe_age) = (6, Some(5 * SECOND));
            asks(stats, 2, 0);
        },
    );
    tells("no-keyframe-to-client", &["3 times", "yet"], |stats| {
        let sent = &mut stats.media[0].sent;
        (sent.keyframe_requests, sent.keyframe_age) = (3, None);
        asks(stats, 0, 1);
    });
    tells("no-keyframe-to-client", &["0 times", "for 9 s"], |stats| {
        stats.media[0].sent.keyframe_age = Some(9 * SECOND);
        stats.media[0].layers = Some(layers("keyframe"));
    });
    // One that came after the requests is enough, and so is one request.
    let mut stats = healthy();
    asks(&mut stats, 2, 2);
    stats.media[0].received[0].keyframe_requests = 6;
    stats.media[0].sent.keyframe_requests = 6;
    assert_eq!(causes_of(&stats), []);
}

#[test]
fn losses_are_told_by_their_way() {
    let lossy = |stats: &mut PeerStats, from: f64, to: f64| {
        for sample in &mut stats.series {
            (sample.received_lost, sample.sent_lost) = (from, to);
        }
    };
    tells("loss-from-client", &["8 %", "10 s"], |stats| {
        lossy(stats, 0.08, 0.01)
    });
    tells("loss-to-client", &["8 %"], |stats| lossy(stats, 0.01, 0.08));
    tells("loss-to-client", &["50 %", "carry 400 kbit/s"], |stats| {
        lossy(stats, 0.0, 0.5);
        stats.bandwidth = Some(BandwidthStats {
            loss: 0.4,
            ..link("loss")
        });
    });
    // Hardly any was lost between the server and this client.
    tells("loss-at-publisher", &["50 %", "publishes"], |stats| {
        lossy(stats, 0.0, 0.5);
        stats.bandwidth = Some(link("delay"));
    });
    // Past loss does not count, and two seconds are too few to judge.
    let mut stats = healthy();
    stats.series[40].received_lost = 0.9;
    assert_eq!(causes_of(&stats), []);
    lossy(&mut stats, 0.5, 0.5);
    stats.series.truncate(2);
    assert_eq!(causes_of(&stats), []);
}

#[test]
fn a_long_way() {
    let far = |stats: &mut PeerStats| {
        for sample in &mut stats.series {
            sample.round_trip = Some(Duration::from_millis(450));
        }
    };
    tells("round-trip", &["450 ms"], far);
    tells("round-trip", &["300 ms of it", "queue"], |stats| {
        far(stats);
        stats.bandwidth = Some(BandwidthStats {
            queue: Duration::from_millis(300),
            ..link("delay")
        });
    });
}

fn link(set_by: &'static str) -> BandwidthStats {
    BandwidthStats {
        estimate: 400_000,
        budget: 400_000,
        set_by,
        queue: Duration::ZERO,
        loss: 0.0,
        round_trip: Duration::from_millis(30),
        probing: false,
    }
}

fn layers(reason: &'static str) -> LayerStats {
    LayerStats {
        substream: Some(0),
        spatial: None,
        temporal: Some(2),
        bitrate: 120_000,
        reason,
        asked_of_publisher: None,
    }
}

#[test]
fn a_picture_that_is_smaller_than_it_could_be() {
    let gets = "encoding 0, temporal layer 2 and 120 kbit/s";
    for (reason, code, words) in [
        ("bandwidth", "estimate-low", ["400 kbit/s", "wait", gets]),
        ("least", "estimate-low", ["400 kbit/s", "wait", gets]),
        (
            "emptying-queue",
            "estimate-low",
            ["400 kbit/s", "wait", gets],
        ),
        (
            "holding",
            "estimate-rising",
            ["too recent", "some seconds", gets],
        ),
        ("priority", "priority-low", ["priority", "first", gets]),
        (
            "client-bound",
            "client-bound",
            ["asked for no more", "substream", gets],
        ),
        ("silent", "publisher-low", ["publishes", "due", gets]),
    ] {
        tells(code, &words, |stats| {
            stats.media[0].layers = Some(layers(reason));
            stats.bandwidth = Some(link("delay"));
        });
    }
    for reason in ["audio", "best", "unmeasured", "not-wanted"] {
        let mut stats = healthy();
        stats.media[0].layers = Some(layers(reason));
        assert_eq!(causes_of(&stats), [], "{reason}");
    }
}

#[test]
fn encodings_that_the_client_leaves_out() {
    let encodings = |flowing: [bool; 3]| {
        let mut stats = healthy();
        let one = stats.media[0].received[0].clone();
        stats.media[0].received = flowing
            .map(|flows| StreamStats {
                last_packet_age: flows.then_some(Duration::ZERO),
                ..one.clone()
            })
            .into();
        stats.media[0].rids = ["l", "m", "h"].map(|rid| Rid::new(rid).unwrap()).into();
        causes_of(&stats)
    };
    told(
        "client-sends-low",
        &["1 of 3", "not m, h"],
        &encodings([true, false, false]),
    );
    assert_eq!(encodings([true, true, true]), []);
    // Browsers may leave the lower ones out.
    assert_eq!(encodings([false, false, true]), []);
}

#[test]
fn a_low_cap() {
    tells("bitrate-cap", &["128 kbit/s"], |stats| {
        stats.bitrate_cap = Some(128_000)
    });
    let mut stats = healthy();
    stats.bitrate_cap = Some(2_000_000);
    assert_eq!(causes_of(&stats), []);
    (stats.bitrate_cap, stats.media[0].receive) = (Some(128_000), false);
    assert_eq!(causes_of(&stats), []);
}

#[test]
fn a_worker_that_is_late() {
    let stats = healthy();
    let on = |worker: WorkerStats| {
        diagnose(&Observed {
            stats: &stats,
            negotiated: true,
            worker: Some(&worker),
        })
    };
    let busy = WorkerStats {
        index: 3,
        peers: 900,
        lag_median: Duration::from_millis(1),
        lag_max: Duration::from_millis(80),
        core_share: 0.97,
        ..WorkerStats::default()
    };
    told(
        "worker-late",
        &["Worker 3", "80 ms", "900 peers", "97 %"],
        &on(busy.clone()),
    );
    let calm = WorkerStats {
        lag_max: Duration::from_millis(2),
        ..busy.clone()
    };
    assert_eq!(on(calm), []);
    let stuck = WorkerStats {
        silent: 5 * SECOND,
        ..busy
    };
    told("worker-stuck", &["Worker 3", "5 s"], &on(stuck));
}

#[test]
fn several_causes_are_told_what_matters_most_first() {
    let mut stats = healthy();
    stats.media[0].received[0].last_packet_age = Some(7 * SECOND);
    stats.media[0].layers = Some(layers("bandwidth"));
    for sample in &mut stats.series {
        sample.sent_lost = 0.2;
    }
    let codes: Vec<_> = causes_of(&stats).iter().map(|cause| cause.code).collect();
    assert_eq!(
        codes,
        ["no-media-from-client", "loss-to-client", "estimate-low"]
    );
}
