#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failed test panics"
)]

mod ingest;
mod lite;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use portunus_graph::{Packet, Part, Sent, SourceFormat, Stamp};
use portunus_rtc::bandwidth::{DataRate, Decision, Reason};
use portunus_rtc::testing::{Side, credentials, video};
use portunus_rtp::extension::AbsSendTime;
use portunus_rtp::{ExtensionKind, Header, Mid, Pt, SeqNo, Ssrc};
use portunus_sdp::negotiated::{Codec, DtlsRole, Negotiated, NegotiatedMedia};

use super::Worker;
use super::graph::RouteState;
use crate::command::{Command, IngestCommand, NewIngest, PeerCommand, RouteCommand, SourceCommand};
use crate::ingest::{IngestMedia, Refused, RtpIngest};
use crate::testing::{Bare, bare};
use crate::{
    IngestFeed, IngestId, IngestOptions, IngestStatus, PeerId, RouteId, RouteOptions, SourceRef,
    TrackRef, packet_feed,
};

fn track(worker: u16, serial: u64) -> TrackRef {
    TrackRef {
        peer: PeerId { worker, serial },
        mid: Mid::new("0").unwrap(),
    }
}

#[test]
fn what_a_feed_does_not_take_is_told_of_its_ingest() {
    let now = Instant::now();
    let Bare {
        mut worker, inbox, ..
    } = bare(now);
    let (feed, packets) = packet_feed(1);
    let id = IngestId {
        worker: 0,
        serial: 1,
    };
    let status = Arc::new(IngestStatus::new(now));
    inbox.send(Command::Ingest(IngestCommand::Add(Box::new(NewIngest {
        id,
        options: IngestOptions::rtp(Codec::Vp8, 90_000, IngestFeed::Packets(packets)),
        status: Arc::clone(&status),
    }))));
    worker.take_commands(now);
    let packet = [0x80, 96, 0, 1, 0, 0, 0, 0, 0, 0, 0, 7, 0x10, 0x11];
    while feed.send(0, &packet).is_ok() {}
    assert!(feed.send(0, &[0; 2_000]).is_err());
    worker.receive_fed(now);
    let refused = [Refused::Overrun, Refused::TooLong].map(|why| status.refused_as(why));
    assert_eq!(refused, [1, 1]);
    let refusal = status.refusal().unwrap();
    assert_eq!((refusal.why, refusal.datagrams), (Refused::Overrun, 2));
}

#[test]
fn another_payload_type_than_was_agreed_on_is_refused() {
    let now = Instant::now();
    let Bare {
        mut worker, inbox, ..
    } = bare(now);
    let (feed, packets) = packet_feed(1);
    let id = IngestId {
        worker: 0,
        serial: 1,
    };
    let status = Arc::new(IngestStatus::new(now));
    let media = IngestMedia::Rtp(RtpIngest {
        pt: Some(Pt(100)),
        ..RtpIngest::new(Codec::Opus, 48_000)
    });
    inbox.send(Command::Ingest(IngestCommand::Add(Box::new(NewIngest {
        id,
        options: IngestOptions {
            media,
            ..IngestOptions::rtp(Codec::Opus, 48_000, IngestFeed::Packets(packets))
        },
        status: Arc::clone(&status),
    }))));
    worker.take_commands(now);
    for (pt, sequence) in [(100, 1), (101, 2), (13, 3), (100, 4)] {
        let packet = [0x80, pt, 0, sequence, 0, 0, 0, 0, 0, 0, 0, 7, 0x10, 0x11];
        feed.send(0, &packet).unwrap();
    }
    worker.receive_fed(now);
    assert_eq!(status.packets(), 2);
    assert_eq!(status.refused_as(Refused::PayloadType), 2);
}

#[test]
fn what_is_said_of_a_source_that_is_gone_leaves_nothing_behind() {
    let now = Instant::now();
    let Bare {
        mut worker, inbox, ..
    } = bare(now);
    let (gone, elsewhere, viewer) = (track(0, 1), track(1, 2), track(0, 3));
    inbox.send(Command::Peer(
        viewer.peer,
        PeerCommand::Create {
            ice: credentials("viewer", 1),
            controlling: false,
        },
    ));
    // Its peer ended a moment ago.
    inbox.send(Command::Route(
        RouteId {
            worker: 0,
            serial: 4,
        },
        RouteCommand::Add {
            from: gone.into(),
            to: viewer,
            options: RouteOptions::default(),
        },
    ));
    // The last route from it ended a moment ago.
    inbox.send(Command::Source(
        SourceRef::Track(elsewhere),
        SourceCommand::SetFormat(SourceFormat {
            is_video: true,
            clock_rate: 90_000,
            encodings: 1,
            messages: None,
            keep: None,
            on_demand: false,
        }),
    ));
    worker.take_commands(now);
    assert_eq!(worker.peers.len(), 1);
    assert_eq!(worker.graph.len(), (0, 0));
}

#[test]
fn with_a_peer_end_its_sources_and_no_others() {
    let now = Instant::now();
    let Bare {
        mut worker, inbox, ..
    } = bare(now);
    let (publisher, viewer) = (track(0, 1), track(0, 2));
    for (name, peer) in [("publisher", publisher.peer), ("viewer", viewer.peer)] {
        inbox.send(Command::Peer(
            peer,
            PeerCommand::Create {
                ice: credentials(name, 1),
                controlling: false,
            },
        ));
    }
    for (serial, from, to) in [(3, publisher, viewer), (4, viewer, publisher)] {
        inbox.send(Command::Route(
            RouteId { worker: 0, serial },
            RouteCommand::Add {
                from: from.into(),
                to,
                options: RouteOptions::default(),
            },
        ));
    }
    worker.take_commands(now);
    assert_eq!(worker.graph.len(), (2, 2));
    let peer = publisher.peer;
    inbox.send(Command::Peer(peer, PeerCommand::Close));
    worker.take_commands(now);
    // The route to the peer has ended with it, and that from it with its source.
    assert_eq!(worker.graph.len(), (1, 0));
    assert!(worker.graph.key(viewer.into()).is_some());
    let peer = viewer.peer;
    inbox.send(Command::Peer(peer, PeerCommand::Close));
    worker.take_commands(now);
    assert_eq!(worker.graph.len(), (0, 0));
}

/// A viewer with a route to m-line `0`, which [`Viewer::negotiate`] negotiates.
struct Viewer {
    bare: Bare,
    to: TrackRef,
    now: Instant,
}

impl Viewer {
    fn new() -> Self {
        let now = Instant::now();
        let mut bare = bare(now);
        let (from, to) = (track(0, 1), track(0, 2));
        for (name, peer) in [("publisher", from.peer), ("viewer", to.peer)] {
            bare.inbox.send(Command::Peer(
                peer,
                PeerCommand::Create {
                    ice: credentials(name, 1),
                    controlling: false,
                },
            ));
        }
        bare.inbox.send(Command::Route(
            RouteId {
                worker: 0,
                serial: 3,
            },
            RouteCommand::Add {
                from: from.into(),
                to,
                options: RouteOptions::default(),
            },
        ));
        bare.worker.take_commands(now);
        Self { bare, to, now }
    }

    fn negotiate(&mut self, line: NegotiatedMedia) {
        let address = SocketAddr::from(([127, 0, 0, 1], 20_000));
        let side = Side::new("client", address, true, DtlsRole::Client);
        self.bare.inbox.send(Command::Peer(
            self.to.peer,
            PeerCommand::Negotiate(Box::new(Negotiated {
                transport: side.describe(),
                media: vec![line],
            })),
        ));
        self.bare.worker.take_commands(self.now);
    }

    /// Relays packet `seq` of the source. Returns its record, header and mid.
    fn relay(&mut self, seq: u64) -> (Sent, Header, Vec<u8>) {
        let worker: &mut Worker = &mut self.bare.worker;
        let slot = worker.peers.slot(self.to.peer).unwrap();
        let (_, route) = worker.graph.routes_mut().next().unwrap();
        let source = route.source;
        let peer = worker.peers.get_mut(slot).unwrap();
        let sink = peer.tracks.first_mut().unwrap().sink.as_mut().unwrap();
        let mut packet = Packet::empty(self.now);
        (packet.seq, packet.codec) = (SeqNo(seq), Codec::Vp8);
        packet.fill(&[0; 20]);
        packet.data[0] = 0x80;
        packet.header = Header::parse(&packet.data).unwrap();
        let sent = sink
            .numbering
            .forward(source, &packet, 90_000, Part::default());
        let stamp = Stamp {
            send_time: AbsSendTime::from_duration(std::time::Duration::ZERO),
            transport_seq: 0,
            playout_delay: None,
        };
        let (sent, mut out) = (sent.unwrap(), [0; 100]);
        let ((_, len), _) = sink.write(&packet, &sent, &stamp, &mut out).unwrap();
        let header = Header::parse(&out[..len]).unwrap();
        let line = video("0", 0).extensions;
        let mid = header.extension(&out, line.id(ExtensionKind::Mid).unwrap());
        (sent, header, mid.unwrap().to_vec())
    }
}

#[test]
fn what_takes_the_place_of_a_stopped_line_is_another_stream() {
    let mut viewer = Viewer::new();
    viewer.negotiate(video("0", 1_000));
    let (sent, header, mid) = viewer.relay(70_000);
    assert_eq!((sent.out, header.ssrc), (SeqNo(1_001), Ssrc(1_000)));
    assert_eq!(mid, b"0");
    viewer.negotiate(video("1", 2_000));
    let (sent, header, mid) = viewer.relay(70_001);
    assert_eq!((sent.out, header.ssrc), (SeqNo(2_001), Ssrc(2_000)));
    assert_eq!(mid, b"1");
    // Only another mid: no number may be used twice with one SSRC.
    viewer.negotiate(video("2", 2_000));
    let (sent, _, mid) = viewer.relay(70_002);
    assert_eq!((sent.out, mid.as_slice()), (SeqNo(2_002), &b"2"[..]));
}

#[test]
fn after_a_hold_a_line_goes_on_without_a_gap_as_a_new_one_begins() {
    let mut viewer = Viewer::new();
    let held = |send| NegotiatedMedia {
        send,
        ..video("0", 1_000)
    };
    viewer.negotiate(held(true));
    assert_eq!(viewer.relay(5).0.out, SeqNo(1_001));
    let (route, is) = viewer.bare.worker.graph.routes_mut().next().unwrap();
    is.state = RouteState::Live;
    viewer.negotiate(held(true));
    let state = |viewer: &Viewer| viewer.bare.worker.graph.route(route).unwrap().state;
    assert_eq!(state(&viewer), RouteState::Live);
    viewer.negotiate(held(false));
    viewer.negotiate(held(true));
    assert_eq!(viewer.relay(50_000).0.out, SeqNo(1_002));
    assert_eq!(state(&viewer), RouteState::New);
}

#[test]
fn a_publisher_that_many_watch_is_not_asked_for_less() {
    let now = Instant::now();
    let Bare {
        mut worker, inbox, ..
    } = bare(now);
    let from = track(0, 1);
    let route = |serial| RouteId { worker: 0, serial };
    let join = |worker: &mut Worker, serial| {
        let to = track(0, serial);
        inbox.send(Command::Peer(
            to.peer,
            PeerCommand::Create {
                ice: credentials(&serial.to_string(), 1),
                controlling: false,
            },
        ));
        inbox.send(Command::Route(
            route(serial),
            RouteCommand::Add {
                from: from.into(),
                to,
                options: RouteOptions::default(),
            },
        ));
        worker.take_commands(now);
    };
    let share = DataRate::kbps(200);
    inbox.send(Command::Peer(
        from.peer,
        PeerCommand::Create {
            ice: credentials("publisher", 1),
            controlling: false,
        },
    ));
    for serial in 2..53 {
        join(&mut worker, serial);
    }
    let key = worker.graph.key(from.into()).unwrap();
    for (_, route) in worker.graph.routes_mut() {
        // As the allocator decides with temporal layers.
        route.decision = Some(Decision {
            media: 0,
            target: None,
            rate: share,
            reason: Reason::Least,
            cut: false,
            share: Some(share),
        });
    }
    let limit = |worker: &mut Worker| {
        worker.poll_touched(now);
        worker.graph.source(key).unwrap().limit
    };
    worker.graph.note_limited(key);
    assert_eq!(limit(&mut worker), None, "51 watch");
    inbox.send(Command::Route(route(2), RouteCommand::Remove));
    worker.take_commands(now);
    assert_eq!(limit(&mut worker), Some(share), "50 do");
    join(&mut worker, 60);
    assert_eq!(limit(&mut worker), None, "51 do again");
}
