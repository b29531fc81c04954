//! Taps: their packets, and their end.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a failed test panics"
)]

use portunus_media::ingest::{DataIngest, IngestMedia, ParameterSets};
use portunus_media::testing::FanOut;
use portunus_media::{
    DataPayload, Encodings, IngestFeed, IngestOptions, RouteOptions, Tap, TapOptions, TapRoom,
    Tapped, TappedPacket, packet_feed,
};
use portunus_rtp::{Header, Pt, Ssrc};
use portunus_sdp::negotiated::Codec;

fn ingest(encodings: u8) -> FanOut {
    let (_, packets) = packet_feed(encodings);
    let options = IngestOptions::rtp(Codec::Vp8, 90_000, IngestFeed::Packets(packets));
    FanOut::of_ingest(0, options, None)
}

fn open() -> RouteOptions {
    RouteOptions::default()
}

fn closed() -> RouteOptions {
    RouteOptions {
        enabled: false,
        ..open()
    }
}

fn packets(tap: &mut Tap) -> Vec<TappedPacket> {
    let next = || match tap.try_recv()? {
        Tapped::Packet(packet) => Some(packet),
        other => panic!("{other:?}"),
    };
    std::iter::from_fn(next).collect()
}

fn has_ended(tap: &mut Tap) -> bool {
    tap.blocking_recv_many(&mut Vec::new(), 1) == 0
}

#[test]
fn a_tap_gets_each_packet_as_it_came() {
    let mut rig = ingest(1);
    let (_, mut tap) = rig.tap(open(), TapOptions::default());
    let mut frame = rig.plain_frame(true, 3, 500);
    let sent = frame.clone();
    rig.take_in(&mut frame);
    let tapped = packets(&mut tap);
    assert_eq!(tapped.len(), 3);
    assert!(tapped[0].is_keyframe());
    let first = tapped[0].seq().0;
    for (n, (packet, sent)) in tapped.iter().zip(&sent).enumerate() {
        assert_eq!(packet.seq().0, first + n as u64);
        assert_eq!((packet.codec(), packet.pt()), (Codec::Vp8, Pt(96)));
        let mut bytes = vec![1; 7];
        packet.write_to(Some(Pt(100)), &mut bytes);
        let (written, sent_header) = (Header::parse(&bytes).unwrap(), Header::parse(sent).unwrap());
        assert_eq!(written.pt, Pt(100));
        assert_eq!(written.sequence, packet.seq().wire());
        assert_eq!(written.ssrc, Ssrc(8_000));
        assert_eq!(written.marker, sent_header.marker);
        assert_eq!(written.timestamp, packet.timestamp());
        assert!(!written.has_padding());
        assert_eq!(written.payload(&bytes), sent_header.payload(sent));
    }
}

/// Packets of one H.264 picture.
fn picture(rig: &mut FanOut, payloads: &[&[u8]]) -> Vec<Vec<u8>> {
    let mut packets = rig.plain_frame(false, payloads.len(), 20);
    for (packet, payload) in packets.iter_mut().zip(payloads) {
        packet.truncate(12);
        packet.extend_from_slice(payload);
    }
    packets
}

#[test]
fn parameter_sets_of_the_stream_are_newer_than_those_that_were_told() {
    let (_, feed) = packet_feed(1);
    let mut options = IngestOptions::rtp(Codec::H264, 90_000, IngestFeed::Packets(feed));
    let IngestMedia::Rtp(media) = &mut options.media else {
        panic!("RTP");
    };
    let told = ParameterSets::from_sprop("Z0LAHg==,aM48gA==").unwrap();
    media.h264_parameter_sets = Some(told.clone());
    let mut rig = FanOut::of_ingest(0, options, None);
    let (_, mut tap) = rig.tap(open(), TapOptions::default());
    let mut come = |rig: &mut FanOut, payloads: &[&[u8]]| -> Vec<Vec<u8>> {
        let mut picture = picture(rig, payloads);
        rig.take_in(&mut picture);
        let payload = |packet: &TappedPacket| {
            let mut bytes = Vec::new();
            packet.write_to(None, &mut bytes);
            Header::parse(&bytes).unwrap().payload(&bytes).to_vec()
        };
        packets(&mut tap).iter().map(payload).collect()
    };
    let (sps, pps, idr, slice) = (
        &[0x67, 0x42, 0xe0, 0x1f][..],
        &[0x68, 0xce][..],
        &[0x65, 0x88][..],
        &[0x41, 0x98][..],
    );
    assert_eq!(come(&mut rig, &[idr]), [told.payload(), idr]);
    assert_eq!(come(&mut rig, &[slice]), [slice]);
    assert_eq!(come(&mut rig, &[sps, pps, idr]), [sps, pps, idr]);
    let other = ParameterSets::from_sprop("Z0LgHw==,aM48gA==").unwrap();
    rig.set_parameter_sets(Some(other.clone()));
    assert_eq!(come(&mut rig, &[idr]), [other.payload(), idr]);
    rig.set_parameter_sets(None);
    assert_eq!(come(&mut rig, &[idr]), [idr]);
}

#[test]
fn a_closed_gate_leaves_no_gap_but_in_time() {
    let mut rig = ingest(1);
    let (route, mut tap) = rig.tap(open(), TapOptions::default());
    for gate in [true, false, false, true] {
        rig.set_route(route, if gate { open() } else { closed() });
        let mut frame = rig.plain_frame(true, 1, 100);
        rig.take_in(&mut frame);
    }
    let tapped = packets(&mut tap);
    assert_eq!(tapped.len(), 2);
    assert_eq!(tapped[1].seq().0, tapped[0].seq().0 + 1);
    let ticks = tapped[1].timestamp().wrapping_sub(tapped[0].timestamp());
    // Three frames of 33 ms at 90 kHz.
    assert_eq!(ticks, 8_910);
}

#[test]
fn of_simulcast_the_best_encoding_or_the_one_that_was_named() {
    for (encodings, expected) in [
        (Encodings::Best, vec![2, 2]),
        (Encodings::Only(1), vec![1, 1]),
    ] {
        let mut rig = ingest(3);
        let options = TapOptions {
            encodings,
            ..TapOptions::default()
        };
        let (_, mut tap) = rig.tap(open(), options);
        for (encoding, keyframe) in [(0, true), (1, false), (2, true), (1, false), (2, false)] {
            let mut frame = rig.plain_frame(keyframe, 1, 100);
            rig.take_in_encoding(encoding, &mut frame);
        }
        let tapped = packets(&mut tap);
        let of: Vec<u8> = tapped.iter().map(TappedPacket::encoding).collect();
        assert_eq!(of, expected);
        assert!(
            tapped
                .iter()
                .all(|packet| packet.ssrc() == tapped[0].ssrc())
        );
        if encodings == Encodings::Best {
            let seqs: Vec<u64> = tapped.iter().map(|packet| packet.seq().0).collect();
            // The last frame is the second after the one before it: all encodings are numbered
            // together.
            assert_eq!(seqs, [seqs[0], seqs[0] + 2]);
        }
    }
}

/// The encodings in a recording of a publisher that sends only keyframes, by frame: a frame every
/// 33 ms, the lowest encoding first.
fn recorded(begins: [Option<u64>; 3], frames: u64) -> Vec<u8> {
    let mut rig = ingest(3);
    let (_, mut tap) = rig.tap(open(), TapOptions::default());
    let mut tapped = Vec::new();
    for n in 0..frames {
        let flow = (0..)
            .zip(begins)
            .filter(|(_, from)| from.is_some_and(|from| n >= from));
        let mut frame = rig.plain_frame(true, 1, 100);
        for (encoding, _) in flow {
            rig.take_in_encoding(encoding, &mut frame.clone());
        }
        frame.clear();
        tapped.extend(packets(&mut tap));
    }
    let mut encodings: Vec<u8> = tapped.iter().map(TappedPacket::encoding).collect();
    encodings.dedup();
    encodings
}

#[test]
fn a_recording_of_simulcast_begins_with_the_best_encoding_that_flows() {
    let all = [Some(0), Some(0), Some(0)];
    assert_eq!(recorded(all, 30), [2]);
    // The upper encodings start a moment later, as in browsers.
    assert_eq!(recorded([Some(0), Some(1), Some(3)], 30), [2]);
    // The link seems to carry less: a missing encoding is not awaited for long.
    assert_eq!(recorded([Some(0), Some(1), None], 30), [1]);
    assert_eq!(recorded([Some(0), None, None], 30), [0]);
    assert_eq!(recorded([Some(0), None, Some(20)], 30), [0, 2]);
}

#[test]
fn a_slow_consumer_costs_packets_and_no_more() {
    let mut rig = ingest(1);
    let options = TapOptions {
        capacity: 4,
        ..TapOptions::default()
    };
    let (_, mut tap) = rig.tap(open(), options);
    let mut frame = rig.plain_frame(true, 10, 100);
    rig.take_in(&mut frame);
    assert_eq!(packets(&mut tap).len(), 4);
    assert_eq!(tap.dropped(), 6);
    let mut frame = rig.plain_frame(true, 2, 100);
    rig.take_in(&mut frame);
    assert_eq!(packets(&mut tap).len(), 2);
}

#[test]
fn reports_come_ahead_of_the_packets_that_they_are_for() {
    let report = |ntp: u64, timestamp: u32| {
        let mut datagram = vec![0x80, 200, 0, 6];
        datagram.extend_from_slice(&8_000_u32.to_be_bytes());
        datagram.extend_from_slice(&ntp.to_be_bytes());
        datagram.extend_from_slice(&timestamp.to_be_bytes());
        datagram.extend_from_slice(&[0; 8]);
        datagram
    };
    let told = |tap: &mut Tap| {
        let mut taken = Vec::new();
        assert!(tap.drain(&mut taken, 100));
        let tell = |tapped: &Tapped| match tapped {
            Tapped::Packet(packet) => (packet.stream(), packet.source_timestamp(), None),
            Tapped::Report(report) => (report.stream, report.timestamp, Some(report.ntp)),
            Tapped::Message(message) => panic!("{message:?}"),
        };
        taken.iter().map(tell).collect::<Vec<_>>()
    };
    let mut rig = ingest(1);
    let (_, mut without) = rig.tap(open(), TapOptions::default());
    let mut frame = rig.plain_frame(true, 1, 100);
    rig.take_in(&mut frame);
    rig.take_in_rtcp(&report(7 << 32, 90_000));
    let options = TapOptions {
        reports: true,
        ..TapOptions::default()
    };
    // A known report comes first, and only once.
    let (_, mut tap) = rig.tap(open(), options);
    for _ in 0..2 {
        let mut frame = rig.plain_frame(false, 1, 100);
        rig.take_in(&mut frame);
    }
    let ntps = |told: &[(u32, u32, Option<u64>)]| told.iter().map(|t| t.2).collect::<Vec<_>>();
    let first = told(&mut tap);
    assert_eq!(ntps(&first), [Some(7 << 32), None, None]);
    assert_eq!((first[0].0, first[0].1), (first[1].0, 90_000));
    rig.take_in_rtcp(&report(8 << 32, 180_000));
    let mut frame = rig.plain_frame(false, 1, 100);
    rig.take_in(&mut frame);
    assert_eq!(ntps(&told(&mut tap)), [Some(8 << 32), None]);
    assert_eq!(packets(&mut without).len(), 4);
}

#[test]
fn the_room_that_taps_share_is_given_back_with_each_packet() {
    let mut rig = ingest(1);
    let room = TapRoom::new(1_000);
    let options = TapOptions {
        room: Some(room.clone()),
        ..TapOptions::default()
    };
    let (_, mut one) = rig.tap(open(), options.clone());
    let (_, mut two) = rig.tap(open(), options);
    let mut frame = rig.plain_frame(true, 4, 200);
    rig.take_in(&mut frame);
    let (of_one, of_two) = (packets(&mut one), packets(&mut two));
    assert_eq!((of_one.len(), of_two.len()), (4, 0));
    assert_eq!(two.dropped(), 4);
    assert!(room.held() > 800);
    drop(of_one);
    assert_eq!(room.held(), 0);
    let mut frame = rig.plain_frame(false, 1, 200);
    rig.take_in(&mut frame);
    drop((one, two));
    assert_eq!(room.held(), 0);
}

#[test]
fn a_tap_ends_with_its_route_or_its_source() {
    let mut rig = ingest(1);
    let (route, mut tap) = rig.tap(open(), TapOptions::default());
    let mut frame = rig.plain_frame(true, 1, 100);
    rig.take_in(&mut frame);
    rig.remove_route(route);
    // What was queued is still there.
    assert_eq!(packets(&mut tap).len(), 1);
    assert!(has_ended(&mut tap));

    let (_, mut tap) = rig.tap(open(), TapOptions::default());
    rig.end_ingest();
    assert!(has_ended(&mut tap));

    // Nothing comes of a source that is gone.
    let (_, mut tap) = rig.tap(open(), TapOptions::default());
    assert!(has_ended(&mut tap));
}

#[test]
fn a_consumer_that_is_gone_ends_the_tap() {
    let mut rig = ingest(1);
    let (_, tap) = rig.tap(open(), TapOptions::default());
    drop(tap);
    for _ in 0..2 {
        let mut frame = rig.plain_frame(true, 1, 100);
        rig.take_in(&mut frame);
    }
    let (_, mut tap) = rig.tap(open(), TapOptions::default());
    let mut frame = rig.plain_frame(true, 1, 100);
    rig.take_in(&mut frame);
    assert_eq!(packets(&mut tap).len(), 1);
}

#[test]
fn messages_of_a_data_source_come_whole() {
    let (_, packets) = packet_feed(1);
    let data = DataIngest {
        label: "chat",
        text: true,
        keep_last: false,
        framed: false,
    };
    let options = IngestOptions::data(data, IngestFeed::Packets(packets));
    let mut rig = FanOut::of_ingest(0, options, None);
    let (_, mut tap) = rig.tap(open(), TapOptions::default());
    rig.take_in(&mut ["one".into(), "two".into()]);
    for expected in ["one", "two"] {
        let Some(Tapped::Message(message)) = tap.try_recv() else {
            panic!("no message");
        };
        assert_eq!(message.label, "chat");
        assert_eq!(message.payload, DataPayload::Text(expected.into()));
    }
}

#[test]
fn a_tap_that_asks_for_it_begins_with_the_last_message_that_is_kept() {
    for keep_last in [false, true] {
        let (_, packets) = packet_feed(1);
        let data = DataIngest {
            label: "chat",
            text: true,
            keep_last,
            framed: false,
        };
        let options = IngestOptions::data(data, IngestFeed::Packets(packets));
        let mut rig = FanOut::of_ingest(0, options, None);
        // Nobody has watched the source before.
        rig.take_in(&mut ["one".into(), "two".into()]);
        let from_last = |from_last| TapOptions {
            from_last,
            ..TapOptions::default()
        };
        let taps = [false, true].map(|wish| (wish, rig.tap(open(), from_last(wish)).1));
        rig.take_in(&mut ["three".into()]);
        for (wish, mut tap) in taps {
            let text = || match tap.try_recv()? {
                Tapped::Message(message) => match message.payload {
                    DataPayload::Text(text) => Some(text),
                    DataPayload::Binary(_) => None,
                },
                _ => None,
            };
            let texts: Vec<String> = std::iter::from_fn(text).collect();
            match wish && keep_last {
                true => assert_eq!(texts, ["two", "three"]),
                false => assert_eq!(texts, ["three"]),
            }
        }
    }
}

#[test]
fn messages_have_their_place_in_the_room_that_taps_share() {
    let (_, packets) = packet_feed(1);
    let data = DataIngest {
        label: "chat",
        text: true,
        keep_last: false,
        framed: false,
    };
    let options = IngestOptions::data(data, IngestFeed::Packets(packets));
    let mut rig = FanOut::of_ingest(0, options, None);
    let room = TapRoom::new(10_000);
    let options = TapOptions {
        room: Some(room.clone()),
        ..TapOptions::default()
    };
    let (_, mut tap) = rig.tap(open(), options);
    for _ in 0..100 {
        rig.take_in(&mut ["x".repeat(1_000).into()]);
    }
    assert!((5_000..=10_000).contains(&room.held()), "{}", room.held());
    let taken: Vec<Tapped> = std::iter::from_fn(|| tap.try_recv()).collect();
    assert_eq!(taken.len() as u64 + tap.dropped(), 100);
    assert!(tap.dropped() > 85, "{}", tap.dropped());
    drop(taken);
    assert_eq!(room.held(), 0);
}

#[test]
fn what_is_kept_of_a_remote_publisher_is_all_that_is_its() {
    let mut publisher = portunus_media::testing::RemotePublisher::new(false);
    let datagram = |ssrc: u32, pt: u8, payload: &[u8]| {
        let mut datagram = vec![0x80, pt, 0, 1, 0, 0, 0, 1];
        datagram.extend_from_slice(&ssrc.to_be_bytes());
        datagram.extend_from_slice(payload);
        datagram
    };
    for (ssrc, pt, payload, expected) in [
        (1_000, 111, &b"sound"[..], 1),
        (999, 111, b"sound", 0),
        (1_013, 98, b"picture", 0),
        (1_020, 0, b"text", 1),
        (1_020, 1, b"\xff", 1),
        (1_020, 0, b"\xff", 0),
        (1_020, 0, b"", 0),
    ] {
        let taken = publisher.take_in(&datagram(ssrc, pt, payload));
        assert_eq!(taken, expected, "{ssrc} {pt} {payload:?}");
    }
}

#[test]
fn a_publisher_that_changes_its_ssrc_goes_on_without_repeating_a_number() {
    // The numbers of the second SSRC lie among those of the first, and far below them.
    for (start, first) in [(1, 3), (60_000, 7)] {
        let mut rig = FanOut::new(1);
        rig.change_ssrc(start, 0);
        let (_, mut tap) = rig.tap(open(), TapOptions::default());
        let sent = rig.sent();
        for n in 0..6 {
            if n == 3 {
                rig.change_ssrc(first, 3_000_000_000);
            }
            let mut frame = rig.frame(3, 200);
            rig.relay(&mut frame);
        }
        assert_eq!(rig.sent() - sent, 18, "the viewer gets every packet");
        let tapped = packets(&mut tap);
        let numbers: Vec<u64> = tapped.iter().map(|packet| packet.seq().0).collect();
        let expected = (numbers[0]..numbers[0] + 18).collect::<Vec<_>>();
        assert_eq!(numbers, expected);
        let last = tapped[17].timestamp().wrapping_sub(tapped[0].timestamp());
        assert!(
            last < 30_000,
            "timestamps go on by the time that passed: {last}"
        );
    }
}
