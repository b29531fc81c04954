//! Forwarders of a media plane with real sockets, and their receivers.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::expect_used,
    reason = "a failed test panics"
)]

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use portunus_media::ingest::{DataIngest, IngestSrtp, SrtpSuite};
use portunus_media::{
    DataPayload, Encodings, ForwardOptions, ForwardRtcp, Framing, Ingest, IngestBind, IngestFeed,
    IngestOptions, IngestSocket, MediaConfig, MediaPlane, PacketFeed, RouteOptions, SharedSocket,
    TapOptions, Tapped, packet_feed,
};
use portunus_rtp::rtcp::{Compound, CompoundWriter, Packet, Pli, ReceiverReportWriter};
use portunus_rtp::{Fields, Header, Pt, Ssrc, write_header};
use portunus_sdp::negotiated::Codec;
use portunus_srtp::{Opener, Profile};

const SSRC: Ssrc = Ssrc(8_000);

struct Rig {
    media: MediaPlane,
    // Nobody reads events, but the channel has to stay open.
    _events: tokio::sync::mpsc::Receiver<portunus_media::PeerEvent>,
}

impl Rig {
    fn new() -> Self {
        let config = MediaConfig {
            workers: 1,
            pin: false,
            port: 0,
            ..MediaConfig::default()
        };
        let (media, events) = MediaPlane::start(config).unwrap();
        Self {
            media,
            _events: events,
        }
    }

    fn vp8(&self, encodings: u8) -> (Ingest, PacketFeed) {
        let (feed, packets) = packet_feed(encodings);
        let options = IngestOptions::rtp(Codec::Vp8, 90_000, IngestFeed::Packets(packets));
        (self.media.add_ingest(options), feed)
    }

    fn forward(&self, ingest: &Ingest, options: ForwardOptions) -> portunus_media::RouteId {
        self.media
            .forward(ingest.id, RouteOptions::default(), options)
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.media.shutdown();
    }
}

struct Receiver(UdpSocket);

impl Receiver {
    fn new() -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let patience = Some(Duration::from_secs(10));
        socket.set_read_timeout(patience).unwrap();
        Self(socket)
    }

    fn at(&self) -> SocketAddr {
        self.0.local_addr().unwrap()
    }

    fn datagram(&self) -> (Vec<u8>, SocketAddr) {
        let mut buffer = vec![0; 65_536];
        let (len, from) = self.0.recv_from(&mut buffer).expect("a datagram");
        buffer.truncate(len);
        (buffer, from)
    }

    fn packet(&self) -> (Header, Vec<u8>) {
        let (datagram, _) = self.datagram();
        (Header::parse(&datagram).unwrap(), datagram)
    }
}

/// A VP8 packet without a picture id, which is a numbered frame of its own.
fn packet(ssrc: Ssrc, sequence: u16, keyframe: bool) -> Vec<u8> {
    let mut datagram = vec![0; 12 + 100];
    let fields = Fields {
        marker: true,
        padding: false,
        pt: Pt(96),
        sequence,
        timestamp: u32::from(sequence) * 3_000,
        ssrc,
    };
    let start = write_header(&mut datagram, &fields, []).unwrap();
    let head = [
        0x10,
        u8::from(!keyframe) | 0x10,
        0,
        0,
        0x9d,
        0x01,
        0x2a,
        16,
        0,
        16,
        0,
    ];
    datagram[start..start + head.len()].copy_from_slice(&head);
    datagram[start + 50..start + 52].copy_from_slice(&sequence.to_be_bytes());
    datagram
}

/// The number in the payload.
fn told(header: &Header, datagram: &[u8]) -> u16 {
    let payload = header.payload(datagram);
    u16::from_be_bytes([payload[50], payload[51]])
}

#[test]
fn a_receiver_gets_every_packet_with_the_numbers_that_were_asked_for() {
    let rig = Rig::new();
    let (ingest, feed) = rig.vp8(1);
    let (kept, changed) = (Receiver::new(), Receiver::new());
    rig.forward(&ingest, ForwardOptions::new(kept.at()));
    let options = ForwardOptions {
        pt: Some(Pt(100)),
        ssrc: Some(Ssrc(42)),
        ..ForwardOptions::new(changed.at())
    };
    rig.forward(&ingest, options);
    for sequence in 1..=50 {
        feed.send(0, &packet(SSRC, sequence, sequence == 1))
            .unwrap();
    }
    for (receiver, pt, ssrc) in [(kept, Pt(96), SSRC), (changed, Pt(100), Ssrc(42))] {
        let mut before: Option<Header> = None;
        for sequence in 1..=50 {
            let (header, datagram) = receiver.packet();
            assert_eq!(told(&header, &datagram), sequence);
            assert_eq!((header.pt, header.ssrc, header.marker), (pt, ssrc, true));
            if let Some(before) = before.replace(header) {
                assert_eq!(header.sequence, before.sequence.wrapping_add(1));
                assert_eq!(header.timestamp, before.timestamp.wrapping_add(3_000));
            }
        }
    }
}

#[test]
fn all_of_a_multicast_group_get_every_packet() {
    let group = Ipv4Addr::new(239, 255, 77, 12);
    let joined = || {
        let receiver = Receiver(UdpSocket::bind("0.0.0.0:0").unwrap());
        let patience = Some(Duration::from_secs(10));
        receiver.0.set_read_timeout(patience).unwrap();
        let joined = receiver.0.join_multicast_v4(&group, &Ipv4Addr::UNSPECIFIED);
        joined.map(|()| receiver)
    };
    // Nothing can be sent without a route for multicast.
    let Ok(receivers) = [joined(), joined()]
        .into_iter()
        .collect::<Result<Vec<_>, _>>()
    else {
        return;
    };
    let rig = Rig::new();
    let (ingest, feed) = rig.vp8(1);
    for receiver in &receivers {
        let to = SocketAddr::from((group, receiver.at().port()));
        rig.forward(&ingest, ForwardOptions::new(to));
    }
    for sequence in 1..=20 {
        feed.send(0, &packet(SSRC, sequence, sequence == 1))
            .unwrap();
    }
    for receiver in receivers {
        for sequence in 1..=20 {
            let (header, datagram) = receiver.packet();
            assert_eq!(told(&header, &datagram), sequence);
        }
    }
}

#[test]
fn a_closed_port_disturbs_nobody() {
    let rig = Rig::new();
    let (ingest, feed) = rig.vp8(1);
    // Nobody listens there any more.
    let closed = Receiver::new().at();
    let open = Receiver::new();
    for to in [closed, open.at(), closed] {
        rig.forward(&ingest, ForwardOptions::new(to));
    }
    for sequence in 1..=200 {
        feed.send(0, &packet(SSRC, sequence, sequence == 1))
            .unwrap();
        // ICMP errors come between the packets.
        let (header, datagram) = open.packet();
        assert_eq!(told(&header, &datagram), sequence);
    }
}

#[test]
fn both_srtp_suites_open_at_the_receiver_and_nothing_leaves_in_clear() {
    for suite in [
        SrtpSuite::AesCm128HmacSha1_80,
        SrtpSuite::AesCm128HmacSha1_32,
    ] {
        let rig = Rig::new();
        let (ingest, feed) = rig.vp8(1);
        let receiver = Receiver::new();
        let key_and_salt: [u8; 30] = std::array::from_fn(|n| n as u8);
        let options = ForwardOptions {
            srtp: Some(IngestSrtp {
                suite,
                key_and_salt,
            }),
            ..ForwardOptions::new(receiver.at())
        };
        rig.forward(&ingest, options);
        let profile = match suite {
            SrtpSuite::AesCm128HmacSha1_80 => Profile::Aes128CmSha1_80,
            SrtpSuite::AesCm128HmacSha1_32 => Profile::Aes128CmSha1_32,
        };
        let (key, salt) = key_and_salt.split_at(profile.key_len());
        let mut opener = Opener::new(profile, key, salt).unwrap();
        for sequence in 1..=20 {
            feed.send(0, &packet(SSRC, sequence, sequence == 1))
                .unwrap();
            let (mut datagram, _) = receiver.datagram();
            let header = Header::parse_encrypted(&datagram).unwrap();
            let opened = opener
                .open_rtp(
                    header.header_len(),
                    header.ssrc,
                    header.sequence,
                    &mut datagram,
                )
                .unwrap();
            datagram.truncate(opened.len);
            let header = Header::parse(&datagram).unwrap();
            assert_eq!(told(&header, &datagram), sequence);
        }
    }
}

#[test]
fn simulcast_leaves_as_one_stream_or_as_the_encodings_that_were_named() {
    let rig = Rig::new();
    let (ingest, feed) = rig.vp8(3);
    let (best, middle) = (Receiver::new(), Receiver::new());
    rig.forward(&ingest, ForwardOptions::new(best.at()));
    let options = ForwardOptions {
        encodings: Encodings::Only(1),
        ..ForwardOptions::new(middle.at())
    };
    rig.forward(&ingest, options);
    let sent = [
        (0, 1, true),
        (1, 2, false),
        (2, 3, true),
        (2, 4, false),
        (1, 5, false),
    ];
    for (encoding, sequence, keyframe) in sent {
        let ssrc = Ssrc(SSRC.0 + u32::from(encoding));
        feed.send(encoding, &packet(ssrc, sequence, keyframe))
            .unwrap();
    }
    let mut before: Option<Header> = None;
    // Encoding 2's second packet came three numbers after its first: this test numbers all
    // encodings together.
    for (sequence, step) in [(3, 0), (4, 1)] {
        let (header, datagram) = best.packet();
        let is = (told(&header, &datagram), header.ssrc);
        assert_eq!(is, (sequence, Ssrc(SSRC.0 + 2)));
        if let Some(before) = before.replace(header) {
            assert_eq!(header.sequence, before.sequence.wrapping_add(step));
        }
    }
    for sequence in [2, 5] {
        let (header, datagram) = middle.packet();
        let is = (told(&header, &datagram), header.ssrc);
        assert_eq!(is, (sequence, Ssrc(SSRC.0 + 1)));
    }
}

#[test]
fn gates_and_removal_stop_packets_and_the_numbers_go_on() {
    let rig = Rig::new();
    let (ingest, feed) = rig.vp8(1);
    let (gated, witness) = (Receiver::new(), Receiver::new());
    let route = rig.forward(&ingest, ForwardOptions::new(gated.at()));
    // It is served after the other, so anything for the other would have been sent by then.
    rig.forward(&ingest, ForwardOptions::new(witness.at()));
    let pass = |sequence| {
        feed.send(0, &packet(SSRC, sequence, true)).unwrap();
        let (header, datagram) = witness.packet();
        assert_eq!(told(&header, &datagram), sequence);
    };
    let closed = RouteOptions {
        enabled: false,
        ..RouteOptions::default()
    };
    pass(1);
    rig.media.set_route(route, closed);
    pass(2);
    rig.media.set_route(route, RouteOptions::default());
    pass(3);
    rig.media.remove_route(route);
    pass(4);
    let (first, _) = gated.packet();
    let (second, datagram) = gated.packet();
    assert_eq!(told(&second, &datagram), 3);
    assert_eq!(second.sequence, first.sequence.wrapping_add(1));
    gated.0.set_nonblocking(true).unwrap();
    assert!(gated.0.recv(&mut [0; 2_000]).is_err());
}

#[test]
fn reports_reach_the_receiver_and_its_requests_the_source() {
    let rig = Rig::new();
    let bind = || IngestSocket::bind(IngestBind::new(0)).unwrap();
    let (rtp, rtcp) = (bind(), bind());
    let (rtp_port, rtcp_port) = (rtp.port(), rtcp.port());
    let feed = IngestFeed::Sockets {
        rtp: vec![rtp],
        rtcp: Some(rtcp),
    };
    let ingest = rig
        .media
        .add_ingest(IngestOptions::rtp(Codec::Vp8, 90_000, feed));
    let (receiver, told) = (Receiver::new(), Receiver::new());
    let options = ForwardOptions {
        ssrc: Some(Ssrc(7)),
        rtcp: Some(ForwardRtcp::bind(told.at()).unwrap()),
        ..ForwardOptions::new(receiver.at())
    };
    rig.forward(&ingest, options);
    // The first report only says where to answer.
    let (report, from) = told.datagram();
    let first = Compound::new(&report).next().unwrap().unwrap();
    assert!(matches!(first, Packet::ReceiverReport(_)), "{first:?}");

    let source = Receiver::new();
    let mut report = [0; 64];
    let mut writer = CompoundWriter::new(&mut report);
    let own = Ssrc(1);
    writer
        .push(&ReceiverReportWriter {
            ssrc: own,
            blocks: &[],
        })
        .unwrap();
    let hello = writer.as_bytes().to_vec();
    source.0.send_to(&hello, ("127.0.0.1", rtcp_port)).unwrap();
    for sequence in 1..=3 {
        let packet = packet(SSRC, sequence, true);
        source.0.send_to(&packet, ("127.0.0.1", rtp_port)).unwrap();
        receiver.packet();
    }
    let info = loop {
        let (report, _) = told.datagram();
        let packet = Compound::new(&report).next().unwrap().unwrap();
        if let Packet::SenderReport(sender) = packet {
            assert_eq!(sender.ssrc, Ssrc(7));
            break sender.info;
        }
    };
    assert_eq!(info.packets, 3);

    let mut request = [0; 64];
    let mut writer = CompoundWriter::new(&mut request);
    let media = Ssrc(7);
    writer.push(&Pli { sender: own, media }).unwrap();
    let request = writer.as_bytes().to_vec();
    told.0
        .send_to(&request, from.to_string().replace("[::]", "127.0.0.1"))
        .unwrap();
    loop {
        let (datagram, _) = source.datagram();
        let mut packets = Compound::new(&datagram);
        if packets.any(|p| matches!(p, Ok(Packet::Pli(pli)) if pli.media == SSRC)) {
            break;
        }
    }
}

#[test]
fn redundant_audio_of_an_ingest_leaves_without_its_redundancy() {
    let rig = Rig::new();
    let (feed, packets) = packet_feed(1);
    let options = IngestOptions::rtp(Codec::Red, 48_000, IngestFeed::Packets(packets));
    let ingest = rig.media.add_ingest(options);
    let receiver = Receiver::new();
    rig.forward(&ingest, ForwardOptions::new(receiver.at()));
    for sequence in 0..3 {
        let mut datagram = vec![0; 12];
        let fields = Fields {
            marker: false,
            padding: false,
            pt: Pt(63),
            sequence,
            timestamp: u32::from(sequence) * 960,
            ssrc: SSRC,
        };
        write_header(&mut datagram, &fields, []).unwrap();
        // A block of two bytes, 960 before, and the packet's own of three.
        datagram.extend([0x80 | 111, 0x0f, 0x00, 2, 111, 1, 2, 3, 4, 5]);
        feed.send(0, &datagram).unwrap();
    }
    for _ in 0..3 {
        let (header, datagram) = receiver.packet();
        assert_eq!(header.payload(&datagram), [3, 4, 5]);
    }
}

#[test]
fn messages_leave_bare_or_framed_whatever_their_size() {
    let rig = Rig::new();
    let (feed, packets) = packet_feed(1);
    let data = DataIngest {
        label: "chat",
        text: true,
        keep_last: false,
        framed: false,
    };
    let options = IngestOptions::data(data, IngestFeed::Packets(packets));
    let ingest = rig.media.add_ingest(options);
    let (bare, framed) = (Receiver::new(), Receiver::new());
    rig.forward(&ingest, ForwardOptions::new(bare.at()));
    let options = ForwardOptions {
        messages: Framing::Rtp(Ssrc(1_020)),
        ..ForwardOptions::new(framed.at())
    };
    rig.forward(&ingest, options);
    let long = "x".repeat(1_700);
    for message in ["one", &long, "two"] {
        feed.send(0, message.as_bytes()).unwrap();
    }
    for message in ["one", &long, "two"] {
        assert_eq!(bare.datagram().0, message.as_bytes());
    }
    // The long one does not fit behind a header.
    for message in ["one", "two"] {
        let (header, datagram) = framed.packet();
        assert_eq!((header.ssrc, header.pt), (Ssrc(1_020), Pt(0)));
        assert_eq!(header.payload(&datagram), message.as_bytes());
    }
}

/// One server forwards to one port of another: media by SSRC, messages with their type.
#[test]
fn a_shared_port_tells_streams_apart_by_their_ssrcs() {
    let rig = Rig::new();
    let port: SharedSocket = IngestSocket::bind(IngestBind::new(0)).unwrap().into();
    let shared = |ssrc, encodings| IngestFeed::Shared {
        rtp: port.clone(),
        rtcp: None,
        ssrc: Ssrc(ssrc),
        encodings,
    };
    let video = IngestOptions::rtp(Codec::Vp8, 90_000, shared(1_000, 3));
    let video = rig.media.add_ingest(video);
    let data = DataIngest {
        label: "",
        text: false,
        keep_last: false,
        framed: true,
    };
    let options = IngestOptions {
        worker: Some(video.id.worker()),
        ..IngestOptions::data(data, shared(1_010, 1))
    };
    let data = rig.media.add_ingest(options);
    let tap = |ingest: &Ingest| {
        rig.media
            .tap(ingest.id, RouteOptions::default(), TapOptions::default())
            .1
    };
    let (mut videos, mut messages) = (tap(&video), tap(&data));
    let sender = Receiver::new();
    let send = |datagram: &[u8]| {
        sender
            .0
            .send_to(datagram, ("127.0.0.1", port.port()))
            .unwrap()
    };
    let message = |pt, text: &[u8]| {
        let mut datagram = vec![0; 12];
        let fields = Fields {
            marker: false,
            padding: false,
            pt: Pt(pt),
            sequence: 1,
            timestamp: 1,
            ssrc: Ssrc(1_010),
        };
        write_header(&mut datagram, &fields, []).unwrap();
        datagram.extend_from_slice(text);
        datagram
    };
    send(&packet(Ssrc(999), 1, true));
    send(&packet(Ssrc(1_003), 1, true));
    send(&[0x80; 5]);
    send(&message(0, b"\xff no text"));
    send(&packet(Ssrc(1_002), 1, true));
    send(&message(0, b"text"));
    send(&message(1, b"\xff bytes"));
    let mut taken = Vec::new();
    assert_eq!(videos.blocking_recv_many(&mut taken, 1), 1);
    assert!(matches!(&taken[0], Tapped::Packet(packet) if packet.encoding() == 2));
    let mut taken = Vec::new();
    while taken.len() < 2 {
        assert!(messages.blocking_recv_many(&mut taken, 2) > 0);
    }
    let payload = |tapped: &Tapped| match tapped {
        Tapped::Message(message) => message.payload.clone(),
        Tapped::Report(report) => panic!("{report:?}"),
        Tapped::Packet(packet) => panic!("{packet:?}"),
    };
    assert_eq!(payload(&taken[0]), DataPayload::Text("text".into()));
    assert_eq!(
        payload(&taken[1]),
        DataPayload::Binary(b"\xff bytes".to_vec())
    );
    // The port stays open as long as somebody holds it.
    rig.media.remove_ingest(video.id);
    send(&message(0, b"still"));
    let mut taken = Vec::new();
    assert_eq!(messages.blocking_recv_many(&mut taken, 1), 1);
}
