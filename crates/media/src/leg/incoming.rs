//! What arrives from a far end: decrypts, checks and measures it, and detects keys.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use portunus_rtc::streams::ReceiveStream;
use portunus_rtp::rtcp::ReportBlock;
use portunus_rtp::telephone_event::{Detector, Pressed, TelephoneEvent};
use portunus_rtp::{Header, Pt, SeqNo, Ssrc};
use portunus_sdp::negotiated::Codec;
use portunus_srtp::{OpenError, Opener};
use smallvec::SmallVec;

use super::latch::Latch;
use super::{LegPayload, LegRemote, SrtpKey};
use crate::ingest::Refused;

/// The maximum number of SSRCs whose replay windows are kept. After that, the far end is assumed to
/// have restarted.
const SENDERS: usize = 64;
/// A larger jump of sequence numbers restarts the statistics (RFC 3550 appendix A.1: MAX_DROPOUT).
const JUMP: u64 = 3_000;
/// A step back after this silence does so, too: the far end has restarted.
const SILENCE: Duration = Duration::from_secs(1);

/// Why a datagram was not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotTaken {
    /// It came from another address, or before any address is known.
    Stranger,
    /// It is faulty.
    Refused(Refused),
}

impl From<Refused> for NotTaken {
    fn from(refused: Refused) -> Self {
        Self::Refused(refused)
    }
}

/// The outcome of an RTP packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Received {
    /// The length of the decrypted packet.
    pub(crate) len: usize,
    /// It came from another address than the packets before.
    pub(crate) moved: bool,
    /// Keys that were released.
    pub(crate) pressed: [Option<Pressed>; 2],
    /// The clock of its payload, in Hz.
    pub(crate) clock_rate: u32,
}

/// A decrypted packet.
struct Opened {
    header: Header,
    len: usize,
    /// The extended sequence number, which only SRTP has.
    index: Option<SeqNo>,
}

/// The state of the receiving direction.
#[derive(Debug, Default)]
pub(crate) struct Incoming {
    pub(crate) rtp: Latch,
    pub(crate) rtcp: Latch,
    payloads: SmallVec<[LegPayload; 4]>,
    key: Option<SrtpKey>,
    opener: Option<Opener>,
    stream: Option<ReceiveStream>,
    highest: SeqNo,
    /// The timestamp and the arrival of the last packet that was not a telephone event.
    timed: Option<(u32, Instant)>,
    detector: Detector,
    last: Option<Instant>,
}

impl Incoming {
    /// Returns the initial state. `hears_unknown` accepts the first sender while no address is
    /// known.
    pub(crate) fn new(hears_unknown: bool) -> Self {
        Self {
            rtp: Latch::new(hears_unknown),
            ..Self::default()
        }
    }

    /// Applies what was agreed on. SRTP continues if the key is the same.
    pub(crate) fn set(&mut self, remote: &LegRemote) {
        self.rtp.set(remote.rtp, remote.latching);
        self.rtcp.set(remote.rtcp_address(), remote.latching);
        self.payloads = SmallVec::from_slice(&remote.incoming);
        let key = remote.srtp.as_ref().map(|srtp| &srtp.incoming);
        if self.key.as_ref() != key {
            self.opener = key.and_then(opener);
            self.key = key.cloned();
        }
    }

    /// Takes an RTP packet, and decrypts it in place.
    pub(crate) fn take_rtp(
        &mut self,
        from: SocketAddr,
        packet: &mut [u8],
        now: Instant,
    ) -> Result<Received, NotTaken> {
        if !self.rtp.admits(from) {
            return Err(NotTaken::Stranger);
        }
        let Opened { header, len, index } = self.open(packet)?;
        let payload = *self.payload(header.pt).ok_or(Refused::PayloadType)?;
        let index = index.unwrap_or_else(|| self.place(&header));
        let moved = self.rtp.accept(from);
        let last = self.last.replace(now);
        let silence = last.map_or(Duration::ZERO, |last| now.saturating_duration_since(last));
        let mut received = Received {
            len,
            moved,
            clock_rate: payload.clock_rate,
            ..Received::default()
        };
        if self.stream.as_ref().map(ReceiveStream::ssrc) != Some(header.ssrc) {
            let [first, _] = &mut received.pressed;
            *first = self.detector.restart();
        }
        let has_begun_anew = index < self.highest && silence >= SILENCE;
        if has_begun_anew {
            self.stream = None;
        }
        self.measure(&header, index, &payload, now);
        if payload.codec == Codec::TelephoneEvent {
            let bytes = packet.get(header.payload_range()).unwrap_or_default();
            if let Ok(event) = TelephoneEvent::parse(bytes) {
                let place = (header.timestamp, header.marker);
                let pressed = self.detector.take(event, place, now);
                for (slot, key) in received.pressed.iter_mut().zip(pressed) {
                    *slot = Some(key);
                }
            }
        }
        Ok(received)
    }

    /// Checks and decrypts an RTCP datagram in place. Returns its length. `shared` means that it
    /// came to the port of RTP.
    pub(crate) fn open_rtcp(
        &mut self,
        from: SocketAddr,
        shared: bool,
        datagram: &mut [u8],
    ) -> Result<usize, NotTaken> {
        let latch = if shared { &self.rtp } else { &self.rtcp };
        // Anybody could have written RTCP in the clear, so it must come from the sender of the RTP.
        let is_near = || self.rtp.current().is_some_and(|it| it.ip() == from.ip());
        let is_said = latch.current() == Some(from);
        if !latch.admits(from) || !is_said && self.key.is_none() && !is_near() {
            return Err(NotTaken::Stranger);
        }
        let len = match (&mut self.opener, &self.key) {
            (None, None) => datagram.len(),
            (None, Some(_)) => return Err(Refused::Unauthentic.into()),
            (Some(opener), _) => match opener.open_rtcp(datagram) {
                Ok(len) => len,
                Err(error) => return Err(self.refused(error).into()),
            },
        };
        if !shared {
            self.rtcp.accept(from);
        }
        Ok(len)
    }

    fn open(&mut self, packet: &mut [u8]) -> Result<Opened, Refused> {
        let malformed = |_| Refused::Malformed;
        let opener = match (&mut self.opener, &self.key) {
            (None, None) => {
                let header = Header::parse(packet).map_err(malformed)?;
                return Ok(Opened {
                    header,
                    len: packet.len(),
                    index: None,
                });
            }
            (None, Some(_)) => return Err(Refused::Unauthentic),
            (Some(opener), _) => opener,
        };
        let header = Header::parse_encrypted(packet).map_err(malformed)?;
        let opened = opener.open_rtp(header.header_len(), header.ssrc, header.sequence, packet);
        let opened = match opened {
            Ok(opened) => opened,
            Err(error) => return Err(self.refused(error)),
        };
        let plain = packet.get(..opened.len).unwrap_or_default();
        let header = header.decrypted(plain).map_err(malformed)?;
        Ok(Opened {
            header,
            len: opened.len,
            index: Some(opened.index),
        })
    }

    #[cold]
    fn refused(&mut self, error: OpenError) -> Refused {
        match error {
            OpenError::Truncated => Refused::Malformed,
            OpenError::Replayed => Refused::Late,
            OpenError::TooManySources => {
                self.opener = self.key.as_ref().and_then(opener);
                Refused::Late
            }
            _ => Refused::Unauthentic,
        }
    }

    fn payload(&self, pt: Pt) -> Option<&LegPayload> {
        self.payloads.iter().find(|payload| payload.pt == pt)
    }

    /// Returns the extended sequence number of a packet without SRTP.
    fn place(&self, header: &Header) -> SeqNo {
        match &self.stream {
            Some(stream) if stream.ssrc() == header.ssrc => self.highest.nearest(header.sequence),
            _ => SeqNo(u64::from(header.sequence)),
        }
    }

    fn measure(&mut self, header: &Header, seq: SeqNo, payload: &LegPayload, now: Instant) {
        let goes_on = |stream: &&mut ReceiveStream| {
            stream.ssrc() == header.ssrc && seq.0.abs_diff(self.highest.0) <= JUMP
        };
        let stream = match self.stream.as_mut().filter(goes_on) {
            Some(stream) => stream,
            None => {
                self.timed = None;
                self.highest = seq;
                let clock_rate = payload.clock_rate;
                self.stream
                    .insert(ReceiveStream::new(header.ssrc, clock_rate, false))
            }
        };
        // The timestamp of an event is that of its start, so it says nothing about the network.
        let timestamp = match self
            .timed
            .filter(|_| payload.codec == Codec::TelephoneEvent)
        {
            Some((timestamp, at)) => {
                let since = now.saturating_duration_since(at).as_micros();
                let ticks = since * u128::from(payload.clock_rate) / 1_000_000;
                timestamp.wrapping_add(ticks as u32)
            }
            None => header.timestamp,
        };
        self.timed = Some((timestamp, now));
        self.highest = self.highest.max(seq);
        stream.accept(seq, timestamp, header.payload_range().len(), now);
    }

    /// Notes a sender report of the far end.
    pub(crate) fn sender_report(&mut self, ssrc: Ssrc, ntp: u64, now: Instant) {
        if let Some(stream) = self.stream.as_mut().filter(|it| it.ssrc() == ssrc) {
            stream.sender_report(ntp, now);
        }
    }

    /// The SSRC of the far end, once it has sent something.
    pub(crate) fn ssrc(&self) -> Option<Ssrc> {
        self.stream.as_ref().map(ReceiveStream::ssrc)
    }

    /// When the last valid packet arrived.
    pub(crate) fn last(&self) -> Option<Instant> {
        self.last
    }

    pub(crate) fn jitter(&self) -> Duration {
        self.stream
            .as_ref()
            .map_or(Duration::ZERO, ReceiveStream::jitter)
    }

    /// Returns the report on what arrives.
    pub(crate) fn report(&mut self, now: Instant) -> Option<ReportBlock> {
        let figures = self.stream.as_mut()?.report(now)?;
        Some(ReportBlock {
            ssrc: figures.ssrc,
            fraction_lost: figures.fraction_lost,
            cumulative_lost: i32::try_from(figures.cumulative_lost).unwrap_or(i32::MAX),
            highest_sequence: figures.highest,
            jitter: figures.jitter,
            last_sr: figures.last_sr,
            delay_since_last_sr: figures.delay_since_last_sr,
        })
    }

    /// When a pressed key counts as released.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.detector.deadline()
    }

    /// Returns a key that counts as released, and the clock of its duration.
    pub(crate) fn timeout(&mut self, now: Instant) -> Option<(Pressed, u32)> {
        let pressed = self.detector.timeout(now)?;
        let events = self.payloads.iter();
        let event = events.clone().find(|it| it.codec == Codec::TelephoneEvent);
        Some((pressed, event.map_or(8_000, |event| event.clock_rate)))
    }

    /// Returns the payload of telephone events for the receivers of what arrives.
    pub(crate) fn events(&self) -> Option<LegPayload> {
        super::event_payload(&self.payloads)
    }
}

fn opener(key: &SrtpKey) -> Option<Opener> {
    key.opener().map(|opener| opener.with_source_limit(SENDERS))
}
