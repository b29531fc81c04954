//! Ingests under rough conditions: loss towards viewers, floods, noise, encodings that stop.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use portunus_media::ingest::{DataIngest, IngestSrtp, Refused, SrtpSuite};
use portunus_media::{Event, IngestFeed, IngestOptions, Layer};
use portunus_rtp::SeqNo;
use portunus_sdp::negotiated::Codec;
use portunus_srtp::{Profile, Sealer};
use portunus_tests::{Peer, Sender, Stage, listen, vp8_ingest};
use rand::rngs::StdRng;
use rand::{Rng, RngCore, SeedableRng};
use tokio::task::JoinSet;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_fifty_viewers_lose_is_repaired_from_one_history() {
    const VIEWERS: u64 = 50;
    const PICTURES: usize = 100;
    let stage = Stage::start(2);
    let (mut sender, ingest) = stage.fed(100);
    let mut viewers = Vec::new();
    for n in 0..VIEWERS {
        let mut viewer = stage.watch(n as usize % 2, ingest.id).await;
        viewer.peer.lose(0.05, n);
        viewers.push(viewer);
    }
    let mut tasks = JoinSet::new();
    for mut viewer in viewers {
        tasks.spawn(async move {
            // From the first received picture to the last one, nothing is missing.
            let whole = |peer: &mut Peer| {
                let seqs: HashSet<u64> = peer.packets.iter().map(|p| p.seq).collect();
                let (Some(low), Some(high)) = (seqs.iter().min(), seqs.iter().max()) else {
                    return false;
                };
                let end = peer.packets.iter().any(|p| p.payload.ends_with(b"end"));
                end && seqs.len() as u64 == high - low + 1
            };
            viewer.peer.run_until(whole).await;
            let lost = viewer.peer.lost();
            (lost, viewer.peer.packets.len())
        });
    }
    for n in 0..PICTURES {
        sender.picture(n == 0, 3);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // The last packets may be lost, too, which repeated ones show.
    for _ in 0..20 {
        let mut payload = portunus_tests::vp8(false, 1, sender.sequence);
        payload.extend_from_slice(b"end");
        let packet = sender.packet(true, &payload);
        sender.send(&packet);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let mut lost = 0;
    while let Some(viewer) = tasks.join_next().await {
        let (some, packets) = viewer.unwrap();
        assert!(packets > PICTURES * 2, "{packets}");
        lost += some;
    }
    assert!(lost > 300, "{lost} datagrams were lost to be repaired");
}

#[tokio::test]
async fn a_flood_on_one_port_takes_nothing_from_another() {
    let stage = Stage::start(1);
    let (flooded, quiet) = (listen(), listen());
    let flood = Sender::new(flooded.local(), 1);
    let mut sender = Sender::new(quiet.local(), 2_000);
    let flooded = stage
        .media
        .add_ingest(vp8_ingest(IngestFeed::socket(flooded)));
    let ingest = stage
        .media
        .add_ingest(vp8_ingest(IngestFeed::socket(quiet)));
    let mut viewer = stage.watch(0, ingest.id).await;
    let mut drowned = stage.watch(0, flooded.id).await;
    sender.start(&mut viewer.peer).await;
    let stop = Arc::new(AtomicBool::new(false));
    let flooding = {
        let stop = Arc::clone(&stop);
        std::thread::spawn(move || {
            let mut flood = flood;
            while !stop.load(Ordering::Relaxed) {
                for _ in 0..50 {
                    flood.picture(true, 1);
                }
                std::thread::yield_now();
            }
        })
    };
    for _ in 0..50 {
        sender.picture(false, 3);
        viewer.peer.run_for(Duration::from_millis(10)).await;
    }
    let got = viewer.peer.packets.len();
    assert!(got > 150, "{got}");
    for pair in viewer.peer.packets.windows(2) {
        assert_eq!(pair[1].seq, pair[0].seq + 1);
    }
    stop.store(true, Ordering::Relaxed);
    flooding.join().unwrap();
    // A control message still reaches the viewer of the flood.
    drowned
        .peer
        .run_until(|peer| !peer.packets.is_empty())
        .await;
}

#[tokio::test]
async fn noise_on_every_port_breaks_nothing() {
    let stage = Stage::start(2);
    let sockets = || {
        let rtp: Vec<_> = (0..3).map(|_| listen()).collect();
        (rtp, listen())
    };
    let mut targets = Vec::new();
    let mut ingests = Vec::new();
    for codec in [
        Codec::Vp8,
        Codec::Vp9,
        Codec::H264,
        Codec::H265,
        Codec::Av1,
        Codec::Opus,
    ] {
        let (rtp, rtcp) = sockets();
        targets.extend(rtp.iter().chain([&rtcp]).map(|socket| socket.local()));
        let feed = IngestFeed::Sockets {
            rtp,
            rtcp: Some(rtcp),
        };
        let mut options = IngestOptions::rtp(codec, 90_000, feed);
        if let portunus_media::IngestMedia::Rtp(media) = &mut options.media {
            media.skew = true;
            media.svc = true;
            media.abs_capture_time = Some(3);
            media.h264_parameter_sets =
                portunus_media::ingest::ParameterSets::from_sprop("Z0LAHg==,aM48gA==").ok();
        }
        ingests.push(stage.media.add_ingest(options));
    }
    for suite in [
        SrtpSuite::AesCm128HmacSha1_32,
        SrtpSuite::AesCm128HmacSha1_80,
    ] {
        let socket = listen();
        targets.push(socket.local());
        let mut options = vp8_ingest(IngestFeed::socket(socket));
        options.srtp = Some(IngestSrtp {
            suite,
            key_and_salt: [7; 30],
        });
        ingests.push(stage.media.add_ingest(options));
    }
    let socket = listen();
    targets.push(socket.local());
    let data = DataIngest {
        label: "noise",
        text: false,
        keep_last: true,
        framed: false,
    };
    ingests.push(
        stage
            .media
            .add_ingest(IngestOptions::data(data, IngestFeed::socket(socket))),
    );
    let mut viewers = Vec::new();
    for (n, ingest) in ingests.iter().enumerate() {
        let keep = portunus_media::KeyframeCache {
            max_age: Duration::from_secs(1),
            max_bytes: 100_000,
        };
        stage.media.keep_keyframe(ingest.id, Some(keep));
        viewers.push(stage.watch(n % 2, ingest.id).await);
    }
    let mut rng = StdRng::seed_from_u64(3);
    let senders: Vec<Sender> = targets.iter().map(|to| Sender::new(*to, 0)).collect();
    for round in 0..300 {
        for sender in &senders {
            let mut datagram = vec![0; rng.random_range(0..200)];
            if rng.random_bool(0.02) {
                datagram.resize(rng.random_range(1_500..9_000), 0);
            }
            rng.fill_bytes(&mut datagram);
            // Much of it looks like RTP or RTCP at first.
            if rng.random_bool(0.8)
                && let [first, ..] = datagram.as_mut_slice()
            {
                *first = 0x80 | *first & 0x3f;
            }
            sender.send(&datagram);
        }
        if round % 50 == 0 {
            viewers[0].peer.run_for(Duration::from_millis(5)).await;
        }
    }
    // All goes on: a good stream on a new ingest, and on a flooded one.
    let (mut sender, ingest) = stage.fed(5);
    for worker in 0..2 {
        let mut viewer = stage.watch(worker, ingest.id).await;
        sender.start(&mut viewer.peer).await;
    }
    assert!(
        ingests
            .iter()
            .any(|ingest| ingest.status.refused_as(Refused::TooLong) > 0)
    );
    for ingest in &ingests[..6] {
        assert!(ingest.status.refused() > 0);
    }
    let mut good = Sender::new(targets[0], 77);
    viewers[0].peer.packets.clear();
    good.start(&mut viewers[0].peer).await;
}

#[tokio::test]
async fn an_encoding_that_stops_gives_way_to_a_lower_one() {
    let mut stage = Stage::start(2);
    let rtp: Vec<_> = (0..3).map(|_| listen()).collect();
    let mut senders: Vec<_> = rtp
        .iter()
        .enumerate()
        .map(|(n, socket)| Sender::new(socket.local(), 10_000 * (n as u32 + 1)))
        .collect();
    let mut options = vp8_ingest(IngestFeed::Sockets { rtp, rtcp: None });
    options.worker = Some(0);
    let ingest = stage.media.add_ingest(options);
    let mut viewer = stage.watch(1, ingest.id).await;
    let mut layer = Layer::default();
    for (alive, wanted) in [(3, 2), (1, 0), (3, 2)] {
        let patience = Instant::now() + Duration::from_secs(20);
        while layer.substream != Some(wanted) {
            assert!(Instant::now() < patience, "{layer:?}");
            for sender in &mut senders[..alive] {
                sender.picture(true, 2);
            }
            viewer.peer.run_for(Duration::from_millis(20)).await;
            while let Ok(event) = stage.events.try_recv() {
                if let Event::Layer { layer: now, .. } = event.event {
                    layer = now;
                }
            }
        }
    }
    for pair in viewer.peer.packets.windows(2) {
        assert_eq!(pair[1].seq, pair[0].seq + 1);
    }
}

#[tokio::test]
async fn srtp_is_opened_and_what_is_not_authentic_refused() {
    for (suite, profile) in [
        (SrtpSuite::AesCm128HmacSha1_80, Profile::Aes128CmSha1_80),
        (SrtpSuite::AesCm128HmacSha1_32, Profile::Aes128CmSha1_32),
    ] {
        let stage = Stage::start(1);
        let socket = listen();
        let mut sender = Sender::new(socket.local(), 60);
        let key: [u8; 30] = std::array::from_fn(|n| n as u8);
        let sealer = Sealer::new(profile, &key[..16], &key[16..]).unwrap();
        let mut options = vp8_ingest(IngestFeed::socket(socket));
        options.srtp = Some(IngestSrtp {
            suite,
            key_and_salt: key,
        });
        let ingest = stage.media.add_ingest(options);
        let mut viewer = stage.watch(0, ingest.id).await;
        let mut payload = Vec::new();
        for _ in 0..200 {
            let sequence = sender.sequence;
            payload = portunus_tests::vp8(true, 0, sequence);
            // In the clear: refused.
            let plain = sender.packet(true, &payload);
            sender.send(&plain);
            let mut sealed = plain.clone();
            sealed.resize(plain.len() + 16, 0);
            let index = SeqNo(u64::from(sequence));
            let len = sealer.seal_rtp(index, 12, plain.len(), &mut sealed);
            sender.send(&sealed[..len.unwrap()]);
            sender.timestamp += 3_000;
            let until = Instant::now() + Duration::from_millis(20);
            let came = |peer: &mut Peer| !peer.packets.is_empty() || Instant::now() > until;
            viewer.peer.run_until(came).await;
            if !viewer.peer.packets.is_empty() {
                break;
            }
        }
        assert_eq!(viewer.peer.packets[0].payload.len(), payload.len());
        assert!(ingest.status.refused_as(Refused::Unauthentic) > 0);
        assert!(ingest.status.packets() > 0);
    }
}

#[tokio::test]
async fn what_is_refused_is_told_and_is_no_sign_of_life() {
    let stage = Stage::start(1);
    let listener = listen();
    let mut sender = Sender::new(listener.local(), 61);
    let mut options = vp8_ingest(IngestFeed::socket(listener));
    options.srtp = Some(IngestSrtp {
        suite: SrtpSuite::AesCm128HmacSha1_80,
        key_and_salt: [7; 30],
    });
    let ingest = stage.media.add_ingest(options);
    let added = Instant::now();
    let status = &ingest.status;
    assert_eq!(status.refusal(), None);
    let wait_for = async |what: &dyn Fn() -> bool, sender: &mut Sender| {
        while !what() {
            assert!(added.elapsed() < Duration::from_secs(20), "{status:?}");
            sender.picture(true, 1);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    // No SRTP at all, for so long that its packets would be younger than the ingest.
    let long_enough = || status.refused() > 10 && added.elapsed() > Duration::from_millis(100);
    wait_for(&long_enough, &mut sender).await;
    let since = added.elapsed();
    assert!(status.age() >= since, "{:?} < {since:?}", status.age());
    let refusal = status.refusal().unwrap();
    assert_eq!(refusal.why, Refused::Unauthentic);
    assert!(refusal.datagrams > 10 && refusal.age < since, "{refusal:?}");
    assert_eq!(status.packets(), 0);
    let unauthentic = || {
        let refused = stage.media.totals().ingest_refused;
        let mut refused = refused.iter();
        refused.any(|(reason, count)| *reason == "unauthentic" && *count > 10)
    };
    wait_for(&unauthentic, &mut sender).await;
    // What cannot be RTP is another fault.
    sender.send(b"shouting");
    let malformed = || status.refused_as(Refused::Malformed) > 0;
    while !malformed() {
        assert!(added.elapsed() < Duration::from_secs(20), "{status:?}");
        tokio::task::yield_now().await;
    }
    assert_eq!(status.refusal().unwrap().why, Refused::Malformed);
}
