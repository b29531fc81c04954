//! Participants by plain RTP.

use std::net::UdpSocket;

use portunus_dsp::g711::{self, Law};
use portunus_rtp::header::{Fields, write_header};
use portunus_rtp::{Header, Pt, Ssrc};
use portunus_tests::{Caller, Server};
use serde_json::json;

use crate::world::{PACKAGE, ROOM, loudness, samples};

pub fn socket() -> (UdpSocket, u16) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_nonblocking(true).unwrap();
    let port = socket.local_addr().unwrap().port();
    (socket, port)
}

/// Returns the waiting packets.
pub fn received(socket: &UdpSocket) -> Vec<(Header, Vec<u8>)> {
    let mut buf = [0; 2_000];
    let mut packets = Vec::new();
    while let Ok(len) = socket.recv(&mut buf) {
        let header = Header::parse(&buf[..len]).unwrap();
        let payload = header.payload(&buf[..len]).to_vec();
        packets.push((header, payload));
    }
    packets
}

/// A telephone that has joined, and talks with a tone.
pub struct Phone {
    socket: UdpSocket,
    /// The port that it sends to.
    to: u16,
    tone: f32,
    frame: u32,
    heard: Vec<f32>,
    /// The payload type of its packets. 0 is the right one.
    pub pt: Pt,
    _caller: Caller,
}

impl Phone {
    /// Joins with PCMU.
    pub async fn join(server: &Server, tone: f32, id: u64) -> Self {
        let (socket, port) = socket();
        let mut caller = server.attach(PACKAGE).await;
        let join = json!({
            "request": "join", "room": ROOM, "id": id, "codec": "pcmu",
            "rtp": { "ip": "127.0.0.1", "port": port },
        });
        caller.message(join, None).await;
        let joined = caller.until("/plugindata/data/audiobridge", "joined").await;
        let to = joined["plugindata"]["data"]["rtp"]["port"].as_u64();
        Phone {
            socket,
            to: u16::try_from(to.unwrap()).unwrap(),
            tone,
            frame: 0,
            heard: Vec::new(),
            pt: Pt(0),
            _caller: caller,
        }
    }

    /// Returns its next packet.
    pub fn packet(&mut self) -> Vec<u8> {
        let mut payload = Vec::new();
        g711::encode(
            Law::Mu,
            &samples(self.tone, 8_000, self.frame),
            &mut payload,
        );
        let fields = Fields {
            marker: false,
            padding: false,
            pt: self.pt,
            sequence: self.frame as u16,
            timestamp: self.frame * 160,
            ssrc: Ssrc(7),
        };
        self.frame += 1;
        let mut packet = vec![0; 200];
        let header = write_header(&mut packet, &fields, []).unwrap();
        packet.truncate(header);
        packet.extend(payload);
        packet
    }

    pub fn send(&self, packet: &[u8]) {
        let to = ("127.0.0.1", self.to);
        self.socket.send_to(packet, to).unwrap();
    }

    /// Takes the received packets.
    pub fn receive(&mut self) {
        for (header, payload) in received(&self.socket) {
            assert_eq!(header.pt, Pt(0));
            g711::decode(Law::Mu, &payload, &mut self.heard);
        }
    }

    /// Returns the loudness of `tone` in the sound heard last.
    pub fn loudness(&self, tone: f32) -> f32 {
        loudness(&self.heard, 8_000, tone)
    }
}
