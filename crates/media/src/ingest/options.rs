//! The options of ingests.

use std::sync::Arc;
use std::time::Duration;

use portunus_graph::{IngestId, SharedClock};
use portunus_rtp::{ExtensionMap, Pt, Ssrc};
use portunus_sdp::negotiated::Codec;
use portunus_srtp::{Profile, Sealer};
use smallvec::SmallVec;

use super::{IngestSocket, IngestStatus, PacketReceiver, SharedSocket};
use crate::node_link::{NodeFeed, payload_type};

/// What may come on a stream of sound from another node besides its codec.
const WITH_SOUND: [Codec; 3] = [Codec::Red, Codec::TelephoneEvent, Codec::ComfortNoise];

/// An ingest that was added.
#[derive(Debug, Clone)]
pub struct Ingest {
    /// Its id, to route from it.
    pub id: IngestId,
    /// Its statistics.
    pub status: Arc<IngestStatus>,
}

/// The options of an ingest.
#[derive(Debug)]
pub struct IngestOptions {
    /// The media.
    pub media: IngestMedia,
    /// Where packets come from.
    pub feed: IngestFeed,
    /// The key of SRTP. RTCP is not encrypted in any case.
    pub srtp: Option<IngestSrtp>,
    /// How long the present sender must be silent before another SSRC is accepted. 0 lets a new
    /// sender take over immediately.
    pub collision: Duration,
    /// The worker. `None` chooses the one with the fewest ingests.
    pub worker: Option<usize>,
}

impl IngestOptions {
    /// Takes RTP packets of `codec`.
    pub fn rtp(codec: Codec, clock_rate: u32, feed: IngestFeed) -> Self {
        Self::new(IngestMedia::Rtp(RtpIngest::new(codec, clock_rate)), feed)
    }

    /// Takes messages for data channels.
    pub fn data(data: DataIngest, feed: IngestFeed) -> Self {
        Self::new(IngestMedia::Data(data), feed)
    }

    fn new(media: IngestMedia, feed: IngestFeed) -> Self {
        Self {
            media,
            feed,
            srtp: None,
            collision: Duration::ZERO,
            worker: None,
        }
    }
}

/// The media of an ingest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IngestMedia {
    /// Audio or video.
    Rtp(RtpIngest),
    /// Each datagram is a message for data channels.
    Data(DataIngest),
}

/// An audio or video stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RtpIngest {
    /// The codec.
    pub codec: Codec,
    /// The payload type that packets must have. `None` accepts any.
    pub pt: Option<Pt>,
    /// Other payload types that are always accepted, and their codecs.
    pub others: SmallVec<[(Pt, Codec); 2]>,
    /// The RTP clock, in Hz.
    pub clock_rate: u32,
    /// The id (1 to 14) of the abs-capture-time extension, which is then passed on.
    pub abs_capture_time: Option<u8>,
    /// The ids of the other extensions that are passed on.
    pub extensions: ExtensionMap,
    /// Media is encrypted end to end: keyframes can be recognized only by a descriptor outside of
    /// the encryption.
    pub opaque: bool,
    /// Compensates for a sender whose clock is slower or faster than ours.
    pub skew: bool,
    /// The clock of its timestamps, if other ingests share it. Timestamps must match the time at
    /// which packets are fed. They stay as they are when a receiver changes between such ingests.
    pub clock: Option<SharedClock>,
    /// VP9: the stream has spatial layers for routes to choose from.
    pub svc: bool,
    /// H.264: parameter sets to send before each I-frame that comes without any.
    pub h264_parameter_sets: Option<super::ParameterSets>,
}

impl RtpIngest {
    /// Returns a stream that is relayed as it comes.
    pub fn new(codec: Codec, clock_rate: u32) -> Self {
        Self {
            codec,
            pt: None,
            others: SmallVec::new(),
            clock_rate,
            abs_capture_time: None,
            extensions: ExtensionMap::default(),
            opaque: false,
            skew: false,
            clock: None,
            svc: false,
            h264_parameter_sets: None,
        }
    }

    /// Returns a stream that comes from another node, with its codec, clock and extensions there.
    pub fn of_node(codec: Codec, clock_rate: u32, extensions: ExtensionMap) -> Self {
        let others = WITH_SOUND.into_iter();
        let others = others.filter(|other| !codec.is_video() && *other != codec);
        Self {
            pt: Some(payload_type(codec)),
            others: others.map(|other| (payload_type(other), other)).collect(),
            extensions,
            // The layers that it has are seen in its packets.
            svc: true,
            ..Self::new(codec, clock_rate)
        }
    }

    /// Returns the codec of a payload type, if that is accepted.
    pub(crate) fn codec_of(&self, pt: Pt) -> Option<Codec> {
        if let Some((_, codec)) = self.others.iter().find(|(other, _)| *other == pt) {
            return Some(*codec);
        }
        self.pt.is_none_or(|own| own == pt).then_some(self.codec)
    }

    /// Whether it is video.
    pub fn is_video(&self) -> bool {
        self.codec.is_video()
    }
}

/// Messages for data channels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DataIngest {
    /// The label of the data channel, which is opened at peers that have none.
    pub label: &'static str,
    /// Messages are text, and refused unless they are UTF-8. False means bytes.
    pub text: bool,
    /// A new viewer gets the last message.
    pub keep_last: bool,
    /// Each message follows an RTP header, whose payload type is 0 for text. It is not encrypted
    /// even if the ingest has a key.
    pub framed: bool,
}

/// Where the packets of an ingest come from.
#[derive(Debug)]
pub enum IngestFeed {
    /// UDP sockets.
    Sockets {
        /// One socket for each simulcast encoding, lowest first, at most three.
        rtp: Vec<IngestSocket>,
        /// For incoming sender reports, and outgoing keyframe requests and REMB.
        rtcp: Option<IngestSocket>,
    },
    /// A UDP socket that several ingests share: each takes the packets with its SSRCs. All of them
    /// must be on one worker ([`IngestOptions::worker`]).
    Shared {
        /// For RTP.
        rtp: SharedSocket,
        /// For incoming sender reports, and outgoing keyframe requests and REMB.
        rtcp: Option<SharedSocket>,
        /// The SSRC of the lowest encoding. Higher ones have the next numbers.
        ssrc: Ssrc,
        /// The number of encodings, 1 to 3.
        encodings: u8,
    },
    /// The control plane, for files and RTSP.
    Packets(PacketReceiver),
    /// Threads that feed many ingests of a worker ([`super::ThreadFeed`]).
    Thread,
    /// Another node, by streams that are given to it ([`crate::MediaPlane::receive_relayed`]).
    Node(NodeFeed),
}

impl IngestFeed {
    /// One UDP socket.
    pub fn socket(socket: IngestSocket) -> Self {
        IngestFeed::Sockets {
            rtp: vec![socket],
            rtcp: None,
        }
    }

    /// The maximum number of simulcast encodings.
    pub(crate) fn encodings(&self) -> u8 {
        match self {
            IngestFeed::Sockets { rtp, .. } => rtp.len().clamp(1, 3) as u8,
            IngestFeed::Shared { encodings, .. } => (*encodings).clamp(1, 3),
            IngestFeed::Packets(feed) => feed.encodings(),
            IngestFeed::Thread => 1,
            IngestFeed::Node(feed) => feed.encodings.clamp(1, 3),
        }
    }
}

/// The key of an SRTP ingest.
#[derive(Clone, PartialEq, Eq)]
pub struct IngestSrtp {
    /// The suite.
    pub suite: SrtpSuite,
    /// The master key (16 bytes) and salt (14 bytes), as in `a=crypto` (RFC 4568 section 6.1).
    pub key_and_salt: [u8; 30],
}

impl IngestSrtp {
    /// Returns a sealer with the key.
    pub(crate) fn sealer(&self) -> Option<Sealer> {
        let profile = self.suite.profile();
        let (master, salt) = self.key_and_salt.split_at_checked(profile.key_len())?;
        Sealer::new(profile, master, salt).ok()
    }
}

/// Keys are not shown.
impl std::fmt::Debug for IngestSrtp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IngestSrtp")
            .field("suite", &self.suite)
            .finish_non_exhaustive()
    }
}

/// The suites of SRTP ingests (RFC 4568 section 6.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SrtpSuite {
    /// `AES_CM_128_HMAC_SHA1_80`
    AesCm128HmacSha1_80,
    /// `AES_CM_128_HMAC_SHA1_32`
    AesCm128HmacSha1_32,
}

impl SrtpSuite {
    pub(crate) const fn profile(self) -> Profile {
        match self {
            SrtpSuite::AesCm128HmacSha1_80 => Profile::Aes128CmSha1_80,
            SrtpSuite::AesCm128HmacSha1_32 => Profile::Aes128CmSha1_32,
        }
    }
}
