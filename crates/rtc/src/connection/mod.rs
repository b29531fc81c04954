//! A PeerConnection: a transport and the RTP streams in it.

mod bandwidth;
mod incoming;
mod keyframes;
mod media;
mod reports;

use std::collections::VecDeque;
use std::mem;
use std::time::{Duration, Instant};

use portunus_rtp::{Rid, SeqNo, Ssrc};
use portunus_sdp::negotiated::{Kind, Negotiated, NegotiatedMedia};
use portunus_srtp::{fetch, fetch_head};

use crate::SelectedPair;
use crate::bandwidth::{Bandwidth, Measure, SentLog};
use crate::data::DataConfig;
use crate::streams::{ArrivalLog, Burst, Demux, NtpClock, SenderClock, StreamKey};
use crate::transport::{Transmit, Transport, TransportConfig, TransportError};

pub use incoming::{Incoming, Received, Refusal};
use keyframes::KeyframeRequests;
pub use media::Media;

/// How streams are watched and reported on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamConfig {
    /// How often transport-wide feedback is sent.
    pub twcc_period: Duration,
    /// How long a medium may be silent before that is told; none: it never is.
    pub no_media: Option<Duration>,
    /// Packets lost within a second that are told as a slow link; 0: never.
    pub slow_link_threshold: u32,
}

impl Default for StreamConfig {
    fn default() -> Self {
        Self {
            twcc_period: Duration::from_millis(100),
            no_media: Some(Duration::from_secs(1)),
            slow_link_threshold: 4,
        }
    }
}

/// What the peer says, or does not say any more, of the streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Feedback {
    /// A packet that we sent is to be sent again.
    Nack {
        /// Index of the m-line.
        media: usize,
        /// The number it was sent with.
        seq: SeqNo,
    },
    /// The peer needs a keyframe of what we send.
    Keyframe {
        /// Index of the m-line.
        media: usize,
    },
    /// The bitrate that the peer believes it can receive, in bit/s.
    Remb(u64),
    /// A sender report for what the peer sends.
    SenderReport {
        /// Index of the m-line.
        media: usize,
        /// The encoding.
        encoding: u8,
        /// What it says.
        clock: SenderClock,
    },
    /// An encoding of the peer's started or fell silent.
    Receiving {
        /// Index of the m-line.
        media: usize,
        /// The encoding.
        encoding: u8,
        /// Whether packets come.
        receiving: bool,
    },
    /// Many packets were lost within a second.
    SlowLink {
        /// Index of the m-line.
        media: usize,
        /// True: on their way to us.
        uplink: bool,
        /// How many.
        lost: u32,
    },
}

/// Feedback kept until it is polled; more is dropped (a NACK storm).
const MAX_FEEDBACK: usize = 1_024;

/// One PeerConnection.
///
/// After each call that changes it, poll [`Connection::poll_transmit`], then
/// [`Connection::poll_feedback`] and the transport's events, until none is left.
///
/// What each packet needs stands first, together with the same of the transport: with thousands of connections none
/// of it is in the cache.
#[derive(Debug)]
#[repr(C)]
pub struct Connection {
    media: Vec<Media>,
    next_report: Option<Instant>,
    next_transport_seq: u16,
    /// Who measures what the link carries, and what that needs to know of each packet.
    measure: Option<Measure>,
    sent_log: SentLog,
    /// ICE, DTLS, SRTP and SCTP.
    pub transport: Transport,
    config: StreamConfig,
    clock: NtpClock,
    demux: Demux,
    arrivals: ArrivalLog,
    next_twcc: Option<Instant>,
    bandwidth: Option<Box<Bandwidth>>,
    padding: Option<bandwidth::PaddingStream>,
    /// Bytes of padding that are to leave now.
    padding_due: usize,
    /// A second of media has passed since that was polled.
    second_passed: bool,
    feedback: VecDeque<Feedback>,
    keyframes: KeyframeRequests,
    fir_sequence: u8,
    /// The cap of what the peer sends, and whether it has been told.
    bitrate: Bitrate,
    /// What those that receive it can take, in bit/s.
    limit: Option<u64>,
    /// Index of the m-line that a report found no room for: it goes into the next datagram.
    next_sender: usize,
    scratch: Vec<u16>,
    malformed_rtcp: u64,
}

#[derive(Debug, Clone, Copy)]
enum Bitrate {
    Unset,
    Cap(u64),
    Lifted,
}

/// What is told to a peer when its cap is lifted, in bit/s: more than it sends.
const NO_CAP: u64 = 1 << 30;
/// Between two reports (RFC 3550 section 6.2 allows less than 5 s for busy sessions).
const REPORT_INTERVAL: Duration = Duration::from_secs(1);

impl Connection {
    /// A connection that waits for its first negotiation.
    pub fn new(
        transport: TransportConfig,
        config: StreamConfig,
        clock: NtpClock,
        now: Instant,
    ) -> Self {
        Self {
            transport: Transport::new(transport),
            config,
            clock,
            demux: Demux::default(),
            media: Vec::new(),
            arrivals: ArrivalLog::new(now),
            next_twcc: None,
            next_transport_seq: 0,
            measure: None,
            sent_log: SentLog::new(now),
            bandwidth: None,
            padding: None,
            padding_due: 0,
            feedback: VecDeque::new(),
            keyframes: KeyframeRequests::default(),
            fir_sequence: 0,
            bitrate: Bitrate::Unset,
            limit: None,
            next_report: None,
            next_sender: 0,
            scratch: Vec::new(),
            malformed_rtcp: 0,
            second_passed: false,
        }
    }

    /// Takes the outcome of an offer/answer exchange, the first as any later one.
    pub fn negotiate(
        &mut self,
        negotiated: &Negotiated,
        now: Instant,
    ) -> Result<(), TransportError> {
        self.demux.configure(&negotiated.media);
        self.negotiate_bandwidth(negotiated);
        for (index, line) in negotiated.media.iter().enumerate() {
            match self.media.get_mut(index) {
                Some(media) => media.configure(line),
                None => self.media.push(Media::new(line)),
            }
        }
        let sends =
            |line: &NegotiatedMedia| !line.disabled && (line.send || line.kind == Kind::Data);
        self.transport
            .set_receive_only(!negotiated.media.iter().any(sends));
        let data = negotiated
            .media
            .iter()
            .find(|m| m.kind == Kind::Data && !m.disabled);
        if let Some(data) = data {
            let config = DataConfig {
                remote_port: data.sctp_port,
                max_message_size: data.max_message_size,
            };
            self.transport.negotiate_data(config, now);
        }
        self.transport.set_remote(&negotiated.transport, now)
    }

    /// The last round trip to the peer, as its connectivity checks measure it; none before the first.
    pub fn round_trip(&self) -> Option<Duration> {
        self.transport.rtt()
    }

    /// The m-lines.
    pub fn media(&self) -> &[Media] {
        &self.media
    }

    /// The rids of an m-line's encodings, lowest first; none without simulcast by rid.
    pub fn rids(&self, media: usize) -> &[Rid] {
        self.demux.rids(media)
    }

    /// The SSRC that repairs an encoding of an m-line, once known.
    pub fn repair_of(&self, media: usize, encoding: u8) -> Option<Ssrc> {
        let media = u16::try_from(media).ok()?;
        self.demux.ssrc(StreamKey {
            media,
            encoding,
            repair: true,
        })
    }

    /// Changes how streams are watched from now on.
    pub fn set_streams(&mut self, config: StreamConfig) {
        self.config = config;
    }

    /// Whether a second of media has passed since the last call: what was counted is worth a look. While nothing comes or leaves
    /// it never has.
    pub fn poll_second(&mut self) -> bool {
        mem::take(&mut self.second_passed)
    }

    /// The numbers of the header extensions.
    pub fn extensions(&self) -> &portunus_rtp::ExtensionMap {
        self.demux.extensions()
    }

    /// What the peer said of the streams.
    pub fn poll_feedback(&mut self) -> Option<Feedback> {
        self.feedback.pop_front()
    }

    /// Bytes at its start that sending reads, to be fetched ahead ([`fetch_head`]). [`Connection::fetch_stream`] and
    /// [`Connection::fetch_key`] do the same for what that leads to.
    pub const HEAD: usize = mem::offset_of!(Self, transport) + Transport::HEAD;

    /// [`fetch`]es what sending on an m-line reads, once the connection is there.
    #[inline]
    pub fn fetch_stream(&self, media: usize) {
        self.transport.fetch_sealer();
        self.sent_log.fetch_slot(self.next_transport_seq);
        if let Some(media) = self.media.get(media) {
            media.fetch_sending();
        }
    }

    /// [`fetch`]es the key for sending, once the stream is there.
    #[inline]
    pub fn fetch_key(&self) {
        self.transport.fetch_key();
    }

    /// [`fetch`]es what [`Connection::receive`] reads of the connection itself. [`Connection::fetch_intake`] and
    /// [`Connection::fetch_stream_of`] do the same for what that leads to.
    #[inline]
    pub fn fetch_receiver(&self) {
        fetch_head(self, Self::HEAD);
        fetch(&self.demux);
    }

    /// [`fetch`]es what leads to the peer's key and streams, once the connection is there.
    #[inline]
    pub fn fetch_intake(&self) {
        self.transport.fetch_opener();
        self.demux.fetch();
    }

    /// [`fetch`]es the peer's key, and the state of the stream that an SSRC is known to belong to, which is returned.
    #[inline]
    pub fn fetch_stream_of(&self, ssrc: Ssrc) -> Option<StreamKey> {
        self.transport.fetch_peer_key();
        let key = self.demux.known(ssrc)?;
        if let Some(media) = self.media.get(usize::from(key.media)) {
            media.fetch();
        }
        Some(key)
    }

    /// [`fetch`]es the numbers of a stream, once its state is there.
    #[inline]
    pub fn fetch_numbers(&self, key: StreamKey) {
        if let Some(media) = self.media.get(usize::from(key.media)) {
            media.fetch_numbers(key.encoding);
        }
    }

    /// The next transport-wide sequence number.
    pub fn next_transport_seq(&mut self) -> u16 {
        let seq = self.next_transport_seq;
        self.next_transport_seq = seq.wrapping_add(1);
        seq
    }

    /// Seals the RTP packet in `buf[..len]`, whose payload may go on in `tail`, in place; the room
    /// after it takes the rest and the tag. Returns the length of the datagram, to be sent to the
    /// selected pair and told to [`Connection::sent`].
    #[inline]
    pub fn seal_rtp(
        &self,
        seq: SeqNo,
        ((header_len, len), tail): ((usize, usize), &[u8]),
        buf: &mut [u8],
    ) -> Result<usize, TransportError> {
        let transport = &self.transport;
        transport.seal_rtp_with_tail(seq, header_len, len, tail, buf)
    }

    /// Packets of an m-line are on their way. True: the next report has a time now, which
    /// [`Connection::poll_timeout`] tells.
    pub fn sent(&mut self, media: usize, burst: &Burst, now: Instant) -> bool {
        if burst.is_empty() {
            return false;
        }
        let stream = self.media.get_mut(media);
        if let Some(stream) = stream.and_then(|media| media.sending.as_mut()) {
            stream.sent(burst, now);
        }
        self.count_sent(burst.packets(), burst.bytes());
        let is_first = self.next_report.is_none();
        self.next_report.get_or_insert(now + REPORT_INTERVAL);
        is_first
    }

    /// The number for a packet of the repair stream of an m-line.
    pub fn next_rtx(&mut self, media: usize) -> Option<SeqNo> {
        Some(self.media.get_mut(media)?.sending.as_mut()?.next_rtx())
    }

    /// A packet of an m-line without repair stream is sent again.
    pub fn count_retransmission(&mut self, media: usize) {
        if let Some(stream) = self
            .media
            .get_mut(media)
            .and_then(|media| media.sending.as_mut())
        {
            stream.sent_again();
        }
    }

    /// Seals a packet that is sent again, like [`Connection::seal_rtp`] but not counted as new.
    pub fn seal_again(
        &mut self,
        seq: SeqNo,
        (header_len, len): (usize, usize),
        buf: &mut [u8],
    ) -> Result<usize, TransportError> {
        self.transport.seal_rtp(seq, header_len, len, buf)
    }

    /// Asks the peer for a keyframe (PLI, or FIR where only that was agreed): at once, or 300 ms after the request before,
    /// and up to twice again if none comes within a second.
    pub fn request_keyframe(&mut self, media: usize, encoding: u8, now: Instant) {
        self.keyframes.want((media, encoding), now);
    }

    /// The same for nobody who waits: never again for the same.
    pub fn request_keyframe_once(&mut self, media: usize, encoding: u8, now: Instant) {
        self.keyframes.want_once((media, encoding), now);
    }

    /// A keyframe of an encoding came: who waited for one has it.
    pub fn keyframe_came(&mut self, media: usize, encoding: u8) {
        self.keyframes.came((media, encoding));
    }

    /// Caps what the peer sends, in bit/s; none lifts the cap. It is told at once and once a second.
    pub fn set_bitrate(&mut self, bitrate: Option<u64>, now: Instant) {
        self.bitrate = match (bitrate, self.bitrate) {
            (Some(cap), _) => Bitrate::Cap(cap),
            // There was none: nothing is to be told.
            (None, Bitrate::Unset) => return,
            (None, _) => Bitrate::Lifted,
        };
        self.next_report = Some(now);
    }

    /// The most that the peer is told to send, in bit/s.
    pub fn bitrate_cap(&self) -> Option<u64> {
        match (self.bitrate, self.limit) {
            (Bitrate::Cap(cap), limit) => Some(limit.map_or(cap, |limit| limit.min(cap))),
            (Bitrate::Unset | Bitrate::Lifted, limit) => limit,
        }
    }

    /// What those that receive the peer's video can take, in bit/s: it is told like a cap, and never more
    /// than the cap. None: whatever it sends.
    pub fn limit_bitrate(&mut self, limit: Option<u64>, now: Instant) {
        let before = std::mem::replace(&mut self.limit, limit);
        if limit == before {
            return;
        }
        if limit.is_none() && matches!(self.bitrate, Bitrate::Unset) {
            self.bitrate = Bitrate::Lifted;
        }
        let unlimited = |limit: Option<u64>| limit.unwrap_or(u64::MAX);
        // Less is told at once, more with the next report.
        if unlimited(limit) < unlimited(before) {
            self.next_report = Some(now);
        }
        self.next_report.get_or_insert(now);
    }

    /// The clock of the stream that an m-line relays, in the timestamps of what is sent.
    pub fn set_source_clock(&mut self, media: usize, clock: Option<SenderClock>) {
        if let Some(media) = self.media.get_mut(media) {
            media.source_clock = clock;
        }
    }

    /// A datagram to be sent, written into `buf`.
    pub fn poll_transmit(&mut self, now: Instant, buf: &mut [u8]) -> Option<Transmit> {
        if let Some(transmit) = self.transport.poll_transmit(buf) {
            return Some(transmit);
        }
        if !self.can_send() {
            return None;
        }
        let SelectedPair {
            local: source,
            remote: destination,
            carrier,
            ..
        } = *self.transport.selected_pair()?;
        let len = match self.write_rtcp(now, buf) {
            Some(len) => self.transport.seal_rtcp(len, buf).ok()?,
            None => self.write_padding(now, buf)?,
        };
        Some(Transmit {
            len,
            source,
            destination,
            carrier,
        })
    }

    /// When [`Connection::handle_timeout`] has something to do.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let transport = self.transport.poll_timeout();
        if !self.can_send() {
            // A report that is due waits until it can leave: it must not keep its owner awake.
            return transport;
        }
        let streams = self.media.iter().filter_map(Media::next_nack).min();
        let bandwidth = self
            .bandwidth
            .as_ref()
            .and_then(|bandwidth| bandwidth.poll_timeout());
        [
            transport,
            streams,
            self.next_report,
            self.next_twcc,
            self.keyframes.next(),
            bandwidth,
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.transport.handle_timeout(now);
        if let Some(bandwidth) = &mut self.bandwidth {
            bandwidth.handle_timeout(&self.sent_log, now);
        }
    }

    /// RTCP packets of the peer that could not be read.
    pub fn malformed_rtcp(&self) -> u64 {
        self.malformed_rtcp
    }

    /// Whether there are a path and keys for media.
    fn can_send(&self) -> bool {
        let transport = &self.transport;
        transport.is_connected()
            && transport.profile().is_some()
            && transport.selected_pair().is_some()
    }

    fn push_feedback(&mut self, feedback: Feedback) {
        if self.feedback.len() < MAX_FEEDBACK {
            self.feedback.push_back(feedback);
        }
    }
}
