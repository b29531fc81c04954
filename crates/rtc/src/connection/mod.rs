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

/// How streams are monitored and reported on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamConfig {
    /// The interval of transport-wide feedback.
    pub twcc_period: Duration,
    /// The time without packets after which a stream is reported silent. `None` disables it.
    pub no_media: Option<Duration>,
    /// Packets lost within a second that are reported as a slow link. 0 disables it.
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

/// A change that concerns the streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Feedback {
    /// The peer requests a retransmission.
    Nack {
        /// The index of the m-line.
        media: usize,
        /// The sequence number of the packet, as sent.
        seq: SeqNo,
    },
    /// The peer requests a keyframe.
    Keyframe {
        /// The index of the m-line.
        media: usize,
    },
    /// The bitrate that the peer can receive by its own estimate, in bit/s.
    Remb(u64),
    /// A sender report of the peer.
    SenderReport {
        /// The index of the m-line.
        media: usize,
        /// The encoding.
        encoding: u8,
        /// The clock of the stream.
        clock: SenderClock,
    },
    /// An encoding of the peer started or fell silent.
    Receiving {
        /// The index of the m-line.
        media: usize,
        /// The encoding.
        encoding: u8,
        /// Whether packets arrive.
        receiving: bool,
    },
    /// Many packets were lost within a second.
    SlowLink {
        /// The index of the m-line.
        media: usize,
        /// Whether they were lost on their way to this side.
        uplink: bool,
        /// The number of lost packets.
        lost: u32,
    },
}

/// The most feedback that is kept until it is polled. More is dropped (a NACK storm).
const MAX_FEEDBACK: usize = 1_024;

/// One PeerConnection.
///
/// After each call that changes it, poll [`Connection::poll_transmit`], then
/// [`Connection::poll_feedback`] and the transport's events, until all are empty.
///
/// Fields that each packet needs come first, next to those of the transport: with thousands of
/// connections, none of them is in the cache.
#[derive(Debug)]
#[repr(C)]
pub struct Connection {
    media: Vec<Media>,
    next_report: Option<Instant>,
    next_transport_seq: u16,
    /// The side that measures the bandwidth.
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
    /// Padding to send now, in bytes.
    padding_due: usize,
    /// Whether a second with media has passed since the last poll.
    second_passed: bool,
    feedback: VecDeque<Feedback>,
    keyframes: KeyframeRequests,
    fir_sequence: u8,
    /// The cap of the peer's bitrate, and whether the peer knows it.
    bitrate: Bitrate,
    /// The bitrate that the receivers of the peer's video can take, in bit/s.
    limit: Option<u64>,
    /// The index of the m-line at which the reports continue in the next datagram.
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

/// The bitrate sent to a peer whose cap is lifted, in bit/s: more than it sends.
const NO_CAP: u64 = 1 << 30;
/// The interval of reports (RFC 3550 section 6.2 allows less than 5 s for busy sessions).
const REPORT_INTERVAL: Duration = Duration::from_secs(1);

impl Connection {
    /// Makes a connection that waits for its first negotiation.
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

    /// Applies the result of an offer/answer exchange, the first or a later one.
    pub fn negotiate(
        &mut self,
        negotiated: &Negotiated,
        now: Instant,
    ) -> Result<(), TransportError> {
        self.demux.configure(&negotiated.media);
        self.negotiate_bandwidth(negotiated);
        // A vector that grows by itself has room for four, of 650 bytes each. Most connections
        // have one m-line or two.
        let more = negotiated.media.len().saturating_sub(self.media.len());
        self.media.reserve_exact(more);
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

    /// Returns the last round trip that connectivity checks measured, or `None` before the first.
    pub fn round_trip(&self) -> Option<Duration> {
        self.transport.rtt()
    }

    /// Returns the m-lines.
    pub fn media(&self) -> &[Media] {
        &self.media
    }

    /// Returns the rids of an m-line's encodings, lowest first. Empty without simulcast by rid.
    pub fn rids(&self, media: usize) -> &[Rid] {
        self.demux.rids(media)
    }

    /// Returns the SSRC that repairs an encoding of an m-line, once known.
    pub fn repair_of(&self, media: usize, encoding: u8) -> Option<Ssrc> {
        let media = u16::try_from(media).ok()?;
        self.demux.ssrc(StreamKey {
            media,
            encoding,
            repair: true,
        })
    }

    /// Sets how streams are monitored from now on.
    pub fn set_streams(&mut self, config: StreamConfig) {
        self.config = config;
    }

    /// Returns whether a second with media has passed since the last call, so that the counters may
    /// have changed.
    pub fn poll_second(&mut self) -> bool {
        mem::take(&mut self.second_passed)
    }

    /// Returns the ids of the header extensions.
    pub fn extensions(&self) -> &portunus_rtp::ExtensionMap {
        self.demux.extensions()
    }

    /// Returns the next feedback.
    pub fn poll_feedback(&mut self) -> Option<Feedback> {
        self.feedback.pop_front()
    }

    /// The leading bytes of the connection that sending reads, to be prefetched ([`fetch_head`]).
    /// [`Connection::fetch_stream`] and [`Connection::fetch_key`] prefetch what they point to.
    pub const HEAD: usize = mem::offset_of!(Self, transport) + Transport::HEAD;

    /// [`fetch`]es the state that sending on an m-line reads, once the connection is in the cache.
    #[inline]
    pub fn fetch_stream(&self, media: usize) {
        self.transport.fetch_sealer();
        self.sent_log.fetch_slot(self.next_transport_seq);
        if let Some(media) = self.media.get(media) {
            media.fetch_sending();
        }
    }

    /// [`fetch`]es the key for sending, once the stream is in the cache.
    #[inline]
    pub fn fetch_key(&self) {
        self.transport.fetch_key();
    }

    /// [`fetch`]es the state that [`Connection::receive`] reads of the connection itself.
    /// [`Connection::fetch_intake`] and [`Connection::fetch_stream_of`] prefetch what it points to.
    #[inline]
    pub fn fetch_receiver(&self) {
        fetch_head(self, Self::HEAD);
        fetch(&self.demux);
    }

    /// [`fetch`]es the pointers to the peer's key and streams, once the connection is in the cache.
    #[inline]
    pub fn fetch_intake(&self) {
        self.transport.fetch_opener();
        self.demux.fetch();
    }

    /// [`fetch`]es the peer's key, and the state of the stream with a known SSRC. Returns the key
    /// of the stream.
    #[inline]
    pub fn fetch_stream_of(&self, ssrc: Ssrc) -> Option<StreamKey> {
        self.transport.fetch_peer_key();
        let key = self.demux.known(ssrc)?;
        if let Some(media) = self.media.get(usize::from(key.media)) {
            media.fetch();
        }
        Some(key)
    }

    /// [`fetch`]es the numbering of a stream, once its state is in the cache.
    #[inline]
    pub fn fetch_numbers(&self, key: StreamKey) {
        if let Some(media) = self.media.get(usize::from(key.media)) {
            media.fetch_numbers(key.encoding);
        }
    }

    /// Returns the next transport-wide sequence number.
    pub fn next_transport_seq(&mut self) -> u16 {
        let seq = self.next_transport_seq;
        self.next_transport_seq = seq.wrapping_add(1);
        seq
    }

    /// Seals the RTP packet in `buf[..len]` in place. Its payload may continue in `tail`. The rest
    /// of `buf` takes that and the tag. Returns the length of the datagram, to be sent to the
    /// selected pair and passed to [`Connection::sent`].
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

    /// Counts sent packets of an m-line. Returns true if the next report has become due at a time,
    /// which [`Connection::poll_timeout`] returns.
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

    /// Returns the next sequence number of an m-line's repair stream.
    pub fn next_rtx(&mut self, media: usize) -> Option<SeqNo> {
        Some(self.media.get_mut(media)?.sending.as_mut()?.next_rtx())
    }

    /// Counts a retransmission of an m-line without a repair stream.
    pub fn count_retransmission(&mut self, media: usize) {
        if let Some(stream) = self
            .media
            .get_mut(media)
            .and_then(|media| media.sending.as_mut())
        {
            stream.sent_again();
        }
    }

    /// Seals a retransmission like [`Connection::seal_rtp`], without counting it as new.
    pub fn seal_again(
        &mut self,
        seq: SeqNo,
        (header_len, len): (usize, usize),
        buf: &mut [u8],
    ) -> Result<usize, TransportError> {
        self.transport.seal_rtp(seq, header_len, len, buf)
    }

    /// Requests a keyframe from the peer (PLI, or FIR if only that was agreed on): at once, or 300
    /// ms after the last request, and up to twice again if none arrives within a second.
    pub fn request_keyframe(&mut self, media: usize, encoding: u8, now: Instant) {
        self.keyframes.want((media, encoding), now);
    }

    /// Requests a keyframe without repeating the request.
    pub fn request_keyframe_once(&mut self, media: usize, encoding: u8, now: Instant) {
        self.keyframes.want_once((media, encoding), now);
    }

    /// Ends the keyframe request of an encoding, whose keyframe has arrived.
    pub fn keyframe_came(&mut self, media: usize, encoding: u8) {
        self.keyframes.came((media, encoding));
    }

    /// Caps the peer's bitrate, in bit/s. `None` lifts the cap. It is sent at once and then every
    /// second.
    pub fn set_bitrate(&mut self, bitrate: Option<u64>, now: Instant) {
        self.bitrate = match (bitrate, self.bitrate) {
            (Some(cap), _) => Bitrate::Cap(cap),
            // There was no cap, so there is none to lift.
            (None, Bitrate::Unset) => return,
            (None, _) => Bitrate::Lifted,
        };
        self.next_report = Some(now);
    }

    /// Returns the bitrate cap sent to the peer, in bit/s.
    pub fn bitrate_cap(&self) -> Option<u64> {
        match (self.bitrate, self.limit) {
            (Bitrate::Cap(cap), limit) => Some(limit.map_or(cap, |limit| limit.min(cap))),
            (Bitrate::Unset | Bitrate::Lifted, limit) => limit,
        }
    }

    /// Limits the peer's bitrate to what its receivers can take, in bit/s. It is sent like a cap
    /// and never exceeds the cap. `None` means no limit.
    pub fn limit_bitrate(&mut self, limit: Option<u64>, now: Instant) {
        let before = std::mem::replace(&mut self.limit, limit);
        if limit == before {
            return;
        }
        if limit.is_none() && matches!(self.bitrate, Bitrate::Unset) {
            self.bitrate = Bitrate::Lifted;
        }
        let unlimited = |limit: Option<u64>| limit.unwrap_or(u64::MAX);
        // A lower limit is sent at once, a higher one with the next report.
        if unlimited(limit) < unlimited(before) {
            self.next_report = Some(now);
        }
        self.next_report.get_or_insert(now);
    }

    /// Sets the clock of the stream that an m-line relays, in timestamps of the outgoing stream.
    pub fn set_source_clock(&mut self, media: usize, clock: Option<SenderClock>) {
        if let Some(media) = self.media.get_mut(media) {
            media.source_clock = clock;
        }
    }

    /// Writes the next datagram to send into `buf`.
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

    /// Returns when [`Connection::handle_timeout`] is due.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let transport = self.transport.poll_timeout();
        if !self.can_send() {
            // A due report waits until it can leave. It must not keep the owner awake.
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

    /// Handles the timeouts that are due.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.transport.handle_timeout(now);
        if let Some(bandwidth) = &mut self.bandwidth {
            bandwidth.handle_timeout(&self.sent_log, now);
        }
    }

    /// Returns the number of malformed RTCP packets of the peer.
    pub fn malformed_rtcp(&self) -> u64 {
        self.malformed_rtcp
    }

    /// Returns whether there are a path and keys for media.
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
