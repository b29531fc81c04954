//! The subjects of the benches: a frame on its way to viewers, packets to seal and to open, a
//! browser's offer, a request of a page.
#![allow(
    clippy::unwrap_used,
    reason = "a bench that cannot be set up has failed"
)]

use portunus_core::Object;
use portunus_core::request::Request;
use portunus_media::testing::FanOut;
use portunus_rtp::{ExtensionKind, Fields, Pt, SeqNo, Ssrc, write_header};
use portunus_sdp::{
    AnswerOptions, Description, Fingerprint, FingerprintHash, IceCredentials, LocalTransport,
    RemoteDescription, SdpType, Session,
};
use portunus_srtp::{Opener, Profile, Sealer};

/// The length of a packet with its header, before sealing.
pub const PACKET: usize = 1_200;
const HEADER: usize = 12;
const SSRC: Ssrc = Ssrc(0x8080_8080);

/// A received frame, and the worker that relays it.
#[derive(Debug)]
pub struct Frame {
    rig: FanOut,
    datagrams: Vec<Vec<u8>>,
}

impl Frame {
    /// Creates a frame of seven packets for viewers who have received some before.
    pub fn to(viewers: usize) -> Self {
        let mut rig = FanOut::new(viewers);
        for _ in 0..10 {
            let mut frame = rig.frame(7, PACKET);
            rig.relay(&mut frame);
        }
        let datagrams = rig.frame(7, PACKET);
        Frame { rig, datagrams }
    }

    /// Relays the frame: each datagram is opened once, and sealed for each viewer.
    pub fn relay(mut self) -> Self {
        self.rig.relay(&mut self.datagrams);
        self
    }
}

/// Writes the header of a browser's video packet for one viewer.
pub fn write(packet: &mut [u8]) -> usize {
    let fields = Fields {
        marker: true,
        padding: false,
        pt: Pt(96),
        sequence: 4_711,
        timestamp: 90_000,
        ssrc: SSRC,
    };
    let extensions: [(u8, &[u8]); 4] = [
        (1, b"video0"),
        (3, &[1, 2, 3]),
        (4, &[0, 1]),
        (6, &[0, 0, 0]),
    ];
    write_header(packet, &fields, extensions).unwrap()
}

/// A packet, its sealer and its opener.
#[derive(Debug)]
pub struct Crypt {
    sealer: Sealer,
    opener: Opener,
    packet: [u8; PACKET + 16],
    len: usize,
}

impl Crypt {
    /// Creates a packet in the clear.
    pub fn clear(profile: Profile) -> Self {
        let (key, salt) = (vec![7; profile.key_len()], vec![9; profile.salt_len()]);
        Crypt {
            sealer: Sealer::new(profile, &key, &salt).unwrap(),
            opener: Opener::new(profile, &key, &salt).unwrap(),
            packet: [0x80; PACKET + 16],
            len: PACKET,
        }
    }

    /// Creates a sealed packet. Others were opened before.
    pub fn sealed(profile: Profile) -> Self {
        let mut this = Self::clear(profile).seal(1).open(1);
        this.packet = [0x80; PACKET + 16];
        this.seal(2)
    }

    /// Seals the packet.
    pub fn seal(mut self, number: u64) -> Self {
        let sealed = self
            .sealer
            .seal_rtp(SeqNo(number), HEADER, PACKET, &mut self.packet);
        self.len = sealed.unwrap();
        self
    }

    /// Opens the packet.
    pub fn open(mut self, number: u16) -> Self {
        let packet = self.packet.get_mut(..self.len).unwrap();
        self.opener.open_rtp(HEADER, SSRC, number, packet).unwrap();
        self
    }
}

/// The offer of a browser that sends simulcast.
pub const OFFER: &str = include_str!("../../../fuzz/corpus/sdp_parse/chromium_simulcast");

/// Parses an offer.
pub fn parse(offer: &str) -> RemoteDescription {
    RemoteDescription::parse(offer, SdpType::Offer, &[]).unwrap()
}

/// Answers an offer.
pub fn answer(offer: RemoteDescription) -> String {
    let options = AnswerOptions {
        extensions: ExtensionKind::ALL.to_vec(),
        ..AnswerOptions::default()
    };
    let answer = Description::answer(&offer.description, &options);
    let mut session = Session::new(transport(), 1);
    session.set_remote_offer(offer).unwrap();
    session.local_answer(answer).unwrap().0
}

fn transport() -> LocalTransport {
    LocalTransport {
        ice: IceCredentials {
            ufrag: "bnch".to_owned(),
            pwd: "bench-password-of-24-chars".to_owned(),
        },
        fingerprint: Fingerprint {
            hash: FingerprintHash::Sha256,
            digest: vec![7; 32],
        },
        candidates: Vec::new(),
        full_trickle: false,
        ice_lite: false,
        address: [192, 0, 2, 1].into(),
        session_id: 1,
    }
}

/// Returns a page's request to join a room, with its offer.
pub fn message() -> String {
    let body = Object::new()
        .with("request", "joinandconfigure")
        .with("ptype", "publisher")
        .with("room", 1_234)
        .with("display", "Ada");
    let jsep = Object::new().with("type", "offer").with("sdp", OFFER);
    let message = Object::new()
        .with("janus", "message")
        .with("session_id", 4_711_u64)
        .with("handle_id", 815_u64)
        .with("transaction", "aBcDeFgHiJkL")
        .with("body", body)
        .with("jsep", jsep);
    serde_json::to_string(&serde_json::Value::from(message)).unwrap()
}

/// Parses a request.
pub fn request(message: &str) -> Request {
    let request = Request::parse(message.as_bytes(), false);
    request.map_err(|refusal| refusal.error).unwrap()
}
