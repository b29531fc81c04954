//! Forwarders of streams with layers.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::expect_used,
    reason = "a failed test panics"
)]

use std::net::UdpSocket;
use std::time::Duration;

use portunus_media::ingest::{IngestMedia, RtpIngest};
use portunus_media::{
    Encodings, ForwardOptions, Ingest, IngestFeed, IngestOptions, MediaConfig, MediaPlane,
    PacketFeed, RouteOptions, packet_feed,
};
use portunus_rtp::extension::DependencyReader;
use portunus_rtp::{ExtensionKind, ExtensionMap, Fields, Header, Pt, Ssrc, write_header};
use portunus_sdp::negotiated::Codec;

const SSRC: Ssrc = Ssrc(8_000);
/// The id of the dependency descriptor.
const DESCRIPTOR: u8 = 5;
/// Another extension, which stays unchanged.
const OTHER: (u8, &[u8]) = (3, &[0x77]);

struct Rig {
    media: MediaPlane,
    ingest: Ingest,
    feed: PacketFeed,
    // Nobody reads events, but the channel has to stay open.
    _events: tokio::sync::mpsc::Receiver<portunus_media::PeerEvent>,
}

impl Rig {
    fn new(stream: RtpIngest, encodings: u8) -> Self {
        let config = MediaConfig {
            workers: 1,
            pin: false,
            port: 0,
            ..MediaConfig::default()
        };
        let (media, events) = MediaPlane::start(config).unwrap();
        let (feed, packets) = packet_feed(encodings);
        let mut options = IngestOptions::rtp(stream.codec, 90_000, IngestFeed::Packets(packets));
        options.media = IngestMedia::Rtp(stream);
        Self {
            ingest: media.add_ingest(options),
            media,
            feed,
            _events: events,
        }
    }

    /// A receiver of a forwarder with these options.
    fn forward(&self, route: RouteOptions, encodings: Encodings) -> UdpSocket {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let patience = Some(Duration::from_secs(10));
        socket.set_read_timeout(patience).unwrap();
        let options = ForwardOptions {
            encodings,
            ..ForwardOptions::new(socket.local_addr().unwrap())
        };
        self.media.forward(self.ingest.id, route, options);
        socket
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.media.shutdown();
    }
}

fn receive(socket: &UdpSocket) -> (Header, Vec<u8>) {
    let mut buffer = vec![0; 2_048];
    let len = socket.recv(&mut buffer).expect("a datagram");
    buffer.truncate(len);
    (Header::parse(&buffer).unwrap(), buffer)
}

/// A packet with these extensions and a contributing source.
fn packet(sequence: u16, extensions: &[(u8, &[u8])], payload: &[u8]) -> Vec<u8> {
    let fields = Fields {
        marker: true,
        padding: false,
        pt: Pt(98),
        sequence,
        timestamp: u32::from(sequence) * 3_000,
        ssrc: SSRC,
    };
    let mut datagram = vec![0; 256];
    let len = write_header(&mut datagram, &fields, extensions.iter().copied()).unwrap();
    datagram.truncate(len);
    datagram.splice(12..12, [0, 0, 0, 9]);
    datagram[0] |= 1;
    datagram.extend_from_slice(payload);
    datagram
}

#[test]
fn receivers_of_lower_av1_layers_are_told_which_decode_targets_they_get() {
    let mut stream = RtpIngest::new(Codec::Av1, 90_000);
    let mut numbers = ExtensionMap::default();
    numbers.set(ExtensionKind::DependencyDescriptor, DESCRIPTOR);
    stream.extensions = numbers;
    let rig = Rig::new(stream, 1);
    let lowest = RouteOptions {
        temporal: 0,
        ..RouteOptions::default()
    };
    let chosen = rig.forward(lowest.clone(), Encodings::Best);
    let next = RouteOptions {
        temporal: 1,
        ..RouteOptions::default()
    };
    let next = rig.forward(next, Encodings::Best);
    let whole = rig.forward(lowest, Encodings::Only(0));

    // Frame 1 with a structure of two temporal layers and decode targets, then frames of the upper
    // and the lower one.
    let keyframe: &[u8] = &[0xc0, 0, 1, 0x80, 0x01, 0x7a, 0x14, 0x00];
    let frames: [&[u8]; 4] = [keyframe, &[0xc1, 0, 2], &[0xc0, 0, 3], &[0xc1, 0, 4]];
    let payload = [0x10, 0x30, 0x55, 0x66];
    for (sequence, descriptor) in (1..).zip(frames) {
        let packet = packet(sequence, &[(DESCRIPTOR, descriptor), OTHER], &payload);
        rig.feed.send(0, &packet).unwrap();
    }

    let get = |socket: &UdpSocket, reader: &mut DependencyReader| {
        let (header, datagram) = receive(socket);
        assert_eq!(header.payload(&datagram), payload);
        assert_eq!(header.extension(&datagram, OTHER.0), Some(OTHER.1));
        assert_eq!(header.csrcs(&datagram).collect::<Vec<_>>(), [Ssrc(9)]);
        assert_eq!(
            (header.ssrc, header.pt, header.marker),
            (SSRC, Pt(98), true)
        );
        let value = header.extension(&datagram, DESCRIPTOR).unwrap().to_vec();
        let told = reader.read(&value).unwrap();
        let is_told = told.targets_place.is_told;
        (
            told.fields.frame_number,
            told.active_targets,
            is_told,
            value,
        )
    };
    let mut reader = DependencyReader::new();
    for frame in [1, 3] {
        let (number, targets, is_told, _) = get(&chosen, &mut reader);
        assert_eq!((number, targets, is_told), (frame, 0b01, true));
    }
    // If all are forwarded, the publisher's mask is right.
    for socket in [&next, &whole] {
        let mut reader = DependencyReader::new();
        for (frame, descriptor) in (1..).zip(frames) {
            let (number, targets, is_told, value) = get(socket, &mut reader);
            assert_eq!((number, targets, is_told), (frame, 0b11, false));
            assert_eq!(value, descriptor);
        }
    }
}

/// A picture of VP9 in one packet, with a short or a long id.
fn vp9(ids: &[u8], tl0: u8, temporal: u8, keyframe: bool) -> Vec<u8> {
    let flags = if keyframe { 0b1010_1100 } else { 0b1110_1100 };
    let mut payload = vec![flags];
    payload.extend_from_slice(ids);
    payload.extend_from_slice(&[temporal << 5 | 0x10, tl0, 0x82, 0x49]);
    payload
}

#[test]
fn vp9_picture_numbers_go_on_where_the_best_encoding_changes() {
    let stream = RtpIngest {
        svc: true,
        ..RtpIngest::new(Codec::Vp9, 90_000)
    };
    let rig = Rig::new(stream, 2);
    let lower = RouteOptions {
        temporal: 0,
        ..RouteOptions::default()
    };
    let best = rig.forward(RouteOptions::default(), Encodings::Best);
    let lower = rig.forward(lower, Encodings::Best);
    let upper = rig.forward(RouteOptions::default(), Encodings::Only(1));
    let sent = [
        (0, 1, vp9(&[0xff, 0xff], 255, 0, true)),
        (1, 51, vp9(&[0x81, 0x10], 7, 0, true)),
        (1, 52, vp9(&[0x81, 0x11], 7, 1, false)),
        (1, 53, vp9(&[0x81, 0x12], 8, 0, false)),
    ];
    let send = |(encoding, sequence, payload): &(u8, u16, Vec<u8>)| {
        let packet = packet(*sequence, &[OTHER], payload);
        rig.feed.send(*encoding, &packet).unwrap();
    };
    // Only the lower encoding flows at first. It is relayed once that is certain.
    let patience = best.read_timeout().unwrap();
    best.set_read_timeout(Some(Duration::from_millis(50)))
        .unwrap();
    let mut sequence = 0;
    let is_relayed = || best.peek(&mut [0; 64]).is_ok();
    while !is_relayed() {
        sequence += 1;
        assert!(sequence < 1_000, "the lower encoding is relayed");
        send(&(0, sequence, sent[0].2.clone()));
    }
    best.set_read_timeout(patience).unwrap();
    sent[1..].iter().for_each(send);
    let expected = [
        vp9(&[0x80, 0], 0, 0, true),
        vp9(&[0x80, 1], 0, 1, false),
        vp9(&[0x80, 2], 1, 0, false),
    ];
    let get = |socket: &UdpSocket| {
        let (header, datagram) = receive(socket);
        (header.sequence, header.payload(&datagram).to_vec())
    };
    // The first packet after those of the lower encoding.
    let rises = |socket: &UdpSocket| {
        let mut last = None;
        loop {
            let (sequence, payload) = get(socket);
            if let Some(last) = last {
                assert_eq!(sequence, u16::wrapping_add(last, 1));
            }
            if payload != sent[0].2 {
                assert!(last.is_some(), "the lower encoding came before");
                return (sequence, payload);
            }
            last = Some(sequence);
        }
    };
    let (first, payload) = rises(&best);
    assert_eq!(payload, expected[0]);
    for (n, expected) in (1..).zip(&expected[1..]) {
        let (sequence, payload) = get(&best);
        assert_eq!(payload, *expected, "{n}");
        assert_eq!(sequence, first.wrapping_add(n));
    }
    // References are distances between picture ids, so ids of dropped pictures stay gaps, unlike
    // sequence numbers.
    let (first, payload) = rises(&lower);
    assert_eq!(payload, expected[0]);
    let (sequence, payload) = get(&lower);
    assert_eq!(
        (sequence, payload),
        (first.wrapping_add(1), expected[2].clone())
    );
    for (_, _, payload) in &sent[1..] {
        assert_eq!(get(&upper).1, *payload, "as it is");
    }
}
