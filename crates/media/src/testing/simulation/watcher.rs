//! A viewer: a client's connection, and what it makes of what arrives.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Instant;

use portunus_rtc::Connection;
use portunus_rtc::connection::Received;
use portunus_rtp::codec::Vp9;

use super::picture::Picture;
use crate::{Layer, RouteId};

/// A packet of video at a viewer.
#[derive(Debug, Clone, Copy)]
pub struct Seen {
    /// When it came.
    pub at: Instant,
    /// Its number.
    pub sequence: u16,
    /// The publisher's picture.
    pub number: u32,
    /// Which encoding or spatial layer it is of.
    pub layer: u8,
    /// Its descriptor, if it is VP9's.
    pub vp9: Option<Vp9>,
}

/// Somebody who watches a camera, or several; what is told here is of the first.
#[derive(Debug)]
pub struct Watcher {
    /// What arrived, and its bytes.
    pub received: Vec<(Instant, usize)>,
    /// When frames were complete, and of which encoding or spatial layer they are.
    pub pictures: Vec<(Instant, u8)>,
    /// What the server said of the layers that it relays.
    pub told: Vec<(Instant, Layer)>,
    /// The packets of the video, as they arrived.
    pub packets: Vec<Seen>,
    /// What it says is lost on the way.
    pub mute: bool,
    pub(super) connection: Connection,
    pub(super) address: SocketAddr,
    pub(super) routes: Vec<RouteId>,
    incomplete: BTreeMap<(u32, u8), u16>,
}

impl Watcher {
    pub(super) fn new(connection: Connection, address: SocketAddr, routes: Vec<RouteId>) -> Self {
        Self {
            received: Vec::new(),
            pictures: Vec::new(),
            told: Vec::new(),
            packets: Vec::new(),
            mute: false,
            connection,
            address,
            routes,
            incomplete: BTreeMap::new(),
        }
    }

    /// A datagram of the server's arrives.
    pub(super) fn receive(&mut self, now: Instant, server: SocketAddr, datagram: &mut [u8]) {
        self.received.push((now, datagram.len()));
        let received = self.connection.receive(now, self.address, server, datagram);
        let Received::Rtp(incoming) = received else {
            return;
        };
        let packet = datagram.get(incoming.range.clone()).unwrap_or_default();
        if incoming.media != 0 {
            return;
        }
        let Some(picture) = Picture::read(incoming.header.payload(packet)) else {
            return;
        };
        self.packets.push(Seen {
            at: now,
            sequence: incoming.header.sequence,
            number: picture.number,
            layer: picture.layer,
            vp9: Vp9::parse(incoming.header.payload(packet)).ok(),
        });
        let key = (picture.number, picture.layer);
        let missing = self.incomplete.entry(key).or_insert(picture.packets);
        *missing = missing.saturating_sub(1);
        if *missing == 0 {
            self.pictures.push((now, picture.layer));
            // What is much older will not be complete any more.
            let old = picture.number.saturating_sub(300);
            self.incomplete.retain(|(number, _), _| *number > old);
        }
    }
}
