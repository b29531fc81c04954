//! How many waiting packets of ingests a turn takes.

use std::net::UdpSocket;
use std::sync::Arc;
use std::time::Instant;

use portunus_sdp::negotiated::Codec;

use crate::command::NewIngest;
use crate::ingest::{IngestId, IngestStatus};
use crate::sys;
use crate::testing::{Bare, bare};
use crate::{IngestBind, IngestFeed, IngestOptions, IngestSocket};

/// An audio ingest of a worker, and its sender.
struct Feeding {
    status: Arc<IngestStatus>,
    socket: UdpSocket,
    sent: u16,
}

impl Feeding {
    fn new(bare: &mut Bare, serial: u64, now: Instant) -> Self {
        let bind = IngestBind {
            interface: Some("127.0.0.1".to_owned()),
            ..IngestBind::new(0)
        };
        let rtp = IngestSocket::bind(bind).unwrap();
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(("127.0.0.1", rtp.port())).unwrap();
        let status = Arc::new(IngestStatus::new(now));
        bare.worker.add_ingest(NewIngest {
            id: IngestId { worker: 0, serial },
            options: IngestOptions::rtp(Codec::Opus, 48_000, IngestFeed::socket(rtp)),
            status: Arc::clone(&status),
        });
        Self {
            status,
            socket,
            sent: 0,
        }
    }

    fn send(&mut self, packets: u16) {
        for _ in 0..packets {
            let mut packet = [0_u8; 40];
            packet[0] = 0x80;
            packet[1] = 111;
            packet[2..4].copy_from_slice(&self.sent.to_be_bytes());
            packet[4..8].copy_from_slice(&(u32::from(self.sent) * 960).to_be_bytes());
            packet[11] = 1;
            self.socket.send(&packet).unwrap();
            self.sent += 1;
        }
    }
}

#[test]
fn a_turn_takes_some_and_the_next_one_goes_on_with_those_that_waited() {
    let now = Instant::now();
    let mut bare = bare(now);
    let mut flood = Feeding::new(&mut bare, 1, now);
    let mut quiet = Feeding::new(&mut bare, 2, now);
    flood.send(100);
    quiet.send(1);
    let mut batch = sys::receive_batch();
    assert!(
        bare.worker.receive_ingests(&mut batch, now),
        "there is more"
    );
    let taken = flood.status.packets();
    assert!((64..80).contains(&taken), "{taken}");
    assert_eq!(quiet.status.packets(), 0);
    flood.send(100);
    assert!(
        bare.worker.receive_ingests(&mut batch, now),
        "there is more"
    );
    assert_eq!(quiet.status.packets(), 1, "the first of this turn");
    assert!(flood.status.packets() < 150);
    let mut more = || bare.worker.receive_ingests(&mut batch, now);
    assert!(!more() || !more(), "it is soon over");
    assert_eq!(flood.status.packets(), 200);
}
