//! Another node, played by hand: what it sends to a worker without a network.

use std::net::SocketAddr;

use portunus_rtp::{ExtensionKind, ExtensionMap, Fields, Pt, SeqNo, Ssrc, write_header};
use portunus_sdp::negotiated::Codec;
use portunus_srtp::Sealer;

use super::FanOut;
use crate::ingest::RtpIngest;
use crate::node_link::{NodeLinkKey, rtcp_ssrc};
use crate::{
    DemandReports, IngestFeed, IngestMedia, IngestOptions, NodeFeed, RouteOptions, Tap, TapOptions,
};

/// The SSRC of the stream that the worker expects.
const STREAM: Ssrc = Ssrc(7);

/// How bytes of another node reach the worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// As a datagram from its address.
    Plain,
    /// As a datagram from elsewhere.
    Elsewhere,
    /// As RTCP behind an empty report, sealed with the key of the link.
    Rtcp,
    /// As the payload of a packet of a stream that is expected, sealed with the key of the link.
    Payload,
    /// As all of such a packet.
    Packet,
}

/// A worker that relays a source of another node, and sends it on to that node.
#[derive(Debug)]
pub struct PlayedNode {
    rig: FanOut,
    tap: Tap,
    sealer: Sealer,
    next: SeqNo,
}

impl Default for PlayedNode {
    fn default() -> Self {
        Self::new()
    }
}

impl PlayedNode {
    /// Returns a worker with a link, and a stream in each direction.
    pub fn new() -> Self {
        let mut extensions = ExtensionMap::default();
        extensions.set(ExtensionKind::DependencyDescriptor, 1);
        let media = RtpIngest::of_node(Codec::Av1, 90_000, extensions);
        let feed = NodeFeed {
            encodings: 1,
            reports: DemandReports::default(),
        };
        let options = IngestOptions {
            media: IngestMedia::Rtp(media),
            ..IngestOptions::rtp(Codec::Av1, 90_000, IngestFeed::Node(feed))
        };
        let mut rig = FanOut::of_ingest(0, options, None);
        rig.relay_to_node(1);
        rig.expect_of_node(STREAM);
        let (_, tap) = rig.tap(RouteOptions::default(), TapOptions::default());
        let sealer = NodeLinkKey::from_bytes(FanOut::NODE_KEY).sealer();
        #[expect(clippy::expect_used, reason = "the key has the right length")]
        let sealer = sealer.expect("a sealer");
        Self {
            rig,
            tap,
            sealer,
            next: SeqNo(1),
        }
    }

    /// Takes bytes of another node. Returns the number of packets that reached a tap.
    pub fn take(&mut self, arrival: Arrival, bytes: &[u8]) -> usize {
        let mut datagram = vec![0; bytes.len() + 128];
        let len = match arrival {
            Arrival::Plain | Arrival::Elsewhere => {
                datagram.truncate(bytes.len());
                datagram.copy_from_slice(bytes);
                Some(bytes.len())
            }
            Arrival::Rtcp => self.rtcp(bytes, &mut datagram),
            Arrival::Payload => self.payload(bytes, &mut datagram),
            Arrival::Packet => self.packet(bytes, &mut datagram),
        };
        if let Some(len) = len {
            datagram.truncate(len);
            let from = match arrival {
                Arrival::Elsewhere => SocketAddr::from(([192, 0, 2, 9], 9)),
                _ => FanOut::NODE,
            };
            self.rig.take_of_node(from, &mut datagram);
        }
        std::iter::from_fn(|| self.tap.try_recv()).count()
    }

    fn rtcp(&mut self, bytes: &[u8], datagram: &mut [u8]) -> Option<usize> {
        let [a, b, c, d] = rtcp_ssrc(0).0.to_be_bytes();
        let end = 8 + bytes.len();
        datagram
            .get_mut(..8)?
            .copy_from_slice(&[0x80, 201, 0, 1, a, b, c, d]);
        datagram.get_mut(8..end)?.copy_from_slice(bytes);
        self.sealer.seal_rtcp(end, datagram).ok()
    }

    fn payload(&mut self, bytes: &[u8], datagram: &mut [u8]) -> Option<usize> {
        let fields = Fields {
            marker: true,
            padding: false,
            pt: Pt(110),
            sequence: self.next.wire(),
            timestamp: 0,
            ssrc: STREAM,
        };
        let head = write_header(datagram, &fields, []).ok()?;
        datagram
            .get_mut(head..head + bytes.len())?
            .copy_from_slice(bytes);
        self.sealed((head, head + bytes.len()), datagram)
    }

    fn packet(&mut self, bytes: &[u8], datagram: &mut [u8]) -> Option<usize> {
        datagram.get_mut(..bytes.len())?.copy_from_slice(bytes);
        datagram
            .get_mut(2..4)?
            .copy_from_slice(&self.next.wire().to_be_bytes());
        datagram
            .get_mut(8..12)?
            .copy_from_slice(&STREAM.0.to_be_bytes());
        let header = portunus_rtp::Header::parse_encrypted(datagram.get(..bytes.len())?).ok()?;
        self.sealed((header.header_len(), bytes.len()), datagram)
    }

    fn sealed(&mut self, (head, len): (usize, usize), datagram: &mut [u8]) -> Option<usize> {
        let seq = self.next;
        self.next = SeqNo(seq.0 + 1);
        self.sealer.seal_rtp(seq, head, len, datagram).ok()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn arrival() -> impl Strategy<Value = Arrival> {
        prop_oneof![
            Just(Arrival::Plain),
            Just(Arrival::Elsewhere),
            Just(Arrival::Rtcp),
            Just(Arrival::Payload),
            Just(Arrival::Packet),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn whatever_another_node_sends_its_stream_goes_on(
            sent in proptest::collection::vec(
                (arrival(), proptest::collection::vec(any::<u8>(), 0..200)),
                1..40,
            ),
        ) {
            let mut node = PlayedNode::new();
            for (arrival, bytes) in sent {
                node.take(arrival, &bytes);
            }
            prop_assert_eq!(node.take(Arrival::Payload, &[0x10; 40]), 1);
        }
    }

    #[test]
    fn only_what_was_sealed_reaches_a_tap() {
        let mut node = PlayedNode::new();
        for arrival in [Arrival::Plain, Arrival::Elsewhere, Arrival::Rtcp] {
            assert_eq!(node.take(arrival, &[0x80; 40]), 0, "{arrival:?}");
        }
        assert_eq!(node.take(Arrival::Payload, &[0x10; 40]), 1);
        let packet = |pt| [&[0x80, pt][..], &[0; 58]].concat();
        assert_eq!(node.take(Arrival::Packet, &packet(110)), 1);
        // Another payload type than that of the codec.
        assert_eq!(node.take(Arrival::Packet, &packet(96)), 0);
    }
}
