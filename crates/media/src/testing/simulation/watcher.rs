//! A viewer: a client's connection, and what it receives.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Instant;

use portunus_rtc::Connection;
use portunus_rtc::connection::Received;
use portunus_rtp::codec::Vp9;

use super::picture::Picture;
use crate::{Layer, RouteId};

/// A received packet of video.
#[derive(Debug, Clone, Copy)]
pub struct Seen {
    /// When it arrived.
    pub at: Instant,
    /// Its sequence number.
    pub sequence: u16,
    /// The number of the publisher's picture.
    pub number: u32,
    /// Its encoding or spatial layer.
    pub layer: u8,
    /// Its descriptor, if it is VP9.
    pub vp9: Option<Vp9>,
}

/// A viewer of one or several cameras. The fields concern the first camera.
#[derive(Debug)]
pub struct Watcher {
    /// When packets arrived, and their bytes.
    pub received: Vec<(Instant, usize)>,
    /// When frames were complete, and their encoding or spatial layer.
    pub pictures: Vec<(Instant, u8)>,
    /// The reported layers.
    pub told: Vec<(Instant, Layer)>,
    /// The packets of the video, in order of arrival.
    pub packets: Vec<Seen>,
    /// What it sends gets lost.
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

    /// Takes a datagram of the server.
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
            // A much older frame will not be complete any more.
            let old = picture.number.saturating_sub(300);
            self.incomplete.retain(|(number, _), _| *number > old);
        }
    }
}
