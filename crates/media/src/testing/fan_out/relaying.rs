//! Streams of the source to another node, in place of viewers.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use portunus_rtp::Ssrc;

use super::{FRAME, FanOut};
use crate::command::{Command, NewNodeLink, NodeLinkCommand, OutletCommand};
use crate::node_link::{NodeLinkId, NodeLinkKey, NodeLinkOptions};
use crate::outlet::{LinkOutlet, NewOutlet, OutletEnd};
use crate::sys::MediaSocket;
use crate::{Encodings, RelayOptions, RelayedStream, RouteId, RouteOptions, SourceRef};

impl FanOut {
    /// The address of the other node.
    pub(crate) const NODE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(127, 0, 0, 1)), 9);
    /// The key of what it sends.
    pub(crate) const NODE_KEY: [u8; 28] = [2; 28];

    /// Sends the source to another node, `count` times: as if it had so many sources.
    pub fn relay_to_node(&mut self, count: usize) {
        let socket = MediaSocket::bind(SocketAddr::from(([127, 0, 0, 1], 0)));
        let link = NodeLinkId(1);
        let new = NewNodeLink {
            id: link,
            options: NodeLinkOptions {
                far: vec![Self::NODE],
                send: NodeLinkKey::random(),
                receive: NodeLinkKey::from_bytes(Self::NODE_KEY),
            },
            status: Arc::default(),
        };
        let open = NodeLinkCommand::Open(Box::new(socket.expect("a socket")));
        self.inbox.send(Command::NodeLink(open));
        let add = NodeLinkCommand::Add(Box::new(new));
        self.inbox.send(Command::NodeLink(add));
        for n in 0..count {
            let id = RouteId {
                worker: 0,
                serial: 4_000_000 + n as u64,
            };
            let relay = RelayOptions {
                link,
                far: 0,
                ssrc: Ssrc(1 + n as u32),
                encoding: 0,
            };
            let new = NewOutlet {
                id,
                from: self.source,
                options: RouteOptions::default(),
                encodings: Encodings::Layers(0),
                end: OutletEnd::Link(Box::new(LinkOutlet::new(relay, Arc::default()))),
            };
            let add = OutletCommand::Add(Box::new(new));
            self.inbox.send(Command::Outlet(add));
        }
        self.settle();
        self.worker.drop_for_nodes();
    }

    /// Expects a stream of the other node, whose packets are the source's.
    pub(crate) fn expect_of_node(&mut self, ssrc: Ssrc) {
        if let SourceRef::Ingest(ingest) = self.source {
            let stream = RelayedStream {
                link: NodeLinkId(1),
                far: 0,
                ssrc,
                ingest,
                encoding: 0,
                replaces: None,
            };
            let receive = NodeLinkCommand::Receive(stream);
            self.inbox.send(Command::NodeLink(receive));
        }
        self.settle();
    }

    /// Takes a datagram of the other node, and relays it.
    pub(crate) fn take_of_node(&mut self, from: SocketAddr, datagram: &mut [u8]) {
        self.now += FRAME;
        self.worker
            .take_node_link_datagram(from, datagram, self.now);
        self.worker.relay_fresh(self.now);
        self.worker.run_for_nodes(self.now);
        self.worker.flush();
    }

    /// The number of datagrams sent to other nodes so far.
    pub fn sent_to_nodes(&self) -> u64 {
        self.worker.sent_to_nodes()
    }
}
