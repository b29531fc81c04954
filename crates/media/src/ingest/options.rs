//! What an ingest takes in, and from where.

use std::sync::Arc;
use std::time::Duration;

use portunus_rtp::{ExtensionMap, Pt, Ssrc};
use portunus_sdp::negotiated::Codec;
use portunus_srtp::{Profile, Sealer};
use smallvec::SmallVec;

use super::{IngestSocket, IngestStatus, PacketReceiver, SharedClock, SharedSocket};

/// An ingest: which worker it lives on, and which one it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct IngestId {
    pub(crate) worker: u16,
    pub(crate) serial: u64,
}

impl IngestId {
    /// The worker that it lives on.
    pub fn worker(self) -> usize {
        usize::from(self.worker)
    }
}

/// An ingest that was added.
#[derive(Debug, Clone)]
pub struct Ingest {
    /// Its name, to route from it.
    pub id: IngestId,
    /// How it does.
    pub status: Arc<IngestStatus>,
}

/// How an ingest is set up.
#[derive(Debug)]
pub struct IngestOptions {
    /// What comes in.
    pub media: IngestMedia,
    /// Where from.
    pub feed: IngestFeed,
    /// RTP comes encrypted with this key. RTCP is plain all the same.
    pub srtp: Option<IngestSrtp>,
    /// A packet with another SSRC is refused unless the present sender was silent this long; zero lets
    /// a new sender take over at once.
    pub collision: Duration,
    /// The worker to live on; none: the one that has the fewest ingests.
    pub worker: Option<usize>,
}

impl IngestOptions {
    /// Packets of `codec` as they come.
    pub fn rtp(codec: Codec, clock_rate: u32, feed: IngestFeed) -> Self {
        Self::new(IngestMedia::Rtp(RtpIngest::new(codec, clock_rate)), feed)
    }

    /// Messages for data channels.
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

/// What comes in.
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
    /// What the packets hold.
    pub codec: Codec,
    /// The payload type that they have to have; none: any.
    pub pt: Option<Pt>,
    /// What packets of these payload types hold, where that is not always the same; they are always relayed.
    pub others: SmallVec<[(Pt, Codec); 2]>,
    /// RTP clock in Hz.
    pub clock_rate: u32,
    /// The number (1 to 14) of the abs-capture-time extension in the packets, which is then passed on.
    pub abs_capture_time: Option<u8>,
    /// The numbers of the other extensions in the packets that are passed on.
    pub extensions: ExtensionMap,
    /// It is encrypted end to end: keyframes cannot be told from other pictures, unless a descriptor outside of that tells
    /// them.
    pub opaque: bool,
    /// Make up for a sender whose clock is slower or faster than ours.
    pub skew: bool,
    /// The clock of its timestamps, if others share it. Timestamps go on as they are where a receiver changes between such
    /// ingests, and must be those of the time at which packets are fed.
    pub clock: Option<SharedClock>,
    /// VP9: the stream has spatial layers, to be selected by each route.
    pub svc: bool,
    /// H.264: sent before each I-frame that the stream itself sends no parameter sets with.
    pub h264_parameter_sets: Option<super::ParameterSets>,
}

impl RtpIngest {
    /// A stream that is relayed as it comes.
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

    /// What a packet of a payload type holds, if it may have that.
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
    /// The channel's label; it is opened at a peer that has none of this label.
    pub label: &'static str,
    /// Messages are text, and refused if they are not UTF-8; else they are bytes.
    pub text: bool,
    /// A new viewer gets the last message.
    pub keep_last: bool,
    /// Each message stands behind an RTP header, whose payload type says whether it is text (0) or bytes. It is
    /// plain even if the ingest has a key.
    pub framed: bool,
}

/// Where packets come from.
#[derive(Debug)]
pub enum IngestFeed {
    /// UDP sockets.
    Sockets {
        /// One to three: the simulcast encodings, lowest first. Further ones are not listened to.
        rtp: Vec<IngestSocket>,
        /// For sender reports in, and keyframe requests and REMB out.
        rtcp: Option<IngestSocket>,
    },
    /// A UDP socket that several ingests share: each takes the packets with its SSRCs. All ingests of a socket have to
    /// live on one worker ([`IngestOptions::worker`]).
    Shared {
        /// For RTP.
        rtp: SharedSocket,
        /// For sender reports in, and keyframe requests and REMB out.
        rtcp: Option<SharedSocket>,
        /// The SSRC of the lowest encoding; those above it have the next numbers.
        ssrc: Ssrc,
        /// The encodings that there may be, 1 to 3.
        encodings: u8,
    },
    /// The control plane: files, RTSP.
    Packets(PacketReceiver),
    /// Threads that feed many ingests of the worker ([`super::ThreadFeed`]).
    Thread,
}

impl IngestFeed {
    /// One UDP socket.
    pub fn socket(socket: IngestSocket) -> Self {
        IngestFeed::Sockets {
            rtp: vec![socket],
            rtcp: None,
        }
    }

    /// Simulcast encodings that it may bring.
    pub(crate) fn encodings(&self) -> u8 {
        match self {
            IngestFeed::Sockets { rtp, .. } => rtp.len().clamp(1, 3) as u8,
            IngestFeed::Shared { encodings, .. } => (*encodings).clamp(1, 3),
            IngestFeed::Packets(feed) => feed.encodings(),
            IngestFeed::Thread => 1,
        }
    }
}

/// The key of an SRTP ingest.
#[derive(Clone, PartialEq, Eq)]
pub struct IngestSrtp {
    /// The suite.
    pub suite: SrtpSuite,
    /// Master key (16 bytes) and salt (14 bytes), as `a=crypto` has them in base64 (RFC 4568 section 6.1).
    pub key_and_salt: [u8; 30],
}

impl IngestSrtp {
    /// What protects packets with the key.
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
