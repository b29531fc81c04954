//! The statistics and settings that administrators see and change at run time.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a failed test panics"
)]

use std::time::Duration;

use portunus_media::testing::Simulation;
use portunus_media::{DtlsState, Event, IceState, MediaSettings, PairState, PeerStats};
use portunus_rtc::bandwidth::{DataRate, Layering};
use portunus_rtc::testing::{AUDIO_PT, BottleneckLink, RTX_PT, VIDEO_PT};
use portunus_rtp::ExtensionKind;
use portunus_sdp::negotiated::{Codec, DtlsRole, Kind};

const USUAL: [u64; 3] = [150, 500, 1_700];

fn link(kbps: u64) -> BottleneckLink {
    BottleneckLink::of(DataRate::kbps(kbps))
}

fn lossy(kbps: u64, loss: f64) -> BottleneckLink {
    BottleneckLink { loss, ..link(kbps) }
}

/// One simulcast publisher, and a viewer behind a link.
fn call(down: BottleneckLink) -> Simulation {
    let mut simulation = Simulation::new(1);
    let down = simulation.link(down);
    let camera = simulation.publish(Layering::Encodings, &USUAL);
    simulation.watch(camera, down);
    simulation
}

fn check_transport(stats: &PeerStats) {
    let (ice, dtls) = (&stats.ice, &stats.dtls);
    assert_eq!(ice.state, Some(IceState::Ready));
    assert!(ice.lite && !ice.controlling, "{ice:?}");
    let connected = ice.connected.unwrap();
    assert!(ice.gathered.unwrap() <= connected && connected < Duration::from_secs(2));
    assert_eq!(ice.disconnected, None);
    assert!(ice.selected.is_some() && !ice.remote.is_empty(), "{ice:?}");
    let pair = ice.pairs[0];
    assert!(
        pair.nominated && pair.state == PairState::Succeeded,
        "{pair:?}"
    );
    assert!(pair.checks_received > 0, "the peer checks a lite agent");
    assert_eq!(dtls.state, Some(DtlsState::Connected));
    assert_eq!(dtls.role, Some(DtlsRole::Server));
    let (started, connected) = (dtls.started.unwrap(), dtls.connected.unwrap());
    assert!(started < connected && connected < stats.age, "{dtls:?}");
    assert_eq!(dtls.remote_fingerprints.len(), 1);
    assert!(dtls.srtp_profile.unwrap().starts_with("SRTP_"));
    assert!(dtls.received.packets > 0 && dtls.sent.bytes > 0);
    assert!(stats.received_datagrams > 10);
}

#[test]
fn lines_of_many_are_told_as_those_of_each_and_whoever_is_gone_is_left_out() {
    let mut simulation = call(lossy(3_000, 0.02));
    simulation.set_receiver_estimate(0, 700_000);
    simulation.run(10.0);
    let pages = [simulation.stats(0), simulation.camera_stats(0)];
    let lines = simulation.line_stats(0, 0);
    for (page, lines) in pages.iter().zip(&lines) {
        assert_eq!(format!("{:?}", page.media), format!("{:?}", lines.media));
        assert_eq!(page.remb, lines.remb);
    }
    assert!(lines[0].media[0].sent.bytes_last_second > 0);
    assert!(lines[1].media[0].received[0].bytes_last_second > 0);
}

#[test]
fn a_viewers_page_has_all_of_its_connection() {
    let mut simulation = call(link(3_000));
    simulation.run(20.0);
    let stats = simulation.stats(0);
    check_transport(&stats);
    assert!(stats.transport_cc.is_some());
    let kinds: Vec<ExtensionKind> = stats.extensions.iter().map(|(kind, _)| *kind).collect();
    assert!(kinds.contains(&ExtensionKind::AbsSendTime), "{kinds:?}");
    let [video, audio] = &stats.media[..] else {
        panic!("{:?}", stats.media);
    };
    assert_eq!((video.kind, video.index), (Kind::Video, 0));
    assert_eq!((audio.kind, audio.index), (Kind::Audio, 1));
    assert!(video.send && !video.receive && video.nacks && !audio.nacks);
    let payload = video.payloads[0];
    assert_eq!((payload.pt, payload.rtx), (VIDEO_PT, Some(RTX_PT)));
    assert_eq!((payload.codec, payload.clock_rate), (Codec::Vp8, 90_000));
    assert_eq!(audio.payloads[0].pt, AUDIO_PT);
    assert_eq!(video.nack_queue, Duration::from_secs(1));
    assert_eq!(audio.nack_queue, Duration::from_millis(550));
    let sent = &video.sent;
    assert!(sent.ssrc.is_some() && sent.rtx_ssrc.is_some());
    assert!(sent.bytes > 1_000_000 && sent.packets > 1_000, "{sent:?}");
    let second = sent.bytes_last_second * 8;
    assert!((1_300_000..2_300_000).contains(&second), "{second}");
    assert!(sent.keyframe_age.unwrap() < stats.age);
    assert!(sent.last_packet_age.unwrap() < Duration::from_millis(200));
    assert_eq!((sent.link_quality, sent.media_link_quality), (100, 100));
    // 25 ms there, 20 ms back, and the ticks of the simulation.
    let rtt = sent.rtt.unwrap();
    assert!((40..60).contains(&rtt.as_millis()), "{rtt:?}");
    let times = sent.rtt_times.unwrap();
    let by_times = times
        .ntp
        .wrapping_sub(times.last_sr)
        .wrapping_sub(times.delay);
    assert!(by_times.abs_diff((rtt.as_secs_f64() * 65_536.0) as u32) <= 1);
    assert_eq!(video.layers.unwrap().substream, Some(2));
    assert!(stats.bandwidth.unwrap().estimate > 1_500_000);
    assert!(stats.pacer.is_some());
    assert!(stats.capture.is_none() && !stats.sctp);
}

#[test]
fn a_publishers_page_has_its_encodings() {
    let mut simulation = call(link(3_000));
    simulation.run(10.0);
    let stats = simulation.camera_stats(0);
    check_transport(&stats);
    let video = &stats.media[0];
    assert!(video.receive && !video.send && video.layers.is_none());
    assert_eq!(video.received.len(), 3);
    for (received, kbps) in video.received.iter().zip(USUAL) {
        assert!(
            received.ssrc.is_some() && received.lost == 0,
            "{received:?}"
        );
        let kbps = kbps as f64;
        let second = received.bytes_last_second as f64 * 8.0 / 1_000.0;
        assert!(
            second > kbps * 0.7 && second < kbps * 1.3,
            "{second} of {kbps}"
        );
        assert!(received.jitter < Duration::from_millis(20), "{received:?}");
        assert!(received.rtt.is_none());
    }
    // The highest encoding is relayed.
    let top = &video.received[2];
    assert!(
        top.keyframe_requests > 0 && top.keyframe_age.is_some(),
        "{top:?}"
    );
    assert_eq!(stats.media[1].received.len(), 1);
}

#[test]
fn the_last_minute_is_a_series_of_seconds() {
    let mut simulation = call(link(3_000));
    simulation.run(15.0);
    simulation.set_link(1, lossy(3_000, 0.2));
    simulation.run(15.0);
    let stats = simulation.stats(0);
    let series = &stats.series;
    assert!((28..=31).contains(&series.len()), "{}", series.len());
    let ages = series.windows(2).map(|two| two[0].age - two[1].age);
    assert!(ages.clone().all(|apart| apart == Duration::from_secs(1)));
    let last = series.last().unwrap();
    assert!(last.age < Duration::from_millis(1_200), "{last:?}");
    let of = |from: u64, to: u64| {
        let range = Duration::from_secs(from)..Duration::from_secs(to);
        let within = series.iter().filter(move |it| range.contains(&it.age));
        within.copied().collect::<Vec<_>>()
    };
    for good in of(17, 22) {
        assert!((1_000_000..3_500_000).contains(&good.sent), "{good:?}");
        assert!(good.sent_lost == 0.0 && good.received == 0, "{good:?}");
        assert_eq!(good.layers.substream, Some(2));
        assert!(good.estimate.unwrap() > 1_000_000);
        assert!(good.round_trip.unwrap() < Duration::from_millis(200));
    }
    let bad = of(1, 12);
    let lost: f64 = bad.iter().map(|it| it.sent_lost).sum::<f64>() / bad.len() as f64;
    // Receivers may or may not report packets that were repaired in time.
    assert!((0.03..0.3).contains(&lost), "{lost}");
    let asked: u32 = series.iter().map(|it| u32::from(it.keyframes_wanted)).sum();
    let total = stats.media[0].sent.keyframe_requests;
    assert_eq!(u64::from(asked), total);
    let video = &stats.media[0].sent;
    assert!(video.link_quality < 100, "{}", video.link_quality);
    assert!(video.media_link_quality >= video.link_quality);
    let publisher = simulation.camera_stats(0);
    let second = publisher.series.last().unwrap();
    assert!(
        (2_000_000..3_000_000).contains(&second.received),
        "{second:?}"
    );
}

#[test]
fn who_says_nothing_for_long_has_quiet_seconds() {
    let mut simulation = call(link(3_000));
    simulation.run(10.0);
    let before = simulation.stats(0).series.len();
    simulation.cameras[0].publisher.paused = true;
    simulation.run(20.0);
    let stats = simulation.stats(0);
    assert!(stats.series.len() >= before + 18, "{}", stats.series.len());
    let last = stats.series.iter().rev().take(15);
    assert!(last.clone().all(|second| second.sent < 100_000));
    assert_eq!(stats.media[0].sent.bytes_last_second, 0);
}

#[test]
fn settings_reach_peers_that_are_there_and_those_that_come() {
    let mut simulation = call(lossy(3_000, 0.1));
    simulation.run(5.0);
    let slow = |simulation: &Simulation| {
        let told = simulation.heard.iter();
        told.filter(|(_, event)| matches!(event, Event::SlowLink { .. }))
            .count()
    };
    let before = slow(&simulation);
    assert!(before > 0);
    simulation.configure(MediaSettings {
        nack_queue: Duration::from_millis(300),
        nack_optimizations: true,
        no_media: Some(Duration::from_secs(4)),
        slow_link_threshold: 0,
    });
    simulation.run(5.0);
    assert_eq!(slow(&simulation), before, "nobody is told any more");
    let stats = simulation.stats(0);
    assert_eq!(stats.media[0].nack_queue, Duration::from_millis(300));
    assert!(stats.media[0].sent.retransmissions > 0);
    let camera = simulation.publish(Layering::Encodings, &USUAL);
    simulation.run(5.0);
    let paused = simulation.now;
    simulation.heard.clear();
    for camera in [0, camera] {
        simulation.cameras[camera].publisher.paused = true;
    }
    simulation.run(8.0);
    let silent = simulation
        .heard
        .iter()
        .filter_map(|(at, event)| match event {
            Event::Media {
                audio: false,
                receiving: false,
                ..
            } => Some(*at - paused),
            _ => None,
        });
    let silent: Vec<Duration> = silent.collect();
    assert_eq!(silent.len(), 6, "three encodings of each: {silent:?}");
    for after in silent {
        assert!((3_900..5_500).contains(&after.as_millis()), "{after:?}");
    }
}
