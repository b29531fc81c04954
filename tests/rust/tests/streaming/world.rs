//! A server with the plugin, its sources and its viewers.

use std::net::{Ipv4Addr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use portunus_core::Plugin;
use portunus_core::record::Recorder;
use portunus_rtp::header::{Fields, write_header};
use portunus_rtp::{ExtensionKind, Pt, Ssrc};
use portunus_streaming::{Streaming, StreamingConfig};
use portunus_tests::{Caller, Packet, Peer, Server};
use serde_json::{Value, json};

pub const PACKAGE: &str = "janus.plugin.streaming";

/// The headers of a VP8 keyframe of 16 by 16 pixels, in one packet.
pub const KEYFRAME: [u8; 12] = [0x10, 0x10, 0, 0, 0x9d, 0x01, 0x2a, 16, 0, 16, 0, 7];
/// A frame that refers to the previous one.
pub const FRAME: [u8; 6] = [0x10, 0x11, 0, 0, 1, 2];

pub async fn server(workers: usize) -> Server {
    Server::start_with(workers, async |media| {
        let plugin = Streaming::start(StreamingConfig::default(), media, Recorder::default()).await;
        Arc::new(plugin.unwrap()) as Arc<dyn Plugin>
    })
    .await
}

/// A sender of RTP to a port.
pub struct Source {
    pub socket: UdpSocket,
    pub host: Ipv4Addr,
    pub port: u16,
    pub ssrc: u32,
    pub sequence: u16,
    pub timestamp: u32,
}

impl Source {
    pub fn new(port: &Value) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let timeout = Some(Duration::from_secs(20));
        socket.set_read_timeout(timeout).unwrap();
        Source {
            socket,
            host: Ipv4Addr::LOCALHOST,
            port: u16::try_from(port.as_u64().unwrap()).unwrap(),
            ssrc: 7,
            sequence: 65_530,
            timestamp: 1_000,
        }
    }

    pub fn send(&mut self, payload: &[u8]) {
        self.send_with(&[], payload);
    }

    pub fn send_with(&mut self, extensions: &[(u8, &[u8])], payload: &[u8]) {
        let fields = Fields {
            marker: true,
            padding: false,
            pt: Pt(33),
            sequence: self.sequence,
            timestamp: self.timestamp,
            ssrc: Ssrc(self.ssrc),
        };
        let mut packet = [0; 1_500];
        let extensions = extensions.iter().copied();
        let header = write_header(&mut packet, &fields, extensions).unwrap();
        packet[header..header + payload.len()].copy_from_slice(payload);
        self.send_raw(&packet[..header + payload.len()]);
        self.sequence = self.sequence.wrapping_add(1);
        self.timestamp = self.timestamp.wrapping_add(3_000);
    }

    pub fn send_raw(&self, datagram: &[u8]) {
        self.socket
            .send_to(datagram, (self.host, self.port))
            .unwrap();
    }

    /// Returns the number of keyframe requests since the last call.
    pub fn asked(&self) -> usize {
        let mut datagram = [0; 1_500];
        self.socket.set_nonblocking(true).unwrap();
        let mut asked = 0;
        while let Ok(length) = self.socket.recv(&mut datagram) {
            // Payload-specific feedback 1: a picture was lost (RFC 4585 section 6.3.1).
            let pli = datagram[..length]
                .windows(2)
                .any(|head| head == [0x81, 206]);
            asked += usize::from(pli);
        }
        asked
    }
}

/// A client that watches.
pub struct Viewer {
    pub caller: Caller,
    pub peer: Peer,
}

impl Viewer {
    pub async fn watch(server: &Server, mut body: Value) -> Self {
        let mut caller = server.attach(PACKAGE).await;
        body["request"] = json!("watch");
        caller.message(body, None).await;
        let preparing = caller
            .until("/plugindata/data/result/status", "preparing")
            .await;
        let mut peer = Peer::answering().await;
        peer.extensions = vec![ExtensionKind::AbsCaptureTime];
        let answer = peer.answer(preparing["jsep"]["sdp"].as_str().unwrap());
        let start = json!({ "request": "start" });
        caller.message(start, Some(("answer", &answer))).await;
        peer.connect().await;
        caller
            .until("/plugindata/data/result/status", "started")
            .await;
        Viewer { caller, peer }
    }

    /// Sends by `send` until a packet arrives on m-line `media` for which `wanted` is true.
    pub async fn receive(
        &mut self,
        media: usize,
        mut send: impl FnMut(),
        wanted: impl Fn(&Packet) -> bool,
    ) -> Packet {
        for _ in 0..200 {
            send();
            self.few_turns().await;
            let found = self.peer.packets.iter();
            if let Some(packet) = found.clone().find(|p| p.media == media && wanted(p)) {
                return packet.clone();
            }
        }
        panic!("nothing came through: {:?}", self.peer.packets);
    }

    pub async fn few_turns(&mut self) {
        let mut turns = 0;
        self.peer
            .run_until(|_| {
                turns += 1;
                turns > 3
            })
            .await;
    }

    pub async fn ask(&mut self, body: Value, pointer: &str) -> Value {
        self.caller.message(body, None).await;
        loop {
            let message = self.caller.next().await;
            let found = message.pointer(&format!("/plugindata/data/result/{pointer}"));
            if let Some(found) = found {
                return found.clone();
            }
        }
    }
}

pub async fn mountpoint(admin: &mut Caller, id: u64, media: Value, options: Value) -> Value {
    let mut body = json!({ "request": "create", "type": "rtp", "id": id, "media": media });
    let members = body.as_object_mut().unwrap();
    members.extend(options.as_object().unwrap().clone());
    let created = admin.manage(body).await;
    assert_eq!(created["streaming"], "created", "{created}");
    created["stream"]["ports"].clone()
}

pub fn video(mid: &str) -> Value {
    json!({ "type": "video", "mid": mid, "port": 0, "rtcpport": 0, "codec": "vp8" })
}
