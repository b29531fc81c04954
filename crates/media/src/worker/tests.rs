#![allow(clippy::unwrap_used)]

use std::time::Instant;

use portunus_rtc::testing::credentials;
use portunus_rtp::Mid;

use crate::command::Command;
use crate::graph::SourceFormat;
use crate::testing::{Bare, bare};
use crate::{
    DataMessage, DataPayload, Event, IceState, PeerId, RouteId, RouteOptions, SourceRef, TrackRef,
};

fn track(worker: u16, serial: u64) -> TrackRef {
    TrackRef {
        peer: PeerId { worker, serial },
        mid: Mid::new("0").unwrap(),
    }
}

#[test]
fn what_is_said_of_a_source_that_is_gone_leaves_nothing_behind() {
    let now = Instant::now();
    let Bare {
        mut worker, inbox, ..
    } = bare(now);
    let (gone, elsewhere, viewer) = (track(0, 1), track(1, 2), track(0, 3));
    inbox.send(Command::CreatePeer {
        peer: viewer.peer,
        ice: credentials("viewer", 1),
        controlling: false,
    });
    // Its peer ended a moment ago.
    inbox.send(Command::AddRoute {
        route: RouteId {
            worker: 0,
            serial: 4,
        },
        from: gone.into(),
        to: viewer,
        options: RouteOptions::default(),
    });
    // The last route from it ended a moment ago.
    inbox.send(Command::SourceFormat {
        source: SourceRef::Track(elsewhere),
        format: SourceFormat {
            is_video: true,
            clock_rate: 90_000,
            encodings: 1,
            messages: None,
            keep: None,
        },
    });
    worker.take_commands(now);
    assert_eq!(worker.peers.len(), 1);
    assert_eq!((worker.sources.len(), worker.routes.len()), (0, 0));
    assert!(worker.by_source.is_empty() && worker.by_route.is_empty());
}

#[test]
fn with_a_peer_end_its_sources_and_no_others() {
    let now = Instant::now();
    let Bare {
        mut worker, inbox, ..
    } = bare(now);
    let (publisher, viewer) = (track(0, 1), track(0, 2));
    for (name, peer) in [("publisher", publisher.peer), ("viewer", viewer.peer)] {
        inbox.send(Command::CreatePeer {
            peer,
            ice: credentials(name, 1),
            controlling: false,
        });
    }
    for (serial, from, to) in [(3, publisher, viewer), (4, viewer, publisher)] {
        inbox.send(Command::AddRoute {
            route: RouteId { worker: 0, serial },
            from: from.into(),
            to,
            options: RouteOptions::default(),
        });
    }
    worker.take_commands(now);
    assert_eq!((worker.sources.len(), worker.routes.len()), (2, 2));
    let peer = publisher.peer;
    inbox.send(Command::ClosePeer { peer });
    worker.take_commands(now);
    // The route to it has ended with it, that from it with its source.
    assert_eq!((worker.sources.len(), worker.routes.len()), (1, 0));
    assert!(worker.by_source.contains_key(&viewer.into()));
    let peer = viewer.peer;
    inbox.send(Command::ClosePeer { peer });
    worker.take_commands(now);
    assert_eq!((worker.sources.len(), worker.by_source.len()), (0, 0));
}

#[test]
fn messages_that_nobody_takes_are_bounded_by_their_bytes() {
    let Bare {
        mut worker,
        mut events,
        ..
    } = bare(Instant::now());
    let peer = track(0, 1).peer;
    let message = || {
        Event::Data(DataMessage {
            label: String::new(),
            protocol: String::new(),
            payload: DataPayload::Binary(vec![0; super::MAX_MESSAGE_BYTES / 8]),
        })
    };
    for _ in 0..10 {
        worker.emit(peer, message());
    }
    assert_eq!(events.len(), 8);
    // Whoever takes one holds it for as long as it is there.
    let first = events.try_recv().unwrap();
    worker.emit(peer, message());
    assert_eq!(events.len(), 7);
    drop(first);
    worker.emit(peer, message());
    worker.emit(peer, Event::Remb { bitrate: 1 });
    assert_eq!(events.len(), 9);
}

#[test]
fn messages_that_nobody_takes_leave_room_for_what_has_changed() {
    let Bare {
        mut worker, events, ..
    } = bare(Instant::now());
    let peer = track(0, 1).peer;
    for _ in 0..events.max_capacity() + super::BACKLOG {
        worker.emit(
            peer,
            Event::Data(DataMessage {
                label: String::new(),
                protocol: String::new(),
                payload: DataPayload::Binary(Vec::new()),
            }),
        );
    }
    let waiting = worker.backlog.len();
    assert_eq!(waiting, super::BACKLOG / 2);
    worker.emit(peer, Event::Ice(IceState::Connected));
    assert_eq!(worker.backlog.len(), waiting + 1);
}

#[test]
fn what_only_advises_does_not_hold_up_what_has_changed() {
    let Bare {
        mut worker,
        mut events,
        ..
    } = bare(Instant::now());
    let peer = track(0, 1).peer;
    for _ in 0..2 * super::ADVICE {
        worker.emit(peer, Event::Remb { bitrate: 1 });
    }
    assert_eq!(events.len(), super::ADVICE);
    worker.emit(peer, Event::Ice(IceState::Connected));
    worker.emit(peer, Event::Remb { bitrate: 1 });
    assert_eq!(events.len(), super::ADVICE + 1);
    // Once something of it was taken, there is room again.
    for _ in 0..2 {
        assert_eq!(events.try_recv().unwrap().event, Event::Remb { bitrate: 1 });
    }
    worker.emit(peer, Event::Remb { bitrate: 2 });
    assert_eq!(events.len(), super::ADVICE);
}
