//! A media plane without a gateway: viewers of ingests, and senders to these.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use portunus_media::{
    Ingest, IngestBind, IngestFeed, IngestOptions, IngestSocket, MediaConfig, MediaPlane,
    PeerEvent, PeerId, PeerOptions, RouteOptions, SourceRef, TrackRef,
};
use portunus_rtp::header::{Fields, write_header};
use portunus_rtp::{Pt, Ssrc};
use portunus_sdp::negotiated::Codec;
use portunus_sdp::{CodecName, Direction, Kind, MediaOffer};
use portunus_sdp::{Description, LocalTransport, OfferOptions, SdpType, Session};
use tokio::sync::mpsc;

use crate::Peer;
use crate::peer::credentials;

/// A media plane on the loopback interface.
#[derive(Debug)]
pub struct Stage {
    /// The media plane.
    pub media: MediaPlane,
    /// Its events.
    pub events: mpsc::Receiver<PeerEvent>,
}

/// A viewer: its PeerConnection, and the server's side of it.
#[derive(Debug)]
pub struct Viewer {
    /// The viewer's side.
    pub peer: Peer,
    /// The server's id of it.
    pub id: PeerId,
    /// Its m-lines.
    pub tracks: Vec<TrackRef>,
    /// The server's user fragment for it.
    pub ufrag: String,
}

impl Stage {
    /// Starts a media plane with `workers`.
    pub fn start(workers: usize) -> Self {
        let config = MediaConfig {
            bind: vec![Ipv4Addr::LOCALHOST.into()],
            ..MediaConfig::default()
        };
        Self::with(workers, config)
    }

    /// Like `start`, for clients that may connect by TCP.
    pub fn with_tcp(workers: usize) -> Self {
        Self::with_tcp_at(Ipv4Addr::LOCALHOST.into(), workers)
    }

    /// Like `start`, with `workers` that share a UDP port and a TCP port, on all addresses.
    pub fn on_one_port(workers: usize) -> Self {
        let config = MediaConfig {
            ice_tcp: true,
            one_port: true,
            ..MediaConfig::default()
        };
        Self::with(workers, config)
    }

    /// Like `with_tcp`, at this loopback address.
    pub fn with_tcp_at(ip: IpAddr, workers: usize) -> Self {
        let config = MediaConfig {
            ice_tcp: true,
            bind: vec![ip],
            ..MediaConfig::default()
        };
        Self::with(workers, config)
    }

    fn with(workers: usize, config: MediaConfig) -> Self {
        let config = MediaConfig {
            workers,
            pin: false,
            port: 0,
            ..config
        };
        let (media, events) = MediaPlane::start(config).expect("a media plane");
        Stage { media, events }
    }

    /// Creates a viewer on `worker` that is offered `lines`, and not connected yet.
    pub async fn viewer(&self, worker: usize, lines: &[(Kind, Option<CodecName>)]) -> Viewer {
        self.viewer_by(Peer::answering().await, worker, lines)
    }

    /// Like `viewer`, by TCP only.
    pub fn viewer_by_tcp(&self, worker: usize, lines: &[(Kind, Option<CodecName>)]) -> Viewer {
        self.viewer_by(Peer::answering_by_tcp(), worker, lines)
    }

    /// Like `viewer`, with this client's side.
    pub fn viewer_by(
        &self,
        peer: Peer,
        worker: usize,
        lines: &[(Kind, Option<CodecName>)],
    ) -> Viewer {
        self.peer_by(peer, worker, (lines, Direction::SendOnly))
    }

    /// Creates a viewer that may send VP8, too.
    pub async fn caller(&self, worker: usize) -> Viewer {
        let lines = [(Kind::Video, Some(CodecName::Vp8))];
        let peer = Peer::answering().await;
        self.peer_by(peer, worker, (&lines, Direction::SendRecv))
    }

    fn peer_by(
        &self,
        mut peer: Peer,
        worker: usize,
        (lines, of_media): (&[(Kind, Option<CodecName>)], Direction),
    ) -> Viewer {
        let ice = credentials();
        let id = self.media.create_peer(PeerOptions {
            ice: ice.clone(),
            controlling: true,
            worker: Some(worker),
        });
        let ice = self.media.local_ice(id, ice);
        let ufrag = ice.ufrag.clone();
        let local = LocalTransport {
            ice,
            fingerprint: self.media.fingerprint().clone(),
            candidates: self.media.candidates(id).to_vec(),
            full_trickle: false,
            ice_lite: false,
            address: self.media.address(),
            session_id: 2,
        };
        let media = lines.iter().map(|(kind, codec)| {
            let direction = match kind {
                Kind::Data => Direction::SendRecv,
                _ => of_media,
            };
            let mut line = MediaOffer::new(*kind, direction);
            if let Some(codec) = codec {
                line.add_codec(*codec, None, None);
            }
            line
        });
        let offer = Description::offer(OfferOptions {
            media: media.collect(),
            ..Default::default()
        });
        let mut session = Session::new(local, rand::random());
        let offer = session.local_offer(offer).unwrap();
        let answer = peer.answer(&offer);
        let answer = session.parse(&answer, SdpType::Answer).unwrap();
        let negotiated = session.accept_answer(answer).unwrap();
        let track = |mid| TrackRef { peer: id, mid };
        let tracks = negotiated.media.iter().map(|m| track(m.mid)).collect();
        self.media.negotiate(id, negotiated);
        Viewer {
            peer,
            id,
            tracks,
            ufrag,
        }
    }

    /// Creates a connected viewer on `worker` of `source`, by one VP8 m-line.
    pub async fn watch(&self, worker: usize, source: impl Into<SourceRef>) -> Viewer {
        let mut viewer = self
            .viewer(worker, &[(Kind::Video, Some(CodecName::Vp8))])
            .await;
        self.show(source, &mut viewer).await;
        viewer
    }

    /// Connects a viewer whose first m-line receives `source`.
    pub async fn show(&self, source: impl Into<SourceRef>, viewer: &mut Viewer) {
        let options = RouteOptions::default();
        self.media.route(source, viewer.tracks[0], options);
        viewer.peer.connect().await;
    }

    /// Creates an ingest of VP8, and a sender to it as `ssrc`.
    pub fn fed(&self, ssrc: u32) -> (Sender, Ingest) {
        let socket = listen();
        let sender = Sender::new(socket.local(), ssrc);
        let ingest = self
            .media
            .add_ingest(vp8_ingest(IngestFeed::socket(socket)));
        (sender, ingest)
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.media.shutdown();
    }
}

/// Opens a socket for an ingest.
pub fn listen() -> IngestSocket {
    let bind = IngestBind {
        interface: Some("127.0.0.1".to_owned()),
        ..IngestBind::new(0)
    };
    IngestSocket::bind(bind).unwrap()
}

/// A sender of RTP to an ingest.
#[derive(Debug)]
pub struct Sender {
    /// Its socket.
    pub socket: UdpSocket,
    to: SocketAddr,
    /// Its SSRC.
    pub ssrc: u32,
    /// The next sequence number.
    pub sequence: u16,
    /// The next timestamp.
    pub timestamp: u32,
}

impl Sender {
    /// Creates a sender to `to`.
    pub fn new(to: SocketAddr, ssrc: u32) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let patience = Some(Duration::from_secs(10));
        socket.set_read_timeout(patience).unwrap();
        Sender {
            socket,
            to,
            ssrc,
            sequence: ssrc as u16,
            timestamp: ssrc.wrapping_mul(77),
        }
    }

    /// Sends pictures of one packet until `peer` receives one.
    pub async fn start(&mut self, peer: &mut Peer) {
        let patience = Instant::now() + Duration::from_secs(20);
        while peer.packets.is_empty() {
            assert!(Instant::now() < patience, "nothing came");
            self.picture(true, 1);
            let until = Instant::now() + Duration::from_millis(20);
            peer.run_until(|peer| !peer.packets.is_empty() || Instant::now() > until)
                .await;
        }
    }

    /// Returns the next packet.
    pub fn packet(&mut self, marker: bool, payload: &[u8]) -> Vec<u8> {
        let fields = Fields {
            marker,
            padding: false,
            pt: Pt(96),
            sequence: self.sequence,
            timestamp: self.timestamp,
            ssrc: Ssrc(self.ssrc),
        };
        self.sequence = self.sequence.wrapping_add(1);
        let mut packet = vec![0; 64];
        let header = write_header(&mut packet, &fields, []).unwrap();
        packet.truncate(header);
        packet.extend_from_slice(payload);
        packet
    }

    /// Sends a datagram.
    pub fn send(&self, datagram: &[u8]) {
        self.socket.send_to(datagram, self.to).unwrap();
    }

    /// Sends a VP8 picture in `packets` packets, each with its number after the VP8 headers.
    pub fn picture(&mut self, keyframe: bool, packets: u8) {
        for n in 0..packets {
            let payload = vp8(keyframe, n, self.sequence);
            let packet = self.packet(n + 1 == packets, &payload);
            self.send(&packet);
        }
        self.timestamp = self.timestamp.wrapping_add(3_000);
    }
}

/// Returns a payload with VP8 headers.
pub fn vp8(keyframe: bool, n: u8, tag: u16) -> Vec<u8> {
    let mut payload = match (n, keyframe) {
        (0, true) => vec![0x10, 0x10, 0, 0, 0x9d, 0x01, 0x2a, 16, 0, 16, 0],
        (0, false) => vec![0x10, 0x11, 0, 0],
        (_, _) => vec![0x00, 0x55],
    };
    payload.extend_from_slice(&tag.to_be_bytes());
    payload.extend([n; 40]);
    payload
}

/// Returns the options of a VP8 ingest.
pub fn vp8_ingest(feed: IngestFeed) -> IngestOptions {
    IngestOptions::rtp(Codec::Vp8, 90_000, feed)
}
