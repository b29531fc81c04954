//! How publisher and viewers join: created, connected and routed.

use std::net::SocketAddr;
use std::time::Duration;

use portunus_rtc::testing::{Side, credentials};
use portunus_rtc::{LocalCandidate, Received, TransportEvent, candidate_lines};
use portunus_rtp::{ExtensionKind, ExtensionMap, Mid, Pt, Ssrc};
use portunus_sdp::negotiated::{
    Codec, DtlsRole, Feedback, Kind, Negotiated, NegotiatedMedia, Payload, RemoteTransport,
};

use super::FanOut;
use crate::command::{Command, PeerCommand, RouteCommand};
use crate::{PeerId, RouteId};
use crate::{RouteOptions, SourceRef, TrackRef};

/// The virtual time of a connection: so short that thousands connect before the first of them has
/// to renew its consent.
const STEP: Duration = Duration::from_micros(250);

impl FanOut {
    pub(super) fn add_viewers(&mut self, viewers: usize, from: SourceRef) {
        for viewer in 1..=viewers {
            self.connect(viewer, false);
            let route = RouteId {
                worker: 0,
                serial: 1_000_000 + viewer as u64,
            };
            let options = RouteOptions::default();
            self.inbox.send(Command::Route(
                route,
                RouteCommand::Add {
                    from,
                    to: track(viewer),
                    options,
                },
            ));
        }
        self.worker.drop_datagrams();
        self.settle();
    }

    fn media(&self, index: usize, publishes: bool) -> Vec<NegotiatedMedia> {
        let video = media(index, publishes);
        let audio = NegotiatedMedia {
            mid: audio_mid(),
            kind: Kind::Audio,
            payloads: vec![Payload {
                pt: Pt(111),
                codec: Codec::Opus,
                clock_rate: 48_000,
                rtx: None,
                feedback: Feedback::default(),
            }],
            local_ssrc: Ssrc(3_000_000 + index as u32),
            local_rtx_ssrc: None,
            ..video.clone()
        };
        let audio = self.has_audio.then_some(audio);
        [video].into_iter().chain(audio).collect()
    }

    /// Creates a peer, and a client that knows it.
    pub(super) fn meet(&mut self, index: usize, publishes: bool) -> Side {
        let mut side = Side::new(
            &format!("client{index}"),
            client(index),
            true,
            DtlsRole::Client,
        );
        let ice = credentials(&format!("server{index}"), 1);
        let peer = peer(index);
        self.inbox.send(Command::Peer(
            peer,
            PeerCommand::Create {
                ice: ice.clone(),
                controlling: false,
            },
        ));
        let negotiated = Box::new(Negotiated {
            transport: side.describe(),
            media: self.media(index, publishes),
        });
        self.inbox
            .send(Command::Peer(peer, PeerCommand::Negotiate(negotiated)));
        let server = RemoteTransport {
            ice,
            ice_lite: true,
            fingerprints: side.describe().fingerprints,
            dtls_role: DtlsRole::Client,
            candidates: candidate_lines(&[LocalCandidate::udp(self.local, self.local)]),
        };
        side.transport
            .set_remote(&server, self.now)
            .expect("a valid description");
        side
    }

    /// The same, and completes the handshake.
    pub(super) fn connect(&mut self, index: usize, publishes: bool) -> Side {
        let mut side = self.meet(index, publishes);
        let mut buffer = vec![0; 2_048];
        for _ in 0..20_000 {
            self.worker.take_commands(self.now);
            self.worker.take_handshakes(self.now);
            self.worker.run_timers(self.now);
            self.worker.poll_touched(self.now);
            while let Some(transmit) = side.transport.poll_transmit(&mut buffer) {
                let datagram = &mut buffer[..transmit.len];
                self.worker
                    .take_datagram(self.now, self.local, transmit.source, datagram);
            }
            self.worker.poll_touched(self.now);
            for (to, mut datagram) in self.worker.take_kept() {
                if to == client(index) {
                    let received = side
                        .transport
                        .receive(self.now, to, self.local, &mut datagram);
                    debug_assert!(!matches!(received, Received::Rtp { .. }));
                }
            }
            while let Some(event) = side.transport.poll_event() {
                if matches!(event, TransportEvent::Connected { .. }) {
                    return side;
                }
            }
            self.now += STEP;
            side.transport.handle_timeout(self.now);
        }
        panic!("client {index} does not connect");
    }
}

pub(super) fn client(index: usize) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 20_000 + index as u16))
}

pub(super) fn peer(index: usize) -> PeerId {
    PeerId {
        worker: 0,
        serial: index as u64 + 1,
    }
}

pub(super) fn track(index: usize) -> TrackRef {
    TrackRef {
        peer: peer(index),
        mid: mid(),
    }
}

fn mid() -> Mid {
    Mid::new("0").expect("a valid mid")
}

pub(super) fn audio_mid() -> Mid {
    Mid::new("1").expect("a valid mid")
}

fn media(index: usize, publishes: bool) -> NegotiatedMedia {
    let mut extensions = ExtensionMap::default();
    extensions.set(ExtensionKind::Mid, 1);
    extensions.set(ExtensionKind::AbsSendTime, 2);
    extensions.set(ExtensionKind::TransportCc, 3);
    NegotiatedMedia {
        mid: mid(),
        kind: Kind::Video,
        disabled: false,
        send: !publishes,
        recv: publishes,
        payloads: vec![Payload {
            pt: Pt(96),
            codec: Codec::Vp8,
            clock_rate: 90_000,
            rtx: Some(Pt(97)),
            feedback: Feedback {
                nack: true,
                pli: true,
                ..Feedback::default()
            },
        }],
        extensions,
        remote_ssrcs: Vec::new(),
        rids: Vec::new(),
        local_ssrc: Ssrc(1_000 + index as u32),
        local_rtx_ssrc: Some(Ssrc(2_000_000 + index as u32)),
        sctp_port: 0,
        max_message_size: 0,
    }
}
