//! Ingests, end to end: real sockets on the loopback interface, and viewers of our own stack.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

mod keyframe_cache;

use std::net::UdpSocket;
use std::time::{Duration, Instant};

use portunus_media::ingest::{DataIngest, Refused, RtpIngest};
use portunus_media::{IngestFeed, IngestMedia, IngestOptions, RouteOptions, packet_feed};
use portunus_rtp::Ssrc;
use portunus_rtp::rtcp::{Compound, Packet as Rtcp, SenderInfo, SenderReportWriter, WritePacket};
use portunus_sdp::negotiated::Codec;
use portunus_sdp::{CodecName, Kind};
use portunus_tests::{Peer, Sender, Stage, listen, vp8_ingest};

/// Returns the bytes by which a test's packets are told apart.
fn tags(peer: &Peer) -> Vec<u16> {
    let tag = |payload: &Vec<u8>| {
        let at = match payload[..2] {
            [0x10, 0x10] => 11,
            [0x10, 0x11] => 4,
            _ => 2,
        };
        u16::from_be_bytes([payload[at], payload[at + 1]])
    };
    peer.packets.iter().map(|p| tag(&p.payload)).collect()
}

/// Checks that no number is missing and that time increases.
fn assert_continuous(peer: &Peer) {
    for pair in peer.packets.windows(2) {
        assert_eq!(pair[1].seq, pair[0].seq + 1, "{:?}", peer.packets);
        let step = pair[1].timestamp.wrapping_sub(pair[0].timestamp) as i32;
        assert!((0..900_000).contains(&step), "{pair:?}");
    }
}

fn report(ssrc: u32, timestamp: u32) -> Vec<u8> {
    let info = SenderInfo {
        ntp: 5 << 32,
        rtp: timestamp,
        packets: 1,
        octets: 1,
    };
    let report = SenderReportWriter {
        ssrc: Ssrc(ssrc),
        info,
        blocks: &[],
    };
    let mut out = vec![0; report.size()];
    report.write_into(&mut out).unwrap();
    out
}

/// Waits for a keyframe request. Returns its stream.
fn keyframe_request(socket: &UdpSocket) -> u32 {
    let mut buf = [0; 1_500];
    loop {
        let len = socket.recv(&mut buf).expect("a keyframe request");
        for packet in Compound::new(&buf[..len]) {
            if let Rtcp::Pli(pli) = packet.unwrap() {
                return pli.media.0;
            }
        }
    }
}

#[tokio::test]
async fn viewers_of_all_workers_get_every_packet_in_order() {
    let stage = Stage::start(2);
    let (mut sender, ingest) = stage.fed(65_500);
    for worker in 0..2 {
        let mut viewer = stage.watch(worker, ingest.id).await;
        sender.start(&mut viewer.peer).await;
        let first = tags(&viewer.peer)[0];
        for _ in 0..50 {
            sender.picture(false, 4);
        }
        let last = sender.sequence.wrapping_sub(1);
        let all = |peer: &mut Peer| tags(peer).last() == Some(&last);
        viewer.peer.run_until(all).await;
        let sent: Vec<u16> = (0..=last.wrapping_sub(first))
            .map(|n| first.wrapping_add(n))
            .collect();
        assert_eq!(tags(&viewer.peer), sent);
        assert_continuous(&viewer.peer);
    }
    assert_eq!(ingest.status.lost(), 0);
    assert_eq!(ingest.status.ssrc(), Some(Ssrc(65_500)));
    assert!(ingest.status.age() < Duration::from_secs(20));
}

#[tokio::test]
async fn a_sender_that_restarts_is_one_stream_to_viewers() {
    let stage = Stage::start(1);
    let socket = listen();
    let local = socket.local();
    let mut options = vp8_ingest(IngestFeed::socket(socket));
    options.collision = Duration::from_millis(200);
    let ingest = stage.media.add_ingest(options);
    let mut viewer = stage.watch(0, ingest.id).await;
    let mut first = Sender::new(local, 1_000);
    first.start(&mut viewer.peer).await;
    for n in 0..10 {
        first.picture(n == 0, 2);
    }
    // A second sender is not heard while the first one sends.
    let mut second = Sender::new(local, 40_000);
    second.picture(true, 1);
    let last = first.sequence - 1;
    let got = |last: u16| move |peer: &mut Peer| tags(peer).last() == Some(&last);
    viewer.peer.run_until(got(last)).await;
    while ingest.status.refused_as(Refused::Foreign) == 0 {
        tokio::task::yield_now().await;
    }
    let silent = Instant::now();
    viewer
        .peer
        .run_until(|_| silent.elapsed() > Duration::from_millis(250))
        .await;
    for n in 0..10 {
        second.picture(n == 0, 2);
    }
    let last = second.sequence - 1;
    viewer.peer.run_until(got(last)).await;
    assert_continuous(&viewer.peer);
    assert_eq!(ingest.status.ssrc(), Some(Ssrc(40_000)));
}

#[tokio::test]
async fn keyframes_are_asked_for_at_most_once_a_second_and_no_viewer_is_forgotten() {
    let stage = Stage::start(2);
    let (socket, rtcp) = (listen(), listen());
    let (local, rtcp_local) = (socket.local(), rtcp.local());
    let feed = IngestFeed::Sockets {
        rtp: vec![socket],
        rtcp: Some(rtcp),
    };
    let ingest = stage.media.add_ingest(vp8_ingest(feed));
    let mut sender = Sender::new(local, 9_000);
    let control = Sender::new(rtcp_local, 1);
    sender.picture(false, 1);
    control.send(&report(9_000, 0));
    let _first = stage.watch(0, ingest.id).await;
    assert_eq!(keyframe_request(&control.socket), 9_000);
    let asked = Instant::now();
    // A keyframe arrives, and then viewers that have not seen it.
    sender.picture(true, 1);
    let _second = stage.watch(1, ingest.id).await;
    let _third = stage.watch(0, ingest.id).await;
    assert_eq!(keyframe_request(&control.socket), 9_000);
    assert!(asked.elapsed() > Duration::from_millis(900));
    stage.media.request_source_keyframe(ingest.id);
    assert_eq!(keyframe_request(&control.socket), 9_000);
    assert!(asked.elapsed() > Duration::from_millis(1_900));
    assert_eq!(ingest.status.keyframes_asked(), 3);
}

#[tokio::test]
async fn noise_is_not_taken_for_the_keyframe_that_was_asked_for() {
    let stage = Stage::start(1);
    let (socket, rtcp) = (listen(), listen());
    let (local, rtcp_local) = (socket.local(), rtcp.local());
    let feed = IngestFeed::Sockets {
        rtp: vec![socket],
        rtcp: Some(rtcp),
    };
    let mut media = RtpIngest::new(Codec::Vp8, 90_000);
    media.opaque = true;
    let options = IngestOptions {
        media: IngestMedia::Rtp(media),
        ..vp8_ingest(feed)
    };
    let ingest = stage.media.add_ingest(options);
    let mut sender = Sender::new(local, 9_000);
    let control = Sender::new(rtcp_local, 1);
    sender.picture(false, 1);
    control.send(&report(9_000, 0));
    let _viewer = stage.watch(0, ingest.id).await;
    assert_eq!(keyframe_request(&control.socket), 9_000);
    stage.media.request_source_keyframe(ingest.id);
    // Read as VP8, it is the start of a keyframe except for its start code.
    let taken = ingest.status.packets();
    let noise = sender.packet(true, &[0x10, 0x10, 7, 7, 1, 2, 3, 4, 5, 6, 7, 8]);
    sender.send(&noise);
    while ingest.status.packets() == taken {
        tokio::task::yield_now().await;
    }
    assert_eq!(keyframe_request(&control.socket), 9_000);
}

#[tokio::test]
async fn messages_reach_data_channels_and_the_last_one_new_viewers() {
    let stage = Stage::start(2);
    let socket = listen();
    let sender = Sender::new(socket.local(), 0);
    let data = DataIngest {
        label: "news",
        text: true,
        keep_last: true,
        framed: false,
    };
    let options = IngestOptions::data(data, IngestFeed::socket(socket));
    let ingest = stage.media.add_ingest(options);
    sender.send(b"old");
    sender.send("first \u{20ac}".as_bytes());
    sender.send(&[0xff, 0xfe]);
    for worker in 0..2 {
        let mut viewer = stage.viewer(worker, &[(Kind::Data, None)]).await;
        let options = RouteOptions::default();
        stage.media.route(ingest.id, viewer.tracks[0], options);
        viewer.peer.connect().await;
        let last = |text: &'static str| {
            move |peer: &mut Peer| peer.texts("news").last().is_some_and(|last| *last == text)
        };
        viewer.peer.run_until(last("first \u{20ac}")).await;
        sender.send(b"second");
        viewer.peer.run_until(last("second")).await;
        assert_eq!(viewer.peer.texts("news"), ["first \u{20ac}", "second"]);
        sender.send("first \u{20ac}".as_bytes());
        viewer.peer.run_until(last("first \u{20ac}")).await;
    }
    assert_eq!(ingest.status.refused(), 1);
}

#[tokio::test]
async fn an_ingest_that_is_removed_leaves_its_viewers_to_another() {
    let stage = Stage::start(2);
    let (one, two) = (listen(), listen());
    let (mut first, mut second) = (
        Sender::new(one.local(), 10),
        Sender::new(two.local(), 20_000),
    );
    let port = one.local();
    let one = stage.media.add_ingest(vp8_ingest(IngestFeed::socket(one)));
    let two = stage.media.add_ingest(vp8_ingest(IngestFeed::socket(two)));
    let mut viewers = [stage.watch(0, one.id).await, stage.watch(1, one.id).await];
    for viewer in &mut viewers {
        first.start(&mut viewer.peer).await;
    }
    stage.media.remove_ingest(one.id).closed().await;
    UdpSocket::bind(port).expect("its port is free again");
    for viewer in &mut viewers {
        let options = RouteOptions::default();
        stage.media.route(two.id, viewer.tracks[0], options);
    }
    for viewer in &mut viewers {
        viewer.peer.packets.drain(..viewer.peer.packets.len() - 1);
        while tags(&viewer.peer).last().is_none_or(|tag| *tag < 20_000) {
            second.picture(true, 1);
            viewer.peer.run_for(Duration::from_millis(20)).await;
        }
        assert_continuous(&viewer.peer);
    }
}

#[tokio::test]
async fn what_comes_while_an_ingest_is_disabled_is_left_out_without_a_gap() {
    let stage = Stage::start(1);
    let (mut sender, ingest) = stage.fed(700);
    let mut viewer = stage.watch(0, ingest.id).await;
    sender.start(&mut viewer.peer).await;
    stage.media.set_ingest_enabled(ingest.id, false);
    // Until the worker knows.
    while ingest.status.ignored() == 0 {
        sender.picture(true, 1);
        tokio::task::yield_now().await;
    }
    let status = &ingest.status;
    let ignored = async |sequence: u16| {
        // All packets have arrived.
        while status.packets() + status.ignored() < u64::from(sequence) - 700 {
            tokio::task::yield_now().await;
        }
        status.ignored()
    };
    let before = ignored(sender.sequence).await;
    let taken = ingest.status.packets();
    for _ in 0..5 {
        sender.picture(true, 2);
    }
    assert_eq!(ignored(sender.sequence).await, before + 10);
    assert_eq!(ingest.status.packets(), taken);
    stage.media.set_ingest_enabled(ingest.id, true);
    let resumed = sender.sequence;
    while tags(&viewer.peer).last().is_none_or(|tag| *tag < resumed) {
        sender.picture(true, 1);
        viewer.peer.run_for(Duration::from_millis(20)).await;
    }
    assert!(!tags(&viewer.peer).contains(&(resumed - 1)));
    assert_continuous(&viewer.peer);
}

#[tokio::test]
async fn the_control_plane_feeds_packets() {
    let stage = Stage::start(2);
    let (feed, packets) = packet_feed(1);
    let mut options = vp8_ingest(IngestFeed::Packets(packets));
    options.worker = Some(0);
    let ingest = stage.media.add_ingest(options);
    let mut viewer = stage.watch(1, ingest.id).await;
    let mut sender = Sender::new("127.0.0.1:9".parse().unwrap(), 4_000);
    for n in 0..200u16 {
        let payload = portunus_tests::vp8(n == 0, u8::from(n > 0), sender.sequence);
        let packet = sender.packet(true, &payload);
        feed.send(0, &packet).unwrap();
        sender.timestamp += 3_000;
    }
    assert!(feed.send(0, &[0; 2_000]).is_err());
    let last = sender.sequence - 1;
    let all = |peer: &mut Peer| tags(peer).last() == Some(&last);
    viewer.peer.run_until(all).await;
    assert_continuous(&viewer.peer);
    stage.media.remove_ingest(ingest.id);
    while feed.send(0, &[0x80; 12]).is_ok() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn parameter_sets_come_before_each_intra_picture() {
    let stage = Stage::start(1);
    let socket = listen();
    let mut sender = Sender::new(socket.local(), 800);
    let mut media = RtpIngest::new(Codec::H264, 90_000);
    let sets = portunus_media::ingest::ParameterSets::from_sprop("Z0LAHg==,aM48gA==").unwrap();
    media.h264_parameter_sets = Some(sets.clone());
    let mut options = vp8_ingest(IngestFeed::socket(socket));
    options.media = IngestMedia::Rtp(media);
    let ingest = stage.media.add_ingest(options);
    let mut viewer = stage
        .viewer(0, &[(Kind::Video, Some(CodecName::H264))])
        .await;
    let options = RouteOptions::default();
    stage.media.route(ingest.id, viewer.tracks[0], options);
    viewer.peer.connect().await;
    for n in 0..9u8 {
        let payload = if n % 3 == 0 { [0x65, n] } else { [0x41, 0x9a] };
        let packet = sender.packet(true, &payload);
        sender.send(&packet);
        sender.timestamp += 3_000;
    }
    viewer.peer.run_until(|peer| peer.packets.len() >= 12).await;
    assert_continuous(&viewer.peer);
    let packets = &viewer.peer.packets;
    for picture in packets.chunks(4) {
        assert_eq!(picture[0].payload, sets.payload());
        assert_eq!(picture[1].payload[0], 0x65);
        assert_eq!(picture[0].timestamp, picture[1].timestamp);
    }
}

#[tokio::test]
async fn a_source_is_told_the_lowest_bitrate_of_its_viewers_and_they_its_clock() {
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
    let mut sender = Sender::new(local, 70);
    let control = Sender::new(rtcp_local, 1);
    let mut viewers = [
        stage.watch(0, ingest.id).await,
        stage.watch(1, ingest.id).await,
    ];
    for (viewer, bitrate) in viewers.iter_mut().zip([700_000, 500_000]) {
        let connection = &mut viewer.peer.connection;
        connection.set_bitrate(Some(bitrate), Instant::now());
    }
    let patience = Instant::now() + Duration::from_secs(20);
    control.socket.set_nonblocking(true).unwrap();
    let (mut lowest, mut clocks) = (u64::MAX, false);
    while lowest > 500_000 || !clocks {
        assert!(Instant::now() < patience, "{lowest} bit/s, clocks {clocks}");
        control.send(&report(70, sender.timestamp));
        sender.picture(true, 1);
        for viewer in &mut viewers {
            viewer.peer.run_for(Duration::from_millis(20)).await;
        }
        let mut buf = [0; 1_500];
        while let Ok(len) = control.socket.recv(&mut buf) {
            for packet in Compound::new(&buf[..len]) {
                if let Rtcp::Remb(remb) = packet.unwrap() {
                    assert!(
                        [700_000, 500_000]
                            .iter()
                            .any(|b| remb.bitrate.abs_diff(*b) < 10)
                    );
                    assert!(remb.ssrcs().eq([Ssrc(70)]));
                    lowest = lowest.min(remb.bitrate);
                }
            }
        }
        // The source's clock is at five seconds, and runs on.
        let runs = |viewer: &portunus_tests::Viewer| {
            let of_source = |(_, clock): &&(usize, _)| {
                let clock: &portunus_rtc::streams::SenderClock = clock;
                (5..7).contains(&(clock.ntp >> 32))
            };
            viewer.peer.clocks.iter().any(|clock| of_source(&clock))
        };
        clocks = viewers.iter().all(runs);
    }
}

#[tokio::test]
async fn spatial_layers_are_selected_where_the_ingest_has_them() {
    for svc in [true, false] {
        let stage = Stage::start(1);
        let socket = listen();
        let mut sender = Sender::new(socket.local(), 90);
        let mut media = RtpIngest::new(Codec::Vp9, 90_000);
        media.svc = svc;
        let mut options = vp8_ingest(IngestFeed::socket(socket));
        options.media = IngestMedia::Rtp(media);
        let ingest = stage.media.add_ingest(options);
        let mut viewer = stage
            .viewer(0, &[(Kind::Video, Some(CodecName::Vp9))])
            .await;
        let options = RouteOptions {
            spatial: 0,
            ..RouteOptions::default()
        };
        stage.media.route(ingest.id, viewer.tracks[0], options);
        viewer.peer.connect().await;
        for picture in 0..10u8 {
            for spatial in 0..2u8 {
                // Picture id, layers, start and end of a frame. Predicted after the first picture.
                let flags = 0x80 | 0x20 | 0x08 | 0x04 | if picture > 0 { 0x40 } else { 0 };
                let inter_layer = u8::from(spatial > 0);
                let payload = [flags, picture, spatial << 1 | inter_layer, picture, 0xaa];
                let packet = sender.packet(spatial == 1, &payload);
                sender.send(&packet);
            }
            sender.timestamp += 3_000;
        }
        let layers = |peer: &Peer| -> Vec<u8> {
            let layer = |payload: &Vec<u8>| payload[2] >> 1 & 7;
            peer.packets.iter().map(|p| layer(&p.payload)).collect()
        };
        let last = |peer: &mut Peer| peer.packets.last().is_some_and(|p| p.payload[1] == 9);
        viewer.peer.run_until(last).await;
        assert_continuous(&viewer.peer);
        let upper = layers(&viewer.peer)
            .iter()
            .filter(|layer| **layer == 1)
            .count();
        assert_eq!(upper > 1, !svc, "{:?}", layers(&viewer.peer));
    }
}
