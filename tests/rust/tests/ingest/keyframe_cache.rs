//! The pictures kept for new viewers.

use std::time::Duration;

use portunus_media::{IngestFeed, KeyframeCache, RouteOptions};
use portunus_sdp::{CodecName, Kind};
use portunus_tests::{Peer, Sender, Stage, listen, vp8_ingest};

use crate::{assert_continuous, keyframe_request, report, tags};

#[tokio::test]
async fn new_viewers_get_the_kept_keyframe_and_what_followed_without_asking_for_one() {
    let stage = Stage::start(2);
    let (socket, rtcp) = (listen(), listen());
    let (local, rtcp_local) = (socket.local(), rtcp.local());
    let feed = IngestFeed::Sockets {
        rtp: vec![socket],
        rtcp: Some(rtcp),
    };
    let mut options = vp8_ingest(feed);
    options.worker = Some(0);
    let ingest = stage.media.add_ingest(options);
    let keep = KeyframeCache {
        max_age: Duration::from_secs(10),
        max_bytes: 0,
    };
    stage.media.keep_keyframe(ingest.id, Some(keep));
    let mut sender = Sender::new(local, 3_000);
    let control = Sender::new(rtcp_local, 1);
    let pace = || std::thread::sleep(Duration::from_millis(1));
    control.send(&report(3_000, 0));
    sender.picture(false, 2);
    let first = sender.sequence;
    sender.picture(true, 5);
    for _ in 0..20 {
        pace();
        sender.picture(false, 2);
    }
    while ingest.status.packets() < 47 {
        tokio::task::yield_now().await;
    }
    for (pictures, worker) in [0, 1, 1].into_iter().enumerate() {
        let mut viewer = stage.watch(worker, ingest.id).await;
        let expected: Vec<u16> = (first..sender.sequence).collect();
        let all = |peer: &mut Peer| peer.packets.len() >= expected.len();
        viewer.peer.run_until(all).await;
        assert_eq!(tags(&viewer.peer), expected, "worker {worker}");
        assert_continuous(&viewer.peer);
        // Each picture has its own time.
        let mut times: Vec<u32> = viewer.peer.packets.iter().map(|p| p.timestamp).collect();
        times.dedup();
        assert_eq!(times.len(), 21 + pictures);
        // Later pictures continue from there, for the next viewers, too.
        sender.picture(false, 1);
        let more = |peer: &mut Peer| peer.packets.len() > expected.len();
        viewer.peer.run_until(more).await;
        assert_continuous(&viewer.peer);
    }
    assert_eq!(ingest.status.keyframes_asked(), 0);
    assert!(ingest.status.rtcp_latched());
}

#[tokio::test]
async fn who_takes_over_in_mid_group_is_not_appended_to_what_is_kept() {
    let stage = Stage::start(2);
    let (socket, rtcp) = (listen(), listen());
    let (local, rtcp_local) = (socket.local(), rtcp.local());
    let feed = IngestFeed::Sockets {
        rtp: vec![socket],
        rtcp: Some(rtcp),
    };
    let mut options = vp8_ingest(feed);
    options.worker = Some(0);
    let ingest = stage.media.add_ingest(options);
    let keep = KeyframeCache {
        max_age: Duration::ZERO,
        max_bytes: 1 << 20,
    };
    stage.media.keep_keyframe(ingest.id, Some(keep));
    let taken = async |packets| {
        while ingest.status.packets() < packets {
            tokio::task::yield_now().await;
        }
    };
    let mut first = Sender::new(local, 1_000);
    // The other worker keeps it, too.
    let mut early = stage.watch(1, ingest.id).await;
    first.start(&mut early.peer).await;
    for _ in 0..4 {
        first.picture(false, 1);
    }
    let before = u64::from(first.sequence - 1_000);
    taken(before).await;
    let mut second = Sender::new(local, 40_000);
    let control = Sender::new(rtcp_local, 1);
    for _ in 0..4 {
        second.picture(false, 1);
    }
    taken(before + 4).await;
    control.send(&report(40_000, 0));
    // Nothing in the packets tells viewers that the reference is missing.
    assert_eq!(keyframe_request(&control.socket), 40_000);
    for worker in 0..2 {
        let mut viewer = stage.watch(worker, ingest.id).await;
        while viewer.peer.packets.is_empty() {
            second.picture(false, 1);
            viewer.peer.run_for(Duration::from_millis(20)).await;
        }
        let got = tags(&viewer.peer);
        assert!(got[0] > 40_003, "worker {worker}: {got:?}");
    }
    second.picture(true, 1);
    second.picture(false, 1);
    let last = second.sequence - 1;
    early
        .peer
        .run_until(|peer| tags(peer).last() == Some(&last))
        .await;
    for worker in 0..2 {
        let mut viewer = stage.watch(worker, ingest.id).await;
        viewer.peer.run_until(|peer| peer.packets.len() > 1).await;
        assert_eq!(tags(&viewer.peer), [last - 1, last], "worker {worker}");
    }
}

#[tokio::test]
async fn nobody_is_shown_what_was_kept_before_an_ingest_was_disabled() {
    let stage = Stage::start(2);
    let (mut sender, ingest) = stage.fed(5_000);
    let keep = KeyframeCache {
        max_age: Duration::ZERO,
        max_bytes: 1 << 20,
    };
    stage.media.keep_keyframe(ingest.id, Some(keep));
    let options = |enabled| RouteOptions {
        enabled,
        ..RouteOptions::default()
    };
    let mut viewers = Vec::new();
    for worker in 0..2 {
        let line = [(Kind::Video, Some(CodecName::Vp8))];
        let mut viewer = stage.viewer(worker, &line).await;
        let route = stage
            .media
            .route(ingest.id, viewer.tracks[0], options(true));
        viewer.peer.connect().await;
        sender.start(&mut viewer.peer).await;
        viewers.push((viewer, route));
    }
    sender.picture(true, 3);
    sender.picture(false, 2);
    let last = sender.sequence - 1;
    for (viewer, route) in &mut viewers {
        let all = |peer: &mut Peer| tags(peer).last() == Some(&last);
        viewer.peer.run_until(all).await;
        stage.media.set_route(*route, options(false));
    }
    stage.media.set_ingest_enabled(ingest.id, false);
    while ingest.status.ignored() == 0 {
        sender.picture(false, 1);
        tokio::task::yield_now().await;
    }
    stage.media.set_ingest_enabled(ingest.id, true);
    let resumed = sender.sequence;
    for (_, route) in &viewers {
        stage.media.set_route(*route, options(true));
    }
    for (viewer, _) in &mut viewers {
        let before = viewer.peer.packets.len();
        while viewer.peer.packets.len() == before {
            sender.picture(true, 1);
            viewer.peer.run_for(Duration::from_millis(20)).await;
        }
        let next = tags(&viewer.peer)[before];
        assert!(next >= resumed, "{next} of before {resumed}");
        assert_continuous(&viewer.peer);
    }
}

#[tokio::test]
async fn a_paused_viewer_goes_on_with_the_kept_picture_and_without_a_gap() {
    let stage = Stage::start(1);
    let (mut sender, ingest) = stage.fed(500);
    let keep = KeyframeCache {
        max_age: Duration::ZERO,
        max_bytes: 1 << 20,
    };
    stage.media.keep_keyframe(ingest.id, Some(keep));
    let mut viewer = stage
        .viewer(0, &[(Kind::Video, Some(CodecName::Vp8))])
        .await;
    let open = RouteOptions::default();
    let shut = RouteOptions {
        enabled: false,
        ..RouteOptions::default()
    };
    let route = stage.media.route(ingest.id, viewer.tracks[0], open.clone());
    viewer.peer.connect().await;
    sender.start(&mut viewer.peer).await;
    stage.media.set_route(route, shut);
    let taken = ingest.status.packets();
    // The worker takes commands before packets.
    for _ in 0..3 {
        sender.picture(true, 3);
        sender.picture(false, 2);
    }
    while ingest.status.packets() < taken + 15 {
        tokio::task::yield_now().await;
    }
    stage.media.set_route(route, open);
    let last = sender.sequence - 1;
    let all = |peer: &mut Peer| tags(peer).last() == Some(&last);
    viewer.peer.run_until(all).await;
    let expected: Vec<u16> = (last - 4..=last).collect();
    assert!(tags(&viewer.peer).ends_with(&expected));
    assert_continuous(&viewer.peer);
}
