//! Another server's publisher, received by a worker without a network.
#![allow(
    clippy::expect_used,
    reason = "a test that cannot be set up has failed"
)]

use std::net::SocketAddr;

use portunus_rtp::{ExtensionKind, ExtensionMap, Ssrc};
use portunus_sdp::negotiated::Codec;

use super::FanOut;
use crate::ingest::{DataIngest, IngestSrtp, RtpIngest, SrtpSuite};
use crate::{
    IngestBind, IngestFeed, IngestMedia, IngestOptions, IngestSocket, RouteOptions, SharedSocket,
    Tap, TapOptions, Tapped,
};

/// Audio, video in three encodings, and messages, all by one port.
#[derive(Debug)]
pub struct RemotePublisher {
    rig: FanOut,
    taps: Vec<Tap>,
}

impl RemotePublisher {
    /// Returns an ingest that expects a publisher. `secret` sets a key of zeros.
    pub fn new(secret: bool) -> Self {
        let bind = IngestBind {
            interface: Some("127.0.0.1".to_owned()),
            ..IngestBind::new(0)
        };
        let socket = || -> SharedSocket {
            let socket = IngestSocket::bind(bind.clone());
            socket.expect("a free port").into()
        };
        let (rtp, rtcp) = (socket(), socket());
        let mut extensions = ExtensionMap::default();
        extensions.set(ExtensionKind::AudioLevel, 1);
        extensions.set(ExtensionKind::DependencyDescriptor, 2);
        let media = |codec, clock_rate| {
            IngestMedia::Rtp(RtpIngest {
                extensions,
                ..RtpIngest::new(codec, clock_rate)
            })
        };
        let data = IngestMedia::Data(DataIngest {
            label: "",
            text: false,
            keep_last: false,
            framed: true,
        });
        let streams = [
            (media(Codec::Opus, 48_000), 1_000, 1),
            (media(Codec::Av1, 90_000), 1_010, 3),
            (data, 1_020, 1),
        ];
        let ingests = streams.map(|(media, ssrc, encodings)| {
            let feed = IngestFeed::Shared {
                rtp: rtp.clone(),
                rtcp: Some(rtcp.clone()),
                ssrc: Ssrc(ssrc),
                encodings,
            };
            IngestOptions {
                media,
                srtp: secret.then_some(IngestSrtp {
                    suite: SrtpSuite::AesCm128HmacSha1_80,
                    key_and_salt: [0; 30],
                }),
                ..IngestOptions::rtp(Codec::Opus, 48_000, feed)
            }
        });
        let (mut rig, sources) = FanOut::of_ingests(ingests);
        let mut tap = |source| {
            let options = RouteOptions::default();
            rig.tap_of(source, options, TapOptions::default()).1
        };
        let taps = sources.into_iter().map(&mut tap).collect();
        Self { rig, taps }
    }

    /// Takes a datagram on the ports for RTP and for RTCP, and records the outcome. Returns the
    /// number of packets and messages.
    pub fn take_in(&mut self, datagram: &[u8]) -> usize {
        let from = SocketAddr::from(([127, 0, 0, 1], 5_004));
        for port in [0, 1] {
            self.rig.take_by_port(port, from, &mut datagram.to_vec());
        }
        let (mut taken, mut written) = (0, Vec::new());
        for tap in &mut self.taps {
            while let Some(tapped) = tap.try_recv() {
                if let Tapped::Packet(packet) = &tapped {
                    packet.write_to(None, &mut written);
                }
                taken += 1;
            }
        }
        taken
    }
}
