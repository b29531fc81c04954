//! Legs on a media plane with real sockets, and telephones on the other side of them.
#![allow(dead_code, reason = "each test uses a part of this file")]

use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use portunus_leg::{
    Leg, LegEvent, LegNews, LegOptions, LegPayload, LegRemote, LegSrtp, Medium, Profile, SrtpKey,
};
use portunus_media::{MediaConfig, MediaPlane, PeerEvent};
use portunus_rtp::rtcp::{Compound, CompoundWriter, Packet, Pli, ReceiverReportWriter};
use portunus_rtp::{Fields, Header, Pt, SeqNo, Ssrc, write_header};
use portunus_sdp::negotiated::Codec;
use portunus_srtp::{Opener, Sealer};
use tokio::sync::mpsc;

const PATIENCE: Duration = Duration::from_secs(10);

pub const PCMU: LegPayload = LegPayload {
    pt: Pt(0),
    codec: Codec::Pcmu,
    clock_rate: 8_000,
};
pub const OPUS: LegPayload = LegPayload {
    pt: Pt(111),
    codec: Codec::Opus,
    clock_rate: 48_000,
};
pub const VP8: LegPayload = LegPayload {
    pt: Pt(96),
    codec: Codec::Vp8,
    clock_rate: 90_000,
};

pub fn events(pt: u8) -> LegPayload {
    LegPayload {
        pt: Pt(pt),
        codec: Codec::TelephoneEvent,
        clock_rate: 8_000,
    }
}

/// A media plane, and what its legs tell.
pub struct Rig {
    pub media: MediaPlane,
    tell: mpsc::Sender<LegNews>,
    news: mpsc::Receiver<LegNews>,
    // Nobody reads events of peers; the channel has to stay open.
    _events: mpsc::Receiver<PeerEvent>,
}

impl Rig {
    pub fn new(workers: usize) -> Self {
        let config = MediaConfig {
            workers,
            pin: false,
            port: 0,
            ..MediaConfig::default()
        };
        let (media, events) = MediaPlane::start(config).unwrap();
        let (tell, news) = mpsc::channel(1_024);
        Self {
            media,
            tell,
            news,
            _events: events,
        }
    }

    pub fn leg(&self, change: impl FnOnce(&mut LegOptions)) -> Leg {
        let mut options = LegOptions {
            interface: Some("127.0.0.1".to_owned()),
            ..LegOptions::new(Medium::Audio, self.tell.clone())
        };
        change(&mut options);
        Leg::open(&self.media, options).unwrap()
    }

    /// Returns the next matching event of a leg, and drops others.
    pub fn event(&mut self, of: &Leg, wanted: impl Fn(&LegEvent) -> bool) -> LegEvent {
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            match self.news.try_recv() {
                Ok(news) if news.leg == of.id() && wanted(&news.event) => return news.event,
                Ok(_) => {}
                Err(_) => std::thread::yield_now(),
            }
        }
        panic!("a leg does not tell what it should");
    }

    /// Takes all events of all legs.
    pub fn told(&mut self) -> Vec<LegEvent> {
        std::iter::from_fn(|| self.news.try_recv().ok())
            .map(|news| news.event)
            .collect()
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.media.shutdown();
    }
}

/// Waits until something is so.
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::yield_now();
    }
}

/// A far end: two sockets, and SRTP if it is said.
pub struct Phone {
    pub rtp: UdpSocket,
    pub rtcp: UdpSocket,
    sealing: Option<(Sealer, SrtpKey)>,
    opening: Option<(Opener, SrtpKey)>,
    pub ssrc: Ssrc,
    pub sequence: u64,
    pub timestamp: u32,
}

impl Phone {
    pub fn new() -> Self {
        // A pair of neighbours, as NextPort has it.
        let pair = || {
            let rtp = UdpSocket::bind("127.0.0.1:0").ok()?;
            let next = rtp.local_addr().ok()?.port().checked_add(1)?;
            Some((rtp, UdpSocket::bind(("127.0.0.1", next)).ok()?))
        };
        let (rtp, rtcp) = std::iter::repeat_with(pair).find_map(|pair| pair).unwrap();
        for socket in [&rtp, &rtcp] {
            socket.set_read_timeout(Some(PATIENCE)).unwrap();
        }
        Self {
            rtp,
            rtcp,
            sealing: None,
            opening: None,
            ssrc: Ssrc(7_000),
            sequence: 65_500,
            timestamp: 123_000,
        }
    }

    /// With SRTP.
    pub fn secure(profile: Profile) -> Self {
        let (own, other) = (SrtpKey::random(profile), SrtpKey::random(profile));
        let parts = |key: &SrtpKey| {
            let (master, salt) = key.key_and_salt().split_at(profile.key_len());
            (master.to_vec(), salt.to_vec())
        };
        let ((key, salt), (other_key, other_salt)) = (parts(&own), parts(&other));
        Self {
            sealing: Some((Sealer::new(profile, &key, &salt).unwrap(), own)),
            opening: Some((
                Opener::new(profile, &other_key, &other_salt).unwrap(),
                other,
            )),
            ..Self::new()
        }
    }

    pub fn at(&self) -> SocketAddr {
        self.rtp.local_addr().unwrap()
    }

    /// How a leg is told of it.
    pub fn remote(&self, payloads: &[LegPayload]) -> LegRemote {
        let srtp = self.sealing.as_ref().zip(self.opening.as_ref());
        LegRemote {
            srtp: srtp.map(|((_, own), (_, other))| LegSrtp {
                incoming: own.clone(),
                outgoing: other.clone(),
            }),
            ..LegRemote::new(Some(self.at()), payloads.to_vec())
        }
    }

    /// The next packet of 20 ms, with this payload.
    pub fn packet(&mut self, pt: Pt, payload: &[u8]) -> Vec<u8> {
        self.sequence += 1;
        self.timestamp = self.timestamp.wrapping_add(160);
        self.packet_at(pt, self.timestamp, payload)
    }

    pub fn packet_at(&self, pt: Pt, timestamp: u32, payload: &[u8]) -> Vec<u8> {
        let mut packet = vec![0; 300 + payload.len()];
        let fields = Fields {
            marker: false,
            padding: false,
            pt,
            sequence: self.sequence as u16,
            timestamp,
            ssrc: self.ssrc,
        };
        let head = write_header(&mut packet, &fields, []).unwrap();
        packet[head..head + payload.len()].copy_from_slice(payload);
        let mut len = head + payload.len();
        if let Some((sealer, _)) = &self.sealing {
            // The first number is below the first roll-over.
            len = sealer
                .seal_rtp(SeqNo(self.sequence), head, len, &mut packet)
                .unwrap();
        }
        packet.truncate(len);
        packet
    }

    pub fn send(&mut self, leg: &Leg, pt: Pt, payload: &[u8]) {
        let packet = self.packet(pt, payload);
        self.send_as_it_is(leg, &packet);
    }

    pub fn send_as_it_is(&self, leg: &Leg, packet: &[u8]) {
        let to = SocketAddr::from(([127, 0, 0, 1], leg.port()));
        self.rtp.send_to(packet, to).unwrap();
    }

    /// A compound of RTCP that begins with an empty report.
    pub fn send_rtcp(&mut self, leg: &Leg, packet: &impl portunus_rtp::rtcp::WritePacket) {
        let mut out = [0; 400];
        let mut writer = CompoundWriter::new(&mut out);
        let report = ReceiverReportWriter {
            ssrc: self.ssrc,
            blocks: &[],
        };
        writer.push(&report).unwrap();
        writer.push(packet).unwrap();
        let mut len = writer.len();
        if let Some((sealer, _)) = &mut self.sealing {
            len = sealer.seal_rtcp(len, &mut out).unwrap();
        }
        let to = ("127.0.0.1", leg.rtcp_port());
        self.rtcp.send_to(&out[..len], to).unwrap();
    }

    /// The next packet that comes: its header and payload, in the clear.
    pub fn receive(&mut self) -> (Header, Vec<u8>) {
        let mut buffer = [0; 2_048];
        let len = self.rtp.recv(&mut buffer).expect("a packet");
        self.open(&mut buffer[..len])
    }

    pub fn open(&mut self, packet: &mut [u8]) -> (Header, Vec<u8>) {
        let Some((opener, _)) = &mut self.opening else {
            let header = Header::parse(packet).unwrap();
            return (header, header.payload(packet).to_vec());
        };
        let header = Header::parse_encrypted(packet).unwrap();
        let opened = opener.open_rtp(header.header_len(), header.ssrc, header.sequence, packet);
        let plain = &packet[..opened.expect("authentic").len];
        let header = header.decrypted(plain).unwrap();
        (header, header.payload(plain).to_vec())
    }

    /// The next compound of RTCP that comes by the port of RTCP, in the clear.
    pub fn receive_rtcp(&mut self) -> Vec<u8> {
        let mut buffer = [0; 2_048];
        let mut len = self.rtcp.recv(&mut buffer).expect("RTCP");
        if let Some((opener, _)) = &mut self.opening {
            len = opener
                .open_rtcp(&mut buffer[..len])
                .expect("authentic RTCP");
        }
        buffer[..len].to_vec()
    }

    /// Waits for a compound with something in it.
    pub fn receive_rtcp_with(&mut self, wanted: impl Fn(&Packet<'_>) -> bool) -> Vec<u8> {
        loop {
            let compound = self.receive_rtcp();
            let mut packets = Compound::new(&compound).map(|packet| packet.expect("sound RTCP"));
            if packets.any(|packet| wanted(&packet)) {
                return compound;
            }
        }
    }

    pub fn pli(&self, media: Ssrc) -> Pli {
        Pli {
            sender: self.ssrc,
            media,
        }
    }

    /// Whether nothing waits.
    pub fn hears_nothing(&self) -> bool {
        self.rtp.set_nonblocking(true).unwrap();
        let silent = self.rtp.recv(&mut [0; 2_048]).is_err();
        self.rtp.set_nonblocking(false).unwrap();
        silent
    }
}
