//! An m-line: its incoming and outgoing streams.

use std::time::Instant;

use portunus_rtp::{Mid, Pt, Ssrc};
use portunus_sdp::negotiated::{Kind, NegotiatedMedia, Payload};
use portunus_srtp::{fetch, fetch_head};
use smallvec::SmallVec;

use crate::streams::{Accepted, ReceiveStream, SendStream, SenderClock, Succession};

/// The most encodings of an m-line.
const MAX_ENCODINGS: usize = 3;

/// The state of one m-line.
#[derive(Debug)]
pub struct Media {
    /// The mid.
    pub mid: Mid,
    /// The kind of media.
    pub kind: Kind,
    /// Whether the peer sends.
    pub recv: bool,
    /// Whether this side sends.
    pub send: bool,
    /// The number of encodings that the peer sends: 1 without simulcast.
    pub encodings: u8,
    payloads: SmallVec<[Payload; 2]>,
    pub(super) receiving: SmallVec<[Option<Encoding>; 1]>,
    /// The numbering of incoming packets. It outlives the streams, which end while the m-line is on
    /// hold.
    successions: Option<Box<[Succession; MAX_ENCODINGS]>>,
    pub(super) sending: Option<SendStream>,
    pub(super) source_clock: Option<SenderClock>,
    pub(super) reported_lost: u64,
}

/// An incoming encoding.
#[derive(Debug)]
pub(super) struct Encoding {
    pub(super) stream: ReceiveStream,
    pub(super) active: bool,
    pub(super) lost_at_report: u64,
    /// When a keyframe was requested because packets were counted as lost.
    pub(super) gave_up: Option<Instant>,
}

impl Media {
    pub(super) fn new(line: &NegotiatedMedia) -> Self {
        let mut media = Self {
            mid: line.mid,
            kind: line.kind,
            recv: false,
            send: false,
            encodings: 1,
            payloads: SmallVec::new(),
            receiving: SmallVec::new(),
            successions: None,
            sending: None,
            source_clock: None,
            reported_lost: 0,
        };
        media.configure(line);
        media
    }

    pub(super) fn configure(&mut self, line: &NegotiatedMedia) {
        let rtp = line.kind != Kind::Data && !line.disabled;
        self.mid = line.mid;
        self.kind = line.kind;
        self.recv = line.recv && rtp;
        self.send = line.send && rtp;
        self.payloads = line.payloads.iter().cloned().collect();
        let encodings = line
            .rids
            .len()
            .max(line.remote_ssrcs.len())
            .clamp(1, MAX_ENCODINGS);
        self.encodings = encodings as u8;
        if !self.recv {
            self.receiving.clear();
        }
        match &mut self.sending {
            // The stream stays while on hold: a repair stream that starts again would repeat nonces
            // of SRTP.
            Some(stream) if stream.ssrc() == line.local_ssrc => stream.set_rtx(line.local_rtx_ssrc),
            sending => {
                *sending = self
                    .send
                    .then(|| SendStream::new(line.local_ssrc, line.local_rtx_ssrc));
            }
        }
    }

    /// Prefetches the state that a sent packet changes.
    #[inline]
    pub(super) fn fetch_sending(&self) {
        // Whether there is a stream is not checked, since that would wait for the memory.
        fetch_head(&self.sending, SendStream::HEAD);
    }

    /// Prefetches the state that a received packet needs.
    #[inline]
    pub(super) fn fetch(&self) {
        fetch(&self.kind);
        fetch(&self.payloads);
        fetch(&self.receiving);
        fetch(&self.successions);
    }

    /// Prefetches the numbering of an encoding, once the state that leads to it is in the cache.
    #[inline]
    pub(super) fn fetch_numbers(&self, encoding: u8) {
        if let Some(all) = &self.successions
            && let Some(succession) = all.get(usize::from(encoding))
        {
            fetch(succession);
        }
    }

    /// Returns the payload type that `pt` is or repairs, and whether it repairs.
    pub(super) fn payload(&self, pt: Pt) -> Option<(&Payload, bool)> {
        let plain = self
            .payloads
            .iter()
            .find(|payload| payload.pt == pt)
            .map(|p| (p, false));
        plain.or_else(|| {
            self.payloads
                .iter()
                .find(|p| p.rtx == Some(pt))
                .map(|p| (p, true))
        })
    }

    /// Returns whether the peer may request retransmissions. Without that agreement, packets are
    /// not made so that they can be repeated exactly, as SRTP demands for the same number.
    pub(super) fn repairs(&self) -> bool {
        self.send && self.payloads.iter().any(|payload| payload.feedback.nack)
    }

    /// Returns the first agreed payload type, whose feedback counts for the m-line.
    pub(super) fn main_payload(&self) -> Option<&Payload> {
        self.payloads.first()
    }

    /// Returns the agreed payload types, most preferred first.
    pub fn payloads(&self) -> &[Payload] {
        &self.payloads
    }

    /// Returns the RTP clock rate in Hz.
    pub fn clock_rate(&self) -> u32 {
        self.main_payload()
            .map_or(90_000, |payload| payload.clock_rate)
    }

    /// Returns the incoming encodings, lowest first.
    pub fn received(&self) -> impl Iterator<Item = Option<&ReceiveStream>> {
        self.receiving
            .iter()
            .map(|encoding| encoding.as_ref().map(|e| &e.stream))
    }

    /// Returns the outgoing stream. It stays while the m-line is on hold.
    pub fn sent(&self) -> Option<&SendStream> {
        self.sending.as_ref()
    }

    pub(super) fn next_nack(&self) -> Option<Instant> {
        self.receiving
            .iter()
            .flatten()
            .filter_map(|encoding| encoding.stream.next_nack())
            .min()
    }

    /// Returns the incoming stream of an encoding. Makes a new one if its SSRC has changed.
    pub(super) fn encoding(&mut self, index: u8, ssrc: Ssrc) -> Option<&mut Encoding> {
        let clock_rate = self.clock_rate();
        let nack = self
            .main_payload()
            .is_some_and(|payload| payload.feedback.nack);
        let index = usize::from(index);
        if index >= usize::from(self.encodings) {
            return None;
        }
        while self.receiving.len() <= index {
            self.receiving.push(None);
        }
        let slot = self.receiving.get_mut(index)?;
        if slot
            .as_ref()
            .is_some_and(|encoding| encoding.stream.ssrc() != ssrc)
        {
            *slot = None;
        }
        Some(slot.get_or_insert_with(|| Encoding {
            stream: ReceiveStream::new(ssrc, clock_rate, nack),
            active: false,
            lost_at_report: 0,
            gave_up: None,
        }))
    }

    /// Returns the numbering of an encoding over its SSRCs.
    pub(super) fn succession(&mut self, index: u8) -> Option<&mut Succession> {
        self.successions
            .get_or_insert_default()
            .get_mut(usize::from(index))
    }

    /// Returns the encoding with this SSRC.
    pub(super) fn encoding_of(&self, ssrc: Ssrc) -> Option<u8> {
        let at = self
            .receiving
            .iter()
            .position(|e| e.as_ref().is_some_and(|e| e.stream.ssrc() == ssrc));
        at.and_then(|at| u8::try_from(at).ok())
    }
}

impl Encoding {
    /// Returns whether the packet counts as new.
    pub(super) fn is_new(accepted: Accepted) -> bool {
        match accepted {
            Accepted::First | Accepted::Yes | Accepted::AfterLongGap => true,
            Accepted::Repeated => false,
        }
    }
}
